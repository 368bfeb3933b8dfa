//! Custom resources: their bodies and their definitions.

use serde_json::{Value, json};

use super::{maybe, words};
use berth_tests::random::Random;

pub(super) fn widget(random: &mut Random) -> Value {
    let mut spec = json!({});
    maybe(random, 60, &mut spec, "size", |r| json!(r.below(12)));
    maybe(random, 40, &mut spec, "colour", |r| json!(*r.pick(&["red", "green", "blue"])));
    maybe(random, 40, &mut spec, "port", |r| if r.chance(50) { json!(8080) } else { json!("http") });
    maybe(random, 30, &mut spec, "free", |r| json!({"any": [1, {"thing": words(r)}], "n": null}));
    maybe(random, 40, &mut spec, "tags", |r| {
        Value::from((0..r.below(4)).map(|n| json!(format!("t{n}"))).collect::<Vec<_>>())
    });
    maybe(random, 40, &mut spec, "list", |r| {
        Value::from((0..r.below(3)).map(|_| json!(words(r))).collect::<Vec<_>>())
    });
    maybe(random, 50, &mut spec, "parts", |r| {
        Value::from(
            (0..=r.below(3))
                .map(|n| {
                    let mut part = json!({"name": format!("p{n}")});
                    maybe(r, 50, &mut part, "weight", |r| json!(r.below(5)));
                    maybe(r, 30, &mut part, "kind", |r| json!(words(r)));
                    part
                })
                .collect::<Vec<_>>(),
        )
    });
    maybe(random, 30, &mut spec, "map", |r| json!({"k1": words(r), "k2": "v"}));
    maybe(random, 30, &mut spec, "whole", |r| json!({"a": r.below(3), "b": words(r)}));
    maybe(random, 30, &mut spec, "nested", |r| json!({"deep": {"deeper": r.below(9)}}));
    maybe(random, 25, &mut spec, "limits", |r| {
        let mut limits = json!({"high": 1 + r.below(5)});
        maybe(r, 50, &mut limits, "low", |r| json!(r.below(5)));
        maybe(r, 40, &mut limits, "unit", |r| json!(*r.pick(&["m", "s"])));
        limits
    });
    maybe(random, 15, &mut spec, "maybe", |_| Value::Null);
    maybe(random, 20, &mut spec, "ratio", |r| json!(r.below(9) as f64 / 2.0));
    maybe(random, 30, &mut spec, "replicas", |r| json!(r.below(5)));
    json!({"spec": spec})
}

pub(super) fn widget_status(random: &mut Random) -> Value {
    let mut status = json!({"phase": *random.pick(&["Ready", "Waiting"])});
    maybe(
        random,
        50,
        &mut status,
        "conditions",
        |r| json!([{"type": "Ready", "status": *r.pick(&["True", "False", "Unknown"]), "reason": "Because", "message": words(r), "lastTransitionTime": "2026-01-01T00:00:00Z"}]),
    );
    maybe(random, 30, &mut status, "replicas", |r| json!(r.below(5)));
    status
}

pub(super) fn gadget(random: &mut Random) -> Value {
    let mut gadget = json!({"level": random.below(5)});
    maybe(random, 50, &mut gadget, "spec", |r| json!({"power": words(r)}));
    maybe(random, 30, &mut gadget, "status", |r| json!({"seen": words(r)}));
    gadget
}

fn columns() -> Value {
    json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Tags", "type": "string", "jsonPath": ".spec.tags", "priority": 1},
        {"name": "First", "type": "string", "jsonPath": ".spec.parts[0].name"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    ])
}

fn widget_schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
            "colour": {"type": "string", "enum": ["red", "green", "blue"], "x-kubernetes-validations": [
                {"rule": "self != 'blue' || oldSelf.orValue('none') != 'red'", "message": "red does not turn blue", "optionalOldSelf": true}]},
            "port": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 20}, "maxItems": 5,
                "x-kubernetes-validations": [{"rule": "self.size() < 3 || self.exists(tag, tag == 't1')"}]},
            "list": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
            "parts": {"type": "array", "maxItems": 8, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                "type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "maxLength": 20}, "weight": {"type": "integer", "default": 3}, "kind": {"type": "string", "maxLength": 20}},
                    "x-kubernetes-validations": [
                        {"rule": "!has(self.kind) || self.kind != 'red' || self.weight < 3", "messageExpression": "'the red part ' + self.name + ' is too heavy'", "message": "too heavy", "fieldPath": ".weight"},
                        {"rule": "!has(oldSelf.kind) || has(self.kind)", "message": "kinds stay", "reason": "FieldValueRequired", "fieldPath": ".kind"},
                        {"rule": "self.weight != 4 || self.name != 'p1'", "reason": "FieldValueDuplicate"}]},
                "x-kubernetes-validations": [
                    {"rule": "self.map(part, part.weight).sum() <= 9", "messageExpression": "'together with ' + self[0].name + ' they weigh too much'"},
                    {"rule": "size(oldSelf) < 3 || size(self) > 0", "message": "three parts do not go at once"}]},
            "map": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [
                    {"rule": "self != '0'", "messageExpression": "self == '0' ? 'zero is no value' : ''", "reason": "FieldValueInvalid"},
                    {"rule": "oldSelf != 'x-y.z' || self == oldSelf", "message": "it is fixed"}]},
                "x-kubernetes-validations": [{"rule": "oldSelf.all(key, key in self)", "message": "keys stay", "reason": "FieldValueForbidden"}]},
            "limits": {"type": "object", "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}, "unit": {"type": "string", "maxLength": 8}},
                "x-kubernetes-validations": [
                    {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "messageExpression": "'low is above high, in ' + self.unit", "message": "low is above high", "fieldPath": ".low"},
                    {"rule": "10 / self.high < 10", "message": "high is too low"},
                    {"rule": "!has(oldSelf.unit) || (has(self.unit) && self.unit == oldSelf.unit)", "message": "the unit is fixed", "reason": "FieldValueForbidden", "fieldPath": ".unit"}]},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
            "nested": {"type": "object", "properties": {"deep": {"type": "object", "default": {}, "properties": {
                "deeper": {"type": "integer"}, "flag": {"type": "boolean", "default": true}}}}},
            "maybe": {"type": "string", "nullable": true},
            "ratio": {"type": "number"},
            "replicas": {"type": "integer", "format": "int32"},
            "pattern": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 10}
        }, "x-kubernetes-validations": [
            {"rule": "!has(self.size) || !has(self.replicas) || self.replicas <= self.size + 5", "message": "replicas must not exceed size by more than 5"},
            {"rule": "!has(oldSelf.colour) || has(self.colour)", "message": "colour cannot be taken away", "reason": "FieldValueForbidden", "fieldPath": ".colour"}
        ]},
        "status": {"type": "object", "properties": {
            "phase": {"type": "string"}, "replicas": {"type": "integer"},
            "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": {
                "type": "object", "required": ["type", "status"], "properties": {
                    "type": {"type": "string"}, "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                    "reason": {"type": "string"}, "message": {"type": "string"}, "lastTransitionTime": {"type": "string", "format": "date-time"}}}}
        }}
    }, "x-kubernetes-validations": [
        {"rule": "!has(self.spec) || !has(self.spec.size) || self.spec.size != 7 || self.metadata.name != 'c'", "messageExpression": "self.metadata.name + ' is never 7'"}
    ]})
}

pub(super) fn widget_definition() -> Value {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": widget_schema()},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "selectableFields": [{"jsonPath": ".spec.colour"}], "additionalPrinterColumns": columns()})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.tests.berth.dev"},
        "spec": {"group": "tests.berth.dev", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [version("v1", true), version("v1beta1", false)]}})
}

pub(super) fn gadget_definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.tests.berth.dev"},
        "spec": {"group": "tests.berth.dev", "scope": "Cluster", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "required": ["level"], "properties": {
                "level": {"type": "integer"}, "spec": {"type": "object", "properties": {"power": {"type": "string"}}},
                "status": {"type": "object", "properties": {"seen": {"type": "string"}}}}}}}]}})
}

/// A definition that is only ever tried: the real server says later, and when it pleases, that it serves it.
pub(super) fn definition(random: &mut Random) -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "maxLength": 5 + random.below(5)},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {"type": "object", "additionalProperties": {"type": "string"}}}}}});
    let mut version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    maybe(random, 40, &mut version, "subresources", |_| json!({"status": {}}));
    maybe(
        random,
        30,
        &mut version,
        "additionalPrinterColumns",
        |_| json!([{"name": "A", "type": "string", "jsonPath": ".spec.a"}]),
    );
    maybe(random, 20, &mut version, "selectableFields", |_| json!([{"jsonPath": ".spec.a"}]));
    let mut names = json!({"plural": "{plural}", "kind": *random.pick(&["Thing", "Item"])});
    maybe(random, 30, &mut names, "shortNames", |_| json!(["th"]));
    maybe(random, 30, &mut names, "categories", |_| json!(["all"]));
    json!({"spec": {"group": "made.berth.dev", "scope": *random.pick(&["Namespaced", "Cluster"]), "names": names, "versions": [version]}})
}
