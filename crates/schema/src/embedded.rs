//! Objects inside objects.
//!
//! Owns what is asked of a value at `x-kubernetes-embedded-resource`: it says what it is, and its metadata is sound. The
//! object they are in is not looked at here.

use serde_json::{Map, Value};

use crate::{
    DEPTH_MAX,
    metadata::{MetadataRules, NamespaceRule, validate_metadata_at},
    names::{self, NameRule},
    node::Schema,
    path::Place,
    problem::{Problem, Problems},
};

/// Everything that is wrong with the objects embedded in a value.
pub fn validate_embedded(value: &Value, schema: Schema<'_>) -> Vec<Problem> {
    validate_embedded_below(&Place::Root, value, schema, false)
}

/// As [`validate_embedded`], below a place; with `root` the value is an object itself.
pub(crate) fn validate_embedded_below(
    place: &Place<'_>,
    value: &Value,
    schema: Schema<'_>,
    root: bool,
) -> Vec<Problem> {
    let mut problems = Problems::default();
    check(value, schema, root, place, &mut problems, DEPTH_MAX);
    problems.finish()
}

fn check(
    value: &Value,
    schema: Schema<'_>,
    root: bool,
    place: &Place<'_>,
    problems: &mut Problems,
    depth: usize,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(fields) => {
            if root || schema.node().embedded_resource {
                check_object(fields, place, problems);
            }
            for (name, field) in fields.iter().filter(|(_, field)| field.is_object() || field.is_array()) {
                if let Some(property) = schema.property(name) {
                    check(field, property, false, &Place::Field(place, name), problems, depth);
                } else if let Some(additional) = schema.additional() {
                    check(field, additional, false, &Place::Key(place, name), problems, depth);
                }
            }
        }
        Value::Array(entries) => {
            if let Some(items) = schema.items() {
                for (index, entry) in entries.iter().enumerate() {
                    check(entry, items, false, &Place::Index(place, index), problems, depth);
                }
            }
        }
        _ => {}
    }
}

fn check_object(fields: &Map<String, Value>, place: &Place<'_>, problems: &mut Problems) {
    let path = place.path();
    for name in ["apiVersion", "kind"].into_iter().filter(|name| !fields.contains_key(*name)) {
        problems.add(|| Problem::required(&path.field(name), ""));
    }
    for (name, field) in fields {
        let mut wrong = |rule: &str| problems.add(|| Problem::invalid(&path.field(name), field, rule));
        match (name.as_str(), field) {
            ("apiVersion" | "kind", Value::String(text)) if text.is_empty() => wrong("must not be empty"),
            ("apiVersion", Value::String(text)) if text.matches('/').count() > 1 => {
                wrong(&format!("unexpected GroupVersion string: {text}"));
            }
            ("kind", Value::String(text)) => {
                let rules = names::dns_1035_label(&text.to_lowercase());
                if !rules.is_empty() {
                    wrong(&format!("may have mixed case, but should otherwise match: {}", rules.join(",")));
                }
            }
            ("apiVersion" | "kind", other) if !other.is_string() => wrong("must be a string"),
            ("metadata", metadata) => {
                let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
                let namespaced = !text("namespace").is_empty();
                let rules = MetadataRules {
                    namespace: if namespaced { NamespaceRule::Required } else { NamespaceRule::Optional },
                    name: NameRule::PathSegment,
                    unnamed: true,
                };
                let nameless = text("name").is_empty();
                for problem in validate_metadata_at(&path.field("metadata"), Some(metadata), rules) {
                    // An embedded object need not have a name.
                    let unnamed = nameless && problem.kind == crate::ProblemKind::Required;
                    if !unnamed {
                        problems.add(|| problem);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{compile, node::Arena};

    #[test]
    fn an_embedded_object_says_what_it_is_and_has_sound_metadata() {
        let mut arena = Arena::default();
        let schema = json!({
            "type": "object",
            "properties": {"list": {"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": true}}},
        });
        let id = compile(&mut arena, &schema).unwrap();
        let value = json!({"list": [
            {},
            {"apiVersion": "a/b/c", "kind": "No Kind", "metadata": {"name": "a/b", "labels": {"-": "x"}}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "n"}},
            {"apiVersion": "v1", "kind": "Pod"},
            {"apiVersion": "", "kind": 7},
        ]});
        let found: Vec<String> =
            validate_embedded(&value, arena.schema(id)).iter().map(ToString::to_string).collect();
        let heads: Vec<&str> = found.iter().filter_map(|text| text.split(": ").next()).collect();
        assert_eq!(
            heads,
            [
                "list[0].apiVersion",
                "list[0].kind",
                "list[1].apiVersion",
                "list[1].kind",
                "list[1].metadata.name",
                "list[1].metadata.labels",
                "list[4].apiVersion",
                "list[4].kind",
            ],
            "{found:#?}"
        );
    }
}
