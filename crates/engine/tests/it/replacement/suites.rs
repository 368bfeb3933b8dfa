//! What the other suites of FoundationDB's operator ask for, under the names they have there: whole clusters, the node watch, the
//! removal of pods, and which of several conditions counts.

use berth_engine::Moment;
use berth_engine::replace::{Act, Known, Member, Phase, Pod, PolicyKey, Readiness, State, Verdict};
use berth_engine::taint::NodeEffect;
use serde_json::{Value, json};

use super::fixtures::{START, World, after, condition, pasted};

const MAINTENANCE: &str = "foundationdb.org/maintenance";

// e2e/test_operator/operator_test.go, "nodes in the cluster are tainted"

/// A cluster whose nodes get soft taints that were put on long ago, as there; who was replaced, in order, until nothing is left.
fn removed(key: &str, tainted: &[&str]) -> Vec<String> {
    let spec = pasted(json!({
        "taintReplacementOptions": [{"key": key, "durationInSeconds": 1}], "taintReplacementTimeSeconds": 1,
        "maxFaultDomainsWithTaintedProcessGroups": "100%",
    }));
    let mut world = World::of(4, spec);
    for node in tainted {
        world.taint(node, MAINTENANCE, Some(after(-3_600)));
        world.tell_node(node, |node| node.taints[0].effect = NodeEffect::PreferNoSchedule);
    }
    let mut now = START;
    let mut replaced = Vec::new();
    for generation in 1..=10 {
        let until = now.plus_seconds(600);
        world.run_to(until);
        now = until.plus_seconds(1);
        let Some(name) = world.begun().into_iter().next() else { break };
        world.recreate(&name, &format!("spare{generation}"), generation, now);
        world.tell_pod(&name, |pod| pod.ready = Readiness::Since(now));
        world.look(now);
        now = now.plus_seconds(60);
        world.look(now);
        assert_eq!(world.state(&name), State::Course(Phase::Done));
        replaced.push(name);
    }
    replaced
}

/// Upstream: operator_test.go
/// "cluster enables taint feature on focused maintenance taint key: should remove the targeted Pod whose Node is tainted",
/// "cluster enables taint feature on star taint key: should eventually remove the targeted Pod whose Node is tainted".
#[test]
fn the_pod_whose_node_is_tainted_goes_by_its_key_and_by_the_star() {
    for key in [MAINTENANCE, "*"] {
        assert_eq!(removed(key, &["n2"]), ["db-2"], "{key}");
    }
    assert_eq!(removed("example.org/other", &["n2"]), [""; 0]);
}

/// Upstream: operator_test.go
/// "cluster enables taint feature on focused maintenance taint key: should remove all Pods whose Nodes are tainted",
/// "cluster enables taint feature on star taint key: should eventually remove all Pods whose Nodes are tainted".
#[test]
fn all_pods_whose_nodes_are_tainted_go_one_after_the_other() {
    for key in [MAINTENANCE, "*"] {
        assert_eq!(removed(key, &["n1", "n3"]), ["db-1", "db-3"], "{key}");
    }
}

// controllers/cluster_controller_test.go, "when finding fdb pods in a node"

/// Policies are of a namespace, as is what they name: an event of a node concerns those with members on it, wherever they are.
///
/// Upstream: cluster_controller_test.go
/// "the cluster reconciler namespace matches: should trigger reconciliation for cluster nodes",
/// "the cluster reconciler namespace matches: should not trigger reconciliation for unrelated nodes",
/// "cluster reconciler namespace does not match: should not trigger reconciliation for cluster nodes",
/// "cluster reconciler namespace does not match: should not trigger reconciliation for unrelated nodes".
#[test]
fn an_event_of_a_node_concerns_no_policy_of_another_namespace() {
    let spec = json!({"triggers": {"taints": [{"key": "*"}]}});
    let mut world = World::of(2, spec.clone());
    let elsewhere = PolicyKey::new("elsewhere", "db");
    world.fleet.set_policy(&elsewhere, super::fixtures::compiled(spec), None);
    // Pods of the same names, on other nodes.
    let pod = Pod { uid: "other".into(), node: Some("n7".into()), ..Pod::default() };
    let member = Member { name: "db-0".into(), pod: Known::Known(Some(pod)), ..Member::default() };
    world.fleet.set_member(&elsewhere, member, None);
    let fact = |key: &str| {
        let mut other = World::of(2, json!({"triggers": {"taints": [{"key": "*"}]}}));
        other.taint("n0", key, None);
        other.node_fact("n0")
    };
    assert_eq!(world.fleet.set_node("n0", fact("a")), [world.key.clone()]);
    assert!(world.fleet.set_node("n9", fact("a")).is_empty(), "nobody is there");
    world.fleet.set_node("n7", fact("a"));
    assert_eq!(world.fleet.set_node("n7", fact("b")), [elsewhere]);
}

// api/v1beta2/foundationdbcluster_types_test.go, "needs a replacement"

fn failing(conditions: &[(&str, Moment)]) -> World {
    let mut world = World::of(1, pasted(json!({"failureDetectionTimeSeconds": 100})));
    world.tell_pod("db-0", |pod| {
        pod.conditions = conditions.iter().map(|(kind, at)| condition(kind, "False", Some(*at))).collect();
    });
    world
}

/// Upstream: foundationdbcluster_types_test.go "with no conditions: should not need replacement".
#[test]
fn a_pod_that_says_nothing_bad_of_itself_needs_no_replacement() {
    let mut world = failing(&[]);
    let plan = world.look(after(100_000));
    assert_eq!((world.state("db-0"), plan.deadline), (State::Healthy, Moment::NEVER));
}

/// Upstream: foundationdbcluster_types_test.go
/// "with multiple conditions that could trigger a replacement: should use the older timestamp",
/// "process group is in the Pod pending state: should need replacement".
#[test]
fn of_several_conditions_the_oldest_decides() {
    for conditions in [
        [("Ready", after(-10)), ("PodScheduled", after(-70))],
        [("PodScheduled", after(-10)), ("Ready", after(-70))],
    ] {
        let mut world = failing(&conditions);
        world.look(after(30));
        assert_eq!((world.state("db-0"), world.begun()), (State::Detected, vec![]));
        world.look(after(31));
        assert_eq!(world.begun(), ["db-0"], "a hundred seconds after the first of the two");
    }
}

// controllers/remove_process_groups_test.go

/// Members that are due with a gate, each on a node of its own; the first has begun, and the gate is open.
fn gated(options: Value) -> World {
    let mut all = json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 0}], "taintReplacementTimeSeconds": 0,
        "maxFaultDomainsWithTaintedProcessGroups": "100%",
    });
    all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let mut spec = pasted(all);
    spec["gates"] = json!([{"name": "healthy", "cel": "true"}]);
    let mut world = World::of(3, spec);
    for number in 0..3 {
        world.taint(&format!("n{number}"), "a", Some(after(-60)));
        world.tell(&format!("db-{number}"), |member| member.gates = vec![Verdict::Pass]);
    }
    world.look(START);
    world.look(after(1));
    world
}

fn evicts(world: &World, name: &str) -> bool {
    world.acts(name).iter().any(|act| matches!(act, Act::Evict { .. }))
}

/// There the state of the database is looked at; here a gate says how it is, and that all others are ready is asked in any case.
///
/// Upstream: remove_process_groups_test.go
/// "the cluster is fully replicated: should successfully remove that process group",
/// "the cluster has degraded storage fault tolerance: should not remove that process group",
/// "the cluster has degraded log fault tolerance: should not remove that process group",
/// "the cluster is not available: should not remove the process group and should not exclude processes".
#[test]
fn a_pod_is_removed_only_while_the_gate_is_open_and_all_others_are_ready() {
    let mut world = gated(json!({}));
    world.look(after(2));
    assert!(evicts(&world, "db-0"), "all is well");
    for verdict in [Verdict::Deny, Verdict::Unknown] {
        let mut world = gated(json!({}));
        world.tell("db-0", |member| member.gates = vec![verdict]);
        world.look(after(2));
        assert!(!evicts(&world, "db-0"), "{verdict:?}");
        assert!(world.words("db-0").contains(&"GateShut"), "{verdict:?}: {:?}", world.words("db-0"));
    }
    let mut world = gated(json!({}));
    world.unready(&["db-2"]);
    world.look(after(2));
    assert!(!evicts(&world, "db-0"));
    assert!(world.words("db-0").contains(&"PeersNotReady"));
}

/// Upstream: remove_process_groups_test.go
/// "the removal mode is the default zone: should remove only one process group",
/// "the removal mode is PodUpdateModeAll: should remove two process groups".
#[test]
fn one_at_a_time_or_as_many_as_the_budget_says() {
    for (max, going) in [(1, vec!["db-0"]), (2, vec!["db-0", "db-1"])] {
        let mut world = gated(json!({"maxConcurrentReplacements": max}));
        assert_eq!(world.begun(), going);
        world.look(after(2));
        let evicted: Vec<&str> =
            ["db-0", "db-1", "db-2"].into_iter().filter(|name| evicts(&world, name)).collect();
        assert_eq!(evicted, going);
    }
}
