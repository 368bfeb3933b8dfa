//! Values nobody should send, and somebody will.

use berth_api::{
    Object, Placement, PlacementDecision, ReadError, kinds,
    schema::{prepare, unknown_fields, validate, validate_metadata},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn placement(spec: impl Into<Value>) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {"name": "p", "namespace": "ns1"},
        "spec": spec.into(),
    })
}

fn problems(document: Value) -> Vec<String> {
    match Object::read(document) {
        Ok(_) => Vec::new(),
        Err(ReadError::Invalid { problems, .. }) => problems.iter().map(ToString::to_string).collect(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn each_wrong_value_is_named_with_its_path() {
    let found = problems(placement(json!({
        "numberOfClusters": 99_999_999_999_i64,
        "tolerations": [
            {"key": "-bad-", "effect": "NoExecute", "tolerationSeconds": "soon"},
            {"key": "k".repeat(317), "value": "v".repeat(1025)},
            7,
            null,
        ],
        "spreadPolicy": {"spreadConstraints": [{"topologyKey": "", "maxSkew": 0}]},
        "prioritizerPolicy": {"configurations": [{"weight": 11, "scoreCoordinate": {"type": "Magic"}}]},
        "scoreRateLimit": "1m\n",
        "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "0%", "decisionGroups": [{}]}},
    })));
    for path in [
        "spec.numberOfClusters: ",
        "spec.tolerations[0].key: ",
        "spec.tolerations[0].effect: Unsupported value: \"NoExecute\"",
        "spec.tolerations[0].tolerationSeconds: ",
        "spec.tolerations[1].key: Too long: may not be more than 316 bytes",
        "spec.tolerations[1].value: Too long: may not be more than 1024 bytes",
        "spec.tolerations[2]: ",
        "spec.tolerations[3]: ",
        "spec.spreadPolicy.spreadConstraints[0].topologyKey: ",
        "spec.spreadPolicy.spreadConstraints[0].topologyKeyType: Required value",
        "spec.spreadPolicy.spreadConstraints[0].maxSkew: Invalid value: 0: ",
        "spec.prioritizerPolicy.configurations[0].weight: Invalid value: 11: ",
        "spec.prioritizerPolicy.configurations[0].scoreCoordinate.type: Unsupported value: \"Magic\"",
        "spec.scoreRateLimit: ",
        "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: ",
        "spec.decisionStrategy.groupStrategy.decisionGroups[0].groupName: Required value",
        "spec.decisionStrategy.groupStrategy.decisionGroups[0].groupClusterSelector: Required value",
    ] {
        assert!(found.iter().any(|problem| problem.starts_with(path)), "no {path:?} in {found:#?}");
    }
    assert_eq!(found.len(), 17, "{found:#?}");
}

#[test]
fn negative_numbers_and_zero_are_valid_where_the_reference_has_no_minimum() {
    for number in [0, -1, i32::MIN, i32::MAX] {
        assert_eq!(problems(placement(json!({ "numberOfClusters": number }))), [] as [&str; 0]);
    }
    assert_eq!(problems(placement(json!({"numberOfClusters": 3.0}))), [] as [&str; 0]);
    assert_eq!(problems(placement(json!({"numberOfClusters": 3.5}))).len(), 1);
}

#[test]
fn a_long_list_of_wrong_values_gives_a_bounded_answer() {
    let found = problems(placement(json!({ "clusterSets": vec![7; 10_000] })));
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "and 9900 more problems");
}

#[test]
fn a_value_nested_deeper_than_the_schema_is_not_descended_into() {
    let deep = || (0..100_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let info = &kinds()[3];
    let with = |mut document: Value, pointer: &str| {
        *document.pointer_mut(pointer).unwrap() = deep();
        document
    };
    let condition = json!({"status": {"conditions": [{"type": "a"}, {"type": "a"}]}});
    let documents = [
        (with(placement(json!({"clusterSets": [0]})), "/spec/clusterSets/0"), 1),
        (with(placement(json!({"nobody": 0})), "/spec/nobody"), 0),
        (with(condition, "/status/conditions/1/type"), 9),
    ];
    for (mut document, expected) in documents {
        prepare(&mut document, info.structure());
        let (found, unknown) =
            (validate(&document, info.structure()), unknown_fields(&document, info.structure()));
        // Dropping so deep a value recurses; that is the JSON library's limit, which parsing never reaches.
        std::mem::forget(document);
        assert_eq!(found.len(), expected, "{found:#?}");
        assert!(unknown.len() <= 1, "{unknown:?}");
    }
    let named = with(json!({"metadata": {"name": 0}}), "/metadata/name");
    let found = validate_metadata(&named, info);
    std::mem::forget(named);
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn unknown_words_survive_in_typed_objects_even_where_the_schema_refuses_them() {
    let document = placement(json!({
        "sortBy": "Moon",
        "tolerations": [{"operator": "Near", "effect": "Maybe"}],
        "prioritizerPolicy": {"mode": "Loose", "configurations": [{"scoreCoordinate": {"type": "Oracle"}}]},
        "spreadPolicy": {"spreadConstraints": [
            {"topologyKey": "a", "topologyKeyType": "Star", "whenUnsatisfiable": "Wait"},
        ]},
    }));
    let read: Placement = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), document);
}

#[test]
fn an_empty_decision_list_and_no_status_at_all_stay_apart() {
    for status in [json!({"decisions": []}), Value::Null] {
        let mut document = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "PlacementDecision",
            "metadata": {"name": "p-decision-1"},
        });
        if !status.is_null() {
            document["status"] = status;
        }
        let read: PlacementDecision = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), document);
    }
}

/// Any JSON at all, not too deep.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "spec",
        "status",
        "metadata",
        "name",
        "labels",
        "taints",
        "tolerations",
        "predicates",
        "labelSelector",
        "matchLabels",
        "conditions",
        "decisions",
        "scores",
        "capacity",
        "cpu",
        "key",
        "effect",
        "timeAdded",
        "value",
        "clusterSelector",
        "decisionStrategy",
        "groupStrategy",
        "clustersPerDecisionGroup",
    ]);
    leaf.prop_recursive(5, 64, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_json_makes_reading_panic_and_what_is_accepted_can_be_read(
        mut document in json_value(),
        index in 0..kinds().len(),
    ) {
        let info = &kinds()[index];
        if let Value::Object(fields) = &mut document {
            fields.insert("apiVersion".into(), info.api_version().into());
            fields.insert("kind".into(), info.kind.into());
            fields.insert("metadata".into(), json!({"name": "a"}));
        }
        let result = Object::read(document);
        prop_assert!(!matches!(result, Err(ReadError::Unreadable { .. })), "{result:?}");
    }
}
