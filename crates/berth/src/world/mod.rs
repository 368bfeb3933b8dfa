//! The objects a plan is about.
//!
//! ```text
//! manifest::Loaded --read--> World --alter--> World (a what-if)
//!                              '--model--> the engine's indexed fleet
//! ```
//!
//! Owns the objects by kind and identity, each with the place it was read from. Never decides anything, and never
//! changes in place: a what-if is another world that shares what it did not change.

mod alter;
mod check;
mod near;
mod read;

pub use alter::{Alteration, alter};
pub use check::loose_ends;
pub use near::near;
pub use read::{Reading, read};

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_api::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision,
};
use berth_engine::model::ObjectKey;
use berth_engine::{Delta, Model, PlacementKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::manifest::{self, Problem, Warning};

/// The namespace of a namespaced object that names none, as `kubectl` takes it.
pub const NAMESPACE_BY_DEFAULT: &str = "default";

/// An object and where it was read from.
#[derive(Debug)]
pub struct Item<T> {
    /// The object, with defaults filled in.
    pub object: T,
    /// The text it came from; `None` if it was made here.
    pub source: Option<Arc<manifest::Object>>,
}

impl<T> Item<T> {
    /// An object that stands in no file.
    pub fn made(object: T) -> Arc<Self> {
        Arc::new(Self { object, source: None })
    }

    /// A warning about the field at `path`, with its place where there is one.
    pub fn warning(&self, path: &str, message: String) -> Warning {
        Warning(match &self.source {
            Some(source) => source.problem(path, message),
            None => Problem::of_input(message),
        })
    }
}

/// Objects of one kind by identity. Worlds share them, so a what-if costs what it changes.
pub type Shelf<K, T> = BTreeMap<K, Arc<Item<T>>>;

/// All objects that have a say in placement.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// The clusters.
    pub clusters: Shelf<String, ManagedCluster>,
    /// The sets they are in.
    pub sets: Shelf<String, ManagedClusterSet>,
    /// Which sets a namespace may use.
    pub bindings: Shelf<ObjectKey, ManagedClusterSetBinding>,
    /// What is asked for.
    pub placements: Shelf<PlacementKey, Placement>,
    /// What stands now.
    pub decisions: Shelf<ObjectKey, PlacementDecision>,
    /// Scores that placements may rank by.
    pub scores: Shelf<ObjectKey, AddOnPlacementScore>,
}

impl World {
    /// The engine's view of this world.
    pub fn model(&self) -> Model {
        let mut model = Model::new();
        let mut put = |delta| {
            model.apply(delta);
        };
        // Clusters first: what is put later finds its members at once instead of being told of each newcomer.
        self.clusters.values().for_each(|item| put(Delta::Cluster(Box::new(item.object.clone()))));
        self.sets.values().for_each(|item| put(Delta::Set(Box::new(item.object.clone()))));
        self.bindings.values().for_each(|item| put(Delta::Binding(Box::new(item.object.clone()))));
        self.scores.values().for_each(|item| put(Delta::Score(Box::new(item.object.clone()))));
        self.placements.values().for_each(|item| put(Delta::Placement(Box::new(item.object.clone()))));
        self.decisions.values().for_each(|item| put(Delta::Decision(Box::new(item.object.clone()))));
        model
    }

    /// The PlacementDecisions of every placement that has any, by the label that names it.
    pub fn slices(&self) -> BTreeMap<PlacementKey, Vec<Arc<Item<PlacementDecision>>>> {
        let mut slices: BTreeMap<PlacementKey, Vec<_>> = BTreeMap::new();
        for (key, item) in &self.decisions {
            if let Some(placement) = item.object.placement_name() {
                let owner = PlacementKey { namespace: Arc::clone(&key.namespace), name: placement.into() };
                slices.entry(owner).or_default().push(Arc::clone(item));
            }
        }
        slices
    }
}

/// The identity of an object that lives in a namespace.
pub fn key_of(metadata: &ObjectMeta) -> ObjectKey {
    let namespace = metadata.namespace.as_deref().unwrap_or(NAMESPACE_BY_DEFAULT);
    ObjectKey::new(namespace, metadata.name.as_deref().unwrap_or_default())
}
