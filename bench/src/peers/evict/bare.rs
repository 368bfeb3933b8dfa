//! The floor of an eviction: a bare client that knows who has to go, and makes the writes an eviction is made of.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::Context as _;
use berth_sim::each;
use berth_sim::nodes::node_name;
use k8s_openapi::api::core::v1::{Event, Node, ObjectReference, Pod};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::NAMESPACE;
use super::crowd::taint;

/// One thing to write.
enum Job {
    Taint(usize),
    Evict(String, String),
}

/// A client that has looked up beforehand what it will need.
pub(super) struct Bare {
    client: Client,
    /// The pods of the nodes, with their UIDs.
    pods: Vec<(String, String)>,
    tainted: Range<usize>,
}

impl Bare {
    /// Looks up the pods of these nodes.
    pub(super) async fn new(client: Client, tainted: Range<usize>) -> anyhow::Result<Self> {
        let api: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        let mut by_name = HashMap::new();
        for pod in api.list_metadata(&ListParams::default()).await?.items {
            by_name.insert(pod.name_any(), pod.uid().context("a pod without a UID")?);
        }
        let nodes: Vec<String> = tainted.clone().map(|number| format!("{}-", node_name(number))).collect();
        let is_theirs = |name: &str| nodes.iter().any(|node| name.starts_with(node));
        let mut pods: Vec<_> = by_name.into_iter().filter(|(name, _)| is_theirs(name)).collect();
        pods.sort_unstable();
        Ok(Self { client, pods, tainted })
    }

    /// How many pods will go.
    pub(super) fn count(&self) -> usize {
        self.pods.len()
    }

    /// Taints the nodes and evicts their pods, without waiting for one thing before another begins: whoever decides cannot
    /// know sooner than the taint is written, so nobody can be done before this.
    pub(super) async fn evict(&self) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let taints = self.tainted.clone().map(Job::Taint);
        let evictions = self.pods.iter().map(|(name, uid)| Job::Evict(name.clone(), uid.clone()));
        each(taints.chain(evictions), async |job| match job {
            Job::Taint(number) => taint(&nodes, number).await,
            Job::Evict(name, uid) => evict(&pods, &name, uid).await,
        })
        .await
    }

    /// Tells of the pods that are gone in so many events: apart from the writes, as it is done by those who evict.
    pub(super) async fn tell(&self, events: usize) -> anyhow::Result<()> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        each(0..events, async |number| {
            let (name, uid) = &self.pods[number % self.pods.len()];
            api.create(&PostParams::default(), &event(name, uid, number)).await?;
            Ok(())
        })
        .await
    }
}

/// Why it goes, then that it goes: of this pod and of no other that has its name by then.
async fn evict(pods: &Api<Pod>, name: &str, uid: String) -> anyhow::Result<()> {
    let condition = json!({
        "metadata": {"uid": uid},
        "status": {"conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    });
    pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(condition)).await?;
    let preconditions = Preconditions { uid: Some(uid), resource_version: None };
    pods.delete(name, &DeleteParams::default().preconditions(preconditions)).await?;
    Ok(())
}

fn event(name: &str, uid: &str, number: usize) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{number}")),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            kind: Some("Pod".to_owned()),
            name: Some(name.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        },
        reason: Some("TaintManagerEviction".to_owned()),
        message: Some(format!("Marking for deletion Pod {NAMESPACE}/{name}")),
        type_: Some("Normal".to_owned()),
        ..Event::default()
    }
}
