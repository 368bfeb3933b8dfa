//! ManagedClusters: their set, whether they are accepted, what they are called and where they are reached.

use berth_tests::caller::{Refusal, core};
use serde_json::{Value, json};

use crate::{
    ground::{Place, cluster, cluster_path, grounds},
    person::{accept, join, person},
};

/// Where the label of the set is.
const SET: &str = "/metadata/labels/cluster.open-cluster-management.io~1clusterset";

fn labelled(name: &str, labels: &Value) -> Value {
    let mut object = cluster(name, &json!({}));
    object["metadata"]["labels"] = labels.clone();
    object
}

fn in_set(name: &str, set: &str) -> Value {
    labelled(name, &json!({"cluster.open-cluster-management.io/clusterset": set}))
}

fn accepted(name: &str) -> Value {
    cluster(name, &json!({"hubAcceptsClient": true}))
}

fn reached_at(name: &str, url: &str) -> Value {
    cluster(name, &json!({"managedClusterClientConfigs": [{"url": url}]}))
}

/// That it was refused so, in these words.
#[track_caller]
fn says(refusal: &Refusal, reason: &str, words: &str) {
    assert_eq!(refusal.reason(), reason, "{}", refusal.0);
    assert!(refusal.message().contains(words), "{}", refusal.message());
}

/// A namespace of this name that is going away and never gone.
async fn terminating(place: &Place<'_>, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    place.admin.post("/api/v1/namespaces", &namespace).await.ok();
    let held = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "finalizers": ["berth.dev/test"]},
    });
    place.admin.post(&core(name, "configmaps"), &held).await.ok();
    place.admin.delete(&format!("/api/v1/namespaces/{name}")).await.ok();
}

grounds! {
    /// Upstream: registration_webhook_test.go "Should have the default LeaseDurationSeconds".
    async fn a_cluster_has_a_lease_of_a_minute(place: &Place<'_>) {
        let made = place.admin.post(&cluster_path(""), &cluster(&place.name("c"), &json!({}))).await.ok();
        assert_eq!(made["spec"]["leaseDurationSeconds"], 60);
    }

    /// Upstream: registration_webhook_test.go "Should not update the LeaseDurationSeconds to zero".
    async fn a_lease_that_is_left_out_is_a_minute_again(place: &Place<'_>) {
        let name = place.name("c");
        let mut made = place.admin.post(&cluster_path(""), &cluster(&name, &json!({"leaseDurationSeconds": 30}))).await.ok();
        assert_eq!(made["spec"]["leaseDurationSeconds"], 30);
        made["spec"].as_object_mut().unwrap().remove("leaseDurationSeconds");
        let stored = place.admin.put(&cluster_path(&name), &made).await.ok();
        assert_eq!(stored["spec"]["leaseDurationSeconds"], 60);
    }

    /// Upstream: registration_webhook_test.go "Should have the default Clusterset Label (no labels in cluster)",
    /// "Should have the default Clusterset Label (has labels in cluster)", "Should have the default Clusterset Label
    /// when clusterset label is a null string".
    async fn a_cluster_of_no_set_is_in_the_default_one(place: &Place<'_>) {
        let cases = [
            labelled(&place.name("none"), &json!({})),
            labelled(&place.name("other"), &json!({"a": "b"})),
            in_set(&place.name("empty"), ""),
        ];
        for case in cases {
            let made = place.admin.post(&cluster_path(""), &case).await.ok();
            assert_eq!(made.pointer(SET), Some(&json!("default")), "{made}");
        }
    }

    /// Upstream: registration_webhook_test.go "Should not delete the default ClusterSet Label".
    async fn the_default_set_cannot_be_left_for_none(place: &Place<'_>) {
        let name = place.name("c");
        let mut made = place.admin.post(&cluster_path(""), &cluster(&name, &json!({}))).await.ok();
        made["metadata"].as_object_mut().unwrap().remove("labels");
        let stored = place.admin.put(&cluster_path(&name), &made).await.ok();
        assert_eq!(stored.pointer(SET), Some(&json!("default")));
    }

    /// Upstream: registration_webhook_test.go "Should not update the other ClusterSet Label".
    async fn another_set_is_left_alone(place: &Place<'_>) {
        let name = place.name("c");
        let mut made = place.admin.post(&cluster_path(""), &in_set(&name, "blue")).await.ok();
        made["metadata"]["annotations"] = json!({"a": "b"});
        let stored = place.admin.put(&cluster_path(&name), &made).await.ok();
        assert_eq!(stored.pointer(SET), Some(&json!("blue")));
    }

    /// Upstream: registration_webhook_test.go "Should respond bad request when creating a managed cluster with invalid
    /// external server URLs".
    async fn a_new_cluster_is_reached_by_https(place: &Place<'_>) {
        let refusal = place.admin.post(&cluster_path(""), &reached_at(&place.name("c"), "http://127.0.0.1:8001")).await.refused(400);
        says(&refusal, "BadRequest", "spec.managedClusterClientConfigs[0].url");
        place.admin.post(&cluster_path(""), &reached_at(&place.name("c"), "https://127.0.0.1:8001")).await.ok();
    }

    /// Upstream: registration_webhook_test.go "Should respond bad request when updating a managed cluster with invalid
    /// external server URLs".
    async fn a_cluster_stays_reached_by_https(place: &Place<'_>) {
        let name = place.name("c");
        let mut made = place.admin.post(&cluster_path(""), &reached_at(&name, "https://127.0.0.1:8001")).await.ok();
        made["spec"]["managedClusterClientConfigs"][0]["url"] = json!("http://127.0.0.1:8001");
        let refusal = place.admin.put(&cluster_path(&name), &made).await.refused(400);
        says(&refusal, "BadRequest", "must begin with https://");
    }

    /// Upstream: registration_webhook_test.go "Should respond bad request when cluster name is invalid".
    async fn a_cluster_is_called_as_a_namespace_could_be(place: &Place<'_>) {
        let refusal = place.admin.post(&cluster_path(""), &cluster(&format!("{}.dotted", place.namespace), &json!({}))).await.refused(400);
        says(&refusal, "BadRequest", "metadata.name");
    }

    /// Upstream: registration_webhook_test.go "Should forbid the request when creating an accepted managed cluster by
    /// unauthorized user".
    async fn not_everybody_may_create_an_accepted_cluster(place: &Place<'_>) {
        let (user, caller) = person(place, "bob", &[join("default")]).await;
        let refusal = caller.post(&cluster_path(""), &accepted(&place.name("c"))).await.refused(403);
        says(&refusal, "Forbidden", &format!("user {user:?} cannot update the HubAcceptsClient field"));
    }

    /// Upstream: registration_webhook_test.go "Should accept the request when creating an accepted managed cluster by
    /// authorized user".
    async fn who_may_accept_may_create_an_accepted_cluster(place: &Place<'_>) {
        let name = place.name("c");
        let (_, caller) = person(place, "ann", &[join("default"), accept(&name)]).await;
        caller.post(&cluster_path(""), &accepted(&name)).await.ok();
    }

    /// Upstream: registration_webhook_test.go "Should forbid the request when updating an unaccepted managed cluster to
    /// accepted by unauthorized user", "Should accept the request when update managed cluster other field by
    /// unauthorized user".
    async fn not_everybody_may_accept_a_cluster_that_is_there(place: &Place<'_>) {
        let name = place.name("c");
        let (_, caller) = person(place, "bob", &[join("default")]).await;
        let mut made = caller.post(&cluster_path(""), &cluster(&name, &json!({}))).await.ok();
        made["spec"]["hubAcceptsClient"] = json!(true);
        let refusal = caller.put(&cluster_path(&name), &made).await.refused(403);
        says(&refusal, "Forbidden", "cannot update the HubAcceptsClient field");
        made["spec"]["hubAcceptsClient"] = json!(false);
        made["spec"]["leaseDurationSeconds"] = json!(45);
        caller.put(&cluster_path(&name), &made).await.ok();
        // One that was accepted by somebody else can be edited by anybody, and turned away.
        let mut let_in = place.admin.merge(&cluster_path(&name), &json!({"spec": {"hubAcceptsClient": true}})).await.ok();
        let_in["spec"]["leaseDurationSeconds"] = json!(50);
        let mut edited = caller.put(&cluster_path(&name), &let_in).await.ok();
        edited["spec"]["hubAcceptsClient"] = json!(false);
        caller.put(&cluster_path(&name), &edited).await.ok();
    }

    /// Upstream: registration_webhook_test.go "Should forbid the request when creating a managed cluster with a
    /// termaniting namespace", "Should forbid the request when updating a managed cluster with a terminating
    /// namespace".
    async fn a_cluster_is_not_accepted_while_its_namespace_goes_away(place: &Place<'_>) {
        let (new, old) = (place.name("new"), place.name("old"));
        let mut made = place.admin.post(&cluster_path(""), &cluster(&old, &json!({}))).await.ok();
        terminating(place, &new).await;
        terminating(place, &old).await;
        let refusal = place.admin.post(&cluster_path(""), &accepted(&new)).await.refused(403);
        says(&refusal, "Forbidden", "is being deleted");
        made["spec"]["hubAcceptsClient"] = json!(true);
        let refusal = place.admin.put(&cluster_path(&old), &made).await.refused(403);
        says(&refusal, "Forbidden", "is being deleted");
    }

    /// Upstream: registration_webhook_test.go "Should accept the request when creating a managed cluster with
    /// clusterset specified by authorized user", "Should forbid the request when creating a managed cluster with
    /// clusterset specified by unauthorized user".
    async fn who_creates_a_cluster_in_a_set_may_join_it(place: &Place<'_>) {
        let set = place.name("blue");
        let (user, bob) = person(place, "bob", &[join("default")]).await;
        let refusal = bob.post(&cluster_path(""), &in_set(&place.name("b"), &set)).await.refused(403);
        says(&refusal, "Forbidden", &format!("user {user:?} cannot add/remove a ManagedCluster to/from ManagedClusterSet {set:?}"));
        let (_, ann) = person(place, "ann", &[join(&set)]).await;
        ann.post(&cluster_path(""), &in_set(&place.name("a"), &set)).await.ok();
        // Without a set it would be in the default one, which takes a right, too.
        ann.post(&cluster_path(""), &cluster(&place.name("d"), &json!({}))).await.refused(403);
    }

    /// Upstream: registration_webhook_test.go "Should accept the request when updating the clusterset of a managed
    /// cluster by authorized user", "Should forbid the request when updating the clusterset of a managed cluster by
    /// unauthorized user".
    async fn who_moves_a_cluster_may_join_both_sets(place: &Place<'_>) {
        let (from, to) = (place.name("from"), place.name("to"));
        let name = place.name("c");
        let mut made = place.admin.post(&cluster_path(""), &in_set(&name, &from)).await.ok();
        *made.pointer_mut(SET).unwrap() = json!(to);
        for half in [&from, &to] {
            let (_, caller) = person(place, &format!("half-{}", half.len()), &[join(half)]).await;
            let refusal = caller.put(&cluster_path(&name), &made).await.refused(403);
            says(&refusal, "Forbidden", "cannot add/remove a ManagedCluster");
        }
        let (_, ann) = person(place, "ann", &[join(&from), join(&to)]).await;
        ann.put(&cluster_path(&name), &made).await.ok();
    }
}
