//! The nodes with their pods, as every contender finds them, and the taint they get.

use std::{fmt::Debug, ops::Range};

use berth_sim::nodes::{get_ready, node, node_name, pod, pod_ready, tolerating};
use berth_sim::{each, timely};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
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
        clear(&pods).await?;
        clear(&nodes).await?;
        clear(&events).await?;
        each(0..self.nodes, async |number| {
            timely("a node", nodes.create(&PostParams::default(), &node(number))).await.map(drop)
        })
        .await?;
        each(0..self.all_pods(), async |number| {
            let mut pod = pod(NAMESPACE, number / self.pods, number % self.pods);
            if let Some(seconds) = self.bear {
                pod = tolerating(pod, KEY, seconds.into());
            }
            timely("a pod", pods.create(&PostParams::default(), &pod)).await.map(drop)
        })
        .await
    }

    /// The same, and every pod says that it is ready, and then every node that it is ready and there.
    pub(crate) async fn lay_ready(&self, client: &Client) -> anyhow::Result<()> {
        self.lay(client).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        each(0..self.all_pods(), async |number| {
            pod_ready(&pods, number / self.pods, number % self.pods).await
        })
        .await?;
        each(0..self.nodes, async |number| get_ready(client, number).await).await
    }
}

/// Deletes what is there, one by one: a server ends a request for the deletion of twenty thousand pods before it is done.
async fn clear<K>(api: &Api<K>) -> anyhow::Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let there = api.list_metadata(&ListParams::default()).await?;
    let names: Vec<String> = there.into_iter().filter_map(|one| one.metadata.name).collect();
    each(0..names.len(), async |number| {
        let name = &names[number];
        timely(name, async {
            match api.delete(name, &DeleteParams::default().grace_period(0)).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                answer => answer.map(drop),
            }
        })
        .await
    })
    .await
}

/// Taints one node. When it was added is not said, as `kubectl taint` does not say it either.
pub(super) async fn taint(nodes: &Api<Node>, number: usize) -> anyhow::Result<()> {
    let taint = json!({"spec": {"taints": [{"key": KEY, "effect": "NoExecute"}]}});
    let name = node_name(number);
    timely(&name, nodes.patch(&name, &PatchParams::default(), &Patch::Merge(&taint))).await.map(drop)
}

/// Taints several at once.
pub(super) async fn taint_all(client: &Client, numbers: Range<usize>) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    each(numbers, async |number| taint(&nodes, number).await).await
}
