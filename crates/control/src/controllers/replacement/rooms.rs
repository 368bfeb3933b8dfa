//! How much of each node is taken: an index that changes by difference.

use std::collections::HashMap;
use std::sync::Arc;

use berth_engine::replace::Used;

use crate::world::Pod;

/// A node where nobody is.
static NOBODY: std::sync::LazyLock<Used> = std::sync::LazyLock::new(Used::default);

/// What is taken, by node.
#[derive(Debug, Default)]
pub(super) struct Rooms(HashMap<Arc<str>, Used>);

impl Rooms {
    /// A pod was so and is so. One that has run to its end takes nothing; one that is on its way out does until it is gone.
    pub(super) fn change(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        let takes = |pod: &&Pod| !pod.node.is_empty() && !pod.is_terminal();
        let (before, after) = (before.filter(takes), after.filter(takes));
        let what = |pod: &Pod| (Arc::clone(&pod.node), pod.requests.clone());
        if before.map(what) == after.map(what) {
            return;
        }
        if let Some(pod) = before
            && let Some(used) = self.0.get_mut(&pod.node)
        {
            used.go(pod.requests.as_deref());
            if used.is_empty() {
                self.0.remove(&pod.node);
            }
        }
        if let Some(pod) = after {
            self.0.entry(Arc::clone(&pod.node)).or_default().come(pod.requests.as_deref());
        }
    }

    /// What is taken of a node.
    pub(super) fn on(&self, node: &str) -> &Used {
        self.0.get(node).unwrap_or(&NOBODY)
    }
}
