//! ManagedClusterSetBindings. Each of these names stands twice in Open Cluster Management's file, for two versions of which
//! one is left.

use serde_json::{Value, json};

use crate::{
    ground::{Place, grounds},
    person::{bind, person},
};

fn binding(name: &str, set: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": name}, "spec": {"clusterSet": set},
    })
}

fn path(place: &Place<'_>, name: &str) -> String {
    place.path(
        "v1beta2",
        &format!("managedclustersetbindings{}{name}", if name.is_empty() { "" } else { "/" }),
    )
}

grounds! {
    /// Upstream: registration_webhook_test.go "should deny the request when creating a ManagedClusterSetBinding with
    /// unmatched cluster set name".
    async fn a_binding_is_called_like_its_set(place: &Place<'_>) {
        let refusal = place.admin.post(&path(place, ""), &binding("one", "another")).await.refused(400);
        assert!(refusal.message().contains("must have the same name as the target ManagedClusterSet"), "{}", refusal.message());
    }

    /// Upstream: registration_webhook_test.go "should accept the request when creating a ManagedClusterSetBinding by
    /// authorized user", "should forbid the request when creating a ManagedClusterSetBinding by unauthorized user".
    async fn who_binds_a_set_may(place: &Place<'_>) {
        let set = place.name("set");
        let (user, bob) = person(place, "bob", &[]).await;
        let refusal = bob.post(&path(place, ""), &binding(&set, &set)).await.refused(403);
        let words = format!("user {user:?} is not allowed to bind cluster set {set:?}");
        assert!(refusal.message().contains(&words), "{}", refusal.message());
        let (_, ann) = person(place, "ann", &[bind(&set)]).await;
        ann.post(&path(place, ""), &binding(&set, &set)).await.ok();
    }

    /// Upstream: registration_webhook_test.go "should deny the request when updating a ManagedClusterSetBinding with a
    /// new cluster set".
    async fn a_binding_stays_with_its_set(place: &Place<'_>) {
        let set = place.name("set");
        place.admin.post(&path(place, ""), &binding(&set, &set)).await.ok();
        place.admin.merge(&path(place, &set), &json!({"spec": {"clusterSet": "another"}})).await.refused(400);
    }

    /// Upstream: registration_webhook_test.go "should accept the request when updating the label of the
    /// ManagedClusterSetBinding by user without binding permission".
    async fn a_binding_may_be_labelled_by_who_may_not_bind(place: &Place<'_>) {
        let set = place.name("set");
        place.admin.post(&path(place, ""), &binding(&set, &set)).await.ok();
        let (_, bob) = person(place, "bob", &[]).await;
        bob.merge(&path(place, &set), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    }
}
