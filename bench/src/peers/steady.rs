//! A fleet whose placements are decided: taints on selected clusters, and changes that concern nobody.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use berth_sim::steadily;
use serde_json::{Value, json};

use super::arena::Arena;
use super::contender::{Contender, Running};
use super::requests::Own;
use super::sheet::{Column, Kind, Sheet};
use super::stage::Stage;
use crate::figure::{millis, percentile};

const REACT: &str = "one taint";
pub(crate) const MEDIAN: Kind = Kind { stage: REACT, name: "reaction, median", unit: "ms" };
pub(crate) const NINETIETH: Kind = Kind { stage: REACT, name: "reaction, 90th percentile", unit: "ms" };
pub(crate) const NINETY_NINTH: Kind = Kind { stage: REACT, name: "reaction, 99th percentile", unit: "ms" };
pub(crate) const REACT_PROCESSOR: Kind =
    Kind { stage: REACT, name: "processor, each change of a taint", unit: "ms" };
const REACT_WRITES: Kind = Kind { stage: REACT, name: "writes and events, each change", unit: "" };

const CHURN: &str = "churn";
pub(crate) const CHURN_RATE: Kind =
    Kind { stage: CHURN, name: "changes that concern nobody", unit: "a second" };
pub(crate) const CHURN_CORE: Kind = Kind { stage: CHURN, name: "processor meanwhile", unit: "% of a core" };
const CHURN_PROCESSOR: Kind = Kind { stage: CHURN, name: "processor until quiet", unit: "s" };
const CHURN_MEMORY: Kind = Kind { stage: CHURN, name: "memory at most", unit: "MiB" };
pub(crate) const CHURN_WRITES: Kind = Kind { stage: CHURN, name: "writes and events", unit: "" };

/// Changes a second that concern nobody.
pub(crate) const RATE: u32 = 100;
/// A contender that has rested so long has nothing of the last change left to do.
pub(crate) const BREATH: Duration = Duration::from_millis(500);
/// Reactions of whoever takes seconds for each: enough for a median, and no target is about them.
const SLOW_REACTIONS_MAX: usize = 20;
/// A stride through the selected clusters that repeats none early.
const STRIDE: usize = 7_919;

/// So many placements, decided.
pub(crate) struct Steady {
    pub(crate) placements: usize,
    /// Taints, one after the other.
    pub(crate) reactions: usize,
    /// How long changes go on that concern nobody.
    pub(crate) churn: Duration,
}

impl Stage for Steady {
    fn title(&self) -> String {
        format!(
            "{} taints and {} s of churn with {} placements",
            self.reactions,
            self.churn.as_secs(),
            self.placements
        )
    }

    async fn measure(&self, arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()> {
        arena.clear().await?;
        arena.place(self.placements).await?;
        let mut running = arena.start(contender)?;
        arena.decided(&mut running).await?;
        running.rest().await?;
        self.react(arena, &mut running, contender, sheet).await?;
        self.churn(arena, &mut running, contender, sheet).await?;
        running.stop().await
    }
}

impl Steady {
    /// From the answer to the taint until no decision names the cluster. The contender rests before each.
    async fn react(
        &self,
        arena: &Arena,
        running: &mut Running,
        contender: Contender,
        sheet: &mut Sheet,
    ) -> anyhow::Result<()> {
        let taint = json!({"spec": {"taints": [{"key": "bench.berth.dev/down", "effect": "NoSelect"}]}});
        let mut took = Vec::new();
        let window = arena.open(Some(running)).await?;
        let reactions =
            if contender.is_slow() { self.reactions.min(SLOW_REACTIONS_MAX) } else { self.reactions };
        for number in 0..reactions {
            let selected = arena.view.now(berth_sim::State::clusters);
            let place = number.wrapping_mul(STRIDE) % selected.len().max(1);
            let cluster = selected.get(place).context("no cluster is selected")?;
            arena.load.change(cluster, taint.clone()).await?;
            let begun = Instant::now();
            running.until(arena.view.until("the cluster is left", |state| !state.names(cluster))).await?;
            took.push(millis(begun.elapsed()));
            running.rest_for(BREATH).await?;
            arena.load.change(cluster, json!({"spec": {"taints": Value::Null}})).await?;
            running.rest_for(BREATH).await?;
        }
        let changes = 2 * reactions;
        let spent = arena.close(window, Some(running), Own::Clusters(changes)).await?;
        let column = Column::Of(contender);
        for (kind, share) in [(MEDIAN, 0.5), (NINETIETH, 0.9), (NINETY_NINTH, 0.99)] {
            sheet.note(kind, column, percentile(&mut took.clone(), share));
        }
        let each = |sum: f64| sum / changes as f64;
        sheet.note(REACT_PROCESSOR, column, each(spent.contender_seconds * 1e3));
        sheet.note(REACT_WRITES, column, each(spent.requests.writes() + spent.requests.events()));
        sheet.keep(column, REACT, spent, took);
        Ok(())
    }

    /// Labels that no placement looks at.
    async fn churn(
        &self,
        arena: &Arena,
        running: &mut Running,
        contender: Contender,
        sheet: &mut Sheet,
    ) -> anyhow::Result<()> {
        running.rest().await?;
        running.forget_peak()?;
        let window = arena.open(Some(running)).await?;
        let before = running.processor_seconds()?;
        let (changes, during) = steadily(RATE, self.churn, async |_| arena.beat().await.map(drop)).await?;
        let meanwhile = running.processor_seconds()? - before;
        let rest = running.rest().await?;
        let memory = running.peak_megabytes()?;
        let spent = arena.close(window, Some(running), Own::Clusters(changes)).await?;
        let column = Column::Of(contender);
        for (kind, value) in [
            (CHURN_RATE, changes as f64 / during.as_secs_f64()),
            (CHURN_CORE, meanwhile * 100.0 / during.as_secs_f64()),
            (CHURN_PROCESSOR, rest.processor_seconds - before),
            (CHURN_MEMORY, memory),
            (CHURN_WRITES, spent.requests.writes() + spent.requests.events()),
        ] {
            sheet.note(kind, column, value);
        }
        sheet.keep(column, CHURN, spent, Vec::new());
        Ok(())
    }
}
