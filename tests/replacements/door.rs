//! What is refused at the door by the definition alone, with the field's path. What takes more than a schema is the business of
//! admission; the suite `webhook` has it.

use serde_json::{Value, json};

use crate::{
    ground::grounds,
    scene::{Scene, taints, with},
};

grounds! {
    /// Keys that look like patterns, times that lie before the beginning, words that nobody knows: all are refused where they are
    /// written, and named.
    ///
    /// Upstream: replacement-defects "B10".
    beside async fn what_the_schema_forbids_is_named(scene: &Scene) {
        let option = |key: &str, seconds: i64| taints(&[(key, seconds)], 0);
        for (spec, field) in [
            (option("example.org/*", 1), "spec.replacements.taintReplacementOptions[0].key"),
            (option("", 1), "spec.replacements.taintReplacementOptions[0].key"),
            (option("a", -1), "spec.replacements.taintReplacementOptions[0].durationInSeconds"),
            (taints(&[("a", 1)], -1), "spec.replacements.taintReplacementTimeSeconds"),
            (json!({"mode": "Always"}), "spec.mode"),
            (json!({"replacements": {"maxConcurrentReplacements": -1}}), "spec.replacements.maxConcurrentReplacements"),
            (json!({"budget": {"breaker": {"minimum": 0}}}), "spec.budget.breaker.minimum"),
            (json!({"gates": [{"name": "Nope!", "cel": "true"}]}), "spec.gates[0].name"),
            (json!({"strategy": {"volumes": {"policy": "Shred"}}}), "spec.strategy.volumes.policy"),
        ] {
            let refusal = scene.try_policy("p", with(spec, json!({}))).await.refused(422);
            let causes = refusal.0["details"]["causes"].as_array().unwrap();
            let fields: Vec<&Value> = causes.iter().map(|cause| &cause["field"]).collect();
            assert!(fields.iter().any(|told| **told == field), "{field} is not among {fields:?}");
        }
        let many: Vec<Value> = (0..33).map(|number| json!({"key": format!("k{number}"), "durationInSeconds": 1})).collect();
        let refusal = scene.try_policy("p", json!({"replacements": {"taintReplacementOptions": many}})).await.refused(422);
        assert!(refusal.message().contains("spec.replacements.taintReplacementOptions"), "{refusal:?}");
    }
}
