//! Who is gone before anybody got to it, and who is there still.

use super::*;

const DELETIONS: &str = "taint_eviction_controller_pod_deletions_total";

/// A pod that has been told why it goes, and whose deletion would be next.
fn told() -> Scene {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    let mut written = Vec::new();
    while written.is_empty() {
        written = stage.settle_for(1);
    }
    assert_eq!(written, BOTH[..1]);
    stage
}

fn deletions(stage: &Scene) -> String {
    let text = stage.controller.metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix(DELETIONS));
    line.unwrap_or_else(|| panic!("no {DELETIONS} in\n{text}")).trim().to_owned()
}

/// Somebody else was faster: there is nothing to delete, to tell or to count.
///
/// Upstream: devicetainteviction/device_taint_eviction_test.go "TestParallelPodDeletion".
#[test]
fn who_is_gone_before_its_deletion_is_neither_deleted_nor_told_of_nor_counted() {
    let mut stage = told();
    stage.remove(Kind::Pod, &key("p"));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(stage.after_seconds(3600), NOTHING);
    assert_eq!(notes(&stage), NOTHING);
    assert_eq!(deletions(&stage), "0");
    assert_eq!((stage.controller.marshal.away(), stage.controller.going.len()), (0, 0));
}

/// The same of one that somebody else has sent on its way.
#[test]
fn who_is_on_its_way_already_is_left_to_it() {
    let mut stage = told();
    let mut leaving = stage.get(Kind::Pod, "n", "p").unwrap().clone();
    leaving["metadata"]["deletionTimestamp"] = json!(stage.now.to_string());
    stage.put(Kind::Pod, leaving);
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(stage.after_seconds(3600), NOTHING);
    assert_eq!((notes(&stage), deletions(&stage)), (vec![], "0".to_owned()));
}

/// Upstream: devicetainteviction/device_taint_eviction_test.go "TestRetry".
#[test]
fn one_failure_makes_for_one_more_try_and_for_one_deletion_told_and_counted() {
    let mut stage = told();
    stage.refused = Some("delete".to_owned());
    assert_eq!(stage.settle(), ["refused: delete Pod n/p"]);
    assert_eq!((notes(&stage), deletions(&stage)), (vec![], "0".to_owned()));
    stage.refused = None;
    assert_eq!(stage.after_seconds(60), BOTH[1..]);
    assert_eq!(stage.after_seconds(3600), NOTHING);
    assert_eq!((notes(&stage).len(), deletions(&stage)), (1, "1".to_owned()));
}
