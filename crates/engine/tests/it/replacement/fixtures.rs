//! A workload of a few members under one policy, with the words to say what happens to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_api::replacement::{Replacement, ReplacementPolicySpec};
use berth_engine::Moment;
use berth_engine::replace::{
    Act, Claim, Condition, Feasibility, Fleet, Known, Member, Memory, Muster, Node, NodeFact, Opening, Plan,
    Pod, Policy, PolicyKey, Readiness, Reason, State, Step, Sure, Target, member_status, replacement,
    restore,
};
use berth_engine::taint::{NodeEffect, Operator, Taint, Toleration};
use serde_json::{Value, json};

/// Some time after the members began.
pub(crate) const START: Moment = Moment::from_second(1_800_000_000);

pub(crate) fn after(seconds: i64) -> Moment {
    START.plus_seconds(seconds)
}

/// A policy for `apps/v1 StatefulSet db`, enforced unless it says otherwise.
pub(crate) fn compiled(spec: Value) -> Policy {
    let mut whole = json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
        "mode": "Enforce",
    });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let spec: ReplacementPolicySpec = serde_json::from_value(whole).unwrap();
    Policy::compile(&spec).unwrap()
}

/// The options of the FoundationDB operator, with what its successor needs not be sure of left out: upstream does not ask.
pub(crate) fn pasted(options: Value) -> Value {
    json!({
        "replacements": options,
        "strategy": {"placement": {"requireUnschedulableNode": false, "requireFeasibleTarget": false}},
    })
}

pub(crate) struct World {
    pub(crate) fleet: Fleet,
    pub(crate) key: PolicyKey,
    members: BTreeMap<Arc<str>, Member>,
    nodes: BTreeMap<Arc<str>, Node>,
    target: Target,
    last: Option<Plan>,
    begun: Vec<String>,
}

impl World {
    /// A policy without members.
    pub(crate) fn new(spec: Value) -> Self {
        let key = PolicyKey::new("ns", "db");
        let mut fleet = Fleet::default();
        fleet.set_policy(&key, compiled(spec), None);
        fleet.set_window(&key, Opening::ALWAYS);
        let unready = Known::Known(BTreeSet::new());
        let target = Target { unready, is_settled: Sure::Yes, ..Target::default() };
        let mut world = Self {
            fleet,
            key,
            members: BTreeMap::new(),
            nodes: BTreeMap::new(),
            target,
            last: None,
            begun: Vec::new(),
        };
        world.tell_target(|_| {});
        world
    }

    /// A policy with members `db-0`, `db-1`, ..., each on a node of its own, `n0`, `n1`, ...
    pub(crate) fn of(members: usize, spec: Value) -> Self {
        let mut world = Self::new(spec);
        for number in 0..members {
            world.add(&format!("db-{number}"), &format!("n{number}"));
        }
        world
    }

    pub(crate) fn set_policy(&mut self, spec: Value) {
        self.fleet.set_policy(&self.key, compiled(spec), None);
    }

    /// A member, ready since long ago, with one claim on a volume that cannot leave its node.
    pub(crate) fn add(&mut self, name: &str, node: &str) {
        let node: Arc<str> = node.into();
        self.nodes.entry(Arc::clone(&node)).or_insert_with(|| Node {
            created: Moment::from_second(0),
            labels: BTreeMap::from([("kubernetes.io/hostname".into(), (*node).into())]),
            taints: Vec::new(),
            is_cordoned: false,
            conditions: Vec::new(),
        });
        let fact = NodeFact::Present(self.nodes[&node].clone());
        self.fleet.set_node(&node, fact);
        let pod = Pod {
            uid: format!("{name}-uid-0").into(),
            node: Some(node),
            ready: Readiness::Since(Moment::from_second(1)),
            ..Pod::default()
        };
        let member = Member {
            name: name.into(),
            target: "db".into(),
            pod: Known::Known(Some(pod)),
            successor: Known::Known(None),
            order: Some(0),
            claims: Known::Known(vec![claim(name, 0)]),
            feasibility: Feasibility::Yes,
            told: Sure::No,
            ..Member::default()
        };
        self.fleet.set_member(&self.key, member.clone(), None);
        self.members.insert(name.into(), member);
    }

    /// Changes what is known of a member.
    pub(crate) fn tell(&mut self, name: &str, change: impl FnOnce(&mut Member)) {
        let member = self.members.get_mut(name).unwrap();
        change(member);
        self.fleet.set_member(&self.key, member.clone(), None);
    }

    /// Changes what is known of a member's pod.
    pub(crate) fn tell_pod(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        self.tell(name, |member| {
            let Known::Known(Some(pod)) = &mut member.pod else { panic!("{} has no pod", member.name) };
            change(pod);
        });
    }

    pub(crate) fn tell_node(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        let node = self.nodes.get_mut(name).unwrap();
        change(node);
        self.fleet.set_node(name, NodeFact::Present(node.clone()));
    }

    pub(crate) fn tell_target(&mut self, change: impl FnOnce(&mut Target)) {
        change(&mut self.target);
        self.fleet.set_target(&"db".into(), self.target.clone());
    }

    pub(crate) fn unready(&mut self, names: &[&str]) {
        self.tell_target(|target| {
            target.unready = Known::Known(names.iter().map(|name| Arc::from(*name)).collect());
        });
    }

    /// Who is ready of those that have no names of their own, and how many there should be.
    pub(crate) fn muster(&mut self, ready: &[&str], wanted: Option<usize>) {
        self.tell_target(|target| {
            let ready = ready.iter().map(|name| Arc::from(*name)).collect();
            target.muster = Some(Muster { ready, wanted });
        });
    }

    /// Puts a taint of effect NoSchedule on a node.
    pub(crate) fn taint(&mut self, node: &str, key: &str, added: Option<Moment>) {
        self.tell_node(node, |node| node.taints.push(taint(key, added)));
    }

    pub(crate) fn untaint(&mut self, node: &str, key: &str) {
        self.tell_node(node, |node| node.taints.retain(|taint| &*taint.key != key));
    }

    /// A node, as it is known.
    pub(crate) fn node_fact(&self, name: &str) -> NodeFact {
        NodeFact::Present(self.nodes[name].clone())
    }

    pub(crate) fn node_is(&mut self, name: &str, fact: NodeFact) {
        self.fleet.set_node(name, fact);
    }

    /// Looks at everybody, and keeps what comes of it.
    pub(crate) fn look(&mut self, now: Moment) -> Plan {
        self.begun.clear();
        self.look_on(now)
    }

    fn look_on(&mut self, now: Moment) -> Plan {
        let plan = self.fleet.decide(&self.key, now).unwrap();
        let begun = plan.steps.iter().filter(|step| step.acts.contains(&Act::Begin));
        self.begun.extend(begun.map(|step| step.name.to_string()));
        self.last = Some(plan.clone());
        plan
    }

    /// Looks again at each deadline up to a moment, as a controller would; the last plan.
    pub(crate) fn run_to(&mut self, until: Moment) -> Plan {
        self.begun.clear();
        let mut now = self.last.as_ref().map_or(START, |plan| plan.deadline).min(until);
        loop {
            let plan = self.look_on(now);
            let next = plan.deadline.max(now.just_after());
            if next > until {
                return self.look_on(until);
            }
            now = next;
        }
    }

    fn step(&self, name: &str) -> &Step {
        let plan = self.last.as_ref().expect("somebody has looked");
        plan.steps.iter().find(|step| &*step.name == name).unwrap()
    }

    pub(crate) fn state(&self, name: &str) -> State {
        self.step(name).state
    }

    pub(crate) fn words(&self, name: &str) -> Vec<&'static str> {
        self.step(name).reasons.iter().map(Reason::word).collect()
    }

    pub(crate) fn acts(&self, name: &str) -> Vec<Act> {
        self.step(name).acts.clone()
    }

    pub(crate) fn memory(&self, name: &str) -> Memory {
        self.fleet.memory(&self.key, name).unwrap().clone()
    }

    /// The conditions that upstream sets on a member.
    pub(crate) fn conditions(&self, name: &str) -> Vec<String> {
        let status = member_status(self.step(name)).unwrap_or_default();
        status.conditions.into_iter().flatten().map(|condition| condition.type_).collect()
    }

    /// Who has begun in the last look, or run of looks.
    pub(crate) fn begun(&self) -> Vec<String> {
        self.begun.clone()
    }

    /// Everything is forgotten but what is written in objects.
    pub(crate) fn restart(&mut self) {
        let plan = self.last.clone().expect("somebody has looked");
        for step in &plan.steps {
            let memory = through_json(step);
            let member = self.members[&step.name].clone();
            self.fleet.set_member(&self.key, member, Some(memory));
        }
    }

    /// The pod is gone and another of its name is there, not ready yet.
    pub(crate) fn recreate(&mut self, name: &str, node: &str, generation: usize, now: Moment) {
        if !self.nodes.contains_key(node) {
            let fresh = Node {
                created: Moment::from_second(0),
                labels: BTreeMap::from([("kubernetes.io/hostname".into(), node.into())]),
                taints: Vec::new(),
                is_cordoned: false,
                conditions: Vec::new(),
            };
            self.nodes.insert(node.into(), fresh.clone());
            self.fleet.set_node(node, NodeFact::Present(fresh));
        }
        self.tell(name, |member| {
            let fresh = Pod {
                uid: format!("{name}-uid-{generation}").into(),
                node: Some(node.into()),
                arrived: Some(now),
                ready: Readiness::Not,
                ..Pod::default()
            };
            member.pod = Known::Known(Some(fresh));
            member.claims = Known::Known(vec![claim(name, generation)]);
        });
    }
}

/// A step's memory, out of the objects that hold it.
pub(crate) fn restored(step: &Step) -> Memory {
    let written = replacement("db", "db", step).map(|(spec, status)| Replacement {
        spec,
        status: Some(status),
        ..Replacement::new("r")
    });
    restore(member_status(step).as_ref(), written.as_ref())
}

/// The same, after a way through JSON.
fn through_json(step: &Step) -> Memory {
    let status = member_status(step).map(|status| {
        let text = serde_json::to_string(&status).unwrap();
        serde_json::from_str(&text).unwrap()
    });
    let written = replacement("db", "db", step).map(|(spec, status)| {
        let whole = Replacement { spec, status: Some(status), ..Replacement::new("r") };
        let text = serde_json::to_string(&whole).unwrap();
        serde_json::from_str(&text).unwrap()
    });
    let memory = restore(status.as_ref(), written.as_ref());
    assert_eq!(memory, restored(step));
    memory
}

pub(crate) fn claim(name: &str, generation: usize) -> Claim {
    Claim {
        name: format!("data-{name}").into(),
        uid: format!("data-{name}-{generation}").into(),
        class: Some("local".into()),
        is_local: Sure::Yes,
        is_own: Sure::Yes,
        is_leaving: false,
    }
}

pub(crate) fn taint(key: &str, added: Option<Moment>) -> Taint<NodeEffect> {
    Taint { key: key.into(), value: "".into(), effect: NodeEffect::NoSchedule, added }
}

pub(crate) fn tolerates(key: &str) -> Toleration<NodeEffect> {
    Toleration { key: key.into(), operator: Operator::Exists, value: "".into(), effect: None, seconds: None }
}

pub(crate) fn condition(name: &str, status: &str, since: Option<Moment>) -> Condition {
    Condition { condition: name.into(), status: status.into(), since }
}
