//! Looking at a member: what is wrong with it, since when, and what that comes to.
//!
//! Owns the clocks. Each cause has its own, which counts from when the object says it began, as far as that can be believed,
//! or from when it was first seen. They run as upstream's do: strictly more than so many whole seconds, and the second wait
//! begins when the first was seen to be over.

use std::sync::Arc;

use super::cause::{Cause, Sighting, Source};
use super::facts::{Condition, Known, Member, Node, NodeFact, Pod};
use super::memory::Memory;
use super::policy::Policy;
use super::rule::{ConditionRule, Timing};
use crate::evict::{counted_from, twin};
use crate::moment::Moment;
use crate::taint::{Lasting, NodeEffect, Policy as Choice, Taint, lasting};

/// What the causes of a member come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There are none.
    Healthy,
    /// None has lasted for long enough.
    Detected {
        /// When the first will have.
        marked_at: Moment,
    },
    /// One has, and the member waits its time.
    Replacing {
        /// When it is due.
        due_at: Moment,
    },
    /// It is due.
    Due {
        /// Since when.
        since: Moment,
        /// Because of which sighting.
        by: usize,
    },
}

/// Looks at a member, and brings what is remembered of it up to date.
///
/// What is not known changes nothing: neither a node that cannot be read nor a pod. A pod that is gone, has no node yet, or
/// has another identity takes its clocks with it.
pub fn observe(
    policy: &Policy,
    member: &Member,
    node: &NodeFact,
    memory: &mut Memory,
    now: Moment,
) -> Standing {
    let now_whole = now.cut_to_second();
    if policy.is_disabled {
        memory.sightings.clear();
        return Standing::Healthy;
    }
    let Known::Known(pod) = &member.pod else { return standing(&memory.sightings, now) };
    let Some(pod) = pod else {
        memory.sightings.clear();
        (memory.uid, memory.domain) = (None, None);
        return Standing::Healthy;
    };
    if memory.uid.as_ref() != Some(&pod.uid) {
        memory.uid = Some(Arc::clone(&pod.uid));
        memory.sightings.clear();
        memory.domain = None;
    }
    if let Some(domain) = domain_of(policy, pod, node) {
        memory.domain = Some(domain);
    }
    let mut look = Look { before: std::mem::take(&mut memory.sightings), found: Vec::new(), now: now_whole };
    look.at_the_pod(policy, pod);
    match (node, &pod.node) {
        // Nothing new is known, so nothing is forgotten.
        (NodeFact::Unknown, Some(_)) => look.keep_what_is_of_the_node(policy),
        (_, None) => {}
        (NodeFact::Missing, Some(_)) => look.at_the_gap(policy),
        (NodeFact::Present(node), Some(_)) => look.at_the_node(policy, pod, node),
    }
    memory.sightings = look.found;
    memory.sightings.sort_unstable_by(|one, other| one.cause.cmp(&other.cause));
    for sighting in &mut memory.sightings {
        if sighting.replacing.is_none() && sighting.marked_at() <= now {
            sighting.replacing = Some(now_whole);
        }
    }
    standing(&memory.sightings, now)
}

/// What sightings come to.
fn standing(sightings: &[Sighting], now: Moment) -> Standing {
    let due = sightings.iter().enumerate().filter_map(|(by, sighting)| Some((sighting.due_at()?, by)));
    match due.min() {
        Some((since, by)) if since <= now => Standing::Due { since, by },
        Some((due_at, _)) => Standing::Replacing { due_at },
        None => match sightings.iter().map(Sighting::marked_at).min() {
            Some(marked_at) => Standing::Detected { marked_at },
            None => Standing::Healthy,
        },
    }
}

/// When time alone changes what sightings come to.
pub(super) fn next_change(sightings: &[Sighting], now: Moment) -> Moment {
    let changes = sightings.iter().map(|sighting| match sighting.due_at() {
        Some(due_at) => due_at,
        None => sighting.marked_at(),
    });
    changes.filter(|at| *at > now).min().unwrap_or(Moment::NEVER)
}

/// The fault domain of a pod's node.
fn domain_of(policy: &Policy, pod: &Pod, node: &NodeFact) -> Option<Arc<str>> {
    let name = pod.node.as_ref()?;
    match (&policy.budget.domain_key, node) {
        (None, _) => Some(Arc::clone(name)),
        (Some(key), NodeFact::Present(node)) => {
            node.labels.get(key).filter(|value| !value.is_empty()).map(|value| Arc::from(&**value))
        }
        (Some(_), _) => None,
    }
}

/// A look at one member.
struct Look {
    before: Vec<Sighting>,
    found: Vec<Sighting>,
    now: Moment,
}

impl Look {
    fn at_the_pod(&mut self, policy: &Policy, pod: &Pod) {
        for rule in &policy.rules.pod_conditions {
            if let Some(told) = said(&pod.conditions, rule) {
                let cause =
                    Cause::PodCondition { condition: rule.condition.clone(), status: rule.status.clone() };
                self.see(cause, told.since, Moment::PAST, rule.timing, &rule.place, true);
            }
        }
    }

    fn at_the_gap(&mut self, policy: &Policy) {
        if let Some(rule) = &policy.rules.node_missing {
            self.see(Cause::NodeMissing, None, Moment::PAST, rule.timing, &rule.place, true);
        }
    }

    fn at_the_node(&mut self, policy: &Policy, pod: &Pod, node: &Node) {
        // Nothing of a node weighs on a pod from before the pod was there.
        let not_before =
            pod.arrived.map_or(node.created, |arrived| arrived.cut_to_second().max(node.created));
        for taint in &node.taints {
            if let Some((rule, timing)) = policy.rules.about(taint)
                && (policy.rules.tolerated_count || !is_tolerated(taint, pod))
            {
                let cause = Cause::Taint {
                    key: taint.key.clone(),
                    value: taint.value.clone(),
                    effect: taint.effect.clone(),
                };
                self.see(cause, taint.added, not_before, timing, &rule.place, rule.is_permanent);
            }
        }
        if let Some(rule) = policy.rules.cordon.as_ref().filter(|_| node.is_cordoned) {
            self.see(Cause::Cordon, None, not_before, rule.timing, &rule.place, true);
        }
        for rule in &policy.rules.node_conditions {
            if let Some(told) = said(&node.conditions, rule) {
                let cause =
                    Cause::NodeCondition { condition: rule.condition.clone(), status: rule.status.clone() };
                self.see(cause, told.since, not_before, rule.timing, &rule.place, true);
            }
        }
    }

    /// A cause is there.
    fn see(
        &mut self,
        cause: Cause,
        added: Option<Moment>,
        not_before: Moment,
        timing: Timing,
        place: &str,
        is_permanent: bool,
    ) {
        // What is finer than a second is never taken for earlier than it is.
        let added = added.map(Moment::to_whole_second);
        let known = self.before.iter().find(|before| before.cause == cause);
        // Taken off and put on again while nobody looked: it counts anew. Where nobody had written a time before, one that
        // appears later says nothing new.
        let is_another = known.is_some_and(|known| {
            known.source == Source::TimeAdded && added.is_some_and(|at| at > known.since)
        });
        let known = known.filter(|_| !is_another);
        // A clock that was set back must not stretch a wait for as long as it was ahead.
        let first_seen = known.map_or(self.now, |known| known.since.min(self.now));
        let counted = counted_from(added, not_before, first_seen);
        let twin = self.twin_of(&cause).filter(|twin| twin.since < counted);
        let since = twin.map_or(counted, |twin| twin.since);
        let source = match known {
            // What this one says of itself is later, and would start the clock anew at the next look.
            _ if twin.is_some() => Source::FirstSeen,
            Some(known) if since == known.since => known.source,
            None if added.is_none() => Source::FirstSeen,
            Some(known) if added.is_none() => known.source,
            // A time ahead of the first sighting is not believed.
            _ if added.is_some_and(|added| added > first_seen) => Source::FirstSeen,
            _ => Source::TimeAdded,
        };
        let marked = known.or(twin).and_then(|before| before.replacing);
        let replacing = marked.map(|at| at.min(self.now));
        // A rule that waits longer than the one before takes the mark back.
        let mut sighting =
            Sighting { cause, since, source, replacing, timing, rule: place.into(), is_permanent };
        if sighting.marked_at() > self.now {
            sighting.replacing = None;
        }
        self.found.push(sighting);
    }

    /// The other of the two taints of which one takes the other's place: a node that was not ready and falls silent has been
    /// away all along.
    fn twin_of(&self, cause: &Cause) -> Option<&Sighting> {
        let Cause::Taint { key, effect, .. } = cause else { return None };
        let twin = twin(key)?;
        let is_twin = |before: &&Sighting| matches!(&before.cause, Cause::Taint { key, effect: of, .. } if &**key == twin && of == effect);
        self.before.iter().find(is_twin)
    }

    /// The node cannot be looked at: what was seen of it stays, as long as the policy still speaks of it.
    fn keep_what_is_of_the_node(&mut self, policy: &Policy) {
        let before = std::mem::take(&mut self.before);
        self.found.extend(before.into_iter().filter_map(|mut sighting| {
            let (timing, place, is_permanent) = rule_of(policy, &sighting.cause)?;
            (sighting.timing, sighting.rule, sighting.is_permanent) = (timing, place.into(), is_permanent);
            Some(sighting)
        }));
    }
}

/// The waits for a cause of the node, where they are written, and whether the node is given up; `None` where the policy does
/// not speak of it.
fn rule_of<'p>(policy: &'p Policy, cause: &Cause) -> Option<(Timing, &'p str, bool)> {
    let rules = &policy.rules;
    match cause {
        Cause::Taint { key, value, effect } => {
            let taint = Taint { key: key.clone(), value: value.clone(), effect: effect.clone(), added: None };
            rules.about(&taint).map(|(rule, timing)| (timing, &*rule.place, rule.is_permanent))
        }
        Cause::Cordon => rules.cordon.as_ref().map(|rule| (rule.timing, &*rule.place, true)),
        Cause::NodeMissing => rules.node_missing.as_ref().map(|rule| (rule.timing, &*rule.place, true)),
        Cause::NodeCondition { condition, status } => {
            let rule = |rule: &&ConditionRule| rule.condition == *condition && rule.status == *status;
            rules.node_conditions.iter().find(rule).map(|rule| (rule.timing, &*rule.place, true))
        }
        Cause::PodCondition { .. } => None,
    }
}

fn said<'c>(conditions: &'c [Condition], rule: &ConditionRule) -> Option<&'c Condition> {
    let is_it = |told: &&Condition| told.condition == rule.condition && told.status == rule.status;
    conditions.iter().find(is_it)
}

/// Whether a pod puts up with a taint for ever.
fn is_tolerated(taint: &Taint<NodeEffect>, pod: &Pod) -> bool {
    lasting(taint, &pod.tolerations, Choice::FirstMatch) == Lasting::Forever
}
