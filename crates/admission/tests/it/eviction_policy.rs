//! EvictionPolicies: refused at the door where they could not work, never bricked once they are in.

use serde_json::{Value, json};

use crate::{Somebody, admit};

const RESOURCE: &str = "evictionpolicies";

fn policy(spec: &Value) -> Value {
    json!({
        "apiVersion": "berth.dev/v1alpha1", "kind": "EvictionPolicy", "metadata": {"name": "p"}, "spec": spec,
    })
}

/// Time alone proves nothing.
fn broken() -> Value {
    json!({"way": "Delete", "after": {"forceDeleteAfterSeconds": 60}})
}

#[test]
fn a_policy_that_could_not_work_is_refused_with_every_fields_path() {
    let spec = json!({
        "way": "Delete", "evict": {"deadlineSeconds": 60, "fallback": "Delete"},
        "when": {"windows": [{"schedule": "0 25 * * *", "durationSeconds": 3600, "timeZone": "Europe/Berlin"}]},
        "gates": [{"name": "g", "cel": {"expression": "pod."}}, {"name": "g", "annotation": {"key": "a"}},
            {"name": "r", "review": {"url": "https://ann:secret@reviews.example.com/"}}],
        "after": {"forceDeleteAfterSeconds": 60},
    });
    let denial = admit(RESOURCE, None, &policy(&spec), &Somebody::default()).unwrap_err();
    let paths: Vec<&str> = denial.fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!(denial.code, 422);
    assert_eq!(
        paths,
        [
            "spec.evict",
            "spec.when.windows[0].schedule",
            "spec.gates[0].cel.expression",
            "spec.gates[1].name",
            "spec.gates[2].review.url",
            "spec.after.proofs",
        ]
    );
}

#[test]
fn a_policy_that_works_is_let_in() {
    let spec = json!({"pods": {"namespaces": ["n"]}, "way": "Evict"});
    assert_eq!(admit(RESOURCE, None, &policy(&spec), &Somebody::default()).unwrap().1, [""; 0]);
}

#[test]
fn a_stored_policy_that_does_not_work_can_still_be_labelled_and_mended() {
    let old = policy(&broken());
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert!(admit(RESOURCE, Some(&old), &labelled, &Somebody::default()).is_ok());
    let mut other = old.clone();
    other["spec"]["dryRun"] = json!(true);
    let (_, warnings) = admit(RESOURCE, Some(&old), &other, &Somebody::default()).unwrap();
    assert!(warnings[0].starts_with("spec.after.proofs: "), "{warnings:?}");
    assert!(admit(RESOURCE, Some(&old), &policy(&json!({"way": "Delete"})), &Somebody::default()).is_ok());
    let worse = json!({"way": "Delete", "after": {"forceDeleteAfterSeconds": 60}, "pace": {"burst": 1}});
    let denial = admit(RESOURCE, Some(&old), &policy(&worse), &Somebody::default()).unwrap_err();
    assert_eq!(denial.fields[0].path, "spec.pace.burst", "only what the change brings in");
}
