//! Whoever takes over ends in the same place, wherever the one before was stopped.

use super::*;

#[test]
fn a_restart_at_every_state_ends_in_the_same_place() {
    let kept: &[&str] = &["Gating", "RemovingPod", "AwaitingSuccessor", "Verifying"];
    let removed: &[&str] = &["Gating", "RemovingVolumes", "RemovingPod", "AwaitingSuccessor", "Verifying"];
    for (volumes, states) in [(plain(&json!({})), kept), (with_volumes(), removed)] {
        for state in states {
            let mut scene = scene(&volumes);
            scene.put(Kind::Node, node("n0", &taint()));
            scene.settle();
            scene.now = scene.now.plus_seconds(61);
            let mut all = Vec::new();
            let mut is_interrupted = false;
            for turn in 0..400 {
                all.extend(done(scene.settle_for(1)));
                let now = phase(&scene);
                if !is_interrupted && now == [format!("db-0 {state}")] {
                    restart(&mut scene);
                    is_interrupted = true;
                }
                let is_ready = scene
                    .get(Kind::Pod, NS, "db-0")
                    .map(|pod| pod["status"]["conditions"][0]["status"] == "True");
                let may_be_ready = is_interrupted || *state != "AwaitingSuccessor";
                match is_ready {
                    None => come_back(&mut scene, 0, "n3", false),
                    Some(false) if may_be_ready => come_back(&mut scene, 0, "n3", true),
                    Some(_) => {}
                }
                if turn % 10 == 9 {
                    scene.now = scene.now.plus_seconds(5);
                }
                if now == ["db-0 Done"] {
                    break;
                }
            }
            assert!(is_interrupted, "{state} was never seen: {all:?}");
            assert_eq!(phase(&scene), ["db-0 Done"], "{state}: {all:?}");
            let count = |begin: &str| all.iter().filter(|line| line.starts_with(begin)).count();
            assert_eq!((count("create Replacement"), count("evict Pod n/db-0")), (1, 1), "{state}: {all:?}");
            let claims = usize::from(volumes == with_volumes());
            assert_eq!(count("delete PersistentVolumeClaim n/data-db-0"), claims, "{state}: {all:?}");
        }
    }
}

/// Everything up to each write, and then another process: what is done in all is the same, each thing once.
#[test]
fn a_process_that_is_killed_again_and_again_ends_in_the_same_place() {
    for volumes in [plain(&json!({})), with_volumes()] {
        let mut scene = scene(&volumes);
        scene.put(Kind::Node, node("n0", &taint()));
        scene.settle();
        scene.now = scene.now.plus_seconds(61);
        let mut all = Vec::new();
        for turn in 0..200 {
            // A process that is killed after a few decisions.
            all.extend(done(scene.settle_for(1 + turn % 6)));
            if scene.get(Kind::Pod, NS, "db-0").is_none() {
                come_back(&mut scene, 0, "n3", true);
            }
            restart(&mut scene);
            if turn % 10 == 9 {
                scene.now = scene.now.plus_seconds(5);
            }
            if phase(&scene) == ["db-0 Done"] {
                break;
            }
        }
        assert_eq!(phase(&scene), ["db-0 Done"], "{all:?}");
        let count = |begin: &str| all.iter().filter(|line| line.starts_with(begin)).count();
        assert_eq!((count("create Replacement"), count("evict Pod n/db-0")), (1, 1), "{all:?}");
        assert_eq!(count("delete PersistentVolumeClaim n/data-db-0"), usize::from(volumes == with_volumes()));
    }
}
