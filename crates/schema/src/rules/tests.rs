use serde_json::json;

use super::*;
use crate::{compile, node::Arena};

const NONE: [&str; 0] = [];

struct Fixture {
    arena: Arena,
    id: crate::NodeId,
    rules: Rules,
}

impl Fixture {
    fn new(schema: &Value) -> Self {
        let mut arena = Arena::default();
        let id = compile(&mut arena, schema).unwrap();
        let rules = Rules::compile(arena.schema(id)).unwrap();
        Self { arena, id, rules }
    }

    fn check(&self, value: &Value, old: Option<&Value>) -> Vec<String> {
        self.rules.check(self.arena.schema(self.id), value, old).iter().map(ToString::to_string).collect()
    }
}

fn refused(schema: &Value) -> Vec<String> {
    let mut arena = Arena::default();
    let id = compile(&mut arena, schema).unwrap();
    Rules::compile(arena.schema(id)).unwrap_err().iter().map(ToString::to_string).collect()
}

fn spec(properties: &Value, rules: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties, "x-kubernetes-validations": rules}},
    })
}

#[test]
fn a_rule_that_does_not_hold_is_told_at_its_place() {
    let fixture = Fixture::new(&spec(
        &json!({"min": {"type": "integer"}, "max": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 100"}]}}),
        &json!([
            {"rule": "self.min <= self.max", "message": "min must not exceed max"},
            {"rule": "self.min > 0", "fieldPath": ".min", "reason": "FieldValueForbidden", "messageExpression": "'min is ' + string(self.min)"},
        ]),
    ));
    assert_eq!(fixture.check(&json!({"spec": {"min": 1, "max": 2}}), None), NONE);
    assert_eq!(
        fixture.check(&json!({"spec": {"min": 0, "max": -1}}), None),
        ["spec: Invalid value: min must not exceed max", "spec.min: Forbidden: min is 0"]
    );
    assert_eq!(
        fixture.check(&json!({"spec": {"min": 1, "max": 100}}), None),
        ["spec.max: Invalid value: 100: failed rule: self < 100"]
    );
    assert_eq!(
        fixture.check(&json!({"spec": {"max": 1}}), None),
        [
            "spec: Invalid value: \"object\": no such key: min evaluating rule: min must not exceed max",
            "spec: Invalid value: \"object\": no such key: min evaluating rule: self.min > 0",
        ]
    );
}

#[test]
fn rules_reach_into_lists_and_maps() {
    let fixture = Fixture::new(&spec(
        &json!({
            "list": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'"}]}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}},
        }),
        &json!([{"rule": "self.list.all(e, e.size() < 3)"}]),
    ));
    assert_eq!(
        fixture.check(&json!({"spec": {"list": ["a", "x", "long"], "map": {"a.b": 0}}}), None),
        [
            "spec: Invalid value: failed rule: self.list.all(e, e.size() < 3)",
            "spec.list[1]: Invalid value: \"x\": failed rule: self != 'x'",
            "spec.map[a.b]: Invalid value: 0: failed rule: self > 0",
        ]
    );
}

#[test]
fn a_rule_about_a_change_needs_something_old() {
    let fixture = Fixture::new(&spec(
        &json!({"n": {"type": "integer", "x-kubernetes-validations": [
            {"rule": "self >= oldSelf", "message": "may only grow"},
            {"rule": "oldSelf.hasValue() || self == 1", "optionalOldSelf": true, "message": "begins at one"},
        ]}}),
        &json!([]),
    ));
    assert_eq!(fixture.check(&json!({"spec": {"n": 1}}), None), NONE);
    assert_eq!(fixture.check(&json!({"spec": {"n": 5}}), None), ["spec.n: Invalid value: 5: begins at one"]);
    assert_eq!(
        fixture.check(&json!({"spec": {"n": 5}}), Some(&json!({"spec": {"n": 6}}))),
        ["spec.n: Invalid value: 5: may only grow"]
    );
    // A value that was not there before has nothing to be compared with.
    assert_eq!(
        fixture.check(&json!({"spec": {"n": 5}}), Some(&json!({"spec": {}}))),
        ["spec.n: Invalid value: 5: begins at one"]
    );
}

#[test]
fn items_of_a_keyed_list_are_compared_by_their_keys() {
    let fixture = Fixture::new(&spec(
        &json!({"list": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "may only grow"}],
            },
        }}),
        &json!([]),
    ));
    let old = json!({"spec": {"list": [{"k": "a", "v": 5}, {"k": "b", "v": 1}]}});
    let new = json!({"spec": {"list": [{"k": "b", "v": 2}, {"k": "c", "v": 0}, {"k": "a", "v": 4}]}});
    assert_eq!(fixture.check(&new, Some(&old)), ["spec.list[2]: Invalid value: may only grow"]);
}

#[test]
fn what_was_left_as_it_was_is_not_held_against_an_update() {
    let fixture = Fixture::new(&spec(
        &json!({"n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 10"}]}, "m": {"type": "integer"}}),
        &json!([{"rule": "self.n < 10"}]),
    ));
    let old = json!({"spec": {"n": 50, "m": 1}});
    assert_eq!(fixture.check(&old, Some(&old)), NONE);
    // The object changed, so its own rule counts; the field did not.
    assert_eq!(
        fixture.check(&json!({"spec": {"n": 50, "m": 2}}), Some(&old)),
        ["spec: Invalid value: failed rule: self.n < 10"]
    );
    assert_eq!(fixture.check(&json!({"spec": {"n": 51, "m": 1}}), Some(&old)).len(), 2);
}

#[test]
fn fields_are_seen_under_the_names_and_types_expressions_use() {
    let fixture = Fixture::new(&json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "my-field": {"type": "string"},
                    "at": {"type": "string", "format": "date-time"},
                    "data": {"type": "string", "format": "byte"},
                    "wait": {"type": "string", "format": "duration"},
                    "size": {"x-kubernetes-int-or-string": true},
                    "ratio": {"type": "number"},
                },
            },
        },
        "x-kubernetes-validations": [
            {"rule": "self.spec.my__dash__field == 'x'"},
            {"rule": "self.spec.at.getFullYear() == 2024"},
            {"rule": "self.spec.data == b'ab'"},
            {"rule": "self.spec.wait > duration('1m')"},
            {"rule": "type(self.spec.size) == int ? self.spec.size < 5 : self.spec.size == '50%'"},
            {"rule": "self.spec.ratio == 1.0"},
            {"rule": "self.metadata.name.startsWith('a')"},
        ],
    }));
    let value = json!({
        "metadata": {"name": "abc", "labels": {"x": "y"}},
        "spec": {"my-field": "x", "at": "2024-05-01T00:00:00Z", "data": "YWI=", "wait": "1h30m", "size": "50%", "ratio": 1},
    });
    assert_eq!(fixture.check(&value, None), NONE);
}

#[test]
fn rules_that_do_not_compile_are_refused_with_their_place() {
    let refused = refused(&spec(
        &json!({"n": {"type": "integer"}}),
        &json!([{"rule": "self.m > 1"}, {"rule": "self.n + 1"}, {"rule": "self.n > 1", "messageExpression": "self.n"}]),
    ));
    assert_eq!(refused.len(), 3, "{refused:#?}");
    assert_eq!(
        refused[0],
        "properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.m \\u003e 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'm'\n | self.m > 1\n | ....^"
    );
    assert!(refused[1].ends_with("cel expression must evaluate to a bool"), "{}", refused[1]);
    assert!(refused[2].ends_with("messageExpression must evaluate to a string"), "{}", refused[2]);
    assert!(
        refused[2].starts_with("properties[spec].x-kubernetes-validations[2].messageExpression: "),
        "{}",
        refused[2]
    );
}

#[test]
fn the_budget_of_an_object_ends() {
    let fixture = Fixture::new(&spec(
        &json!({"list": {"type": "array", "items": {"type": "integer"}}}),
        &json!([{"rule": "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))"}]),
    ));
    let found = fixture.check(&json!({"spec": {"list": vec![1; 300]}}), None);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run"), "{}", found[0]);
}
