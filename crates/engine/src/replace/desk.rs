//! Who gets a turn: the budgets of a policy, and the order in which members that are due are let in.
//!
//! Owns what is counted over all members together. Places are counted from what is written down, never from what is about to
//! be: a replacement that ends in this look frees its place in the next one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_api::replacement::Stage;

use super::cause::Cause;
use super::course::{Course, Phase};
use super::facts::{Known, Member, Opening, Pod, Sure, Target};
use super::memory::Memory;
use super::observe::Standing;
use super::plan::{Entry, Tally, View};
use super::policy::Policy;
use super::reason::Reason;
use super::safety::{Intent, Scene};
use super::subject::{Subject, subject};
use crate::moment::Moment;

/// A member after a look at it.
pub(super) struct Seen {
    pub(super) memory: Memory,
    pub(super) standing: Standing,
}

/// A budget and who is in it.
#[derive(Default)]
struct Purse {
    in_flight: usize,
    domains: BTreeSet<Arc<str>>,
}

/// What is decided over all members together.
pub(super) struct Desk<'d> {
    pub(super) policy: &'d Policy,
    pub(super) view: &'d View<'d>,
    pub(super) entries: &'d [Entry<'d>],
    pub(super) now: Moment,
    purses: BTreeMap<Option<usize>, Purse>,
    /// Members that lose their volumes.
    volume_turns: Vec<Arc<str>>,
    /// Members being replaced, by workload.
    in_flight: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Replacements under way for which the budget has no place any more, by member: it was lowered since they began.
    beyond: BTreeMap<Arc<str>, Reason>,
    /// The workloads of the members, where there are several.
    company: Vec<(Arc<str>, &'d Target)>,
    pub(super) last_ended: Option<Moment>,
    pub(super) tally: Tally,
}

/// What nobody knows anything of.
static UNKNOWN: Target =
    Target { unready: Known::Unknown, muster: None, is_settled: Sure::Unknown, is_silent: false };

/// What was decided about a member that is due.
pub(super) enum Turn {
    Begins(Box<Course>),
    Waits(Vec<Reason>),
}

impl<'d> Desk<'d> {
    pub(super) fn new(
        policy: &'d Policy,
        view: &'d View<'d>,
        entries: &'d [Entry<'d>],
        seen: &[Seen],
        now: Moment,
    ) -> Self {
        let mut desk = Self {
            policy,
            view,
            entries,
            now,
            purses: BTreeMap::new(),
            volume_turns: Vec::new(),
            in_flight: BTreeMap::new(),
            beyond: BTreeMap::new(),
            company: company(view, entries),
            // A time that has not come was written by a clock that was ahead, and must not stretch a rest.
            last_ended: view.last_ended.map(|ended| ended.min(now)),
            tally: Tally { matched: entries.len(), ..Tally::default() },
        };
        let mut domains: BTreeSet<&str> = BTreeSet::new();
        let mut affected: BTreeSet<&str> = BTreeSet::new();
        for (entry, seen) in entries.iter().zip(seen) {
            desk.tally.overlapping += usize::from(entry.overlaps);
            let under_way = seen.memory.under_way();
            let ended = seen.memory.course.as_ref().and_then(|course| course.ended);
            desk.last_ended = desk.last_ended.max(ended.filter(|ended| *ended <= now));
            if let Some(course) = under_way {
                desk.take_place(entry.member, course);
                desk.tally.in_flight += 1;
            }
            match seen.standing {
                Standing::Detected { .. } => desk.tally.detected += 1,
                Standing::Replacing { .. } | Standing::Due { .. } => desk.tally.replacing += 1,
                Standing::Healthy => {}
            }
            let Some(domain) = seen.memory.domain.as_deref() else { continue };
            domains.insert(domain);
            let counts = under_way.is_none() || policy.budget.breaker.counts_in_flight;
            let mut marks = seen.memory.sightings.iter();
            if counts && marks.any(|mark| mark.replacing.is_some() && mark.cause.is_of_the_node()) {
                affected.insert(domain);
            }
        }
        desk.tally.domains = domains.len();
        desk.tally.affected = affected.len();
        desk.tally.limit = policy.budget.breaker.limit(domains.len());
        desk.beyond = desk.without_a_place(seen);
        desk
    }

    /// The budgets that a replacement has its place in.
    fn buckets(&self, member: &Member) -> Vec<Option<usize>> {
        // While its pod is gone nobody can say which budget it is in, so it counts in each.
        let every = || std::iter::once(None).chain((0..self.policy.budget.buckets.len()).map(Some)).collect();
        member.pod().map_or_else(every, |_| vec![self.bucket(member)])
    }

    /// Who is being replaced and has no place in the budget as it is now: it may have been lowered since, or other labels may
    /// have put the member into another one. Whoever is furthest keeps the place; whose pod has gone has it in any case.
    fn without_a_place(&self, seen: &[Seen]) -> BTreeMap<Arc<str>, Reason> {
        let is_within = |(bucket, purse): (&Option<usize>, &Purse)| {
            let count = if self.policy.budget.by_domain { purse.domains.len() } else { purse.in_flight };
            count <= self.policy.max_of(*bucket)
        };
        if self.purses.iter().all(is_within) {
            return BTreeMap::new();
        }
        let under_way = self.entries.iter().zip(seen).filter_map(|(entry, seen)| {
            let course = seen.memory.under_way()?;
            let is_gone = course.phase.only_looks_on()
                || matches!(subject(entry.member, course), Subject::Gone | Subject::Leaving);
            Some((is_gone, course, entry.member))
        });
        let mut ranked: Vec<_> = under_way.collect();
        ranked.sort_by_key(|(is_gone, course, member)| {
            (Reverse(*is_gone), Reverse(course.phase), Arc::clone(&member.name))
        });
        let mut purses: BTreeMap<Option<usize>, Purse> = BTreeMap::new();
        let mut beyond = BTreeMap::new();
        for (is_gone, course, member) in ranked {
            let mut held = Vec::new();
            if !is_gone {
                self.hold_budget(member, course.domain.as_ref(), &purses, &mut held);
            }
            match held.into_iter().next() {
                Some(reason) => {
                    beyond.insert(Arc::clone(&member.name), reason);
                }
                None => take(&mut purses, self.buckets(member), course),
            }
        }
        beyond
    }

    fn take_place(&mut self, member: &Member, course: &Course) {
        let buckets = self.buckets(member);
        take(&mut self.purses, buckets, course);
        let name = Arc::clone(&member.name);
        self.in_flight.entry(Arc::clone(&member.target)).or_default().push(Arc::clone(&name));
        if course.removes_volumes {
            self.volume_turns.push(name);
        }
    }

    /// The other workloads that the policy has members of.
    pub(super) fn company_of(&self, member: &Member) -> Vec<&'d Target> {
        let others = self.company.iter().filter(|(name, _)| *name != member.target);
        others.map(|(_, target)| *target).collect()
    }

    fn bucket(&self, member: &Member) -> Option<usize> {
        if self.policy.budget.buckets.is_empty() {
            return None;
        }
        let labels = member.pod().map(|pod| &pod.labels);
        self.policy.bucket_of(|key| labels?.get(key).map(ToString::to_string))
    }

    /// What is looked at for a member; `members` is how many there were when its replacement began.
    pub(super) fn scene<'s>(
        &'s self,
        entry: &Entry<'d>,
        company: &'s [&'s Target],
        members: Option<usize>,
    ) -> Scene<'s> {
        let member = entry.member;
        let mut others = self.volume_turns.iter();
        let elsewhere = self.view.volume_turns.values().any(|count| *count > 0);
        Scene {
            policy: self.policy,
            member,
            node: entry.node,
            target: self.view.targets.get(&member.target),
            beyond: self.beyond.get(&member.name),
            excused: self.in_flight.get(&member.target).map_or(&[], |names| names),
            is_volume_turn_taken: elsewhere || others.any(|name| *name != member.name),
            overlaps: entry.overlaps,
            company,
            members,
            now: self.now,
        }
    }

    /// Gives turns to members that are due, the first first.
    pub(super) fn admit(&mut self, seen: &[Seen]) -> BTreeMap<usize, Turn> {
        let mut due: Vec<(usize, Moment, usize)> = seen
            .iter()
            .enumerate()
            .filter(|(_, seen)| seen.memory.under_way().is_none())
            .filter_map(|(index, seen)| match seen.standing {
                Standing::Due { since, by } => Some((index, since, by)),
                _ => None,
            })
            .collect();
        due.sort_unstable_by_key(|(index, since, _)| {
            let member = self.entries[*index].member;
            // Who cannot be ranked goes last.
            (member.order.is_none(), member.order, *since, &member.name)
        });
        let mut turns = BTreeMap::new();
        for (index, since, by) in due {
            let turn = self.turn(index, &seen[index].memory, since, by);
            if let Turn::Begins(course) = &turn {
                self.take_place(self.entries[index].member, course);
            }
            turns.insert(index, turn);
        }
        turns
    }

    fn turn(&self, index: usize, memory: &Memory, since: Moment, by: usize) -> Turn {
        let entry = &self.entries[index];
        let sighting = &memory.sightings[by];
        let mut reasons = Vec::new();
        self.hold_policy(&sighting.cause, &mut reasons);
        if entry.overlaps {
            reasons.push(Reason::Overlap);
        }
        self.hold_repetition(memory, &mut reasons);
        let pod = hold_pod(entry.member, &mut reasons);
        self.hold_budget(entry.member, memory.domain.as_ref(), &self.purses, &mut reasons);
        let company = self.company_of(entry.member);
        let muster = self.view.targets.get(&entry.member.target).and_then(|target| target.muster.as_ref());
        let members = muster.map(|muster| muster.besides(&entry.member.name) + 1);
        let scene = self.scene(entry, &company, members);
        let removes_volumes = match scene.claims_to_remove(sighting.is_permanent) {
            Ok(claims) => {
                scene.claims_of_others(&claims, &mut reasons);
                !claims.is_empty()
            }
            Err(reason) => {
                reasons.push(reason);
                true
            }
        };
        let is_of_the_node = sighting.cause.is_of_the_node();
        scene.obstacles(Intent { removes_volumes, is_of_the_node }, &mut reasons);
        // Before it begins nothing is written down of gates: they count from when the member was due.
        let mut shut = self.policy.gates.iter().map(|gate| (Arc::clone(&gate.name), since)).collect();
        scene.gates(&[Stage::BeforeStart], removes_volumes, &mut shut, &mut reasons);
        dedup(&mut reasons);
        let holds = reasons.iter().any(Reason::holds);
        match pod {
            Some(pod) if !holds => {
                let now = self.now.cut_to_second();
                Turn::Begins(Box::new(Course {
                    uid: Arc::clone(&pod.uid),
                    node: pod.node.clone(),
                    domain: memory.domain.clone(),
                    cause: sighting.cause.clone(),
                    removes_volumes,
                    phase: Phase::Gating,
                    since: now,
                    started: now,
                    point_of_no_return: None,
                    removed: None,
                    ended: None,
                    claims: Vec::new(),
                    members,
                    shut: BTreeMap::new(),
                }))
            }
            _ => Turn::Waits(reasons),
        }
    }

    /// What holds every member alike.
    fn hold_policy(&self, cause: &Cause, reasons: &mut Vec<Reason>) {
        let policy = self.policy;
        reasons.extend(policy.off.map(|why| Reason::Off { why }));
        reasons.extend(policy.frozen.iter().map(|why| Reason::Frozen { why: Arc::clone(why) }));
        if !policy.pauses.is_empty() {
            reasons.push(Reason::Paused { by: Arc::clone(&policy.pauses) });
        }
        match self.view.window {
            Opening::Open { .. } => {}
            Opening::Closed { opens } => reasons.push(Reason::WindowClosed { opens }),
            Opening::Unknown => reasons.push(Reason::WindowUnknown),
        }
        let Tally { affected, domains, limit, .. } = self.tally;
        if cause.is_of_the_node() && affected > limit {
            reasons.push(Reason::BreakerOpen { affected, domains, limit });
        }
        if let Some(ended) = self.last_ended {
            let until = ended.plus_seconds(policy.budget.cooldown);
            if until > self.now && policy.budget.cooldown > 0 {
                reasons.push(Reason::Cooldown { until });
            }
        }
    }

    /// A member that does not get well by it is not replaced for ever.
    fn hold_repetition(&self, memory: &Memory, reasons: &mut Vec<Reason>) {
        let retry = self.policy.budget.retry;
        let attempts = memory.record.attempts;
        let Some(ended) = memory.record.ended.filter(|_| attempts > 0) else { return };
        if attempts > retry.max {
            reasons.push(Reason::RetriesExhausted { attempts });
            return;
        }
        let until = ended.plus_seconds(retry.period);
        if until > self.now {
            reasons.push(Reason::RetryLater { attempts, until });
        }
    }

    fn hold_budget(
        &self,
        member: &Member,
        domain: Option<&Arc<str>>,
        purses: &BTreeMap<Option<usize>, Purse>,
        reasons: &mut Vec<Reason>,
    ) {
        let bucket = self.bucket(member);
        let max = self.policy.max_of(bucket);
        let nobody = Purse::default();
        let purse = purses.get(&bucket).unwrap_or(&nobody);
        if !self.policy.budget.by_domain {
            if purse.in_flight >= max {
                reasons.push(Reason::BudgetFull { in_flight: purse.in_flight, max });
            }
            return;
        }
        let Some(domain) = domain else { return reasons.push(Reason::DomainUnknown) };
        let in_flight = purse.domains.len();
        // Who is in a domain that is being emptied joins; but over the limit nobody does.
        if in_flight > max || in_flight == max && !purse.domains.contains(domain) {
            reasons.push(Reason::DomainsFull { in_flight, max });
        }
    }
}

/// A replacement takes its place in budgets.
fn take(purses: &mut BTreeMap<Option<usize>, Purse>, buckets: Vec<Option<usize>>, course: &Course) {
    for bucket in buckets {
        let purse = purses.entry(bucket).or_default();
        purse.in_flight += 1;
        purse.domains.extend(course.domain.clone());
    }
}

/// The workloads of the members, if there are several. Pods that nobody keeps are in none.
fn company<'d>(view: &'d View<'d>, entries: &'d [Entry<'d>]) -> Vec<(Arc<str>, &'d Target)> {
    let names: BTreeSet<&Arc<str>> = entries.iter().map(|entry| &entry.member.target).collect();
    let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
    if names.len() < 2 {
        return Vec::new();
    }
    let of = |name: &Arc<str>| (Arc::clone(name), view.targets.get(name).unwrap_or(&UNKNOWN));
    names.into_iter().map(of).collect()
}

/// The pod, unless it is not to be touched.
fn hold_pod<'m>(member: &'m Member, reasons: &mut Vec<Reason>) -> Option<&'m Pod> {
    let Known::Known(Some(pod)) = &member.pod else {
        reasons.push(Reason::PodUnknown);
        return None;
    };
    if pod.is_leaving {
        reasons.push(Reason::PodLeaving);
    }
    if pod.is_skipped {
        reasons.push(Reason::Skipped);
    }
    Some(pod)
}

/// Says each thing once.
fn dedup(reasons: &mut Vec<Reason>) {
    let mut index = 0;
    while index < reasons.len() {
        if reasons[..index].contains(&reasons[index]) {
            reasons.remove(index);
        } else {
            index += 1;
        }
    }
}
