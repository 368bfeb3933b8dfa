//! Where a member's successor could go: what the watches and what was read say of it to the engine.
//!
//! Owns the gathering of nodes, neighbours and room. Whether a node fits is the engine's to say. Requests of pods and what nodes
//! have are kept by the watches; right before an act the node that was found is read again.

use std::sync::Arc;

use berth_api::core::Node;
use berth_engine::model::ObjectKey;
use berth_engine::replace::{
    Claim, Feasibility, Known, Memory, Missing, Neighbour, Newcomer, Pod, Sure, Volumes, first_that_takes,
    looks_abroad,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::case::Case;
use super::{ReplacementController, facts};
use crate::act::{Around, Reply};
use crate::world::{Kind, Pod as Slim, World};

impl ReplacementController {
    /// Another node that can take a member's successor.
    ///
    /// # Errors
    /// Why there is none, or what would have to be known.
    pub(super) fn candidate(
        &self,
        read: &Pod,
        case: &Case,
        around: &Around,
        claims: &Known<Vec<Claim>>,
        memory: &Memory,
        world: &World,
    ) -> Result<Arc<str>, Feasibility> {
        self.with_newcomer(read, case, around, claims, memory, world, |newcomer| {
            let others = world.nodes.iter().filter(|(key, _)| Some(&key.name) != read.node.as_ref());
            // Of one that cannot be read nobody knows; it is as if it were not there.
            let readable = others.filter(|(key, _)| world.nodes.is_readable(key));
            first_that_takes(
                readable.map(|(key, node)| (&key.name, newcomer.on(node, self.rooms.on(&key.name)))),
            )
        })?
    }

    /// Whether the node that was read right before an act can take the successor.
    #[expect(clippy::too_many_arguments, reason = "each is a part of what was read")]
    pub(super) fn proved(
        &self,
        case: &Case,
        around: &Around,
        pods: &[Value],
        memory: &Memory,
        candidate: &Result<Arc<str>, Feasibility>,
        reply: Option<&Reply>,
        world: &World,
    ) -> Feasibility {
        let name = match candidate {
            Ok(name) => name,
            Err(why) => return why.clone(),
        };
        let Some(Reply::Object(node)) = reply else { return Feasibility::Unknown(Missing::Nodes) };
        let Ok(node) = Node::deserialize(&**node) else {
            return Feasibility::Unknown(Missing::Nodes);
        };
        let read = around.pod.object().and_then(|pod| facts::whole_pod(pod, around));
        let Some(read) = read else { return Feasibility::Unknown(Missing::Pod) };
        let claims = self.claims_of(case, around, pods, read.node.as_ref(), world);
        let fit = self.with_newcomer(&read, case, around, &claims, memory, world, |newcomer| {
            newcomer.on(&node, self.rooms.on(name))
        });
        fit.map_or_else(|why| why, Feasibility::from)
    }

    /// Asks something about the successor as one that needs a place.
    #[expect(clippy::too_many_arguments, reason = "each is a part of what is known of a member")]
    fn with_newcomer<T>(
        &self,
        read: &Pod,
        case: &Case,
        around: &Around,
        claims: &Known<Vec<Claim>>,
        memory: &Memory,
        world: &World,
        ask: impl FnOnce(&Newcomer<'_>) -> T,
    ) -> Result<T, Feasibility> {
        let unknown = |missing: Missing| Err(Feasibility::Unknown(missing));
        let (Ok(compiled), Some(pod)) = (&case.compiled, around.pod.object()) else {
            return unknown(Missing::Pod);
        };
        if !self.knows_nodes {
            return unknown(Missing::Nodes);
        }
        // One that cannot be read may be anywhere, and ask for anything.
        if !world.is_filled(Kind::Pod) || !world.is_followed(Kind::Pod) || world.pods.has_unreadable() {
            return unknown(Missing::Pods);
        }
        let volumes = staying(&compiled.0.strategy.volumes, around, claims, memory)?;
        let namespace: Arc<str> = pod["metadata"]["namespace"].as_str().unwrap_or_default().into();
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let mut neighbours = Vec::new();
        if looks_abroad(pod) {
            let all = world.pods.iter().map(|(_, other)| other);
            neighbours.extend(all.filter_map(|other| neighbour(other, &namespace, name, world)));
        } else if cares_for_others(pod) {
            let near = self.roster.in_namespace(&namespace, world);
            neighbours.extend(near.filter_map(|other| neighbour(other, &namespace, name, world)));
        }
        let nodes = world.nodes.iter().map(|(_, node)| &**node);
        Ok(ask(&Newcomer::new(pod, &read.tolerations, &volumes, &neighbours, nodes)))
    }
}

/// Whether a rule of a pod speaks of other pods.
fn cares_for_others(pod: &Value) -> bool {
    !pod["spec"]["affinity"].is_null() || !pod["spec"]["topologySpreadConstraints"].is_null()
}

/// A pod besides the one of this name, where it is on a node that is known.
fn neighbour<'w>(other: &'w Slim, namespace: &str, name: &str, world: &'w World) -> Option<Neighbour<'w>> {
    let key = &other.identity.key;
    if other.is_terminal() || (*key.name == *name && *key.namespace == *namespace) {
        return None;
    }
    let node = world.nodes.get(&ObjectKey::new("", &other.node))?;
    Some(Neighbour {
        namespace: &key.namespace,
        labels: &other.labels,
        is_leaving: other.is_terminating(),
        node,
    })
}

/// The volumes that a successor must be able to reach: those that stay. An error where one could not be read.
fn staying<'a>(
    policy: &Volumes,
    around: &'a Around,
    claims: &Known<Vec<Claim>>,
    memory: &Memory,
) -> Result<Vec<&'a Value>, Feasibility> {
    let unknown = || Feasibility::Unknown(Missing::Volumes);
    let Known::Known(claims) = claims else { return Err(unknown()) };
    let course = memory.under_way();
    let is_permanent = course.map_or_else(
        || memory.sightings.iter().any(|sighting| sighting.is_permanent),
        |course| course.removes_volumes,
    );
    let goes = |claim: &Claim| match policy {
        Volumes::Retain => false,
        Volumes::Delete { local_only, classes } => {
            is_permanent
                && (classes.is_empty() || claim.class.as_ref().is_some_and(|class| classes.contains(class)))
                && (!local_only || claim.is_local == Sure::Yes)
                && claim.is_own == Sure::Yes
        }
    };
    let mut volumes = Vec::new();
    for claim in claims.iter().filter(|claim| !goes(claim)) {
        let reply = around.claims.iter().find(|(name, _)| **name == *claim.name).map(|(_, reply)| reply);
        let volume = reply.and_then(Reply::object).and_then(|claim| claim["spec"]["volumeName"].as_str());
        if let Some(name) = volume.filter(|name| !name.is_empty()) {
            volumes.push(facts::volume_of(around, name).ok_or_else(unknown)?);
        }
    }
    Ok(volumes)
}
