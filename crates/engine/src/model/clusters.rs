//! What the model keeps of each ManagedCluster.
//!
//! Owns the compact per-slot record: labels and claims as numbers of interned pairs, taints as numbers with a time,
//! the two scored resources as numbers, and the rest of the object as JSON bytes for expressions. An expression finds
//! everything but repeated claims (the last of a name counts), and a cluster with twenty labels and ten claims stays well under two kilobytes.

use std::collections::BTreeMap;

use berth_api::{ManagedCluster, ManagedClusterClaim, ManagedClusterSpec, ManagedClusterStatus, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::facets::{Facets, PairId};
use super::slots::Slot;
use super::standing::{CarriedTaint, Standings};
use crate::select::Resource;
use crate::selector::Facet;

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
    /// Everything else, as JSON.
    pub(crate) rest: Box<[u8]>,
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
pub(crate) struct Parts {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) claims: Vec<ManagedClusterClaim>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) cpu: Option<f64>,
    pub(crate) memory: Option<f64>,
    pub(crate) available: bool,
    pub(crate) deleting: bool,
    pub(crate) rest: Box<[u8]>,
}

/// What is kept as JSON.
#[derive(Serialize)]
struct Rest<'c> {
    metadata: &'c ObjectMeta,
    spec: Option<&'c ManagedClusterSpec>,
    status: Option<&'c ManagedClusterStatus>,
}

impl Parts {
    pub(crate) fn of(mut cluster: ManagedCluster) -> Self {
        let amount = |resource: &str| {
            cluster.capacity(resource)?.approximate_f64().ok()?;
            cluster.allocatable(resource)?.approximate_f64().ok()
        };
        let (cpu, memory) = (amount("cpu"), amount("memory"));
        let available = cluster.available().is_some_and(|condition| condition.status == "True");
        let deleting = cluster.is_deleting();
        cluster.metadata.managed_fields = None;
        let labels = cluster.metadata.labels.take().unwrap_or_default();
        let taints = cluster.spec.as_mut().and_then(|spec| spec.taints.take()).unwrap_or_default();
        let claims =
            cluster.status.as_mut().and_then(|status| status.cluster_claims.take()).unwrap_or_default();
        let rest = Rest {
            metadata: &cluster.metadata,
            spec: cluster.spec.as_ref(),
            status: cluster.status.as_ref(),
        };
        let rest = serde_json::to_vec(&rest).expect("API types always serialise").into_boxed_slice();
        Self { labels, claims, taints, cpu, memory, available, deleting, rest }
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
        let mut object: Value =
            serde_json::from_slice(&record.rest).expect("the model wrote this JSON itself");
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
