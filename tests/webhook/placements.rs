//! Placements: what could not work is refused at the door, and what is stored already is not bricked.

use serde_json::{Value, json};

use crate::ground::{Ground, Place, alone, grounds, webhook};
use berth_bed::{Bed, or_skip};
use berth_tests::caller::Caller;

fn placement(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// What fits the schema and could not work: without a key, only Exists makes sense.
fn impossible() -> Value {
    json!({"tolerations": [{"operator": "Equal", "value": "a"}]})
}

grounds! {
    async fn a_placement_that_could_not_work_is_refused_with_the_field(place: &Place<'_>) {
        let collection = place.path("v1beta1", "placements");
        let refusal = place.admin.post(&collection, &placement("p", &impossible())).await.refused(422);
        assert_eq!(refusal.reason(), "Invalid");
        let field = refusal.0["details"]["causes"][0]["field"].as_str().unwrap_or_default();
        assert!(field.starts_with("spec.tolerations[0]"), "{}", refusal.0);
        place.admin.post(&collection, &placement("p", &json!({}))).await.ok();
        let edited = place.admin.merge(&format!("{collection}/p"), &json!({"spec": impossible()})).await;
        edited.refused(422);
    }

    async fn a_name_that_no_label_could_carry_is_refused(place: &Place<'_>) {
        let collection = place.path("v1beta1", "placements");
        let refusal = place.admin.post(&collection, &placement(&"n".repeat(64), &json!({}))).await.refused(422);
        assert!(refusal.message().contains("metadata.name"), "{}", refusal.message());
    }
}

/// A Placement from before the rules can be labelled, mended and deleted.
async fn not_bricked(bed: &mut Bed) {
    let admin = Caller::admin(bed);
    let namespace = bed.namespace("old").await;
    let collection = format!("{}/v1beta1/namespaces/{namespace}/placements", crate::ground::GROUP);
    admin.post(&collection, &placement("old", &impossible())).await.ok();
    let Some(_webhook) = or_skip(webhook(bed, "webhook", &[]).await) else { return };
    let target = format!("{collection}/old");
    admin.merge(&target, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    // Another field may change; what was wrong before is said, not refused.
    let edited = admin.merge(&target, &json!({"spec": {"numberOfClusters": 2}})).await;
    assert!(
        edited.warnings.iter().any(|warning| warning.contains("spec.tolerations[0]")),
        "{:?}",
        edited.warnings
    );
    edited.ok();
    admin.merge(&target, &json!({"spec": {"tolerations": null}})).await.ok();
    admin.merge(&target, &json!({"spec": impossible()})).await.refused(422);
    admin.delete(&target).await.ok();
}

#[test]
fn a_placement_from_before_the_rules_is_not_bricked_on_the_hub() {
    alone(Ground::Hub, not_bricked);
}

#[test]
fn a_placement_from_before_the_rules_is_not_bricked_on_kubernetes() {
    alone(Ground::Kubernetes, not_bricked);
}
