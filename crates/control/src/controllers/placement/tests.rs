use berth_engine::select::Details;
use serde_json::{Value, json};

use super::*;
use crate::controllers::stage::Stage;

fn stage() -> Stage<PlacementController> {
    let mut stage = Stage::new(PlacementController::new(Dialect::OURS));
    stage.put(Kind::Set, json!({"metadata": {"name": "blue"}, "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}}));
    stage.put(
        Kind::Binding,
        json!({"metadata": {"namespace": "n", "name": "blue"}, "spec": {"clusterSet": "blue"}}),
    );
    stage
}

fn cluster(name: &str, taints: &Value) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"cluster.open-cluster-management.io/clusterset": "blue"}},
        "spec": {"hubAcceptsClient": true, "taints": taints},
    })
}

fn placement(spec: &Value) -> Value {
    json!({"metadata": {"namespace": "n", "name": "p"}, "spec": spec})
}

/// A cluster that says whether it is available.
fn available(status: &str) -> Value {
    let mut object = cluster("c1", &json!([]));
    object["status"]["conditions"] = json!([{
        "type": "ManagedClusterConditionAvailable", "status": status, "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    object
}

/// A placement whose slices show details.
fn showing(details: &str, spec: &Value) -> Value {
    let mut object = placement(spec);
    object["metadata"]["annotations"] = json!({"berth.dev/decision-details": details});
    object
}

fn selected(stage: &Stage<PlacementController>) -> Vec<String> {
    let slices = stage.names(Kind::Decision);
    let entries = slices.iter().flat_map(|name| {
        let object = stage.get(Kind::Decision, "n", name.strip_prefix("n/").unwrap()).unwrap();
        object["status"]["decisions"].as_array().cloned().unwrap_or_default()
    });
    entries.map(|entry| entry["clusterName"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_new_placement_takes_three_writes() {
    let mut stage = stage();
    stage.put(Kind::Cluster, cluster("c1", &json!([])));
    stage.put(Kind::Placement, placement(&json!({})));
    assert_eq!(
        stage.settle(),
        [
            "create PlacementDecision n/p-decision-1",
            "patch PlacementDecision n/p-decision-1/status",
            "patch Placement n/p/status"
        ]
    );
    assert_eq!(selected(&stage), ["c1"]);
    let reasons: Vec<_> = stage.notes.iter().map(|note| note.reason).collect();
    assert_eq!(reasons, ["DecisionCreate", "ScoreUpdate"]);
}

#[test]
fn what_is_as_it_should_be_is_not_written_again_by_a_new_process() {
    let mut before = stage();
    for number in 0..150 {
        before.put(Kind::Cluster, cluster(&format!("c{number:03}"), &json!([])));
    }
    before.put(Kind::Placement, placement(&json!({"numberOfClusters": 120})));
    before.settle();
    let mut after = Stage::new(PlacementController::new(Dialect::OURS));
    for ((kind, _), object) in before.objects() {
        after.put(*kind, object.clone());
    }
    assert_eq!(after.settle(), [""; 0]);
}

#[test]
fn a_slice_deleted_by_somebody_else_comes_back() {
    let mut stage = stage();
    stage.put(Kind::Cluster, cluster("c1", &json!([])));
    stage.put(Kind::Placement, placement(&json!({})));
    stage.settle();
    stage.remove(Kind::Decision, &ObjectKey::new("n", "p-decision-1"));
    assert_eq!(
        stage.settle(),
        ["create PlacementDecision n/p-decision-1", "patch PlacementDecision n/p-decision-1/status"]
    );
    assert_eq!(selected(&stage), ["c1"]);
}

#[test]
fn a_slice_edited_by_somebody_else_is_put_right() {
    let mut stage = stage();
    stage.put(Kind::Cluster, cluster("c1", &json!([])));
    stage.put(Kind::Placement, placement(&json!({})));
    stage.settle();
    let right = stage.get(Kind::Decision, "n", "p-decision-1").unwrap().clone();
    let mut wrong = right.clone();
    wrong["status"]["decisions"] = json!([{"clusterName": "nonsense", "reason": ""}]);
    wrong["metadata"]["labels"] = json!({"mine": "true"});
    stage.put(Kind::Decision, wrong);
    stage.settle();
    let mut now = stage.get(Kind::Decision, "n", "p-decision-1").unwrap().clone();
    now["metadata"]["resourceVersion"] = right["metadata"]["resourceVersion"].clone();
    assert_eq!(now, right);
}

#[test]
fn a_slice_of_our_name_that_was_labelled_for_another_is_ours() {
    let mut stage = stage();
    stage.put(Kind::Cluster, cluster("c1", &json!([])));
    stage.put(
        Kind::Decision,
        json!({"metadata": {"namespace": "n", "name": "p-decision-1", "labels": {"cluster.open-cluster-management.io/placement": "q"}}}),
    );
    stage.put(Kind::Placement, placement(&json!({})));
    let mut other = placement(&json!({}));
    other["metadata"]["name"] = json!("q");
    stage.put(Kind::Placement, other);
    stage.settle();
    assert_eq!(stage.names(Kind::Decision), ["n/p-decision-1", "n/q-decision-1"]);
    let labels = &stage.get(Kind::Decision, "n", "p-decision-1").unwrap()["metadata"]["labels"];
    assert_eq!(labels["cluster.open-cluster-management.io/placement"], "p");
}

#[test]
fn a_toleration_that_ends_is_acted_on_at_its_moment() {
    let mut stage = stage();
    let added = stage.now.timestamp().unwrap().to_string();
    let taint = json!([{"key": "maintenance", "effect": "NoSelect", "timeAdded": added}]);
    stage.put(Kind::Cluster, cluster("c1", &taint));
    let tolerations = json!([{"key": "maintenance", "operator": "Exists", "tolerationSeconds": 10}]);
    stage.put(Kind::Placement, placement(&json!({"tolerations": tolerations})));
    stage.settle();
    assert_eq!(selected(&stage), ["c1"]);
    assert_eq!(stage.due.next(), Some(stage.now.plus_seconds(10)));
    stage.after_seconds(9);
    assert_eq!(selected(&stage), ["c1"]);
    stage.after_seconds(1);
    assert_eq!(selected(&stage), [""; 0]);
}

#[test]
fn a_placement_that_becomes_misconfigured_keeps_its_clusters() {
    let mut stage = stage();
    stage.put(Kind::Cluster, cluster("c1", &json!([])));
    stage.put(Kind::Placement, placement(&json!({})));
    stage.settle();
    let mut broken = stage.get(Kind::Placement, "n", "p").unwrap().clone();
    broken["spec"] =
        json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["1 +"]}}}]});
    stage.put(Kind::Placement, broken);
    assert_eq!(stage.settle(), ["patch Placement n/p/status"]);
    assert_eq!(selected(&stage), ["c1"]);
}

/// Upstream: scheduling_controller_test.go "TestSchedulingController_sync: placement schedule controller is disabled".
#[test]
fn a_placement_with_scheduling_switched_off_is_left_alone() {
    let mut stage = stage();
    let mut object = placement(&json!({}));
    object["metadata"]["annotations"] =
        json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
    stage.put(Kind::Placement, object);
    assert_eq!(stage.settle(), [""; 0]);
}

#[test]
fn what_the_server_would_prune_is_not_sent() {
    let mut stage = stage();
    stage.controller = PlacementController::new(Dialect::LEAST);
    stage.put(Kind::Set, json!({"metadata": {"name": "blue"}, "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}}));
    stage.put(
        Kind::Binding,
        json!({"metadata": {"namespace": "n", "name": "blue"}, "spec": {"clusterSet": "blue"}}),
    );
    let added = stage.now.timestamp().unwrap().to_string();
    stage.put(Kind::Cluster, cluster("c1", &json!([{"key": "k", "effect": "NoSelect", "timeAdded": added}])));
    let tolerations = json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 10}]);
    stage.put(Kind::Placement, placement(&json!({"tolerations": tolerations})));
    stage.settle();
    assert_eq!(stage.get(Kind::Placement, "n", "p").unwrap()["status"].get("nextTransition"), None);
    assert_eq!(stage.due.next(), Some(stage.now.plus_seconds(10)), "it is acted on all the same");
    stage.controller.speak(Dialect::OURS, &stage.world, &mut stage.due);
    assert_eq!(stage.settle(), ["patch Placement n/p/status"], "the definitions were replaced");
    assert!(stage.get(Kind::Placement, "n", "p").unwrap()["status"].get("nextTransition").is_some());
}

#[test]
fn what_is_as_it_should_be_is_found_so_again_and_again() {
    let mut stage = stage();
    for name in ["c1", "c2"] {
        stage.put(Kind::Cluster, cluster(name, &json!([])));
    }
    stage.put(Kind::Placement, placement(&json!({"numberOfClusters": 1})));
    stage.settle();
    assert_eq!(selected(&stage), ["c1"]);
    let down = json!([{"key": "down", "effect": "NoSelect"}]);
    stage.put(Kind::Cluster, cluster("c2", &down));
    stage.put(Kind::Cluster, cluster("c2", &json!([])));
    assert!(!stage.due.is_ready(), "c1 ranks before it");
    // Whatever it is decided again for.
    stage.due.mark(&ObjectKey::new("n", "p"));
    assert_eq!(stage.settle(), [""; 0]);
    stage.put(Kind::Cluster, cluster("c1", &down));
    assert_eq!(stage.settle(), ["patch PlacementDecision n/p-decision-1/status"]);
    assert_eq!(selected(&stage), ["c2"]);
}

#[test]
fn what_is_shown_of_a_cluster_is_kept_true_though_the_decision_is_the_same() {
    let mut stage = stage();
    stage.put(Kind::Cluster, available("True"));
    stage.put(Kind::Placement, showing("available", &json!({})));
    stage.settle();
    stage.put(Kind::Cluster, available("False"));
    assert_eq!(stage.settle(), ["patch PlacementDecision n/p-decision-1/status"]);
    let slice = stage.get(Kind::Decision, "n", "p-decision-1").unwrap();
    assert_eq!(slice["status"]["decisions"][0]["available"], false);
}

/// Takes fields out of each entry of a slice.
fn prune(kind: Kind, object: &mut Value, fields: &[&str]) {
    let decisions = object.pointer_mut("/status/decisions").filter(|_| kind == Kind::Decision);
    for entry in decisions.and_then(Value::as_array_mut).into_iter().flatten() {
        for field in fields {
            entry.as_object_mut().unwrap().remove(*field);
        }
    }
}

#[test]
fn details_that_the_server_prunes_are_not_missed_when_the_rest_comes_back() {
    let with = |dialect: Dialect, prune: fn(Kind, &mut Value)| {
        let mut stage = stage();
        stage.controller.dialect = dialect;
        stage.prune = prune;
        stage.put(Kind::Cluster, available("True"));
        stage.put(Kind::Placement, showing("score,available", &json!({"scoreRateLimit": "3s"})));
        stage.settle();
        // What Steady adds has to wait where a score is shown at all.
        let later = stage.after_seconds(3);
        assert_eq!(stage.after_seconds(100), [""; 0], "nothing differs");
        stage.controller.speak(dialect, &stage.world, &mut stage.due);
        assert_eq!(stage.settle(), [""; 0], "nor for who looks again");
        let slice = stage.get(Kind::Decision, "n", "p-decision-1").unwrap();
        (later, slice["status"]["decisions"][0].clone())
    };
    let newer = Dialect { details: Details { score: true, available: false }, ..Dialect::OURS };
    let (later, entry) = with(newer, |kind, object| prune(kind, object, &["available"]));
    assert_eq!(entry, json!({"clusterName": "c1", "reason": "AllFeasible", "score": 200}));
    assert_eq!(later, ["patch PlacementDecision n/p-decision-1/status", "patch Placement n/p/status"]);
    let (later, entry) = with(Dialect::LEAST, |kind, object| prune(kind, object, &["available", "score"]));
    assert_eq!(entry, json!({"clusterName": "c1", "reason": "AllFeasible"}));
    assert_eq!(later, [""; 0], "no score is shown, so none is late");
}

#[test]
fn scores_that_are_out_of_date_are_warned_of_with_the_first_decision() {
    let mut stage = stage();
    for name in ["c1", "c2"] {
        stage.put(Kind::Cluster, cluster(name, &json!([])));
        let over = stage.now.plus_seconds(-1).timestamp().unwrap().to_string();
        stage.put(
            Kind::Score,
            json!({
                "metadata": {"namespace": name, "name": "demo"},
                "status": {"scores": [{"name": "demo", "value": 9}], "validUntil": over},
            }),
        );
    }
    let addon = json!({"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "demo"}});
    let policy = json!({"mode": "Exact", "configurations": [{"scoreCoordinate": addon}]});
    stage.put(Kind::Placement, placement(&json!({"prioritizerPolicy": policy})));
    stage.settle();
    let told: Vec<_> = stage.notes.iter().map(|note| (note.reason, note.is_warning)).collect();
    assert_eq!(told, [("DecisionCreate", false), ("DecisionUpdate", true), ("ScoreUpdate", false)]);
    assert_eq!(
        stage.notes[1].note,
        "Decision p-decision-1 is updated with placement p in namespace n: AddOnPlacementScores c1/demo c2/demo \
         expired in plugin AddOn"
    );
}

#[test]
fn of_very_many_scores_that_are_out_of_date_some_are_named() {
    let expired: Vec<_> =
        (0..30).map(|number| (Arc::from(format!("c{number:02}")), Arc::from("demo"))).collect();
    let text = expiry(&expired).unwrap();
    assert!(text.starts_with(": AddOnPlacementScores c00/demo c01/demo "), "{text}");
    assert!(text.ends_with(" c09/demo and 20 more expired in plugin AddOn"), "{text}");
    assert_eq!(expiry(&[]), None);
}

#[test]
fn a_name_is_that_of_a_slice_where_a_number_ends_it() {
    assert_eq!(named_after("p-decision-1"), Some("p"));
    assert_eq!(named_after("p-decision-1-decision-12"), Some("p-decision-1"));
    assert_eq!(named_after("p-decision-x"), None);
    assert_eq!(named_after("p"), None);
}

/// Nine placements of one cluster each, over nine clusters.
fn crowd() -> Stage<PlacementController> {
    let mut stage = stage();
    for number in 0..9 {
        stage.put(Kind::Cluster, cluster(&format!("c{number}"), &json!([])));
        let metadata = json!({"namespace": "n", "name": format!("p{number}")});
        stage.put(Kind::Placement, json!({"metadata": metadata, "spec": {"numberOfClusters": 1}}));
    }
    stage
}

/// The clusters that the writes of a verdict name.
fn named(verdict: &Verdict) -> Vec<String> {
    let patches = verdict.writes.iter().filter_map(|write| match write {
        Write::Patch { patch, target, .. } if target.kind == Kind::Decision => {
            patch["status"]["decisions"].as_array()
        }
        _ => None,
    });
    patches.flatten().map(|entry| entry["clusterName"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn who_is_decided_while_writes_are_under_way_sees_what_they_take() {
    let Stage { mut controller, world, now, .. } = crowd();
    let decide = |controller: &mut PlacementController, number: usize| {
        named(&controller.decide(&ObjectKey::new("n", &format!("p{number}")), &world, now))
    };
    let taken: BTreeSet<_> = (0..9).flat_map(|number| decide(&mut controller, number)).collect();
    assert_eq!(taken.len(), 9, "each has a cluster of its own, though none is written yet: {taken:?}");
}

#[test]
fn what_was_expected_of_writes_that_failed_counts_no_more() {
    let Stage { mut controller, world, now, mut due, .. } = crowd();
    let (one, other) = (ObjectKey::new("n", "p0"), ObjectKey::new("n", "p1"));
    let taken = named(&controller.decide(&one, &world, now));
    controller.ended(&one, Ended::Done, now, &world, &mut due);
    assert_eq!(controller.model().held(&one), [] as [Arc<str>; 0]);
    assert_eq!(named(&controller.decide(&other, &world, now)), taken, "the place is free again");
}

#[test]
fn a_fleet_that_was_decided_all_at_once_is_not_decided_again() {
    let mut stage = crowd();
    let subjects: Vec<_> = (0..9).map(|number| ObjectKey::new("n", &format!("p{number}"))).collect();
    let verdicts: Vec<_> =
        subjects.iter().map(|subject| stage.controller.decide(subject, &stage.world, stage.now)).collect();
    for (subject, verdict) in subjects.iter().zip(verdicts) {
        verdict.writes.into_iter().for_each(|write| stage.carry_out(write));
        stage.controller.ended(subject, Ended::Done, stage.now, &stage.world, &mut stage.due);
    }
    assert_eq!(stage.settle(), [""; 0]);
}

#[test]
fn expressions_that_cost_much_are_asked_over_several_turns_and_then_decided_by() {
    let mut stage = stage();
    for number in 0..20 {
        stage.put(Kind::Cluster, cluster(&format!("c{number:02}"), &json!([])));
    }
    let costly = format!("!'{}'.contains('{}')", "y".repeat(8_000), "x".repeat(7_500));
    let predicate = json!({"requiredClusterSelector": {"celSelector": {"celExpressions": [costly]}}});
    stage.put(Kind::Placement, placement(&json!({"predicates": [predicate]})));
    let subject = ObjectKey::new("n", "p");
    assert_eq!(stage.due.pop(stage.now), Some(subject.clone()));
    let verdict = stage.controller.decide(&subject, &stage.world, stage.now);
    assert_eq!((verdict.outcome, verdict.writes.len()), ("waiting", 0));
    let cost = |stage: &Stage<PlacementController>| stage.controller.model().expression_cost();
    let (mut turns, mut before) = (1, cost(&stage));
    while stage.controller.go_on(&mut stage.due) {
        assert!(cost(&stage) - before < TURN_COST_MAX + 700_000);
        assert!(!stage.due.is_ready(), "nothing can be said yet");
        (turns, before) = (turns + 1, cost(&stage));
    }
    assert!(turns >= 10, "{turns}");
    assert_eq!(stage.settle().len(), 3);
    assert_eq!(selected(&stage).len(), 20);
}
