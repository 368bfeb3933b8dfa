//! A policy, made ready for deciding.

use std::sync::Arc;

use berth_api::replacement::{OnCleared, OnTimeout, Stage};

use super::rule::Rules;
use crate::evict::Allowance;
use crate::selector::Requirement;

/// Why a policy starts nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Off {
    /// `replacements.enabled` is false.
    NotEnabled,
    /// None may be replaced at once.
    NoneAtOnce,
}

/// A policy, made ready for deciding.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Whether what is decided is done.
    pub is_enforced: bool,
    /// Whether anything is decided at all.
    pub is_disabled: bool,
    /// Who wants nothing new to begin, and why.
    pub pauses: Arc<[String]>,
    /// Why nobody is evicted at all, whatever policies say. Not a part of the policy: whoever knows sets it.
    pub frozen: Option<Arc<str>>,
    /// Why it starts nothing at all.
    pub off: Option<Off>,
    /// What counts as a cause.
    pub rules: Rules,
    /// How many at once, and when.
    pub budget: Budget,
    /// How.
    pub strategy: Strategy,
    /// What must be true before a replacement goes on.
    pub gates: Vec<Gate>,
    /// Until when a replacement ends by itself once its cause is gone.
    pub on_cleared: OnCleared,
}

/// How many at once, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// How many.
    pub max: usize,
    /// Whether that counts fault domains.
    pub by_domain: bool,
    /// The node label that tells fault domains apart; `None` for the node's own name.
    pub domain_key: Option<Box<str>>,
    /// When too much is affected.
    pub breaker: Breaker,
    /// Budgets of their own for some members, with how many of them.
    pub buckets: Vec<(Vec<Requirement>, usize)>,
    /// The rest after a replacement, in seconds.
    pub cooldown: i64,
    /// How often again.
    pub retry: Retry,
}

/// When too much is affected. Unlike the breaker of evictions it has no memory: it counts who is marked, and a mark stays
/// until its cause is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// How many fault domains may have marked members,
    pub allowed: Allowance,
    /// and so many in any case.
    pub minimum: usize,
    /// Whether members that are being replaced count.
    pub counts_in_flight: bool,
}

impl Breaker {
    /// How many of `domains` may be affected: rounded down, and never less than one.
    pub fn limit(&self, domains: usize) -> usize {
        self.allowed.of(domains).max(self.minimum).max(1)
    }
}

/// How often a member is replaced that does not get well by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often again.
    pub max: u32,
    /// The wait before, in seconds.
    pub period: i64,
    /// Being well for so long is a new beginning, in seconds.
    pub healthy: i64,
}

/// How a member is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// Who removes the pod, and how they are told.
    pub handing: Handing,
    /// Where the operator says that it has done its part; `None` where that is when the pod is gone.
    pub done_when: Option<DoneWhen>,
    /// How long an operator may take, in seconds; [`i64::MAX`] for ever.
    pub operator_timeout: i64,
    /// What becomes of the volumes.
    pub volumes: Volumes,
    /// Removed claims leave their volumes behind.
    pub keeps_volumes: bool,
    /// The node that is left must take no new pod.
    pub needs_closed_node: bool,
    /// Another node must be able to take the successor.
    pub needs_feasible_target: bool,
    /// How long a successor may take, in seconds.
    pub ready_timeout: i64,
    /// How long a successor must have been ready, in seconds.
    pub min_ready: i64,
}

/// Who removes the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handing {
    /// We do.
    Evict {
        /// Whether somebody is told before by an annotation and answers: a gate waits for the answer.
        handshake: bool,
    },
    /// An operator, told by an annotation of the pod.
    Annotate {
        /// Its key.
        key: Box<str>,
        /// Its value.
        value: Box<str>,
    },
    /// An operator, told by an entry in a list of the owner. Nobody takes that back: operators act on it at once.
    Append {
        /// The list.
        list: Box<str>,
        /// The label of the pod whose value is the entry; its name without one.
        label: Option<Box<str>>,
    },
}

/// Where an operator says that it has done its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneWhen {
    /// The list in the owner.
    pub list: Box<str>,
    /// The field of an entry that says whom it is about.
    pub key: Box<str>,
    /// The field that it has once the operator is done.
    pub field: Box<str>,
}

impl Handing {
    /// Whether an operator removes the pod.
    pub fn is_delegated(&self) -> bool {
        !matches!(self, Self::Evict { .. })
    }

    /// Whether somebody is told before the pod goes.
    pub fn tells(&self) -> bool {
        !matches!(self, Self::Evict { handshake: false })
    }
}

/// What becomes of the volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volumes {
    /// They stay.
    Retain,
    /// They are removed.
    Delete {
        /// Only those that cannot leave the node.
        local_only: bool,
        /// Only those of these storage classes; of any if there is none.
        classes: Vec<Box<str>>,
    },
}

/// Something that must be true before a replacement goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its name.
    pub name: Arc<str>,
    /// Before what it is asked.
    pub stage: Stage,
    /// How long it may stay shut, in seconds.
    pub timeout: i64,
    /// What happens then.
    pub on_timeout: OnTimeout,
}

/// What has to be read for a policy. What is not in here need not be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reads {
    /// Nodes.
    pub nodes: bool,
    /// Claims and volumes.
    pub claims: bool,
}

impl Policy {
    /// What has to be read for it. Without a rule about nodes no node is, as upstream without `taintReplacementOptions`.
    pub fn reads(&self) -> Reads {
        let labels = self.budget.by_domain && self.budget.domain_key.is_some();
        let is_on = !self.is_disabled && !self.rules.is_empty();
        Reads {
            nodes: is_on && (self.rules.ask_for_nodes() || labels || self.strategy.needs_feasible_target),
            claims: is_on && self.strategy.volumes != Volumes::Retain,
        }
    }

    /// The budget a member counts in: a bucket, or `None` for the common one.
    pub(super) fn bucket_of(&self, label: impl Fn(&str) -> Option<String>) -> Option<usize> {
        let matches = |asks: &Vec<Requirement>| asks.iter().all(|ask| ask.holds(label(&ask.key).as_deref()));
        self.budget.buckets.iter().position(|(asks, _)| matches(asks))
    }

    /// How many of a bucket at once.
    pub(super) fn max_of(&self, bucket: Option<usize>) -> usize {
        bucket.map_or(self.budget.max, |bucket| self.budget.buckets[bucket].1)
    }
}
