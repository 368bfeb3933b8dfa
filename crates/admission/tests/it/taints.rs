//! Taints: upstream's cases of TestDefault, and the ones that break GitOps there.

use proptest::prelude::*;
use serde_json::{Value, json};

use berth_admission::{Attempt, TimeAdded, mutate};

use crate::{NOW, Somebody, admit, attempt};

const RESOURCE: &str = "managedclusters";
const EARLIER: &str = "2026-11-16T11:00:00Z";

fn cluster(taints: &Value) -> Value {
    json!({
        "metadata": {"name": "c1", "labels": {"cluster.open-cluster-management.io/clusterset": "blue"}},
        "spec": {"taints": taints},
    })
}

fn taint(key: &str, effect: &str, time: Option<&str>) -> Value {
    let mut taint = json!({"key": key, "effect": effect});
    if let Some(time) = time {
        taint["timeAdded"] = json!(time);
    }
    taint
}

fn times(old: Option<&Value>, new: &Value, rights: &[&str]) -> Result<Vec<String>, String> {
    let (object, _) =
        admit(RESOURCE, old, &cluster(new), &Somebody::who_may(rights)).map_err(|denial| denial.message)?;
    let taints = object["spec"]["taints"].as_array().unwrap();
    Ok(taints.iter().map(|taint| taint["timeAdded"].as_str().unwrap().to_owned()).collect())
}

/// Upstream: managedcluster_mutating_test.go "TestDefault: New taint", "TestDefault: New taint with timeAdded
/// specified".
#[test]
fn the_taints_of_a_new_cluster_begin_now() {
    let new = json!([taint("a", "NoSelect", None), taint("b", "NoSelect", Some(EARLIER))]);
    assert_eq!(times(None, &new, &["join/blue"]).unwrap(), [NOW, NOW]);
}

/// Upstream: managedcluster_mutating_test.go "TestDefault: update taint", "TestDefault: delete taint".
#[test]
fn a_new_taint_begins_now_and_the_others_keep_their_time() {
    let old = cluster(&json!([taint("a", "NoSelect", Some(EARLIER))]));
    let new = json!([taint("b", "NoSelect", None), taint("a", "NoSelect", Some(EARLIER))]);
    assert_eq!(times(Some(&old), &new, &[]).unwrap(), [NOW, EARLIER]);
    let other_value = json!([{"key": "a", "value": "other", "effect": "NoSelect", "timeAdded": null}]);
    assert_eq!(times(Some(&old), &other_value, &[]).unwrap(), [NOW], "another value is another taint");
    assert!(times(Some(&old), &json!([]), &[]).unwrap().is_empty());
}

/// Upstream: defects "10".
#[test]
fn a_taint_applied_again_without_its_time_keeps_it() {
    let old = cluster(&json!([taint("a", "NoSelect", Some(EARLIER))]));
    assert_eq!(times(Some(&old), &json!([taint("a", "NoSelect", None)]), &[]).unwrap(), [EARLIER]);
}

#[test]
fn a_taint_with_another_effect_is_another_taint() {
    let old = cluster(&json!([taint("a", "NoSelect", Some(EARLIER))]));
    assert_eq!(times(Some(&old), &json!([taint("a", "NoSelectIfNew", None)]), &[]).unwrap(), [NOW]);
}

/// Upstream: defects "9".
#[test]
fn two_taints_of_one_key_do_not_get_into_each_others_way() {
    let both = json!([taint("a", "NoSelect", Some(EARLIER)), taint("a", "NoSelectIfNew", Some(NOW))]);
    assert_eq!(times(Some(&cluster(&both)), &both, &[]).unwrap(), [EARLIER, NOW]);
}

/// Upstream: managedcluster_mutating_test.go "TestDefault: taint update request denied".
#[test]
fn a_time_is_not_for_everybody_to_set() {
    let old = cluster(&json!([taint("a", "NoSelect", Some(EARLIER))]));
    let new = json!([taint("a", "NoSelect", Some(NOW)), taint("b", "NoSelect", Some(EARLIER))]);
    assert_eq!(
        times(Some(&old), &new, &[]).unwrap_err(),
        r#"It is not allowed to set TimeAdded of Taint "a,b"."#
    );
    assert_eq!(times(Some(&old), &new, &["systemtaints/c1"]).unwrap(), [NOW, EARLIER]);
}

#[test]
fn a_hub_may_let_everybody_set_times_as_one_without_these_rules_does() {
    let old = cluster(&json!([taint("a", "NoSelect", Some(EARLIER))]));
    let new = json!([
        taint("a", "NoSelect", Some(NOW)),
        taint("b", "NoSelect", Some(EARLIER)),
        taint("c", "NoSelect", None)
    ]);
    let stamped = |old: Option<&Value>| {
        let attempt = Attempt { time_added: TimeAdded::Client, ..attempt(RESOURCE, "c1", old) };
        let mut object = cluster(&new);
        mutate(&attempt, &mut object, &Somebody::default()).unwrap();
        let taints = object["spec"]["taints"].as_array().unwrap().clone();
        taints.iter().map(|taint| taint["timeAdded"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(stamped(Some(&old)), [NOW, EARLIER, NOW]);
    assert_eq!(stamped(None), [NOW, EARLIER, NOW], "also where a cluster is new");
}

#[test]
fn the_same_moment_written_otherwise_is_the_same() {
    let old = cluster(&json!([taint("a", "NoSelect", Some(EARLIER))]));
    let new = json!([taint("a", "NoSelect", Some("2026-11-16T13:00:00+02:00"))]);
    assert!(times(Some(&old), &new, &[]).is_ok());
}

#[test]
fn the_systems_taints_are_left_to_the_system() {
    let key = "cluster.open-cluster-management.io/unreachable";
    let well = json!({"conditions": [{
        "type": "ManagedClusterConditionAvailable", "status": "True", "reason": "Well", "message": "",
        "lastTransitionTime": EARLIER,
    }]});
    let mut with = cluster(&json!([taint(key, "NoSelect", Some(EARLIER))]));
    with["status"] = well;
    let without = cluster(&json!([]));
    for (old, new) in [(&with, &without), (&without, &cluster(&json!([taint(key, "NoSelect", None)])))] {
        let denial = admit(RESOURCE, Some(old), new, &Somebody::default()).unwrap_err();
        assert_eq!(denial.code, 403);
        assert!(denial.message.contains(key), "{}", denial.message);
        assert!(admit(RESOURCE, Some(old), new, &Somebody::who_may(&["systemtaints/c1"])).is_ok());
    }
    let mut labelled = with.clone();
    labelled["metadata"]["labels"]["env"] = json!("prod");
    assert!(admit(RESOURCE, Some(&with), &labelled, &Somebody::default()).is_ok(), "everything else goes on");
}

#[test]
fn a_manifest_with_taints_of_its_own_does_not_take_away_the_one_that_health_asks_for() {
    let key = "cluster.open-cluster-management.io/unreachable";
    let mut old = cluster(&json!([taint(key, "NoSelect", Some(EARLIER))]));
    old["status"] = json!({"conditions": [{
        "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "Silent", "message": "",
        "lastTransitionTime": EARLIER,
    }]});
    for new in [json!([taint("mine", "NoSelect", None)]), json!([]), json!(null)] {
        let (object, _) = admit(RESOURCE, Some(&old), &cluster(&new), &Somebody::default()).unwrap();
        let taints = object["spec"]["taints"].as_array().unwrap();
        assert_eq!(taints.last(), Some(&taint(key, "NoSelect", Some(EARLIER))));
    }
    old["status"]["conditions"][0]["status"] = json!("True");
    let (object, _) =
        admit(RESOURCE, Some(&old), &cluster(&json!([])), &Somebody::who_may(&["systemtaints/c1"])).unwrap();
    assert_eq!(object["spec"]["taints"], json!([]), "the controller takes it away when the cluster is well");
}

fn any_taints() -> impl Strategy<Value = Vec<Value>> {
    let one = (
        "[ab]",
        prop_oneof![Just("NoSelect"), Just("NoSelectIfNew")],
        prop_oneof![Just(None), Just(Some(EARLIER)), Just(Some(NOW))],
    );
    prop::collection::vec(one, 0..4)
        .prop_map(|taints| taints.iter().map(|(key, effect, time)| taint(key, effect, *time)).collect())
}

proptest! {
    #[test]
    fn what_was_admitted_is_admitted_again_as_it_is_and_without_times(taints in any_taints()) {
        let somebody = Somebody::who_may(&["join/blue"]);
        let (stored, _) = admit(RESOURCE, None, &cluster(&json!(taints)), &somebody).unwrap();
        let (again, _) = admit(RESOURCE, Some(&stored), &stored, &somebody).unwrap();
        prop_assert_eq!(&again, &stored);
        let mut bare = stored.clone();
        for taint in bare["spec"]["taints"].as_array_mut().unwrap() {
            taint.as_object_mut().unwrap().remove("timeAdded");
        }
        let (again, _) = admit(RESOURCE, Some(&stored), &bare, &somebody).unwrap();
        prop_assert_eq!(&again, &stored);
    }
}
