//! The versions of a definition.
//!
//! Owns what is asked of each of them: its name, its schema, its subresources, columns and selectable fields. What all
//! versions have in common is looked at once.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    schema::{SchemaRules, validate_schema},
    text,
};
use crate::{
    compile::compile,
    gotext, names,
    node::{Arena, Shape},
    path::FieldPath,
    problem::{Problem, ProblemKind},
    rules::resolve_field_path,
};

/// The most selectable fields of a version.
const SELECTABLE_FIELDS_MAX: usize = 8;
/// The longest warning of a deprecated version, in bytes.
const DEPRECATION_WARNING_BYTES_MAX: usize = 256;

/// What all versions have in common, and is therefore found at the top of the spec.
pub(super) struct Common<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
    /// Whether each of them is the same in all versions, if only in being absent.
    same: [bool; 4],
}

const PARTS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

impl<'a> Common<'a> {
    pub(super) fn of(spec: &'a Map<String, Value>) -> Self {
        let versions = versions(spec);
        let part = |name: &str| {
            let of = |version: &'a Value| {
                version
                    .get(name)
                    .filter(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
            };
            let first = versions.first().and_then(of);
            let same = versions.iter().all(|version| of(version) == first);
            (first.filter(|_| same), same)
        };
        let [schema, subresources, columns, selectable] = PARTS.map(part);
        Self {
            schema: schema.0,
            subresources: subresources.0,
            columns: columns.0,
            selectable: selectable.0,
            same: [schema.1, subresources.1, columns.1, selectable.1],
        }
    }

    fn has(&self, part: &str) -> bool {
        PARTS.iter().position(|name| *name == part).is_some_and(|at| self.same[at])
    }
}

fn versions(spec: &Map<String, Value>) -> &[Value] {
    spec.get("versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The old version of this name, if there was one.
fn old_version<'o>(old: Option<&'o Map<String, Value>>, name: &str) -> Option<&'o Value> {
    versions(old?).iter().find(|version| version.get("name").and_then(Value::as_str) == Some(name))
}

pub(super) fn validate_versions(
    spec: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let common = Common::of(spec);
    let versions = versions(spec);
    let path_of = |index: usize| path.field("versions").index(index);
    let schema_of = |version: &'_ Value| {
        version.pointer("/schema/openAPIV3Schema").is_some_and(|schema| !schema.is_null())
    };
    for (index, version) in versions.iter().enumerate() {
        if !schema_of(version) {
            found.push(Problem::required(&path_of(index).field("schema").field("openAPIV3Schema"), ""));
        }
    }
    let mut seen = BTreeSet::new();
    let mut unique = true;
    let empty = Map::new();
    for (index, version) in versions.iter().enumerate() {
        let fields = version.as_object().unwrap_or(&empty);
        let path = path_of(index);
        let name = text(fields, "name");
        unique &= seen.insert(name);
        let rules = names::dns_1035_label(name);
        if !rules.is_empty() {
            found.push(Problem::invalid_text(&path.field("name"), name, &rules.join(",")));
        }
        validate_deprecation(fields, &path.field("deprecationWarning"), found);
        if !common.has("schema")
            && let Some(schema) = version.get("schema")
        {
            let status = version.pointer("/subresources/status").is_some_and(|status| !status.is_null());
            let old = old_version(old, name).and_then(|old| old.get("schema"));
            validate_schema(
                schema,
                old,
                &SchemaRules { status_subresource: status },
                &path.field("schema"),
                found,
            );
        }
        if !common.has("subresources")
            && let Some(subresources) = version.get("subresources")
        {
            validate_subresources(subresources, &path.field("subresources"), found);
        }
        if !common.has("additionalPrinterColumns")
            && let Some(columns) = version.get("additionalPrinterColumns")
        {
            validate_columns(columns, &path.field("additionalPrinterColumns"), found);
        }
        if !common.has("selectableFields")
            && let Some(selectable) = version.get("selectableFields")
        {
            let old = old_version(old, name).and_then(|old| old.get("selectableFields"));
            let schema = version.pointer("/schema/openAPIV3Schema");
            validate_selectable(selectable, old, schema, &path.field("selectableFields"), found);
        }
    }
    if !unique {
        let rule = "must contain unique version names";
        found.push(of_versions(spec, path, rule));
    }
    let stored = versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).count();
    if stored != 1 {
        found.push(of_versions(spec, path, "must have exactly one version marked as storage version"));
    }
    // Inside, Kubernetes repeats the first version's name at the top.
    let first =
        versions.first().and_then(|version| version.get("name")).and_then(Value::as_str).unwrap_or_default();
    let rules = names::dns_1035_label(first);
    if !first.is_empty() && !rules.is_empty() {
        found.push(Problem::invalid_text(&path.field("version"), first, &rules.join(",")));
    }
}

/// What is wrong with what all versions have in common.
pub(super) fn validate_common(
    spec: &Map<String, Value>,
    common: &Common<'_>,
    old: Option<&Map<String, Value>>,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let old_common = old.map(Common::of);
    if let Some(schema) = common.schema {
        let status = versions(spec)
            .iter()
            .any(|version| version.pointer("/subresources/status").is_some_and(|status| !status.is_null()));
        let old = old_common.as_ref().and_then(|old| old.schema);
        validate_schema(
            schema,
            old,
            &SchemaRules { status_subresource: status },
            &path.field("validation"),
            found,
        );
    }
    if let Some(subresources) = common.subresources {
        validate_subresources(subresources, &path.field("subresources"), found);
    }
    if let Some(columns) = common.columns {
        validate_columns(columns, &path.field("additionalPrinterColumns"), found);
    }
    if let Some(selectable) = common.selectable {
        let path = path.field("selectableFields");
        let old = old_common.as_ref().and_then(|old| old.selectable);
        match common.schema.and_then(|schema| schema.get("openAPIV3Schema")) {
            None => found.push(Problem::invalid_text(
                &path,
                "",
                "may only be set when validations.schema is included",
            )),
            schema => validate_selectable(selectable, old, schema, &path, found),
        }
    }
}

/// A problem of the versions as a whole, which are shown as Kubernetes has them inside; parts they have in common are
/// no longer in them, and others are left out here.
fn of_versions(spec: &Map<String, Value>, path: &FieldPath, rule: &str) -> Problem {
    // No list is not an empty one.
    let Some(versions) = spec.get("versions").and_then(Value::as_array) else {
        return Problem::with_shown(&path.field("versions"), ProblemKind::Invalid, "null", rule);
    };
    let shown: Vec<String> = versions
        .iter()
        .map(|version| {
            let flag = |name: &str| version.get(name) == Some(&Value::Bool(true));
            let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
            let warning = version.get("deprecationWarning").unwrap_or(&Value::Null);
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                gotext::json(&name.into()),
                flag("served"),
                flag("storage"),
                flag("deprecated"),
                gotext::json(warning)
            )
        })
        .collect();
    let shown = format!("[{}]", shown.join(","));
    Problem::with_shown(&path.field("versions"), ProblemKind::Invalid, &shown, rule)
}

fn validate_deprecation(version: &Map<String, Value>, path: &FieldPath, found: &mut Vec<Problem>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut wrong = |rule: &str| found.push(Problem::invalid_text(path, warning, rule));
    if version.get("deprecated") != Some(&Value::Bool(true)) {
        return wrong("can only be set for deprecated versions");
    }
    if warning.len() > DEPRECATION_WARNING_BYTES_MAX {
        wrong("must be <= 256 characters long");
    }
    if warning.is_empty() {
        wrong("must not be an empty string");
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !gotext::is_print(*c)) {
        wrong(&format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}

fn validate_subresources(subresources: &Value, path: &FieldPath, found: &mut Vec<Problem>) {
    let Some(scale) = subresources.get("scale").and_then(Value::as_object) else { return };
    let mut check = |name: &str, roots: &[&str], rule: &str, required: bool| {
        let path = path.field(&format!("scale.{name}"));
        let value = text(scale, name);
        if value.is_empty() {
            if required {
                found.push(Problem::required(&path, ""));
            }
        } else if !value.starts_with('.') {
            found.push(Problem::invalid_text(&path, value, "must be a simple json path starting with ."));
        } else if !roots.iter().any(|root| value.starts_with(root)) {
            found.push(Problem::invalid_text(&path, value, rule));
        }
    };
    check("specReplicasPath", &[".spec."], "should be a json path under .spec", true);
    check("statusReplicasPath", &[".status."], "should be a json path under .status", true);
    let either = "should be a json path under either .spec or .status";
    check("labelSelectorPath", &[".spec.", ".status."], either, false);
}

fn validate_columns(columns: &Value, path: &FieldPath, found: &mut Vec<Problem>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let empty = Map::new();
        let column = column.as_object().unwrap_or(&empty);
        let path = path.index(index);
        if text(column, "name").is_empty() {
            found.push(Problem::required(&path.field("name"), ""));
        }
        let kind = text(column, "type");
        let rule = format!("must be one of {}", TYPES.join(","));
        if kind.is_empty() {
            found.push(Problem::required(&path.field("type"), &rule));
        } else if !TYPES.contains(&kind) {
            found.push(Problem::invalid_text(&path.field("type"), kind, &rule));
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let rule = format!("must be one of {}", FORMATS.join(","));
            found.push(Problem::invalid_text(&path.field("format"), format, &rule));
        }
        let path = path.field("JSONPath");
        match text(column, "jsonPath") {
            "" => found.push(Problem::required(&path, "")),
            value if !value.starts_with('.') => {
                found.push(Problem::invalid_text(&path, value, "must be a simple json path starting with ."));
            }
            _ => {}
        }
    }
}

/// A schema in which what is of no known type is of no particular type.
fn without_odd_types(schema: &Value) -> Value {
    const KNOWN: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    match schema {
        Value::Array(items) => items.iter().map(without_odd_types).collect(),
        Value::Object(fields) => {
            let odd = |name: &str, value: &Value| {
                name == "type" && value.as_str().is_some_and(|kind| !KNOWN.contains(&kind))
            };
            let fields = fields.iter().filter(|(name, value)| !odd(name, value));
            Value::Object(fields.map(|(name, value)| (name.clone(), without_odd_types(value))).collect())
        }
        other => other.clone(),
    }
}

fn validate_selectable(
    selectable: &Value,
    old: Option<&Value>,
    schema: Option<&Value>,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let entries = selectable.as_array().map_or(&[] as &[Value], Vec::as_slice);
    if entries.is_empty() {
        return;
    }
    let Some(schema) = schema else {
        let rule = "may only be set when `version.schema.openAPIV3Schema` is not included";
        found.push(Problem::invalid_text(path, "", rule));
        return;
    };
    let mut arena = Arena::default();
    // A schema that cannot be read has been reported. One of a type that does not exist is a schema all the same.
    let Ok(root) = compile(&mut arena, &without_odd_types(schema)) else { return };
    let mut unique = BTreeSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = path.index(index).field("jsonPath");
        let value = entry.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        if value.is_empty() {
            found.push(Problem::required(&path, ""));
            continue;
        }
        let (field, at) = match resolve_field_path(value, arena.schema(root), false) {
            Ok(resolved) => resolved,
            Err(error) => {
                found.push(Problem::invalid_text(&path, value, &format!("is an invalid path: {error}")));
                continue;
            }
        };
        if field.as_str() == "metadata" || field.as_str().starts_with("metadata.") {
            found.push(Problem::invalid_text(&path, value, "must not point to fields in metadata"));
        }
        if !matches!(at.node().shape, Shape::String | Shape::Boolean | Shape::Integer) {
            let rule = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            found.push(Problem::invalid_text(&path, value, rule));
        }
        if !unique.insert(field) {
            found.push(Problem::duplicate(&path, &value.into()));
        }
    }
    let grandfathered = old == Some(selectable)
        && old.and_then(Value::as_array).is_some_and(|old| old.len() > SELECTABLE_FIELDS_MAX);
    if unique.len() > SELECTABLE_FIELDS_MAX && !grandfathered {
        found.push(Problem::too_many(path, unique.len(), SELECTABLE_FIELDS_MAX as u64));
    }
}
