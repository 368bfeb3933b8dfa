//! What keeps everybody where they are: a person, another controller, and what cannot be seen.

use berth_engine::evict::{Cause, Hold};

use super::*;

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
    // As far as being told why it goes, and no further: the next decision would be to delete it.
    let mut told = Vec::new();
    while told.is_empty() {
        told = stage.settle_for(1);
    }
    assert_eq!(told, BOTH[..1]);
    let id = PodId::of(stage.world.pods.get(&key("p")).unwrap());
    assert_eq!(stage.controller.going.get(&id), Some(&super::super::Stage::Marked));
    stage.put(Kind::Freeze, freeze());
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(stage.after_seconds(60), NOTHING);
    stage.remove(Kind::Freeze, &ObjectKey::new("berth-system", "berth-freeze-evictions"));
    assert_eq!(stage.settle(), BOTH[1..], "it is not told twice");
}

/// The same of one that has been let go and of whom nothing was said yet.
#[test]
fn a_stop_is_heard_even_by_who_was_let_go() {
    let mut stage = armed(60);
    stage.now = stage.now.plus_seconds(60);
    let Stage { controller, world, due, now, .. } = &mut stage;
    controller.advance(*now, world, due);
    assert_eq!(controller.going.len(), 1);
    stage.put(Kind::Freeze, freeze());
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!((stage.controller.going.len(), stage.controller.marshal.away()), (0, 0), "its place is free");
}

#[test]
fn nobody_leaves_while_it_cannot_be_seen_whether_there_is_still_a_reason_to() {
    use crate::world::Told;
    for kind in [Kind::Freeze, Kind::Policy, Kind::Node, Kind::Pod] {
        let mut stage = armed(10);
        stage.world.hear(Told::Lost(kind));
        assert_eq!(stage.after_seconds(60), NOTHING, "{kind}");
        let id = PodId::of(stage.world.pods.get(&key("p")).unwrap());
        let hold = stage.controller.marshal.hold(&id, stage.now);
        assert!(matches!(hold, Some(Hold::Frozen(_))), "{kind}: {hold:?}");
        stage.world.hear(Told::Followed(kind));
        assert_eq!(stage.settle(), BOTH, "{kind}");
    }
}

#[test]
fn nobody_leaves_for_a_taint_that_went_while_nodes_were_not_followed() {
    use crate::world::Told;
    let mut stage = armed(10);
    stage.world.hear(Told::Lost(Kind::Node));
    assert_eq!(stage.after_seconds(60), NOTHING);
    // The list after the gap shows it without.
    put_node(&mut stage, json!([]));
    stage.world.hear(Told::Followed(Kind::Node));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(notes(&stage), ["Cancelling deletion of Pod n/p"]);
}

#[test]
fn labels_of_namespaces_that_are_not_followed_hold_only_where_policies_go_by_them() {
    use crate::world::Told;
    let mut stage = armed(10);
    stage.world.hear(Told::Lost(Kind::Namespace));
    assert_eq!(stage.after_seconds(60), BOTH);
    let selector = json!({"matchLabels": {"a": "b"}});
    let spec = json!({"pods": {"namespaceSelector": selector}, "way": "Delete"});
    let mut stage = armed(10);
    super::policies::put_policy(&mut stage, "p", spec);
    stage.put(Kind::Namespace, json!({"metadata": {"name": "n", "labels": {"a": "b"}}}));
    stage.settle();
    stage.world.hear(Told::Lost(Kind::Namespace));
    assert_eq!(super::policies::after(&mut stage, 60), NOTHING);
    stage.world.hear(Told::Followed(Kind::Namespace));
    assert_eq!(super::policies::settle(&mut stage), BOTH);
}

#[test]
fn a_stop_that_cannot_be_read_is_one() {
    let mut stage = armed(10);
    let key = ObjectKey::new("berth-system", "berth-freeze-evictions");
    stage.world.hear(crate::world::Told::Unreadable(Kind::Freeze, key));
    assert_eq!(stage.after_seconds(60), NOTHING);
    stage.put(Kind::Freeze, freeze());
    assert_eq!(stage.settle(), NOTHING);
    stage.remove(Kind::Freeze, &ObjectKey::new("berth-system", "berth-freeze-evictions"));
    assert_eq!(stage.settle(), BOTH);
}

#[test]
fn nobody_leaves_while_another_controller_says_stop() {
    let mut stage = armed(10);
    let stop = Freeze::of(Cause::AllDown, "it is not the nodes");
    stage.controller.heed(Some(&stop));
    assert_eq!(stage.after_seconds(60), NOTHING);
    stage.controller.heed(None);
    assert_eq!(stage.settle(), BOTH);
}

/// What is told of the causes of stops: a person, another controller, what cannot be seen.
fn stopped(stage: &Scene) -> Vec<(&'static str, bool)> {
    let text = stage.controller.metrics.text();
    let line = |cause: Cause| format!("berth_evictions_stopped{{cause=\"{}\"}} 1\n", cause.word());
    Cause::ALL.map(|cause| (cause.word(), text.contains(&line(cause)))).into()
}

#[test]
fn stops_are_told_apart_and_each_is_lifted_by_itself() {
    use crate::world::Told;
    let mut stage = armed(10);
    assert_eq!(stopped(&stage), [("person", false), ("all-down", false), ("unseen", false)]);
    stage.put(Kind::Freeze, freeze());
    stage.controller.heed(Some(&Freeze::of(Cause::AllDown, "it is not the nodes")));
    stage.world.hear(Told::Lost(Kind::Pod));
    assert_eq!(stage.after_seconds(60), NOTHING);
    assert_eq!(stopped(&stage), [("person", true), ("all-down", true), ("unseen", true)]);
    let held = |stage: &Scene, reason: &str| {
        let line = format!("berth_evictions_held{{reason=\"{reason}\"}} 1\n");
        stage.controller.metrics.text().contains(&line)
    };
    assert!(held(&stage, "frozen"), "what a person says is named first");
    stage.remove(Kind::Freeze, &ObjectKey::new("berth-system", "berth-freeze-evictions"));
    assert_eq!(stage.after_seconds(1), NOTHING);
    assert!(held(&stage, "all-down") && !held(&stage, "frozen"));
    assert_eq!(stopped(&stage), [("person", false), ("all-down", true), ("unseen", true)]);
    stage.controller.heed(None);
    assert_eq!(stage.after_seconds(1), NOTHING);
    assert!(held(&stage, "unseen"));
    stage.world.hear(Told::Followed(Kind::Pod));
    assert_eq!(stage.settle(), BOTH);
    assert_eq!(stopped(&stage), [("person", false), ("all-down", false), ("unseen", false)]);
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

#[test]
fn a_policy_says_that_its_pods_are_frozen_by_whom_and_why() {
    use super::policies::{after, governed, settle, status};
    let mut stage = governed(&[("p", json!({"way": "Delete"}))]);
    stage.put(Kind::Freeze, freeze());
    stage.put(Kind::Pod, named("later", "node", tolerates(Some(60))));
    assert_eq!(settle(&mut stage), NOTHING);
    let told = status(&mut stage, "p");
    let holds = json!([
        {"reason": "Frozen", "count": 1, "example": "n/p", "message": "evictions are frozen by ann: storm"},
    ]);
    assert_eq!((&told["holds"], &told["held"], &told["waiting"]), (&holds, &json!(1), &json!(1)));
    let metrics = stage.controller.metrics.text();
    assert!(metrics.contains("berth_policy_held{policy=\"p\",reason=\"Frozen\"} 1"), "{metrics}");
    // Nothing happens but that time passes.
    assert_eq!(after(&mut stage, 60), NOTHING);
    assert_eq!(status(&mut stage, "p")["held"], 2);
    stage.remove(Kind::Freeze, &ObjectKey::new("berth-system", "berth-freeze-evictions"));
    assert_eq!(settle(&mut stage).len(), 4);
    let told = status(&mut stage, "p");
    assert_eq!((&told["holds"], &told["held"]), (&Value::Null, &json!(0)));
}

#[test]
fn a_policy_says_which_of_several_stops_holds_its_pods() {
    use super::policies::{governed, settle, status};
    let mut stage = governed(&[("p", json!({"way": "Delete"}))]);
    stage.controller.heed(Some(&Freeze::of(Cause::AllDown, "it is not the nodes")));
    assert_eq!(settle(&mut stage), NOTHING);
    let hold = status(&mut stage, "p")["holds"][0].clone();
    assert_eq!(
        (&hold["reason"], &hold["message"]),
        (&json!("AllDown"), &json!("evictions are stopped: it is not the nodes"))
    );
    stage.world.hear(crate::world::Told::Lost(Kind::Pod));
    stage.controller.heed(None);
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(status(&mut stage, "p")["holds"][0]["reason"], "Unseen");
}
