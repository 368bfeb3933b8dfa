//! Taints: since when they count, also where a manifest that names no time is applied again.

use serde_json::{Value, json};

use crate::ground::{Place, cluster, cluster_path, grounds};

fn manifest(name: &str, taints: &Value) -> Value {
    cluster(name, &json!({ "taints": taints }))
}

grounds! {
    /// Upstream: registration_webhook_test.go "Should have the timeAdded for taints".
    async fn a_taint_counts_from_when_it_is_stored(place: &Place<'_>) {
        let taints = json!([{"key": "a", "effect": "NoSelect", "timeAdded": "2001-01-01T00:00:00Z"}]);
        let made = place.admin.post(&cluster_path(""), &manifest(&place.name("c"), &taints)).await.ok();
        let time = made["spec"]["taints"][0]["timeAdded"].as_str().unwrap();
        // The administrator may set times: who may touch the system's taints may.
        assert_eq!(time, "2001-01-01T00:00:00Z");
        let (_, bob) = crate::person::person(place, "bob", &[crate::person::join("default")]).await;
        let made = bob.post(&cluster_path(""), &manifest(&place.name("d"), &taints)).await.ok();
        assert!(made["spec"]["taints"][0]["timeAdded"].as_str().unwrap() > "2020");
    }

    /// The same manifest, applied again and again by server-side apply, changes nothing; a time that it names is refused.
    async fn a_manifest_applied_again_keeps_the_time(place: &Place<'_>) {
        let name = place.name("c");
        let (_, bob) = crate::person::person(place, "bob", &[crate::person::join("default")]).await;
        let target = format!("{}?fieldManager=gitops&force=true", cluster_path(&name));
        let taints = json!([{"key": "a", "effect": "NoSelect"}]);
        let first = bob.apply_to(&target, &manifest(&name, &taints)).await.ok();
        let time = first["spec"]["taints"][0]["timeAdded"].clone();
        assert!(time.is_string(), "{first}");
        let again = bob.apply_to(&target, &manifest(&name, &taints)).await.ok();
        assert_eq!(again["spec"]["taints"][0]["timeAdded"], time);
        let more = json!([{"key": "a", "effect": "NoSelect"}, {"key": "b", "effect": "NoSelect"}]);
        let grown = bob.apply_to(&target, &manifest(&name, &more)).await.ok();
        assert_eq!(grown["spec"]["taints"][0]["timeAdded"], time);
        assert!(grown["spec"]["taints"][1]["timeAdded"].is_string());
        let dated = json!([{"key": "a", "effect": "NoSelect", "timeAdded": "2001-01-01T00:00:00Z"}]);
        let refusal = bob.apply_to(&target, &manifest(&name, &dated)).await.refused(400);
        assert!(refusal.message().contains(r#"It is not allowed to set TimeAdded of Taint "a"."#), "{}", refusal.message());
    }

    /// The taints that follow a cluster's health are not for everybody to write.
    async fn the_systems_taints_are_guarded(place: &Place<'_>) {
        let name = place.name("c");
        let (_, bob) = crate::person::person(place, "bob", &[crate::person::join("default")]).await;
        bob.post(&cluster_path(""), &cluster(&name, &json!({}))).await.ok();
        let taints = json!([{"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect"}]);
        let refusal = bob.merge(&cluster_path(&name), &json!({"spec": {"taints": taints}})).await.refused(403);
        assert!(refusal.message().contains("follows the health of the cluster"), "{}", refusal.message());
    }
}
