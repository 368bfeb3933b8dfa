//! How a policy stands, from a count of its pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_api::eviction_policy::status::{
    EvictionHold, EvictionPolicyStatus, HOLDS_MAX, NEXT_MAX, NextEviction,
};
use berth_api::names::{condition, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::keep::Keep;
use super::rule::Rule;
use crate::condition::{Status, Wanted, merged};
use crate::moment::Moment;

/// The most complaints that a condition repeats; the rest is counted.
const COMPLAINTS_TOLD_MAX: usize = 8;
/// The longest message about a pod, in characters: budgets and gates speak in their own words.
const MESSAGE_CHARS_MAX: usize = 512;
/// The most other policies that a condition names.
const OTHERS_TOLD_MAX: usize = 8;

/// Why pods are held: the word for it, and the gate or the zone if it is one.
type Reason = (&'static str, Option<Arc<str>>, Option<Arc<str>>);

/// The pods of a policy, counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    matched: usize,
    waiting: usize,
    leaving: usize,
    failed: usize,
    spared: usize,
    held: usize,
    /// The next to go: never more than are told.
    next: BTreeSet<(Moment, String)>,
    holds: BTreeMap<Reason, (usize, String, String)>,
    /// Policies that select pods of this one, and do not count for them; with one such pod.
    less: BTreeMap<Arc<str>, String>,
    /// Policies that count for pods this one selects as well; with one such pod.
    more: BTreeMap<Arc<str>, String>,
}

impl Tally {
    /// A pod that will go at a moment, or waits for its turn since then.
    pub fn waits(&mut self, pod: &str, at: Moment) {
        self.matched += 1;
        self.waiting += 1;
        self.next.insert((at, pod.to_owned()));
        if self.next.len() > NEXT_MAX {
            self.next.pop_last();
        }
    }

    /// A pod that is due and stays.
    pub fn is_held(&mut self, pod: &str, keep: &Keep) {
        self.matched += 1;
        self.held += 1;
        let hold = self
            .holds
            .entry((keep.word(), keep.gate().cloned(), keep.zone().cloned()))
            .or_insert_with(|| {
                let message = keep.to_string().chars().take(MESSAGE_CHARS_MAX).collect();
                (0, pod.to_owned(), message)
            });
        hold.0 += 1;
    }

    /// A pod that is on its way out.
    pub fn leaves(&mut self) {
        self.matched += 1;
        self.leaving += 1;
    }

    /// A pod that could not be evicted.
    pub fn fails(&mut self) {
        self.matched += 1;
        self.failed += 1;
    }

    /// A pod that would have gone.
    pub fn is_spared(&mut self) {
        self.matched += 1;
        self.spared += 1;
    }

    /// Another policy selects a pod of this one.
    pub fn stands_before(&mut self, other: &Arc<str>, pod: &str) {
        self.less.entry(Arc::clone(other)).or_insert_with(|| pod.to_owned());
    }

    /// Another policy counts for a pod that this one selects.
    pub fn stands_behind(&mut self, other: &Arc<str>, pod: &str) {
        self.more.entry(Arc::clone(other)).or_insert_with(|| pod.to_owned());
    }

    /// How many pods it has.
    pub fn matched(&self) -> usize {
        self.matched
    }

    /// How many are on their way out.
    pub fn leaving(&self) -> usize {
        self.leaving
    }

    /// How many are held, by the word for why and the gate.
    pub fn holds(&self) -> impl Iterator<Item = (&'static str, Option<&str>, usize)> {
        self.holds.iter().map(|((word, gate, _), (count, ..))| (*word, gate.as_deref(), *count))
    }
}

/// The status of a policy whose pods are so, and of which `evicted` have gone in all.
pub fn standing(
    rule: &Rule,
    tally: &Tally,
    evicted: i64,
    before: Option<&EvictionPolicyStatus>,
    now: Moment,
) -> EvictionPolicyStatus {
    let count = |count: usize| Some(i64::try_from(count).unwrap_or(i64::MAX));
    let known = before.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let conditions = [accepted(rule), overlapped(rule, tally)];
    let conditions =
        conditions.into_iter().fold(known.to_vec(), |known: Vec<Condition>, wanted| {
            match wanted.unless_said(&known, now) {
                Some(condition) => merged(&known, condition),
                None => known,
            }
        });
    let next = tally.next.iter().filter_map(|(at, pod)| {
        // What an object can hold is whole seconds.
        Some(NextEviction { pod: pod.clone(), at: Time(at.to_whole_second().timestamp()?) })
    });
    let holds = tally.holds.iter().take(HOLDS_MAX).map(|((word, gate, zone), (count, example, message))| {
        EvictionHold {
            reason: (*word).to_owned(),
            gate: gate.as_deref().map(str::to_owned),
            zone: zone.as_deref().map(str::to_owned),
            count: i64::try_from(*count).unwrap_or(i64::MAX),
            example: example.clone(),
            message: message.clone(),
        }
    });
    EvictionPolicyStatus {
        observed_generation: Some(rule.generation),
        conditions: Some(conditions),
        matched: count(tally.matched),
        waiting: count(tally.waiting),
        held: count(tally.held),
        leaving: count(tally.leaving),
        failed: count(tally.failed),
        evicted: Some(evicted),
        spared: rule
            .orders
            .as_ref()
            .is_ok_and(|orders| orders.is_dry_run)
            .then(|| count(tally.spared))
            .flatten(),
        next: Some(next.collect::<Vec<_>>()).filter(|next| !next.is_empty()),
        holds: Some(holds.collect::<Vec<_>>()).filter(|holds| !holds.is_empty()),
    }
}

fn accepted(rule: &Rule) -> Wanted<'static> {
    let (status, reason, message) = match &rule.orders {
        Ok(_) => (Status::True, reason::ACCEPTED, "the policy is obeyed".to_owned()),
        Err(complaints) => {
            let told = complaints.iter().take(COMPLAINTS_TOLD_MAX);
            let told: Vec<String> =
                told.map(|complaint| format!("{}: {}", complaint.path, complaint.message)).collect();
            let more = complaints.len().saturating_sub(COMPLAINTS_TOLD_MAX);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let message =
                format!("the pods it selects are held until it is mended: {}{more}", told.join("; "));
            (Status::False, reason::MISCONFIGURED, message)
        }
    };
    Wanted { kind: condition::ACCEPTED, status, reason, message, generation: Some(rule.generation) }
}

fn overlapped(rule: &Rule, tally: &Tally) -> Wanted<'static> {
    let told = |others: &BTreeMap<Arc<str>, String>| {
        let named = others.iter().take(OTHERS_TOLD_MAX);
        named.map(|(name, pod)| format!("{name} (as for {pod})")).collect::<Vec<_>>().join(", ")
    };
    let mut parts = Vec::new();
    if !tally.more.is_empty() {
        parts.push(format!("more specific, and obeyed in its place: {}", told(&tally.more)));
    }
    if !tally.less.is_empty() {
        parts.push(format!("less specific, and not obeyed where both select a pod: {}", told(&tally.less)));
    }
    let (status, reason) = match (tally.more.is_empty(), tally.less.is_empty()) {
        (false, _) => (Status::True, reason::LESS_SPECIFIC),
        (true, false) => (Status::True, reason::MORE_SPECIFIC),
        (true, true) => (Status::False, reason::ALONE),
    };
    let message =
        if parts.is_empty() { "no other policy selects its pods".to_owned() } else { parts.join("; ") };
    Wanted { kind: condition::OVERLAPPED, status, reason, message, generation: Some(rule.generation) }
}

#[cfg(test)]
mod tests {
    use berth_api::EvictionPolicy;
    use serde_json::{Value, json};

    use super::*;
    use crate::evict::policy::compile;
    use crate::evict::{Domain, Hold};
    use crate::gate::{Shut, Why};

    const NOW: Moment = Moment::from_second(1_700_000_000);

    fn rule(spec: Value) -> Rule {
        let mut policy = EvictionPolicy::new("p");
        policy.metadata.generation = Some(3);
        policy.spec = serde_json::from_value(spec).unwrap();
        compile(&policy)
    }

    fn told<'s>(status: &'s EvictionPolicyStatus, kind: &str) -> (&'s str, &'s str, &'s str) {
        let found = status.conditions.iter().flatten().find(|condition| condition.type_ == kind).unwrap();
        (&found.status, &found.reason, &found.message)
    }

    #[test]
    fn everybody_is_counted_once_and_only_the_first_are_named() {
        let mut tally = Tally::default();
        for number in (0..30).rev() {
            tally.waits(&format!("n/p{number}"), NOW.plus_seconds(number));
        }
        let shut = Shut { gate: "safe".into(), why: Why::False };
        tally.is_held("n/a", &Keep::Gate(shut.clone()));
        tally.is_held("n/b", &Keep::Gate(shut));
        tally.is_held("n/c", &Keep::ByPolicy);
        tally.leaves();
        let status = standing(&rule(json!({"way": "Delete"})), &tally, 7, None, NOW);
        let counts =
            [status.matched, status.waiting, status.held, status.leaving, status.evicted, status.spared];
        assert_eq!(counts, [Some(34), Some(30), Some(3), Some(1), Some(7), None]);
        let next: Vec<String> = status.next.iter().flatten().map(|next| next.pod.clone()).collect();
        assert_eq!((next.len(), &*next[0], &*next[9]), (NEXT_MAX, "n/p0", "n/p9"));
        let holds: Vec<_> = status.holds.iter().flatten().collect();
        assert_eq!(
            (holds.len(), &*holds[0].reason, holds[0].gate.as_deref(), holds[0].count),
            (2, "Gate", Some("safe"), 2)
        );
        assert_eq!(told(&status, "Accepted"), ("True", "Accepted", "the policy is obeyed"));
        assert_eq!(told(&status, "Overlapped"), ("False", "Alone", "no other policy selects its pods"));
    }

    #[test]
    fn what_breakers_hold_is_counted_by_zone_with_the_share_that_is_affected() {
        let open = |zone: &str| Hold::BreakerOpen {
            domain: Domain::Zone(zone.into()),
            affected: 3,
            total: 5,
            until: None,
        };
        let mut tally = Tally::default();
        for (pod, zone) in [("n/a", "west"), ("n/b", "east"), ("n/c", "west")] {
            tally.is_held(pod, &Keep::bound(open(zone)).unwrap());
        }
        let status = standing(&rule(json!({"way": "Delete"})), &tally, 0, None, NOW);
        let told: Vec<_> = status
            .holds
            .iter()
            .flatten()
            .map(|hold| (&*hold.reason, hold.zone.as_deref(), hold.count, &*hold.message))
            .collect();
        assert_eq!(
            told,
            [
                ("Breaker", Some("east"), 1, "3 of 5 in zone east are affected, which is too many at once"),
                ("Breaker", Some("west"), 2, "3 of 5 in zone west are affected, which is too many at once"),
            ]
        );
        assert_eq!((status.held, status.waiting), (Some(3), Some(0)));
    }

    #[test]
    fn a_policy_that_cannot_be_understood_says_why_and_what_becomes_of_its_pods() {
        let status = standing(&rule(json!({"way": "Push"})), &Tally::default(), 0, None, NOW);
        assert_eq!(
            told(&status, "Accepted"),
            (
                "False",
                "Misconfigured",
                "the pods it selects are held until it is mended: spec.way: \"Push\" is not known: allowed are \"Delete\", \
                 \"Evict\", \"Hold\"",
            )
        );
    }

    #[test]
    fn who_stands_before_whom_is_told_to_both() {
        let mut tally = Tally::default();
        tally.stands_before(&"wide".into(), "n/a");
        let status = standing(&rule(json!({"way": "Delete"})), &tally, 0, None, NOW);
        assert_eq!(told(&status, "Overlapped").1, "MoreSpecific");
        tally.stands_behind(&"narrow".into(), "n/b");
        let status = standing(&rule(json!({"way": "Delete"})), &tally, 0, None, NOW);
        assert_eq!(
            told(&status, "Overlapped"),
            (
                "True",
                "LessSpecific",
                "more specific, and obeyed in its place: narrow (as for n/b); less specific, and not obeyed where both select a pod: \
                 wide (as for n/a)",
            )
        );
    }

    #[test]
    fn saying_it_again_changes_nothing() {
        let rule = rule(json!({"way": "Delete"}));
        let first = standing(&rule, &Tally::default(), 0, None, NOW);
        let second = standing(&rule, &Tally::default(), 0, Some(&first), NOW.plus_seconds(60));
        assert_eq!(first, second);
    }
}
