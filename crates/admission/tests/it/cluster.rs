//! ManagedClusters: upstream's TestDefault, TestValidateCreate and TestValidateUpdate, apart from taints.

use std::collections::HashSet;

use berth_admission::Question;
use serde_json::{Value, json};

use crate::{Somebody, admit, questions};

const RESOURCE: &str = "managedclusters";
const LABEL: &str = "cluster.open-cluster-management.io/clusterset";

fn cluster(set: &str) -> Value {
    json!({"metadata": {"name": "c1", "labels": {LABEL: set}}, "spec": {"hubAcceptsClient": false}})
}

fn accepted(mut cluster: Value) -> Value {
    cluster["spec"]["hubAcceptsClient"] = json!(true);
    cluster
}

fn refusal(old: Option<&Value>, new: &Value, somebody: &Somebody) -> (u16, String) {
    let denial = admit(RESOURCE, old, new, somebody).unwrap_err();
    (denial.code, denial.message)
}

/// Upstream: managedcluster_mutating_test.go "TestDefault: Empty spec cluster", "TestDefault: Has null clusterset
/// label", "TestDefault: Has other label".
#[test]
fn a_cluster_of_no_set_goes_into_the_default_one() {
    let may = Somebody::who_may(&["join/default"]);
    for labels in [json!(null), json!({}), json!({LABEL: ""}), json!({"other": "x"})] {
        let (object, _) =
            admit(RESOURCE, None, &json!({"metadata": {"name": "c1", "labels": labels}}), &may).unwrap();
        assert_eq!(object["metadata"]["labels"][LABEL], "default");
    }
}

/// Upstream: managedcluster_mutating_test.go "TestDefault: Has clusterset label", "TestDefault: Has default clusterset
/// label".
#[test]
fn a_cluster_of_a_set_stays_in_it() {
    for set in ["blue", "default"] {
        let may = Somebody::who_may(&[&format!("join/{set}")]);
        let (object, _) = admit(RESOURCE, None, &cluster(set), &may).unwrap();
        assert_eq!(object["metadata"]["labels"][LABEL], set);
    }
}

/// Upstream: managedcluster_validating_test.go "TestValidateCreate: validate setting clusterset label",
/// "TestValidateCreate: validate setting clusterset label without permission".
#[test]
fn a_cluster_is_made_only_by_who_may_put_clusters_into_its_set() {
    assert_eq!(
        refusal(None, &cluster("blue"), &Somebody::who_may(&["join/default"])),
        (403, r#"user "ann" cannot add/remove a ManagedCluster to/from ManagedClusterSet "blue""#.to_owned())
    );
}

/// Upstream: managedcluster_validating_test.go "TestValidateUpdate: validate setting clusterset label",
/// "TestValidateUpdate: validate setting clusterset label without permission", "TestValidateUpdate: validate setting
/// clusterset label with 2 set permission", "TestValidateUpdate: validate setting clusterset label with 1 set
/// permission".
#[test]
fn a_cluster_moves_only_with_a_right_on_both_sets() {
    let (old, new) = (cluster("blue"), cluster("green"));
    assert!(admit(RESOURCE, Some(&old), &new, &Somebody::who_may(&["join/blue", "join/green"])).is_ok());
    for rights in [&["join/blue"][..], &["join/green"], &[]] {
        assert_eq!(refusal(Some(&old), &new, &Somebody::who_may(rights)).0, 403);
    }
}

/// Upstream: managedcluster_validating_test.go "TestValidateUpdate: validate remove clusterset label without
/// permission".
#[test]
fn a_cluster_taken_out_of_its_set_goes_into_the_default_one_and_that_takes_both_rights() {
    let (old, new) = (cluster("blue"), cluster(""));
    let (object, _) =
        admit(RESOURCE, Some(&old), &new, &Somebody::who_may(&["join/blue", "join/default"])).unwrap();
    assert_eq!(object["metadata"]["labels"][LABEL], "default");
    assert_eq!(refusal(Some(&old), &new, &Somebody::who_may(&["join/default"])).0, 403);
}

/// Upstream: managedcluster_validating_test.go "TestValidateCreate: Empty spec cluster", "TestValidateCreate: validate
/// creating an accepted ManagedCluster without permission", "TestValidateCreate: validate creating an accepted
/// ManagedCluster with permission", "TestValidateUpdate: validate update an accepted ManagedCluster without
/// permission", "TestValidateUpdate: validate updating an accepted ManagedCluster with permission".
#[test]
fn a_cluster_is_accepted_only_by_who_may() {
    let (old, new) = (cluster("blue"), accepted(cluster("blue")));
    assert_eq!(
        refusal(Some(&old), &new, &Somebody::default()),
        (403, r#"user "ann" cannot update the HubAcceptsClient field"#.to_owned())
    );
    assert!(admit(RESOURCE, Some(&old), &new, &Somebody::who_may(&["accept/c1"])).is_ok());
    let made = refusal(None, &new, &Somebody::who_may(&["join/blue"]));
    assert_eq!(made.0, 403, "also when it is made as an accepted one");
    assert!(admit(RESOURCE, None, &new, &Somebody::who_may(&["join/blue", "accept/c1"])).is_ok());
}

/// Upstream: managedcluster_validating_test.go "TestValidateUpdate: validate update other fields without accept
/// permission".
#[test]
fn an_accepted_cluster_is_edited_and_turned_away_without_that_right() {
    let old = accepted(cluster("blue"));
    let mut edited = old.clone();
    edited["metadata"]["labels"]["env"] = json!("prod");
    assert!(admit(RESOURCE, Some(&old), &edited, &Somebody::default()).is_ok());
    assert!(admit(RESOURCE, Some(&old), &cluster("blue"), &Somebody::default()).is_ok());
}

/// Upstream: managedcluster_validating_test.go "TestValidateCreate: validate cluster namespace, namespace is active",
/// "TestValidateCreate: validate cluster namespace, namespace is terminating", "TestValidateUpdate: validate update
/// ManagedCluster when namespace is terminating", "TestValidateUpdate: validate update ManagedCluster when namespace is
/// active".
#[test]
fn a_cluster_whose_namespace_is_going_away_is_not_accepted() {
    let mut may = Somebody::who_may(&["accept/c1"]);
    may.terminating = HashSet::from(["c1".to_owned()]);
    let (old, new) = (cluster("blue"), accepted(cluster("blue")));
    assert_eq!(refusal(Some(&old), &new, &may).0, 403);
}

/// Upstream: managedcluster_validating_test.go "TestValidateCreate: validate create cluster with invalid config",
/// "TestValidateCreate: validate create cluster with valid config", "TestValidateUpdate: validate update cluster with
/// invalid config", "TestValidateUpdate: validate update cluster with valid config".
#[test]
fn an_address_begins_with_https() {
    for url in ["", "http://a", "https://", "https:///x", "a.example"] {
        let mut new = cluster("blue");
        new["spec"]["managedClusterClientConfigs"] = json!([{"url": "https://a.example"}, {"url": url}]);
        let denial = admit(RESOURCE, None, &new, &Somebody::who_may(&["join/blue"])).unwrap_err();
        assert_eq!(
            (denial.code, denial.fields[0].path.as_str()),
            (400, "spec.managedClusterClientConfigs[1].url")
        );
    }
}

/// Upstream: managedcluster_validating_test.go "TestValidateCreate: validate cluster name".
/// Upstream: defects "17".
#[test]
fn a_name_that_no_namespace_can_have_is_refused_also_without_addresses() {
    let mut new = cluster("blue");
    new["metadata"]["name"] = json!("cluster.one");
    let denial = admit(RESOURCE, None, &new, &Somebody::who_may(&["join/blue"])).unwrap_err();
    assert_eq!((denial.code, denial.fields[0].path.as_str()), (400, "metadata.name"));
}

#[test]
fn everything_that_may_be_asked_is_recorded_before_it_is() {
    let asked = questions(RESOURCE, Some(&cluster("blue")), &accepted(cluster("green")));
    let mut rights: Vec<String> = asked
        .iter()
        .map(|question| match question {
            Question::May(access) => format!("{} {}/{}", access.verb, access.subresource, access.name),
            Question::IsTerminating(namespace) => format!("terminating {namespace}"),
        })
        .collect();
    rights.sort();
    assert_eq!(rights, ["create join/blue", "create join/green", "terminating c1", "update accept/c1"]);
}
