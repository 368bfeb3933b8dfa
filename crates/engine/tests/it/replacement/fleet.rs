//! Several policies: whom an event concerns, and what no policy can see alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_engine::replace::{
    Act, Feasibility, Fleet, Known, Member, Node, NodeFact, Opening, Pod, PolicyKey, Readiness, Sure, Target,
};
use serde_json::{Value, json};

use super::fixtures::{START, after, claim, compiled, taint};

fn key(name: &str) -> PolicyKey {
    PolicyKey::new("ns", name)
}

fn member(name: &str, node: &str, target: &str) -> Member {
    let pod = Pod {
        uid: format!("{name}-0").into(),
        node: Some(node.into()),
        ready: Readiness::Since(START),
        ..Pod::default()
    };
    Member {
        name: name.into(),
        target: target.into(),
        pod: Known::Known(Some(pod)),
        claims: Known::Known(vec![claim(name, 0)]),
        feasibility: Feasibility::Yes,
        order: Some(0),
        told: Sure::No,
        ..Member::default()
    }
}

fn node(is_tainted: bool) -> NodeFact {
    let taints = if is_tainted { vec![taint("a", None)] } else { Vec::new() };
    NodeFact::Present(Node {
        created: START,
        labels: BTreeMap::default(),
        taints,
        is_cordoned: false,
        conditions: Vec::new(),
    })
}

fn fleet(policies: &[&str], spec: &Value) -> Fleet {
    let mut fleet = Fleet::default();
    for name in policies {
        fleet.set_policy(&key(name), compiled(spec.clone()), None);
        fleet.set_window(&key(name), Opening::ALWAYS);
    }
    for target in ["t1", "t2"] {
        let unready = Known::Known(BTreeSet::new());
        fleet.set_target(&target.into(), Target { unready, is_settled: Sure::Yes, ..Target::default() });
    }
    fleet
}

fn begun(fleet: &mut Fleet, policy: &str, second: i64) -> usize {
    let plan = fleet.decide(&key(policy), after(second)).unwrap();
    plan.steps.iter().filter(|step| step.acts.contains(&Act::Begin)).count()
}

/// Upstream: cluster_controller_test.go "watching all namespaces: should trigger reconciliation for cluster nodes",
/// "watching all namespaces: should not trigger reconciliation for unrelated nodes".
#[test]
fn an_event_concerns_the_policies_with_members_there_and_no_others() {
    let mut fleet = fleet(&["p", "q"], &json!({"triggers": {"taints": [{"key": "a"}]}}));
    fleet.set_member(&key("p"), member("x-0", "n0", "t1"), None);
    fleet.set_member(&key("q"), member("y-0", "n1", "t2"), None);
    assert_eq!(fleet.set_node("n0", node(false)), [key("p")]);
    assert_eq!(fleet.set_node("n0", node(true)), [key("p")]);
    assert!(fleet.set_node("n0", node(true)).is_empty(), "it is as it was");
    assert!(fleet.set_node("n9", node(true)).is_empty());
    fleet.set_member(&key("p"), member("x-0", "n1", "t1"), None);
    assert!(fleet.set_node("n0", node(false)).is_empty());
    assert_eq!(fleet.set_node("n1", node(true)), [key("p"), key("q")]);
    fleet.decide(&key("q"), START);
    assert_eq!(
        (fleet.wake(), fleet.due(START).len(), fleet.due(after(1))),
        (Some(after(1)), 0, vec![key("q")])
    );
    assert_eq!(fleet.set_target(&"t2".into(), Target::default()), [key("q")]);
    fleet.remove_policy(&key("q"));
    assert_eq!((fleet.wake(), fleet.policies().count()), (None, 1));
    assert_eq!(fleet.set_node("n1", node(false)), [key("p")]);
}

#[test]
fn where_two_policies_speak_of_a_pod_neither_acts_until_one_is_gone_or_disabled() {
    let spec = json!({"triggers": {"taints": [{"key": "a"}]}});
    let mut fleet = fleet(&["p", "q"], &spec);
    fleet.set_node("n0", node(true));
    fleet.set_member(&key("p"), member("x-0", "n0", "t1"), None);
    let touched = fleet.set_member(&key("q"), member("x-0", "n0", "t1"), None);
    assert_eq!(touched.into_iter().collect::<Vec<_>>(), [key("p"), key("q")]);
    for second in [0, 1] {
        assert_eq!((begun(&mut fleet, "p", second), begun(&mut fleet, "q", second)), (0, 0));
    }
    let mut off = spec.clone();
    off["mode"] = json!("Disabled");
    fleet.set_policy(&key("q"), compiled(off), None);
    assert_eq!(begun(&mut fleet, "p", 2), 1);
    fleet.set_policy(&key("q"), compiled(spec), None);
    assert_eq!(fleet.remove_policy(&key("p")), BTreeSet::from([key("q")]));
    assert_eq!(begun(&mut fleet, "q", 3), 1);
}

#[test]
fn a_workload_under_two_policies_loses_volumes_of_one_member_at_a_time() {
    let spec = json!({
        "triggers": {"taints": [{"key": "a"}]}, "strategy": {"volumes": {"policy": "Delete"}},
    });
    let mut fleet = fleet(&["p", "q"], &spec);
    for (policy, name, place) in [("p", "x-0", "n0"), ("q", "x-1", "n1")] {
        fleet.set_node(place, node(true));
        fleet.set_member(&key(policy), member(name, place, "t1"), None);
        fleet.decide(&key(policy), START);
    }
    assert_eq!(begun(&mut fleet, "p", 1), 1);
    assert_eq!(begun(&mut fleet, "q", 1), 0);
    fleet.set_member(&key("q"), member("x-1", "n1", "t2"), None);
    assert_eq!(begun(&mut fleet, "q", 2), 1, "another workload is not concerned");
}

/// Each is a workload of its own; what one policy selects may share data all the same.
#[test]
fn members_of_several_workloads_under_one_policy_lose_their_volumes_one_at_a_time_and_only_while_all_are_ready()
 {
    let spec = json!({
        "triggers": {"taints": [{"key": "a"}]}, "strategy": {"volumes": {"policy": "Delete"}},
        "budget": {"maxConcurrent": 2, "breaker": {"maxAffectedFaultDomains": "100%"}},
    });
    let told = |unready: &[&str]| Target {
        unready: Known::Known(unready.iter().map(|name| Arc::from(*name)).collect()),
        is_settled: Sure::Yes,
        ..Target::default()
    };
    let start = |target: Target| {
        let mut fleet = fleet(&["p"], &spec);
        for (name, place, of) in [("x-0", "n0", "t1"), ("y-0", "n1", "t2")] {
            fleet.set_node(place, node(true));
            fleet.set_member(&key("p"), member(name, place, of), None);
        }
        fleet.set_target(&"t2".into(), target);
        fleet.decide(&key("p"), START);
        fleet
    };
    assert_eq!(begun(&mut start(told(&[])), "p", 1), 1, "one at a time");
    assert_eq!(begun(&mut start(Target::default()), "p", 1), 0, "nobody knows how the other one is");
    let mut fleet = start(told(&["y-0"]));
    let plan = fleet.decide(&key("p"), after(1)).unwrap();
    let begun: Vec<&str> =
        plan.steps.iter().filter(|step| step.acts.contains(&Act::Begin)).map(|step| &*step.name).collect();
    assert_eq!(begun, ["y-0"], "only the one that is not ready itself");
}

#[test]
fn what_another_policy_comes_to_speak_of_stops_where_it_is() {
    let spec = json!({"triggers": {"taints": [{"key": "a"}]}});
    let mut fleet = fleet(&["p", "q"], &spec);
    fleet.set_node("n0", node(true));
    fleet.set_member(&key("p"), member("x-0", "n0", "t1"), None);
    for second in 0..3 {
        fleet.decide(&key("p"), after(second));
    }
    let evict = Act::Evict { uid: "x-0-0".into() };
    assert!(fleet.confirm(&key("p"), "x-0", &evict, after(3)).is_ok());
    fleet.set_member(&key("q"), member("x-0", "n0", "t1"), None);
    let why = fleet.confirm(&key("p"), "x-0", &evict, after(3)).unwrap_err();
    assert_eq!(why.iter().map(berth_engine::replace::Reason::word).collect::<Vec<_>>(), ["Overlap"]);
}

#[test]
fn the_order_of_events_does_not_matter() {
    let spec = json!({"triggers": {"taints": [{"key": "a"}]}, "budget": {"maxConcurrent": 2}});
    let mut plans = Vec::new();
    for reversed in [false, true] {
        let mut fleet = fleet(&["p"], &spec);
        let mut numbers: Vec<usize> = (0..8).collect();
        if reversed {
            numbers.reverse();
        }
        for number in numbers {
            fleet.set_member(&key("p"), member(&format!("x-{number}"), &format!("n{number}"), "t1"), None);
            fleet.set_node(&format!("n{number}"), node(number % 8 == 3));
        }
        fleet.decide(&key("p"), START);
        plans.push(fleet.decide(&key("p"), after(1)));
    }
    assert_eq!(plans[0], plans[1]);
    let begun: Vec<Arc<str>> =
        plans[0].iter().flat_map(|plan| &plan.steps).map(|step| Arc::clone(&step.name)).collect();
    assert_eq!(begun.len(), 8);
}
