//! What is to be done about a pod: judged, chosen, taken step by step.
//!
//! Owns the way of one pod from a verdict of the engine to the writes, and what the end of each makes of it. Who may go, and when,
//! is the marshal's and the engine's to say.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use berth_engine::Moment;
use berth_engine::evict::policy::{
    Act, Authority, Book, Demand, Keep, NodeSight, PodFacts, Rule, demands, force,
};
use berth_engine::evict::{Allowance, Domain, Route, Tainted};
use berth_engine::model::ObjectKey;
use serde_json::{Value, json};

use super::cases::{State, Wait};
use super::step::{Begun, Choice, Stage, Step};
use super::told::{held, note};
use super::{MESSAGE, PodId, TaintEvictionController, subject_of_node, take, workloads};
use crate::act::{Note, Target, Write};
use crate::controllers::Verdict;
use crate::due::{Due, Ended};
use crate::names::ControllerName;
use crate::world::{BY_TAINT, Disruption, Kind, Object, Pod, World};

/// How long after an eviction was answered its pod should be seen to leave.
const SENT_MAX: Duration = Duration::from_secs(10);

impl TaintEvictionController {
    /// Why a pod must leave its node, the earliest first; nothing if it may stay.
    pub(super) fn demands(&mut self, pod: &Pod, world: &World, now: Moment) -> Vec<Demand> {
        // Who has ended need not be told, and a mirror pod is its kubelet's.
        if pod.is_terminal() || pod.is_mirror {
            return Vec::new();
        }
        let Some(place) = self.places.get(&pod.node) else { return Vec::new() };
        let arrived = arrived(&mut self.ahead, pod, now);
        demands(&facts(pod, arrived, &self.policies.book, world), &place.tainted, &self.policies.book, now)
    }

    /// The place of somebody who was let go is free again.
    pub(super) fn release(&mut self, id: &PodId) -> bool {
        self.marshal.ended(id);
        take(&mut self.sights, &id.key);
        take(&mut self.going, id).is_some()
    }

    /// Somebody who was let go has not gone, for a reason of its own.
    pub(super) fn give_back(&mut self, id: &PodId) {
        self.marshal.given_back(id);
        self.release(id);
    }

    /// Somebody who was let go will not go after all, unless what was sent cannot be called back. Says whether it was on its way.
    pub(super) fn call_back(&mut self, id: &PodId) -> bool {
        if !matches!(self.going.get(id), Some(Stage::Sent(_))) {
            self.marshal.given_back(id);
        }
        self.release(id)
    }

    /// Somebody is not held any more; says whether it was.
    pub(super) fn unhold(&mut self, node: &Arc<str>, id: &PodId) -> bool {
        let Some(held) = self.held.get_mut(node) else { return false };
        let was_held = held.remove(id);
        if held.is_empty() {
            self.held.remove(node);
        }
        was_held
    }

    pub(super) fn decide_pod(&mut self, pod: &Arc<Pod>, world: &World, now: Moment) -> Verdict {
        let id = PodId::of(pod);
        let was_held = self.unhold(&pod.node, &id);
        if pod.is_terminating()
            && let Some(verdict) = self.decide_leaving(pod, &id, world, now)
        {
            return verdict;
        }
        let demands = if pod.is_terminating() { Vec::new() } else { self.demands(pod, world, now) };
        if demands.is_empty() {
            let has_waited = self.marshal.withdraw(&id);
            let was_going = self.call_back(&id);
            let had_case = self.cases.remove(&id);
            take(&mut self.failed, &id);
            // Of somebody else's deletion others tell.
            let is_cancelled = (has_waited || was_going || was_held || had_case)
                && !pod.is_terminating()
                && !pod.is_terminal();
            let notes = is_cancelled.then(|| note(pod, "CancelEviction", "Cancelling deletion of Pod"));
            return Verdict { notes: notes.into_iter().collect(), outcome: "stays", ..Verdict::default() };
        }
        let Choice { demand, at, wake, keep } = self.choose(pod, &id, demands, now);
        let notes: Vec<Note> =
            keep.iter().filter(|keep| self.cases.is_news(&id, keep)).map(|keep| held(pod, keep)).collect();
        let Some(demand) = demand else {
            self.marshal.withdraw(&id);
            self.call_back(&id);
            return Verdict { notes, wake, outcome: "held", ..Verdict::default() };
        };
        let waits = |notes: Vec<Note>| Verdict {
            notes,
            wake,
            is_waiting: true,
            outcome: "waits",
            ..Verdict::default()
        };
        if at <= now && !world.nodes.is_readable(&subject_of_node(&pod.node)) {
            self.marshal.withdraw(&id);
            self.call_back(&id);
            self.held.entry(Arc::clone(&pod.node)).or_default().insert(id);
            return waits(notes);
        }
        if let Some(Stage::Sent(sent)) = self.going.get(&id) {
            let until = sent.plus(SENT_MAX);
            if now < until {
                return Verdict {
                    wake: Some(until),
                    is_waiting: true,
                    outcome: "sent",
                    ..Verdict::default()
                };
            }
            self.release(&id);
        }
        // What opened or was said since it was let go counts as well as what was before.
        let stage = self.going.get(&id).copied().filter(|_| at <= now && !self.marshal.is_barred(&id));
        let Some(stage) = stage else {
            self.call_back(&id);
            let route = self.route(pod, demand.authority.rule(), now);
            self.want(&id, at, &route, now);
            return waits(notes);
        };
        let verdict = self.act(pod, &id, &demand, stage, world, now);
        // What time alone changes does so as well while something is under way.
        Verdict { wake: verdict.wake.or(wake), ..verdict }
    }

    /// Which of several demands counts now, and how the pod stands by that.
    pub(super) fn choose(&mut self, pod: &Pod, id: &PodId, demands: Vec<Demand>, now: Moment) -> Choice {
        let by_rule_alone = demands.iter().all(|demand| demand.authority == Authority::Kubernetes);
        let turns = demands.iter().flat_map(|demand| {
            let comes_to_be_held = matches!(demand.act, Act::Hold(_)).then_some(demand.at);
            demand.turns.into_iter().chain(comes_to_be_held)
        });
        let wake = turns.filter(|turn| *turn > now).min();
        let may_go = demands.iter().enumerate().filter(|(_, demand)| {
            !matches!(demand.act, Act::Hold(_)) && !self.cases.is_spared(id, &demand.authority)
        });
        // A budget has nothing to say to a deletion, as after a deadline.
        let blocked = |demand: &Demand| {
            let blocked = self.cases.blocked(id, &demand.authority);
            blocked.filter(|(_, keep)| demand.act == Act::Evict || !matches!(keep, Keep::Budget(_)))
        };
        let at = |demand: &Demand| blocked(demand).map_or(demand.at, |(until, _)| until.max(demand.at));
        let chosen = may_go.map(|(place, demand)| (at(demand), place)).min();
        let leading = &demands[chosen.map_or(0, |(_, place)| place)];
        let state = match (&leading.act, chosen) {
            _ if self.cases.is_spared(id, &leading.authority) => State::Spared,
            (Act::Hold(keep), _) if leading.at <= now => State::Held(keep.clone()),
            (Act::Hold(Keep::Window { opens }), _) => State::Waits(*opens),
            (_, Some((at, _))) if at > now && leading.at <= now => {
                let keep = blocked(leading).map(|(_, keep)| keep.clone());
                keep.map_or(State::Waits(at), State::Held)
            }
            _ => State::Waits(leading.at),
        };
        let keep = match &state {
            State::Held(keep) => Some(keep.clone()),
            _ => None,
        };
        if !by_rule_alone && (leading.authority != Authority::Kubernetes || self.cases.is_blocked(id)) {
            let zone = self.zone_of(&pod.node);
            self.cases.set(id, &leading.authority, &leading.others, zone.as_ref(), state);
        } else {
            self.cases.remove(id);
        }
        let demand = chosen.and_then(|(_, place)| demands.into_iter().nth(place));
        Choice { demand, at: chosen.map_or(Moment::NEVER, |(at, _)| at), wake, keep }
    }

    /// The next step with a pod that the marshal has let go.
    pub(super) fn act(
        &mut self,
        pod: &Arc<Pod>,
        id: &PodId,
        demand: &Demand,
        stage: Stage,
        world: &World,
        now: Moment,
    ) -> Verdict {
        let orders = demand.authority.rule().and_then(|rule| rule.orders.as_ref().ok());
        let resource_version = match self.through_gates(pod, id, demand, stage, world, now) {
            ControlFlow::Continue(revision) => revision,
            ControlFlow::Break(verdict) => return verdict,
        };
        let target = Target { resource_version, ..Target::whatever_revision(&Object::Pod(Arc::clone(pod))) };
        if let Some(rule) = demand.authority.rule()
            && orders.is_some_and(|orders| orders.is_dry_run)
        {
            self.cases.spare(id, &rule.name, rule.generation);
            self.metrics.evicted_by_policy(&rule.name, "DryRun");
            self.marshal.rehearsed(id);
            self.release(id);
            return self.decide_pod(pod, world, now);
        }
        if demand.act == Act::Evict {
            self.begin(id, demand, Step::Evict(demand.at));
            return Verdict {
                writes: vec![Write::Evict { target, asker: ControllerName::TaintEviction }],
                notes: vec![note(pod, "Evict", "Evicting Pod")],
                outcome: "evicted",
                ..Verdict::default()
            };
        }
        let is_marked = stage == Stage::Marked || pod.disruption == Some(Disruption::ByTaint);
        let is_bound = target.resource_version.is_some();
        let mark = (!is_marked).then(|| Write::Strategic {
            target: target.clone(),
            subresource: Some("status"),
            patch: disruption(pod, now),
        });
        if mark.is_some() && !is_bound {
            self.begin(id, demand, Step::Mark);
            return Verdict { writes: mark.into_iter().collect(), outcome: "marked", ..Verdict::default() };
        }
        self.begin(id, demand, Step::Delete(demand.at));
        Verdict {
            writes: mark.into_iter().chain([Write::Delete(target)]).collect(),
            notes: vec![note(pod, "Evict", "Marking for deletion Pod")],
            outcome: "deleted",
            ..Verdict::default()
        }
    }

    pub(super) fn begin(&mut self, id: &PodId, demand: &Demand, step: Step) {
        let begun = Begun { id: id.clone(), authority: demand.authority.clone(), step };
        self.begun.insert(id.key.clone(), begun);
    }

    /// What becomes of a pod that is on its way out, if a policy has a say in it.
    pub(super) fn decide_leaving(
        &mut self,
        pod: &Arc<Pod>,
        id: &PodId,
        world: &World,
        now: Moment,
    ) -> Option<Verdict> {
        if self.policies.book.is_empty() || pod.is_mirror {
            return None;
        }
        let key = subject_of_node(&pod.node);
        let node = world.nodes.get(&key);
        let arrived = arrived(&mut self.ahead, pod, now);
        let book = &self.policies.book;
        let facts = facts(pod, arrived, book, world);
        let (rule, others) = match self.places.get(&pod.node) {
            Some(place) => {
                let told = demands(&facts, &place.tainted, book, now);
                let demand = told.into_iter().find(|demand| demand.authority.rule().is_some())?;
                (Arc::clone(demand.authority.rule()?), demand.others)
            }
            None if node.is_none() && world.nodes.is_readable(&key) && !pod.node.is_empty() => (
                Arc::clone(book.governing_without_node(&facts).filter(|found| found.is_certain)?.rule),
                Vec::new(),
            ),
            None => return None,
        };
        let authority = Authority::Policy(Arc::clone(&rule));
        let zone = self.zone_of(&pod.node);
        self.cases.set(id, &authority, &others, zone.as_ref(), State::Leaves);
        let stays = Verdict { outcome: "leaves", ..Verdict::default() };
        let forced = rule.orders.as_ref().ok().filter(|orders| !orders.is_dry_run).and_then(|orders| {
            let sight = match node {
                _ if !world.nodes.is_readable(&key) => NodeSight::Unknown,
                None => NodeSight::Gone,
                Some(node) => NodeSight::of(node),
            };
            let (at, ground) = force(orders.force.as_ref()?, pod.deletion?, sight);
            Some((at.max(self.cases.destroyed_until(id)), ground?))
        });
        let Some((at, ground)) = forced else {
            self.marshal.withdraw(id);
            self.call_back(id);
            return Some(stays);
        };
        let is_let_go = at <= now && !self.marshal.is_barred(id) && self.going.contains_key(id);
        if !is_let_go || self.going.get(id) != Some(&Stage::LetGo) {
            self.call_back(id);
            // It had its turn by its policy, and is among those that the policy counts as away: it would wait for itself.
            let route = self.route(pod, None, now);
            self.want(id, at, &route, now);
            return Some(Verdict { is_waiting: true, ..stays });
        }
        // What the ground rests on must still be so.
        let proof = match node {
            Some(node) => Target::of(&Object::Node(Arc::clone(node))),
            None => Target::to_come(Kind::Node, key),
        };
        let begun = Begun { id: id.clone(), authority, step: Step::Destroy };
        self.begun.insert(id.key.clone(), begun);
        let mut told = note(pod, "ForceDelete", "Deleting by force Pod");
        told.note = format!("{}: {ground}", told.note);
        told.is_warning = true;
        Some(Verdict {
            writes: vec![
                Write::Unchanged(proof),
                Write::Destroy(Target::whatever_revision(&Object::Pod(Arc::clone(pod)))),
            ],
            notes: vec![told],
            outcome: "forced",
            ..Verdict::default()
        })
    }

    /// Somebody must leave from a moment on, and has its turn by that moment or by that of its last failure.
    fn want(&mut self, id: &PodId, at: Moment, route: &Route, now: Moment) {
        let failed = self.failed.get(id).map_or(Moment::PAST, |failed| (*failed).min(now));
        self.marshal.want(id, at.max(failed), route);
    }

    /// The zone of a tainted node; none of one that is not, or is not there.
    fn zone_of(&self, node: &str) -> Option<Arc<str>> {
        self.places.get(node)?.route.iter().find_map(Domain::zone).cloned()
    }

    /// What has a say when a pod leaves, by the word of a policy or none.
    pub(super) fn route(&mut self, pod: &Pod, rule: Option<&Arc<Rule>>, now: Moment) -> Route {
        let place = self.places.get(&pod.node).map(|place| Arc::clone(&place.route));
        let place = place.unwrap_or_else(|| [Domain::Everything].into());
        let Some((rule, orders)) = rule.and_then(|rule| Some((rule, rule.orders.as_ref().ok()?))) else {
            return place;
        };
        let mut domains = place.to_vec();
        domains.push(Domain::Policy(Arc::clone(&rule.name)));
        if orders.pace.bounds_zones()
            && let Some(zone) = place.iter().find_map(Domain::zone)
        {
            let domain = Domain::PolicyZone(Arc::clone(&rule.name), Arc::clone(zone));
            if self.bounded.insert(domain.clone()) {
                self.marshal.bound(&domain, orders.pace.of_zone(), now);
                self.count_zone(&rule.name, zone, now);
            }
            domains.push(domain);
        }
        if orders.pace.per_workload != Allowance::All
            && let Some(owner) = workloads::owner(pod)
        {
            let domain = Domain::PolicyWorkload(Arc::clone(&rule.name), Arc::clone(&owner));
            if self.bounded.insert(domain.clone()) {
                self.marshal.bound(&domain, orders.pace.of_workload(), now);
                self.muster.insert(owner);
            }
            domains.push(domain);
        }
        domains.into()
    }

    /// The writes of a step are done, or the first that failed has ended them.
    pub(super) fn step_ended(
        &mut self,
        subject: &ObjectKey,
        ended: Ended,
        now: Moment,
        world: &World,
        due: &mut Due,
    ) {
        let Some(Begun { id, authority, step }) = take(&mut self.begun, subject) else { return };
        let refusal = self.refusals.remove(subject);
        let pod = world.pods.get(subject).filter(|pod| pod.identity.uid == id.uid);
        let is_done = ended.is_over();
        if is_done {
            self.failed.remove(&id);
        } else if pod.is_some() && !matches!(ended, Ended::Blocked { .. }) {
            self.failed.insert(id.clone(), now);
        }
        self.cases.set_failing(&id, !is_done && !matches!(ended, Ended::Blocked { .. }));
        match (ended, step) {
            (Ended::Done, Step::Look | Step::Ask) if pod.is_some() && self.sights.contains_key(subject) => {
                self.going.insert(id, Stage::Seen);
                due.mark(subject);
            }
            (Ended::Done, Step::Mark) if pod.is_some() => {
                self.going.insert(id, Stage::Marked);
                due.mark(subject);
            }
            (Ended::Done, Step::Delete(at) | Step::Evict(at)) => {
                self.metrics.evicted(at.until(now));
                if let Some(rule) = authority.rule() {
                    let way = if matches!(step, Step::Evict(_)) { "Evict" } else { "Delete" };
                    self.metrics.evicted_by_policy(&rule.name, way);
                    self.policies.evicted(&rule.name);
                }
                let is_seen = pod.is_none_or(|pod| pod.is_terminating()) || matches!(step, Step::Delete(_));
                if is_seen {
                    self.release(&id);
                } else {
                    self.going.insert(id, Stage::Sent(now));
                    due.mark(subject);
                }
            }
            (Ended::Done, Step::Destroy) => {
                if let Some(rule) = authority.rule() {
                    self.metrics.evicted_by_policy(&rule.name, "Force");
                }
                self.cases.destroyed(&id, now);
                self.release(&id);
                if pod.is_some() {
                    due.mark(subject);
                }
            }
            (Ended::Blocked { jitter, after }, _) => {
                let message = refusal.unwrap_or_default();
                let wait = Wait::Doubling { jitter, least: after };
                self.cases.block(&id, &authority, Keep::Budget(message.into()), wait, now);
                self.give_back(&id);
                due.mark(subject);
            }
            // Who went by another's hand is not counted, and nobody's turn is used up by it. What failed is wanted again when its
            // wait is over; its place is for others meanwhile, and so is its turn where the server has said that it was not done.
            (Ended::Gone | Ended::Refused { .. }, _) => self.give_back(&id),
            _ => {
                self.release(&id);
            }
        }
    }
}

/// Since when a pod counts as being on its node; `ahead` remembers it of those that say they came there in the future.
fn arrived(ahead: &mut HashMap<PodId, Moment>, pod: &Pod, now: Moment) -> Moment {
    if pod.since > now {
        // Bounded by something that stands still, or it would never be due.
        return *ahead.entry(PodId::of(pod)).or_insert(now);
    }
    if ahead.is_empty() {
        return pod.since;
    }
    ahead.get(&PodId::of(pod)).map_or(pod.since, |first| pod.since.min(*first))
}

/// When a pod must leave a tainted node by Kubernetes' rule, if that lies ahead; `None` where anything else is to be seen to.
pub(super) fn ahead(pod: &Pod, tainted: &Tainted, now: Moment) -> Option<Moment> {
    let is_plain = !pod.is_terminal() && !pod.is_terminating() && !pod.is_mirror && pod.since <= now;
    let leave = if is_plain { tainted.leave(&pod.tolerations, pod.since) } else { None };
    leave.map(|leave| leave.at).filter(|at| *at > now)
}

/// What is to be known of a pod to judge it.
pub(super) fn facts<'p>(pod: &'p Pod, arrived: Moment, book: &Book, world: &'p World) -> PodFacts<'p> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    let namespace = || world.namespaces.get(&ObjectKey::new("", &pod.identity.key.namespace));
    let known = if book.needs_namespaces() { namespace() } else { None };
    PodFacts {
        namespace: &pod.identity.key.namespace,
        namespace_labels: known.map(|namespace| namespace.metadata.labels.as_ref().unwrap_or(&NONE)),
        labels: &pod.labels,
        owner_kind: pod.owner.as_ref().map(|owner| &*owner.kind),
        tolerations: &pod.tolerations,
        arrived,
    }
}

/// That a pod goes, as it is written into its status.
fn disruption(pod: &Pod, now: Moment) -> Value {
    let mut condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": BY_TAINT, "message": MESSAGE,
        "lastTransitionTime": now.to_string(),
    });
    if pod.generation > 0 {
        condition["observedGeneration"] = json!(pod.generation);
    }
    json!({"status": {"conditions": [condition]}})
}
