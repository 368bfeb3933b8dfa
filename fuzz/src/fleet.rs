//! Objects on their way into the model.
//!
//! Owns the step from a typed object to the change it makes, and the promise that is asked of every decision. Never
//! reads text.

use berth_api::Object;
use berth_engine::{Delta, Model, Moment, PlacementKey, select::Decision};

/// The change an object makes; claims are read inside managed clusters and change nothing here.
pub(crate) fn delta(object: Object) -> Option<Delta> {
    Some(match object {
        Object::ManagedCluster(cluster) => Delta::Cluster(cluster),
        Object::ManagedClusterSet(set) => Delta::Set(set),
        Object::ManagedClusterSetBinding(binding) => Delta::Binding(binding),
        Object::Placement(placement) => Delta::Placement(placement),
        Object::PlacementDecision(decision) => Delta::Decision(decision),
        Object::AddOnPlacementScore(score) => Delta::Score(score),
        Object::ClusterClaim(_)
        | Object::EvictionPolicy(_)
        | Object::ReplacementPolicy(_)
        | Object::Replacement(_) => return None,
    })
}

/// Decides a placement. What the model remembers may save work and must never change the answer.
pub(crate) fn decide(model: &mut Model, placement: &PlacementKey, now: Moment) -> Option<Decision> {
    let decision = model.decide(placement, now);
    assert_eq!(decision, model.decide(placement, now), "deciding twice gives one answer");
    assert_eq!(decision, model.decide_afresh(placement, now), "remembering changes no answer");
    decision
}
