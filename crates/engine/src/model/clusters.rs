//! What the model keeps of each ManagedCluster.
//!
//! Owns the compact per-slot record: labels and claims as numbers of interned pairs, taints as numbers with a time,
//! the two scored resources as numbers, and the rest of the object for expressions: as JSON bytes, or as the object
//! itself where somebody else keeps it anyway. An expression finds everything but repeated claims (the last of a name
//! counts), and a cluster with twenty labels and ten claims stays well under two kilobytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_api::{
    ClientConfig, ClusterSetManagedNamespaceStatus, ManagedCluster, ManagedClusterClaim, ManagedClusterSpec,
    ManagedClusterStatus, ManagedClusterVersion, Quantity, Taint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference, Time};
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::facets::{Facets, PairId};
use super::slots::Slot;
use super::standing::{CarriedTaint, Standings};
use crate::select::Resource;
use crate::selector::Facet;

/// Room to write the rest of an object in: conditions, resources and the version of a usual cluster take less.
const REST_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) labels: Box<[PairId]>,
    pub(crate) claims: Box<[PairId]>,
    pub(crate) taints: Box<[CarriedTaint]>,
    /// Allocatable amounts, where capacity is known too.
    pub(crate) cpu: Option<f64>,
    pub(crate) memory: Option<f64>,
    /// Available, as its condition says.
    pub(crate) available: bool,
    pub(crate) deleting: bool,
    /// Everything else.
    pub(crate) rest: Rest,
}

/// What of an object is kept for expressions alone.
#[derive(Debug)]
pub(crate) enum Rest {
    /// Its JSON, without what is kept elsewhere.
    Text(Box<[u8]>),
    /// All of it, with whoever else keeps it: nothing is written down that no expression may ever ask for.
    Shared(Arc<ManagedCluster>),
}

impl Rest {
    /// Whether nothing has changed, as far as that can be told at a glance.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Shared(one), Self::Shared(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// The object without what is kept elsewhere.
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => serde_json::from_slice(text).expect("the model wrote this JSON itself"),
            Self::Shared(cluster) => {
                serde_json::to_value(Remainder::of(cluster)).expect("API types always serialise")
            }
        }
    }
}

impl Cluster {
    pub(crate) fn resource(&self, resource: Resource) -> Option<f64> {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
        }
    }
}

/// A ManagedCluster taken apart: what is interned, and the record's other fields.
pub(crate) struct Parts<'c> {
    pub(crate) labels: Option<&'c BTreeMap<String, String>>,
    pub(crate) claims: &'c [ManagedClusterClaim],
    pub(crate) taints: &'c [Taint],
    pub(crate) cpu: Option<f64>,
    pub(crate) memory: Option<f64>,
    pub(crate) available: bool,
    pub(crate) deleting: bool,
    pub(crate) rest: Rest,
}

/// The object without what is kept elsewhere, and without who owns which field.
#[derive(Serialize)]
struct Remainder<'c> {
    metadata: RestOfMetadata<'c>,
    spec: Option<RestOfSpec<'c>>,
    status: Option<RestOfStatus<'c>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RestOfMetadata<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'c BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_timestamp: Option<&'c Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion_grace_period_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion_timestamp: Option<&'c Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<&'c [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generate_name: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_references: Option<&'c [OwnerReference]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    self_link: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'c str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RestOfSpec<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    managed_cluster_client_configs: Option<&'c [ClientConfig]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hub_accepts_client: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_duration_seconds: Option<i32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RestOfStatus<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<&'c [Condition]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<&'c BTreeMap<String, Quantity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocatable: Option<&'c BTreeMap<String, Quantity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'c ManagedClusterVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    managed_namespaces: Option<&'c [ClusterSetManagedNamespaceStatus]>,
}

impl<'c> Parts<'c> {
    /// Of an object that is not kept.
    pub(crate) fn of(cluster: &'c ManagedCluster) -> Self {
        // Large enough for nearly all at once, and cut to size afterwards.
        let mut text = Vec::with_capacity(REST_BYTES);
        serde_json::to_writer(&mut text, &Remainder::of(cluster)).expect("API types always serialise");
        Self::with(cluster, Rest::Text(text.into_boxed_slice()))
    }

    /// Of an object that somebody else keeps as well.
    pub(crate) fn of_shared(cluster: &'c Arc<ManagedCluster>) -> Self {
        Self::with(cluster, Rest::Shared(Arc::clone(cluster)))
    }

    fn with(cluster: &'c ManagedCluster, rest: Rest) -> Self {
        let amount = |resource: &str| {
            cluster.capacity(resource)?.approximate_f64().ok()?;
            cluster.allocatable(resource)?.approximate_f64().ok()
        };
        let status = cluster.status.as_ref();
        Self {
            labels: cluster.metadata.labels.as_ref(),
            claims: status.and_then(|status| status.cluster_claims.as_deref()).unwrap_or_default(),
            taints: cluster.taints(),
            cpu: amount("cpu"),
            memory: amount("memory"),
            available: cluster.available().is_some_and(|condition| condition.status == "True"),
            deleting: cluster.is_deleting(),
            rest,
        }
    }
}

impl<'c> Remainder<'c> {
    /// Takes everything apart by name, so that a field the API gains is not forgotten here.
    fn of(cluster: &'c ManagedCluster) -> Self {
        let ObjectMeta {
            annotations,
            creation_timestamp,
            deletion_grace_period_seconds,
            deletion_timestamp,
            finalizers,
            generate_name,
            generation,
            labels: _,
            managed_fields: _,
            name,
            namespace,
            owner_references,
            resource_version,
            self_link,
            uid,
        } = &cluster.metadata;
        let metadata = RestOfMetadata {
            annotations: annotations.as_ref(),
            creation_timestamp: creation_timestamp.as_ref(),
            deletion_grace_period_seconds: *deletion_grace_period_seconds,
            deletion_timestamp: deletion_timestamp.as_ref(),
            finalizers: finalizers.as_deref(),
            generate_name: generate_name.as_deref(),
            generation: *generation,
            name: name.as_deref(),
            namespace: namespace.as_deref(),
            owner_references: owner_references.as_deref(),
            resource_version: resource_version.as_deref(),
            self_link: self_link.as_deref(),
            uid: uid.as_deref(),
        };
        let spec = cluster.spec.as_ref().map(|spec| {
            let ManagedClusterSpec {
                managed_cluster_client_configs,
                hub_accepts_client,
                lease_duration_seconds,
                taints: _,
            } = spec;
            RestOfSpec {
                managed_cluster_client_configs: managed_cluster_client_configs.as_deref(),
                hub_accepts_client: *hub_accepts_client,
                lease_duration_seconds: *lease_duration_seconds,
            }
        });
        let status = cluster.status.as_ref().map(|status| {
            let ManagedClusterStatus {
                conditions,
                capacity,
                allocatable,
                version,
                cluster_claims: _,
                managed_namespaces,
            } = status;
            RestOfStatus {
                conditions: conditions.as_deref(),
                capacity: capacity.as_ref(),
                allocatable: allocatable.as_ref(),
                version: version.as_ref(),
                managed_namespaces: managed_namespaces.as_deref(),
            }
        });
        Self { metadata, spec, status }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Clusters {
    records: Vec<Option<Box<Cluster>>>,
    /// Clusters that exist and are not being deleted.
    pub(crate) live: RoaringBitmap,
    /// Clusters with taints.
    pub(crate) tainted: RoaringBitmap,
    pub(crate) labels: Facets,
    pub(crate) claims: Facets,
}

impl Clusters {
    pub(crate) fn get(&self, slot: Slot) -> Option<&Cluster> {
        self.records.get(slot.index())?.as_deref()
    }

    /// Puts a record in place; the former one comes back.
    pub(crate) fn put(&mut self, slot: Slot, record: Option<Cluster>) -> Option<Box<Cluster>> {
        if self.records.len() <= slot.index() {
            self.records.resize_with(slot.index() + 1, || None);
        }
        let mark = |bitmap: &mut RoaringBitmap, wanted: bool| {
            if wanted {
                bitmap.insert(slot.0);
            } else {
                bitmap.remove(slot.0);
            }
        };
        mark(&mut self.live, record.as_ref().is_some_and(|record| !record.deleting));
        mark(&mut self.tainted, record.as_ref().is_some_and(|record| !record.taints.is_empty()));
        std::mem::replace(&mut self.records[slot.index()], record.map(Box::new))
    }

    /// The value of a label or claim of `slot`.
    pub(crate) fn value(&self, slot: Slot, facet: Facet, key: &str) -> Option<&str> {
        let record = self.get(slot)?;
        let (facets, carried) = match facet {
            Facet::Label => (&self.labels, &record.labels),
            Facet::Claim => (&self.claims, &record.claims),
        };
        facets.value(carried, facets.find_key(key)?)
    }

    /// The taints of `slot`.
    pub(crate) fn taints(&self, slot: Slot) -> &[CarriedTaint] {
        self.get(slot).map_or(&[], |record| &record.taints)
    }

    /// Clusters with taints, and these.
    pub(crate) fn carriers(&self) -> impl Iterator<Item = (Slot, &[CarriedTaint])> {
        self.tainted.iter().map(|slot| (Slot(slot), self.taints(Slot(slot))))
    }

    /// The whole object as JSON again, for expressions.
    pub(crate) fn object(&self, slot: Slot, standings: &Standings) -> Value {
        let Some(record) = self.get(slot) else { return Value::Null };
        let mut object = record.rest.value();
        if !record.labels.is_empty() {
            let labels =
                self.labels.entries(&record.labels).map(|(key, value)| (key.to_owned(), value.into()));
            section(&mut object, "metadata").insert("labels".into(), Value::Object(labels.collect()));
        }
        if !record.claims.is_empty() {
            let claims = self
                .claims
                .entries(&record.claims)
                .map(|(name, value)| json!({"name": name, "value": value}));
            section(&mut object, "status").insert("clusterClaims".into(), claims.collect());
        }
        if !record.taints.is_empty() {
            let taints = record.taints.iter().map(|carried| {
                let taint = standings.taint(carried.id);
                let mut entry = Map::new();
                entry.insert("key".into(), (*taint.key).into());
                if !taint.value.is_empty() {
                    entry.insert("value".into(), (*taint.value).into());
                }
                entry.insert("effect".into(), taint.effect.to_string().into());
                entry.insert(
                    "timeAdded".into(),
                    carried.added.map_or(Value::Null, |added| added.to_string().into()),
                );
                Value::Object(entry)
            });
            let taints = taints.collect();
            section(&mut object, "spec").insert("taints".into(), taints);
        }
        // Absent sections are left out, as they would be in the object itself.
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        object
    }
}

/// A section of an object, made if it is absent.
fn section<'o>(object: &'o mut Value, name: &str) -> &'o mut Map<String, Value> {
    let section = &mut object[name];
    if !section.is_object() {
        *section = Value::Object(Map::new());
    }
    section.as_object_mut().expect("made an object just above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_object_is_lost_but_what_is_kept_elsewhere_whoever_keeps_it() {
        let text = json!({
            "metadata": {
                "annotations": {"a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": 3, "deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["f"],
                "generateName": "g", "generation": 4, "labels": {"l": "v"},
                "managedFields": [{"manager": "m"}], "name": "n", "namespace": "ns",
                "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u"}],
                "resourceVersion": "5", "selfLink": "s", "uid": "i",
            },
            "spec": {
                "managedClusterClientConfigs": [{"url": "https://c", "caBundle": "aa"}], "hubAcceptsClient": true,
                "leaseDurationSeconds": 60, "taints": [{"key": "t", "effect": "NoSelect"}],
            },
            "status": {
                "conditions": [{
                    "type": "T", "status": "True", "reason": "R", "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
                "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}, "version": {"kubernetes": "v1"},
                "clusterClaims": [{"name": "c", "value": "v"}],
                "managedNamespaces": [{"clusterSet": "s", "name": "m"}],
            },
        });
        let cluster: ManagedCluster = serde_json::from_value(text).unwrap();
        let mut expected = cluster.clone();
        expected.metadata.labels = None;
        expected.metadata.managed_fields = None;
        expected.spec.as_mut().unwrap().taints = None;
        expected.status.as_mut().unwrap().cluster_claims = None;
        let expected = serde_json::to_value(expected).unwrap();
        let cluster = Arc::new(cluster);
        for rest in [Parts::of(&cluster).rest, Parts::of_shared(&cluster).rest] {
            for section in ["metadata", "spec", "status"] {
                assert_eq!(rest.value()[section], expected[section], "{section}");
            }
        }
    }
}
