//! The pods of one owner: how many there are, and how many of them are away.
//!
//! Owns an index that is kept only while some policy asks for it. A pod is away while it is on its way out, after that until
//! another has come in its place, and while that one is not ready. Who is on a tainted node and not ready is not away: it is
//! who would have to go.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use berth_engine::Moment;
use berth_engine::model::ObjectKey;

use crate::world::{Pod, Store, Truth};

/// For how long after a pod is gone somebody is expected in its place.
const SUCCESSOR_WAIT: Duration = Duration::from_secs(10);

/// Pods by owner.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    is_kept: bool,
    owners: HashMap<Arc<str>, Workload>,
    touched: HashSet<Arc<str>>,
}

#[derive(Debug, Default)]
struct Workload {
    pods: BTreeSet<ObjectKey>,
    /// How many pods went and nobody has come for them; when that was, as far as it was looked at.
    gone: Vec<Option<Moment>>,
}

/// The pods of an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Muster {
    /// How many there are to be.
    pub(super) size: usize,
    /// How many of them are away.
    pub(super) away: usize,
}

impl Workloads {
    /// Whether somebody asks for it from now on. What is there already is read from `pods`.
    pub(super) fn keep(&mut self, is_kept: bool, pods: &Store<Pod>) {
        if is_kept == self.is_kept {
            return;
        }
        *self = Self { is_kept, ..Self::default() };
        if is_kept {
            for (_, pod) in pods.iter() {
                self.pod(None, Some(pod));
            }
            for workload in self.owners.values_mut() {
                workload.gone.clear();
            }
        }
    }

    /// A pod was so and is so.
    pub(super) fn pod(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        if !self.is_kept {
            return;
        }
        let is_same =
            before.zip(after).is_some_and(|(before, after)| before.identity.uid == after.identity.uid);
        if let Some(pod) = before
            && let Some(owner) = owner(pod)
            && !is_same
            && let Some(workload) = self.owners.get_mut(&owner)
        {
            workload.pods.remove(&pod.identity.key);
            if !pod.is_terminal() {
                workload.gone.push(None);
            }
            self.touched.insert(owner);
        }
        if let Some(pod) = after
            && let Some(owner) = owner(pod)
        {
            let workload = self.owners.entry(Arc::clone(&owner)).or_default();
            if workload.pods.insert(pod.identity.key.clone()) {
                workload.gone.pop();
            }
            self.touched.insert(owner);
        }
    }

    /// Whether an owner has pods, or had some for whom others are expected.
    pub(super) fn has(&self, owner: &str) -> bool {
        self.owners.contains_key(owner)
    }

    /// The owners whose pods may stand otherwise since the last time.
    pub(super) fn take_touched(&mut self) -> HashSet<Arc<str>> {
        std::mem::take(&mut self.touched)
    }

    /// The pods of an owner at `now`, and when time alone changes that. `is_tainted` says of which nodes pods have to go.
    pub(super) fn muster(
        &mut self,
        owner: &str,
        pods: &Store<Pod>,
        is_tainted: impl Fn(&str) -> bool,
        now: Moment,
    ) -> (Muster, Option<Moment>) {
        let Some(workload) = self.owners.get_mut(owner) else { return (Muster::default(), None) };
        for gone in &mut workload.gone {
            *gone = Some(gone.map_or(now, |gone| gone.min(now)));
        }
        workload.gone.retain(|gone| gone.is_some_and(|gone| now < gone.plus(SUCCESSOR_WAIT)));
        let missing = workload.gone.len();
        let end = workload.gone.iter().flatten().map(|gone| gone.plus(SUCCESSOR_WAIT)).min();
        let members = workload.pods.iter().filter_map(|key| pods.get(key)).filter(|pod| !pod.is_terminal());
        let (leaving, staying): (Vec<_>, Vec<_>) = members.partition(|pod| pod.is_terminating());
        let unready: Vec<_> =
            staying.iter().filter(|pod| pod.ready != Some(Truth::True) && !is_tainted(&pod.node)).collect();
        // Whoever has come since a pod began to leave has come in its place.
        let begun = leaving.iter().filter_map(|pod| {
            let grace = pod.grace_seconds.unwrap_or_default();
            Some(pod.deletion?.plus_seconds(-grace))
        });
        let successors = match begun.min() {
            Some(begun) => unready.iter().filter(|pod| pod.since >= begun).count().min(leaving.len()),
            None => 0,
        };
        let size = staying.len() + missing + leaving.len() - successors;
        let away = leaving.len() + missing + unready.len() - successors;
        if workload.pods.is_empty() && workload.gone.is_empty() {
            self.owners.remove(owner);
        }
        (Muster { size, away }, end)
    }
}

/// The identity of a pod's owner.
pub(super) fn owner(pod: &Pod) -> Option<Arc<str>> {
    pod.owner.as_ref().map(|owner| Arc::from(&*owner.uid))
}
