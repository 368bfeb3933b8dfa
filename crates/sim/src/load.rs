//! Puts a fleet onto an API server, and changes it there.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use berth_api::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Event, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Requests under way at once: as many writes as the controllers have.
const IN_FLIGHT: usize = 64;
/// How long our kinds may take to be served.
const SERVED: Duration = Duration::from_secs(30);
/// How long a server may take for one write: on a machine that others keep busy, ten seconds have been seen.
const WRITE: Duration = Duration::from_secs(30);
/// How many clusters are made between two words about it.
const STEP: usize = 1_000;

/// A client that loads a server.
#[derive(Clone)]
pub struct Load {
    client: Client,
}

impl Load {
    /// Loads what this client reaches.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Makes these kinds known, and waits until they are served.
    pub async fn define(&self, definitions: Vec<CustomResourceDefinition>) -> anyhow::Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for definition in definitions {
            api.create(&PostParams::default(), &definition).await?;
        }
        self.served().await
    }

    /// Waits until Placements and all they need are served.
    pub async fn served(&self) -> anyhow::Result<()> {
        self.serves::<ManagedCluster>().await?;
        self.serves::<ManagedClusterSet>().await?;
        self.serves::<ManagedClusterSetBinding>().await?;
        self.serves::<Placement>().await?;
        self.serves::<PlacementDecision>().await
    }

    async fn serves<K>(&self) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let begun = Instant::now();
        let probe: Api<K> = Api::all(self.client.clone());
        while let Err(error) = probe.list_metadata(&ListParams::default().limit(1)).await {
            ensure!(begun.elapsed() < SERVED, "{} are not served: {error}", K::plural(&()));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Makes namespaces.
    pub async fn namespaces(&self, names: impl Iterator<Item = String>) -> anyhow::Result<()> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        for name in names {
            let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
            api.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await?;
        }
        Ok(())
    }

    /// Makes a set and its bindings, which are said to be bound: a placement controller need not run beside the
    /// controller that says so.
    pub async fn bind(
        &self,
        set: &ManagedClusterSet,
        bindings: impl Iterator<Item = ManagedClusterSetBinding>,
    ) -> anyhow::Result<()> {
        Api::all(self.client.clone()).create(&PostParams::default(), set).await?;
        for binding in bindings {
            let namespace = binding.namespace().context("a binding is in a namespace")?;
            let api: Api<ManagedClusterSetBinding> = Api::namespaced(self.client.clone(), &namespace);
            let made = api.create(&PostParams::default(), &binding).await?;
            let bound = json!({
                "type": "Bound", "status": "True", "reason": "ClusterSetBound", "message": "",
                "lastTransitionTime": made.metadata.creation_timestamp,
            });
            let status = json!({"status": {"conditions": [bound]}});
            api.patch_status(&made.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
        }
        Ok(())
    }

    /// Makes clusters, of which only names and labels are taken from the metadata, and tells how far it is.
    pub async fn clusters(
        &self,
        clusters: impl Iterator<Item = ManagedCluster>,
        told: impl Fn(usize),
    ) -> anyhow::Result<()> {
        let api: Api<ManagedCluster> = Api::all(self.client.clone());
        let made = AtomicUsize::new(0);
        each(clusters, async |mut cluster: ManagedCluster| {
            cluster.metadata = ObjectMeta {
                name: cluster.metadata.name,
                labels: cluster.metadata.labels,
                ..ObjectMeta::default()
            };
            let name = api.create(&PostParams::default(), &cluster).await?.name_any();
            let status = json!({"status": cluster.status});
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
            let made = made.fetch_add(1, Ordering::Relaxed) + 1;
            if made.is_multiple_of(STEP) {
                told(made);
            }
            Ok(())
        })
        .await
    }

    /// Makes placements.
    pub async fn placements(&self, placements: impl Iterator<Item = Placement>) -> anyhow::Result<()> {
        each(placements, async |placement: Placement| {
            let namespace = placement.namespace().context("a placement is in a namespace")?;
            let api: Api<Placement> = Api::namespaced(self.client.clone(), &namespace);
            api.create(&PostParams::default(), &placement).await?;
            Ok(())
        })
        .await
    }

    /// Changes a cluster; how long the server took to answer comes back.
    pub async fn change(&self, cluster: &str, patch: Value) -> anyhow::Result<Duration> {
        let api: Api<ManagedCluster> = Api::all(self.client.clone());
        let begun = Instant::now();
        api.patch(cluster, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(begun.elapsed())
    }

    /// Removes all placements, decisions and events of a namespace; nobody else need be there to do it.
    pub async fn clear(&self, namespace: &str) -> anyhow::Result<()> {
        self.remove::<Placement>(namespace).await?;
        self.remove::<PlacementDecision>(namespace).await?;
        self.remove::<Event>(namespace).await
    }

    async fn remove<K>(&self, namespace: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        let left = api.list_metadata(&ListParams::default().limit(1)).await?.items;
        ensure!(left.is_empty(), "{} of {namespace} are there after they were deleted", K::plural(&()));
        Ok(())
    }
}

/// Does something for each, some at a time.
pub async fn each<T>(
    items: impl IntoIterator<Item = T>,
    work: impl AsyncFn(T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    futures::stream::iter(items.into_iter().map(|item| work(item)))
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(async |()| Ok(()))
        .await
}

/// Makes one write, and does not wait for it for ever: an answer that does not come is an error.
pub async fn timely<T, E: Into<anyhow::Error>>(
    what: &str,
    write: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    let answer = tokio::time::timeout(WRITE, write).await;
    let answer = answer.with_context(|| format!("{what}: no answer within {} s", WRITE.as_secs()))?;
    answer.map_err(|error| error.into().context(what.to_owned()))
}
