//! The what-ifs that `plan` and `explain` share: changed objects, taints, another time.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use jiff::Timestamp;

use super::WorldArgs;
use crate::change::{Moment, Removal, TaintChange};
use crate::console::{Console, Outcome};
use crate::fleet::observe;
use crate::manifest::{Notice, Problem, load};
use crate::plan::{Plan, Planner, Reasons};
use crate::world::{Alteration, Reading, World, alter, loose_ends, read};

/// What is to be different from the world as given.
#[derive(Debug, Clone, Default, Args)]
pub struct WhatIfArgs {
    /// Apply the objects of this file or folder over the world: same kind and name replaces, else adds.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub with: Vec<PathBuf>,

    /// Take an object out of the world: NAME is a cluster, Kind/NAME or Kind/NAMESPACE/NAME any object.
    #[arg(long, value_name = "NAME")]
    pub without: Vec<Removal>,

    /// Put a taint on a cluster at the moment of --at, or take it off with a trailing `-`.
    #[arg(long, value_name = "CLUSTER=KEY[=VALUE]:EFFECT")]
    pub taint: Vec<TaintChange>,

    /// The moment to decide at: RFC 3339, or a span such as +90s, +5m, +2h from the moment the world is as given.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<Moment>,

    /// End with exit code 1 when there is any warning; everything is still printed.
    #[arg(long)]
    pub strict: bool,
}

/// The two moments of a what-if.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    from: Timestamp,
    at: Timestamp,
}

impl Times {
    /// The moment of the change.
    pub fn at(self) -> berth_engine::Moment {
        berth_engine::Moment::from_timestamp(self.at)
    }

    fn from(self) -> berth_engine::Moment {
        berth_engine::Moment::from_timestamp(self.from)
    }
}

/// What there is to decide.
#[derive(Debug)]
pub struct Scene {
    /// The world as it was, decided; `None` where nothing is to be different.
    pub before: Option<Plan>,
    /// The world to decide, with the decisions of before.
    pub world: World,
}

impl WhatIfArgs {
    /// When the world is as given, and when it is decided with the changes.
    ///
    /// A fixed --at alone moves both, so that a world that was written down can be looked at in its own time; a span
    /// lets that time pass.
    pub fn times(&self, from: Option<Moment>, now: Timestamp) -> anyhow::Result<Times> {
        let from = match (from, self.at) {
            (Some(from), _) => from.resolve(now)?,
            (None, Some(Moment::Fixed(at))) => at,
            (None, _) => now,
        };
        let at = self.at.map_or(Ok(from), |at| at.resolve(from))?;
        anyhow::ensure!(from <= at, "--at {at} lies before --from {from}: time only goes forward");
        Ok(Times { from, at })
    }

    fn changes_objects(&self) -> bool {
        !(self.with.is_empty() && self.without.is_empty() && self.taint.is_empty())
    }

    /// Reads the world and applies what is to be different. `None` if there are faults, which have been shown.
    pub fn scene(
        &self,
        input: &WorldArgs,
        times: Times,
        console: &mut Console<'_>,
    ) -> anyhow::Result<Option<Scene>> {
        let from_stdin = |paths: &[PathBuf]| paths.iter().any(|path| path.as_os_str() == "-");
        anyhow::ensure!(
            !(from_stdin(&input.files) && from_stdin(&self.with)),
            "standard input can be read once: give `-` to -f or to --with, not to both"
        );
        let given = if input.files.is_empty() {
            observe::world(&input.server)?
        } else {
            load(&input.files, &mut console.input)
        };
        let mut base = read(given);
        let mut with = Reading::default();
        if !self.with.is_empty() {
            with = read(load(&self.with, &mut console.input));
        }
        base.problems.append(&mut with.problems);
        if !base.problems.is_empty() {
            console.report(base.problems)?;
            return Ok(None);
        }
        base.notices.append(&mut with.notices);
        base.notices.extend(orphans(&base.world));
        console.notify(&base.notices)?;
        base.warnings.append(&mut with.warnings);
        if !self.changes_objects() && times.from == times.at {
            base.warnings.extend(loose_ends(&base.world));
            console.warn(base.warnings)?;
            return Ok(Some(Scene { before: None, world: base.world }));
        }
        let before = Planner::new(&base.world, times.from(), Reasons::None).plan();
        let alteration =
            Alteration { with: with.world, without: &self.without, taints: &self.taint, at: times.at };
        match alter(&before.carried_out(&base.world), alteration) {
            Ok(world) => {
                base.warnings.extend(loose_ends(&world));
                console.warn(base.warnings)?;
                Ok(Some(Scene { before: Some(before), world }))
            }
            Err(errors) => {
                console.warn(base.warnings)?;
                for error in errors {
                    writeln!(console.err, "berth: {error}")?;
                }
                Ok(None)
            }
        }
    }

    /// The outcome with the warnings in mind.
    pub fn judge(&self, outcome: Outcome, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let noun = match console.warnings {
            0 => return Ok(outcome),
            _ if !self.strict => return Ok(outcome),
            1 => "warning",
            _ => "warnings",
        };
        // What was decided comes first, also where both streams end in one place.
        console.out.flush()?;
        writeln!(console.err, "berth: {} {noun}, and --strict allows none", console.warnings)?;
        Ok(Outcome::Faulty)
    }
}

/// Decisions of placements that are elsewhere: they count where clusters are balanced, and nothing else.
fn orphans(world: &World) -> Option<Notice> {
    let count = world
        .slices()
        .iter()
        .filter(|(placement, _)| !world.placements.contains_key(*placement))
        .map(|(_, slices)| slices.len())
        .sum::<usize>();
    (count > 0).then(|| {
        let decisions = match count {
            1 => "1 PlacementDecision belongs to a Placement that is".to_owned(),
            _ => format!("{count} PlacementDecisions belong to Placements that are"),
        };
        let message = format!("{decisions} not in the input: such count for the Balance prioritizer only");
        Notice(Problem::of_input(message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(at: Option<&str>, from: Option<&str>) -> (String, String) {
        let args = WhatIfArgs { at: at.map(|at| at.parse().unwrap()), ..Default::default() };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let times = args.times(from.map(|from| from.parse().unwrap()), now).unwrap();
        (times.from.to_string(), times.at.to_string())
    }

    #[test]
    fn time_does_not_go_backwards() {
        let args = WhatIfArgs { at: Some("2026-01-01T09:00:00Z".parse().unwrap()), ..Default::default() };
        let later = "2026-01-01T10:00:00Z";
        let error = args.times(Some(later.parse().unwrap()), later.parse().unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--at 2026-01-01T09:00:00Z lies before --from 2026-01-01T10:00:00Z: time only goes forward"
        );
    }

    #[test]
    fn a_fixed_moment_moves_the_world_and_a_span_lets_time_pass() {
        let pair = |from: &str, at: &str| (format!("2026-01-01T{from}Z"), format!("2026-01-01T{at}Z"));
        assert_eq!(times(None, None), pair("00:00:00", "00:00:00"));
        assert_eq!(times(Some("2026-01-01T09:00:00Z"), None), pair("09:00:00", "09:00:00"));
        assert_eq!(times(Some("+5m"), None), pair("00:00:00", "00:05:00"));
        assert_eq!(times(Some("+5m"), Some("2026-01-01T09:00:00Z")), pair("09:00:00", "09:05:00"));
        assert_eq!(times(Some("2026-01-01T10:00:00Z"), Some("+1h")), pair("01:00:00", "10:00:00"));
    }
}
