//! Nodes whose leases are renewed, and then some of which fall silent, until each of those carries the taint for it and its
//! pods are said not to be ready; by contenders, and by a bare client.

mod bare;
mod pace;
mod watch;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use berth_sim::nodes::{node_name, pod_name, renew};
use berth_sim::{Rounds, each};
use tokio::time::{sleep, timeout};

use self::bare::{Bare, Mix};
use self::watch::Watch;
use super::arena::Arena;
use super::contender::{Contender, Running};
use super::evict::Crowd;
use super::requests::Own;
use super::sheet::{Column, Kind, Sheet};
use super::stage::Stage;
use super::window::Spent;
use crate::figure::percentile;
use crate::report::progress;

pub(crate) use self::pace::{NODES_MIN, Pace};

const CALM: &str = "leases renewed";
pub(crate) const CALM_CORE: Kind = Kind { stage: CALM, name: "processor meanwhile", unit: "% of a core" };
const CALM_RATE: Kind = Kind { stage: CALM, name: "renewals", unit: "a second" };
pub(crate) const CALM_MEMORY: Kind = Kind { stage: CALM, name: "memory at most", unit: "MiB" };

const SILENT: &str = "50 nodes fall silent";
const LATE_MEDIAN: Kind =
    Kind { stage: SILENT, name: "past the grace period until tainted, median", unit: "s" };
pub(crate) const LATE_LAST: Kind =
    Kind { stage: SILENT, name: "past the grace period until tainted, last", unit: "s" };
const LATE_PODS: Kind =
    Kind { stage: SILENT, name: "past the grace period until the last pod is not ready", unit: "s" };
pub(crate) const SILENT_PROCESSOR: Kind =
    Kind { stage: SILENT, name: "processor until all is seen", unit: "s" };
const SILENT_MEMORY: Kind = Kind { stage: SILENT, name: "memory at most", unit: "MiB" };
const SILENT_WRITES: Kind = Kind { stage: SILENT, name: "writes, a silent node", unit: "" };
const SILENT_PATCHES: Kind = Kind { stage: SILENT, name: "of them PATCH", unit: "" };
const SILENT_PUTS: Kind = Kind { stage: SILENT, name: "of them PUT", unit: "" };
const SILENT_OTHERS: Kind = Kind { stage: SILENT, name: "of them others", unit: "" };
const SILENT_EVENTS: Kind = Kind { stage: SILENT, name: "events, a silent node", unit: "" };

/// Nodes that fall silent, in a cluster where that is no disruption of a zone.
const SILENT_NODES: Range<usize> = 0..50;
/// How long it may take past the grace period until all is seen.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long events may come after what they tell of.
const AFTER: Duration = Duration::from_secs(3);
/// How long all of it may take, from the start of a contender.
const LIMIT: Duration = Duration::from_mins(6);

/// Nodes with pods, which are there and say so.
pub(crate) struct Silence {
    pub(crate) crowd: Crowd,
    pub(crate) pace: Pace,
}

impl Stage for Silence {
    fn title(&self) -> String {
        format!("{} nodes with {} pods, and 50 that fall silent", self.crowd.nodes, self.crowd.all_pods())
    }

    async fn measure(&self, arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()> {
        self.crowd.lay_ready(&arena.client).await?;
        let watch = Watch::begin(arena).await?;
        let mut running = arena.start_with(contender, &self.pace.flags())?;
        let (leases, column) = (self.leases(), Column::Of(contender));
        self.amid(arena, &leases, async {
            self.calm(arena, &mut running, &leases, column, sheet).await?;
            self.fall_silent(arena, &mut running, &leases, &watch, column, sheet).await
        })
        .await?;
        running.stop().await
    }
}

impl Silence {
    /// The leases of all nodes, which may be as late as leaves no node silent for a grace period.
    fn leases(&self) -> Rounds {
        Rounds::new(self.crowd.nodes, self.pace.round, self.pace.grace.saturating_sub(self.pace.round))
    }

    /// Does something while leases are renewed, and not for ever.
    async fn amid(
        &self,
        arena: &Arena,
        leases: &Rounds,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let both = async {
            tokio::select! {
                done = work => done,
                ended = leases.go(async |number| renew(&arena.client, number).await) => match ended? {},
            }
        };
        timeout(LIMIT, both).await.with_context(|| format!("not done within {} s", LIMIT.as_secs()))?
    }

    async fn calm(
        &self,
        arena: &Arena,
        running: &mut Running,
        leases: &Rounds,
        column: Column,
        sheet: &mut Sheet,
    ) -> anyhow::Result<()> {
        running.until(pass(self.pace.round)).await?;
        running.forget_peak()?;
        let window = arena.open(Some(running)).await?;
        let (begun, renewed) = (Instant::now(), leases.done());
        let before = running.processor_seconds()?;
        running.until(pass(self.pace.watched)).await?;
        let used = running.processor_seconds()? - before;
        let (seconds, renewed) = (begun.elapsed().as_secs_f64(), leases.done() - renewed);
        let spent = arena.close(window, Some(running), Own::Nothing).await?;
        sheet.note(CALM_RATE, column, renewed as f64 / seconds);
        sheet.note(CALM_CORE, column, used * 100.0 / seconds);
        sheet.note(CALM_MEMORY, column, running.peak_megabytes()?);
        sheet.keep(column, CALM, spent, Vec::new());
        Ok(())
    }

    async fn fall_silent(
        &self,
        arena: &Arena,
        running: &mut Running,
        leases: &Rounds,
        watch: &Watch,
        column: Column,
        sheet: &mut Sheet,
    ) -> anyhow::Result<()> {
        watch.nobody()?;
        let grace = self.pace.grace;
        progress(&format!(
            "  {} nodes fall silent, and may be so for {} s",
            SILENT_NODES.len(),
            grace.as_secs()
        ));
        running.forget_peak()?;
        let window = arena.open(Some(running)).await?;
        let before = running.processor_seconds()?;
        leases.leave_out(SILENT_NODES.end);
        // Their last sign of life, all at once; no grace period ends before that has passed since.
        let last = Instant::now();
        each(SILENT_NODES, async |number| renew(&arena.client, number).await).await?;
        running.until(watch.all(self.crowd.pods, grace + PATIENCE)).await?;
        let used = running.processor_seconds()? - before;
        running.until(pass(AFTER)).await?;
        let memory = running.peak_megabytes()?;
        let spent = arena.close(window, Some(running), Own::Nothing).await?;
        self.note(sheet, column, watch, last + grace, spent)?;
        sheet.note(SILENT_PROCESSOR, column, used);
        sheet.note(SILENT_MEMORY, column, memory);
        Ok(())
    }

    /// Notes how much later than due all was seen, and what was written for it.
    fn note(
        &self,
        sheet: &mut Sheet,
        column: Column,
        watch: &Watch,
        due: Instant,
        spent: Spent,
    ) -> anyhow::Result<()> {
        let pods = SILENT_NODES.flat_map(|node| (0..self.crowd.pods).map(move |pod| pod_name(node, pod)));
        let mut late = lateness(&watch.nodes.since(), SILENT_NODES.map(node_name), due)?;
        let mut late_pods = lateness(&watch.pods.since(), pods, due)?;
        let each = |count: f64| count / SILENT_NODES.len() as f64;
        let requests = &spent.requests;
        let (patches, puts) = (requests.with("PATCH") + requests.with("APPLY"), requests.with("PUT"));
        for (kind, value) in [
            (LATE_MEDIAN, percentile(&mut late, 0.5)),
            (LATE_LAST, percentile(&mut late, 1.0)),
            (LATE_PODS, percentile(&mut late_pods, 1.0)),
            (SILENT_WRITES, each(requests.writes())),
            (SILENT_PATCHES, each(patches)),
            (SILENT_PUTS, each(puts)),
            (SILENT_OTHERS, each(requests.writes() - patches - puts)),
            (SILENT_EVENTS, each(requests.events())),
        ] {
            sheet.note(kind, column, value);
        }
        sheet.keep(column, SILENT, spent, late);
        Ok(())
    }

    /// Lets the server make its first writes of this kind, which nobody is measured by.
    pub(crate) async fn warm_up(&self, arena: &Arena) -> anyhow::Result<()> {
        self.crowd.lay_ready(&arena.client).await?;
        Bare::new(arena.client.clone(), self.crowd.pods).give_up(Mix::plain(self.crowd.pods)).await
    }

    /// Measures the floor: a bare client that makes as many writes as Berth was seen to, at the moment they are due.
    pub(crate) async fn floor(&self, arena: &Arena, sheet: &mut Sheet) -> anyhow::Result<()> {
        progress("the same nodes, by a bare client");
        let ours = sheet.records.iter().rev().find(|record| record.stage == SILENT);
        let mix = Mix::of(&ours.context("Berth was measured just now")?.spent.requests);
        self.crowd.lay_ready(&arena.client).await?;
        let watch = Watch::begin(arena).await?;
        let bare = Bare::new(arena.client.clone(), self.crowd.pods);
        let leases = self.leases();
        leases.leave_out(SILENT_NODES.end);
        self.amid(arena, &leases, async {
            let window = arena.open(None).await?;
            let due = Instant::now();
            bare.give_up(mix).await?;
            watch.all(self.crowd.pods, PATIENCE).await?;
            bare.tell(mix).await?;
            let spent = arena.close(window, None, Own::Nothing).await?;
            self.note(sheet, Column::Floor, &watch, due, spent)
        })
        .await
    }
}

/// Nothing but time.
async fn pass(time: Duration) -> anyhow::Result<()> {
    sleep(time).await;
    Ok(())
}

/// How many seconds after it was due each of these was seen. That somebody else was seen, or somebody before the time, is an
/// error: it would pass for an early one.
fn lateness(
    seen: &BTreeMap<String, Instant>,
    expected: impl Iterator<Item = String>,
    due: Instant,
) -> anyhow::Result<Vec<f64>> {
    let mut late = Vec::new();
    for name in expected {
        let moment = seen.get(&name).with_context(|| format!("{name} was not given up, but should be"))?;
        let after = moment.checked_duration_since(due).with_context(|| {
            format!("{name} was given up {:.3} s before its time", due.duration_since(*moment).as_secs_f64())
        })?;
        late.push(after.as_secs_f64());
    }
    ensure!(
        late.len() == seen.len(),
        "{} were given up, of whom only {} were silent",
        seen.len(),
        late.len()
    );
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_told_of_exactly_those_who_fell_silent_and_never_of_an_early_one() {
        let due = Instant::now();
        let at = |seconds| due + Duration::from_secs(seconds);
        let both = || ["a", "b"].map(str::to_owned).into_iter();
        let seen = |seen: &[(&str, Instant)]| -> BTreeMap<String, Instant> {
            seen.iter().map(|(name, moment)| ((*name).to_owned(), *moment)).collect()
        };
        assert_eq!(lateness(&seen(&[("a", at(1)), ("b", at(3))]), both(), due).unwrap(), [1.0, 3.0]);
        let told = |of: &[(&str, Instant)], due| lateness(&seen(of), both(), due).unwrap_err().to_string();
        assert!(told(&[("a", at(1))], due).contains("b was not given up"));
        assert!(told(&[("a", at(1)), ("b", at(3)), ("c", at(3))], due).contains("only 2 were silent"));
        assert!(told(&[("a", at(1)), ("b", at(3))], at(2)).contains("a was given up 1.000 s before"));
    }
}
