//! Which pods are on which node: an index that changes by difference.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use berth_engine::model::ObjectKey;

use crate::world::Pod;

/// Pods by the node they are on.
#[derive(Debug, Default)]
pub(super) struct PodsByNode(HashMap<Arc<str>, BTreeSet<ObjectKey>>);

impl PodsByNode {
    /// A pod was so and is so.
    pub(super) fn change(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        if before.map(|pod| &pod.node) == after.map(|pod| &pod.node) {
            return;
        }
        if let Some(pod) = before
            && let Some(pods) = self.0.get_mut(&pod.node)
        {
            pods.remove(&pod.identity.key);
            if pods.is_empty() {
                self.0.remove(&pod.node);
            }
        }
        if let Some(pod) = after.filter(|pod| !pod.node.is_empty()) {
            self.0.entry(Arc::clone(&pod.node)).or_default().insert(pod.identity.key.clone());
        }
    }

    /// The pods on a node, in the order of their names.
    pub(super) fn on(&self, node: &str) -> impl Iterator<Item = &ObjectKey> {
        self.0.get(node).into_iter().flatten()
    }

    /// How many nodes have any.
    pub(super) fn nodes(&self) -> usize {
        self.0.len()
    }
}
