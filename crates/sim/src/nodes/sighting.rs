//! A watch that notes when each object was first seen to be as is asked.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use crate::news::until;

/// What the controllers put on a node that has fallen silent.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// How long a watch may take to begin.
const BEGIN: Duration = Duration::from_mins(1);

/// When each object was first seen to be as is asked. It stays noted, whatever becomes of it.
pub struct Sighting {
    seen: Arc<Seen>,
    what: &'static str,
    _watch: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    since: BTreeMap<String, Instant>,
    is_listed: bool,
}

impl Seen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sighting {
    /// Nodes with the taint of those that have fallen silent, so that pods leave.
    pub async fn of_tainted_nodes(client: Client) -> anyhow::Result<Self> {
        Self::begin(Api::all(client), "nodes are tainted", is_unreachable).await
    }

    /// Pods that say they are not ready.
    pub async fn of_pods_not_ready(client: Client, namespace: &str) -> anyhow::Result<Self> {
        Self::begin(Api::namespaced(client, namespace), "pods are not ready", is_not_ready).await
    }

    /// Comes back when all that is there has been looked at.
    async fn begin<K>(api: Api<K>, what: &'static str, is_so: fn(&K) -> bool) -> anyhow::Result<Self>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let seen = Arc::new(Seen::default());
        let told = Arc::clone(&seen);
        let watch = async move {
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Apply(object) | Event::InitApply(object)) if is_so(&object) => {
                        told.state().since.entry(object.name_any()).or_insert_with(Instant::now);
                    }
                    Ok(Event::InitDone) => told.state().is_listed = true,
                    _ => continue,
                }
                told.news.notify_waiters();
            }
        };
        let watch = AbortOnDropHandle::new(tokio::spawn(watch));
        until(&seen.news, BEGIN, "that it is watched", || seen.state().is_listed).await?;
        Ok(Self { seen, what, _watch: watch })
    }

    /// Since when, by name.
    pub fn since(&self) -> BTreeMap<String, Instant> {
        self.seen.state().since.clone()
    }

    /// Waits until there are so many.
    pub async fn reaches(&self, count: usize, patience: Duration) -> anyhow::Result<()> {
        let reached = || self.seen.state().since.len();
        until(&self.seen.news, patience, self.what, || reached() >= count)
            .await
            .with_context(|| format!("{} of {count} {} after {} s", reached(), self.what, patience.as_secs()))
    }
}

fn is_unreachable(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == UNREACHABLE && taint.effect == "NoExecute")
}

fn is_not_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "False")
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn only_a_taint_that_makes_pods_leave_counts() {
        let node = |effect: &str| {
            let taints = json!([{"key": UNREACHABLE, "effect": effect}]);
            from_value::<Node>(json!({"metadata": {}, "spec": {"taints": taints}})).unwrap()
        };
        assert!(is_unreachable(&node("NoExecute")));
        assert!(!is_unreachable(&node("NoSchedule")));
        assert!(!is_unreachable(&Node::default()));
    }

    #[test]
    fn a_pod_that_says_nothing_is_not_one_that_is_not_ready() {
        let pod = |status: &str| {
            let conditions = json!([{"type": "Ready", "status": status}]);
            from_value::<Pod>(json!({"metadata": {}, "status": {"conditions": conditions}})).unwrap()
        };
        assert!(is_not_ready(&pod("False")));
        assert!(!is_not_ready(&pod("True")));
        assert!(!is_not_ready(&Pod::default()));
    }
}
