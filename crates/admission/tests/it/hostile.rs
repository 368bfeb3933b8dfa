//! Whatever comes in: mutation sees objects before any schema does, so they may have any shape.

use berth_admission::{Recorder, mutate, stake, validate};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::attempt;

const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";

/// A value of any kind where another is expected.
fn odd() -> impl Strategy<Value = Value> {
    select(vec![
        Value::Null,
        json!(true),
        json!(7),
        json!("x"),
        json!([]),
        json!([null, 1, "x", [], {}]),
        json!({}),
        json!({"taints": "x", "labels": 1}),
        json!([{"key": UNREACHABLE, "effect": 3}]),
    ])
}

/// An object that is one but for some parts.
fn broken() -> impl Strategy<Value = Value> {
    let paths = select(vec![
        "/metadata",
        "/metadata/labels",
        "/metadata/annotations",
        "/spec",
        "/spec/taints",
        "/spec/taints/0",
        "/spec/clusterSet",
        "/status",
        "/status/conditions",
        "",
    ]);
    prop::collection::vec((paths, odd()), 0..3).prop_map(|parts| {
        let mut object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c", "labels": {}, "annotations": {}},
            "spec": {"taints": [{"key": UNREACHABLE, "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]},
            "status": {"conditions": [{
                "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "r", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        });
        for (path, odd) in parts {
            if let Some(part) = object.pointer_mut(path) {
                *part = odd;
            }
        }
        object
    })
}

proptest! {
    #[test]
    fn nothing_that_comes_in_ends_in_a_panic(
        resource in select(vec!["managedclusters", "managedclustersets", "managedclustersetbindings", "placements", "pods"]),
        old in prop::option::of(broken()),
        new in broken(),
    ) {
        let attempt = attempt(resource, "c", old.as_ref());
        let mut object = new;
        let _ = mutate(&attempt, &mut object, &Recorder::default());
        let _ = validate(&attempt, Some(&object), &Recorder::default());
        let _ = stake(&attempt, Some(&object));
    }
}

#[test]
fn a_spec_that_is_a_text_is_left_to_the_schema() {
    let old = json!({
        "metadata": {"name": "c", "labels": {"cluster.open-cluster-management.io/clusterset": "s"}},
        "spec": {"taints": [{"key": UNREACHABLE, "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]},
        "status": {"conditions": [{
            "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "r", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    });
    let mut new = old.clone();
    new["spec"] = json!("x");
    let expected = new.clone();
    mutate(&attempt("managedclusters", "c", Some(&old)), &mut new, &Recorder::default()).unwrap();
    assert_eq!(new, expected);
}
