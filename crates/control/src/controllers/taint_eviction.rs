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
//! Subjects are pods; a node, to write down since when a taint counts that does not say so; and the freeze.

mod limits;
mod map;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use berth_api::core::{Node, NodeTaint};
use berth_engine::Moment;
use berth_engine::evict::{Domain, Freeze, Leave, Marshal, Route, Tainted};
use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use self::map::Map;
use super::{Controller, Verdict};
use crate::act::{Note, Target, Write};
use crate::due::{Due, Ended};
use crate::names::ControllerName;
use crate::rights::Need;
use crate::runtime::PLACES;
use crate::serve::Metrics;
use crate::world::{BY_TAINT, Change, Disruption, FreezeMap, Kind, Object, Pod, World};

pub use limits::{EvictionBreaker, EvictionLimits};

/// How often it is told how many wait, and why: each is a look at everybody who is due.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// What the pod is told.
const MESSAGE: &str = "Taint manager: deleting due to NoExecute taint";
/// What the event gives as its reason by which a stop is confirmed.
pub const FROZEN_REASON: &str = "EvictionsFrozen";
/// What is told while nobody knows whether somebody has said stop.
const BLIND_REASON: &str = "whether evictions are frozen cannot be seen: the ConfigMap is not followed";
/// What events about pods give as their reason.
const REASON: &str = "TaintManagerEviction";

/// A pod that is not mistaken for its successor of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PodId {
    uid: Arc<str>,
    key: ObjectKey,
}

impl PodId {
    fn of(pod: &Pod) -> Self {
        Self { uid: Arc::clone(&pod.identity.uid), key: pod.identity.key.clone() }
    }
}

/// A write under way.
#[derive(Debug)]
struct Begun {
    id: PodId,
    /// When the pod was due; only for the deletion itself.
    deleting: Option<Moment>,
}

/// A node whose pods may have to leave.
#[derive(Debug)]
struct Place {
    tainted: Tainted,
    route: Route,
}

/// Evicts pods from nodes with taints that they do not tolerate.
#[derive(Debug)]
pub struct TaintEvictionController {
    limits: EvictionLimits,
    metrics: Arc<Metrics>,
    map: Map,
    /// Nodes with taints that make pods leave.
    places: HashMap<Arc<str>, Place>,
    /// Nodes that have changed since time last passed.
    changed: HashSet<Arc<str>>,
    marshal: Marshal<PodId>,
    /// Those the marshal has let go that have not ended, and whether each has been told why it goes.
    going: HashMap<PodId, bool>,
    begun: HashMap<ObjectKey, Begun>,
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
    news: Option<(Arc<FreezeMap>, bool)>,
    /// When it was told last how many wait, and whether that may have changed.
    told: (Moment, bool),
}

impl TaintEvictionController {
    /// A controller that keeps these limits.
    pub fn new(limits: EvictionLimits, metrics: Arc<Metrics>) -> Self {
        let mut marshal = Marshal::default();
        marshal.bound(&Domain::Everything, limits.of_all(PLACES), Moment::PAST);
        Self {
            limits,
            metrics,
            map: Map::default(),
            places: HashMap::new(),
            changed: HashSet::new(),
            marshal,
            going: HashMap::new(),
            begun: HashMap::new(),
            ahead: HashMap::new(),
            freeze: None,
            stopped: None,
            held: HashMap::new(),
            news: None,
            told: (Moment::PAST, true),
        }
    }

    fn pod_changed(&mut self, before: Option<&Pod>, after: Option<&Pod>, due: &mut Due) {
        self.map.pod(before, after);
        let is_another = |pod: &&Pod| after.is_none_or(|after| after.identity.uid != pod.identity.uid);
        if let Some(gone) = before.filter(is_another) {
            let id = PodId::of(gone);
            self.marshal.withdraw(&id);
            self.ahead.remove(&id);
            self.unhold(&gone.node, &id);
            // A write that is under way ends by itself.
            if self.begun.get(&id.key).is_none_or(|begun| begun.id != id) {
                self.release(&id);
            }
            due.forget(&id.key);
        }
        let Some(pod) = after else { return };
        let Some(place) = self.places.get(&pod.node) else { return };
        let concerns = |before: &Pod| {
            before.identity.uid != pod.identity.uid
                || before.node != pod.node
                || before.tolerations != pod.tolerations
                || before.is_terminating() != pod.is_terminating()
                || before.is_terminal() != pod.is_terminal()
        };
        if before.is_none_or(concerns) {
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
        if before.zip(after).is_some_and(|(before, after)| same(before, after)) {
            return;
        }
        self.map.node(before, after);
        self.changed.insert(Arc::clone(&key.name));
        if after.is_none() {
            due.forget(key);
        }
    }

    /// A node is looked at again, and so is everybody on it.
    fn look_at(&mut self, name: &Arc<str>, world: &World, now: Moment, due: &mut Due) {
        let subject = subject_of_node(name);
        let node = world.nodes.get(&subject).filter(|node| node.no_execute().next().is_some());
        let known = self.places.remove(name);
        if node.is_none() && known.is_none() {
            return;
        }
        if let Some(node) = node {
            let mut tainted = known.map(|place| place.tainted).unwrap_or_default();
            let created = node.metadata.creation_timestamp.as_ref();
            let created = created.map_or(Moment::PAST, |time| Moment::from_timestamp(time.0));
            tainted.observe(node.no_execute().map(Into::into), created, now);
            if tainted.has_timeless() {
                due.mark(&subject);
            }
            self.places.insert(Arc::clone(name), Place { tainted, route: map::route(node) });
        }
        for pod in self.map.on(name) {
            due.mark(pod);
        }
    }

    /// When a pod must leave, and what has a say in it; `None` if it may stay.
    fn leave(&mut self, pod: &Pod, now: Moment) -> Option<(Leave, &Place)> {
        // Who has ended or is on its way out need not be told, and a mirror pod is its kubelet's.
        if pod.is_terminal() || pod.is_terminating() || pod.is_mirror {
            return None;
        }
        let place = self.places.get(&pod.node)?;
        let arrived = if pod.since > now {
            // Bounded by something that stands still, or it would never be due.
            *self.ahead.entry(PodId::of(pod)).or_insert(now)
        } else {
            self.ahead.get(&PodId::of(pod)).map_or(pod.since, |first| pod.since.min(*first))
        };
        Some((place.tainted.leave(&pod.tolerations, arrived)?, place))
    }

    /// The place of somebody who was let go is free again.
    fn release(&mut self, id: &PodId) -> bool {
        self.marshal.ended(id);
        self.going.remove(id).is_some()
    }

    /// Somebody is not held any more; says whether it was.
    fn unhold(&mut self, node: &Arc<str>, id: &PodId) -> bool {
        let Some(held) = self.held.get_mut(node) else { return false };
        let was_held = held.remove(id);
        if held.is_empty() {
            self.held.remove(node);
        }
        was_held
    }

    fn decide_pod(&mut self, pod: &Arc<Pod>, world: &World, now: Moment) -> Verdict {
        let id = PodId::of(pod);
        let was_held = self.unhold(&pod.node, &id);
        let Some((Leave { at, .. }, place)) = self.leave(pod, now) else {
            let has_waited = self.marshal.withdraw(&id);
            let was_going = self.release(&id);
            // Of somebody else's deletion others tell.
            let is_cancelled =
                (has_waited || was_going || was_held) && !pod.is_terminating() && !pod.is_terminal();
            let notes = is_cancelled.then(|| note(pod, "CancelEviction", "Cancelling deletion of Pod"));
            return Verdict { notes: notes.into_iter().collect(), outcome: "stays", ..Verdict::default() };
        };
        let route = Arc::clone(&place.route);
        if at <= now && !world.nodes.is_readable(&subject_of_node(&pod.node)) {
            self.marshal.withdraw(&id);
            self.release(&id);
            self.held.entry(Arc::clone(&pod.node)).or_default().insert(id);
            return Verdict { is_waiting: true, outcome: "waits", ..Verdict::default() };
        }
        let going = self.going.get(&id).copied().filter(|_| at <= now && self.marshal.frozen().is_none());
        let Some(is_marked) = going else {
            self.release(&id);
            self.marshal.want(&id, at, &route);
            return Verdict { is_waiting: true, outcome: "waits", ..Verdict::default() };
        };
        let target = Target::whatever_revision(&Object::Pod(Arc::clone(pod)));
        let key = id.key.clone();
        if is_marked || pod.disruption == Some(Disruption::ByTaint) {
            self.begun.insert(key, Begun { id, deleting: Some(at) });
            let notes = vec![note(pod, "Evict", "Marking for deletion Pod")];
            return Verdict {
                writes: vec![Write::Delete(target)],
                notes,
                outcome: "deleted",
                ..Verdict::default()
            };
        }
        self.begun.insert(key, Begun { id, deleting: None });
        let mut condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": BY_TAINT, "message": MESSAGE,
            "lastTransitionTime": now.to_string(),
        });
        if pod.generation > 0 {
            condition["observedGeneration"] = json!(pod.generation);
        }
        let patch = json!({"status": {"conditions": [condition]}});
        Verdict {
            writes: vec![Write::Strategic { target, subresource: Some("status"), patch }],
            outcome: "marked",
            ..Verdict::default()
        }
    }

    /// Writes down since when the taints of a node count that do not say so, if that matters to anybody there: so a restart
    /// does not begin anew.
    fn decide_node(&mut self, subject: &ObjectKey, world: &World) -> Verdict {
        let stamped = || -> Option<Write> {
            let node = world.nodes.get(subject)?;
            let tainted = &self.places.get(&subject.name)?.tainted;
            let mut pods = self.map.on(&subject.name).filter_map(|pod| world.pods.get(pod));
            if !pods.any(|pod| !pod.is_terminal() && tainted.needs_time(&pod.tolerations)) {
                return None;
            }
            let stamp = |taint: &NodeTaint| {
                let time =
                    tainted.stamp(&taint.key).filter(|_| taint.is_no_execute() && taint.time_added.is_none());
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

    /// Tells people that evictions have stopped, or go on.
    fn decide_freeze(&mut self) -> Verdict {
        let Some((map, is_frozen)) = self.news.take() else {
            return Verdict { outcome: "in-order", ..Verdict::default() };
        };
        let by = map.freeze.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let (reason, action, text) = if is_frozen {
            (FROZEN_REASON, "Freeze", format!("Evictions are frozen{by}: {}", map.freeze.reason))
        } else {
            ("EvictionsUnfrozen", "Unfreeze", "Evictions go on".to_owned())
        };
        let regarding = Target::of(&Object::Freeze(Arc::clone(&map)));
        let note = Note {
            namespace: regarding.key.namespace.to_string(),
            regarding,
            related: None,
            is_warning: is_frozen,
            reason,
            action,
            note: text,
            reporter: ControllerName::TaintEviction.as_str(),
        };
        Verdict { notes: vec![note], outcome: "told", ..Verdict::default() }
    }

    fn freeze_changed(
        &mut self,
        before: Option<&Arc<FreezeMap>>,
        after: Option<&Arc<FreezeMap>>,
        due: &mut Due,
    ) {
        match (before, after) {
            (_, Some(map)) => {
                tracing::warn!(reason = %map.freeze.reason, by = map.freeze.by.as_deref(), "evictions are frozen");
                self.news = Some((Arc::clone(map), true));
            }
            (Some(map), None) => {
                tracing::info!("evictions go on");
                self.news = Some((Arc::clone(map), false));
            }
            (None, None) => return,
        }
        self.freeze = after.map(|map| map.freeze.clone());
        self.metrics.evictions_frozen(after.is_some());
        self.told.1 = true;
        due.mark(&subject_of_freeze());
    }
}

impl Controller for TaintEvictionController {
    fn name(&self) -> ControllerName {
        ControllerName::TaintEviction
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Node, Kind::Pod, Kind::Freeze]
    }

    fn needs(&self) -> &'static [Need] {
        &[
            // Since when a taint counts that does not say so.
            Need::Patch(Kind::Node),
            Need::PatchPart(Kind::Pod, "status"),
            Need::Delete(Kind::Pod),
            Need::Record,
        ]
    }

    fn observe(&mut self, change: &Change, _: &World, due: &mut Due) {
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
            (Some(Object::Freeze(before)), Some(Object::Freeze(after))) => {
                self.freeze_changed(Some(before), Some(after), due);
            }
            (Some(Object::Freeze(before)), None) => self.freeze_changed(Some(before), None, due),
            (None, Some(Object::Freeze(after))) => self.freeze_changed(None, Some(after), due),
            _ => {}
        }
    }

    fn advance(&mut self, now: Moment, world: &World, due: &mut Due) {
        // A stop that cannot be seen may well have been said.
        let blind = || Freeze { reason: BLIND_REASON.into(), by: None, since: None };
        let is_blind = !world.is_followed(Kind::Freeze);
        let stop = self.freeze.clone().or_else(|| self.stopped.clone()).or_else(|| is_blind.then(blind));
        self.marshal.freeze(stop);
        for name in std::mem::take(&mut self.changed) {
            self.look_at(&name, world, now, due);
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
        // Who is the longest due is known when everybody was judged.
        if !due.is_ready() {
            while let Some(id) = self.marshal.next(now) {
                due.mark(&id.key);
                self.going.insert(id, false);
            }
        }
        let (told, may_differ) = self.told;
        if may_differ && (told > now || told.plus(TELL_EVERY) <= now) {
            // What is due now and was not, time brings about.
            self.told = (now, self.marshal.waiting() > 0);
            self.metrics.evictions(self.marshal.waiting(), &self.marshal.held(now));
        }
    }

    fn wake(&self) -> Option<Moment> {
        let (told, may_differ) = self.told;
        self.marshal.wake().into_iter().chain(may_differ.then(|| told.plus(TELL_EVERY))).min()
    }

    fn heed(&mut self, stop: Option<&Freeze>) {
        if let Some(stop) = stop {
            tracing::warn!(reason = %stop.reason, "evictions are held");
        } else {
            tracing::info!("evictions are held no more");
        }
        self.stopped = stop.cloned();
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        if subject.namespace.is_empty() {
            return if subject.name.is_empty() {
                self.decide_freeze()
            } else {
                self.decide_node(subject, world)
            };
        }
        self.told.1 = true;
        match world.pods.get(subject) {
            Some(pod) => self.decide_pod(pod, world, now),
            None => Verdict { outcome: "gone", ..Verdict::default() },
        }
    }

    fn ended(&mut self, subject: &ObjectKey, ended: Ended, now: Moment, world: &World, due: &mut Due) {
        let Some(Begun { id, deleting }) = self.begun.remove(subject) else { return };
        let is_there = world.pods.get(subject).is_some_and(|pod| pod.identity.uid == id.uid);
        match (ended, deleting) {
            (Ended::Done, None) if is_there => {
                self.going.insert(id, true);
                due.mark(subject);
            }
            (Ended::Done, Some(at)) => {
                self.metrics.evicted(at.until(now));
                self.release(&id);
            }
            // What failed is wanted again when its wait is over; its place is for others meanwhile.
            _ => {
                self.release(&id);
            }
        }
    }
}

/// A node as a subject: pods have a namespace.
fn subject_of_node(name: &str) -> ObjectKey {
    ObjectKey::new("", name)
}

/// The freeze as a subject: nodes have a name.
fn subject_of_freeze() -> ObjectKey {
    ObjectKey::new("", "")
}

fn note(pod: &Arc<Pod>, action: &'static str, what: &str) -> Note {
    let key = &pod.identity.key;
    Note {
        regarding: Target::whatever_revision(&Object::Pod(Arc::clone(pod))),
        related: None,
        is_warning: false,
        reason: REASON,
        action,
        note: format!("{what} {key}"),
        reporter: ControllerName::TaintEviction.as_str(),
        namespace: key.namespace.to_string(),
    }
}

#[cfg(test)]
mod tests;
