#![expect(clippy::needless_pass_by_value, reason = "a literal reads better without a reference")]

use serde_json::Value;

use super::*;
use crate::controllers::stage::Stage;

const NOTHING: [&str; 0] = [];
/// All that an eviction writes.
const BOTH: [&str; 2] = ["patch Pod n/p/status", "delete Pod n/p"];
const KEY: &str = "example.org/down";

mod bounds;
mod clock;
mod gone;
mod leaving;
mod many;
mod operators;
mod policies;
mod reviews;
mod stops;
mod windows;

type Scene = Stage<TaintEvictionController>;

fn scene() -> Scene {
    with(EvictionLimits::default())
}

fn with(limits: EvictionLimits) -> Scene {
    Stage::new(TaintEvictionController::new(limits, Arc::default()))
}

/// The same world, seen by a process that has just begun, so many seconds later.
fn restarted(before: &Scene, seconds: i64) -> Scene {
    let mut after = scene();
    after.now = before.now.plus_seconds(seconds);
    for ((kind, _), object) in before.objects() {
        after.bring(*kind, object.clone());
    }
    after
}

fn node(name: &str, taints: Value) -> Value {
    json!({
        "metadata": {"name": name, "creationTimestamp": "2020-01-01T00:00:00Z", "labels": {"topology.kubernetes.io/zone": "z"}},
        "spec": {"podCIDR": "10.0.0.0/24", "taints": taints},
    })
}

fn taint(stage: &Scene, key: &str) -> Value {
    json!({"key": key, "effect": "NoExecute", "timeAdded": stage.now.to_string()})
}

fn timeless(key: &str) -> Value {
    json!({"key": key, "effect": "NoExecute"})
}

fn put_node(stage: &mut Scene, taints: Value) {
    stage.put(Kind::Node, node("node", taints));
}

/// Tolerates the taint for so long.
fn tolerates(seconds: Option<i64>) -> Value {
    match seconds {
        Some(seconds) => {
            json!([{"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}])
        }
        None => json!([{"key": KEY, "operator": "Exists", "effect": "NoExecute"}]),
    }
}

fn named(name: &str, node: &str, tolerations: Value) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": name, "creationTimestamp": "2022-01-01T00:00:00Z", "generation": 3},
        "spec": {"nodeName": node, "tolerations": tolerations},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn pod(tolerations: Value) -> Value {
    named("p", "node", tolerations)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

fn notes(stage: &Scene) -> Vec<&str> {
    stage.notes.iter().map(|note| note.note.as_str()).collect()
}

/// A pod that tolerates the taint for so long, on a node that has just got it.
fn armed(seconds: i64) -> Scene {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(tolerates(Some(seconds))));
    assert_eq!(stage.settle(), NOTHING);
    stage
}

/// Upstream: taint_eviction_test.go "TestCreatePod: scheduled on untainted Node",
/// "TestUpdateNode: Added taint, expect node patched and deleted".
#[test]
fn a_pod_that_does_not_tolerate_a_taint_is_told_why_and_deleted() {
    let mut stage = scene();
    stage.put(Kind::Pod, pod(json!([])));
    put_node(&mut stage, json!([]));
    assert_eq!(stage.settle(), NOTHING);
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.refused = Some("delete".to_owned());
    assert_eq!(stage.settle(), ["patch Pod n/p/status", "refused: delete Pod n/p"]);
    let conditions = stage.get(Kind::Pod, "n", "p").unwrap()["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions[0]["type"], "Ready", "the kubelet's stays");
    assert_eq!(
        conditions[1],
        json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": stage.now.to_string(), "observedGeneration": 3,
        })
    );
    stage.refused = None;
    assert_eq!(stage.after_seconds(1), ["delete Pod n/p"], "it is told once");
    let [note] = &stage.notes[..] else { panic!("{:?}", stage.notes) };
    assert_eq!((note.reason, &*note.note), ("TaintManagerEviction", "Marking for deletion Pod n/p"));
    assert_eq!((note.reporter, &*note.namespace, note.is_warning), ("taint-eviction-controller", "n", false));
    assert_eq!(note.regarding.uid.as_deref(), Some("uid-1"));
}

/// Upstream: taint_eviction_test.go "TestCreatePod: schedule on tainted Node",
/// "TestCreatePod: schedule on tainted Node with infinite toleration",
/// "TestCreatePod: schedule on tainted Node with infinite invalid toleration".
#[test]
fn a_pod_that_comes_to_a_tainted_node_is_judged_by_its_tolerations() {
    for (tolerations, evicted) in [
        (json!([]), true),
        (tolerates(None), false),
        (tolerates(Some(0)), true),
        (tolerates(Some(-5)), true),
        (json!([{"operator": "Exists"}]), false),
        (json!([{"key": KEY, "operator": "Equal", "value": "other", "effect": "NoExecute"}]), true),
        (json!([{"key": KEY, "operator": "Exists", "effect": "NoSchedule"}]), true),
        // The first that matches counts, whatever comes after it.
        (
            json!([{"key": KEY, "operator": "Exists", "tolerationSeconds": 0, "effect": "NoExecute"}, {"operator": "Exists"}]),
            true,
        ),
    ] {
        let mut stage = scene();
        let taint = taint(&stage, KEY);
        put_node(&mut stage, json!([taint]));
        stage.put(Kind::Pod, pod(tolerations.clone()));
        assert_eq!(stage.settle(), if evicted { &BOTH[..] } else { &[] }, "{tolerations}");
    }
}

#[test]
fn only_no_execute_makes_anybody_leave() {
    let mut stage = scene();
    put_node(
        &mut stage,
        json!([{"key": KEY, "effect": "NoSchedule"}, {"key": KEY, "effect": "PreferNoSchedule"}]),
    );
    stage.put(Kind::Pod, pod(json!([])));
    assert_eq!(stage.settle(), NOTHING);
}

/// Upstream: taint_eviction_test.go "TestUpdateNode: Pod with multiple tolerations are evicted when first one runs out".
#[test]
fn of_several_taints_the_earliest_end_counts() {
    let mut stage = scene();
    let (one, other) = (taint(&stage, KEY), taint(&stage, "other"));
    let tolerations = json!([
        {"key": KEY, "operator": "Exists", "tolerationSeconds": 100, "effect": "NoExecute"},
        {"key": "other", "operator": "Exists", "tolerationSeconds": 10, "effect": "NoExecute"},
    ]);
    stage.put(Kind::Pod, pod(tolerations));
    put_node(&mut stage, json!([one, other]));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(stage.after_seconds(9), NOTHING);
    assert_eq!(stage.after_seconds(1), BOTH);
}

/// Upstream: taint_eviction_test.go "TestCreatePod: not scheduled - ignore".
#[test]
fn who_has_ended_is_ending_is_a_mirror_or_is_on_no_node_is_left_alone() {
    let change = |path: &[&str], value: Value| {
        let mut object = pod(json!([]));
        let place = path.iter().fold(&mut object, |place, name| &mut place[*name]);
        *place = value;
        object
    };
    for object in [
        change(&["status", "phase"], json!("Succeeded")),
        change(&["status", "phase"], json!("Failed")),
        change(&["metadata", "deletionTimestamp"], json!("2023-01-01T00:00:00Z")),
        change(&["metadata", "annotations"], json!({"kubernetes.io/config.mirror": "hash"})),
        change(&["spec", "nodeName"], json!("")),
        change(&["spec", "nodeName"], json!("another")),
    ] {
        let mut stage = scene();
        let taint = taint(&stage, KEY);
        put_node(&mut stage, json!([taint]));
        stage.put(Kind::Pod, object.clone());
        assert_eq!(stage.settle(), NOTHING, "{object}");
        assert_eq!(notes(&stage), NOTHING);
    }
}

#[test]
fn a_pod_of_a_daemon_set_goes_by_its_tolerations_like_any_other() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    let mut object =
        pod(json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]));
    object["metadata"]["ownerReferences"] =
        json!([{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
    stage.put(Kind::Pod, object);
    assert_eq!(stage.settle(), BOTH);
}

#[test]
fn a_pod_that_has_time_to_end_is_deleted_once() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    let mut object = pod(json!([]));
    object["spec"]["terminationGracePeriodSeconds"] = json!(30);
    stage.put(Kind::Pod, object);
    assert_eq!(stage.settle(), BOTH);
    assert!(stage.get(Kind::Pod, "n", "p").is_some());
    assert_eq!(stage.after_seconds(3600), NOTHING);
    assert_eq!(notes(&stage), ["Marking for deletion Pod n/p"]);
    assert_eq!((stage.controller.marshal.away(), stage.controller.going.len()), (0, 0));
}

#[test]
fn a_successor_of_the_same_name_does_not_inherit_the_deadline() {
    let mut stage = armed(60);
    stage.after_seconds(50);
    stage.remove(Kind::Pod, &key("p"));
    let mut successor = named("p", "another", tolerates(Some(60)));
    successor["metadata"]["creationTimestamp"] = json!(stage.now.to_string());
    stage.put(Kind::Node, node("another", json!([])));
    stage.put(Kind::Pod, successor);
    assert_eq!(stage.after_seconds(3600), NOTHING);
    assert_eq!((stage.controller.marshal.wake(), notes(&stage)), (None, vec![]));
}

#[test]
fn a_pod_that_is_let_go_and_meanwhile_replaced_frees_its_place() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    // As far as being let go, and no further.
    let Stage { controller, world, due, now, .. } = &mut stage;
    controller.advance(*now, world, due);
    assert_eq!(due.pop(*now), Some(key("p")));
    controller.decide(&key("p"), world, *now);
    controller.advance(*now, world, due);
    assert_eq!(controller.going.len(), 1);
    stage.remove(Kind::Pod, &key("p"));
    stage.put(Kind::Pod, named("p", "another", json!([])));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!((stage.controller.marshal.away(), stage.controller.going.len()), (0, 0));
}

#[test]
fn the_deletion_is_not_sent_if_the_cause_went_while_the_pod_was_told() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    stage.refused = Some("delete".to_owned());
    assert_eq!(stage.settle().len(), 2);
    put_node(&mut stage, json!([]));
    stage.refused = None;
    assert_eq!(stage.after_seconds(60), NOTHING);
    assert!(stage.get(Kind::Pod, "n", "p").is_some());
}

#[test]
fn what_changes_nothing_about_leaving_costs_nothing() {
    let mut stage = armed(60);
    let mut object = stage.get(Kind::Pod, "n", "p").unwrap().clone();
    object["status"]["conditions"][0]["status"] = json!("False");
    object["metadata"]["labels"] = json!({"a": "b"});
    stage.put(Kind::Pod, object);
    let mut object = stage.get(Kind::Node, "", "node").unwrap().clone();
    object["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    object["spec"]["unschedulable"] = json!(true);
    stage.put(Kind::Node, object);
    assert!(!stage.due.is_ready() && stage.controller.changed.is_empty());
}

#[test]
fn a_node_that_is_gone_makes_nobody_leave() {
    let mut stage = armed(60);
    stage.remove(Kind::Node, &ObjectKey::new("", "node"));
    assert_eq!(stage.after_seconds(3600), NOTHING, "its pods are for whoever collects what is left behind");
    assert!(stage.controller.places.is_empty());
}
