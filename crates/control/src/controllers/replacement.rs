//! The replacement controller: members of stateful workloads on ailing nodes are replaced, as policies say.
//!
//! Owns who is a member of what ([`roster`]), what was read of members and their workloads ([`case`], [`facts`]), and the way
//! from a plan of the engine to writes. Deciding is the engine's ([`berth_engine::replace`]). Subjects are policies, so that
//! everything of one policy is decided in order, one act at a time:
//!
//! ```text
//!   something changed, a deadline --> plan --> read what is not known --> plan
//!                                      |--> write down what it comes to --> plan
//!                                      '--> an act: read live all that it rests on --> confirm --> act, bound to what was read
//! ```
//!
//! What outlives a restart is in the policy's status and in Replacements; whoever takes over plans from there. What cannot be
//! read is unknown, and unknown holds. Of nodes nothing is read, listed or watched unless a policy speaks of them, and then only
//! after the server was asked whether we may.

mod acts;
mod case;
mod confirm;
mod facts;
mod intake;
mod look;
mod place;
mod question;
mod rooms;
mod roster;
mod told;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use berth_api::replacement::{Replacement, ReplacementPolicy};
use berth_engine::Moment;
use berth_engine::evict::Freeze;
use berth_engine::model::ObjectKey;
use berth_engine::replace::{
    Fleet, NodeAccess, Phase, Plan, PolicyKey, Questions, Standings, State, rejected, restore,
};

use self::case::{Case, Owner, Stage};
use self::intake::Shown;
use self::rooms::Rooms;
use self::roster::{Roster, policy_key};
use super::confirmation::Confirmation;
use super::{Controller, Verdict};
use crate::act::{Ask, Note, Reply};
use crate::due::{Due, Ended};
use crate::names::ControllerName;
use crate::rights::Need;
use crate::serve::Metrics;
use crate::world::{Change, Finding, Found, Kind, OWNERS, Object, Pod, World};

/// How often a member that is being replaced is looked at if nothing is heard: claims and owners are not watched.
const LOOK_UNDER_WAY: Duration = Duration::from_secs(2);
/// How often a member that is due and held is looked at if nothing is heard.
const LOOK_HELD: Duration = Duration::from_secs(10);
/// How often it is asked whether we may read nodes, where we may not, or cannot.
const ACCESS_EVERY: Duration = Duration::from_mins(1);
/// How often it is asked whether we still may, where all goes well.
const ACCESS_AGAIN: Duration = Duration::from_mins(10);
/// How long replacements that have ended are kept besides the latest of each pod that there is: a day, in which somebody
/// looks.
const HISTORY_KEPT: Duration = Duration::from_hours(24);
/// The most of them that are discarded at once.
const DISCARDED_AT_ONCE_MAX: usize = 100;
/// What is told while nobody knows whether somebody has said stop.
const BLIND: &str = "whether evictions are frozen cannot be seen";

/// Replaces members of stateful workloads on ailing nodes.
#[derive(Debug)]
pub struct ReplacementController {
    metrics: Arc<Metrics>,
    fleet: Fleet,
    roster: Roster,
    rooms: Rooms,
    cases: HashMap<PolicyKey, Case>,
    /// The workloads, by identity, as they were read.
    owners: HashMap<Arc<str>, Owner>,
    /// Workloads that were read since the last look.
    fresh: Vec<Arc<str>>,
    /// Nodes as the engine was last told of them.
    shown: HashMap<Arc<str>, Shown>,
    /// Pods that are being evicted, and by which policy.
    evicting: HashMap<ObjectKey, PolicyKey>,
    /// The freeze or its end, until it was told.
    confirmation: Confirmation,
    /// What another controller has said.
    stopped: Option<Freeze>,
    /// Why nobody is evicted.
    frozen: Option<Arc<str>>,
    /// Whether we may read nodes, and when that was asked.
    access: (NodeAccess, Moment),
    /// The namespace of what is in none.
    nowhere: Arc<str>,
    /// The policies that speak of nodes.
    wanting_nodes: BTreeSet<PolicyKey>,
    /// Whether all nodes are known now.
    knows_nodes: bool,
    /// The moment of the last turn.
    clock: Moment,
    /// Policies to be looked at because of another.
    touched: BTreeSet<PolicyKey>,
}

impl ReplacementController {
    /// A controller.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            fleet: Fleet::default(),
            roster: Roster::default(),
            rooms: Rooms::default(),
            cases: HashMap::new(),
            owners: HashMap::new(),
            fresh: Vec::new(),
            shown: HashMap::new(),
            evicting: HashMap::new(),
            confirmation: Confirmation::of(ControllerName::Replacement),
            stopped: None,
            frozen: None,
            access: (NodeAccess::Unknown, Moment::PAST),
            nowhere: Arc::from(""),
            wanting_nodes: BTreeSet::new(),
            knows_nodes: false,
            clock: Moment::PAST,
            touched: BTreeSet::new(),
        }
    }

    fn pod_changed(&mut self, key: &ObjectKey, before: Option<&Pod>, after: Option<&Pod>, due: &mut Due) {
        self.roster.pod(key, before, after);
        self.rooms.change(before, after);
        let is_same = before.zip(after).is_some_and(|(before, after)| {
            before.identity.uid == after.identity.uid
                && before.node == after.node
                && before.ready == after.ready
                && before.phase == after.phase
                && before.is_terminating() == after.is_terminating()
                && before.labels == after.labels
                && before.tolerations == after.tolerations
        });
        let mut concerned: BTreeSet<PolicyKey> = BTreeSet::new();
        for pod in before.into_iter().chain(after) {
            concerned.extend(self.roster.of_pod(pod));
        }
        concerned.extend(self.roster.with_work(key));
        for policy in concerned {
            // What a rule or a gate looks at is not kept of a pod: any change may matter where something is known of it.
            let is_watched = self.cases.get(&policy).is_none_or(|case| case.watches(&key.name));
            if !is_same || is_watched {
                due.mark(&subject(&policy));
            }
        }
    }

    /// Why nobody is evicted now.
    fn stop(&self, world: &World) -> Option<Arc<str>> {
        let said = world.freezes.iter().next().map(|(_, freeze)| Arc::from(&*freeze.freeze.reason));
        let heard = || self.stopped.as_ref().map(|stop| Arc::from(&*stop.reason));
        let is_blind = !world.is_followed(Kind::Freeze) || world.freezes.has_unreadable();
        said.or_else(heard).or_else(|| is_blind.then(|| Arc::from(BLIND)))
    }

    fn forget(&mut self, key: &PolicyKey) -> Verdict {
        if let Some(case) = self.cases.remove(key) {
            self.metrics.replacement_members(&case.tally, &berth_engine::replace::Tally::default());
            self.metrics.replacements_held(&case.held, &BTreeMap::new());
        }
        self.touched.extend(self.fleet.remove_policy(key));
        self.wanting_nodes.remove(key);
        self.forget_owners();
        self.metrics.policy_is_gone(&subject(key).to_string());
        self.evicting.retain(|_, policy| policy != key);
        Verdict { outcome: "gone", ..Verdict::default() }
    }

    fn decide_policy(&mut self, key: &PolicyKey, world: &World, now: Moment) -> Verdict {
        let policy = world.replacement_policies.get(&subject(key));
        let Some(policy) = policy.filter(|policy| policy.metadata.deletion_timestamp.is_none()) else {
            return self.forget(key);
        };
        let policy = Arc::clone(policy);
        if self.cases.get(key).is_some_and(|case| case.uid != policy.metadata.uid) {
            // Another one of the same name: nothing is remembered of it.
            self.forget(key);
        }
        let mut case = match self.cases.remove(key) {
            Some(case) if case.is_of(&policy) => case,
            Some(case) => {
                Case { members: case.members, tally: case.tally, held: case.held, ..Case::new(&policy) }
            }
            None => Case::new(&policy),
        };
        let verdict = self.decide_case(key, &policy, &mut case, world, now);
        self.cases.insert(key.clone(), case);
        verdict
    }

    fn decide_case(
        &mut self,
        key: &PolicyKey,
        policy: &Arc<ReplacementPolicy>,
        case: &mut Case,
        world: &World,
        now: Moment,
    ) -> Verdict {
        let compiled = match &case.compiled {
            Ok(compiled) => Arc::clone(compiled),
            Err(problems) => {
                let generation = policy.metadata.generation;
                let status = rejected(problems, generation, policy.status.as_ref(), now);
                self.touched.extend(self.fleet.remove_policy(key));
                self.wanting_nodes.remove(key);
                case.stage = Stage::Writes { ends: Vec::new(), goes_on: false };
                let writes = acts::policy_status(policy, &status).into_iter().collect();
                return Verdict { writes, outcome: "misconfigured", ..Verdict::default() };
            }
        };
        self.stamp(case, now);
        let reads = compiled.0.reads();
        self.take_in_policy(key, policy, case, &compiled.0);
        self.fleet.set_window(key, compiled.1.opening(now));
        self.take_in(key, policy, case, world, now);
        if let Stage::Confirms(trial) = std::mem::take(&mut case.stage)
            && trial.is_answered
        {
            return self.conclude(key, policy, case, &trial, world, now);
        }
        let Some(plan) = self.fleet.decide(key, now) else { return self.forget(key) };
        if let Some(verdict) = self.look(key, case, &plan, world, now) {
            return verdict;
        }
        self.count(case, &plan);
        let access = if reads.nodes { self.access.0.clone() } else { NodeAccess::NotNeeded };
        if let Some(verdict) = self.write_down(key, policy, case, &plan, &access, world, now) {
            return Verdict { wake: self.wake_of(case, &plan, reads.nodes, now), ..verdict };
        }
        if let Some(verdict) = self.begin_act(key, case, &plan, world, now) {
            return verdict;
        }
        if let Some(verdict) = self.look_again(key, case, &plan, world, now) {
            return verdict;
        }
        let outcome = if plan.tally.in_flight > 0 { "under-way" } else { "settled" };
        Verdict { wake: self.wake_of(case, &plan, reads.nodes, now), outcome, ..Verdict::default() }
    }

    /// When to look at a policy again if nothing is heard.
    fn wake_of(&self, case: &Case, plan: &Plan, reads_nodes: bool, now: Moment) -> Option<Moment> {
        let looks = plan.steps.iter().filter_map(case::patience).map(|wait| now.plus(wait));
        let refusals = case.refusals.values().map(|refusal| refusal.until).filter(|until| *until > now);
        let asks = reads_nodes.then(|| self.access.1.max(now).plus(self.access_every()));
        let deadline = Some(plan.deadline).filter(|deadline| *deadline != Moment::NEVER);
        // What is due at once was looked at just now.
        let deadline =
            deadline.map(|deadline| if deadline <= now { now.plus(LOOK_UNDER_WAY) } else { deadline });
        looks.chain(refusals).chain(asks).chain(deadline).min()
    }

    /// Writes what has to be remembered before anything is done; nothing if all of it is written.
    #[expect(clippy::too_many_arguments, reason = "each is a part of one look at a policy")]
    fn write_down(
        &mut self,
        key: &PolicyKey,
        policy: &Arc<ReplacementPolicy>,
        case: &mut Case,
        plan: &Plan,
        access: &NodeAccess,
        world: &World,
        now: Moment,
    ) -> Option<Verdict> {
        let mut verdict = Verdict { outcome: "written", ..Verdict::default() };
        let mut ends = Vec::new();
        let shown = self.as_written(key, plan, world);
        for step in plan.steps.iter().filter(|step| !acts::begins(step)) {
            let Some(latest) = self.roster.latest(key, &step.name, world) else { continue };
            let Some((write, notes)) = Self::work_status(key, case, step, latest, world, now) else {
                continue;
            };
            if let State::Course(phase @ (Phase::Done | Phase::Aborted | Phase::Failed)) = step.state {
                let course = step.memory.course.as_ref();
                let lasted = course.map(|course| course.started.until(now).as_secs_f64());
                ends.push((phase.word(), lasted.unwrap_or_default()));
            }
            verdict.writes.push(write);
            verdict.notes.extend(notes);
        }
        let (rules, before) = (self.fleet.policy(key)?, policy.status.as_ref());
        let generation = policy.metadata.generation;
        let standings = Standings { policy: rules, plan: &shown, access, generation, before, now };
        let status = standings.status(|name| {
            let pod = world.pods.get(&ObjectKey::new(&key.namespace, name));
            pod.map(|pod| &*pod.node).filter(|node| !node.is_empty())
        });
        let told = acts::policy_status(policy, &status);
        let is_told = usize::from(told.is_some());
        verdict.writes.extend(told);
        let old = self.roster.history(key, world).filter(|work| acts::is_over(work, now, HISTORY_KEPT));
        verdict.writes.extend(old.take(DISCARDED_AT_ONCE_MAX).map(acts::discard));
        verdict.notes.extend(told::news(key, case, &shown, world));
        if verdict.writes.is_empty() && verdict.notes.is_empty() {
            return None;
        }
        // Where nothing but the status of the policy is new and nothing is to be done, the next look would find what this one did.
        let goes_on = plan.deadline <= now
            || verdict.writes.len() > is_told
            || plan.steps.iter().any(|step| !step.acts.is_empty());
        case.stage = Stage::Writes { ends, goes_on };
        Some(verdict)
    }

    /// Counts how the members of a policy are, where that has changed.
    fn count(&self, case: &mut Case, plan: &Plan) {
        if case.tally != plan.tally {
            self.metrics.replacement_members(&case.tally, &plan.tally);
            case.tally = plan.tally;
        }
        let held = case::holds(&plan.steps);
        if case.held != held {
            self.metrics.replacements_held(&case.held, &held);
            case.held = held;
        }
    }

    /// A plan as far as it is sure: whoever begins has not begun before its Replacement is made, and that has to be confirmed.
    fn as_written<'p>(&self, key: &PolicyKey, plan: &'p Plan, world: &World) -> Cow<'p, Plan> {
        if !plan.steps.iter().any(acts::begins) {
            return Cow::Borrowed(plan);
        }
        let mut plan = plan.clone();
        for step in plan.steps.iter_mut().filter(|step| acts::begins(step)) {
            let latest = self.roster.latest(key, &step.name, world);
            step.memory.course = restore(None, latest.map(AsRef::as_ref)).course;
        }
        Cow::Owned(plan)
    }

    /// The questions of a policy.
    fn questions(case: &Case) -> Option<&Questions> {
        case.compiled.as_ref().ok().map(|compiled| &compiled.1)
    }
}

fn policy_in(object: &Object) -> Option<&ReplacementPolicy> {
    match object {
        Object::ReplacementPolicy(policy) => Some(policy),
        _ => None,
    }
}

fn work_in(object: &Object) -> Option<&Replacement> {
    match object {
        Object::Replacement(work) => Some(work),
        _ => None,
    }
}

fn pod_in(object: &Object) -> Option<&Pod> {
    match object {
        Object::Pod(pod) => Some(pod),
        _ => None,
    }
}

/// A policy as a subject.
fn subject(key: &PolicyKey) -> ObjectKey {
    ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&key.name) }
}

impl Controller for ReplacementController {
    fn name(&self) -> ControllerName {
        ControllerName::Replacement
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::ReplacementPolicy, Kind::Replacement, Kind::Pod, Kind::Freeze]
    }

    fn kinds_at_need(&self) -> &'static [Kind] {
        &[Kind::Node]
    }

    fn needs_more(&self) -> bool {
        !self.wanting_nodes.is_empty() && self.access.0 == NodeAccess::Granted
    }

    fn needs(&self) -> &'static [Need] {
        &[
            Need::Get(Kind::ReplacementPolicy),
            Need::PatchPart(Kind::ReplacementPolicy, "status"),
            Need::Create(Kind::Replacement),
            Need::PatchPart(Kind::Replacement, "status"),
            Need::Delete(Kind::Replacement),
            // What is read before each act, and what a member is told by.
            Need::Get(Kind::Pod),
            Need::Patch(Kind::Pod),
            Need::CreatePart(Kind::Pod, "eviction"),
            // A successor that never ran and never will.
            Need::Delete(Kind::Pod),
            Need::Get(Kind::Node),
            Need::Get(Kind::Claim),
            Need::Delete(Kind::Claim),
            Need::Get(Kind::Volume),
            Need::Patch(Kind::Volume),
            Need::Look(OWNERS[0].0, OWNERS[0].2),
            Need::Look(OWNERS[1].0, OWNERS[1].2),
            Need::Look(OWNERS[2].0, OWNERS[2].2),
            Need::Look(OWNERS[3].0, OWNERS[3].2),
            Need::Look(OWNERS[4].0, OWNERS[4].2),
            // Whether it may read nodes: where it may not, that is told and no error.
            Need::AskItself,
            Need::Record,
        ]
    }

    fn observe(&mut self, change: &Change, world: &World, due: &mut Due) {
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        match (after.or(before), before, after) {
            (Some(Object::ReplacementPolicy(_)), before, after) => {
                let (before, after) = (before.and_then(policy_in), after.and_then(policy_in));
                self.roster.policy(&change.key, after);
                let is_same = before.zip(after).is_some_and(|(before, after)| {
                    before.spec == after.spec
                        && before.metadata.uid == after.metadata.uid
                        && before.metadata.generation == after.metadata.generation
                        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
                });
                // That its status was written is our own doing.
                if !is_same {
                    due.mark(&change.key);
                }
            }
            (Some(Object::Replacement(_)), before, after) => {
                for policy in self.roster.work(before.and_then(work_in), after.and_then(work_in)) {
                    due.mark(&subject(&policy));
                }
            }
            (Some(Object::Pod(_)), before, after) => {
                self.pod_changed(&change.key, before.and_then(pod_in), after.and_then(pod_in), due);
            }
            (Some(Object::Node(_)), _, _) => self.node_changed(&change.key.name, world, due),
            // What it says is read in every turn.
            (Some(Object::Freeze(_)), _, _) => {
                self.confirmation.hear(change, &self.metrics);
            }
            _ => {}
        }
    }

    fn advance(&mut self, now: Moment, world: &World, due: &mut Due) {
        self.clock = now;
        let knows_nodes = self.access.0 == NodeAccess::Granted
            && world.is_filled(Kind::Node)
            && world.is_followed(Kind::Node);
        let frozen = self.stop(world);
        if frozen != self.frozen || knows_nodes != self.knows_nodes {
            (self.frozen, self.knows_nodes) = (frozen, knows_nodes);
            self.touched.extend(self.roster.policies());
        }
        for policy in std::mem::take(&mut self.touched) {
            due.mark(&subject(&policy));
        }
    }

    fn news(&mut self) -> Option<Note> {
        // Said by who obeys it: the turn has heeded it.
        self.confirmation.take()
    }

    fn heed(&mut self, stop: Option<&Freeze>) {
        self.stopped = stop.cloned();
    }

    fn found(&mut self, found: Found) {
        match found.finding {
            Finding::Replies(replies) => {
                let key = policy_key(&found.subject);
                for (ask, reply) in &replies {
                    if let (Ask::May { .. }, reply) = (ask, reply) {
                        self.heard_of_access(reply);
                    }
                }
                if let Some(mut case) = self.cases.remove(&key) {
                    self.heard(&mut case, replies);
                    self.cases.insert(key, case);
                }
            }
            Finding::Review { policy, gate, answer } => {
                let clock = self.clock;
                // Two policies may ask about one pod at once, each a service of its own.
                let (namespace, name) = policy.split_once('/').unwrap_or_default();
                if let Some(case) = self.cases.get_mut(&PolicyKey::new(namespace, name)) {
                    case.reviewed(&found.subject.name, gate, answer, clock);
                }
            }
            Finding::Budget(message) => {
                let key = self.evicting.get(&found.subject);
                if let Some(case) = key.and_then(|key| self.cases.get_mut(key)) {
                    case.budget = Some(message);
                }
            }
            // It asks for members in another way.
            Finding::Objects { .. } => {}
        }
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        self.decide_policy(&policy_key(subject), world, now)
    }

    fn ended(&mut self, subject: &ObjectKey, ended: Ended, now: Moment, _: &World, due: &mut Due) {
        let key = policy_key(subject);
        self.evicting.retain(|_, policy| *policy != key);
        let Some(case) = self.cases.get_mut(&key) else { return };
        if case.ended(ended, now, &self.metrics) {
            due.mark(subject);
        }
    }
}

impl ReplacementController {
    fn heard_of_access(&mut self, reply: &Reply) {
        let before = self.access.0.clone();
        match reply {
            // All verbs have to be allowed; they are asked together, the last time set before.
            Reply::Yes if self.access.0 == NodeAccess::Unknown => self.access.0 = NodeAccess::Granted,
            Reply::Yes => {}
            // That nobody answers takes nothing away.
            Reply::Unknown(_) if self.access.0 == NodeAccess::Granted => {}
            Reply::No(why) | Reply::Unknown(why) => self.access.0 = NodeAccess::Denied(why.clone()),
            _ => self.access.0 = NodeAccess::Denied("the server does not say".to_owned()),
        }
        if self.access.0 != before {
            self.touched.extend(self.wanting_nodes.iter().cloned());
        }
    }

    /// How often it is asked whether we may read nodes.
    fn access_every(&self) -> Duration {
        let is_well = self.access.0 == NodeAccess::Granted && self.knows_nodes;
        if is_well { ACCESS_AGAIN } else { ACCESS_EVERY }
    }

    /// A workload without members is nobody's.
    fn forget_owners(&mut self) {
        self.owners.retain(|uid, _| self.fleet.concerns(uid));
    }
}

#[cfg(test)]
mod tests;
