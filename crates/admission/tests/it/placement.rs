//! Placements: refused at the door where they could not work, never bricked once they are in.

use serde_json::{Value, json};

use crate::{Somebody, admit};

const RESOURCE: &str = "placements";

fn placement(spec: &Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {"namespace": "n", "name": "p"},
        "spec": spec,
    })
}

fn broken() -> Value {
    json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]})
}

#[test]
fn a_placement_that_could_not_work_is_refused_with_the_fields_path() {
    let denial = admit(RESOURCE, None, &placement(&broken()), &Somebody::default()).unwrap_err();
    assert_eq!((denial.code, denial.fields[0].path.as_str()), (422, "spec.tolerations[0].value"));
    let cel =
        json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["1 +"]}}}]});
    let denial = admit(RESOURCE, None, &placement(&cel), &Somebody::default()).unwrap_err();
    assert!(denial.fields[0].path.starts_with("spec.predicates[0].requiredClusterSelector.celSelector"));
}

#[test]
fn a_placement_that_works_is_let_in() {
    assert_eq!(admit(RESOURCE, None, &placement(&json!({})), &Somebody::default()).unwrap().1, [""; 0]);
}

#[test]
fn a_stored_placement_that_does_not_work_can_still_be_labelled_and_mended() {
    let old = placement(&broken());
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert!(admit(RESOURCE, Some(&old), &labelled, &Somebody::default()).is_ok());
    let mut other = old.clone();
    other["spec"]["numberOfClusters"] = json!(3);
    let (_, warnings) = admit(RESOURCE, Some(&old), &other, &Somebody::default()).unwrap();
    assert!(warnings[0].starts_with("spec.tolerations[0].value"), "{warnings:?}");
    assert!(admit(RESOURCE, Some(&old), &placement(&json!({})), &Somebody::default()).is_ok());
}

#[test]
fn a_change_brings_in_nothing_that_does_not_work() {
    let denial = admit(RESOURCE, Some(&placement(&json!({}))), &placement(&broken()), &Somebody::default());
    assert_eq!(denial.unwrap_err().code, 422);
}

#[test]
fn an_annotation_that_could_not_work_is_refused_too() {
    let (old, mut new) = (placement(&json!({})), placement(&json!({})));
    new["metadata"]["annotations"] = json!({"berth.dev/decision-details": "everything"});
    let denial = admit(RESOURCE, Some(&old), &new, &Somebody::default()).unwrap_err();
    assert_eq!(
        (denial.code, denial.fields[0].path.as_str()),
        (422, "metadata.annotations[berth.dev/decision-details]")
    );
    let mut labelled = new.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert!(
        admit(RESOURCE, Some(&new), &labelled, &Somebody::default()).is_ok(),
        "what is stored stays usable"
    );
}

#[test]
fn a_name_too_long_for_a_label_is_refused_when_the_placement_is_made() {
    let mut long = placement(&json!({}));
    long["metadata"]["name"] = json!("p".repeat(64));
    let denial = admit(RESOURCE, None, &long, &Somebody::default()).unwrap_err();
    assert_eq!((denial.code, denial.fields[0].path.as_str()), (422, "metadata.name"));
    let mut relabelled = long.clone();
    relabelled["spec"]["numberOfClusters"] = json!(1);
    assert!(admit(RESOURCE, Some(&long), &relabelled, &Somebody::default()).is_ok());
}
