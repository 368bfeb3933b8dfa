//! Which pods are on which node, and how many nodes of each zone are tainted.
//!
//! Owns an index that changes by difference. It decides nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use berth_api::core::Node;
use berth_engine::evict::{Domain, Route};
use berth_engine::model::ObjectKey;

use crate::controllers::pods_by_node::PodsByNode;
use crate::world::Pod;

/// Pods by node, and zones.
#[derive(Debug, Default)]
pub(super) struct Map {
    pods: PodsByNode,
    zones: HashMap<Arc<str>, Zone>,
    /// Zones in which something has changed since somebody asked.
    changed: HashSet<Arc<str>>,
}

/// The nodes of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Zone {
    pub(super) nodes: usize,
    /// Those with a taint that makes pods leave.
    pub(super) tainted: usize,
}

impl Map {
    /// A pod was so and is so.
    pub(super) fn pod(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        self.pods.change(before, after);
    }

    /// A node was so and is so.
    pub(super) fn node(&mut self, before: Option<&Node>, after: Option<&Node>) {
        let place = |node: &Node| (zone(node), node.no_execute().next().is_some());
        let (before, after) = (before.map(place), after.map(place));
        if before == after {
            return;
        }
        if let Some((name, is_tainted)) = before
            && let Some(zone) = self.zones.get_mut(&name)
        {
            zone.nodes -= 1;
            zone.tainted -= usize::from(is_tainted);
            if zone.nodes == 0 {
                self.zones.remove(&name);
            }
            self.changed.insert(name);
        }
        if let Some((name, is_tainted)) = after {
            let zone = self.zones.entry(Arc::clone(&name)).or_default();
            zone.nodes += 1;
            zone.tainted += usize::from(is_tainted);
            self.changed.insert(name);
        }
    }

    /// The pods on a node, in the order of their names.
    pub(super) fn on(&self, node: &str) -> impl Iterator<Item = &ObjectKey> {
        self.pods.on(node)
    }

    /// How many nodes have pods.
    pub(super) fn inhabited(&self) -> usize {
        self.pods.nodes()
    }

    /// The zones in which something has changed since the last time, as they are now; none where nothing is left of it.
    pub(super) fn changes(&mut self) -> Vec<(Arc<str>, Option<Zone>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|name| (Arc::clone(&name), self.zones.get(&name).copied())).collect()
    }
}

/// The name of a node's zone.
pub(super) fn zone(node: &Node) -> Arc<str> {
    node.zone().to_string().into()
}

/// What has a say when a pod leaves a node.
pub(super) fn route(node: &Node) -> Route {
    [Domain::Everything, Domain::Zone(zone(node))].into()
}
