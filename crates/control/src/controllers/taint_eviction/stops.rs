//! What keeps everybody where they are: what a person says, what another controller knows, and what cannot be seen.
//!
//! Owns telling the marshal of all three. What a stop is and what it holds is the marshal's.

use berth_engine::evict::{Cause, Freeze, Stops};

use super::TaintEvictionController;
use crate::controllers::Controller as _;
use crate::world::{Kind, World};

/// What is told while nobody knows whether somebody has said stop.
const BLIND_REASON: &str =
    "whether evictions are frozen cannot be seen: the ConfigMap is not followed, or cannot be read";
/// The same of the policies, which may keep somebody.
const BLIND_POLICIES: &str = "EvictionPolicies are not followed, or one of them cannot be read";
/// The same of what makes pods leave, and of what may have changed that.
const BLIND_NODES: &str = "nodes are not followed: the taints that pods would leave for may have gone";
const BLIND_PODS: &str = "pods are not followed: what they tolerate may have changed";
const BLIND_NAMESPACES: &str = "namespaces are not followed, and policies go by their labels";

impl TaintEvictionController {
    /// Everything that keeps everybody where they are holds from now on, and nothing else does.
    pub(super) fn heed_stops(&mut self, world: &World) {
        let unseen = blindness(world, self.needs_more()).map(|reason| Freeze::of(Cause::Unseen, reason));
        // What a person says and what another controller knows are told apart by their causes, and both are kept.
        let said = self.freeze.iter().chain(&self.stopped).cloned();
        let stops: Stops = said.chain(unseen).collect();
        if stops != *self.marshal.stops() {
            self.metrics.evictions_stopped(&stops);
            self.told.1 = true;
            self.marshal.stop(stops);
        }
    }
}

/// What cannot be seen that would keep pods where they are: a stop may have been said, a taint may have gone. What can be written
/// meanwhile says nothing of that.
fn blindness(world: &World, by_namespaces: bool) -> Option<&'static str> {
    let sees = |kind: Kind| world.is_followed(kind);
    [
        (!sees(Kind::Freeze) || world.freezes.has_unreadable(), BLIND_REASON),
        (!sees(Kind::Policy) || world.policies.has_unreadable(), BLIND_POLICIES),
        (!sees(Kind::Node), BLIND_NODES),
        (!sees(Kind::Pod), BLIND_PODS),
        (by_namespaces && !sees(Kind::Namespace), BLIND_NAMESPACES),
    ]
    .into_iter()
    .find_map(|(is_blind, reason)| is_blind.then_some(reason))
}
