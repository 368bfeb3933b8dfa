//! Tainted nodes, until the pods that do not tolerate it are gone.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use berth_sim::each;
use berth_sim::nodes::{Departures, node, node_name, pod};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::arena::Arena;
use super::contender::{Contender, Running};
use super::sheet::{Column, Kind, Sheet};
use super::stage::Stage;

/// The namespace of the pods.
pub(crate) const NAMESPACE: &str = "pods";

/// One case: how many nodes are tainted at once, and what its figures are called.
struct Case {
    name: &'static str,
    tainted: usize,
}

const CASES: [Case; 2] =
    [Case { name: "1 tainted node", tainted: 1 }, Case { name: "50 tainted nodes", tainted: 50 }];

/// So many nodes with so many pods on each.
pub(crate) struct Evict {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
}

impl Stage for Evict {
    fn title(&self) -> String {
        format!("{} nodes with {} pods", self.nodes, self.nodes * self.pods)
    }

    async fn measure(&self, arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()> {
        self.lay(arena).await?;
        let mut running = arena.start(contender)?;
        running.rest().await?;
        let mut first = 0;
        for case in CASES {
            let tainted = first..(first + case.tainted).min(self.nodes);
            first = tainted.end;
            if !tainted.is_empty() {
                self.evict(arena, &mut running, contender, case.name, tainted, sheet).await?;
            }
        }
        running.stop().await
    }
}

impl Evict {
    /// Nodes without taints, and every pod in its place.
    async fn lay(&self, arena: &Arena) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(arena.client.clone());
        let pods: Api<Pod> = Api::namespaced(arena.client.clone(), NAMESPACE);
        let (delete, all) = (DeleteParams::default().grace_period(0), ListParams::default());
        pods.delete_collection(&delete, &all).await?;
        nodes.delete_collection(&delete, &all).await?;
        each(0..self.nodes, async |number| {
            nodes.create(&PostParams::default(), &node(number)).await?;
            Ok(())
        })
        .await?;
        each(0..self.nodes * self.pods, async |number| {
            let (node, number) = (number / self.pods, number % self.pods);
            pods.create(&PostParams::default(), &pod(NAMESPACE, node, number)).await?;
            Ok(())
        })
        .await
    }

    async fn evict(
        &self,
        arena: &Arena,
        running: &mut Running,
        contender: Contender,
        stage: &'static str,
        tainted: std::ops::Range<usize>,
        sheet: &mut Sheet,
    ) -> anyhow::Result<()> {
        let count = tainted.len() * self.pods;
        let departures = Departures::new(arena.client.clone(), NAMESPACE);
        departures.ready().await?;
        running.forget_peak()?;
        let before = running.processor_seconds()?;
        let window = arena.open(Some(running)).await?;
        let nodes: Api<Node> = Api::all(arena.client.clone());
        let taint = json!({"spec": {"taints": [{"key": "bench.berth.dev/down", "effect": "NoExecute"}]}});
        let begun = Instant::now();
        each(tainted, async |number| {
            let patch = Patch::Merge(&taint);
            nodes.patch(&node_name(number), &PatchParams::default(), &patch).await?;
            Ok(())
        })
        .await?;
        let mut gone = Vec::new();
        running
            .until(async {
                gone = departures.gone(count).await?;
                Ok(())
            })
            .await?;
        let rest = running.rest().await?;
        let memory = running.peak_megabytes()?;
        let spent = arena.close(window, Some(running), 0).await?;
        let seconds = |moment: Option<&Instant>| -> anyhow::Result<f64> {
            let moment = moment.context("no pod was seen to leave")?;
            Ok(moment.saturating_duration_since(begun).as_secs_f64())
        };
        for (name, unit, value) in [
            ("first pod gone", "s", seconds(gone.first())?),
            ("half of them gone", "s", seconds(gone.get(gone.len() / 2))?),
            ("last pod gone", "s", seconds(gone.last())?),
            ("processor until quiet", "s", rest.processor_seconds - before),
            ("memory at most", "MiB", memory),
            ("writes a pod", "", spent.requests.writes() / count as f64),
        ] {
            sheet.note(Kind { stage, name, unit }, Column::Of(contender), value);
        }
        let took = gone
            .iter()
            .map(|moment| moment.saturating_duration_since(begun))
            .map(|one: Duration| one.as_secs_f64());
        sheet.keep(Column::Of(contender), stage, spent, took.collect());
        Ok(())
    }
}
