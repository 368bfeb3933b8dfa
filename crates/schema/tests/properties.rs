//! What holds for every schema and every value.

use berth_schema::{
    Arena, FieldPath, MetadataRules, NameRule, NodeId, PruneOptions, Rules, check_structural,
    coerce_metadata, compile, default_definition, definition, prepare, prune, unknown_fields, validate,
    validate_definition, validate_embedded, validate_list_types, validate_metadata, validate_metadata_update,
    validate_update,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NAMES: [&str; 8] = ["a", "b", "spec", "metadata", "kind", "name", "x-y", "status"];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3.0..3.0).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        Just(json!("2024-05-01T00:00:00Z")),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A null in a default is refused with its definition, unless it is allowed there.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Array(entries) => entries.into_iter().map(without_nulls).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, without_nulls(field))).collect()
        }
        scalar => scalar,
    }
}

/// A keyword and something to say with it, fitting or not.
fn keyword() -> impl Strategy<Value = (String, Value)> {
    let count = (0_u64..4).prop_map(Value::from);
    let keyed = |names: Vec<&'static str>, values: BoxedStrategy<Value>| {
        (prop::sample::select(names), values).prop_map(|(name, value)| (name.to_owned(), value))
    };
    prop_oneof![
        keyed(
            vec!["maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"],
            count.boxed()
        ),
        keyed(vec!["minimum", "maximum", "multipleOf"], (-3.0..3.0).prop_map(Value::from).boxed()),
        keyed(
            vec!["pattern"],
            prop_oneof![Just(json!("^a")), Just(json!("(")), Just(json!("[a-c]{2}"))].boxed()
        ),
        keyed(
            vec!["format"],
            prop::sample::select(vec![
                "date-time",
                "int32",
                "byte",
                "duration",
                "email",
                "hostname",
                "uri",
                "x"
            ])
            .prop_map(Value::from)
            .boxed()
        ),
        keyed(
            vec!["nullable", "uniqueItems", "x-kubernetes-embedded-resource"],
            any::<bool>().prop_map(Value::from).boxed()
        ),
        keyed(vec!["enum"], prop::collection::vec(scalar(), 1..3).prop_map(Value::Array).boxed()),
        keyed(
            vec!["required"],
            prop::collection::vec(name().prop_map(Value::from), 0..3).prop_map(Value::Array).boxed()
        ),
        keyed(
            vec!["x-kubernetes-list-type"],
            prop::sample::select(vec!["set", "map", "atomic"]).prop_map(Value::from).boxed()
        ),
        keyed(vec!["x-kubernetes-list-map-keys"], Just(json!(["a", "b"])).boxed()),
        keyed(
            vec!["x-kubernetes-validations"],
            prop::sample::select(vec![
                "self == oldSelf",
                "has(self.a)",
                "self.size() < 2",
                "self > 1",
                "1",
                "self.all(x, x"
            ])
            .prop_map(|rule| json!([{"rule": rule}]))
            .boxed()
        ),
        keyed(
            vec!["anyOf", "oneOf", "allOf"],
            Just(json!([{"minLength": 2}, {"required": ["a"]}, {"minimum": 0}])).boxed()
        ),
        keyed(vec!["not"], Just(json!({"enum": ["a"]})).boxed()),
        keyed(vec!["default"], any_value().prop_map(without_nulls).boxed()),
    ]
}

fn with_keywords(schema: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    (schema, prop::collection::vec(keyword(), 0..3))
        .prop_map(|(mut schema, keywords)| {
            if let Value::Object(fields) = &mut schema {
                fields.extend(keywords);
            }
            schema
        })
        .boxed()
}

fn schema() -> BoxedStrategy<Value> {
    let leaf = prop::sample::select(vec![
        json!({"type": "string"}),
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({}),
    ]);
    with_keywords(leaf)
        .prop_recursive(3, 24, 4, |inner| {
            with_keywords(prop_oneof![
                inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
                inner.clone().prop_map(|entries| json!({"type": "object", "additionalProperties": entries})),
                Just(json!({"type": "object", "additionalProperties": true})),
                prop::collection::btree_map(name(), inner, 0..5)
                    .prop_map(|properties| json!({"type": "object", "properties": properties})),
            ])
        })
        .boxed()
}

fn root() -> BoxedStrategy<Value> {
    with_keywords(
        prop::collection::btree_map(name(), schema(), 0..5)
            .prop_map(|properties| json!({"type": "object", "properties": properties})),
    )
}

/// Compiles a schema, all of whose keywords are of the right type.
fn compiled(schema: &Value) -> (Arena, NodeId) {
    let mut arena = Arena::default();
    let id = compile(&mut arena, schema).expect("every keyword is of the right type");
    (arena, id)
}

/// The schema without what keeps undescribed parts, whose changes nobody can see.
fn described(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(name, value)| {
                    let open = *name == "additionalProperties" && value.as_bool() == Some(true);
                    !open
                        && !matches!(
                            name.as_str(),
                            "x-kubernetes-preserve-unknown-fields" | "x-kubernetes-embedded-resource"
                        )
                })
                .map(|(name, value)| (name.clone(), described(value)))
                .collect(),
        ),
        Value::Array(entries) => Value::Array(entries.iter().map(described).collect()),
        scalar => scalar.clone(),
    }
}

/// Found by the property below.
#[test]
fn an_item_without_an_identity_that_stays_where_it_is_has_not_changed() {
    for (list, item) in [
        (json!({"x-kubernetes-list-type": "map"}), json!(0)),
        (json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}), json!(0)),
        (json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}), json!({})),
    ] {
        let mut list = list;
        list["type"] = json!("array");
        list["items"] = json!({"type": "boolean"});
        let (arena, id) = compiled(&json!({"type": "object", "properties": {"spec": list}}));
        let value = json!({"spec": [item]});
        assert_eq!(validate_update(&value, &value, arena.schema(id)), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pruning_and_defaulting_again_changes_nothing(schema in root(), value in any_value()) {
        let (arena, id) = compiled(&schema);
        let mut once = value;
        prepare(&mut once, arena.schema(id));
        let listed: Vec<String> = unknown_fields(&once, arena.schema(id))
            .iter()
            .map(ToString::to_string)
            .filter(|path| !path.starts_with("metadata."))
            .collect();
        prop_assert_eq!(prune(&mut once, arena.schema(id), &PruneOptions::default()), listed);
        let mut twice = once.clone();
        prepare(&mut twice, arena.schema(id));
        prop_assert_eq!(prune(&mut twice, arena.schema(id), &PruneOptions::default()), [] as [&str; 0]);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn coercing_metadata_again_changes_nothing(schema in root(), value in any_value()) {
        let (arena, id) = compiled(&schema);
        let mut once = value;
        if coerce_metadata(&mut once, Some(arena.schema(id))).is_ok() {
            let mut twice = once.clone();
            prop_assert_eq!(coerce_metadata(&mut twice, Some(arena.schema(id))).unwrap(), [] as [&str; 0]);
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn an_update_that_changes_nothing_is_never_refused(schema in root(), value in any_value()) {
        let (arena, id) = compiled(&described(&schema));
        let mut value = value;
        prune(&mut value, arena.schema(id), &PruneOptions { resource_root: false });
        // What kind an object is cannot be seen to change, so it is looked at each time.
        if let Value::Object(fields) = &mut value {
            fields.remove("kind");
        }
        prop_assert_eq!(validate_update(&value, &value, arena.schema(id)), []);
    }

    #[test]
    fn nothing_makes_checking_panic(schema in root(), value in any_value(), old in any_value()) {
        let (arena, id) = compiled(&schema);
        let schema_view = arena.schema(id);
        validate(&value, schema_view);
        validate_update(&value, &old, schema_view);
        validate_embedded(&value, schema_view);
        validate_list_types(&value, schema_view);
        validate_metadata(&value, &MetadataRules::new(true, NameRule::DnsSubdomain));
        validate_metadata_update(&value, &old);
        if let Ok(rules) = Rules::compile(schema_view) {
            rules.check(schema_view, &value, None);
            rules.check(schema_view, &value, Some(&old));
        }
        check_structural(&schema, &FieldPath::root());
    }

    #[test]
    fn nothing_makes_a_definition_panic(schema in prop_oneof![root(), any_value()], spec in any_value(), old in any_value()) {
        let mut definition = json!({
            "metadata": {"name": "things.x.io"},
            "spec": {
                "group": "x.io", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "storage": true, "schema": {"openAPIV3Schema": schema}, "selectableFields": [{"jsonPath": ".spec.a"}]}],
            },
        });
        default_definition(&mut definition);
        definition::prepare_definition(&mut definition, None);
        let problems = validate_definition(&definition, None);
        validate_definition(&definition, Some(&old));
        validate_definition(&json!({ "spec": spec }), Some(&definition));
        definition::definition_warnings(&definition, Some(&old));
        definition::settle_definition(&mut definition, [&old], "2024-01-01T00:00:00Z");
        // Whatever is taken can be served.
        if problems.is_empty() {
            let mut arena = Arena::default();
            let id = compile(&mut arena, &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).unwrap();
            prop_assert!(Rules::compile(arena.schema(id)).is_ok());
        }
    }

    #[test]
    fn any_json_can_be_compiled_or_is_refused(schema in any_value()) {
        let _ = compile(&mut Arena::default(), &schema);
    }
}

#[test]
fn no_depth_of_input_overflows_the_stack() {
    let (arena, id) = compiled(&json!({
        "type": "object",
        "properties": {
            "spec": {"type": "array", "items": {"type": "string"}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
        "x-kubernetes-validations": [{"rule": "self.spec.size() > 100"}],
    }));
    let schema = arena.schema(id);
    let deep = |wrap: fn(Value) -> Value| (0..100_000).fold(Value::Null, |inner, _| wrap(inner));
    let list = || deep(|inner| Value::Array(vec![inner]));
    let object = || deep(|inner| Value::Object(Map::from_iter([("spec".to_owned(), inner)])));
    let mut value = Value::Object(Map::from_iter([
        ("spec".to_owned(), Value::Array(vec![list(), object()])),
        ("status".to_owned(), object()),
        ("metadata".to_owned(), Value::Object(Map::from_iter([("name".to_owned(), list())]))),
        ("unknown".to_owned(), list()),
    ]));
    validate(&value, schema);
    validate_update(&value, &value, schema);
    validate_embedded(&value, schema);
    validate_list_types(&value, schema);
    validate_metadata(&value, &MetadataRules::new(true, NameRule::DnsSubdomain));
    assert!(coerce_metadata(&mut value, Some(schema)).is_err());
    prepare(&mut value, schema);
    unknown_fields(&value, schema);
    Rules::compile(schema).unwrap().check(schema, &value, Some(&value));
    // Removing a field drops what was in it, which is the JSON library's recursion; it stays here.
    std::mem::forget(value);
    let definition = object();
    assert!(!validate_definition(&definition, None).is_empty());
    std::mem::forget(definition);
}
