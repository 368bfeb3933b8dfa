//! What a caller knows of members, nodes and workloads.
//!
//! Owns the shape of the facts. Whatever may be not known says so: nobody has looked, the answer was an error, the cache is
//! not filled. Nothing is assumed for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::place::Feasibility;
use crate::moment::Moment;
use crate::taint::{NodeEffect, Taint, Toleration};

/// Yes, no, or nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Sure {
    /// It is so.
    Yes,
    /// It is not so.
    No,
    /// Nobody knows.
    #[default]
    Unknown,
}

impl From<bool> for Sure {
    fn from(so: bool) -> Self {
        if so { Self::Yes } else { Self::No }
    }
}

/// Something that is known, or is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Known<T> {
    /// This.
    Known(T),
    /// Nobody knows.
    #[default]
    Unknown,
}

impl<T> Known<T> {
    /// What is known.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown => None,
        }
    }
}

/// Whether a pod is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Readiness {
    /// It is, since then.
    Since(Moment),
    /// It is not.
    Not,
    /// Nobody knows.
    #[default]
    Unknown,
}

/// A condition of a pod or a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    /// What it is about.
    pub condition: Box<str>,
    /// What it says.
    pub status: Box<str>,
    /// Since when, if it tells.
    pub since: Option<Moment>,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its identity.
    pub uid: Arc<str>,
    /// The node it is on; `None` while it has none.
    pub node: Option<Arc<str>>,
    /// Since when it is there: no clock of its node counts from before, so that a successor on a node of the same sort has
    /// all of its time.
    pub arrived: Option<Moment>,
    /// Its labels.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// Whether it is ready.
    pub ready: Readiness,
    /// Whether it is on its way out.
    pub is_leaving: bool,
    /// It waits for a node and will get none, because its claim and its volume are not in the same place.
    pub is_stuck: bool,
    /// Somebody has marked it to be left alone.
    pub is_skipped: bool,
    /// What it says of itself.
    pub conditions: Vec<Condition>,
    /// The taints it puts up with.
    pub tolerations: Vec<Toleration<NodeEffect>>,
}

/// A claim of a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// Its name.
    pub name: Box<str>,
    /// Its identity.
    pub uid: Box<str>,
    /// Its storage class.
    pub class: Option<Box<str>>,
    /// Whether its volume cannot leave the node.
    pub is_local: Sure,
    /// Whether it is the member's alone: what others use as well is never removed.
    pub is_own: Sure,
    /// Whether it is on its way out.
    pub is_leaving: bool,
}

/// What a gate says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Verdict {
    /// Go on.
    Pass,
    /// Do not.
    Deny,
    /// Not yet.
    InProgress,
    /// It could not be asked.
    #[default]
    Unknown,
}

/// What a person says to one replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word {
    /// Stop where you are.
    pub suspend: bool,
    /// Call it off.
    pub cancel: bool,
}

/// A member of a workload, as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Its name: the pod's, which a successor in a StatefulSet has as well.
    pub name: Arc<str>,
    /// The workload it belongs to, by its identity.
    pub target: Arc<str>,
    /// Its pod; none if there is none of this name.
    pub pod: Known<Option<Pod>>,
    /// The pod that took its place, where that has another name; `None` while there is none.
    pub successor: Known<Option<Pod>>,
    /// Whether nobody can say which pod takes its place: its operator makes others, under other names.
    pub has_no_successor: bool,
    /// Who goes first, low first; unknown goes last.
    pub order: Option<i64>,
    /// Its claims.
    pub claims: Known<Vec<Claim>>,
    /// Whether another node can take its successor.
    pub feasibility: Feasibility,
    /// What the gates of the policy say, in their order; what is missing is not known.
    pub gates: Vec<Verdict>,
    /// Whether whoever is to be told has been: the annotation or the entry in the list is there.
    pub told: Sure,
    /// Whether the operator says that it has done its part; asked for only where the policy says how it does.
    pub handed: Sure,
    /// What a person says to its replacement.
    pub word: Word,
    /// The policy no longer speaks of its pod: it was changed, or the pod's labels were.
    pub is_dismissed: bool,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Since when it exists.
    pub created: Moment,
    /// Its labels.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// Its taints.
    pub taints: Vec<Taint<NodeEffect>>,
    /// Whether it is cordoned.
    pub is_cordoned: bool,
    /// What it says of itself.
    pub conditions: Vec<Condition>,
}

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeFact {
    /// It is there.
    Present(Node),
    /// It is no more: the server said so.
    Missing,
    /// Nobody knows: not read, not allowed to, or an error. What was known of its causes stays as it was.
    #[default]
    Unknown,
}

/// A workload: how the members are that a replacement has to leave alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The pods that should be there and are not ready, by name; those that are missing among them.
    pub unready: Known<BTreeSet<Arc<str>>>,
    /// Who is ready, where nobody knows the name of one that is missing; `None` where that is known.
    pub muster: Option<Muster>,
    /// Whether neither a rollout nor a change of size is under way.
    pub is_settled: Sure,
    /// Whether its owner says nothing of that at all. Then it is not known, which holds where volumes go.
    pub is_silent: bool,
}

/// A count of members that have no names of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Muster {
    /// Those that are ready, by name.
    pub ready: BTreeSet<Arc<str>>,
    /// How many there should be, if anybody says so.
    pub wanted: Option<usize>,
}

impl Muster {
    /// How many there are besides one.
    pub(super) fn besides(&self, name: &str) -> usize {
        self.ready.len() - usize::from(self.ready.contains(name))
    }
}

/// Whether replacements may begin now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// They may: there are no windows, or one is open. `until` is when that ends.
    Open {
        /// When it ends.
        until: Moment,
    },
    /// They may not, before this.
    Closed {
        /// When they may again.
        opens: Moment,
    },
    /// Nobody has looked at the windows.
    #[default]
    Unknown,
}

impl Opening {
    /// Without windows replacements may begin at any time.
    pub const ALWAYS: Self = Self::Open { until: Moment::NEVER };
}

impl Node {
    /// Whether it takes no new pod with these tolerations.
    pub(super) fn is_closed_to(&self, tolerations: &[Toleration<NodeEffect>]) -> bool {
        let keeps_out = |taint: &Taint<NodeEffect>| {
            matches!(taint.effect, NodeEffect::NoSchedule | NodeEffect::NoExecute)
                && !tolerations.iter().any(|toleration| toleration.matches(taint))
        };
        self.is_cordoned || self.taints.iter().any(keeps_out)
    }
}

impl Member {
    /// The pod of this name, if one is known to be there.
    pub(super) fn pod(&self) -> Option<&Pod> {
        self.pod.get().and_then(Option::as_ref)
    }

    /// What a gate says.
    pub(super) fn verdict(&self, gate: usize) -> Verdict {
        self.gates.get(gate).copied().unwrap_or_default()
    }
}
