//! The taint eviction controller: taints of nodes in, pods that do not tolerate them out.
//!
//! Owns which pods are on which node ([`map`]), since when each taint counts (the engine's [`Tainted`]) and the queue of
//! those that must leave (the engine's [`Marshal`]). A pod that has to leave waits in the marshal, not in a job: when its cause
//! goes, or somebody says stop, it is taken out again. What has been let go is judged once more before each write, so the
//! deletion is sent only if the pod must leave by all that is known then.
//!
//! ```text
//!   node, pod changed --> judge --want--> marshal --its moment has come, nothing holds it--> judge --> mark it --> judge --> delete it
//!                           '--withdraw--'                                                      '-- may stay: cancelled
//! ```
//!
//! Who says how a pod leaves are policies, where there are any ([`policies`], [`cases`], [`counting`]); the way of one pod is in
//! [`pods`], and that a zone is held is told by [`breakers`]. With gates ([`gates`]), it is looked at before the write that takes it away, somebody outside is asked if they say so,
//! and that write is bound to what was seen.
//!
//! Subjects are pods; a node, to write down since when a taint counts that does not say so; and a policy, to be told how it stands.
//! That a stop was heard is told beside all of that, because somebody waits for it.

mod breakers;
mod cases;
mod counting;
mod gates;
mod leaving;
mod limits;
mod map;
mod pods;
mod policies;
mod step;
mod stops;
mod told;
mod workloads;

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use berth_api::core::{Node, NodeTaint};
use berth_engine::Moment;
use berth_engine::evict::policy::NodeSight;
use berth_engine::evict::{Domain, Freeze, Marshal, Route, Tainted};
use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use self::breakers::Breakers;
use self::cases::Cases;
use self::counting::Bars;
use self::leaving::Leaving;
use self::map::Map;
use self::pods::facts;
use self::policies::{Policies, is_policy};
use self::step::{Begun, Shown, Stage};
use self::workloads::Workloads;
use super::confirmation::Confirmation;
use super::{Controller, Verdict};
use crate::act::{Note, Target, Write};
use crate::due::{Due, Ended};
use crate::names::ControllerName;
use crate::rights::Need;
use crate::runtime::PLACES;
use crate::serve::Metrics;
use crate::world::{Change, Finding, Found, Kind, OWNERS, Object, Pod, World};

pub use limits::{EvictionBreaker, EvictionLimits};

/// How often it is told how many wait, and why: each is a look at everybody who is due.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// How many nodes may have changed for everybody on them to be judged in the same turn: of more, pods are judged one by one, and a
/// turn ends in time for whatever else there is to do.
const NODES_AT_ONCE: usize = 64;
/// Names that may be marked in vain before anybody cares.
const MARKS_SLACK: usize = 64;
/// What the pod is told.
const MESSAGE: &str = "Taint manager: deleting due to NoExecute taint";
/// A pod that is not mistaken for its successor of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PodId {
    uid: Arc<str>,
    key: ObjectKey,
}

impl Hash for PodId {
    /// By the uid, which no two have: it is looked up several times for each judgement, and names are long.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.uid.hash(state);
    }
}

impl PodId {
    fn of(pod: &Pod) -> Self {
        Self { uid: Arc::clone(&pod.identity.uid), key: pod.identity.key.clone() }
    }
}

/// A node whose pods may have to leave.
#[derive(Debug)]
struct Place {
    /// The node's identity: one that is made anew under the same name has other taints, whatever they are called.
    uid: Option<String>,
    tainted: Tainted,
    route: Route,
}

/// Evicts pods from nodes with taints that they do not tolerate.
#[derive(Debug)]
pub struct TaintEvictionController {
    limits: EvictionLimits,
    metrics: Arc<Metrics>,
    map: Map,
    leaving: Leaving,
    /// Nodes with taints that make pods leave.
    places: HashMap<Arc<str>, Place>,
    /// Nodes that have changed since time last passed.
    changed: HashSet<Arc<str>>,
    marshal: Marshal<PodId>,
    /// Those the marshal has let go that have not ended.
    going: HashMap<PodId, Stage>,
    policies: Policies,
    cases: Cases,
    workloads: Workloads,
    /// Owners whose pods are to be counted, and those to be counted again when time has passed.
    muster: HashSet<Arc<str>>,
    mustered: HashMap<Arc<str>, Moment>,
    /// What held pods of policies when it was looked last, besides their own affairs.
    bars: Bars,
    breakers: Breakers,
    /// Domains of policies that have bounds.
    bounded: HashSet<Domain>,
    /// Namespaces whose labels have changed since time last passed.
    relabelled: HashSet<Arc<str>>,
    /// What was shown of pods that are about to go.
    sights: HashMap<ObjectKey, Shown>,
    /// What budgets have said about pods that were to be evicted.
    refusals: HashMap<ObjectKey, String>,
    begun: HashMap<ObjectKey, Begun>,
    /// When the last attempt on a pod failed. It comes back behind whoever was due before that, so those with whom it always
    /// fails do not keep the others waiting.
    failed: HashMap<PodId, Moment>,
    /// Since when pods count as being on their node that say they came there in the future: since they were first judged.
    ahead: HashMap<PodId, Moment>,
    /// What a person has said.
    freeze: Option<Freeze>,
    /// What another controller has said.
    stopped: Option<Freeze>,
    /// Those that would leave a node whose latest state cannot be read, by that node: its taints may have gone, so they are
    /// judged when it is read again.
    held: HashMap<Arc<str>, HashSet<PodId>>,
    /// The freeze or its end, until it was told.
    confirmation: Confirmation,
    /// When it was told last how many wait, and whether that may have changed.
    told: (Moment, bool),
    /// The moment it knew last.
    clock: Moment,
}

impl TaintEvictionController {
    /// A controller that keeps these limits.
    pub fn new(limits: EvictionLimits, metrics: Arc<Metrics>) -> Self {
        let mut marshal = Marshal::default();
        marshal.bound(&Domain::Everything, limits.of_all(PLACES, 0), Moment::PAST);
        metrics.evictions_stopped(marshal.stops());
        Self {
            limits,
            metrics,
            map: Map::default(),
            leaving: Leaving::new(limits.count_leaving()),
            places: HashMap::new(),
            changed: HashSet::new(),
            marshal,
            going: HashMap::new(),
            policies: Policies::default(),
            cases: Cases::default(),
            workloads: Workloads::default(),
            muster: HashSet::new(),
            mustered: HashMap::new(),
            bars: Bars::default(),
            breakers: Breakers::default(),
            bounded: HashSet::new(),
            relabelled: HashSet::new(),
            sights: HashMap::new(),
            refusals: HashMap::new(),
            begun: HashMap::new(),
            failed: HashMap::new(),
            ahead: HashMap::new(),
            freeze: None,
            stopped: None,
            held: HashMap::new(),
            confirmation: Confirmation::of(ControllerName::TaintEviction),
            told: (Moment::PAST, true),
            clock: Moment::PAST,
        }
    }

    fn pod_changed(&mut self, before: Option<&Pod>, after: Option<&Pod>, due: &mut Due) {
        self.map.pod(before, after);
        self.leaving.pod(before, after);
        self.workloads.pod(before, after);
        let is_another = |pod: &&Pod| after.is_none_or(|after| after.identity.uid != pod.identity.uid);
        if let Some(gone) = before.filter(is_another) {
            let id = PodId::of(gone);
            self.marshal.withdraw(&id);
            self.ahead.remove(&id);
            self.failed.remove(&id);
            self.unhold(&gone.node, &id);
            self.cases.remove(&id);
            // A write that is under way ends by itself.
            if self.begun.get(&id.key).is_none_or(|begun| begun.id != id) {
                self.call_back(&id);
            }
            due.forget(&id.key);
        }
        let Some(pod) = after else { return };
        let Some(place) = self.places.get(&pod.node) else {
            // Nobody is there to end it, perhaps.
            if pod.is_terminating() && self.policies.uses_force() {
                due.mark(&pod.identity.key);
            }
            return;
        };
        let concerns = |before: &Pod| {
            before.identity.uid != pod.identity.uid
                || before.node != pod.node
                || before.tolerations != pod.tolerations
                || before.is_terminating() != pod.is_terminating()
                || before.is_terminal() != pod.is_terminal()
                || (before.labels != pod.labels && !self.policies.book.is_empty())
        };
        // What a gate looks at is not kept of a pod: any change may open it.
        let is_unblocked = !self.policies.book.is_empty() && self.cases.unblock(&PodId::of(pod), self.clock);
        if is_unblocked || before.is_none_or(concerns) {
            due.mark(&pod.identity.key);
            if place.tainted.has_timeless() {
                due.mark(&subject_of_node(&pod.node));
            }
        }
    }

    fn node_changed(&mut self, key: &ObjectKey, before: Option<&Node>, after: Option<&Node>, due: &mut Due) {
        let same = |one: &Node, other: &Node| {
            one.metadata.uid == other.metadata.uid
                && one.metadata.labels == other.metadata.labels
                && one.no_execute().eq(other.no_execute())
        };
        // What shows that a node is fenced matters to those who do not end there.
        if self.policies.uses_force() && before.map(NodeSight::of) != after.map(NodeSight::of) {
            self.changed.insert(Arc::clone(&key.name));
        }
        if before.zip(after).is_some_and(|(before, after)| same(before, after)) {
            return;
        }
        self.map.node(before, after);
        self.changed.insert(Arc::clone(&key.name));
        if after.is_none() {
            self.breakers.take_untold(&key.name);
            due.forget(key);
        }
    }

    /// Forgets what was to be looked at and is no more. Whoever stands by marks and never looks, for as long as it stands by.
    fn forget_marks(&mut self, world: &World) {
        let Self { changed, relabelled, places, map, .. } = self;
        // Looked through when half of it may be in vain, so it costs next to nothing.
        if changed.len() > MARKS_SLACK + 2 * (world.nodes.len() + places.len() + map.inhabited()) {
            changed.retain(|name| {
                world.nodes.get(&subject_of_node(name)).is_some()
                    || places.contains_key(name)
                    || map.on(name).next().is_some()
            });
        }
        if relabelled.len() > MARKS_SLACK + 2 * world.namespaces.len() {
            relabelled.retain(|name| world.namespaces.get(&ObjectKey::new("", name)).is_some());
        }
    }

    /// A node is looked at again, and so is everybody on it: at once where such nodes `are_few`, and one by one otherwise.
    fn look_at(&mut self, name: &Arc<str>, world: &World, now: Moment, are_few: bool, due: &mut Due) {
        let subject = subject_of_node(name);
        let node = world.nodes.get(&subject).filter(|node| node.no_execute().next().is_some());
        let known = self.places.remove(name);
        if node.is_none() && known.is_none() && !self.policies.uses_force() {
            return;
        }
        if let Some(node) = node {
            let uid = node.metadata.uid.clone();
            let known = known.filter(|place| place.uid == uid);
            let mut tainted = known.map(|place| place.tainted).unwrap_or_default();
            let created = node.metadata.creation_timestamp.as_ref();
            let created = created.map_or(Moment::PAST, |time| Moment::from_timestamp(time.0));
            tainted.observe(node.no_execute().map(Into::into), created, now);
            if tainted.has_timeless() {
                due.mark(&subject);
            }
            self.places.insert(Arc::clone(name), Place { uid, tainted, route: map::route(node) });
        }
        let Self { map, policies, places, cases, going, held, ahead, marshal, failed, .. } = self;
        // Where nothing but the taints of the node has a say, and nobody is on his way, an eviction that lies ahead is a place in
        // the queue, and nothing else is to be done about it.
        let is_plain = are_few
            && policies.book.is_empty()
            && cases.is_empty()
            && going.is_empty()
            && held.is_empty()
            && ahead.is_empty();
        let place = places.get(name).filter(|place| is_plain && !place.tainted.is_drained());
        for key in map.on(name) {
            let armed = place.zip(world.pods.get(key)).and_then(|(place, pod)| {
                let at = pods::ahead(pod, &place.tainted, now)?;
                Some((PodId::of(pod), at, &place.route))
            });
            match armed {
                Some((id, at, route)) if !failed.contains_key(&id) => marshal.want(&id, at, route),
                _ => due.mark(key),
            }
        }
        self.told.1 = true;
    }

    /// Writes down since when the taints of a node count that do not say so, if that matters to anybody there: so a restart
    /// does not begin anew.
    fn decide_node(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        let notes = self.breakers.take_untold(&subject.name);
        if !notes.is_empty() {
            // What is told by itself does not depend on how a write comes out.
            return Verdict { notes, wake: Some(now), outcome: "told", ..Verdict::default() };
        }
        let stamped = || -> Option<Write> {
            let node = world.nodes.get(subject)?;
            let tainted = &self.places.get(&subject.name)?.tainted;
            let mut pods = self.map.on(&subject.name).filter_map(|pod| world.pods.get(pod));
            let book = &self.policies.book;
            let needs_time = |pod: &Pod| tainted.needs_time_of(&facts(pod, pod.since, book, world), book);
            if !pods.any(|pod| !pod.is_terminal() && needs_time(pod)) {
                return None;
            }
            let stamp = |taint: &NodeTaint| {
                let time = tainted.stamp(&taint.into());
                let time_added =
                    time.and_then(Moment::timestamp).map(Time).or_else(|| taint.time_added.clone());
                NodeTaint { time_added, ..taint.clone() }
            };
            let taints: Vec<NodeTaint> = node.spec.taints.iter().map(stamp).collect();
            (taints != node.spec.taints).then(|| Write::Patch {
                target: Target::of(&Object::Node(Arc::clone(node))),
                subresource: None,
                patch: json!({"spec": {"taints": taints}}),
            })
        };
        match stamped() {
            Some(write) => Verdict { writes: vec![write], outcome: "timed", ..Verdict::default() },
            None => Verdict { outcome: "in-order", ..Verdict::default() },
        }
    }

    /// The clock was set back. Deadlines are moments and stay; who waits for a while does so from now on, and not until what is an
    /// hour off now.
    fn set_back(&mut self, now: Moment, due: &mut Due) {
        tracing::warn!(%now, before = %self.clock, "the clock was set back");
        for id in self.cases.set_back(now) {
            due.mark(&id.key);
        }
        for (id, stage) in &mut self.going {
            if let Stage::Sent(sent) = stage
                && *sent > now
            {
                *sent = now;
                due.mark(&id.key);
            }
        }
        for failed in self.failed.values_mut() {
            *failed = (*failed).min(now);
        }
        self.muster.extend(self.mustered.drain().map(|(owner, _)| owner));
    }
}

impl Controller for TaintEvictionController {
    fn name(&self) -> ControllerName {
        ControllerName::TaintEviction
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Node, Kind::Pod, Kind::Freeze, Kind::Policy]
    }

    fn kinds_at_need(&self) -> &'static [Kind] {
        &[Kind::Namespace]
    }

    fn needs_more(&self) -> bool {
        self.policies.book.needs_namespaces()
    }

    fn needs(&self) -> &'static [Need] {
        &[
            // Since when a taint counts that does not say so.
            Need::Patch(Kind::Node),
            Need::PatchPart(Kind::Pod, "status"),
            Need::Delete(Kind::Pod),
            Need::CreatePart(Kind::Pod, "eviction"),
            // What gates ask about, and whether a node is still fenced.
            Need::Get(Kind::Pod),
            Need::Get(Kind::Node),
            Need::Look(OWNERS[0].0, OWNERS[0].2),
            Need::Look(OWNERS[1].0, OWNERS[1].2),
            Need::Look(OWNERS[2].0, OWNERS[2].2),
            Need::Look(OWNERS[3].0, OWNERS[3].2),
            Need::Look(OWNERS[4].0, OWNERS[4].2),
            Need::PatchPart(Kind::Policy, "status"),
            Need::Record,
        ]
    }

    fn observe(&mut self, change: &Change, world: &World, due: &mut Due) {
        if self.confirmation.hear(change, &self.metrics) {
            self.freeze = match &change.after {
                Some(Object::Freeze(map)) => Some(map.freeze.clone()),
                _ => None,
            };
            self.told.1 = true;
            return;
        }
        self.forget_marks(world);
        match (&change.before, &change.after) {
            (Some(Object::Pod(before)), Some(Object::Pod(after))) => {
                self.pod_changed(Some(before), Some(after), due);
            }
            (Some(Object::Pod(before)), None) => self.pod_changed(Some(before), None, due),
            (None, Some(Object::Pod(after))) => self.pod_changed(None, Some(after), due),
            (Some(Object::Node(before)), Some(Object::Node(after))) => {
                self.node_changed(&change.key, Some(before), Some(after), due);
            }
            (Some(Object::Node(before)), None) => self.node_changed(&change.key, Some(before), None, due),
            (None, Some(Object::Node(after))) => self.node_changed(&change.key, None, Some(after), due),
            (Some(Object::Policy(before)), Some(Object::Policy(after))) => {
                self.policies.observe(Some(before), Some(after));
            }
            (Some(Object::Policy(before)), None) => self.policies.observe(Some(before), None),
            (None, Some(Object::Policy(after))) => self.policies.observe(None, Some(after)),
            (before, Some(Object::Namespace(after))) => {
                let labels = |object: &Object| match object {
                    Object::Namespace(namespace) => namespace.metadata.labels.clone(),
                    _ => None,
                };
                if before.as_ref().is_none_or(|before| labels(before) != after.metadata.labels) {
                    self.relabelled.insert(Arc::clone(&change.key.name));
                }
            }
            _ => {}
        }
    }

    fn advance(&mut self, now: Moment, world: &World, due: &mut Due) {
        if now < self.clock {
            self.set_back(now, due);
        }
        self.clock = now;
        self.heed_stops(world);
        self.read_policies(world, now, due);
        self.look_at_namespaces(due);
        let changed = std::mem::take(&mut self.changed);
        let are_few = changed.len() <= NODES_AT_ONCE;
        for name in &changed {
            self.look_at(name, world, now, are_few, due);
        }
        let read = self.held.iter().filter(|(node, _)| world.nodes.is_readable(&subject_of_node(node)));
        for id in read.flat_map(|(_, held)| held) {
            due.mark(&id.key);
        }
        for (name, zone) in self.map.changes() {
            let domain = Domain::Zone(name);
            match zone {
                Some(zone) => {
                    self.marshal.bound(&domain, self.limits.of_zone(), now);
                    self.marshal.census(&domain, zone.tainted, zone.nodes, now);
                }
                None => self.marshal.forget(&domain, now),
            }
        }
        self.count(world, now, due);
        self.count_leaving(!changed.is_empty(), now);
        // Who is the longest due is known when everybody was judged.
        if !due.is_ready() {
            while let Some(id) = self.marshal.next(now) {
                due.mark(&id.key);
                self.going.insert(id, Stage::LetGo);
            }
        }
        self.tell_breakers(world, due);
        let (told, may_differ) = self.told;
        if may_differ && (told > now || told.plus(TELL_EVERY) <= now) {
            // What is due now and was not, time brings about.
            self.told = (now, self.marshal.waiting() > 0);
            self.metrics.evictions(self.marshal.waiting(), &self.marshal.held(now));
            self.look_at_bars(now);
        }
    }

    fn wake(&self) -> Option<Moment> {
        let (told, may_differ) = self.told;
        let mustered = self.mustered.values().min().copied();
        let others = self.policies.wake().into_iter().chain(mustered).chain(self.leaving.wake());
        self.marshal.wake().into_iter().chain(may_differ.then(|| told.plus(TELL_EVERY))).chain(others).min()
    }

    fn heed(&mut self, stop: Option<&Freeze>) {
        if let Some(stop) = stop {
            tracing::warn!(reason = %stop.reason, "evictions are held");
        } else {
            tracing::info!("evictions are held no more");
        }
        self.stopped = stop.cloned();
    }

    fn news(&mut self) -> Option<Note> {
        // Said by who obeys it: the marshal has been told.
        self.confirmation.take()
    }

    fn found(&mut self, found: Found) {
        match found.finding {
            Finding::Objects { pod, node, owner } => {
                self.sights.insert(found.subject, Shown::new(pod, node, owner));
            }
            Finding::Review { gate, answer, .. } => {
                if let Some(shown) = self.sights.get_mut(&found.subject) {
                    shown.said.push((gate, answer));
                }
            }
            // It asks for nothing else.
            Finding::Replies(_) => {}
            Finding::Budget(message) => {
                self.refusals.insert(found.subject, message);
            }
        }
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        if is_policy(subject) {
            return self.decide_policy(&subject.name, world, now);
        }
        if subject.namespace.is_empty() {
            return self.decide_node(subject, world, now);
        }
        self.told.1 = true;
        match world.pods.get(subject) {
            Some(pod) => self.decide_pod(pod, world, now),
            None => Verdict { outcome: "gone", ..Verdict::default() },
        }
    }

    fn ended(&mut self, subject: &ObjectKey, ended: Ended, now: Moment, world: &World, due: &mut Due) {
        self.step_ended(subject, ended, now, world, due);
    }
}

/// Takes somebody out of a map that is empty most of the time. The standard one hashes whom it is asked for even then, and a change
/// of one node asks for each of its pods.
fn take<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: &K) -> Option<V> {
    if map.is_empty() { None } else { map.remove(key) }
}

/// A node as a subject: pods have a namespace.
fn subject_of_node(name: &str) -> ObjectKey {
    ObjectKey::new("", name)
}

#[cfg(test)]
mod tests;
