//! What makes a schema structural.
//!
//! Owns Kubernetes' rules for it: every value has one type that is said outside of the logical junctors, and what the
//! junctors speak of is described outside of them. Problems come sorted by their text, as Kubernetes gives them.

use serde_json::Value;

use super::props::{Additional, Props, deeper_than};
use crate::{compile::SCHEMA_DEPTH_MAX, path::FieldPath, pattern, problem::Problem};

/// Where in an object a schema is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why a schema is not structural; none if it is. Paths begin with `path`, the place of the schema itself.
pub fn check_structural(schema: &Value, path: &FieldPath) -> Vec<Problem> {
    if deeper_than(schema, 2 * SCHEMA_DEPTH_MAX) {
        let rule = format!("must not be nested deeper than {SCHEMA_DEPTH_MAX} levels");
        return vec![Problem::forbidden(path, &rule)];
    }
    let Some(props) = Props::of(schema) else {
        return vec![Problem::invalid(path, schema, "must be an object")];
    };
    let mut found = Vec::new();
    invariants(props, Level::Root, path, &mut found);
    completeness(props, Some(props), path, path, &mut found);
    found.sort_by_cached_key(ToString::to_string);
    found
}

fn invariants(schema: Props<'_>, level: Level, path: &FieldPath, found: &mut Vec<Problem>) {
    let kind = schema.kind();
    let embedded = schema.flag("x-kubernetes-embedded-resource");
    let preserve = schema.flag("x-kubernetes-preserve-unknown-fields");
    let int_or_string = schema.flag("x-kubernetes-int-or-string");
    match schema.items() {
        Some(items) => invariants(items, Level::Item, &path.field("items"), found),
        None if kind == "array" => found.push(Problem::required(&path.field("items"), "must be specified")),
        None => {}
    }
    for (name, property) in schema.properties() {
        invariants(property, Level::Field, &path.field("properties").key(name), found);
    }
    if let Some(additional) = schema.additional() {
        let path = path.field("additionalProperties");
        if level == Level::Root {
            found.push(Problem::forbidden(&path, "must not be used at the root"));
        }
        if let Additional::Schema(additional) = additional {
            invariants(additional, Level::Field, &path, found);
        }
        if embedded {
            found
                .push(Problem::forbidden(&path, "must not be used if x-kubernetes-embedded-resource is set"));
        }
    }
    for (name, set) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let rule = "must be false if x-kubernetes-int-or-string is true";
            found.push(Problem::invalid(&path.field(name), &Value::Bool(true), rule));
        }
    }
    let skip_first_all_of = schema.schemas("allOf").next().is_some_and(|(_, first)| is_int_or_string(first));
    value_rules(schema, is_int_or_string(schema), skip_first_all_of, path, found);
    if embedded && kind != "object" {
        let rule = "must be object if x-kubernetes-embedded-resource is true";
        found.push(match kind {
            "" => Problem::required(&path.field("type"), rule),
            kind => Problem::invalid_text(&path.field("type"), kind, rule),
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let rule = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        found.push(Problem::required(&path.field("type"), rule));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        found.push(Problem::invalid_text(&path.field("type"), kind, "must be object at the root"));
    }
    metadata(schema, level, embedded, path, found);
    if embedded && !preserve && schema.properties().next().is_none() {
        let rule = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        found.push(Problem::required(&path.field("properties"), rule));
    }
}

/// What every object has is described by nobody but Kubernetes.
fn metadata(schema: Props<'_>, level: Level, embedded: bool, path: &FieldPath, found: &mut Vec<Problem>) {
    let object = level == Level::Root || embedded;
    for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(property) = schema.property(name).filter(|_| object) else { continue };
        if property.kind() != wanted {
            let path = path.field("properties").key(name).field("type");
            found.push(Problem::invalid_text(&path, property.kind(), &format!("must be {wanted}")));
        }
    }
    let Some(metadata) = schema.property("metadata").filter(|_| level == Level::Root) else { return };
    let named_only = metadata.properties().all(|(name, _)| matches!(name, "name" | "generateName"));
    let other = metadata.said().any(|name| match name {
        "type" | "default" => false,
        "properties" => !named_only,
        _ => true,
    });
    if other {
        let rule = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        found.push(Problem::forbidden(&path.field("properties").key("metadata"), rule));
    }
}

/// Whether the alternatives are an integer and a text and nothing else, which may be said beside the extension.
fn is_int_or_string(schema: Props<'_>) -> bool {
    let plain = |schema: &Value, wanted: &str| {
        Props::of(schema)
            .is_some_and(|schema| schema.kind() == wanted && schema.said().all(|name| name == "type"))
    };
    matches!(schema.list("anyOf"), [first, second] if plain(first, "integer") && plain(second, "string"))
}

fn value_rules(
    schema: Props<'_>,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    if !skip_any_of {
        for (index, part) in schema.schemas("anyOf") {
            nested(part, false, &path.field("anyOf").index(index), found);
        }
    }
    for (index, part) in schema.schemas("allOf") {
        nested(part, skip_first_all_of && index == 0, &path.field("allOf").index(index), found);
    }
    for (index, part) in schema.schemas("oneOf") {
        nested(part, false, &path.field("oneOf").index(index), found);
    }
    if let Some(part) = schema.not() {
        nested(part, false, &path.field("not"), found);
    }
    let expression = schema.text("pattern");
    if !expression.is_empty()
        && let Err(reason) = pattern::is_match(expression, "")
    {
        let rule = format!("must be a valid regular expression, but isn't: {reason}");
        found.push(Problem::invalid_text(&path.field("pattern"), expression, &rule));
    }
}

/// Inside a junctor values are only judged, not described.
fn nested(schema: Props<'_>, skip_any_of: bool, path: &FieldPath, found: &mut Vec<Problem>) {
    const FORBIDDEN: [(&str, &str); 12] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
    ];
    value_rules(schema, skip_any_of, false, path, found);
    if let Some(items) = schema.items() {
        nested(items, false, &path.field("items"), found);
    }
    for (name, property) in schema.properties() {
        nested(property, false, &path.field("properties").key(name), found);
    }
    for (name, rule) in FORBIDDEN {
        let set = match name {
            "additionalProperties" | "default" => schema.get(name).is_some(),
            name => schema.says(name),
        };
        if set {
            found.push(Problem::forbidden(&path.field(name), rule));
        }
    }
    if schema.says("x-kubernetes-validations") {
        found.push(Problem::forbidden(
            &path.field("x-kubernetes-validations"),
            "must be empty to be structural",
        ));
    }
    if schema.property("metadata").is_some() {
        let path = path.field("properties").key("metadata");
        found.push(Problem::forbidden(&path, "must not be specified in a nested context"));
    }
}

/// Checks that what the junctors of `rules` speak of is described by `schema`.
fn completeness(
    rules: Props<'_>,
    schema: Option<Props<'_>>,
    path: &FieldPath,
    rules_path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let Some(schema) = schema else {
        found.push(Problem::required(path, &format!("because it is defined in {rules_path}")));
        return;
    };
    if let Some(part) = rules.not() {
        nested_completeness(part, schema, path, &rules_path.field("not"), found);
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in rules.schemas(junctor) {
            nested_completeness(part, schema, path, &rules_path.field(junctor).index(index), found);
        }
    }
}

fn nested_completeness(
    rules: Props<'_>,
    schema: Props<'_>,
    path: &FieldPath,
    rules_path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    completeness(rules, Some(schema), path, rules_path, found);
    if let Some(items) = rules.items() {
        let (path, rules_path) = (path.field("items"), rules_path.field("items"));
        match schema.items() {
            Some(schema) => nested_completeness(items, schema, &path, &rules_path, found),
            None => completeness(items, None, &path, &rules_path, found),
        }
    }
    for (name, property) in rules.properties() {
        let (path, rules_path) =
            (path.field("properties").key(name), rules_path.field("properties").key(name));
        match schema.property(name) {
            Some(schema) => nested_completeness(property, schema, &path, &rules_path, found),
            None => completeness(property, None, &path, &rules_path, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(schema: &Value) -> Vec<String> {
        check_structural(schema, &FieldPath::from("s")).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_structural_schema_has_nothing_wrong_with_it() {
        let schema = json!({
            "type": "object",
            "properties": {
                "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}}},
                "spec": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "x"}]},
                        "size": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                        "free": {"x-kubernetes-preserve-unknown-fields": true},
                    },
                    "oneOf": [{"required": ["a"]}, {"properties": {"a": {"maxLength": 3}}}],
                },
            },
        });
        assert_eq!(problems(&schema), [] as [&str; 0]);
    }

    #[test]
    fn each_breach_is_told_in_kubernetes_words_and_sorted() {
        let schema = json!({
            "type": "array",
            "additionalProperties": {"type": "string"},
            "properties": {
                "metadata": {"type": "object", "description": "mine"},
                "kind": {"type": "integer"},
                "a": {},
                "b": {"type": "string", "pattern": "(", "not": {"type": "string", "default": "x"}},
                "c": {"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true},
                "d": {"x-kubernetes-embedded-resource": true, "type": "object"},
                "e": {"type": "array", "items": {}},
            },
            "allOf": [{"properties": {"z": {"minimum": 1}}}],
        });
        let found = problems(&schema);
        let heads: Vec<&str> =
            found.iter().filter_map(|text| text.split(": must be a valid regular").next()).collect();
        assert_eq!(
            heads,
            [
                "s.additionalProperties: Forbidden: must not be used at the root",
                "s.items: Required value: must be specified",
                "s.properties[a].type: Required value: must not be empty for specified object fields",
                "s.properties[b].not.default: Forbidden: must be undefined to be structural",
                "s.properties[b].not.type: Forbidden: must be empty to be structural",
                "s.properties[b].pattern: Invalid value: \"(\"",
                "s.properties[c].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
                "s.properties[d].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
                "s.properties[e].items.type: Required value: must not be empty for specified array items",
                "s.properties[kind].type: Invalid value: \"integer\": must be string",
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
                "s.properties[z]: Required value: because it is defined in s.allOf[0].properties[z]",
                "s.type: Invalid value: \"array\": must be object at the root",
            ]
        );
    }
}
