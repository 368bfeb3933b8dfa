//! What the engine is told of a policy before it decides: the policy, its members, their nodes and their workloads.
//!
//! Owns what was told last. A policy is decided anew whenever anything happens to one of its members, so what is as it was is
//! neither put together nor told again: of most members that is all.

use std::collections::BTreeSet;
use std::sync::Arc;

use berth_api::core::Node;
use berth_api::replacement::ReplacementPolicy;
use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use berth_engine::replace::{Known, Memory, NodeFact, Policy, PolicyKey, restore};

use super::case::{Case, Plain};
use super::{ReplacementController, facts, subject};
use crate::due::Due;
use crate::world::{Kind, World};

/// A node as the engine was told of it.
#[derive(Debug)]
pub(super) enum Shown {
    Present(Arc<Node>),
    Missing,
    Unknown,
}

impl Shown {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Present(one), Self::Present(other)) => Arc::ptr_eq(one, other),
            (Self::Missing, Self::Missing) | (Self::Unknown, Self::Unknown) => true,
            _ => false,
        }
    }

    fn fact(&self) -> NodeFact {
        match self {
            Self::Present(node) => NodeFact::Present(facts::node(node)),
            Self::Missing => NodeFact::Missing,
            Self::Unknown => NodeFact::Unknown,
        }
    }
}

impl ReplacementController {
    pub(super) fn node_changed(&mut self, name: &Arc<str>, world: &World, due: &mut Due) {
        for policy in self.show_node(name, world) {
            due.mark(&subject(&policy));
        }
    }

    /// Tells the engine what the watch knows of a node; whom that concerns comes back.
    fn show_node(&mut self, name: &Arc<str>, world: &World) -> Vec<PolicyKey> {
        let place = ObjectKey { namespace: Arc::clone(&self.nowhere), name: Arc::clone(name) };
        let is_known = self.knows_nodes && world.nodes.is_readable(&place);
        let now = match world.nodes.get(&place) {
            _ if !is_known => Shown::Unknown,
            Some(node) => Shown::Present(Arc::clone(node)),
            None => Shown::Missing,
        };
        if self.shown.get(name).is_some_and(|shown| shown.is(&now)) {
            return Vec::new();
        }
        let touched = self.fleet.set_node(name, now.fact());
        if matches!(now, Shown::Present(_)) {
            self.shown.insert(Arc::clone(name), now);
        } else {
            // Of these the fleet keeps as much, and what is gone need not be remembered.
            self.shown.remove(name);
        }
        touched
    }

    /// Tells the engine of a policy, unless it knows it as it is.
    pub(super) fn take_in_policy(
        &mut self,
        key: &PolicyKey,
        policy: &ReplacementPolicy,
        case: &mut Case,
        rules: &Policy,
    ) {
        let last_ended = policy.status.as_ref().and_then(|status| status.last_ended_at.as_ref());
        let last_ended = last_ended.map(|time| Moment::from_timestamp(time.0));
        let known = self.fleet.policy(key).filter(|_| case.is_taken_in);
        if known.is_some_and(|known| known.frozen == self.frozen) {
            return self.fleet.set_last_ended(key, last_ended);
        }
        let mut rules = rules.clone();
        rules.frozen.clone_from(&self.frozen);
        self.fleet.set_policy(key, rules, last_ended);
        case.is_taken_in = true;
    }

    /// What is remembered of a member: what was written of its replacement, and what was seen of it since.
    pub(super) fn memory(
        &self,
        key: &PolicyKey,
        name: &str,
        policy: &ReplacementPolicy,
        world: &World,
    ) -> Memory {
        let latest = self.roster.latest(key, name, world).map(AsRef::as_ref);
        let told = policy.status.as_ref().and_then(|status| status.pods.as_deref()).unwrap_or_default();
        match self.fleet.memory(key, name) {
            Some(known) => Memory { course: restore(None, latest).course, ..known.clone() },
            None => restore(told.iter().find(|told| told.name == *name), latest),
        }
    }

    /// Takes in what is known of a policy's members, their nodes and their workloads.
    pub(super) fn take_in(
        &mut self,
        key: &PolicyKey,
        policy: &ReplacementPolicy,
        case: &mut Case,
        world: &World,
        now: Moment,
    ) {
        let members = self.roster.members(key, world);
        let gone: Vec<Arc<str>> = case.members.difference(&members).cloned().collect();
        let mut touched = BTreeSet::new();
        if !gone.is_empty() {
            for name in gone {
                touched.extend(self.fleet.remove_member(key, &name));
                case.forget(&name);
            }
            self.forget_owners();
        }
        let anew: Vec<&Arc<str>> =
            members.iter().filter(|name| !self.is_as_it_was(key, case, name, world)).collect();
        let memories = anew.iter().map(|name| self.memory(key, name, policy, world));
        let memories: Vec<Memory> = memories.collect();
        // Whoever is as it was is not being replaced.
        case.is_losing =
            memories.iter().filter_map(Memory::under_way).any(|course| !course.claims.is_empty());
        for (name, memory) in anew.into_iter().zip(memories) {
            let member = self.member(key, case, name, &memory, world, now);
            let plain = Plain { pod: pod(key, name, world), is_known: member.pod != Known::Unknown };
            if case.sights.contains_key(name) || self.roster.has_works(key, name) {
                case.plain.remove(name);
            } else {
                case.plain.insert(Arc::clone(name), plain);
            }
            touched.extend(self.fleet.set_member(key, member, Some(memory)));
        }
        let reads_nodes = case.reads().nodes;
        let mut targets = BTreeSet::new();
        for name in &members {
            let Some((target, node)) = self.fleet.place_of(key, name) else { continue };
            targets.insert(target);
            if let Some(node) = node.filter(|_| reads_nodes) {
                touched.extend(self.show_node(&node, world));
            }
        }
        for target in targets.iter().filter(|target| !target.is_empty()) {
            let fact = self.target_fact(key, target, world);
            touched.extend(self.fleet.set_target(target, fact));
        }
        touched.remove(key);
        self.touched.extend(touched);
        case.members = members;
    }

    /// Whether the engine knows a member as it is: nothing was read of it, it has never been replaced, and its pod is the one it
    /// was.
    fn is_as_it_was(&self, key: &PolicyKey, case: &Case, name: &Arc<str>, world: &World) -> bool {
        let Some(Plain { pod, is_known }) = case.plain.get(name) else { return false };
        let place = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
        let now = world.pods.get(&place);
        now.zip(pod.as_ref()).is_some_and(|(now, pod)| Arc::ptr_eq(now, pod))
            && *is_known == (world.is_followed(Kind::Pod) && world.pods.is_readable(&place))
            && !case.sights.contains_key(name)
            && !self.roster.has_works(key, name)
            && self.fleet.memory(key, name).is_some_and(|memory| memory.course.is_none())
    }
}

/// The pod of a member, as the watch has it.
fn pod(key: &PolicyKey, name: &Arc<str>, world: &World) -> Option<Arc<crate::world::Pod>> {
    let place = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
    world.pods.get(&place).cloned()
}
