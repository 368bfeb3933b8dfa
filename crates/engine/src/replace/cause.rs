//! Why a member is to be replaced, and since when.

use std::fmt;

use serde::Serialize;

use super::rule::Timing;
use crate::moment::Moment;
use crate::taint::NodeEffect;

/// Something that is wrong with a member or its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Cause {
    /// The node has this taint.
    Taint {
        /// Its key.
        key: Box<str>,
        /// Its value; often empty.
        value: Box<str>,
        /// What it does.
        effect: NodeEffect,
    },
    /// The node takes nothing new.
    Cordon,
    /// The node says this of itself.
    NodeCondition {
        /// The condition.
        condition: Box<str>,
        /// What it says.
        status: Box<str>,
    },
    /// The node is no more.
    NodeMissing,
    /// The pod says this of itself.
    PodCondition {
        /// The condition.
        condition: Box<str>,
        /// What it says.
        status: Box<str>,
    },
}

impl Cause {
    /// Whether it is the node that is not well. Only then is it a question whether too many nodes are.
    pub fn is_of_the_node(&self) -> bool {
        !matches!(self, Self::PodCondition { .. })
    }

    /// Whether it is a taint: what upstream calls `NodeTaintDetected` and `NodeTaintReplacing` is about these.
    pub fn is_taint(&self) -> bool {
        matches!(self, Self::Taint { .. })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taint { key, value, effect } if value.is_empty() => write!(f, "taint {key}:{effect}"),
            Self::Taint { key, value, effect } => write!(f, "taint {key}={value}:{effect}"),
            Self::Cordon => f.write_str("a cordon of the node"),
            Self::NodeCondition { condition, status } => write!(f, "node condition {condition}={status}"),
            Self::NodeMissing => f.write_str("the loss of the node"),
            Self::PodCondition { condition, status } => write!(f, "pod condition {condition}={status}"),
        }
    }
}

/// Where the beginning of a cause is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Source {
    /// The object says so.
    TimeAdded,
    /// Nobody wrote it down: that is when it was first seen.
    FirstSeen,
}

/// A cause with its own clock, so that an old one that is ignored never makes a fresh one due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sighting {
    /// The cause.
    pub cause: Cause,
    /// Since when it counts; a whole second.
    pub since: Moment,
    /// Where that is known from.
    pub source: Source,
    /// Since when it has lasted for long enough. As upstream, that is when it was seen to have: the second wait is for
    /// people to notice.
    pub replacing: Option<Moment>,
    /// The waits that its rule asks for. Not remembered: the policy says them again.
    pub timing: Timing,
    /// The rule, by its place in the policy.
    pub rule: Box<str>,
    /// Whether the node is given up for good, and with it what cannot leave it.
    pub is_permanent: bool,
}

impl Sighting {
    /// From when on the member is marked. The wait is *more* than so many whole seconds, as upstream counts.
    pub fn marked_at(&self) -> Moment {
        strictly_after(self.since, self.timing.mark)
    }

    /// From when on the member is due, as far as that is known.
    pub fn due_at(&self) -> Option<Moment> {
        let replacing = self.replacing?;
        Some(self.timing.replace.map_or(replacing, |wait| strictly_after(replacing, wait)))
    }

    /// When it is due at the earliest.
    pub fn due_at_the_earliest(&self) -> Moment {
        self.due_at().unwrap_or_else(|| match self.timing.replace {
            None => self.marked_at(),
            Some(wait) => strictly_after(self.marked_at(), wait),
        })
    }
}

/// The first moment at which more than so many whole seconds have passed.
fn strictly_after(since: Moment, seconds: i64) -> Moment {
    since.plus_seconds(seconds.saturating_add(1))
}
