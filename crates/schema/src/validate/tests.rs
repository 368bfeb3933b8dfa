use serde_json::json;

use super::*;
use crate::{compile, node::Arena};

const NONE: [&str; 0] = [];

fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn with_schema<T>(schema: &Value, then: impl FnOnce(Schema<'_>) -> T) -> T {
    let mut arena = Arena::default();
    let id = compile(&mut arena, &json!({"type": "object", "properties": {"v": schema}})).unwrap();
    then(arena.schema(id))
}

fn problems(schema: &Value, value: impl Into<Value>) -> Vec<String> {
    let value = json!({ "v": value.into() });
    with_schema(schema, |schema| texts(&validate(&value, schema)))
}

fn update(schema: &Value, old: &Value, new: &Value) -> Vec<String> {
    with_schema(schema, |schema| texts(&validate_update(&json!({ "v": new }), &json!({ "v": old }), schema)))
}

#[test]
fn a_value_of_the_wrong_type_is_told_as_kubernetes_does() {
    let integer = json!({"type": "integer", "minimum": 1});
    assert_eq!(
        problems(&integer, json!("x")),
        ["v: Invalid value: \"string\": v in body must be of type integer: \"string\""]
    );
    assert_eq!(
        problems(&json!({"type": "string"}), Value::Null),
        ["v: Invalid value: \"null\": v in body must be of type string: \"null\""]
    );
    assert_eq!(
        problems(&integer, json!(1.5)),
        [
            "v: Invalid value: \"number\": v in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in v",
        ]
    );
    assert_eq!(problems(&json!({"type": "string", "nullable": true}), Value::Null), NONE);
    assert_eq!(problems(&json!({"type": "number"}), json!(1)), NONE);
    assert_eq!(problems(&json!({"type": "integer"}), json!(1.0)), NONE);
    let time = json!({"type": "string", "format": "date-time"});
    assert_eq!(
        problems(&time, json!("soon")),
        ["v: Invalid value: \"soon\": v in body must be of type date-time: \"soon\""]
    );
    assert_eq!(
        problems(&time, json!(5)),
        ["v: Invalid value: \"int64\": v in body must be of type date-time: \"int64\""]
    );
    assert_eq!(problems(&time, json!([])), NONE);
    assert_eq!(problems(&json!({"type": "string", "format": "unheard-of"}), json!("x")), NONE);
}

#[test]
fn the_kind_of_a_problem_is_kubernetes_own() {
    let kinds = with_schema(&json!({"type": "string", "enum": ["a"]}), |schema| {
        validate(&json!({"v": 1}), schema).iter().map(|problem| problem.kind).collect::<Vec<_>>()
    });
    assert_eq!(kinds, [ProblemKind::TypeInvalid, ProblemKind::NotSupported]);
}

#[test]
fn a_word_that_is_not_allowed_is_answered_with_those_that_are() {
    assert_eq!(
        problems(&json!({"type": "string", "enum": ["NoSelect", "PreferNoSelect"]}), json!("Foo")),
        ["v: Unsupported value: \"Foo\": supported values: \"NoSelect\", \"PreferNoSelect\""]
    );
    assert_eq!(
        problems(&json!({"type": "integer", "enum": [1, 2]}), json!(3)),
        ["v: Unsupported value: 3: supported values: \"1\", \"2\""]
    );
    assert_eq!(problems(&json!({"type": "number", "enum": [1, 2.5]}), json!(1.0)), NONE);
    // Known of Kubernetes: null is no member of any enumeration.
    assert_eq!(
        problems(&json!({"type": "string", "nullable": true, "enum": ["a", null]}), Value::Null),
        ["v: Unsupported value: null: supported values: \"a\", \"null\""]
    );
}

#[test]
fn numbers_keep_their_limits_and_their_format() {
    let weight = json!({"type": "integer", "format": "int32", "minimum": -10, "maximum": 10});
    assert_eq!(
        problems(&weight, json!(11)),
        ["v: Invalid value: 11: v in body should be less than or equal to 10"]
    );
    assert_eq!(
        problems(&weight, json!(-11)),
        ["v: Invalid value: -11: v in body should be greater than or equal to -10"]
    );
    assert_eq!(problems(&weight, json!(10)), NONE);
    let small = json!({"type": "integer", "format": "int32"});
    assert_eq!(
        problems(&small, json!(2_147_483_648_i64)),
        ["<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in v"]
    );
    assert_eq!(problems(&small, json!(-2_147_483_648_i64)), NONE);
    let large = json!({"type": "integer", "format": "int64"});
    assert_eq!(problems(&large, json!(u64::MAX)).len(), 2);
    assert_eq!(problems(&large, json!(i64::MIN)), NONE);
    assert_eq!(
        problems(&json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}), json!(0)),
        ["v: Invalid value: 0: v in body should be greater than 0"]
    );
    assert_eq!(
        problems(&json!({"type": "integer", "multipleOf": 5}), json!(7)),
        ["v: Invalid value: 7: v in body should be a multiple of 5"]
    );
    assert_eq!(problems(&json!({"type": "number", "multipleOf": 0.1}), json!(0.3)), NONE);
}

#[test]
fn lengths_are_counted_in_characters_and_told_in_bytes() {
    let short = json!({"type": "string", "maxLength": 3, "minLength": 1});
    assert_eq!(problems(&short, json!("äöü")), NONE);
    assert_eq!(problems(&short, json!("äöüß")), ["v: Too long: may not be more than 3 bytes"]);
    assert_eq!(
        problems(&short, json!("")),
        ["v: Invalid value: \"\": v in body should be at least 1 chars long"]
    );
}

#[test]
fn patterns_apply_to_texts_only_where_integers_are_allowed_too() {
    let size = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
        "pattern": "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$",
    });
    assert_eq!(problems(&size, json!(-7)), NONE);
    assert_eq!(problems(&size, json!("25%")), NONE);
    assert_eq!(
        problems(&size, json!("101%")),
        ["v: Invalid value: \"101%\": v in body should match '^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$'"]
    );
    assert_eq!(
        problems(&size, json!(true)),
        [
            "v: Invalid value: \"boolean\": v in body must be of type integer,string: \"boolean\"",
            "<nil>: Invalid value: \"\": \"v\" must validate at least one schema (anyOf)",
            "v: Invalid value: \"boolean\": v in body must be of type integer: \"boolean\"",
        ]
    );
    assert!(!problems(&size, json!(1.5)).is_empty());
}

#[test]
fn lists_and_maps_keep_their_sizes() {
    let list = json!({"type": "array", "maxItems": 1, "minItems": 1, "items": {"type": "string"}});
    assert_eq!(problems(&list, json!(["a", "b"])), ["v: Too many: 2: must have at most 1 item"]);
    assert_eq!(problems(&list, json!([])), ["v: Invalid value: 0: v in body should have at least 1 items"]);
    let unique = json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}});
    assert_eq!(
        problems(&unique, json!(["a", "a"])),
        ["v: Invalid value: \"\": v in body shouldn't contain duplicates"]
    );
    let map = json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "string", "maxLength": 1}});
    assert_eq!(
        problems(&map, json!({})),
        ["v: Invalid value: 0: v in body should have at least 1 properties"]
    );
    assert_eq!(problems(&map, json!({"a": "", "b": ""})), ["v: Too many: 2: must have at most 1 item"]);
    assert_eq!(problems(&map, json!({"a.b/c": "xy"})), ["v.a.b/c: Too long: may not be more than 1 byte"]);
}

#[test]
fn what_is_required_is_asked_for_at_its_place() {
    let object = json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}}});
    assert_eq!(problems(&object, json!({})), ["v.a: Required value", "v.b: Required value"]);
}

#[test]
fn junctors_tell_of_the_alternative_that_came_closest() {
    let any = json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]});
    assert_eq!(problems(&any, json!(1)), NONE);
    assert_eq!(
        problems(&any, json!("x")),
        [
            "<nil>: Invalid value: \"\": \"v\" must validate at least one schema (anyOf)",
            "v: Invalid value: \"string\": v in body must be of type integer: \"string\"",
        ]
    );
    let one = json!({"oneOf": [{"minimum": 1}, {"minimum": 5}]});
    assert_eq!(problems(&one, json!(3)), NONE);
    assert_eq!(
        problems(&one, json!(7)),
        [
            "<nil>: Invalid value: \"\": \"v\" must validate one and only one schema (oneOf). Found 2 valid alternatives"
        ]
    );
    assert_eq!(
        problems(&one, json!(0)),
        [
            "<nil>: Invalid value: \"\": \"v\" must validate one and only one schema (oneOf). Found none valid",
            "v: Invalid value: 0: v in body should be greater than or equal to 1",
        ]
    );
    let closest = json!({"type": "object", "oneOf": [{"required": ["a"]}, {"properties": {"b": {"minimum": 1}}, "required": ["b", "c"]}]});
    assert_eq!(
        problems(&closest, json!({"b": 2})),
        [
            "<nil>: Invalid value: \"\": \"v\" must validate one and only one schema (oneOf). Found none valid",
            "v.c: Required value",
        ]
    );
    assert_eq!(
        problems(&json!({"not": {"enum": ["x"]}}), json!("x")),
        ["<nil>: Invalid value: \"\": \"v\" must not validate the schema (not)"]
    );
    assert_eq!(
        problems(&json!({"allOf": [{"minimum": 3}, {"maximum": 1}]}), json!(2)),
        [
            "v: Invalid value: 2: v in body should be greater than or equal to 3",
            "v: Invalid value: 2: v in body should be less than or equal to 1",
            "<nil>: Invalid value: \"\": \"v\" must validate all the schemas (allOf). None validated",
        ]
    );
}

#[test]
fn all_problems_are_found_and_their_number_is_bounded() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let found = problems(&list, Value::Array(vec![json!(1); 250]));
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "and 150 more problems");
}

#[test]
fn a_pattern_that_cannot_be_read_lets_nothing_through() {
    let found = problems(&json!({"type": "string", "pattern": "("}), json!("x"));
    assert!(found[0].starts_with("v: Invalid value: \"x\": v in body should match '(, but pattern is invalid: error parsing regexp: "), "{found:?}");
}

#[test]
fn an_update_is_not_blamed_for_what_it_left_as_it_was() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "string"}}});
    assert_eq!(update(&schema, &json!({"a": "xx"}), &json!({"a": "xx", "b": "new"})), NONE);
    assert_eq!(
        update(&schema, &json!({"a": "xx"}), &json!({"a": "xxx"})),
        ["v.a: Too long: may not be more than 1 byte"]
    );
    let list = |kind: &str| {
        json!({
            "type": "array",
            "x-kubernetes-list-type": kind,
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 1}}},
        })
    };
    let (old, new) = (json!([{"k": "a", "n": 9}]), json!([{"k": "b", "n": 1}, {"k": "a", "n": 9}]));
    assert_eq!(update(&list("map"), &old, &new), NONE);
    assert_eq!(
        update(&list("atomic"), &old, &new),
        ["v[1].n: Invalid value: 9: v[1].n in body should be less than or equal to 1"]
    );
}

#[test]
fn below_a_base_paths_are_full_and_texts_are_relative() {
    let mut arena = Arena::default();
    let id =
        compile(&mut arena, &json!({"type": "object", "properties": {"n": {"type": "integer"}}})).unwrap();
    let base = FieldPath::root().field("status");
    assert_eq!(
        texts(&validate_below(base.clone(), &json!({"n": "x"}), arena.schema(id))),
        ["status.n: Invalid value: \"string\": n in body must be of type integer: \"string\""]
    );
    assert_eq!(
        texts(&validate_below(base, &json!("x"), arena.schema(id))),
        ["status: Invalid value: \"string\":  in body must be of type object: \"string\""]
    );
}

#[test]
fn a_schema_that_refers_to_itself_does_not_make_the_stack_overflow() {
    let mut arena = Arena::default();
    let id = arena.add(Node::default());
    arena.set(
        id,
        Node {
            shape: Shape::Object,
            properties: [("p".into(), id)].into(),
            additional: Some(id),
            ..Node::default()
        },
    );
    let deep = (0..50_000).fold(json!({}), |inner, _| {
        let mut fields = Map::new();
        fields.insert("p".into(), inner);
        Value::Object(fields)
    });
    let found = validate(&deep, arena.schema(id));
    let unknown = crate::unknown_fields(&deep, arena.schema(id));
    let mut deep = deep;
    crate::prepare(&mut deep, arena.schema(id));
    crate::prune(&mut deep, arena.schema(id), &crate::PruneOptions::default());
    std::mem::forget(deep);
    assert_eq!(found.len(), 1);
    assert!(unknown.is_empty());
}
