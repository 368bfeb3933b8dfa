//! What is known of members: from the watches, and read where that is not enough.
//!
//! Owns which members are read again, and the way from what was read to the facts that the engine is given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_api::replacement::{Replacement, Stage as GateStage};
use berth_engine::Moment;
use berth_engine::gate::{Company, Opinion, Sight as Seen};
use berth_engine::model::ObjectKey;
use berth_engine::replace::{
    Course, Feasibility, Handing, Known, Member, Memory, NodeAccess, Phase, Plan, PolicyKey, State, Step,
    Sure, Target as Workload, Word,
};
use serde_json::{Value, json};

use super::case::{Case, Owner, Sight, Stage, may_be_told, patience, waits_for_others};
use super::question::question;
use super::{ReplacementController, facts, subject};
use crate::act::{Around, Ask, Reply, Target, Write};
use crate::controllers::Verdict;
use crate::names::ControllerName;
use crate::review::Question;
use crate::world::{Kind, World};

/// The most members that one job reads: another one reads the next.
const READ_AT_ONCE_MAX: usize = 32;
/// How much depends on a member being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// It is being replaced.
    UnderWay,
    /// It was not read as it is.
    New,
    /// It was read then, and may have changed since.
    Old(Moment),
}

/// Questions to services in one look: what else there is to do for a policy waits for their answers.
const REVIEWS_AT_ONCE_MAX: usize = 8;
/// The verbs by which nodes are read.
const NODE_VERBS: [&str; 3] = ["get", "list", "watch"];

impl ReplacementController {
    /// Reads what has to be known for a plan; nothing if it is. Whoever is being replaced comes first.
    pub(super) fn look(
        &mut self,
        key: &PolicyKey,
        case: &mut Case,
        plan: &Plan,
        world: &World,
        now: Moment,
    ) -> Option<Verdict> {
        let asks = self.access_asks(key, case, now);
        let mut names = Vec::new();
        let (mut writes, mut questions) = (Vec::new(), Vec::new());
        for step in &plan.steps {
            if step.state == State::Course(Phase::Verifying) && is_gone(key, step, world) {
                // Nothing can be read of it, but something may be said.
                case.sights.entry(Arc::clone(&step.name)).or_insert_with(|| Sight::of_nothing(now));
            }
            if !Self::is_of_interest(case, step) {
                // What was read of it is of no use any more, and would only grow old.
                case.sights.remove(&step.name);
                continue;
            }
            let wanted = self.wanted(key, case, step, world, now);
            names.extend(wanted.filter(|(urgency, _)| !matches!(urgency, Urgency::Old(_))));
            let said = case.sights.get(&step.name).map(Sight::opinions).unwrap_or_default();
            let reviews = Self::reviews(key, case, step, &said, world);
            if matches!(step.state, State::Course(_)) { &mut writes } else { &mut questions }.extend(reviews);
        }
        // Answers may take long. So about those who are not under way yet a few are asked at a time, and in every second turn: in
        // between is written and done what there is.
        if std::mem::replace(&mut case.has_asked, false) {
            questions.clear();
        }
        questions.truncate(REVIEWS_AT_ONCE_MAX);
        case.has_asked = !questions.is_empty();
        writes.append(&mut questions);
        if plan.steps.iter().any(|step| matches!(step.state, State::Queued | State::Course(_))) {
            let company = self.company_wanted(key, case, world, now).into_iter();
            names.extend(company.map(|name| (Urgency::New, name)));
        }
        Self::read(key, case, names, asks, writes, world)
    }

    /// Reads again what may have changed without anybody telling, once nothing else is to be done: what was read longest ago
    /// first. An act rests on none of it, since all that it rests on is read right before.
    pub(super) fn look_again(
        &self,
        key: &PolicyKey,
        case: &mut Case,
        plan: &Plan,
        world: &World,
        now: Moment,
    ) -> Option<Verdict> {
        let wanted = plan.steps.iter().filter_map(|step| self.wanted(key, case, step, world, now));
        let names = wanted.collect();
        let asked = plan.steps.iter().filter(|step| Self::is_of_interest(case, step));
        let mut asked: Vec<_> = asked.filter_map(|step| Some((step, case.sights.get(&step.name)?))).collect();
        // Who was never asked about comes first, and then whose answers are the oldest: nobody is forgotten behind slow ones.
        asked.sort_by_key(|(_, sight)| sight.said.values().map(|(_, until)| *until).min());
        let asked = asked
            .into_iter()
            .flat_map(|(step, sight)| Self::reviews(key, case, step, &sight.fresh_opinions(now), world));
        let writes = asked.take(REVIEWS_AT_ONCE_MAX).collect();
        Self::read(key, case, names, Vec::new(), writes, world)
    }

    /// Whether we may read nodes, where that has to be asked.
    fn access_asks(&mut self, key: &PolicyKey, case: &Case, now: Moment) -> Vec<Ask> {
        if !case.reads().nodes {
            self.wanting_nodes.remove(key);
            return Vec::new();
        }
        self.wanting_nodes.insert(key.clone());
        let (access, asked) = &self.access;
        let is_time = *asked == Moment::PAST || *asked > now || asked.plus(self.access_every()) <= now;
        if !is_time {
            return Vec::new();
        }
        // What was granted counts until the server says otherwise.
        let known = if *access == NodeAccess::Granted { NodeAccess::Granted } else { NodeAccess::Unknown };
        self.access = (known, now);
        NODE_VERBS.map(|verb| Ask::May { verb, resource: "nodes" }).into()
    }

    /// A job that reads members, as many as one may.
    fn read(
        key: &PolicyKey,
        case: &mut Case,
        mut wanted: Vec<(Urgency, Arc<str>)>,
        mut asks: Vec<Ask>,
        mut writes: Vec<Write>,
        world: &World,
    ) -> Option<Verdict> {
        wanted.sort_unstable();
        let with_node = case.reads().nodes;
        let with_claims = case.with_claims();
        let mut names = BTreeSet::new();
        for (_, name) in wanted {
            // A workload may be read by way of a pod that is read in any case.
            if names.len() == READ_AT_ONCE_MAX || !names.insert(Arc::clone(&name)) {
                continue;
            }
            let key = ObjectKey { namespace: Arc::clone(&key.namespace), name };
            asks.push(Ask::Member { key, with_node, with_claims });
        }
        let has_gates = Self::questions(case).is_some_and(|questions| !questions.gates.is_empty());
        let is_shared = |name: &Arc<str>| case.removes_volumes() && !Self::is_of_a_set(key, name, world);
        if (has_gates || names.iter().any(is_shared)) && !names.is_empty() {
            let namespace = Arc::clone(&key.namespace);
            asks.push(Ask::List { kind: Kind::Pod, namespace, selector: String::new() });
        }
        if !asks.is_empty() {
            writes.push(Write::Ask { target: target_of(key), asks, asker: ControllerName::Replacement });
        }
        if writes.is_empty() {
            return None;
        }
        case.stage = Stage::Looks;
        Some(Verdict { writes, outcome: "looked-at", ..Verdict::default() })
    }

    /// The pod that has to be read for a member, if one has, and how much depends on it.
    fn wanted(
        &self,
        key: &PolicyKey,
        case: &Case,
        step: &Step,
        world: &World,
        now: Moment,
    ) -> Option<(Urgency, Arc<str>)> {
        if !Self::is_of_interest(case, step) {
            return None;
        }
        let pod = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&step.name) };
        let Some(slim) = world.pods.get(&pod) else {
            // Its workload is read by way of another pod.
            let course = step.memory.under_way()?;
            let latest = self.roster.latest(key, &step.name, world)?;
            let owner = latest.spec.owner.as_deref()?;
            let is_old = |owner: &Owner| owner.read.plus(super::LOOK_UNDER_WAY) <= now;
            let is_known = self.owners.get(owner).is_some_and(|owner| !is_old(owner));
            let asks_owner =
                matches!(course.phase, Phase::Draining | Phase::Verifying | Phase::AwaitingSuccessor);
            let mut kept = self.roster.kept(&key.namespace, owner, world);
            let peer = kept.next().filter(|_| asks_owner && !is_known);
            return peer.map(|pod| (Urgency::UnderWay, Arc::clone(&pod.identity.key.name)));
        };
        let name = Arc::clone(&step.name);
        let is_under_way = step.memory.under_way().is_some();
        let read_first = if is_under_way { Urgency::UnderWay } else { Urgency::New };
        let Some(sight) = case.sights.get(&step.name) else { return Some((read_first, name)) };
        if sight.around.pod.object().is_none() {
            // It could not be read just now.
            return (sight.read.plus(super::LOOK_UNDER_WAY) <= now).then_some((read_first, name));
        }
        if sight.revision < slim.identity.revision {
            return Some((read_first, name));
        }
        let is_old = patience(step).is_some_and(|patience| sight.read.plus(patience) <= now);
        let again = if is_under_way { Urgency::UnderWay } else { Urgency::Old(sight.read) };
        (is_old && !waits_for_others(step)).then_some((again, name))
    }

    /// Whether more has to be known of a member than the watches tell.
    fn is_of_interest(case: &Case, step: &Step) -> bool {
        step.state != State::Healthy
            || case.reads_conditions()
            || (may_be_told(step) && Self::handing(case).is_some_and(Handing::tells))
    }

    fn handing(case: &Case) -> Option<&Handing> {
        case.compiled.as_ref().ok().map(|compiled| &compiled.0.strategy.handing)
    }

    /// Pods by which the other workloads of a policy are read: where volumes go, all of them have to be complete.
    fn company_wanted(&self, key: &PolicyKey, case: &Case, world: &World, now: Moment) -> Vec<Arc<str>> {
        let is_old = |owner: &Owner| owner.read.plus(super::LOOK_HELD) <= now;
        let company = Self::company(key, case, "", world).into_iter();
        let unread = company.filter(|(owner, _)| self.owners.get(owner).is_none_or(is_old));
        unread.map(|(_, pod)| pod).collect()
    }

    /// The other workloads that a policy has members of, each with one of them; none where volumes stay.
    pub(super) fn company(
        key: &PolicyKey,
        case: &Case,
        name: &str,
        world: &World,
    ) -> BTreeMap<Arc<str>, Arc<str>> {
        if !case.removes_volumes() || case.spec.target_ref.is_some() {
            return BTreeMap::new();
        }
        let owner = |name: &str| {
            let pod = world.pods.get(&ObjectKey::new(&key.namespace, name))?;
            pod.owner.as_ref().map(|owner| Arc::<str>::from(&*owner.uid))
        };
        let own = owner(name);
        let members = case.members.iter().filter_map(|member| Some((owner(member)?, Arc::clone(member))));
        members.filter(|(owner, _)| Some(owner) != own.as_ref()).collect()
    }

    /// Whether a StatefulSet keeps a pod.
    fn is_of_a_set(key: &PolicyKey, name: &str, world: &World) -> bool {
        let pod = world.pods.get(&ObjectKey::new(&key.namespace, name));
        pod.and_then(|pod| pod.owner.as_ref()).is_some_and(|owner| &*owner.kind == facts::STATEFUL_SET)
    }

    /// Who outside has to be asked about a member, where `said` is known.
    fn reviews(
        key: &PolicyKey,
        case: &Case,
        step: &Step,
        said: &[(Arc<str>, Opinion)],
        world: &World,
    ) -> Vec<Write> {
        let Ok(compiled) = &case.compiled else { return Vec::new() };
        let stages = asked_in(step.state);
        let is_on_trial = !compiled.0.is_enforced;
        // On trial it is asked whether it would begin, and nothing else.
        if compiled.0.is_disabled || (is_on_trial && step.state != State::Queued) {
            return Vec::new();
        }
        let is_gone = is_gone(key, step, world);
        let Some(sight) = case.sights.get(&step.name) else { return Vec::new() };
        let mut writes = Vec::new();
        for (gate, rule) in compiled.1.gates.iter().zip(&compiled.0.gates) {
            let is_asked = stages.contains(&rule.stage)
                && (!is_gone || rule.stage == GateStage::BeforeComplete)
                && !said.iter().any(|(known, _)| known == gate.name());
            if let (Some(address), true) = (gate.address(), is_asked) {
                let mut question = question(key, step, gate.name(), &rule.stage, &sight.around);
                question.is_dry_run = is_on_trial;
                writes.push(Self::review(key, step, address.clone(), question, world));
            }
        }
        writes
    }

    /// A question to somebody outside about a member.
    pub(super) fn review(
        key: &PolicyKey,
        step: &Step,
        address: berth_engine::gate::Address,
        question: Question,
        world: &World,
    ) -> Write {
        let pod = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&step.name) };
        let uid = world.pods.get(&pod).map(|slim| slim.identity.uid.to_string());
        let target = Target { kind: Kind::Pod, key: pod, uid, resource_version: None };
        let question = Box::new(question);
        Write::Review { target, address, question, asker: ControllerName::Replacement }
    }

    /// Takes in what was read.
    pub(super) fn heard(&mut self, case: &mut Case, replies: Vec<(Ask, Reply)>) {
        if let Stage::Confirms(trial) = &mut case.stage {
            trial.replies = replies;
            return;
        }
        for (ask, reply) in replies {
            match (ask, reply) {
                (Ask::Member { key: pod, .. }, Reply::Member(around)) => {
                    self.seen(case, &pod.name, *around);
                }
                (Ask::List { kind: Kind::Pod, .. }, Reply::Objects(pods)) => case.pods = pods,
                (Ask::List { kind: Kind::Pod, .. }, _) => case.pods.clear(),
                _ => {}
            }
        }
    }

    /// A member was read, and its workload with it. When that was counts from the next look, however long reading took.
    fn seen(&mut self, case: &mut Case, name: &Arc<str>, around: Around) {
        let read = Moment::NEVER;
        if let Some(uid) = around.pod.object().and_then(facts::owner_uid) {
            let uid: Arc<str> = uid.into();
            self.fresh.push(Arc::clone(&uid));
            self.owners.insert(uid, Owner { reply: around.owner.clone(), read });
        }
        let before = case.sights.remove(name);
        case.sights.insert(Arc::clone(name), Sight::new(around, before, read));
    }

    /// What was read since the last look was read now.
    pub(super) fn stamp(&mut self, case: &mut Case, now: Moment) {
        for owner in std::mem::take(&mut self.fresh) {
            if let Some(owner) = self.owners.get_mut(&owner).filter(|owner| owner.read == Moment::NEVER) {
                owner.read = now;
            }
        }
        for sight in case.sights.values_mut().filter(|sight| sight.read == Moment::NEVER) {
            sight.read = now;
        }
    }

    /// A member, as far as it is known.
    pub(super) fn member(
        &self,
        key: &PolicyKey,
        case: &mut Case,
        name: &Arc<str>,
        memory: &Memory,
        world: &World,
        now: Moment,
    ) -> Member {
        let place = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
        let latest = self.roster.latest(key, name, world);
        let under_way = latest.filter(|_| memory.under_way().is_some());
        let slim = world.pods.get(&place);
        let kept_by = slim.and_then(|pod| pod.owner.as_ref());
        let target: Arc<str> = match (kept_by, under_way) {
            (Some(owner), _) => Arc::from(&*owner.uid),
            (None, Some(work)) => work.spec.owner.as_deref().unwrap_or_default().into(),
            (None, None) => "".into(),
        };
        let kind = kept_by.map(|owner| owner.kind.to_string()).or_else(|| {
            let peer = self.roster.kept(&key.namespace, &target, world).next();
            peer.and_then(|pod| pod.owner.as_ref()).map(|owner| owner.kind.to_string())
        });
        let word = under_way.map(|work| Word {
            suspend: work.spec.suspend.unwrap_or_default(),
            cancel: work.spec.cancel.unwrap_or_default(),
        });
        let is_known = world.is_followed(Kind::Pod) && world.pods.is_readable(&place);
        let handed = self.operator_says(case, under_way, slim, &target);
        let mut member = Member {
            name: Arc::clone(name),
            told: handed.0,
            handed: handed.1,
            target,
            pod: match slim {
                _ if !is_known => Known::Unknown,
                Some(slim) => Known::Known(Some(facts::slim_pod(slim))),
                None => Known::Known(None),
            },
            successor: Known::Known(None),
            has_no_successor: kind.is_some_and(|kind| kind != facts::STATEFUL_SET),
            word: word.unwrap_or_default(),
            is_dismissed: slim.is_some_and(|pod| !self.roster.is_meant(key, pod)),
            ..Member::default()
        };
        case.verdicts.remove(name);
        let revision = slim.map_or(0, |slim| slim.identity.revision);
        if is_known
            && slim.is_some()
            && let Some(sight) = case.sights.get(name).filter(|sight| sight.revision >= revision)
        {
            let said = sight.opinions();
            let verdicts = self.fill(&mut member, case, sight, &said, &case.pods, memory, None, world, now);
            case.verdicts.insert(Arc::clone(name), verdicts);
        }
        if is_known
            && slim.is_none()
            && let Some(course) = memory.under_way()
        {
            let verdicts = self.judge_the_rest(key, case, &member, course, now);
            member.gates = verdicts.iter().map(|(verdict, _)| *verdict).collect();
            case.verdicts.insert(Arc::clone(name), verdicts);
        }
        member
    }

    /// Whether the operator of a member that is being replaced has been told, as far as that can be said without its pod, and
    /// whether it says that it has done its part.
    fn operator_says(
        &self,
        case: &Case,
        work: Option<&Arc<Replacement>>,
        slim: Option<&Arc<crate::world::Pod>>,
        target: &str,
    ) -> (Sure, Sure) {
        let (Some(work), Ok(compiled)) = (work, &case.compiled) else { return Default::default() };
        let strategy = &compiled.0.strategy;
        let target_pod = &work.spec.target;
        let owner = self.owners.get(target).map(|owner| &owner.reply);
        let (Some(entry), Some(owner)) = (target_pod.entry.as_deref(), owner) else {
            return Default::default();
        };
        let is_gone = slim.is_none_or(|pod| *pod.identity.uid != *target_pod.uid);
        let told = if is_gone { facts::told_of(&strategy.handing, entry, owner) } else { Sure::Unknown };
        let done = strategy.done_when.as_ref();
        (told, done.map_or(Sure::Unknown, |done| facts::handed(done, entry, is_gone, owner)))
    }

    /// What the gates say of a member of which nothing is left: its operator makes others, under other names. They are asked
    /// about the workload and its pods; of the member they see its name.
    fn judge_the_rest(
        &self,
        key: &PolicyKey,
        case: &Case,
        member: &Member,
        course: &Course,
        now: Moment,
    ) -> Vec<(berth_engine::replace::Verdict, Option<String>)> {
        let Ok(compiled) = &case.compiled else { return Vec::new() };
        let pod = json!({"metadata": {
            "namespace": &*key.namespace, "name": &*member.name, "uid": &*course.uid,
        }});
        let is_peer = |other: &&Value| facts::owner_uid(other) == Some(&*member.target);
        let peers: Vec<Value> = case.pods.iter().filter(is_peer).cloned().collect();
        let started = Some(course.started);
        let company = Company { claims: &[], volumes: &[], peers: &peers, now, started };
        // What the owner said while the pod was there says nothing of the end.
        let is_new = |owner: &&Owner| course.removed.is_some_and(|removed| owner.read > removed);
        let owner = self.owners.get(&member.target).filter(is_new).and_then(|owner| owner.reply.object());
        let said = case.sights.get(&member.name).map(Sight::opinions).unwrap_or_default();
        compiled.1.verdicts(Seen { pod: &pod, node: None, owner, company: Some(company) }, &said)
    }

    /// Completes a member by what was read of it.
    #[expect(clippy::too_many_arguments, reason = "each is a part of what is known of a member")]
    pub(super) fn fill(
        &self,
        member: &mut Member,
        case: &Case,
        sight: &Sight,
        said: &[(Arc<str>, berth_engine::gate::Opinion)],
        pods: &[Value],
        memory: &Memory,
        feasible: Option<Feasibility>,
        world: &World,
        now: Moment,
    ) -> Vec<(berth_engine::replace::Verdict, Option<String>)> {
        let Ok(compiled) = &case.compiled else { return Vec::new() };
        let around = &sight.around;
        let pod = match &around.pod {
            Reply::Object(pod) => pod,
            Reply::Missing => {
                member.pod = Known::Known(None);
                return Vec::new();
            }
            _ => {
                member.pod = Known::Unknown;
                return Vec::new();
            }
        };
        let read = sight.pod.as_ref().filter(|_| !case.is_of_another_group(pod));
        let Some(read) = read else {
            member.pod = Known::Unknown;
            return Vec::new();
        };
        let node = read.node.clone();
        let others = || {
            let nodes = world.nodes.iter().filter(|(key, _)| Some(&key.name) != node.as_ref());
            self.knows_nodes.then(|| nodes.map(|(_, node)| &**node))
        };
        member.claims = if case.with_claims() { facts::claims(around, pods, others) } else { Known::Unknown };
        member.told = facts::told(&compiled.0.strategy.handing, &member.name, pod, &around.owner);
        member.feasibility = feasible.unwrap_or_else(|| {
            if !compiled.0.strategy.needs_feasible_target {
                return Feasibility::default();
            }
            let found = self.candidate(read, case, around, &member.claims, memory, world);
            found.map_or_else(|why| why, |_| Feasibility::Yes)
        });
        member.pod = Known::Known(Some(read.clone()));
        member.order = Some(0);
        if compiled.1.order.is_none() && compiled.1.gates.is_empty() {
            return Vec::new();
        }
        let owner_uid = facts::owner_uid(pod);
        let is_peer = |other: &&Value| {
            owner_uid.is_some()
                && facts::owner_uid(other) == owner_uid
                && other["metadata"]["name"] != pod["metadata"]["name"]
        };
        let peers: Vec<Value> = pods.iter().filter(is_peer).cloned().collect();
        let claims: Vec<Value> =
            around.claims.iter().filter_map(|(_, reply)| reply.object()).cloned().collect();
        let volumes: Vec<Value> =
            around.volumes.iter().filter_map(|(_, reply)| reply.object()).cloned().collect();
        let seen = Seen {
            pod,
            node: around.node.object(),
            owner: around.owner.object(),
            company: Some(Company {
                claims: &claims,
                volumes: &volumes,
                peers: &peers,
                now,
                started: memory.under_way().map(|course| course.started),
            }),
        };
        if let Some(order) = &compiled.1.order {
            member.order = order.of(seen);
        }
        let verdicts = compiled.1.verdicts(seen, said);
        member.gates = verdicts.iter().map(|(verdict, _)| *verdict).collect();
        verdicts
    }

    /// A workload, by what was read of it and what the watch tells of its pods.
    pub(super) fn target_fact(&self, key: &PolicyKey, target: &Arc<str>, world: &World) -> Workload {
        if !world.is_followed(Kind::Pod) {
            return Workload::default();
        }
        let owner = self.owners.get(target).map(|owner| &owner.reply);
        let kept = self.roster.kept(&key.namespace, target, world);
        let peers = kept.map(|pod| (&*pod.identity.key.name, facts::is_ready_slim(pod)));
        facts::target(owner, peers, self.roster.members_before(key, target, world))
    }
}

/// Whether there is no pod of a member's name.
fn is_gone(key: &PolicyKey, step: &Step, world: &World) -> bool {
    let pod = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&step.name) };
    world.pods.get(&pod).is_none()
}

/// The gates that are asked of a member that stands so.
fn asked_in(state: State) -> &'static [GateStage] {
    match state {
        State::Queued => &[GateStage::BeforeStart],
        State::Course(Phase::Gating | Phase::Draining | Phase::RemovingVolumes | Phase::RemovingPod) => {
            &[GateStage::BeforePodRemoval, GateStage::BeforeVolumeRemoval]
        }
        State::Course(Phase::Verifying) => &[GateStage::BeforeComplete],
        _ => &[],
    }
}

/// A policy as what is asked about.
pub(super) fn target_of(key: &PolicyKey) -> Target {
    Target { kind: Kind::ReplacementPolicy, key: subject(key), uid: None, resource_version: None }
}
