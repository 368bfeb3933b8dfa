//! What is kept of a pod: little, because there are many.
//!
//! Owns the reading of a pod. Whatever pods of a workload have in common is kept once ([`Pool`](super::Pool)); the rest is
//! a few hundred bytes with its name and its place in the store.

use std::borrow::Cow;
use std::sync::Arc;

use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use berth_engine::replace::{Amounts, Container, requests};
use berth_engine::taint::{NodeEffect, Operator, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

use super::identity::{Identity, kept};
use super::store::number;

/// The annotation of pods that a kubelet has from a file: the API server has only their image.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// What the taint eviction gives as its reason.
pub(crate) const BY_TAINT: &str = "DeletionByTaintManager";

/// A label, and its value.
pub type Label = (Arc<str>, Arc<str>);

/// A pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Which it is.
    pub identity: Identity,
    /// The generation of its spec; 0 where the server does not count them.
    pub generation: i64,
    /// The node it is on; empty while it is on none.
    pub node: Arc<str>,
    /// Since when it is there, as far as it says: since it was bound, or made.
    pub since: Moment,
    /// When it is to be gone, once somebody has deleted it.
    pub deletion: Option<Moment>,
    /// How long it may take to end.
    pub grace_seconds: Option<i64>,
    /// Its labels, in order.
    pub labels: Arc<[Label]>,
    /// What it tolerates, in the order in which it says so.
    pub tolerations: Arc<[Toleration<NodeEffect>]>,
    /// What it asks for of its node; `None` where that cannot be understood.
    pub requests: Option<Arc<Amounts>>,
    /// What keeps it.
    pub owner: Option<Arc<Owner>>,
    /// How far it has come.
    pub phase: Phase,
    /// Whether it is ready; `None` where nobody has said.
    pub ready: Option<Truth>,
    /// Who has said that it is about to be disrupted, if that is so.
    pub disruption: Option<Disruption>,
    /// Whether it is the image of a pod that a kubelet has from a file.
    pub is_mirror: bool,
}

/// What keeps a pod: its controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Its kind.
    pub kind: Box<str>,
    /// Its name, in the pod's namespace.
    pub name: Box<str>,
    /// Its identity.
    pub uid: Box<str>,
}

/// How far a pod has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It does not run yet.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It has ended, and well.
    Succeeded,
    /// It has ended, and not well.
    Failed,
    /// Nobody knows.
    Unknown,
}

/// Whether something is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It is.
    True,
    /// It is not.
    False,
    /// Nobody knows.
    Unknown,
}

/// Who has said that a pod is about to be disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// The taint eviction.
    ByTaint,
    /// Somebody else.
    ByOther,
}

impl Pod {
    /// Whether it has run to its end.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether somebody has deleted it.
    pub fn is_terminating(&self) -> bool {
        self.deletion.is_some()
    }
}

kept!(Pod, of: k8s_openapi::api::core::v1::Pod, share: |pod, pool| {
    pool.text(&mut pod.node);
    pool.labels(&mut pod.labels);
    pool.tolerations(&mut pod.tolerations);
    if let Some(requests) = &mut pod.requests {
        pool.requests(requests);
    }
    if let Some(owner) = &mut pod.owner {
        pool.owner(owner);
    }
});

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Wire::deserialize(source).map(Self::from)
    }
}

#[derive(Deserialize)]
struct Wire<'j> {
    #[serde(borrow)]
    metadata: Metadata<'j>,
    #[serde(borrow, default)]
    spec: Spec<'j>,
    #[serde(borrow, default)]
    status: Status<'j>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'j> {
    #[serde(borrow)]
    name: Cow<'j, str>,
    #[serde(borrow, default)]
    namespace: Cow<'j, str>,
    #[serde(borrow, default)]
    uid: Cow<'j, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'j, str>,
    #[serde(default)]
    generation: Option<i64>,
    #[serde(default, deserialize_with = "berth_api::time::optional")]
    creation_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "berth_api::time::optional")]
    deletion_timestamp: Option<Time>,
    #[serde(borrow, default)]
    labels: Option<Pairs<'j>>,
    #[serde(borrow, default)]
    annotations: Option<Pairs<'j>>,
    #[serde(borrow, default)]
    owner_references: Option<Vec<Reference<'j>>>,
}

/// A mapping of texts, in order.
type Pairs<'j> = std::collections::BTreeMap<Cow<'j, str>, Cow<'j, str>>;

#[derive(Deserialize)]
struct Reference<'j> {
    #[serde(default)]
    controller: Option<bool>,
    #[serde(borrow, default)]
    kind: Cow<'j, str>,
    #[serde(borrow, default)]
    name: Cow<'j, str>,
    #[serde(borrow, default)]
    uid: Cow<'j, str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'j> {
    #[serde(borrow, default)]
    node_name: Cow<'j, str>,
    #[serde(default)]
    termination_grace_period_seconds: Option<i64>,
    #[serde(borrow, default)]
    tolerations: Option<Vec<Tolerated<'j>>>,
    #[serde(borrow, default)]
    containers: Option<Vec<Contained<'j>>>,
    #[serde(borrow, default)]
    init_containers: Option<Vec<Contained<'j>>>,
    #[serde(borrow, default)]
    overhead: Option<Asked<'j>>,
    #[serde(borrow, default)]
    resources: Option<Resources<'j>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contained<'j> {
    #[serde(borrow, default)]
    restart_policy: Option<Cow<'j, str>>,
    #[serde(borrow, default)]
    resources: Option<Resources<'j>>,
}

#[derive(Deserialize)]
struct Resources<'j> {
    #[serde(borrow, default)]
    requests: Option<Asked<'j>>,
}

/// What is asked for, by resource.
type Asked<'j> = std::collections::BTreeMap<Cow<'j, str>, Amount<'j>>;

/// An amount as it may be written: by a server as a text, by people as a bare number too.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount<'j> {
    Text(#[serde(borrow)] Cow<'j, str>),
    Number(serde_json::Number),
    /// Whatever it is, it hides no pod.
    Other(IgnoredAny),
}

impl Spec<'_> {
    /// What the pod asks for.
    fn requests(&self) -> Option<Amounts> {
        let amounts = |asked: Option<&Asked<'_>>| {
            let mut texts: Vec<(&str, Cow<'_, str>)> = Vec::new();
            for (name, amount) in asked.into_iter().flatten() {
                let text = match amount {
                    Amount::Text(text) => Cow::Borrowed(&**text),
                    Amount::Number(number) => number.to_string().into(),
                    Amount::Other(_) => return None,
                };
                texts.push((name, text));
            }
            Amounts::read(texts.iter().map(|(name, text)| (*name, &**text)))
        };
        let asked = |resources: Option<&Resources<'_>>| {
            amounts(resources.and_then(|resources| resources.requests.as_ref()))
        };
        let containers = |list: Option<&Vec<Contained<'_>>>| -> Option<Vec<Container>> {
            let read = |one: &Contained<'_>| {
                let requests = asked(one.resources.as_ref())?;
                Some(Container { requests, stays: one.restart_policy.as_deref() == Some("Always") })
            };
            list.into_iter().flatten().map(read).collect()
        };
        Some(requests(
            &containers(self.init_containers.as_ref())?,
            &containers(self.containers.as_ref())?,
            &amounts(self.overhead.as_ref())?,
            &asked(self.resources.as_ref())?,
        ))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tolerated<'j> {
    #[serde(borrow, default)]
    key: Cow<'j, str>,
    #[serde(borrow, default)]
    operator: Cow<'j, str>,
    #[serde(borrow, default)]
    value: Cow<'j, str>,
    #[serde(borrow, default)]
    effect: Cow<'j, str>,
    #[serde(default)]
    toleration_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status<'j> {
    #[serde(borrow, default)]
    phase: Cow<'j, str>,
    #[serde(borrow, default)]
    conditions: Option<Vec<Told<'j>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told<'j> {
    #[serde(borrow, default, rename = "type")]
    what: Cow<'j, str>,
    #[serde(borrow, default)]
    status: Cow<'j, str>,
    #[serde(borrow, default)]
    reason: Cow<'j, str>,
    #[serde(default, deserialize_with = "berth_api::time::told")]
    last_transition_time: Option<Time>,
}

impl From<Wire<'_>> for Pod {
    fn from(wire: Wire<'_>) -> Self {
        let Wire { metadata, spec, status } = wire;
        let conditions = status.conditions.unwrap_or_default();
        let told = |what: &str| conditions.iter().find(|told| told.what == what);
        let bound = told("PodScheduled").filter(|told| told.status == "True");
        let since = bound
            .and_then(|told| told.last_transition_time.as_ref())
            .or(metadata.creation_timestamp.as_ref());
        let moment = |time: &Time| Moment::from_timestamp(time.0);
        let disruption = told("DisruptionTarget")
            .filter(|told| told.status == "True")
            .map(|told| if told.reason == BY_TAINT { Disruption::ByTaint } else { Disruption::ByOther });
        let owner = metadata.owner_references.into_iter().flatten().find(|one| one.controller == Some(true));
        let labels = metadata.labels.into_iter().flatten();
        let annotations = metadata.annotations.unwrap_or_default();
        let requests = spec.requests().map(Arc::new);
        Self {
            identity: Identity {
                key: ObjectKey::new(&metadata.namespace, &metadata.name),
                uid: (&*metadata.uid).into(),
                revision: number(&metadata.resource_version),
            },
            generation: metadata.generation.unwrap_or_default(),
            node: (&*spec.node_name).into(),
            since: since.map_or(Moment::PAST, moment),
            deletion: metadata.deletion_timestamp.as_ref().map(moment),
            grace_seconds: spec.termination_grace_period_seconds,
            labels: labels.map(|(key, value)| ((&*key).into(), (&*value).into())).collect(),
            tolerations: spec.tolerations.into_iter().flatten().map(Toleration::from).collect(),
            requests,
            owner: owner.map(|one| {
                let Reference { kind, name, uid, .. } = one;
                Arc::new(Owner { kind: kind.into(), name: name.into(), uid: uid.into() })
            }),
            phase: match &*status.phase {
                "" | "Pending" => Phase::Pending,
                "Running" => Phase::Running,
                "Succeeded" => Phase::Succeeded,
                "Failed" => Phase::Failed,
                _ => Phase::Unknown,
            },
            ready: told("Ready").map(|told| match &*told.status {
                "True" => Truth::True,
                "False" => Truth::False,
                _ => Truth::Unknown,
            }),
            disruption,
            is_mirror: annotations.contains_key(MIRROR),
        }
    }
}

impl From<Tolerated<'_>> for Toleration<NodeEffect> {
    fn from(wire: Tolerated<'_>) -> Self {
        Self {
            key: wire.key.into(),
            operator: Operator::parse(&wire.operator),
            value: wire.value.into(),
            effect: (!wire.effect.is_empty()).then(|| NodeEffect::parse(&wire.effect)),
            seconds: wire.toleration_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::world::kind::Kept as _;

    fn read(pod: &serde_json::Value) -> Pod {
        serde_json::from_str(&pod.to_string()).unwrap()
    }

    #[test]
    fn a_pod_is_read_without_what_nobody_needs() {
        let pod = read(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 2,
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"b": "2", "a": "1\u{7}"},
                "annotations": {"kubernetes.io/config.mirror": "hash"},
                "ownerReferences": [
                    {"kind": "Node", "name": "x", "uid": "x"},
                    {"kind": "ReplicaSet", "name": "r", "uid": "o", "controller": true},
                ],
            },
            "spec": {
                "nodeName": "node", "terminationGracePeriodSeconds": 30, "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m", "memory": 1024}}}],
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}, {"operator": "Exists"}],
            },
            "status": {"phase": "Running", "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"},
                {"type": "Ready", "status": "False"},
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
            ]},
        }));
        let Identity { key, uid, revision } = &pod.identity;
        assert_eq!((key.to_string(), &**uid, *revision), ("n/p".to_owned(), "u", 7));
        assert_eq!((&*pod.node, pod.since.to_string()), ("node", "2026-01-01T00:01:00Z".to_owned()));
        assert_eq!((pod.phase, pod.ready, pod.grace_seconds), (Phase::Running, Some(Truth::False), Some(30)));
        assert_eq!((pod.disruption, pod.is_mirror), (Some(Disruption::ByTaint), true));
        assert_eq!(pod.owner.as_ref().map(|owner| &*owner.name), Some("r"));
        let labels: Vec<_> = pod.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(labels, [("a", "1\u{7}"), ("b", "2")]);
        let tolerations: Vec<_> = pod.tolerations.iter().map(ToString::to_string).collect();
        assert_eq!(tolerations, ["k Exists (NoExecute) for 300s", "* Exists"]);
        assert!(!pod.is_terminating() && !pod.is_terminal());
        assert_eq!(pod.requests.as_deref(), Amounts::read([("cpu", "250m"), ("memory", "1024")]).as_ref());
    }

    #[test]
    fn an_amount_that_is_none_makes_no_pod_unreadable() {
        for amount in [json!("much"), json!([7]), json!(null)] {
            let pod = read(&json!({
                "metadata": {"name": "p"},
                "spec": {"nodeName": "node", "containers": [{"resources": {"requests": {"cpu": amount}}}]},
            }));
            assert_eq!((&*pod.node, pod.requests), ("node", None), "{amount}");
        }
    }

    #[test]
    fn a_pod_of_which_nothing_is_said_is_read_too() {
        let pod =
            read(&json!({"metadata": {"name": "p", "ownerReferences": null}, "spec": {"tolerations": null}}));
        assert_eq!((&*pod.node, pod.ready, pod.uid()), ("", None, None));
        assert_eq!((pod.since, pod.tolerations.len()), (Moment::PAST, 0));
    }

    #[test]
    fn no_time_in_a_condition_makes_a_pod_unreadable() {
        for (time, since) in [
            ("9999-12-31T23:59:59Z", Moment::from_timestamp(jiff::Timestamp::MAX).to_string()),
            ("soon", "2026-01-01T00:00:00Z".to_owned()),
        ] {
            let pod = read(&json!({
                "metadata": {
                    "name": "p", "creationTimestamp": "2026-01-01T00:00:00Z",
                    "deletionTimestamp": "9999-12-31T23:59:59Z",
                },
                "status": {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": time}]},
            }));
            assert_eq!(pod.since.to_string(), since, "{time}");
            assert!(pod.is_terminating());
        }
    }
}
