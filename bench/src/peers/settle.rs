//! Placements that are found at the start, until each has its clusters; and a start with nothing left to do.

use anyhow::Context as _;
use berth_sim::State;

use super::arena::Arena;
use super::contender::Contender;
use super::requests::{Own, Requests};
use super::sheet::{Column, Kind, Sheet};
use super::stage::Stage;

const NAME: &str = "settle";
pub(crate) const FIRST: Kind = Kind { stage: NAME, name: "start until the first decision", unit: "s" };
pub(crate) const DECIDED: Kind = Kind { stage: NAME, name: "first decision until the last", unit: "s" };
pub(crate) const COMPLETE: Kind = Kind { stage: NAME, name: "start until all are decided", unit: "s" };
pub(crate) const QUIET: Kind = Kind { stage: NAME, name: "start until quiet", unit: "s" };
pub(crate) const PROCESSOR: Kind = Kind { stage: NAME, name: "processor until decided", unit: "s" };
pub(crate) const PROCESSOR_QUIET: Kind = Kind { stage: NAME, name: "processor until quiet", unit: "s" };
pub(crate) const MEMORY: Kind = Kind { stage: NAME, name: "memory at most", unit: "MiB" };
pub(crate) const WRITES: Kind = Kind { stage: NAME, name: "writes a placement", unit: "" };
const VERBS: [(&str, Kind); 3] = [
    ("POST", Kind { stage: NAME, name: "of them POST", unit: "" }),
    ("PATCH", Kind { stage: NAME, name: "of them PATCH", unit: "" }),
    ("PUT", Kind { stage: NAME, name: "of them PUT", unit: "" }),
];
const OTHERS: Kind = Kind { stage: NAME, name: "of them others", unit: "" };
pub(crate) const EVENTS: Kind = Kind { stage: NAME, name: "events a placement", unit: "" };
pub(crate) const REQUESTS: Kind = Kind { stage: NAME, name: "both together", unit: "" };
pub(crate) const SERVER: Kind = Kind { stage: NAME, name: "processor of kube-apiserver and etcd", unit: "s" };

const RESTART: &str = "restart";
const RESTART_QUIET: Kind = Kind { stage: RESTART, name: "start until quiet", unit: "s" };
const RESTART_PROCESSOR: Kind = Kind { stage: RESTART, name: "processor until quiet", unit: "s" };
const RESTART_MEMORY: Kind = Kind { stage: RESTART, name: "memory at most", unit: "MiB" };
pub(crate) const RESTART_WRITES: Kind = Kind { stage: RESTART, name: "writes and events", unit: "" };

/// How many seconds passed from the first decision that was seen to the last.
pub(crate) fn decided_within(state: &State) -> Option<f64> {
    let completed = state.completed();
    completed.first().zip(completed.last()).map(|(first, last)| last.duration_since(*first).as_secs_f64())
}

/// So many placements at once.
pub(crate) struct Settle {
    pub(crate) placements: usize,
}

impl Stage for Settle {
    fn title(&self) -> String {
        format!("{} new placements, and a restart", self.placements)
    }

    async fn measure(&self, arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()> {
        arena.clear().await?;
        arena.place(self.placements).await?;
        self.settle(arena, contender, sheet).await?;
        restart(arena, contender, sheet).await
    }
}

impl Settle {
    async fn settle(&self, arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()> {
        let window = arena.open(None).await?;
        let mut running = arena.start(contender)?;
        arena.decided(&mut running).await?;
        let processor = running.processor_seconds()?;
        let begun = running.begun();
        let (first, last, decided) = arena.view.now(|state| {
            let completed = state.completed();
            (completed.first().copied(), completed.last().copied(), decided_within(state))
        });
        let (first, last) = first.zip(last).context("no placement was seen to be decided")?;
        let decided = decided.context("no placement was seen to be decided")?;
        let rest = running.rest().await?;
        let memory = running.peak_megabytes()?;
        let spent = arena.close(window, Some(&running), Own::Nothing).await?;
        running.stop().await?;

        let each = |count: f64| count / self.placements as f64;
        let (writes, events) = (spent.requests.writes(), spent.requests.events());
        let seconds = |moment: std::time::Instant| moment.duration_since(begun).as_secs_f64();
        for (kind, value) in [
            (FIRST, seconds(first)),
            (DECIDED, decided),
            (COMPLETE, seconds(last)),
            // What is still under way when the last decision is seen may be nothing of note.
            (QUIET, seconds(rest.since.max(last))),
            (PROCESSOR, processor),
            (PROCESSOR_QUIET, rest.processor_seconds.max(processor)),
            (MEMORY, memory),
            (WRITES, each(writes)),
            (EVENTS, each(events)),
            (REQUESTS, each(writes + events)),
            (SERVER, spent.api_server_seconds + spent.etcd_seconds),
        ] {
            sheet.note(kind, Column::Of(contender), value);
        }
        note_verbs(sheet, Column::Of(contender), &spent.requests, self.placements);
        sheet.keep(Column::Of(contender), NAME, spent, Vec::new());
        Ok(())
    }
}

/// Notes the writes a placement took, by their verbs: together they are all of them.
pub(crate) fn note_verbs(sheet: &mut Sheet, column: Column, requests: &Requests, placements: usize) {
    let mut others = requests.writes();
    for (verb, kind) in VERBS {
        let count = requests.with(verb);
        others -= count;
        sheet.note(kind, column, count / placements as f64);
    }
    sheet.note(OTHERS, column, others / placements as f64);
}

async fn restart(arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()> {
    let window = arena.open(None).await?;
    let mut running = arena.start(contender)?;
    let rest = running.rest().await?;
    let memory = running.peak_megabytes()?;
    let begun = running.begun();
    let spent = arena.close(window, Some(&running), Own::Nothing).await?;
    running.stop().await?;
    for (kind, value) in [
        (RESTART_QUIET, rest.since.duration_since(begun).as_secs_f64()),
        (RESTART_PROCESSOR, rest.processor_seconds),
        (RESTART_MEMORY, memory),
        (RESTART_WRITES, spent.requests.writes() + spent.requests.events()),
    ] {
        sheet.note(kind, Column::Of(contender), value);
    }
    sheet.keep(Column::Of(contender), RESTART, spent, Vec::new());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writes_of_all_verbs_are_told_and_add_up() {
        let requests = Requests::of([
            ("POST placementdecisions", 10.0),
            ("PATCH placements/status", 20.0),
            ("APPLY placementdecisions/status", 6.0),
            ("DELETE placementdecisions", 4.0),
            ("POST events", 30.0),
        ]);
        let mut sheet = Sheet::default();
        note_verbs(&mut sheet, Column::Floor, &requests, 10);
        let told: Vec<_> = VERBS.iter().map(|(_, kind)| *kind).chain([OTHERS]).collect();
        let told: Vec<_> = told.into_iter().filter_map(|kind| sheet.value(kind, Column::Floor)).collect();
        assert_eq!(told, [1.0, 2.0, 0.0, 1.0]);
    }
}
