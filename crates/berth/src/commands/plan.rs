//! `berth plan`: what a hub would decide, and what a change would move.

use clap::Args;

use super::{OutputFormat, WhatIfArgs, WorldArgs};
use crate::change::Moment;
use crate::console::{Console, Outcome};
use crate::manifest::{Notice, Problem};
use crate::plan::{
    Detail, Difference, MOVES_SHOWN_MAX, Plan, Planner, Reasons, without_uid, write_difference,
    write_objects, write_overview,
};

/// Arguments of `berth plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth plan -f fleet/\n  berth plan --context fleet --taint cluster1=maintenance:NoSelect\n  berth plan -f fleet/ --taint cluster1=maintenance:NoSelect\n  berth plan -f fleet/ --without cluster1 --fail-on-moves 5\n  berth plan -f fleet/ --with change.yaml --at +10m\n  berth plan -f fleet/ --strict -o yaml > decided.yaml"
)]
pub struct PlanArgs {
    /// The world as it is.
    #[command(flatten)]
    pub input: WorldArgs,

    /// What is to be different.
    #[command(flatten)]
    pub what_if: WhatIfArgs,

    /// The moment the world is as given: RFC 3339, or a span from now such as +5m. Now unless given; the moment of
    /// --at where that is a fixed time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<Moment>,

    /// End with exit code 3 when more than this many moves are planned.
    #[arg(long, value_name = "N")]
    pub fail_on_moves: Option<usize>,

    /// How to print; json and yaml print the objects a hub would hold afterwards.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Decides, and prints the plan or the difference.
pub fn run(args: &PlanArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let times = args.what_if.times(args.from, console.now)?;
    let Some(scene) = args.what_if.scene(&args.input, times, console)? else { return Ok(Outcome::Faulty) };
    let detail = if args.output == OutputFormat::Wide { Detail::Wide } else { Detail::Short };
    let reasons = match args.output {
        OutputFormat::Table => Reasons::First(MOVES_SHOWN_MAX),
        OutputFormat::Wide => Reasons::All,
        OutputFormat::Json | OutputFormat::Yaml => Reasons::None,
    };
    let after = Planner::new(&scene.world, times.at(), reasons).plan();
    console.warn(after.warnings())?;
    let is_difference = scene.before.is_some();
    let moves = match (args.output, scene.before) {
        (OutputFormat::Json | OutputFormat::Yaml, before) => {
            if let Some(message) = without_uid(&after) {
                console.notify(&[Notice(Problem::of_input(message))])?;
            }
            write_objects(&mut console.out, &after, args.output)?;
            before.map_or(after.moves(), |before| Difference { before, after }.moves())
        }
        (_, None) => {
            write_overview(&mut console.out, console.colour, &after, detail)?;
            after.moves()
        }
        (_, Some(before)) => {
            tell_moves_due(&before, console)?;
            let mut difference = Difference { before, after };
            write_difference(&mut console.out, console.colour, &mut difference, detail)?;
            difference.moves()
        }
    };
    let outcome = judge(moves, args.fail_on_moves, is_difference, console)?;
    args.what_if.judge(outcome, console)
}

/// Moves that are due without any change would otherwise go unseen.
fn tell_moves_due(before: &Plan, console: &mut Console<'_>) -> anyhow::Result<()> {
    let due = before.moves();
    if due > 0 {
        let (moves, them) =
            if due == 1 { ("1 move is".to_owned(), "it") } else { (format!("{due} moves are"), "them") };
        let message =
            format!("{moves} due even without the change, and not counted: plain `berth plan` shows {them}");
        console.notify(&[Notice(Problem::of_input(message))])?;
    }
    Ok(())
}

fn judge(
    moves: usize,
    allowed: Option<usize>,
    is_difference: bool,
    console: &mut Console<'_>,
) -> anyhow::Result<Outcome> {
    let Some(allowed) = allowed.filter(|allowed| moves > *allowed) else { return Ok(Outcome::Done) };
    // What was planned comes first, also where both streams end in one place.
    console.out.flush()?;
    let what = if is_difference { "the change takes" } else { "the plan takes" };
    let noun = if moves == 1 { "move" } else { "moves" };
    writeln!(console.err, "berth: {what} {moves} {noun}, and --fail-on-moves allows {allowed}")?;
    Ok(Outcome::TooManyMoves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        plan: PlanArgs,
    }

    #[test]
    fn every_change_is_read_from_the_command_line() {
        let line = "plan -f a -f b --with c.yaml --without c1 --without Placement/ns1/web --taint c2=k=v:NoSelect --taint c2=k- --at +5m --from 2026-07-01T00:00:00Z --fail-on-moves 3 -o wide";
        let plan = Line::try_parse_from(line.split(' ')).unwrap().plan;
        assert_eq!(plan.input.files.len(), 2);
        assert_eq!(
            (plan.what_if.with.len(), plan.what_if.without.len(), plan.what_if.taint.len()),
            (1, 2, 2)
        );
        assert_eq!((plan.fail_on_moves, plan.output), (Some(3), OutputFormat::Wide));
        assert!(plan.what_if.at.is_some() && plan.from.is_some());
    }

    #[test]
    fn a_span_into_the_past_is_refused_with_the_allowed_forms() {
        for option in ["--at", "--from"] {
            let error = Line::try_parse_from(["plan", "-f", "a", option, "-5m"]).unwrap_err().to_string();
            assert!(error.contains("not a moment: allowed are RFC 3339"), "{error}");
            assert!(error.contains("time only goes forward"), "{error}");
        }
    }

    #[test]
    fn a_wrong_effect_is_a_usage_error_that_names_the_allowed_ones() {
        let error = Line::try_parse_from(["plan", "-f", "a", "--taint", "c=k:Evict"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("allowed are NoSelect, PreferNoSelect, NoSelectIfNew"), "{error}");
    }
}
