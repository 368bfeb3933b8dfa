//! The nodes with their pods, as every contender finds them, and the taint they get.

use std::ops::Range;

use berth_sim::each;
use berth_sim::nodes::{node, node_name, pod, tolerating};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::NAMESPACE;

/// The key of the taint.
const KEY: &str = "bench.berth.dev/down";

/// So many nodes with so many pods on each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
    /// For how many seconds each pod bears the taint; not at all where there is none.
    pub(crate) bear: Option<u32>,
}

impl Crowd {
    /// How many pods there are.
    pub(crate) fn all_pods(&self) -> usize {
        self.nodes * self.pods
    }

    /// Puts nodes without taints there, and every pod in its place; whatever was there before is gone.
    pub(crate) async fn lay(&self, client: &Client) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(client.clone());
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
        let (delete, all) = (DeleteParams::default().grace_period(0), ListParams::default());
        pods.delete_collection(&delete, &all).await?;
        nodes.delete_collection(&delete, &all).await?;
        events.delete_collection(&delete, &all).await?;
        each(0..self.nodes, async |number| {
            nodes.create(&PostParams::default(), &node(number)).await?;
            Ok(())
        })
        .await?;
        each(0..self.all_pods(), async |number| {
            let mut pod = pod(NAMESPACE, number / self.pods, number % self.pods);
            if let Some(seconds) = self.bear {
                pod = tolerating(pod, KEY, seconds.into());
            }
            pods.create(&PostParams::default(), &pod).await?;
            Ok(())
        })
        .await
    }
}

/// Taints one node. When it was added is not said, as `kubectl taint` does not say it either.
pub(super) async fn taint(nodes: &Api<Node>, number: usize) -> anyhow::Result<()> {
    let taint = json!({"spec": {"taints": [{"key": KEY, "effect": "NoExecute"}]}});
    nodes.patch(&node_name(number), &PatchParams::default(), &Patch::Merge(&taint)).await?;
    Ok(())
}

/// Taints several at once.
pub(super) async fn taint_all(client: &Client, numbers: Range<usize>) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    each(numbers, async |number| taint(&nodes, number).await).await
}
