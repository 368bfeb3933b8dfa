//! The look right before an act: what has changed by then, or cannot be read, stops it.

use super::*;
use crate::controllers::stage::Objects;

fn deny(objects: &mut Objects) {
    let pod = objects.get_mut(&(Kind::Pod, key("db-0"))).unwrap();
    pod["metadata"]["annotations"] = json!({});
    pod["metadata"]["resourceVersion"] = json!("9999");
}

#[test]
fn a_gate_that_flips_between_the_plan_and_the_act_stops_the_act() {
    for volumes in [plain(&json!({})), with_volumes()] {
        let mut more = volumes.clone();
        more["gates"] = json!([{
            "name": "ok", "cel": "has(pod.metadata.annotations) && 'ok' in pod.metadata.annotations",
        }]);
        let mut scene = scene(&more);
        let mut allowed = pod(0, "n0", true);
        allowed["metadata"]["annotations"] = json!({"ok": "yes"});
        scene.put(Kind::Pod, allowed);
        scene.put(Kind::Node, node("n0", &taint()));
        scene.settle();
        scene.now = scene.now.plus_seconds(61);
        let mut written = Vec::new();
        // Up to where the removal is written down, and not a step further.
        for _ in 0..50 {
            if phase(&scene).iter().any(|phase| phase.contains("Removing")) {
                break;
            }
            written.extend(done(scene.settle_for(1)));
        }
        assert!(phase(&scene)[0].contains("Removing"), "{written:?}");
        scene.before_confirm = Some(deny);
        written.extend(done(scene.settle()));
        let removals = |written: &[String]| {
            written.iter().filter(|line| line.starts_with("evict") || line.starts_with("delete")).count()
        };
        assert!(scene.before_confirm.is_none(), "it was about to act");
        assert_eq!(removals(&written), 0, "{written:?}");
        // The watch tells of it too, and then it is allowed again.
        let mut denied = pod(0, "n0", true);
        denied["metadata"]["annotations"] = json!({});
        scene.put(Kind::Pod, denied.clone());
        assert_eq!(removals(&done(scene.after_seconds(10))), 0);
        denied["metadata"]["annotations"] = json!({"ok": "yes"});
        scene.put(Kind::Pod, denied);
        assert!(removals(&done(scene.after_seconds(10))) > 0);
    }
}

#[test]
fn no_claim_is_deleted_while_a_peer_is_not_ready_or_the_set_is_being_changed() {
    for (peer, set_status) in
        [(false, json!({})), (true, json!({"updateRevision": "b", "updatedReplicas": 1}))]
    {
        let mut scene = scene(&with_volumes());
        scene.put(Kind::Node, node("n0", &taint()));
        scene.settle();
        scene.put(Kind::Pod, pod(2, "n2", peer));
        scene.foreign.insert(ObjectKey::new(NS, "db"), set(&set_status));
        assert_eq!(done(scene.after_seconds(61)), [""; 0]);
        assert_eq!(done(scene.after_seconds(60)), [""; 0]);
        scene.put(Kind::Pod, pod(2, "n2", true));
        scene.foreign.insert(ObjectKey::new(NS, "db"), set(&json!({})));
        assert!(done(scene.after_seconds(20)).contains(&"evict Pod n/db-0".to_owned()));
    }
}

fn break_a_peer(objects: &mut Objects) {
    let pod = objects.get_mut(&(Kind::Pod, key("db-2"))).unwrap();
    pod["status"]["conditions"][0]["status"] = json!("False");
}

#[test]
fn a_peer_that_falls_right_before_the_act_stops_it_although_no_watch_has_told() {
    let mut scene = scene(&with_volumes());
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.now = scene.now.plus_seconds(61);
    let mut written = Vec::new();
    for _ in 0..50 {
        if phase(&scene) == ["db-0 RemovingVolumes"] {
            break;
        }
        written.extend(done(scene.settle_for(1)));
    }
    assert_eq!(phase(&scene), ["db-0 RemovingVolumes"]);
    scene.before_confirm = Some(break_a_peer);
    written.extend(done(scene.settle()));
    assert!(scene.before_confirm.is_none());
    assert!(
        !written.iter().any(|line| line.starts_with("delete") || line.starts_with("evict")),
        "{written:?}"
    );
}

#[test]
fn what_cannot_be_read_is_not_removed() {
    let unreadable = [
        (Kind::Node, "n0"),
        (Kind::Claim, "data-db-0"),
        (Kind::Volume, "pv-0"),
        (Kind::Pod, "db-0"),
        (Kind::Pod, ""),
        (Kind::Replacement, ""),
        (Kind::ReplacementPolicy, "p"),
    ];
    for (kind, name) in unreadable {
        let mut scene = scene(&with_volumes());
        scene.put(Kind::Node, node("n0", &taint()));
        scene.settle();
        scene.unreadable.insert((kind, name.to_owned()));
        let mut written = done(scene.after_seconds(61));
        for _ in 0..5 {
            written.extend(done(scene.after_seconds(10)));
        }
        let is_removal = |line: &String| line.starts_with("delete") || line.starts_with("evict");
        assert!(!written.iter().any(is_removal), "{kind} {name}: {written:?}");
        scene.unreadable.clear();
        for _ in 0..5 {
            written.extend(done(scene.after_seconds(10)));
        }
        assert!(written.contains(&"evict Pod n/db-0".to_owned()), "{kind} {name}: {written:?}");
    }
}
