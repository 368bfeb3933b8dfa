//! What can happen to the world.

use std::sync::Arc;

use berth_api::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision,
};

use super::key::ObjectKey;

/// One change of the world: an object as it is now, or the name of one that is gone. Applying the same object twice
/// changes nothing.
///
/// Owns what it tells of. Whoever keeps the objects anyway tells of them with a [`DeltaRef`], which copies nothing.
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

/// A [`Delta`] of objects that somebody else keeps.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each means what it means in `Delta`")]
pub enum DeltaRef<'o> {
    Cluster(&'o ManagedCluster),
    /// A ManagedCluster that stays with whoever tells of it until its next change: the model keeps it with them instead of a
    /// copy of what expressions might ask for.
    SharedCluster(&'o Arc<ManagedCluster>),
    ClusterGone(&'o str),
    Set(&'o ManagedClusterSet),
    SetGone(&'o str),
    Binding(&'o ManagedClusterSetBinding),
    BindingGone(&'o ObjectKey),
    Placement(&'o Placement),
    PlacementGone(&'o ObjectKey),
    Decision(&'o PlacementDecision),
    DecisionGone(&'o ObjectKey),
    Score(&'o AddOnPlacementScore),
    ScoreGone(&'o ObjectKey),
}

impl<'o> From<&'o Delta> for DeltaRef<'o> {
    fn from(delta: &'o Delta) -> Self {
        match delta {
            Delta::Cluster(object) => Self::Cluster(object),
            Delta::ClusterGone(name) => Self::ClusterGone(name),
            Delta::Set(object) => Self::Set(object),
            Delta::SetGone(name) => Self::SetGone(name),
            Delta::Binding(object) => Self::Binding(object),
            Delta::BindingGone(key) => Self::BindingGone(key),
            Delta::Placement(object) => Self::Placement(object),
            Delta::PlacementGone(key) => Self::PlacementGone(key),
            Delta::Decision(object) => Self::Decision(object),
            Delta::DecisionGone(key) => Self::DecisionGone(key),
            Delta::Score(object) => Self::Score(object),
            Delta::ScoreGone(key) => Self::ScoreGone(key),
        }
    }
}
