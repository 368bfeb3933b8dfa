//! The node lifecycle controller: leases and conditions of nodes in, conditions, taints and the readiness of pods out.
//!
//! Owns which pods are on which node, and what was told of nodes that came and went. When a node has fallen silent, which
//! taints it should carry and which of its pods are to be told is the engine's verdict; that a node is ready again only its
//! kubelet says.
//!
//! A node whose conditions are to be written is judged again by what comes back before anything else is done about it.
//! Each pod of a silent node is a subject of its own, so one that cannot be told keeps nobody else waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use berth_api::core::{Node, Zone};
use berth_engine::Moment;
use berth_engine::evict::Freeze;
use berth_engine::model::ObjectKey;
use berth_engine::node::names::condition;
use berth_engine::node::{Judgement, Lifecycle, LifecyclePolicy, Ready, Told, ZoneCounts};
use serde_json::{Map, Value, json};

use super::pods_by_node::PodsByNode;
use super::{Controller, Verdict};
use crate::act::{Note, Target, Write};
use crate::due::{Due, Ended};
use crate::names::ControllerName;
use crate::rights::Need;
use crate::serve::Metrics;
use crate::world::{Change, Kind, NODE_LEASES, Object, Pod, Truth, World};

/// Who says so in events, as Kubernetes has it.
const REPORTER: &str = "node-controller";
/// Where the API takes events about objects without a namespace.
const EVENTS_NAMESPACE: &str = "default";
const NOT_READY: &str = "NodeNotReady";

/// Judges nodes by their leases and conditions.
#[derive(Debug)]
pub struct NodeLifecycleController {
    lifecycle: Lifecycle,
    metrics: Arc<Metrics>,
    pods: PodsByNode,
    /// The nodes that have been judged while their Ready condition is Unknown.
    silent: HashMap<Arc<str>, Silent>,
    /// Silent nodes whose pods are to be looked at.
    telling: VecDeque<Arc<str>>,
    /// Nodes we have judged that are no more, by their identity.
    removed: HashMap<Arc<str>, Arc<Node>>,
    /// The counts of the zones as they were told last.
    counted: Vec<(Zone, ZoneCounts)>,
    /// Whether everything was down when somebody looked last.
    is_all_down: bool,
}

/// A node in its silence.
#[derive(Debug, Default)]
struct Silent {
    told: Told<Arc<str>>,
    /// Whether its pods are told at present, and have been marked for it.
    tells: bool,
}

impl NodeLifecycleController {
    /// A controller that has seen nothing yet.
    pub fn new(policy: LifecyclePolicy, metrics: Arc<Metrics>) -> Self {
        Self {
            lifecycle: Lifecycle::new(policy),
            metrics,
            pods: PodsByNode::default(),
            silent: HashMap::new(),
            telling: VecDeque::new(),
            removed: HashMap::new(),
            counted: Vec::new(),
            is_all_down: false,
        }
    }

    fn observe_node(&mut self, change: &Change, due: &mut Due) {
        let name = &change.key.name;
        let uid = |object: &Object| object.uid().map(str::to_owned);
        let is_other = change.before.as_ref().and_then(uid) != change.after.as_ref().and_then(uid);
        if let Some(Object::Node(before)) = change.before.as_ref().filter(|_| is_other) {
            // Only who acts has something to tell of it.
            if self.lifecycle.knows(name) {
                self.removed.insert(Arc::clone(name), Arc::clone(before));
            }
            self.lifecycle.gone(name);
            self.silent.remove(name);
            due.forget(&change.key);
        }
        if let Some(Object::Node(node)) = &change.after {
            self.lifecycle.seen(name, node);
            if Ready::of(node) != Ready::Unknown {
                self.silent.remove(name);
            }
        }
        // Of a node that is no more there is something to do only where something is to be told: whoever stands by decides
        // nothing, and would keep the name of every node that ever was.
        if change.after.is_some() || self.removed.contains_key(name) {
            due.mark(&change.key);
        }
    }

    fn observe_pod(&mut self, change: &Change, due: &mut Due) {
        fn pod(object: Option<&Object>) -> Option<&Pod> {
            match object {
                Some(Object::Pod(pod)) => Some(pod),
                _ => None,
            }
        }
        let (before, after) = (pod(change.before.as_ref()), pod(change.after.as_ref()));
        self.pods.change(before, after);
        let is_another = |before: &&Pod| {
            after.is_none_or(|after| after.identity.uid != before.identity.uid || after.node != before.node)
        };
        if let Some(gone) = before.filter(is_another) {
            if let Some(silent) = self.silent.get_mut(&gone.node) {
                silent.told.forget(&gone.identity.uid);
            }
            due.forget(&change.key);
        }
        // Only pods of silent nodes are any business of ours.
        if after.is_some_and(|pod| self.silent.contains_key(&pod.node)) {
            due.mark(&change.key);
        }
    }

    /// Whether its pods are told is what a silent node was judged to; they are looked at when that begins.
    fn judged_silent(&mut self, node: &Arc<str>, tells: bool) {
        let silent = self.silent.entry(Arc::clone(node)).or_default();
        if tells && !silent.tells {
            self.telling.push_back(Arc::clone(node));
        }
        silent.tells = tells;
    }

    fn decide_pod(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        let Some(pod) = world.pods.get(subject) else {
            return Verdict { outcome: "gone", ..Verdict::default() };
        };
        let in_order = Verdict { outcome: "in-order", ..Verdict::default() };
        // Of a node that has not been judged in this silence, all pods are looked at when it is.
        let Some(silent) = self.silent.get_mut(&pod.node).filter(|silent| silent.tells) else {
            return in_order;
        };
        let node = world.nodes.get(&self::subject(&pod.node));
        if !node.is_some_and(|node| self.lifecycle.tells_pods(node)) {
            // Everything went down since; the next judgement of the node begins it anew.
            silent.tells = false;
            return in_order;
        }
        if !silent.told.is_overdue(&pod.identity.uid, pod.ready.map(|ready| ready != Truth::False)) {
            return in_order;
        }
        Verdict {
            writes: vec![not_ready(pod, now)],
            notes: vec![not_ready_note(pod)],
            outcome: "told",
            ..Verdict::default()
        }
    }

    /// Tells how many nodes of each zone are ready, if that has changed.
    fn tell(&mut self) {
        let counts = || self.lifecycle.zones().counts();
        if counts().eq(self.counted.iter().map(|(zone, counts)| (zone, *counts))) {
            return;
        }
        let counted: Vec<_> = counts().map(|(zone, counts)| (zone.clone(), counts)).collect();
        self.metrics.zones(counted.iter().map(|(zone, counts)| (zone_label(zone), *counts)));
        self.counted = counted;
    }
}

impl Controller for NodeLifecycleController {
    fn name(&self) -> ControllerName {
        ControllerName::NodeLifecycle
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Node, Kind::NodeLease, Kind::Pod]
    }

    fn needs(&self) -> &'static [Need] {
        &[
            Need::Get(Kind::NodeLease),
            Need::PatchPart(Kind::Node, "status"),
            // Taints are part of a node's spec; labels of its metadata.
            Need::Patch(Kind::Node),
            Need::PatchPart(Kind::Pod, "status"),
            Need::Record,
        ]
    }

    fn observe(&mut self, change: &Change, world: &World, due: &mut Due) {
        match change.kind() {
            Kind::Node => self.observe_node(change, due),
            Kind::NodeLease => {
                let node = subject(&change.key.name);
                // Leases of nodes that are no more are renewed by nobody, but they stay for a while.
                if world.nodes.get(&node).is_some() {
                    due.mark(&node);
                }
            }
            Kind::Pod => self.observe_pod(change, due),
            _ => {}
        }
    }

    fn advance(&mut self, now: Moment, world: &World, due: &mut Due) {
        let sees = [Kind::Node, Kind::NodeLease].iter().all(|kind| world.is_followed(*kind));
        for node in self.lifecycle.advance(now, sees) {
            due.mark(&subject(&node));
        }
        // One node's pods at a time, so that in a great outage no node waits for the pods of all others.
        while !due.is_ready()
            && let Some(node) = self.telling.pop_front()
        {
            for pod in self.pods.on(&node) {
                due.mark(pod);
            }
        }
        self.tell();
        let is_all_down = self.lifecycle.zones().is_all_down();
        if std::mem::replace(&mut self.is_all_down, is_all_down) != is_all_down {
            if is_all_down {
                tracing::warn!(
                    "no node of any zone is ready, so it is not the nodes: no pod is made to leave by them"
                );
            } else {
                tracing::info!("some nodes are ready again: nodes are judged as ever");
            }
        }
    }

    fn wake(&self) -> Option<Moment> {
        if self.telling.is_empty() { self.lifecycle.wake() } else { Some(Moment::PAST) }
    }

    fn may_stop(&self) -> bool {
        self.lifecycle.zones().may_freeze()
    }

    fn stop(&self) -> Option<Freeze> {
        self.lifecycle.zones().freeze()
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        if !subject.namespace.is_empty() {
            return self.decide_pod(subject, world, now);
        }
        let removed = self.removed.remove(&subject.name).map(|node| removed_note(&node));
        let Some(node) = world.nodes.get(subject) else {
            return Verdict { notes: removed.into_iter().collect(), outcome: "gone", ..Verdict::default() };
        };
        let lease_key = ObjectKey::new(NODE_LEASES, &subject.name);
        let lease = world.node_leases.get(&lease_key);
        let renewed = lease.and_then(|lease| lease.renewed);
        let judged = self.lifecycle.judge(&subject.name, node, renewed, now);
        if judged.used_turn {
            self.metrics.node_tainted(zone_label(&node.zone()));
        }
        let mut verdict = Verdict {
            notes: removed.into_iter().collect(),
            wake: judged.wake,
            outcome: outcome(node),
            ..Verdict::default()
        };
        verdict.notes.extend(judged.is_new.then(|| registered_note(node)));
        if let Some(silence) = &judged.silence {
            verdict.outcome = "silent";
            verdict.notes.extend(silence.is_fall.then(|| fallen_note(node)));
            // That nothing was heard of the lease may be the watch's fault. Nor may the node have changed since it was seen.
            verdict.writes.push(Write::Unchanged(match lease {
                Some(lease) => Target::of(&Object::NodeLease(Arc::clone(lease))),
                None => Target::to_come(Kind::NodeLease, lease_key),
            }));
            verdict.writes.push(Write::Strategic {
                target: Target::of(&Object::Node(Arc::clone(node))),
                subresource: Some("status"),
                patch: json!({"status": {"conditions": silence.conditions}}),
            });
            return verdict;
        }
        if Ready::of(node) == Ready::Unknown {
            self.judged_silent(&subject.name, judged.tells_pods);
        }
        verdict.writes.extend(changes(node, judged));
        verdict
    }

    fn ended(&mut self, _: &ObjectKey, ended: Ended, now: Moment, _: &World, _: &mut Due) {
        if matches!(ended, Ended::Unanswered { .. }) {
            self.lifecycle.unanswered(now);
        }
    }
}

/// A node as a subject: pods have a namespace.
fn subject(node: &str) -> ObjectKey {
    ObjectKey::new("", node)
}

/// A zone as Kubernetes' metrics name it: with a separator that no label can hold.
fn zone_label(zone: &Zone) -> String {
    let Zone { region, zone } = zone;
    if region.is_empty() && zone.is_empty() { String::new() } else { format!("{region}:\u{0}:{zone}") }
}

fn outcome(node: &Node) -> &'static str {
    match Ready::of(node) {
        Ready::True => "ready",
        Ready::False => "not-ready",
        Ready::Unknown => "unreachable",
        Ready::Unsaid => "unsaid",
    }
}

/// The change of a node's taints and labels, if there is one.
fn changes(node: &Arc<Node>, judged: Judgement) -> Option<Write> {
    let mut patch = Map::new();
    if let Some(taints) = judged.taints {
        // A list of nothing is no list.
        let taints = if taints.is_empty() { Value::Null } else { json!(taints) };
        patch.insert("spec".to_owned(), json!({"taints": taints}));
    }
    if !judged.labels.is_empty() {
        patch.insert("metadata".to_owned(), json!({"labels": judged.labels}));
    }
    (!patch.is_empty()).then(|| Write::Patch {
        target: Target::of(&Object::Node(Arc::clone(node))),
        subresource: None,
        patch: Value::Object(patch),
    })
}

/// Says of a pod that it is not ready, and leaves why it was.
fn not_ready(pod: &Arc<Pod>, now: Moment) -> Write {
    Write::Strategic {
        target: Target::whatever_revision(&Object::Pod(Arc::clone(pod))),
        subresource: Some("status"),
        patch: json!({"status": {"conditions": [{
            "type": condition::READY, "status": "False", "lastTransitionTime": now.to_string(),
        }]}}),
    }
}

fn node_note(node: &Arc<Node>, reason: &'static str, note: String) -> Note {
    Note {
        regarding: Target::of(&Object::Node(Arc::clone(node))),
        related: None,
        is_warning: false,
        reason,
        action: reason,
        note,
        reporter: REPORTER,
        namespace: EVENTS_NAMESPACE.to_owned(),
    }
}

fn registered_note(node: &Arc<Node>) -> Note {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    node_note(node, "RegisteredNode", format!("Node {name} event: Registered Node {name} in Controller"))
}

fn removed_note(node: &Arc<Node>) -> Note {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    node_note(node, "RemovingNode", format!("Node {name} event: Removing Node {name} from Controller"))
}

fn fallen_note(node: &Arc<Node>) -> Note {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    node_note(node, NOT_READY, format!("Node {name} status is now: {NOT_READY}"))
}

fn not_ready_note(pod: &Arc<Pod>) -> Note {
    Note {
        regarding: Target::whatever_revision(&Object::Pod(Arc::clone(pod))),
        related: None,
        is_warning: true,
        reason: NOT_READY,
        action: NOT_READY,
        note: "Node is not ready".to_owned(),
        reporter: REPORTER,
        namespace: pod.identity.key.namespace.to_string(),
    }
}

#[cfg(test)]
#[path = "node_lifecycle/tests.rs"]
mod tests;
