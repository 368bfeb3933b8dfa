//! What the taints of a node come to for a pod: from when on it must leave, by what way, and who says so.
//!
//! Each taint is judged by itself, with the policy that counts for it. Whichever comes first takes the pod away, so a policy
//! that holds pods for one taint says nothing about another.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_api::names::node_taint::DRAIN;

use super::book::Book;
use super::keep::Keep;
use super::rule::{Rule, Way};
use crate::evict::Tainted;
use crate::moment::Moment;
use crate::taint::{Lasting, NodeEffect, Policy, Toleration, lasting};

/// The kind of owner whose pods belong to their node, and stay when it is drained.
const DAEMON_SET: &str = "DaemonSet";

/// What is to be known of a pod.
#[derive(Clone, Copy, Debug)]
pub struct PodFacts<'p> {
    /// Its namespace.
    pub namespace: &'p str,
    /// The labels of its namespace; `None` where they are not known.
    pub namespace_labels: Option<&'p BTreeMap<String, String>>,
    /// Its labels, in order.
    pub labels: &'p [(Arc<str>, Arc<str>)],
    /// The kind of its controller.
    pub owner_kind: Option<&'p str>,
    /// What it tolerates.
    pub tolerations: &'p [Toleration<NodeEffect>],
    /// Since when it is on its node.
    pub arrived: Moment,
}

/// Who says that a pod leaves, and how.
#[derive(Clone, Debug)]
pub enum Authority {
    /// Nobody in particular: it is Kubernetes' rule.
    Kubernetes,
    /// Somebody empties the node.
    Drain,
    /// A policy.
    Policy(Arc<Rule>),
}

impl Authority {
    /// The policy, if it is one.
    pub fn rule(&self) -> Option<&Arc<Rule>> {
        match self {
            Self::Policy(rule) => Some(rule),
            Self::Kubernetes | Self::Drain => None,
        }
    }
}

impl PartialEq for Authority {
    /// Whether it is the same one, in whatever state.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Kubernetes, Self::Kubernetes) | (Self::Drain, Self::Drain) => true,
            (Self::Policy(one), Self::Policy(other)) => one.name == other.name,
            _ => false,
        }
    }
}

/// How a pod leaves now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is deleted.
    Delete,
    /// It is evicted, if its budget lets it go.
    Evict,
    /// It stays.
    Hold(Keep),
}

/// That a pod must leave because of one taint.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The taint, by its place in the node's list.
    pub taint: usize,
    /// The toleration that ends, by its place in the pod's list; `None` where none speaks of the taint.
    pub by: Option<usize>,
    /// From when on.
    pub at: Moment,
    /// Who says how.
    pub authority: Authority,
    /// How.
    pub act: Act,
    /// Until when its budget is asked, where that has an end.
    pub deadline: Option<Moment>,
    /// When time alone changes how.
    pub turns: Option<Moment>,
    /// Other policies that select the pod as well, and do not count.
    pub others: Vec<Arc<str>>,
}

/// Why a pod must leave at `now`, the earliest first; nothing if it may stay. The result depends on its arguments alone.
pub fn demands(pod: &PodFacts<'_>, tainted: &Tainted, book: &Book, now: Moment) -> Vec<Demand> {
    if book.is_empty() && !tainted.is_drained() {
        let leave = tainted.leave(pod.tolerations, pod.arrived);
        return leave.map(|leave| plain(leave.taint, leave.by, leave.at)).into_iter().collect();
    }
    let taints = tainted.taints().iter().zip(tainted.since()).enumerate();
    let mut demands: Vec<Demand> = taints
        .filter_map(|(index, (taint, since))| {
            let is_drain = &*taint.key == DRAIN;
            if is_drain && pod.owner_kind == Some(DAEMON_SET) {
                return None;
            }
            let own = match lasting(taint, pod.tolerations, Policy::FirstMatch) {
                Lasting::Forever => return None,
                Lasting::Not => 0,
                Lasting::Seconds(seconds) => seconds.max(0),
            };
            let by = pod.tolerations.iter().position(|toleration| toleration.matches(taint));
            let from = (*since).max(pod.arrived);
            let demand = match book.governing(pod, taint) {
                Some(governing) => {
                    let others = governing.others.iter().map(|rule| Arc::clone(&rule.name)).collect();
                    let Order { at, act, deadline, turns } =
                        ordered(governing.rule, governing.is_certain, from, own, now);
                    let authority = Authority::Policy(Arc::clone(governing.rule));
                    Demand { taint: index, by, at, authority, act, deadline, turns, others }
                }
                None if is_drain => Demand {
                    authority: Authority::Drain,
                    act: Act::Evict,
                    ..plain(index, by, from.plus_seconds(own))
                },
                None => plain(index, by, from.plus_seconds(own)),
            };
            // A toleration that outlasts all of time is one for ever.
            (demand.at < Moment::NEVER).then_some(demand)
        })
        .collect();
    demands.sort_by_key(|demand| demand.at);
    demands
}

/// Kubernetes' rule.
fn plain(taint: usize, by: Option<usize>, at: Moment) -> Demand {
    Demand {
        taint,
        by,
        at,
        authority: Authority::Kubernetes,
        act: Act::Delete,
        deadline: None,
        turns: None,
        others: Vec::new(),
    }
}

/// What a policy wants of a pod because of one taint: see [`Demand`].
struct Order {
    at: Moment,
    act: Act,
    deadline: Option<Moment>,
    turns: Option<Moment>,
}

impl Order {
    /// It stays, whatever time passes.
    fn hold(at: Moment, keep: Keep) -> Self {
        Self { at, act: Act::Hold(keep), deadline: None, turns: None }
    }
}

/// What a policy makes of a taint that counts from `from` and that the pod itself would tolerate for `own` seconds.
fn ordered(rule: &Rule, is_certain: bool, from: Moment, own: i64, now: Moment) -> Order {
    let Ok(orders) = &rule.orders else {
        return Order::hold(from.plus_seconds(own), Keep::Misconfigured);
    };
    let seconds = orders.toleration_seconds.unwrap_or(own);
    let at = from.plus_seconds(seconds).plus_seconds(orders.delay_seconds);
    if !is_certain {
        return Order::hold(at, Keep::NamespaceUnknown);
    }
    let (act, deadline) = match orders.way {
        Way::Delete => (Act::Delete, None),
        Way::Hold => return Order::hold(at, Keep::ByPolicy),
        Way::Evict { deadline: None } => (Act::Evict, None),
        Way::Evict { deadline: Some((seconds, is_deleted)) } => {
            // Counted from when the budget could first be asked, or who is due at night would never be evicted by day. From
            // there on it counts whether or not a window is open, or short ones would put it off for weeks.
            let end = orders.windows.next_open(at).unwrap_or(at).plus_seconds(seconds);
            match (end <= now, is_deleted) {
                (false, _) => (Act::Evict, Some(end)),
                (true, true) => (Act::Delete, None),
                (true, false) => return Order::hold(at, Keep::DeadlinePassed),
            }
        }
    };
    // Who is not due yet is judged by the windows there are when it will be.
    let then = at.max(now);
    let (act, change) = if let Some(closes) = orders.windows.open_until(then) {
        (act, closes)
    } else {
        let opens = orders.windows.next_opening(then).unwrap_or(Moment::NEVER);
        (Act::Hold(Keep::Window { opens }), opens)
    };
    let change = Some(change).filter(|change| change.is_finite());
    Order { at, act, deadline, turns: deadline.into_iter().chain(change).min() }
}

/// Whether it matters to a pod from when on a taint counts that does not say so: then that should be written down.
pub(in crate::evict) fn needs_time(pod: &PodFacts<'_>, tainted: &Tainted, book: &Book) -> bool {
    if tainted.needs_time(pod.tolerations) {
        return true;
    }
    if book.is_empty() {
        return false;
    }
    tainted.timeless().any(|taint| {
        let may_leave = lasting(taint, pod.tolerations, Policy::FirstMatch) != Lasting::Forever;
        let counts = |rule: &Rule| {
            rule.orders.as_ref().is_ok_and(|orders| {
                orders.toleration_seconds.is_some_and(|seconds| seconds > 0)
                    || orders.delay_seconds > 0
                    || matches!(orders.way, Way::Evict { deadline: Some(_) })
            })
        };
        may_leave && book.governing(pod, taint).is_some_and(|governing| counts(governing.rule))
    })
}

#[cfg(test)]
mod tests;
