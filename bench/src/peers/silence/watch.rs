//! Who is seen to be given up: nodes by a taint, pods by a condition.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use berth_sim::nodes::Sighting;

use super::SILENT_NODES;
use crate::peers::arena::Arena;
use crate::peers::evict::NAMESPACE;

/// Watches on both.
pub(super) struct Watch {
    pub(super) nodes: Sighting,
    pub(super) pods: Sighting,
}

impl Watch {
    /// Begins, before anybody is at work who could give up somebody.
    pub(super) async fn begin(arena: &Arena) -> anyhow::Result<Self> {
        let nodes = Sighting::of_tainted_nodes(arena.client.clone()).await?;
        let pods = Sighting::of_pods_not_ready(arena.client.clone(), NAMESPACE).await?;
        let watch = Self { nodes, pods };
        watch.nobody()?;
        Ok(watch)
    }

    /// Fails where somebody has been given up.
    pub(super) fn nobody(&self) -> anyhow::Result<()> {
        let one = |seen: BTreeMap<String, Instant>| seen.into_keys().next();
        let given_up = one(self.nodes.since()).or_else(|| one(self.pods.since()));
        ensure!(given_up.is_none(), "given up while all were there: {}", given_up.unwrap_or_default());
        Ok(())
    }

    /// Waits until all silent nodes are given up, with so many pods on each.
    pub(super) async fn all(&self, pods: usize, patience: Duration) -> anyhow::Result<()> {
        let begun = Instant::now();
        self.nodes.reaches(SILENT_NODES.len(), patience).await?;
        let left = patience.saturating_sub(begun.elapsed());
        self.pods.reaches(SILENT_NODES.len() * pods, left).await
    }
}
