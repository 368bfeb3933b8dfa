//! Tainted nodes, until the pods that do not tolerate it are gone; by contenders, and by a bare client.

mod bare;
mod crowd;
pub(crate) mod restart;

use std::ops::Range;
use std::time::Instant;

use anyhow::Context as _;
use berth_sim::nodes::Departures;

use self::bare::Bare;
use self::crowd::taint_all;
use super::arena::Arena;
use super::contender::{Contender, Running};
use super::requests::Own;
use super::sheet::{Column, Kind, Sheet};
use super::stage::Stage;
use super::window::Spent;
use crate::report::progress;

pub(crate) use self::crowd::Crowd;
pub(crate) use self::restart::Restart;

/// The namespace of the pods.
pub(crate) const NAMESPACE: &str = "pods";
/// Nodes that all cases together taint: fewer would be other cases.
pub(crate) const NODES_MIN: u32 = 51;

const START: &str = "start among the pods";
const START_QUIET: Kind = Kind { stage: START, name: "start until quiet", unit: "s" };
const START_PROCESSOR: Kind = Kind { stage: START, name: "processor until quiet", unit: "s" };
const START_MEMORY: Kind = Kind { stage: START, name: "memory at most", unit: "MiB" };

/// The figures of a case; the other one has the same under its own name.
const MANY: &str = "50 tainted nodes";
const FIRST: Kind = Kind { stage: MANY, name: "first pod gone", unit: "s" };
const HALF: Kind = Kind { stage: MANY, name: "half of them gone", unit: "s" };
pub(crate) const LAST: Kind = Kind { stage: MANY, name: "last pod gone", unit: "s" };
pub(crate) const PROCESSOR: Kind = Kind { stage: MANY, name: "processor until quiet", unit: "s" };
pub(crate) const MEMORY: Kind = Kind { stage: MANY, name: "memory at most", unit: "MiB" };
const SERVER: Kind = Kind { stage: MANY, name: "processor of kube-apiserver", unit: "s" };
const PATCHES: Kind = Kind { stage: MANY, name: "PATCH, a pod", unit: "" };
const DELETIONS: Kind = Kind { stage: MANY, name: "DELETE, a pod", unit: "" };
const OTHERS: Kind = Kind { stage: MANY, name: "other writes, a pod", unit: "" };
const EVENTS: Kind = Kind { stage: MANY, name: "events, a pod", unit: "" };

/// One case: how many nodes are tainted at once, and what its figures are called.
struct Case {
    name: &'static str,
    tainted: usize,
}

const CASES: [Case; 2] =
    [Case { name: "1 tainted node", tainted: 1 }, Case { name: MANY, tainted: NODES_MIN as usize - 1 }];

/// Nodes that are tainted, case by case.
pub(crate) struct Evict(pub(crate) Crowd);

impl Stage for Evict {
    fn title(&self) -> String {
        format!("{} nodes with {} pods", self.0.nodes, self.0.all_pods())
    }

    async fn measure(&self, arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()> {
        self.0.lay(&arena.client).await?;
        let mut running = arena.start(contender)?;
        let begun = running.begun();
        let rest = running.rest().await?;
        let column = Column::Of(contender);
        sheet.note(START_QUIET, column, rest.since.duration_since(begun).as_secs_f64());
        sheet.note(START_PROCESSOR, column, rest.processor_seconds);
        sheet.note(START_MEMORY, column, running.peak_megabytes()?);
        for (case, tainted) in cases() {
            self.evict(arena, &mut running, column, (case, tainted), sheet).await?;
        }
        running.stop().await
    }
}

/// The cases, each with nodes of its own.
fn cases() -> impl Iterator<Item = (&'static str, Range<usize>)> {
    CASES.iter().scan(0, |first, case| {
        let tainted = *first..*first + case.tainted;
        *first = tainted.end;
        Some((case.name, tainted))
    })
}

impl Evict {
    async fn evict(
        &self,
        arena: &Arena,
        running: &mut Running,
        column: Column,
        (stage, tainted): (&'static str, Range<usize>),
        sheet: &mut Sheet,
    ) -> anyhow::Result<()> {
        let (count, own) = (tainted.len() * self.0.pods, Own::Nodes(tainted.len()));
        let departures = Departures::new(arena.client.clone(), NAMESPACE);
        departures.ready().await?;
        running.forget_peak()?;
        let before = running.processor_seconds()?;
        let window = arena.open(Some(running)).await?;
        let begun = Instant::now();
        taint_all(&arena.client, tainted).await?;
        let mut gone = Vec::new();
        running
            .until(async {
                gone = departures.gone(count).await?;
                Ok(())
            })
            .await?;
        let rest = running.rest().await?;
        let memory = running.peak_megabytes()?;
        let spent = arena.close(window, Some(running), own).await?;
        let times = note_times(sheet, column, stage, begun, &gone)?;
        sheet.note(Kind { stage, ..PROCESSOR }, column, rest.processor_seconds - before);
        sheet.note(Kind { stage, ..MEMORY }, column, memory);
        note_requests(sheet, column, stage, &spent, count);
        sheet.keep(column, stage, spent, times);
        Ok(())
    }

    /// Lets the server make its first writes of this kind, which nobody is measured by.
    pub(crate) async fn warm_up(&self, arena: &Arena) -> anyhow::Result<()> {
        self.0.lay(&arena.client).await?;
        for (_, tainted) in cases() {
            Bare::new(arena.client.clone(), tainted).await?.evict().await?;
        }
        Ok(())
    }

    /// Measures the floor: the same cases by a bare client, which tells of them in as many events as Berth was seen to.
    pub(crate) async fn floor(&self, arena: &Arena, sheet: &mut Sheet) -> anyhow::Result<()> {
        progress("the same pods, by a bare client");
        self.0.lay(&arena.client).await?;
        for (stage, tainted) in cases() {
            let ours = sheet.records.iter().rev().find(|record| record.stage == stage);
            let events = ours.context("Berth was measured just now")?.spent.requests.events() as usize;
            let own = Own::Nodes(tainted.len());
            let bare = Bare::new(arena.client.clone(), tainted).await?;
            let departures = Departures::new(arena.client.clone(), NAMESPACE);
            departures.ready().await?;
            let window = arena.open(None).await?;
            let begun = Instant::now();
            bare.evict().await?;
            let gone = departures.gone(bare.count()).await?;
            bare.tell(events).await?;
            let spent = arena.close(window, None, own).await?;
            let times = note_times(sheet, Column::Floor, stage, begun, &gone)?;
            note_requests(sheet, Column::Floor, stage, &spent, bare.count());
            sheet.keep(Column::Floor, stage, spent, times);
        }
        Ok(())
    }
}

/// Notes when pods were gone; all of it, in seconds since the first taint was sent, comes back.
fn note_times(
    sheet: &mut Sheet,
    column: Column,
    stage: &'static str,
    begun: Instant,
    gone: &[Instant],
) -> anyhow::Result<Vec<f64>> {
    let seconds: Vec<f64> =
        gone.iter().map(|moment| moment.saturating_duration_since(begun).as_secs_f64()).collect();
    for (kind, place) in [(FIRST, 0), (HALF, seconds.len() / 2), (LAST, seconds.len().saturating_sub(1))] {
        let value = *seconds.get(place).context("no pod was seen to leave")?;
        sheet.note(Kind { stage, ..kind }, column, value);
    }
    Ok(seconds)
}

/// Notes what was asked of the server, and what that cost it.
fn note_requests(sheet: &mut Sheet, column: Column, stage: &'static str, spent: &Spent, pods: usize) {
    let each = |count: f64| count / pods as f64;
    let requests = &spent.requests;
    let (patches, deletions) = (requests.with("PATCH") + requests.with("APPLY"), requests.with("DELETE"));
    for (kind, value) in [
        (SERVER, spent.api_server_seconds),
        (PATCHES, each(patches)),
        (DELETIONS, each(deletions)),
        (OTHERS, each(requests.writes() - patches - deletions)),
        (EVENTS, each(requests.events())),
    ] {
        sheet.note(Kind { stage, ..kind }, column, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_taints_nodes_that_no_other_has_tainted() {
        let all: Vec<_> = cases().collect();
        assert_eq!(all, [("1 tainted node", 0..1), (MANY, 1..NODES_MIN as usize)]);
    }

    #[test]
    fn the_times_of_a_case_are_its_first_its_middle_and_its_last_departure() {
        let begun = Instant::now();
        let gone: Vec<_> = [1, 2, 3, 4, 9].map(|s| begun + std::time::Duration::from_secs(s)).into();
        let mut sheet = Sheet::default();
        note_times(&mut sheet, Column::Floor, MANY, begun, &gone).unwrap();
        let told = [FIRST, HALF, LAST].map(|kind| sheet.value(kind, Column::Floor));
        assert_eq!(told, [Some(1.0), Some(3.0), Some(9.0)]);
        assert!(note_times(&mut sheet, Column::Floor, MANY, begun, &[]).is_err());
    }
}
