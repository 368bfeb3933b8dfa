//! Breakers that open and close, as they are told: in the log, as a metric, and as an event.
//!
//! Owns which of them are known to be open. Whom they hold is the marshal's to say. There is no object that is a zone, so the event is
//! about one of its nodes: where it opens, the first of those that are tainted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use berth_api::core::Node;
use berth_engine::evict::{BreakerSight, Domain};
use berth_engine::model::ObjectKey;

use super::{TaintEvictionController, map, subject_of_node};
use crate::act::{Note, Target};
use crate::due::Due;
use crate::names::ControllerName;
use crate::world::{Object, World};

/// What the events give as their reasons.
const OPENED_REASON: &str = "EvictionBreakerOpened";
const CLOSED_REASON: &str = "EvictionBreakerClosed";
/// The namespace of events about what has none.
const EVENTS_OF_NODES: &str = "default";

/// The breakers of zones that are open, and what has yet to be told about them.
#[derive(Debug, Default)]
pub(super) struct Breakers {
    /// Zones whose breaker is open, as far as it was told.
    open: HashSet<Arc<str>>,
    /// What is to be told, by the node it is told about.
    untold: HashMap<Arc<str>, Vec<Note>>,
}

impl Breakers {
    /// What is to be told about a node.
    pub(super) fn take_untold(&mut self, node: &str) -> Vec<Note> {
        self.untold.remove(node).unwrap_or_default()
    }
}

impl TaintEvictionController {
    /// Tells of the breakers that have opened or closed.
    pub(super) fn tell_breakers(&mut self, world: &World, due: &mut Due) {
        for (domain, sight) in self.marshal.take_turned() {
            let Domain::Zone(zone) = &domain else { continue };
            match &sight {
                BreakerSight::Gone => self.metrics.eviction_breaker_is_gone(zone),
                BreakerSight::Closed => self.metrics.eviction_breaker(zone, false),
                BreakerSight::Open(_) => self.metrics.eviction_breaker(zone, true),
            }
            let is_open = matches!(sight, BreakerSight::Open(_));
            let was_open = self.breakers.open.contains(zone);
            if is_open == was_open {
                continue;
            }
            let told = if let BreakerSight::Open(hold) = &sight {
                tracing::warn!(%zone, "evictions are held by a breaker: {hold}");
                self.breakers.open.insert(Arc::clone(zone));
                format!("Evictions are held: {hold}")
            } else {
                tracing::info!(%zone, "a breaker holds evictions no more");
                self.breakers.open.remove(zone);
                format!("Evictions in {domain} go on")
            };
            if let Some((key, node)) = representative(zone, is_open, world) {
                let note = note(node, is_open, told);
                self.breakers.untold.entry(Arc::clone(&key.name)).or_default().push(note);
                due.mark(&subject_of_node(&key.name));
            }
        }
    }
}

/// The node of a zone that stands for it: the first by name, of those that are tainted if that matters.
fn representative<'w>(
    zone: &str,
    is_tainted: bool,
    world: &'w World,
) -> Option<(&'w ObjectKey, &'w Arc<Node>)> {
    let members = world
        .nodes
        .iter()
        .filter(|(_, node)| *map::zone(node) == *zone && (!is_tainted || node.no_execute().next().is_some()));
    members.min_by(|(one, _), (other, _)| one.name.cmp(&other.name))
}

fn note(node: &Arc<Node>, is_open: bool, note: String) -> Note {
    let (reason, action) =
        if is_open { (OPENED_REASON, "HoldEvictions") } else { (CLOSED_REASON, "ReleaseEvictions") };
    Note {
        regarding: Target::whatever_revision(&Object::Node(Arc::clone(node))),
        related: None,
        is_warning: is_open,
        reason,
        action,
        note,
        reporter: ControllerName::TaintEviction.as_str(),
        namespace: EVENTS_OF_NODES.to_owned(),
    }
}
