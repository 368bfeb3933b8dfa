//! The floor of giving nodes up: a bare client that knows who is silent, and makes the writes that are due.

use berth_sim::nodes::{node_name, pod_name, pod_not_ready};
use berth_sim::{each, timely};
use k8s_openapi::api::core::v1::{Event, Node, ObjectReference, Pod};
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::SILENT_NODES;
use crate::peers::evict::NAMESPACE;
use crate::peers::floor::share;
use crate::peers::requests::Requests;

/// What is not known of a node any more.
const KEY: &str = "node.kubernetes.io/unreachable";

/// How many writes of each kind to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mix {
    statuses: usize,
    taints: usize,
    events: usize,
}

impl Mix {
    /// As many as somebody was seen to make; each pod is written once, by whomever.
    pub(super) fn of(requests: &Requests) -> Self {
        Self {
            statuses: requests.to("nodes/status") as usize,
            taints: requests.to("nodes") as usize,
            events: requests.events() as usize,
        }
    }

    /// One of each for every node, and an event for every pod.
    pub(super) fn plain(pods: usize) -> Self {
        let nodes = SILENT_NODES.len();
        Self { statuses: nodes, taints: nodes, events: nodes * pods }
    }
}

/// One thing to write.
enum Job {
    Node(usize),
    Pod(usize, usize),
}

/// A client that knows what there is: so many pods on each node.
pub(super) struct Bare {
    client: Client,
    pods: usize,
}

impl Bare {
    pub(super) fn new(client: Client, pods: usize) -> Self {
        Self { client, pods }
    }

    /// Says of every silent node that nothing is known of it, taints it, and says of its pods that they are not ready; nodes
    /// first, as Berth does, but without waiting for the last of them.
    pub(super) async fn give_up(&self, mix: Mix) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let on = |node| (0..self.pods).map(move |pod| Job::Pod(node, pod));
        let jobs = SILENT_NODES.map(Job::Node).chain(SILENT_NODES.flat_map(on));
        each(jobs, async |job| match job {
            Job::Node(number) => give_up_node(&nodes, number, mix).await,
            Job::Pod(node, number) => pod_not_ready(&pods, node, number).await,
        })
        .await
    }

    /// Tells of it in as many events: apart from the writes, as it is done by those who give up.
    pub(super) async fn tell(&self, mix: Mix) -> anyhow::Result<()> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        each(0..mix.events, async |number| {
            let pod = pod_name(number % SILENT_NODES.len(), number / SILENT_NODES.len() % self.pods);
            timely(&pod, api.create(&PostParams::default(), &event(&pod, number))).await.map(drop)
        })
        .await
    }
}

/// The conditions, then the taints: the last write of each has all of it, and each differs from the one before.
async fn give_up_node(nodes: &Api<Node>, number: usize, mix: Mix) -> anyhow::Result<()> {
    let (name, params) = (node_name(number), PatchParams::default());
    let [statuses, taints] = [mix.statuses, mix.taints].map(|total| share(total, number, SILENT_NODES.len()));
    for turn in 0..statuses {
        let status = json!({"status": {"conditions": [{
            "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": format!("Kubelet stopped posting node status {turn}."),
        }]}});
        timely(&name, nodes.patch_status(&name, &params, &Patch::Strategic(status))).await?;
    }
    // The taint that is waited for comes with the last one, and so with one at least.
    for left in (0..taints.max(1)).rev() {
        let patch = Patch::Merge(tainted(left));
        timely(&name, nodes.patch(&name, &params, &patch)).await?;
    }
    Ok(())
}

/// The taints of a silent node while so many writes are still to come.
fn tainted(left: usize) -> Value {
    let early = json!({"key": KEY, "effect": "NoSchedule", "value": left.to_string()});
    let last = json!([{"key": KEY, "effect": "NoSchedule"}, {"key": KEY, "effect": "NoExecute"}]);
    json!({"spec": {"taints": if left == 0 { last } else { json!([early]) }}})
}

fn event(pod: &str, number: usize) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{pod}.{number}")),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            kind: Some("Pod".to_owned()),
            name: Some(pod.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectReference::default()
        },
        reason: Some("NodeNotReady".to_owned()),
        message: Some("Node is not ready".to_owned()),
        type_: Some("Warning".to_owned()),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_taint_that_is_waited_for_comes_with_the_last_write() {
        let executes = |left| tainted(left).to_string().contains("NoExecute");
        assert_eq!([2, 1, 0].map(executes), [false, false, true]);
        assert_ne!(tainted(2), tainted(1));
    }
}
