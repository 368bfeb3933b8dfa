//! ReplacementPolicies: what could not work is refused at the door, with every field that is wrong.

use serde_json::{Value, json};

use crate::ground::{Place, grounds};
use berth_tests::caller::grouped;

const VERSION: &str = "berth.dev/v1alpha1";

fn policy(spec: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": "ReplacementPolicy", "metadata": {"name": "p"}, "spec": spec})
}

grounds! {
    async fn a_replacement_policy_that_could_not_work_is_refused_with_its_fields(place: &Place<'_>) {
        // The stock definitions are of another group: such policies are not served there.
        if place.ground == Ground::Stock {
            return;
        }
        let collection = grouped(VERSION, &place.namespace, "replacementpolicies");
        let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"});
        let spec = |more: Value| {
            let mut spec = json!({
                "targetRef": target, "replacements": {"taintReplacementOptions": [{"key": "*", "durationInSeconds": 60}]},
            });
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            spec
        };
        for (wrong, field) in [
            (spec(json!({"selector": {"matchLabels": {"app": "db"}}})), "spec.selector"),
            (spec(json!({"gates": [{"name": "safe", "cel": "pod."}]})), "spec.gates[0].cel"),
            (spec(json!({"gates": [{"name": "safe"}]})), "spec.gates[0]"),
            (spec(json!({"order": {"cel": "'first'"}})), "spec.order.cel"),
            (spec(json!({"strategy": {"type": "Delegate"}})), "spec.strategy.delegate"),
            (
                spec(json!({"budget": {"windows": [{"schedule": "0 25 * * *", "durationSeconds": 3600}]}})),
                "spec.budget.windows[0].schedule",
            ),
        ] {
            let refusal = place.admin.post(&collection, &policy(&wrong)).await.refused(422);
            let causes = refusal.0["details"]["causes"].as_array().unwrap();
            assert!(causes.iter().any(|cause| cause["field"] == field), "{field}: {}", refusal.0);
        }
        place.admin.post(&collection, &policy(&spec(json!({})))).await.ok();
        let edited = place.admin.merge(&format!("{collection}/p"), &json!({"spec": {"order": {"cel": "1 +"}}})).await;
        edited.refused(422);
    }
}
