//! What can be said: Berth's resource types, their schemas, defaults and validation.
//!
//! This crate owns the shape of every kind in the groups `cluster.open-cluster-management.io` and `berth.dev`, the definitions
//! (CRDs) that are generated from it, and the structural rules an object has to keep; and what is read of nodes
//! ([`mod@core`]). It never talks to an API server, never reads a clock and never decides anything: that is control's
//! and the engine's work.
//!
//! Types keep what they read. Absent, empty and explicit values stay apart (`Option<Vec<_>>`), words that are
//! not known survive ([`TaintEffect::Other`] and the like), so whatever is valid can be written back as it came.
//! Two things are equalised, as Kubernetes' own clients do: an explicit null reads as absent, and times are
//! written in UTC with whole seconds.

pub mod cluster_claim;
pub mod cluster_set;
mod condition;
pub mod core;
pub mod decision_strategy;
pub mod definition;
pub mod eviction_policy;
pub mod kinds;
pub mod managed_cluster;
pub mod names;
pub mod object;
mod open_enum;
pub mod placement;
pub mod placement_decision;
pub mod prioritizer;
pub mod quantity;
pub mod replacement;
mod resource;
pub mod schema;
pub mod score;
pub mod selector;
pub mod set_binding;
pub mod taint;
pub mod time;
pub mod topology;
pub mod window;

pub use cluster_claim::{ClusterClaim, ClusterClaimSpec};
pub use cluster_set::{
    ManagedClusterSelector, ManagedClusterSet, ManagedClusterSetSpec, ManagedClusterSetStatus,
    ManagedNamespaceConfig, SelectorType,
};
pub use decision_strategy::{DecisionGroup, DecisionGroupStatus, DecisionStrategy, GroupStrategy};
pub use definition::crds;
pub use eviction_policy::{EvictionPolicy, EvictionPolicySpec};
pub use kinds::{KindInfo, KindVersion, fleet_kinds, kind_info, kinds, schema_for};
pub use managed_cluster::{
    ClientConfig, ClusterSetManagedNamespaceStatus, ManagedCluster, ManagedClusterClaim, ManagedClusterSpec,
    ManagedClusterStatus, ManagedClusterVersion,
};
pub use object::{Object, ReadError, Reading};
pub use placement::{NextTransition, Placement, PlacementSpec, PlacementStatus, SortBy};
pub use placement_decision::{ClusterDecision, PlacementDecision, PlacementDecisionStatus};
pub use prioritizer::{
    AddOnScore, PrioritizerConfig, PrioritizerMode, PrioritizerPolicy, ScoreCoordinate, ScoreCoordinateType,
};
pub use quantity::{Quantity, QuantityError};
pub use score::{AddOnPlacementScore, AddOnPlacementScoreItem, AddOnPlacementScoreStatus};
pub use selector::{
    ClusterCelSelector, ClusterClaimSelector, ClusterPredicate, ClusterSelector, GroupClusterSelector,
};
pub use set_binding::{
    ManagedClusterSetBinding, ManagedClusterSetBindingSpec, ManagedClusterSetBindingStatus,
};
pub use taint::{Taint, TaintEffect, Toleration, TolerationOperator};
pub use topology::{AntiAffinity, SpreadConstraint, SpreadPolicy, TopologyKeyType, UnsatisfiableAction};
