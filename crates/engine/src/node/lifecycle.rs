//! The nodes of a cluster, judged one by one.
//!
//! Owns what has to be remembered between two judgements and nothing else: when each node was last heard of, how often it
//! fell, the counts of the zones, and whose turn it is. None of it is needed to be right in the end; a new process begins
//! without it and comes to the same, a grace later.
//!
//! ```text
//!   seen, gone ----> zones: counts ---pace, everything down---> turns
//!   judge(node) ---> life: silent? -> conditions, and nothing else until they are written
//!               '--> taints (by the conditions, the turn, the falls), labels, whether its pods are to be told
//!   advance(now) --> which nodes to judge again
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use berth_api::core::{Node, NodeTaint};
use k8s_openapi::api::core::v1::NodeCondition;

use super::falls::{Falls, FlapPolicy};
use super::labels::missing_labels;
use super::life::{Attention, Graces, Life, Signs};
use super::names::label;
use super::ready::{Ready, created, is_labelled};
use super::silence::silenced;
use super::taints::{Execute, WantedTaints, executes, wanted_taints};
use super::turns::Turns;
use super::zones::{DisruptionPolicy, Standing, WhenAllDown, ZoneNews, Zones};
use crate::moment::Moment;

/// How nodes are judged. The defaults are those of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LifecyclePolicy {
    /// How long a node may be silent.
    pub graces: Graces,
    /// How fast nodes may be tainted.
    pub disruption: DisruptionPolicy,
    /// What becomes of nodes that come and go.
    pub flaps: FlapPolicy,
}

/// What should be done about a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Whether this is the first judgement of the node.
    pub is_new: bool,
    /// That the node has fallen silent, and its conditions do not say so.
    pub silence: Option<Silence>,
    /// The whole list of taints to write, if it is another.
    pub taints: Option<Vec<NodeTaint>>,
    /// Labels to set.
    pub labels: BTreeMap<&'static str, String>,
    /// Whether its pods are to be told that they are not ready.
    pub tells_pods: bool,
    /// Whether the node has used its turn to be tainted since it was judged last.
    pub used_turn: bool,
    /// When time alone will change this.
    pub wake: Option<Moment>,
}

/// That a node has fallen silent. Before it is written, the caller makes sure of it: that nothing was heard may be the fault
/// of who listens.
#[derive(Clone, Debug, PartialEq)]
pub struct Silence {
    /// The conditions to write; nothing else is done about the node until they are.
    pub conditions: Vec<NodeCondition>,
    /// Whether they turn a node that was ready.
    pub is_fall: bool,
}

/// The nodes of a cluster.
#[derive(Debug)]
pub struct Lifecycle {
    policy: LifecyclePolicy,
    attention: Attention,
    nodes: HashMap<Arc<str>, Remembered>,
    zones: Zones,
    turns: Turns,
}

/// What is remembered of a node.
#[derive(Debug)]
struct Remembered {
    uid: Box<str>,
    life: Life,
    falls: Falls,
}

impl Lifecycle {
    /// No nodes yet.
    pub fn new(policy: LifecyclePolicy) -> Self {
        Self {
            policy,
            attention: Attention::default(),
            nodes: HashMap::new(),
            zones: Zones::new(policy.disruption),
            turns: Turns::default(),
        }
    }

    /// A node was seen: it counts in its zone by what it says.
    pub fn seen(&mut self, name: &Arc<str>, node: &Node) {
        self.zones.count(name, &node.zone(), standing(node, Ready::of(node) == Ready::True));
    }

    /// A node is no more.
    pub fn gone(&mut self, node: &str) {
        self.nodes.remove(node);
        self.zones.forget(node);
        self.turns.leave(node);
    }

    /// Time has passed: the nodes to judge again because of it. Unless the caller `sees` what nodes show, nobody falls silent.
    pub fn advance(&mut self, now: Moment, sees: bool) -> Vec<Arc<str>> {
        let mut is_everybody = self.attention.look(now, sees);
        for news in self.zones.turn(now) {
            match news {
                ZoneNews::Pace(zone, rate) => self.turns.pace(&zone, rate, now),
                ZoneNews::Gone(zone) => self.turns.forget(&zone, now),
                ZoneNews::AllDown => is_everybody = true,
                ZoneNews::SomeUp => {
                    is_everybody = true;
                    // It was us, and for how long we heard nothing says nothing of the nodes.
                    self.attention.begin_anew(now);
                }
            }
        }
        let turns = self.turns.next(now);
        if is_everybody { self.nodes.keys().cloned().collect() } else { turns }
    }

    /// The server did not answer when somebody wanted to make sure: the kubelets may not have got through to it either.
    pub fn unanswered(&mut self, now: Moment) {
        self.attention.begin_anew(now);
    }

    /// When [`Lifecycle::advance`] may have somebody, if nothing but time passes.
    pub fn wake(&self) -> Option<Moment> {
        self.zones.wake().into_iter().chain(self.turns.wake()).min()
    }

    /// Judges a node whose lease says that it was renewed then.
    pub fn judge(&mut self, name: &Arc<str>, node: &Node, renewed: Option<Moment>, now: Moment) -> Judgement {
        let LifecyclePolicy { graces, flaps, disruption } = self.policy;
        let (conditions, created) = (&*node.status.conditions, created(node));
        let signs = Signs { conditions, renewed, created };
        let uid = node.metadata.uid.as_deref().unwrap_or_default();
        let is_new = self.nodes.get(name).is_none_or(|known| *known.uid != *uid);
        if is_new {
            self.turns.leave(name);
            let life = Life::begin(signs, now);
            let known = Remembered { uid: uid.into(), life, falls: Falls::default() };
            self.nodes.insert(Arc::clone(name), known);
        }
        let known = self.nodes.get_mut(name).expect("it is there since a moment ago at the latest");
        known.life.look(signs, now);
        let silent_from = known.life.silent_from(&self.attention, graces);
        let is_silent = silent_from <= now;
        let ready = Ready::of(node);
        let is_well = ready == Ready::True && !is_silent;
        known.falls.look(is_well, flaps, now);
        let barred_until = known.falls.barred_until(flaps, now);
        let zone = node.zone();
        // It counts at once, not only when it is written: of a zone that falls silent as one, nobody should go first.
        self.zones.count(name, &zone, standing(node, is_well));

        if is_silent {
            let conditions = silenced(conditions, created, now);
            if !conditions.is_empty() {
                let silence = Some(Silence { conditions, is_fall: ready == Ready::True });
                return Judgement { is_new, silence, ..Judgement::default() };
            }
        }
        let is_all_down = self.zones.is_all_down();
        let execute = match disruption.when_all_down {
            WhenAllDown::Untaint if is_all_down => Execute::Lifted,
            _ if self.turns.is_turn_of(name) => Execute::Granted,
            _ => Execute::Waiting,
        };
        let WantedTaints { write: taints, awaits_turn } =
            wanted_taints(node, execute, barred_until.is_some(), now);
        let had_turn = execute == Execute::Granted;
        let has_used_it = had_turn && executes(&node.spec.taints);
        if awaits_turn {
            self.turns.want(name, &zone, now);
        } else if !had_turn || has_used_it || !matches!(ready, Ready::False | Ready::Unknown) {
            self.turns.leave(name);
        }
        let labels = node.metadata.labels.as_ref().map(missing_labels).unwrap_or_default();
        Judgement {
            is_new,
            taints,
            labels: labels.into_iter().map(|(name, value)| (name, value.to_owned())).collect(),
            tells_pods: self.tells_pods(node),
            used_turn: has_used_it,
            wake: barred_until.into_iter().chain((!is_silent).then_some(silent_from)).min(),
            ..Judgement::default()
        }
    }

    /// Whether the pods of this node are to be told that they are not ready, as things are.
    pub fn tells_pods(&self, node: &Node) -> bool {
        let is_held = self.zones.is_all_down() && self.policy.disruption.when_all_down == WhenAllDown::Hold;
        Ready::of(node) == Ready::Unknown && !is_held
    }

    /// Whether this node has been judged.
    pub fn knows(&self, node: &str) -> bool {
        self.nodes.contains_key(node)
    }

    /// The zones.
    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    /// How many nodes wait for their turn to be tainted.
    pub fn waiting(&self) -> usize {
        self.turns.waiting()
    }
}

fn standing(node: &Node, is_well: bool) -> Standing {
    match is_well {
        _ if is_labelled(node, label::EXCLUDE_DISRUPTION) => Standing::Excluded,
        true => Standing::Ready,
        false => Standing::NotReady,
    }
}

#[cfg(test)]
#[path = "lifecycle/tests.rs"]
mod tests;
