//! When a pod has to leave: from when on a taint counts, and what moves the moment.

use super::*;

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
fn a_time_far_ahead_is_replaced_so_that_a_restart_keeps_the_deadline() {
    let mut stage = scene();
    put_node(&mut stage, json!([{"key": KEY, "effect": "NoExecute", "timeAdded": "2090-01-01T00:00:00Z"}]));
    stage.put(Kind::Pod, pod(tolerates(Some(60))));
    assert_eq!(stage.settle(), ["patch Node /node"]);
    let mut after = restarted(&stage, 30);
    assert_eq!(after.settle(), NOTHING);
    assert_eq!(after.after_seconds(29), NOTHING);
    assert_eq!(after.after_seconds(1), BOTH);
}

#[test]
fn a_node_made_anew_under_its_name_has_taints_of_its_own() {
    let mut stage = scene();
    put_node(&mut stage, json!([timeless(KEY)]));
    assert_eq!(stage.settle(), NOTHING);
    stage.now = stage.now.plus_seconds(50);
    // Both are heard before anybody looks.
    stage.remove(Kind::Node, &ObjectKey::new("", "node"));
    put_node(&mut stage, json!([timeless(KEY)]));
    stage.put(Kind::Pod, pod(tolerates(Some(60))));
    assert_eq!(stage.settle(), ["patch Node /node"]);
    let added = &stage.get(Kind::Node, "", "node").unwrap()["spec"]["taints"][0]["timeAdded"];
    assert_eq!(added, &json!(stage.now.to_string()));
    assert_eq!(stage.after_seconds(59), NOTHING);
    assert_eq!(stage.after_seconds(1), BOTH);
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

/// A pod that has been due for two hours, by the word of this policy.
fn overdue(spec: Value) -> Scene {
    let mut stage = scene();
    super::policies::put_policy(&mut stage, "p", spec);
    let added = stage.now.plus_seconds(-7_200).to_string();
    put_node(&mut stage, json!([{"key": KEY, "effect": "NoExecute", "timeAdded": added}]));
    stage.put(Kind::Pod, pod(json!([])));
    stage
}

#[test]
fn a_clock_that_is_set_back_an_hour_does_not_keep_a_budget_from_being_asked_for_an_hour() {
    let mut stage = overdue(json!({"way": "Evict"}));
    stage.budget = Some("no".to_owned());
    assert_eq!(super::policies::settle(&mut stage), ["blocked: evict Pod n/p"]);
    stage.budget = None;
    assert_eq!(super::policies::after(&mut stage, -3_600), NOTHING);
    assert_eq!(super::policies::after(&mut stage, 1), super::policies::EVICT);
}

#[test]
fn a_clock_that_is_set_back_an_hour_does_not_hold_up_what_was_refused_for_an_hour() {
    let mut stage = overdue(json!({"way": "Delete"}));
    stage.refused = Some("delete".to_owned());
    assert_eq!(super::policies::settle(&mut stage), ["patch Pod n/p/status", "refused: delete Pod n/p"]);
    stage.refused = None;
    super::policies::after(&mut stage, -3_600);
    assert_eq!(super::policies::after(&mut stage, 30), ["delete Pod n/p"]);
}

#[test]
fn a_clock_that_is_set_back_an_hour_does_not_make_an_eviction_that_had_no_effect_stand_for_an_hour() {
    use crate::controllers::taint_eviction::step::Stage::Sent;
    let mut stage = overdue(json!({"way": "Delete"}));
    let id = PodId::of(stage.world.pods.get(&key("p")).unwrap());
    stage.controller.going.insert(id, Sent(stage.now));
    assert_eq!(super::policies::settle(&mut stage), NOTHING);
    assert_eq!(super::policies::after(&mut stage, -3_600), NOTHING);
    assert_eq!(super::policies::after(&mut stage, 10), BOTH);
}
