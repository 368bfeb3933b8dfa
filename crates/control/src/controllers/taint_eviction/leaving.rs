//! Pods that are on their way out of tainted nodes, by node.
//!
//! Owns an index that is kept only where it is bounded how many may be. A pod counts until it is gone, by whosever hand it goes, or
//! until its grace period is over: who hangs on a dead node must keep nobody else waiting, least of all for the force that ends
//! it. It decides nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use berth_engine::Moment;
use berth_engine::model::ObjectKey;

use crate::world::Pod;

/// Pods that are on their way out.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    is_kept: bool,
    /// The nodes they are on, by when each counts no more.
    ends: BTreeMap<(Moment, ObjectKey), Arc<str>>,
    /// How many on each node.
    on: HashMap<Arc<str>, usize>,
    /// Whether that differs from what somebody has counted last.
    has_changed: bool,
}

impl Leaving {
    /// An index that is kept if somebody asks for it.
    pub(super) fn new(is_kept: bool) -> Self {
        Self { is_kept, ..Self::default() }
    }

    /// A pod was so and is so.
    pub(super) fn pod(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        if !self.is_kept {
            return;
        }
        let (before, after) = (before.and_then(end), after.and_then(end));
        if before == after {
            return;
        }
        if let Some((end, _)) = before {
            self.take(&end);
        }
        if let Some((end, node)) = after {
            *self.on.entry(Arc::clone(&node)).or_default() += 1;
            self.ends.insert(end, node);
            self.has_changed = true;
        }
    }

    /// Time has passed: whose grace period is over counts no more.
    pub(super) fn pass(&mut self, now: Moment) {
        while let Some((end, _)) = self.ends.first_key_value().filter(|((at, _), _)| *at <= now) {
            let end = end.clone();
            self.take(&end);
        }
    }

    /// When time alone changes how many there are.
    pub(super) fn wake(&self) -> Option<Moment> {
        self.ends.first_key_value().map(|((at, _), _)| *at)
    }

    /// How many are on a node.
    pub(super) fn on(&self, node: &str) -> usize {
        self.on.get(node).copied().unwrap_or_default()
    }

    /// Whether somebody has to count again: something has changed since the last time, or `others_have` that matters to it.
    pub(super) fn take_changed(&mut self, others_have: bool) -> bool {
        std::mem::take(&mut self.has_changed) || (self.is_kept && others_have)
    }

    fn take(&mut self, end: &(Moment, ObjectKey)) {
        let Some(node) = self.ends.remove(end) else { return };
        self.has_changed = true;
        if let Some(count) = self.on.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                self.on.remove(&node);
            }
        }
    }
}

/// Until when a pod counts, and where it is; `None` if it is not on its way out.
fn end(pod: &Pod) -> Option<((Moment, ObjectKey), Arc<str>)> {
    let is_there = !pod.node.is_empty() && !pod.is_terminal() && !pod.is_mirror;
    let at = pod.deletion.filter(|_| is_there)?;
    Some(((at, pod.identity.key.clone()), Arc::clone(&pod.node)))
}
