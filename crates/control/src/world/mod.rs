//! What was seen: the objects of every kind the controllers look at.
//!
//! Owns the typed stores and turns what watches and answers tell into changes, each told once. It never asks the API
//! server and decides nothing.

mod found;
mod freeze;
mod identity;
mod kind;
mod node_lease;
mod outline;
mod pod;
mod pool;
mod store;

use std::collections::BTreeSet;

use berth_api::core::{Lease, Node};
use berth_api::replacement::{Replacement, ReplacementPolicy};
use berth_api::{
    AddOnPlacementScore, EvictionPolicy, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding,
    Placement, PlacementDecision,
};
use berth_engine::model::ObjectKey;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub(crate) use found::OWNERS;
pub use found::{Finding, Found, owner_of};
pub use freeze::{FREEZE, FREEZE_BY, FREEZE_REASON, FREEZE_SINCE, FreezeMap};
pub use identity::Identity;
pub use kind::{Kind, Object};
pub(crate) use kind::{Known, Scope, Visitor};
pub(crate) use node_lease::NODE_LEASES;
pub use node_lease::NodeLease;
pub(crate) use outline::{Outline, read};
pub(crate) use pod::BY_TAINT;
pub use pod::{Disruption, Label, Owner, Phase, Pod, Truth};
pub use pool::Pool;
pub use store::Store;
pub(crate) use store::number;
use store::{Revision, Turn};

/// The objects of every kind.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "each is named after what it holds")]
pub struct World {
    pub clusters: Store<ManagedCluster>,
    pub sets: Store<ManagedClusterSet>,
    pub bindings: Store<ManagedClusterSetBinding>,
    pub placements: Store<Placement>,
    pub decisions: Store<PlacementDecision>,
    pub scores: Store<AddOnPlacementScore>,
    pub leases: Store<Lease>,
    pub cluster_roles: Store<ClusterRole>,
    pub cluster_role_bindings: Store<ClusterRoleBinding>,
    pub namespaces: Store<Namespace>,
    pub nodes: Store<Node>,
    pub node_leases: Store<NodeLease>,
    pub pods: Store<Pod>,
    pub freezes: Store<FreezeMap>,
    pub policies: Store<EvictionPolicy>,
    pub replacement_policies: Store<ReplacementPolicy>,
    pub replacements: Store<Replacement>,
    pub claims: Store<PersistentVolumeClaim>,
    pub volumes: Store<PersistentVolume>,
    /// Kinds whose watch does not work.
    lost: BTreeSet<Kind>,
}

/// An object as it was and as it is; at least one of the two is there.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its name.
    pub key: ObjectKey,
    /// What it was before.
    pub before: Option<Object>,
    /// What it is now.
    pub after: Option<Object>,
}

impl Change {
    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        self.after.as_ref().or(self.before.as_ref()).map(Object::kind).expect("a change is of something")
    }
}

/// What is told of objects, by watches and by the answers to writes.
#[derive(Debug)]
pub enum Told {
    /// A list of this kind begins.
    ListBegins(Kind),
    /// The list of this kind that has begun is of this revision. Its objects follow.
    ListOf(Kind, String),
    /// A list of this kind is complete.
    ListEnds(Kind),
    /// The watch of this kind has failed: what happens is heard of only later.
    Lost(Kind),
    /// The watch of this kind works again.
    Followed(Kind),
    /// The watch shows this object.
    Seen(Object),
    /// The watch shows the end of an object of this kind.
    Ended(Kind, Box<ObjectMeta>),
    /// The watch or a list shows an object of this kind that cannot be read.
    Unreadable(Kind, ObjectKey),
    /// A write of ours was answered with this object.
    Answered(Object),
    /// A deletion of ours was done.
    Deleted {
        /// The kind.
        kind: Kind,
        /// The object.
        key: ObjectKey,
        /// Its identity.
        uid: String,
    },
    /// What a controller has asked for. The world does not keep it.
    Found(Box<Found>),
}

/// Where news of an object comes from.
#[derive(Clone, Copy)]
enum Source {
    Seen,
    Answered,
}

impl World {
    /// Takes in what is told; the changes it makes come back.
    pub fn hear(&mut self, told: Told) -> Vec<Change> {
        match told {
            Told::ListBegins(kind) => kind.visit(BeginList(self)),
            Told::ListOf(kind, revision) => kind.visit(ListOf(self, number(&revision))),
            Told::ListEnds(kind) => kind.visit(EndList(self)),
            Told::Lost(kind) => {
                self.lost.insert(kind);
                Vec::new()
            }
            Told::Followed(kind) => {
                self.lost.remove(&kind);
                Vec::new()
            }
            Told::Seen(object) => object.enter(self, Source::Seen).into_iter().collect(),
            Told::Ended(kind, end) => kind.visit(End(self, &end)),
            Told::Unreadable(kind, key) => kind.visit(Unreadable(self, key)),
            Told::Answered(object) => object.enter(self, Source::Answered).into_iter().collect(),
            Told::Deleted { kind, key, uid } => kind.visit(Delete(self, &key, &uid)),
            Told::Found(_) => Vec::new(),
        }
    }

    /// Whether what happens to objects of this kind is heard at once. While it is not, that nothing was heard says nothing.
    pub fn is_followed(&self, kind: Kind) -> bool {
        !self.lost.contains(&kind)
    }

    /// Whether every object of this kind has been seen that existed when the watch began.
    pub fn is_filled(&self, kind: Kind) -> bool {
        kind.visit(IsFilled(self))
    }
}

impl Change {
    fn of<K: Known>((key, before, after): Turn<K>) -> Self {
        Self { key, before: before.map(K::wrap), after: after.map(K::wrap) }
    }
}

struct BeginList<'w>(&'w mut World);
struct ListOf<'w>(&'w mut World, Revision);
struct EndList<'w>(&'w mut World);
struct End<'w>(&'w mut World, &'w ObjectMeta);
struct Unreadable<'w>(&'w mut World, ObjectKey);
struct Delete<'w>(&'w mut World, &'w ObjectKey, &'w str);
struct IsFilled<'w>(&'w World);

impl Visitor for BeginList<'_> {
    type Output = Vec<Change>;

    fn visit<K: Known>(self) -> Vec<Change> {
        K::store_mut(self.0).begin_list();
        Vec::new()
    }
}

impl Visitor for ListOf<'_> {
    type Output = Vec<Change>;

    fn visit<K: Known>(self) -> Vec<Change> {
        K::store_mut(self.0).list_of(self.1);
        Vec::new()
    }
}

impl Visitor for EndList<'_> {
    type Output = Vec<Change>;

    fn visit<K: Known>(self) -> Vec<Change> {
        K::store_mut(self.0).end_list().into_iter().map(Change::of).collect()
    }
}

impl Visitor for End<'_> {
    type Output = Vec<Change>;

    fn visit<K: Known>(self) -> Vec<Change> {
        K::store_mut(self.0).ended(self.1).map(Change::of).into_iter().collect()
    }
}

impl Visitor for Unreadable<'_> {
    type Output = Vec<Change>;

    fn visit<K: Known>(self) -> Vec<Change> {
        K::store_mut(self.0).unreadable(&self.1);
        Vec::new()
    }
}

impl Visitor for Delete<'_> {
    type Output = Vec<Change>;

    fn visit<K: Known>(self) -> Vec<Change> {
        K::store_mut(self.0).deleted(self.1, self.2).map(Change::of).into_iter().collect()
    }
}

impl Visitor for IsFilled<'_> {
    type Output = bool;

    fn visit<K: Known>(self) -> bool {
        K::store(self.0).is_filled()
    }
}
