//! The agents at work: one task a cluster, which carries out what its agent says.
//!
//! Owns the requests. A cluster that is gone takes its task along; a request that fails is told to the agent, which tries
//! again.

use std::collections::HashMap;
use std::sync::Arc;

use berth_api::names::{CLUSTER_LEASE, label};
use berth_api::{AddOnPlacementScore, ManagedCluster};
use futures::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::LABEL;
use super::agent::{Act, Agent};
use super::fleet::MANAGER;
use super::report::{report, score};

/// The name of the scores the agents give.
const SCORE: &str = "agent";

/// The agents of all clusters of the demo.
#[derive(Clone)]
pub(crate) struct Simulator {
    client: Client,
}

/// A cluster as last seen, and who works for it.
struct Post {
    seen: watch::Sender<Arc<ManagedCluster>>,
    _task: AbortOnDropHandle<()>,
}

impl Simulator {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Does everything once for every cluster, so that nobody is found silent only because nothing ran until now.
    pub(crate) async fn begin(&self) -> kube::Result<()> {
        let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
        let (label, value) = LABEL;
        for cluster in clusters.list(&ListParams::default().labels(&format!("{label}={value}"))).await? {
            let now = Timestamp::now();
            for act in Agent::new(now).due(&cluster, now) {
                match self.perform(act, &cluster).await {
                    // Somebody else was faster; the agent at work will see what they wrote.
                    Err(kube::Error::Api(status)) if status.is_conflict() => {}
                    done => done?,
                }
            }
        }
        Ok(())
    }

    /// Has an agent at work for every cluster of the demo, until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.follow()).await;
    }

    async fn follow(self) {
        let (label, value) = LABEL;
        let config = watcher::Config::default().labels(&format!("{label}={value}"));
        let events = watcher(Api::<ManagedCluster>::all(self.client.clone()), config).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut posts = HashMap::<String, Post>::new();
        loop {
            match events.try_next().await {
                Ok(Some(Event::Apply(cluster) | Event::InitApply(cluster))) => {
                    let name = cluster.metadata.name.clone().unwrap_or_default();
                    let cluster = Arc::new(cluster);
                    match posts.get(&name) {
                        Some(post) => {
                            post.seen.send_replace(cluster);
                        }
                        None => {
                            posts.insert(name, self.man(cluster));
                        }
                    }
                }
                Ok(Some(Event::Delete(cluster))) => {
                    posts.remove(cluster.metadata.name.as_deref().unwrap_or_default());
                }
                Ok(Some(Event::Init | Event::InitDone)) => {}
                Ok(None) => return,
                Err(error) => tracing::warn!(%error, "the demo cannot watch its clusters; trying again"),
            }
        }
    }

    /// Puts an agent to work.
    fn man(&self, cluster: Arc<ManagedCluster>) -> Post {
        let (seen, sight) = watch::channel(cluster);
        let task = tokio::spawn(self.clone().work(sight));
        Post { seen, _task: AbortOnDropHandle::new(task) }
    }

    async fn work(self, mut sight: watch::Receiver<Arc<ManagedCluster>>) {
        let mut agent = Agent::new(Timestamp::now());
        loop {
            let cluster = Arc::clone(&sight.borrow_and_update());
            for act in agent.due(&cluster, Timestamp::now()) {
                if let Err(error) = self.perform(act, &cluster).await {
                    tracing::debug!(cluster = cluster.metadata.name, ?act, %error, "an agent of the demo tries again");
                    agent.failed(act, Timestamp::now());
                }
            }
            let next = agent.next(&cluster);
            let nap = async {
                match next {
                    Some(at) => {
                        let nap = at.duration_since(Timestamp::now());
                        tokio::time::sleep(nap.try_into().unwrap_or_default()).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = nap => {}
                seen = sight.changed() => if seen.is_err() {
                    return;
                },
            }
        }
    }

    async fn perform(&self, act: Act, cluster: &ManagedCluster) -> kube::Result<()> {
        let now = Timestamp::now();
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let labels = json!({label::CLUSTER_NAME: name});
        match act {
            Act::Settle => {
                let namespace = json!({"metadata": {"name": name, "labels": labels}});
                self.apply::<Namespace>(Api::all(self.client.clone()), name, namespace).await?;
                let scores = json!({"metadata": {"name": SCORE}});
                self.apply::<AddOnPlacementScore>(self.within(name), SCORE, scores).await
            }
            Act::Renew => {
                let lease = json!({
                    "metadata": {"name": CLUSTER_LEASE, "labels": labels},
                    "spec": {
                        "holderIdentity": format!("demo-agent-{name}"),
                        "leaseDurationSeconds": cluster.lease_duration_seconds(),
                        "renewTime": MicroTime(now),
                    },
                });
                self.apply::<Lease>(self.within(name), CLUSTER_LEASE, lease).await
            }
            Act::Report => {
                let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
                let patch = Patch::Merge(report(cluster, now));
                clusters.patch_status(name, &manager(), &patch).await.map(drop)
            }
            Act::Score => {
                let patch = Patch::Merge(json!({"status": score(name, now)}));
                self.within::<AddOnPlacementScore>(name)
                    .patch_status(SCORE, &manager(), &patch)
                    .await
                    .map(drop)
            }
        }
    }

    fn within<K>(&self, cluster: &str) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), cluster)
    }

    /// Makes it so, whether it is there or not.
    async fn apply<K>(&self, api: Api<K>, name: &str, mut object: Value) -> kube::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
    {
        object["apiVersion"] = json!(K::api_version(&()));
        object["kind"] = json!(K::kind(&()));
        api.patch(name, &manager().force(), &Patch::Apply(object)).await.map(drop)
    }
}

/// How old a lease of an agent at work may be: many times what passes between two, and the clocks of two machines are
/// rarely further apart.
const AT_WORK_WITHIN: SignedDuration = SignedDuration::from_secs(15);

/// Whether an agent is at work for a cluster. Where that cannot be seen it is taken for granted.
pub(crate) async fn is_simulated(client: &Client, cluster: &str, now: Timestamp) -> bool {
    let leases: Api<Lease> = Api::namespaced(client.clone(), cluster);
    match leases.get_opt(CLUSTER_LEASE).await {
        Ok(lease) => lease.is_some_and(|lease| is_renewed(&lease, now)),
        Err(_) => true,
    }
}

fn is_renewed(lease: &Lease, now: Timestamp) -> bool {
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    renewed.is_some_and(|MicroTime(at)| now.duration_since(*at) < AT_WORK_WITHIN)
}

fn manager() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_not_renewed_has_no_agent() {
        let now = Timestamp::constant(1_800_000_000, 0);
        let lease = |renewed: Option<i64>| {
            let renewed = renewed.map(|seconds| MicroTime(now - SignedDuration::from_secs(seconds)));
            serde_json::from_value(json!({"spec": {"renewTime": renewed}})).unwrap()
        };
        assert!(is_renewed(&lease(Some(1)), now));
        assert!(is_renewed(&lease(Some(-60)), now), "by a clock that is ahead of ours");
        assert!(!is_renewed(&lease(Some(60)), now));
        assert!(!is_renewed(&lease(None), now));
    }
}
