#![expect(clippy::needless_pass_by_value, reason = "a literal reads better without a reference")]

use berth_engine::evict::Hold;
use serde_json::Value;

use super::*;
use crate::controllers::stage::Stage;

const NOTHING: [&str; 0] = [];
/// All that an eviction writes.
const BOTH: [&str; 2] = ["patch Pod n/p/status", "delete Pod n/p"];
const KEY: &str = "example.org/down";

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

/// Upstream: taint_eviction_test.go "TestCreatePod: schedule on tainted Node with finite toleration".
#[test]
fn a_toleration_ends_its_seconds_after_the_taint_was_added() {
    let mut stage = armed(60);
    assert_eq!(stage.controller.marshal.wake(), Some(stage.now.plus_seconds(60)));
    assert_eq!(stage.after_seconds(59), NOTHING);
    assert_eq!(stage.after_seconds(1), BOTH);
}

#[test]
fn a_restart_in_the_middle_keeps_the_deadline() {
    let before = armed(60);
    let mut after = restarted(&before, 30);
    assert_eq!(after.settle(), NOTHING);
    assert_eq!(after.after_seconds(29), NOTHING);
    assert_eq!(after.after_seconds(1), BOTH);
    let mut late = restarted(&before, 500);
    assert_eq!(late.settle(), BOTH, "what fell due while nobody looked is done at once");
}

#[test]
fn a_taint_that_does_not_say_when_it_was_added_is_given_the_time_it_was_first_seen() {
    let mut stage = scene();
    stage.now = stage.now.plus(Duration::from_millis(300));
    stage.put(Kind::Pod, pod(tolerates(Some(60))));
    put_node(&mut stage, json!([{"key": "mine", "value": "v", "effect": "NoSchedule"}, timeless(KEY)]));
    assert_eq!(stage.settle(), ["patch Node /node"]);
    let spec = &stage.get(Kind::Node, "", "node").unwrap()["spec"];
    let seen = Moment::from_second(1_700_000_001);
    assert_eq!(
        spec["taints"],
        json!([
            {"key": "mine", "value": "v", "effect": "NoSchedule"},
            {"key": KEY, "effect": "NoExecute", "timeAdded": seen.to_string()},
        ])
    );
    assert_eq!(spec["podCIDR"], "10.0.0.0/24");
    assert_eq!(
        stage.controller.marshal.wake(),
        Some(stage.now.plus_seconds(60)),
        "exact for who has seen it come"
    );
    let mut after = restarted(&stage, 30);
    assert_eq!(after.settle(), NOTHING);
    assert_eq!(after.controller.marshal.wake(), Some(seen.plus_seconds(60)), "to the second for who has not");
}

#[test]
fn a_taint_whose_time_matters_to_nobody_is_left_as_it_is() {
    let mut stage = scene();
    put_node(&mut stage, json!([timeless(KEY)]));
    stage.put(Kind::Pod, pod(tolerates(None)));
    assert_eq!(stage.settle(), NOTHING);
    stage.now = stage.now.plus_seconds(50);
    stage.put(Kind::Pod, named("q", "node", tolerates(Some(60))));
    assert_eq!(stage.settle(), ["patch Node /node"], "until somebody comes to whom it does");
    let added = &stage.get(Kind::Node, "", "node").unwrap()["spec"]["taints"][0]["timeAdded"];
    assert_eq!(added, &json!("2023-11-14T22:13:20Z"));
}

/// Upstream: taint_eviction_test.go "TestUpdateNode: Taint removed".
#[test]
fn a_taint_that_was_removed_and_added_again_starts_anew() {
    let mut stage = armed(60);
    assert_eq!(stage.after_seconds(50), NOTHING);
    put_node(&mut stage, json!([]));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(notes(&stage), ["Cancelling deletion of Pod n/p"]);
    stage.now = stage.now.plus_seconds(5);
    let again = taint(&stage, KEY);
    put_node(&mut stage, json!([again]));
    assert_eq!(stage.after_seconds(59), NOTHING);
    assert_eq!(stage.after_seconds(1), BOTH);
}

#[test]
fn a_pod_that_came_to_a_taint_of_old_has_all_of_its_time() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.now = stage.now.plus_seconds(3600);
    let mut late = pod(tolerates(Some(60)));
    late["metadata"]["creationTimestamp"] = json!(stage.now.to_string());
    stage.put(Kind::Pod, late);
    assert_eq!(stage.after_seconds(59), NOTHING);
    assert_eq!(stage.after_seconds(1), BOTH);
}

/// There, what is armed is neither lengthened nor shortened.
/// Upstream: taint_eviction_test.go "TestUpdatePod: removing toleration",
/// "TestUpdatePod: lengthening toleration shouldn't work".
#[test]
fn tolerations_that_change_while_a_pod_is_armed_count_at_once() {
    let longer = |stage: &mut Scene, seconds| {
        let mut object = stage.get(Kind::Pod, "n", "p").unwrap().clone();
        object["spec"]["tolerations"] = tolerates(seconds);
        stage.put(Kind::Pod, object);
    };
    let mut stage = armed(60);
    longer(&mut stage, Some(100));
    assert_eq!(stage.after_seconds(99), NOTHING);
    assert_eq!(stage.after_seconds(1), BOTH);
    let mut stage = armed(60);
    stage.after_seconds(5);
    longer(&mut stage, Some(10));
    assert_eq!(stage.after_seconds(4), NOTHING);
    assert_eq!(stage.after_seconds(1), BOTH);
    let mut stage = armed(60);
    longer(&mut stage, None);
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(notes(&stage), ["Cancelling deletion of Pod n/p"]);
    assert_eq!(stage.controller.marshal.wake(), None);
    let mut object = stage.get(Kind::Pod, "n", "p").unwrap().clone();
    object["spec"]["tolerations"] = json!([]);
    stage.put(Kind::Pod, object);
    assert_eq!(stage.settle(), BOTH);
}

/// Upstream: taint_eviction_test.go "TestUpdateNode: Only one added taint tolerated".
#[test]
fn taints_that_change_while_a_pod_is_armed_count_at_once() {
    let mut stage = armed(60);
    let old = stage.get(Kind::Node, "", "node").unwrap()["spec"]["taints"][0].clone();
    stage.now = stage.now.plus_seconds(10);
    let more = taint(&stage, "untolerated");
    put_node(&mut stage, json!([old, more]));
    assert_eq!(stage.settle(), BOTH);
}

#[test]
fn a_taint_added_later_with_more_patience_does_not_move_the_first_deadline() {
    let mut stage = armed(60);
    let old = stage.get(Kind::Node, "", "node").unwrap()["spec"]["taints"][0].clone();
    let mut object = stage.get(Kind::Pod, "n", "p").unwrap().clone();
    object["spec"]["tolerations"] =
        json!([{"operator": "Exists", "tolerationSeconds": 60, "effect": "NoExecute"}]);
    stage.put(Kind::Pod, object);
    stage.now = stage.now.plus_seconds(30);
    let more = taint(&stage, "other");
    put_node(&mut stage, json!([old, more]));
    assert_eq!(stage.after_seconds(29), NOTHING);
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
fn what_waits_is_called_back_when_its_cause_goes() {
    let limits = EvictionLimits { rate: Some(1.0), burst: Some(1), ..EvictionLimits::default() };
    let mut stage = with(limits);
    for number in 0..200 {
        stage.put(Kind::Pod, named(&format!("p{number:03}"), "node", json!([])));
    }
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    assert_eq!(stage.settle().len(), 2);
    put_node(&mut stage, json!([]));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(stage.after_seconds(3600), NOTHING);
    assert_eq!(stage.names(Kind::Pod).len(), 199);
    assert_eq!(stage.controller.marshal.waiting(), 0);
    assert_eq!(notes(&stage).len(), 200);
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
fn a_rate_is_kept_and_the_longest_due_goes_first() {
    let limits = EvictionLimits { rate: Some(1.0), burst: Some(2), ..EvictionLimits::default() };
    let mut stage = with(limits);
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for (name, seconds) in [("a", 40), ("b", 30), ("c", 20), ("d", 10)] {
        stage.put(Kind::Pod, named(name, "node", tolerates(Some(seconds))));
    }
    let deleted = |lines: Vec<String>| -> Vec<String> {
        lines.iter().filter_map(|line| line.strip_prefix("delete Pod n/").map(str::to_owned)).collect()
    };
    assert_eq!(deleted(stage.after_seconds(100)), ["d", "c"]);
    assert_eq!(stage.controller.marshal.wake(), Some(stage.now.plus_seconds(1)));
    assert_eq!(deleted(stage.after_seconds(1)), ["b"]);
    assert_eq!(deleted(stage.after_seconds(1)), ["a"]);
}

#[test]
fn a_zone_with_too_many_tainted_nodes_is_held_until_they_are_few_again() {
    let limits = EvictionLimits {
        breaker: Some(EvictionBreaker { percent: 50, least: 2 }),
        ..EvictionLimits::default()
    };
    let mut stage = with(limits);
    let taint = taint(&stage, KEY);
    for name in ["a", "b", "c", "d"] {
        stage.put(Kind::Node, node(name, json!([])));
        stage.put(Kind::Pod, named(name, name, json!([])));
    }
    stage.put(Kind::Node, node("a", json!([taint])));
    stage.put(Kind::Node, node("b", json!([taint])));
    assert_eq!(stage.settle(), NOTHING);
    let pod = stage.world.pods.get(&key("a")).unwrap();
    let hold = stage.controller.marshal.hold(&PodId::of(pod), stage.now).unwrap();
    assert_eq!(hold.to_string(), "2 of 4 in zone z are affected, which is too many at once");
    stage.after_seconds(1);
    assert!(stage.controller.metrics.text().contains("berth_evictions_held{reason=\"breaker\"} 2"));
    stage.put(Kind::Node, node("b", json!([])));
    assert_eq!(stage.after_seconds(9), NOTHING, "not at once");
    assert_eq!(stage.after_seconds(1), NOTHING);
    assert_eq!(stage.after_seconds(10), ["patch Pod n/a/status", "delete Pod n/a"]);
}

fn freeze() -> Value {
    json!({"metadata": {"namespace": "berth-system", "name": "berth-freeze-evictions"},
        "data": {"reason": "storm", "by": "ann", "since": "2023-11-14T22:00:00Z"}})
}

#[test]
fn nothing_is_evicted_while_somebody_has_said_stop() {
    let mut stage = scene();
    stage.put(Kind::Freeze, freeze());
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(stage.after_seconds(60), NOTHING);
    let hold = stage.controller.marshal.hold(&PodId::of(stage.world.pods.get(&key("p")).unwrap()), stage.now);
    assert!(matches!(hold, Some(Hold::Frozen(freeze)) if &*freeze.reason == "storm"));
    let text = stage.controller.metrics.text();
    assert!(
        text.contains("berth_evictions_frozen 1")
            && text.contains("berth_evictions_held{reason=\"frozen\"} 1")
    );
    stage.remove(Kind::Freeze, &ObjectKey::new("berth-system", "berth-freeze-evictions"));
    assert_eq!(stage.settle(), BOTH);
    let told: Vec<_> = stage.notes.iter().map(|note| (note.reason, &*note.note)).collect();
    assert_eq!(
        told,
        [
            ("EvictionsFrozen", "Evictions are frozen by ann: storm"),
            ("EvictionsUnfrozen", "Evictions go on"),
            ("TaintManagerEviction", "Marking for deletion Pod n/p"),
        ]
    );
}

#[test]
fn a_stop_is_heard_even_between_telling_a_pod_and_deleting_it() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    stage.refused = Some("delete".to_owned());
    stage.settle();
    stage.put(Kind::Freeze, freeze());
    stage.refused = None;
    assert_eq!(stage.after_seconds(60), NOTHING);
}

#[test]
fn what_is_refused_is_tried_again_for_ever_and_ever_less_often() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    stage.refused = Some("delete".to_owned());
    stage.settle();
    let mut waits = Vec::new();
    for _ in 0..20 {
        let next = stage.due.next().unwrap();
        waits.push(stage.now.until(next));
        stage.now = next;
        assert_eq!(stage.settle(), ["refused: delete Pod n/p"]);
    }
    assert!(waits.is_sorted() && waits[19] == Duration::from_secs(30), "{waits:?}");
    stage.refused = None;
    assert_eq!(stage.after_seconds(30), ["delete Pod n/p"]);
    assert_eq!(notes(&stage).len(), 1);
}

#[test]
fn what_is_refused_does_not_keep_others_waiting() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for number in 0..PLACES + 20 {
        stage.put(Kind::Pod, named(&format!("a{number:03}"), "node", json!([])));
    }
    stage.put(Kind::Pod, named("z", "node", json!([])));
    stage.refused = Some("delete Pod n/a".to_owned());
    let written = stage.settle();
    assert!(written.contains(&"delete Pod n/z".to_owned()), "{written:?}");
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

#[test]
fn how_many_wait_is_told_within_a_second() {
    let mut stage = armed(60);
    let next = stage.controller.wake().unwrap();
    assert!(stage.now.until(next) <= TELL_EVERY);
    stage.now = next;
    stage.settle();
    assert!(stage.controller.metrics.text().contains("berth_evictions_waiting 1"));
    stage.remove(Kind::Pod, &key("p"));
    stage.settle();
    stage.now = stage.controller.wake().unwrap();
    stage.settle();
    assert!(stage.controller.metrics.text().contains("berth_evictions_waiting 0"));
    assert_eq!(stage.controller.wake(), None, "nothing more to tell");
}

#[test]
fn the_delay_is_counted_from_the_moment_a_pod_was_due() {
    let mut stage = armed(60);
    stage.after_seconds(80);
    let text = stage.controller.metrics.text();
    assert!(text.contains("taint_eviction_controller_pod_deletions_total 1"), "{text}");
    let sum = "taint_eviction_controller_pod_deletion_duration_seconds_sum 20.0";
    assert!(text.contains(sum), "{text}");
}

#[test]
fn nobody_leaves_while_it_cannot_be_seen_whether_somebody_has_said_stop() {
    let mut stage = armed(10);
    stage.world.hear(crate::world::Told::Lost(Kind::Freeze));
    assert_eq!(stage.after_seconds(60), NOTHING);
    stage.world.hear(crate::world::Told::Followed(Kind::Freeze));
    assert_eq!(stage.settle(), BOTH);
}

#[test]
fn a_pod_that_says_it_came_in_the_future_counts_from_when_it_was_first_judged() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    let mut ahead = pod(tolerates(Some(5)));
    ahead["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2090-01-01T00:00:00Z"}]);
    stage.put(Kind::Pod, ahead);
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(stage.after_seconds(4), NOTHING);
    assert_eq!(stage.after_seconds(1), BOTH);
    assert!(stage.controller.ahead.is_empty(), "nothing is kept of who is gone");
}

#[test]
fn nobody_leaves_while_another_controller_says_stop() {
    let mut stage = armed(10);
    let stop = Freeze { reason: "it is not the nodes".into(), by: None, since: None };
    stage.controller.heed(Some(&stop));
    assert_eq!(stage.after_seconds(60), NOTHING);
    stage.controller.heed(None);
    assert_eq!(stage.settle(), BOTH);
}

fn unreadable(stage: &mut Scene) {
    stage.world.hear(crate::world::Told::Unreadable(Kind::Node, ObjectKey::new("", "node")));
}

#[test]
fn nobody_leaves_a_node_whose_latest_state_cannot_be_read() {
    let mut stage = armed(60);
    unreadable(&mut stage);
    assert_eq!(stage.after_seconds(60), NOTHING, "its taint may have gone");
    assert_eq!(stage.after_seconds(3600), NOTHING);
    assert_eq!(notes(&stage), NOTHING);
    put_node(&mut stage, json!([]));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(notes(&stage), ["Cancelling deletion of Pod n/p"]);
    assert_eq!(stage.after_seconds(3600), NOTHING);
}

#[test]
fn who_was_held_leaves_when_the_node_is_read_and_has_its_taint_still() {
    let mut stage = armed(60);
    unreadable(&mut stage);
    assert_eq!(stage.after_seconds(90), NOTHING);
    let same = stage.get(Kind::Node, "", "node").unwrap().clone();
    stage.put(Kind::Node, same);
    assert_eq!(stage.settle(), BOTH);
}

#[test]
fn a_node_that_becomes_unreadable_after_its_pod_was_told_why_holds_the_deletion() {
    let mut stage = armed(60);
    stage.refused = Some("delete".to_owned());
    assert_eq!(stage.after_seconds(60), ["patch Pod n/p/status", "refused: delete Pod n/p"]);
    stage.refused = None;
    unreadable(&mut stage);
    assert_eq!(stage.after_seconds(3600), NOTHING);
    stage.remove(Kind::Pod, &key("p"));
    assert_eq!(stage.settle(), NOTHING);
    assert!(stage.controller.held.is_empty(), "who is gone is not remembered");
}
