//! What can happen to the world.

use berth_api::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision,
};

use super::key::ObjectKey;

/// One change of the world: an object as it is now, or the name of one that is gone. Applying the same object twice
/// changes nothing.
#[derive(Clone, Debug)]
pub enum Delta {
    /// A ManagedCluster.
    Cluster(Box<ManagedCluster>),
    /// A ManagedCluster is gone.
    ClusterGone(String),
    /// A ManagedClusterSet.
    Set(Box<ManagedClusterSet>),
    /// A ManagedClusterSet is gone.
    SetGone(String),
    /// A ManagedClusterSetBinding.
    Binding(Box<ManagedClusterSetBinding>),
    /// A ManagedClusterSetBinding is gone.
    BindingGone(ObjectKey),
    /// A Placement.
    Placement(Box<Placement>),
    /// A Placement is gone.
    PlacementGone(ObjectKey),
    /// A PlacementDecision.
    Decision(Box<PlacementDecision>),
    /// A PlacementDecision is gone.
    DecisionGone(ObjectKey),
    /// An AddOnPlacementScore.
    Score(Box<AddOnPlacementScore>),
    /// An AddOnPlacementScore is gone.
    ScoreGone(ObjectKey),
}
