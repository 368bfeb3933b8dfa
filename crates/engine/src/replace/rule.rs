//! The rules of a policy, made ready: what counts as a cause, and how long it has to last.

use serde::Serialize;

use crate::taint::{NodeEffect, Taint};

/// How long a cause lasts before something comes of it, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Timing {
    /// Before the member is marked.
    pub mark: i64,
    /// After that, before the member is due; at once if there is none.
    pub replace: Option<i64>,
}

impl Timing {
    /// For what was remembered and has not been looked at since: nothing comes of it by itself.
    pub(super) const NEVER: Self = Self { mark: i64::MAX, replace: Some(i64::MAX) };
}

/// A rule about taints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaintRule {
    /// The key; `None` stands for every key.
    pub key: Option<Box<str>>,
    /// The value; `None` is any.
    pub value: Option<Box<str>>,
    /// The effects; none listed is any.
    pub effects: Vec<NodeEffect>,
    /// How long it has to last; `None` for a taint that is known and harmless.
    pub timing: Option<Timing>,
    /// Whether the node is given up for good.
    pub is_permanent: bool,
    /// Where it is written.
    pub place: Box<str>,
}

impl TaintRule {
    fn speaks_of(&self, taint: &Taint<NodeEffect>) -> bool {
        self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
            && (self.effects.is_empty() || self.effects.contains(&taint.effect))
    }

    /// How closely it describes the taints it speaks of.
    fn closeness(&self) -> (bool, bool) {
        (self.key.is_some(), self.value.is_some())
    }
}

/// A rule about anything that has no variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainRule {
    /// How long it has to last.
    pub timing: Timing,
    /// Where it is written.
    pub place: Box<str>,
}

/// A rule about a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionRule {
    /// The condition.
    pub condition: Box<str>,
    /// What it says.
    pub status: Box<str>,
    /// How long it has to say so.
    pub timing: Timing,
    /// Where it is written.
    pub place: Box<str>,
}

/// All rules of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// About taints.
    pub taints: Vec<TaintRule>,
    /// Whether taints count that the pod tolerates for ever.
    pub tolerated_count: bool,
    /// About a cordon.
    pub cordon: Option<PlainRule>,
    /// About conditions of the node.
    pub node_conditions: Vec<ConditionRule>,
    /// About the loss of the node.
    pub node_missing: Option<PlainRule>,
    /// About conditions of the pod.
    pub pod_conditions: Vec<ConditionRule>,
}

impl Rules {
    /// Whether any of them is about nodes. If not, no node is read.
    pub fn ask_for_nodes(&self) -> bool {
        !self.taints.is_empty()
            || self.cordon.is_some()
            || !self.node_conditions.is_empty()
            || self.node_missing.is_some()
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        !self.ask_for_nodes() && self.pod_conditions.is_empty()
    }

    /// The rule that decides about a taint, with its waits: one that describes it more closely before one that does so less,
    /// of equals the one that is shortest. `None` where no rule speaks of it, or the one that does says that it is harmless.
    pub fn about(&self, taint: &Taint<NodeEffect>) -> Option<(&TaintRule, Timing)> {
        // The API has no taint without a key.
        let speaking = self.taints.iter().filter(|rule| !taint.key.is_empty() && rule.speaks_of(taint));
        let decides = speaking.min_by_key(|rule| {
            let (exact, valued) = rule.closeness();
            let wait = rule.timing.map_or(i64::MAX, |timing| timing.mark);
            (!exact, !valued, wait)
        })?;
        decides.timing.map(|timing| (decides, timing))
    }
}
