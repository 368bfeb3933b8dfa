//! ReplacementPolicies and Replacements: refused at the door where they could not work, never bricked once they are in.

use serde_json::{Value, json};

use crate::{Somebody, admit};

const POLICIES: &str = "replacementpolicies";
const REPLACEMENTS: &str = "replacements";

fn policy(part: &Value) -> Value {
    let mut policy = json!({
        "apiVersion": "berth.dev/v1alpha1", "kind": "ReplacementPolicy", "metadata": {"name": "p", "namespace": "n"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "triggers": {"nodeMissing": {"durationSeconds": 60}},
        },
    });
    policy["spec"].as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    policy
}

#[test]
fn a_policy_that_could_not_work_is_refused_with_every_fields_path() {
    let spec = json!({
        "selector": {"matchLabels": {"a": "b"}},
        "budget": {"maxConcurrent": 2, "windows": [{"schedule": "0 25 * * *", "durationSeconds": 3600}]},
        "replacements": {"maxConcurrentReplacements": 1},
        "gates": [{"name": "g", "stage": "BeforeStart", "cel": "pod."}, {"name": "h", "stage": "BeforeStart"}],
        "order": {"cel": "true"},
        "strategy": {"type": "Delegate"},
    });
    let denial = admit(POLICIES, None, &policy(&spec), &Somebody::default()).unwrap_err();
    let paths: Vec<&str> = denial.fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!(denial.code, 422);
    assert_eq!(
        paths,
        [
            "spec.selector",
            "spec.budget.maxConcurrent",
            "spec.strategy.delegate",
            "spec.gates[1]",
            "spec.gates[0].cel",
            "spec.order.cel",
            "spec.budget.windows[0].schedule",
        ]
    );
}

/// The schema fills in what was left out; that is nothing that somebody gave twice.
#[test]
fn the_options_and_a_native_budget_go_together() {
    let spec = json!({
        "replacements": {"taintReplacementOptions": [{"key": "*", "durationInSeconds": 60}]},
        "budget": {"maxConcurrent": 2, "byFaultDomain": true, "breaker": {"maxAffectedFaultDomains": "20%"}},
    });
    assert_eq!(admit(POLICIES, None, &policy(&spec), &Somebody::default()).unwrap().1, [""; 0]);
}

#[test]
fn a_stored_policy_that_does_not_work_can_still_be_labelled_and_mended() {
    let old = policy(&json!({"gates": [{"name": "g"}]}));
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert!(admit(POLICIES, Some(&old), &labelled, &Somebody::default()).is_ok());
    let mut other = old.clone();
    other["spec"]["mode"] = json!("Disabled");
    let (_, warnings) = admit(POLICIES, Some(&old), &other, &Somebody::default()).unwrap();
    assert!(warnings[0].starts_with("spec.gates[0]: "), "{warnings:?}");
    let mut worse = old.clone();
    worse["spec"]["order"] = json!({"cel": "'x'"});
    let denial = admit(POLICIES, Some(&old), &worse, &Somebody::default()).unwrap_err();
    assert_eq!(denial.fields[0].path, "spec.order.cel", "only what the change brings in");
}

#[test]
fn people_may_suspend_a_replacement_and_call_it_off_and_not_turn_it_on_another_pod() {
    let old = json!({
        "apiVersion": "berth.dev/v1alpha1", "kind": "Replacement", "metadata": {"name": "r", "namespace": "n"},
        "spec": {"policy": "p", "owner": "o", "target": {"name": "db-0", "uid": "u"}, "removesVolumes": true},
    });
    let mut new = old.clone();
    new["spec"]["suspend"] = json!(true);
    new["spec"]["cancel"] = json!(true);
    assert!(admit(REPLACEMENTS, Some(&old), &new, &Somebody::default()).is_ok());
    new["spec"]["target"]["uid"] = json!("v");
    new["spec"]["policy"] = json!("q");
    let denial = admit(REPLACEMENTS, Some(&old), &new, &Somebody::default()).unwrap_err();
    let paths: Vec<&str> = denial.fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!((denial.code, paths), (422, vec!["spec.policy", "spec.target"]));
}

#[test]
fn a_replacement_is_made_by_its_policy_and_not_by_hand() {
    let mut work = json!({
        "apiVersion": "berth.dev/v1alpha1", "kind": "Replacement", "metadata": {"name": "r", "namespace": "n"},
        "spec": {"policy": "p", "owner": "o", "target": {"name": "db-0", "uid": "u"}, "removesVolumes": true},
    });
    let denial = admit(REPLACEMENTS, None, &work, &Somebody::default()).unwrap_err();
    assert_eq!((denial.code, denial.fields[0].path.as_str()), (422, "metadata.ownerReferences"));
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "berth.dev/v1alpha1", "kind": kind, "name": name, "uid": "u", "controller": true}]);
    for (kind, name, is_admitted) in
        [("ReplacementPolicy", "p", true), ("ReplacementPolicy", "q", false), ("EvictionPolicy", "p", false)]
    {
        work["metadata"]["ownerReferences"] = owner(kind, name);
        assert_eq!(
            admit(REPLACEMENTS, None, &work, &Somebody::default()).is_ok(),
            is_admitted,
            "{kind} {name}"
        );
    }
}
