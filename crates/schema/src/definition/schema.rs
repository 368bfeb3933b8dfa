//! The schema of a version.
//!
//! Owns what is asked of it beyond being structural: which keywords are served, that the list and map types fit, that
//! defaults are sound and that the rules compile.

use serde_json::Value;

use super::{
    defaults::validate_defaults,
    props::{Additional, Props, deeper_than},
    structural::check_structural,
};
use crate::{
    compile::{SCHEMA_DEPTH_MAX, compile},
    format,
    node::{Arena, Schema},
    path::FieldPath,
    problem::{Problem, ProblemKind},
    rules::{RuleReport, report_rules, resolve_field_path},
};

/// What depends on the rest of the definition.
pub(super) struct SchemaRules {
    /// Whether the status is written apart, so that its schema must stand alone.
    pub(super) status_subresource: bool,
}

/// Keywords that may be used at the root of a schema whose status is written apart, with their names in messages.
const ROOT_KEYWORDS: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// Checks `{openAPIV3Schema: ...}` at a path; `old` is what was there before.
pub(super) fn validate_schema(
    validation: &Value,
    old: Option<&Value>,
    rules: &SchemaRules,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let Some(schema) = validation.get("openAPIV3Schema").filter(|schema| !schema.is_null()) else { return };
    let schema_path = path.field("openAPIV3Schema");
    let Some(props) = Props::of(schema) else {
        found.push(Problem::invalid(&schema_path, schema, "must be an object"));
        return;
    };
    if deeper_than(schema, 2 * SCHEMA_DEPTH_MAX) {
        let rule = format!("must not be nested deeper than {SCHEMA_DEPTH_MAX} levels");
        found.push(Problem::forbidden(&schema_path, &rule));
        return;
    }
    if rules.status_subresource {
        validate_root(schema, props, path, found);
    }
    if props.flag("nullable") {
        found.push(Problem::forbidden(
            &path.field("openAPIV3Schema.nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let old = old.and_then(|old| old.get("openAPIV3Schema"));
    // A schema that was taken once is not refused later for not being structural.
    let was_structural = old.is_none_or(|old| check_structural(old, &FieldPath::root()).is_empty());
    // Keywords that are not served at all say enough.
    let structural = if was_structural && !has_unserved(props) {
        check_structural(schema, &schema_path)
    } else {
        Vec::new()
    };
    let mut arena = Arena::default();
    let compiled = compile(&mut arena, schema);
    let mut described = None;
    if !structural.is_empty() {
        found.extend(structural);
    } else if let Ok(root) = &compiled {
        let problems = validate_defaults(arena.schema(*root), &schema_path);
        if problems.is_empty() {
            described = Some(arena.schema(*root));
        }
        found.extend(problems);
    }
    let mut walk = Walk { schema: Vec::new(), cel: Vec::new() };
    walk.visit(props, &schema_path, &Context::default(), true, described);
    let sound = found.is_empty() && walk.schema.is_empty() && walk.cel.is_empty();
    found.append(&mut walk.schema);
    found.append(&mut walk.cel);
    if let Err(problems) = compiled
        && sound
    {
        for problem in problems {
            let path = schema_path.field(problem.path.as_str());
            found.push(Problem { path, ..problem });
        }
    }
}

/// The root of a schema whose status is checked on its own says nothing that would be lost then.
fn validate_root(schema: &Value, props: Props<'_>, path: &FieldPath, found: &mut Vec<Problem>) {
    let kind = props.kind();
    if !kind.is_empty() && kind != "object" {
        let rule = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        found.push(Problem::invalid_text(&path.field("openAPIV3Schema.type"), kind, rule));
        return;
    }
    if props.said().any(|name| !ROOT_KEYWORDS.iter().any(|(allowed, _)| *allowed == name)) {
        let names: Vec<&str> = ROOT_KEYWORDS.iter().map(|(_, name)| *name).collect();
        let rule = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        found.push(Problem::invalid(&path.field("openAPIV3Schema"), schema, &rule));
    }
}

/// What holds for everything below a place.
#[derive(Clone, Default)]
struct Context {
    inside_metadata: bool,
    /// Why there must be no defaults.
    no_defaults: Option<String>,
    /// The place whose parts cannot be told which is which after a change.
    uncorrelatable: Option<FieldPath>,
}

struct Walk {
    schema: Vec<Problem>,
    cel: Vec<Problem>,
}

impl Walk {
    fn visit(
        &mut self,
        props: Props<'_>,
        path: &FieldPath,
        context: &Context,
        root: bool,
        described: Option<Schema<'_>>,
    ) {
        let before = self.schema.len();
        self.keywords(props, path, context);
        if props.flag("uniqueItems") {
            let rule = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.schema.push(Problem::forbidden(&path.field("uniqueItems"), rule));
        }
        self.children(props, path, context, root, described);
        if props.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = path.field("x-kubernetes-preserve-unknown-fields");
            self.schema.push(Problem::invalid(&path, &Value::Bool(false), "must be true or undefined"));
        }
        self.map_type(props, path);
        self.list_type(props, path);
        self.list_keys(props, path);
        let rules = props.list("x-kubernetes-validations");
        if !rules.is_empty() {
            self.rules(rules, described, path);
            // What is wrong with the schema makes for messages about the rules that help nobody.
            if self.schema.len() == before
                && let Some(described) = described
            {
                self.expressions(
                    rules,
                    described,
                    root || props.flag("x-kubernetes-embedded-resource"),
                    context,
                    path,
                );
            }
        }
    }

    fn keywords(&mut self, props: Props<'_>, path: &FieldPath, context: &Context) {
        const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
        let kind = props.kind();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.schema.push(Problem::not_supported(&path.field("type"), &kind.into(), &TYPES));
        }
        if let Some(reason) = context.no_defaults.as_ref().filter(|_| props.get("default").is_some()) {
            self.schema
                .push(Problem::forbidden(&path.field("default"), &format!("must not be set {reason}")));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            let set = match name {
                "additionalItems" | "dependencies" | "$ref" => props.get(name).is_some(),
                name => props.says(name),
            };
            if set {
                self.schema.push(Problem::forbidden(&path.field(name), &format!("{name} is not supported")));
            }
        }
        if kind == "null" {
            let rule = "type cannot be set to null, use nullable as an alternative";
            self.schema.push(Problem::forbidden(&path.field("type"), rule));
        }
        if !props.list("items").is_empty() {
            let rule = "items must be a schema object and not an array";
            self.schema.push(Problem::forbidden(&path.field("items"), rule));
        }
        if context.inside_metadata && props.flag("x-kubernetes-embedded-resource") {
            let path = path.field("x-kubernetes-embedded-resource");
            self.schema.push(Problem::forbidden(&path, "must not be used inside of resource meta"));
        }
    }

    fn children(
        &mut self,
        props: Props<'_>,
        path: &FieldPath,
        context: &Context,
        root: bool,
        described: Option<Schema<'_>>,
    ) {
        let object = root || props.flag("x-kubernetes-embedded-resource");
        if let Some(additional) = props.additional() {
            let path = path.field("additionalProperties");
            let open = matches!(additional, Additional::Bool(true));
            if !open && props.properties().next().is_some() {
                let rule = "additionalProperties and properties are mutual exclusive";
                self.schema.push(Problem::forbidden(&path, rule));
            }
            if let Additional::Schema(additional) = additional {
                let mut context = context.clone();
                if context.inside_metadata {
                    context.no_defaults =
                        Some("inside additionalProperties applying to object metadata".to_owned());
                }
                self.visit(additional, &path, &context, false, described.and_then(Schema::additional));
            }
        }
        for (name, property) in props.properties() {
            let mut context = context.clone();
            if object && matches!(name, "metadata" | "kind" | "apiVersion") {
                context.inside_metadata = true;
                if root {
                    context.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            let path = path.field("properties").key(name);
            self.visit(property, &path, &context, false, described.and_then(|schema| schema.property(name)));
        }
        if let Some(part) = props.not() {
            self.visit(part, &path.field("not"), context, false, None);
        }
        for junctor in ["allOf", "oneOf", "anyOf"] {
            for (index, part) in props.schemas(junctor) {
                self.visit(part, &path.field(junctor).index(index), context, false, None);
            }
        }
        if let Some(items) = props.items() {
            let mut context = context.clone();
            if props.text("x-kubernetes-list-type") != "map" && context.uncorrelatable.is_none() {
                context.uncorrelatable = Some(path.clone());
            }
            self.visit(items, &path.field("items"), &context, false, described.and_then(Schema::items));
        }
    }

    fn map_type(&mut self, props: Props<'_>, path: &FieldPath) {
        let Some(kind) = props.get("x-kubernetes-map-type").and_then(Value::as_str) else { return };
        self.wanted_type(props, "object", "x-kubernetes-map-type", path);
        if !matches!(kind, "atomic" | "granular") {
            let path = path.field("x-kubernetes-map-type");
            self.schema.push(Problem::not_supported(&path, &kind.into(), &["atomic", "granular"]));
        }
    }

    fn wanted_type(&mut self, props: Props<'_>, wanted: &str, keyword: &str, path: &FieldPath) -> bool {
        let rule = format!("must be {wanted} if {keyword} is specified");
        match props.kind() {
            "" => self.schema.push(Problem::required(&path.field("type"), &rule)),
            kind if kind != wanted => {
                self.schema.push(Problem::invalid_text(&path.field("type"), kind, &rule));
            }
            _ => return true,
        }
        false
    }

    fn list_type(&mut self, props: Props<'_>, path: &FieldPath) {
        let kind = props.get("x-kubernetes-list-type").and_then(Value::as_str);
        let type_path = path.field("x-kubernetes-list-type");
        if let Some(kind) = kind {
            if self.wanted_type(props, "array", "x-kubernetes-list-type", path)
                && kind == "set"
                && let Some(items) = props.items()
            {
                let rule = "must be atomic as item of a list with x-kubernetes-list-type=set";
                let inner = items.get("x-kubernetes-list-type");
                let shown = inner.cloned().unwrap_or(Value::Null);
                let keyword = match items.kind() {
                    "array" if inner.and_then(Value::as_str).is_some_and(|kind| kind != "atomic") => {
                        Some("x-kubernetes-list-type")
                    }
                    "object" if items.text("x-kubernetes-map-type") != "atomic" => {
                        Some("x-kubernetes-map-type")
                    }
                    _ => None,
                };
                if let Some(keyword) = keyword {
                    self.schema.push(Problem::invalid(&path.field("items").field(keyword), &shown, rule));
                }
            }
            if !matches!(kind, "atomic" | "set" | "map") {
                self.schema.push(Problem::not_supported(&type_path, &kind.into(), &["atomic", "set", "map"]));
            }
        }
        if !props.list("x-kubernetes-list-map-keys").is_empty() {
            let rule = "must be map if x-kubernetes-list-map-keys is non-empty";
            match kind {
                None => self.schema.push(Problem::required(&type_path, rule)),
                Some("map") => {}
                Some(other) => self.schema.push(Problem::invalid_text(&type_path, other, rule)),
            }
        }
        if kind == Some("map") {
            self.keyed_list(props, path);
        }
    }

    fn keyed_list(&mut self, props: Props<'_>, path: &FieldPath) {
        let keys_path = path.field("x-kubernetes-list-map-keys");
        let keys = props.list("x-kubernetes-list-map-keys");
        if keys.is_empty() {
            self.schema
                .push(Problem::required(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
        }
        let Some(items) = props.items() else {
            if props.get("items").is_none() {
                let rule = "must have a schema if x-kubernetes-list-type is map";
                self.schema.push(Problem::required(&path.field("items"), rule));
            }
            return;
        };
        if items.kind() != "object" {
            let rule = "must be object if parent array's x-kubernetes-list-type is map";
            let path = path.field("items").field("type");
            self.schema.push(Problem::invalid_text(&path, items.kind(), rule));
            return;
        }
        let mut seen = std::collections::HashSet::new();
        for key in props.texts("x-kubernetes-list-map-keys") {
            match items.property(key) {
                Some(property) if matches!(property.kind(), "array" | "object") => {
                    let rule = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let path = path.field("items").field("properties").key(key).field("type");
                    self.schema.push(Problem::invalid_text(&path, items.kind(), rule));
                }
                Some(_) => {}
                None => {
                    let rule = "entries must all be names of item properties";
                    self.schema.push(Problem::invalid(&keys_path, &Value::Array(keys.to_vec()), rule));
                }
            }
            if !seen.insert(key) {
                let rule = "must not contain duplicate entries";
                self.schema.push(Problem::invalid(&keys_path, &Value::Array(keys.to_vec()), rule));
            }
        }
    }

    /// The items of sets and maps are never null, and those of maps always have their keys.
    fn list_keys(&mut self, props: Props<'_>, path: &FieldPath) {
        let kind = props.text("x-kubernetes-list-type");
        let (Some(items), "set" | "map") = (props.items(), kind) else { return };
        let path = path.field("items");
        if items.flag("nullable") {
            let rule = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
            self.schema.push(Problem::forbidden(&path.field("nullable"), &rule));
        }
        if kind != "map" {
            return;
        }
        for key in props.texts("x-kubernetes-list-map-keys") {
            let Some(property) = items.property(key) else { continue };
            let path = path.field("properties").key(key);
            if !items.texts("required").any(|required| required == key) && property.get("default").is_none() {
                let rule = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.schema.push(Problem::required(&path.field("default"), rule));
            }
            if property.flag("nullable") {
                let rule = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.schema.push(Problem::forbidden(&path.field("nullable"), rule));
            }
        }
    }

    /// What rules say beside their expressions.
    fn rules(&mut self, rules: &[Value], described: Option<Schema<'_>>, path: &FieldPath) {
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        for (index, rule) in rules.iter().enumerate() {
            let Some(rule) = Props::of(rule) else { continue };
            let path = path.field("x-kubernetes-validations").index(index);
            let (text, message) = (rule.text("rule"), rule.text("message"));
            let broken = |text: &str| text.contains(['\n', '\r']);
            if text.trim().is_empty() {
                self.schema.push(Problem::required(&path.field("rule"), "rule is not specified"));
            } else if !message.is_empty() && message.trim().is_empty() {
                self.wrong(&path.field("message"), message, "must be non-empty if specified");
            } else if broken(message.trim()) {
                self.wrong(&path.field("message"), message, "must not contain line breaks");
            } else if broken(text.trim()) && message.trim().is_empty() {
                let rule = "message must be specified if rule contains line breaks";
                self.schema.push(Problem::required(&path.field("message"), rule));
            }
            let expression = rule.text("messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                let rule = "messageExpression must be non-empty if specified";
                self.schema.push(Problem::required(&path.field("messageExpression"), rule));
            }
            if let Some(reason) = rule
                .get("reason")
                .filter(|reason| !reason.as_str().is_some_and(|reason| REASONS.contains(&reason)))
            {
                self.schema.push(Problem::not_supported(&path.field("reason"), reason, &REASONS));
            }
            let field = rule.text("fieldPath");
            let path = path.field("fieldPath");
            if !field.is_empty() && field.trim().is_empty() {
                self.wrong(&path, field, "must be non-empty if specified");
            }
            if broken(field) {
                self.wrong(&path, field, "must not contain line breaks");
            }
            if !field.is_empty()
                && described.is_some_and(|schema| resolve_field_path(field, schema, true).is_err())
            {
                self.wrong(&path, field, "must be a valid path");
            }
        }
    }

    fn wrong(&mut self, path: &FieldPath, text: &str, rule: &str) {
        self.schema.push(Problem::invalid_text(path, text, rule));
    }

    fn expressions(
        &mut self,
        rules: &[Value],
        described: Schema<'_>,
        root: bool,
        context: &Context,
        path: &FieldPath,
    ) {
        let path = path.field("x-kubernetes-validations");
        let Some(reports) = report_rules(described, root) else {
            let rule = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            self.cel.push(Problem::internal(&path, rule));
            return;
        };
        for RuleReport { index, failure, uses_old } in reports {
            if let Some(failure) = failure {
                self.cel.push(failure.problem(&path, described.node()));
            }
            let Some(rule) = rules.get(index).and_then(Props::of) else { continue };
            let path = path.index(index);
            if uses_old {
                if let Some(place) = &context.uncorrelatable {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {place}"
                    );
                    self.cel.push(Problem::invalid_text(&path.field("rule"), rule.text("rule"), &detail));
                }
            } else if let Some(optional) = rule.get("optionalOldSelf") {
                let detail = "may not be set if oldSelf is not used in rule";
                self.cel.push(Problem::with_value(
                    &path.field("optionalOldSelf"),
                    ProblemKind::Invalid,
                    optional,
                    detail,
                ));
            }
        }
    }
}

/// Whether a schema has keywords that no structural schema has.
fn has_unserved(props: Props<'_>) -> bool {
    let unserved = ["id", "$schema", "patternProperties", "definitions"].iter().any(|name| props.says(name))
        || ["additionalItems", "dependencies", "$ref"].iter().any(|name| props.get(name).is_some())
        || !props.list("items").is_empty();
    unserved || children(props).any(has_unserved)
}

/// Every schema directly inside another.
fn children(props: Props<'_>) -> impl Iterator<Item = Props<'_>> {
    let additional = match props.additional() {
        Some(Additional::Schema(schema)) => Some(schema),
        _ => None,
    };
    let parts = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(move |name| props.schemas(name).map(|(_, part)| part));
    let properties = props.properties().map(|(_, property)| property);
    props.items().into_iter().chain(parts).chain(props.not()).chain(properties).chain(additional)
}

/// The formats in the schemas of a definition that nobody checks values against.
pub(super) fn unknown_formats(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let schemas =
        versions.into_iter().flatten().filter_map(|version| version.pointer("/schema/openAPIV3Schema"));
    let mut seen: Vec<&Value> = Vec::new();
    for schema in schemas {
        // What all versions have in common is spoken of once.
        if seen.contains(&schema) || deeper_than(schema, 2 * SCHEMA_DEPTH_MAX) {
            continue;
        }
        seen.push(schema);
        if let Some(props) = Props::of(schema) {
            collect_formats(props, &mut found);
        }
    }
    found
}

fn collect_formats(props: Props<'_>, found: &mut Vec<String>) {
    let format = props.text("format");
    let known = match props.kind() {
        "" | "string" => format::known(format).is_some(),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    if !format.is_empty() && !known {
        found.push(format.to_owned());
    }
    for child in children(props) {
        collect_formats(child, found);
    }
}
