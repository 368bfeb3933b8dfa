//! Nodes with pods on them that say they are there, a watch on the pods that leave, and one on who is given up.

mod sighting;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PartialObjectMeta, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use crate::load::timely;
use crate::news::until;

pub use self::sighting::Sighting;

/// How long pods may take to leave.
const PATIENCE: Duration = Duration::from_mins(10);

/// The name of node `number`.
pub fn node_name(number: usize) -> String {
    format!("node-{number:05}")
}

/// Node `number`, with nothing against pods.
pub fn node(number: usize) -> Node {
    let metadata = ObjectMeta { name: Some(node_name(number)), ..ObjectMeta::default() };
    Node { metadata, ..Node::default() }
}

/// The name of pod `number` of a node.
pub fn pod_name(node: usize, number: usize) -> String {
    format!("{}-{number:03}", node_name(node))
}

/// Pod `number` of a node. There is no kubelet to end it, so it is gone once it is deleted.
pub fn pod(namespace: &str, node: usize, number: usize) -> Pod {
    let container =
        Container { name: "main".to_owned(), image: Some("none".to_owned()), ..Container::default() };
    Pod {
        metadata: ObjectMeta {
            name: Some(pod_name(node, number)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            node_name: Some(node_name(node)),
            termination_grace_period_seconds: Some(0),
            containers: vec![container],
            ..PodSpec::default()
        }),
        status: None,
    }
}

/// The same pod, if it bears a `NoExecute` taint of that key for so many seconds.
pub fn tolerating(mut pod: Pod, key: &str, seconds: i64) -> Pod {
    let toleration = Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        toleration_seconds: Some(seconds),
        ..Toleration::default()
    };
    pod.spec.get_or_insert_default().tolerations.get_or_insert_default().push(toleration);
    pod
}

/// The namespace of the leases by which nodes say that they are there.
const LEASES: &str = "kube-node-lease";
/// Who applies what a kubelet would.
const KUBELET: &str = "kubelet";

/// Lets a node say that it is ready, and that it is there.
pub async fn get_ready(client: &Client, number: usize) -> anyhow::Result<()> {
    let (name, now) = (node_name(number), Timestamp::now());
    let nodes: Api<Node> = Api::all(client.clone());
    let ready = json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
        "lastHeartbeatTime": Time(now), "lastTransitionTime": Time(now),
    }]}});
    timely(&name, nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(ready))).await?;
    renew(client, number).await
}

/// Lets a node say that it is there.
pub async fn renew(client: &Client, number: usize) -> anyhow::Result<()> {
    let name = node_name(number);
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": MicroTime(Timestamp::now())},
    });
    let apply = PatchParams::apply(KUBELET).force();
    timely(&name, leases.patch(&name, &apply, &Patch::Apply(lease)))
        .await
        .context("a lease is not renewed")?;
    Ok(())
}

/// Lets a pod of a node say that it is ready.
pub async fn pod_ready(pods: &Api<Pod>, node: usize, number: usize) -> anyhow::Result<()> {
    patch_pod_ready(pods, node, number, "True").await
}

/// Says of it that it is not, as the controllers do when its node has fallen silent.
pub async fn pod_not_ready(pods: &Api<Pod>, node: usize, number: usize) -> anyhow::Result<()> {
    patch_pod_ready(pods, node, number, "False").await
}

async fn patch_pod_ready(pods: &Api<Pod>, node: usize, number: usize, status: &str) -> anyhow::Result<()> {
    let name = pod_name(node, number);
    let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": Time(Timestamp::now())});
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    timely(&name, pods.patch_status(&name, &PatchParams::default(), &patch)).await?;
    Ok(())
}

/// When each pod was seen to be gone.
pub struct Departures {
    seen: Arc<Seen>,
    _watch: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    gone: Mutex<HashMap<String, Instant>>,
    is_listed: Mutex<bool>,
    news: Notify,
}

impl Departures {
    /// Begins to watch a namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        let seen = Arc::new(Seen::default());
        let told = Arc::clone(&seen);
        let api: Api<PartialObjectMeta<Pod>> = Api::namespaced(client, namespace);
        let watch = async move {
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Delete(pod)) => {
                        let mut gone = told.gone.lock().unwrap_or_else(PoisonError::into_inner);
                        gone.insert(pod.name_any(), Instant::now());
                    }
                    Ok(Event::InitDone) => {
                        *told.is_listed.lock().unwrap_or_else(PoisonError::into_inner) = true;
                    }
                    _ => continue,
                }
                told.news.notify_waiters();
            }
        };
        Self { seen, _watch: AbortOnDropHandle::new(tokio::spawn(watch)) }
    }

    /// Waits until it watches.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let is_listed = || *self.seen.is_listed.lock().unwrap_or_else(PoisonError::into_inner);
        until(&self.seen.news, PATIENCE, "the pods are watched", is_listed).await
    }

    /// Waits until so many are gone, and tells when each of them was, the first one first.
    pub async fn gone(&self, count: usize) -> anyhow::Result<Vec<Instant>> {
        let gone = || self.seen.gone.lock().unwrap_or_else(PoisonError::into_inner);
        until(&self.seen.news, PATIENCE, "all of them are gone", || gone().len() >= count).await?;
        let mut moments: Vec<_> = gone().values().copied().collect();
        moments.sort_unstable();
        Ok(moments)
    }
}
