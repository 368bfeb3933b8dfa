//! Strategic merge patches, case by case: `strategic_cases.json` says what each rule does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use berth_hub_kinds::Builtins;
use berth_hub_merge::strategic_merge;
use proptest::prelude::*;
use serde_json::{Value, json};

fn merged(kind: &str, target: &Value, patch: &Value) -> Result<Value, berth_hub_merge::PatchError> {
    let (version, kind) = kind.rsplit_once('/').unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let builtin = Builtins::load().kind(group, version, kind).unwrap();
    strategic_merge(target, patch, Builtins::load().schema_of(builtin))
}

#[test]
fn every_case_has_its_result() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("strategic_cases.json")).unwrap();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        match merged(case["kind"].as_str().unwrap(), &case["target"], &case["patch"]) {
            Ok(result) => assert_eq!(Some(&result), case.get("result"), "{name}"),
            Err(error) => {
                assert_eq!(case["error"], error.to_string(), "{name}");
                assert_eq!(case["code"], error.code(), "{name}");
            }
        }
    }
    assert!(cases.len() >= 20);
}

#[test]
fn a_patch_with_many_items_is_merged_by_table() {
    let items =
        |from: usize| (from..from + 30_000).map(|n| json!({"name": n.to_string()})).collect::<Vec<_>>();
    let target = json!({"spec": {"containers": items(0)}});
    let patch = json!({"spec": {"containers": items(15_000)}});
    let result = merged("v1/Pod", &target, &patch).unwrap();
    assert_eq!(result["spec"]["containers"].as_array().unwrap().len(), 45_000);
    let texts = |from: usize| (from..from + 30_000).map(|n| json!(n.to_string())).collect::<Vec<_>>();
    let target = json!({"metadata": {"finalizers": texts(0)}});
    let patch = json!({"metadata": {"finalizers": texts(15_000)}});
    let result = merged("v1/Pod", &target, &patch).unwrap();
    assert_eq!(result["metadata"]["finalizers"].as_array().unwrap().len(), 45_000);
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        prop::sample::select(vec!["delete", "replace", "merge", "name", "a"]).prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
        "metadata",
        "spec",
        "containers",
        "finalizers",
        "labels",
        "name",
        "ports",
        "containerPort",
    ]);
    leaf.prop_recursive(5, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_makes_it_panic(target in anything(), patch in anything()) {
        let _ = merged("v1/Pod", &target, &patch);
    }

    #[test]
    fn an_empty_patch_changes_nothing(target in anything()) {
        if target.is_object() {
            prop_assert_eq!(merged("v1/Pod", &target, &json!({})).unwrap(), target);
        }
    }
}
