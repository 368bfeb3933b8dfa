use serde_json::json;

use super::*;

fn problems(schema: Value, value: impl Into<Value>) -> Vec<String> {
    let schema: JSONSchemaProps = serde_json::from_value(schema).unwrap();
    let value = json!({ "v": value.into() });
    let root = JSONSchemaProps {
        type_: Some("object".into()),
        properties: Some([("v".to_owned(), schema)].into()),
        ..Default::default()
    };
    validate(&value, &root).iter().map(ToString::to_string).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn a_value_of_the_wrong_type_is_one_problem_that_names_both_types() {
    assert_eq!(
        problems(json!({"type": "integer", "minimum": 1}), json!("x")),
        ["v: Invalid value: \"x\": must be an integer, not a string"]
    );
    assert_eq!(
        problems(json!({"type": "string"}), Value::Null),
        ["v: Invalid value: null: must be a string, not null"]
    );
    assert_eq!(
        problems(json!({"type": "integer"}), json!(1.5)),
        ["v: Invalid value: 1.5: must be an integer, not a number"]
    );
    assert_eq!(problems(json!({"type": "string", "nullable": true}), Value::Null), NONE);
}

#[test]
fn a_word_that_is_not_allowed_is_answered_with_those_that_are() {
    assert_eq!(
        problems(json!({"type": "string", "enum": ["NoSelect", "PreferNoSelect"]}), json!("Foo")),
        ["v: Unsupported value: \"Foo\": supported values: \"NoSelect\", \"PreferNoSelect\""]
    );
}

#[test]
fn numbers_keep_their_limits_and_their_format() {
    let weight = json!({"type": "integer", "format": "int32", "minimum": -10, "maximum": 10});
    assert_eq!(problems(weight.clone(), json!(11)), ["v: Invalid value: 11: must be at most 10"]);
    assert_eq!(problems(weight.clone(), json!(-11)), ["v: Invalid value: -11: must be at least -10"]);
    assert_eq!(problems(weight, json!(10)), NONE);
    let small = json!({"type": "integer", "format": "int32"});
    assert_eq!(
        problems(small.clone(), json!(2_147_483_648_i64)),
        ["v: Invalid value: 2147483648: must fit int32"]
    );
    assert_eq!(problems(small, json!(-2_147_483_648_i64)), NONE);
    let large = json!({"type": "integer", "format": "int64"});
    assert_eq!(problems(large.clone(), json!(u64::MAX)).len(), 1);
    assert_eq!(problems(large, json!(i64::MIN)), NONE);
    assert_eq!(
        problems(json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}), json!(0)),
        ["v: Invalid value: 0: must be greater than 0"]
    );
}

#[test]
fn lengths_are_counted_in_characters_not_bytes() {
    let short = json!({"type": "string", "maxLength": 3, "minLength": 1});
    assert_eq!(problems(short.clone(), json!("äöü")), NONE);
    assert_eq!(problems(short.clone(), json!("äöüß")), ["v: Too long: 4 characters: may not be more than 3"]);
    assert_eq!(problems(short, json!("")), ["v: Invalid value: \"\": must have at least 1 character"]);
}

#[test]
fn patterns_apply_to_texts_only_where_integers_are_allowed_too() {
    let size = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
        "pattern": "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$",
    });
    assert_eq!(problems(size.clone(), json!(-7)), NONE);
    assert_eq!(problems(size.clone(), json!("25%")), NONE);
    assert_eq!(problems(size.clone(), json!("101%")).len(), 1);
    assert_eq!(
        problems(size.clone(), json!(true)),
        ["v: Invalid value: true: must be an integer or a string"]
    );
    assert_eq!(problems(size, json!(1.5)).len(), 1);
}

#[test]
fn an_item_that_occurs_again_is_named_once() {
    let map = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["set", "name"],
        "items": {"type": "object"},
    });
    let item = |set: &str, name: &str, other: i32| json!({"set": set, "name": name, "other": other});
    let list = json!([item("a", "x", 1), item("a", "y", 1), item("a", "x", 2), item("a", "x", 3)]);
    assert_eq!(problems(map, list), ["v[2]: Duplicate value: {\"name\":\"x\",\"set\":\"a\"}"]);
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    assert_eq!(problems(set, json!(["a", "b", "a"])), ["v[2]: Duplicate value: \"a\""]);
}

#[test]
fn keys_of_a_list_are_never_confused_by_their_content() {
    let map = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object"},
    });
    assert_eq!(
        problems(map, json!([{"a": "1", "b": "x\",\"c"}, {"a": "1\",\"b", "b": "x"}, {"a": 1}])),
        NONE
    );
}

#[test]
fn lists_and_maps_keep_their_sizes() {
    let list = json!({"type": "array", "maxItems": 1, "items": {"type": "string"}});
    assert_eq!(problems(list, json!(["a", "b"])), ["v: Too many: 2: must have at most 1 items"]);
    let map = json!({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "maxLength": 1}});
    assert_eq!(problems(map.clone(), json!({})).len(), 1);
    assert_eq!(
        problems(map, json!({"a.b/c": "xy"})),
        ["v[a.b/c]: Too long: 2 characters: may not be more than 1"]
    );
}

#[test]
fn combinations_of_rules_are_kept() {
    let any = json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]});
    assert_eq!(problems(any.clone(), json!(1)), NONE);
    assert_eq!(problems(any, json!("x")).len(), 1);
    let one = json!({"oneOf": [{"minimum": 1}, {"minimum": 5}]});
    assert_eq!(problems(one.clone(), json!(3)), NONE);
    assert_eq!(problems(one, json!(7)).len(), 1);
    assert_eq!(problems(json!({"not": {"enum": ["x"]}}), json!("x")).len(), 1);
    assert_eq!(problems(json!({"allOf": [{"minimum": 3}, {"maximum": 1}]}), json!(2)).len(), 2);
}

#[test]
fn all_problems_are_found_and_their_number_is_bounded() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let found = problems(list, Value::Array(vec![json!(1); 250]));
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "and 150 more problems");
}

#[test]
fn a_pattern_that_cannot_be_read_lets_nothing_through() {
    assert_eq!(
        problems(json!({"type": "string", "pattern": "("}), json!("x")),
        ["v: Invalid value: \"x\": cannot be checked against '('"]
    );
}
