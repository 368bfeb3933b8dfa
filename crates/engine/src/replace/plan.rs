//! All members of a policy at once: who gets a turn, and what comes next for each.
//!
//! Owns the look at all members together, what it comes to for each, and the second look right before an act. Budgets and the
//! order are `desk`'s, the way of one replacement is `advance`'s.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::act::Act;
use super::advance::advance;
use super::cause::Cause;
use super::course::State;
use super::desk::{Desk, Seen, Turn};
use super::facts::{Member, NodeFact, Opening, Target};
use super::memory::Memory;
use super::observe::{Standing, next_change, observe};
use super::policy::Policy;
use super::reason::Reason;
use crate::evict::departure;
use crate::moment::Moment;

/// One member: what is known of it, and what is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'e> {
    /// The member.
    pub member: &'e Member,
    /// Its node.
    pub node: &'e NodeFact,
    /// What is remembered.
    pub memory: &'e Memory,
    /// Another policy speaks of the same pod.
    pub overlaps: bool,
}

/// What is known beyond the members.
#[derive(Clone, Copy, Debug)]
pub struct View<'v> {
    /// Whether replacements may begin now.
    pub window: Opening,
    /// When the last replacement of this policy ended.
    pub last_ended: Option<Moment>,
    /// The workloads.
    pub targets: &'v HashMap<Arc<str>, Target>,
    /// Workloads of which a member is losing its volumes under another policy.
    pub volume_turns: &'v BTreeMap<Arc<str>, usize>,
}

/// What comes next for a member. Write `memory` first; then, for each act in order, read live what it demands,
/// [`confirm`], and act. Stop at the first that is not confirmed or fails: the next look says it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The member.
    pub name: Arc<str>,
    /// How it stands.
    pub state: State,
    /// What to remember.
    pub memory: Memory,
    /// Whether that is anything new.
    pub is_changed: bool,
    /// What to do.
    pub acts: Vec<Act>,
    /// Why it stands so.
    pub reasons: Vec<Reason>,
    /// When to look again if nothing but time passes.
    pub deadline: Moment,
}

/// How the members of a policy stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All members.
    pub matched: usize,
    /// With a cause that has not lasted for long enough.
    pub detected: usize,
    /// Marked, or due.
    pub replacing: usize,
    /// Being replaced.
    pub in_flight: usize,
    /// Of which another policy speaks as well.
    pub overlapping: usize,
    /// Due, and held up.
    pub blocked: usize,
    /// Fault domains.
    pub domains: usize,
    /// Fault domains with members that are marked because of their node.
    pub affected: usize,
    /// How many of these may be.
    pub limit: usize,
}

/// What comes next for all members of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// For each, in the order they were given.
    pub steps: Vec<Step>,
    /// When to look again if nothing but time passes.
    pub deadline: Moment,
    /// How they stand.
    pub tally: Tally,
    /// When the last replacement ended; to be remembered.
    pub last_ended: Option<Moment>,
}

/// Looks at all members of a policy.
pub fn plan(policy: &Policy, view: &View<'_>, entries: &[Entry<'_>], now: Moment) -> Plan {
    let mut seen: Vec<Seen> = entries
        .iter()
        .map(|entry| {
            let mut memory = entry.memory.clone();
            memory.count_the_end(now);
            let standing = observe(policy, entry.member, entry.node, &mut memory, now);
            memory.forgive(policy.budget.retry);
            Seen { memory, standing }
        })
        .collect();
    let mut desk = Desk::new(policy, view, entries, &seen, now);
    let admitted = desk.admit(&seen);
    let mut steps = Vec::with_capacity(entries.len());
    for (index, (entry, seen)) in entries.iter().zip(&mut seen).enumerate() {
        steps.push(desk.step(index, entry, std::mem::take(&mut seen.memory), seen.standing, &admitted));
    }
    desk.conclude(steps)
}

/// Decides once more right before an act, by what was read live. `entries` hold what was read and what has been written down.
///
/// # Errors
/// Everything that speaks against it.
pub fn confirm(
    act: &Act,
    name: &str,
    policy: &Policy,
    view: &View<'_>,
    entries: &[Entry<'_>],
    now: Moment,
) -> Result<(), Vec<Reason>> {
    let steps = plan(policy, view, entries, now).steps;
    match steps.into_iter().find(|step| &*step.name == name) {
        Some(step) if step.acts.contains(act) => Ok(()),
        Some(step) => Err(step.reasons),
        None => Err(vec![Reason::PodUnknown]),
    }
}

impl<'d> Desk<'d> {
    fn step(
        &mut self,
        index: usize,
        entry: &Entry<'d>,
        mut memory: Memory,
        standing: Standing,
        turns: &BTreeMap<usize, Turn>,
    ) -> Step {
        let mut acts = Vec::new();
        let mut reasons = Vec::new();
        let mut state = self.tell_standing(&memory, standing, &mut reasons);
        let mut deadline = next_change(&memory.sightings, self.now);
        if let Some(mut course) = memory.course.take() {
            let was_under_way = !course.phase.is_an_end();
            let company = self.company_of(entry.member);
            let progress = advance(&self.scene(entry, &company, course.members), &memory, &mut course);
            acts = progress.acts;
            if was_under_way {
                state = State::Course(course.phase);
                reasons = progress.reasons;
                deadline = Moment::NEVER;
            }
            if was_under_way && course.phase.is_an_end() {
                // Its place is free from the next look on, which is at once.
                deadline = self.now;
                self.last_ended = self.last_ended.max(course.ended);
            }
            // It is counted once it is written: what was not may still be decided otherwise.
            memory.course = Some(course);
        }
        match turns.get(&index) {
            None => {}
            Some(Turn::Waits(why)) => {
                self.tally.blocked += 1;
                reasons.extend(why.iter().cloned());
            }
            Some(Turn::Begins(_)) if !self.policy.is_enforced => {
                self.tally.blocked += 1;
                reasons.push(Reason::DryRun);
            }
            Some(Turn::Begins(course)) => {
                state = State::Course(course.phase);
                acts.insert(0, Act::Begin);
                memory.course = Some((**course).clone());
                deadline = self.now;
            }
        }
        let is_removed = memory.under_way().is_some_and(|course| course.removed.is_some());
        let is_held = reasons.iter().any(Reason::holds);
        let race = race(entry, &memory, is_held, self.now).filter(|_| !is_removed);
        // It is never the last, which is what is told where nothing holds.
        reasons.splice(0..0, race);
        for reason in &reasons {
            let until = reason.until();
            if until > self.now {
                deadline = deadline.min(until);
            }
        }
        let is_changed = memory != *entry.memory;
        Step { name: Arc::clone(&entry.member.name), state, memory, is_changed, acts, reasons, deadline }
    }

    fn tell_standing(&self, memory: &Memory, standing: Standing, reasons: &mut Vec<Reason>) -> State {
        if self.policy.is_disabled {
            reasons.push(Reason::Disabled);
        }
        for sighting in &memory.sightings {
            let (cause, since) = (sighting.cause.clone(), sighting.since);
            reasons.push(match sighting.due_at() {
                None => Reason::Seen { cause, since, marked_at: sighting.marked_at() },
                Some(at) if at > self.now => Reason::Marked { cause, since, due_at: at },
                Some(since) => Reason::Due { cause, since },
            });
        }
        match standing {
            Standing::Healthy => State::Healthy,
            Standing::Detected { .. } => State::Detected,
            Standing::Replacing { .. } => State::Replacing,
            Standing::Due { .. } => State::Queued,
        }
    }

    fn conclude(self, steps: Vec<Step>) -> Plan {
        let deadline = steps.iter().map(|step| step.deadline).min().unwrap_or(Moment::NEVER);
        Plan { steps, deadline, tally: self.tally, last_ended: self.last_ended }
    }
}

/// Whether Kubernetes deletes the pod before we are done waiting: then budgets and gates say nothing. Who is held up may wait
/// for any time.
fn race(entry: &Entry<'_>, memory: &Memory, is_held: bool, now: Moment) -> Option<Reason> {
    let (NodeFact::Present(node), Some(pod)) = (entry.node, entry.member.pod()) else { return None };
    let ours = memory.sightings.iter().map(super::Sighting::due_at_the_earliest).min()?;
    let ours = if is_held { Moment::NEVER } else { ours.max(now) };
    let arrived = pod.arrived.unwrap_or(Moment::PAST);
    let since = |index: usize| {
        let taint = &node.taints[index];
        let of = |sighting: &&super::Sighting| match &sighting.cause {
            Cause::Taint { key, effect, .. } => *key == taint.key && *effect == taint.effect,
            _ => false,
        };
        let seen = memory.sightings.iter().find(of).map(|sighting| sighting.since);
        seen.or(taint.added).unwrap_or(node.created).max(arrived)
    };
    let leave = departure(&node.taints, since, &pod.tolerations)?;
    let taint = &node.taints[leave.taint];
    let cause =
        Cause::Taint { key: taint.key.clone(), value: taint.value.clone(), effect: taint.effect.clone() };
    (leave.at <= ours).then_some(Reason::TaintEvictionRace { cause, at: leave.at })
}
