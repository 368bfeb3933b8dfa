//! Finding what is wrong with an object.
//!
//! Owns the value rules of structural schemas. All problems are found, not only the first. Agrees with
//! Kubernetes on what is valid but for two oddities of its checker, which make objects no typed client can read: it
//! lets a list pass for a text that has a format, and takes some texts for times that are none.

use std::{borrow::Cow, collections::HashSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::{Map, Number, Value};

use super::{
    format,
    path::FieldPath,
    pattern,
    prepare::{child, items},
    problem::{Problem, Problems},
};

/// Values nested deeper are not compared with each other; documents are not read to such a depth anyway.
const CANONICAL_DEPTH_MAX: usize = 128;

/// Everything that is wrong with a prepared object, at most a hundred problems and a count of the rest.
pub fn validate(value: &Value, schema: &JSONSchemaProps) -> Vec<Problem> {
    let mut problems = Problems::default();
    check(value, schema, &FieldPath::root(), &mut problems);
    problems.finish()
}

fn check(value: &Value, schema: &JSONSchemaProps, path: &FieldPath, problems: &mut Problems) {
    if value.is_null() && schema.nullable == Some(true) {
        return;
    }
    if let Some(rule) = type_rule(value, schema) {
        problems.invalid(path, value, &rule);
        // Nothing else can be said about a value of the wrong type.
        return;
    }
    if let Some(allowed) = &schema.enum_
        && !allowed.iter().any(|allowed| equal(&allowed.0, value))
    {
        let allowed: Vec<String> = allowed.iter().map(|allowed| allowed.0.to_string()).collect();
        problems.unsupported(path, value, &allowed);
    }
    match value {
        Value::String(text) => check_text(text, value, schema, path, problems),
        Value::Number(number) => check_number(number, value, schema, path, problems),
        Value::Array(entries) => check_list(entries, value, schema, path, problems),
        Value::Object(fields) => check_object(fields, value, schema, path, problems),
        Value::Null | Value::Bool(_) => {}
    }
    check_combinations(value, schema, path, problems);
}

/// What type is wanted instead, if the value has the wrong one.
fn type_rule(value: &Value, schema: &JSONSchemaProps) -> Option<String> {
    if schema.x_kubernetes_int_or_string == Some(true) {
        let sound = value.is_string() || value.as_number().is_some_and(is_whole);
        return (!sound).then(|| "must be an integer or a string".to_owned());
    }
    let wanted = schema.type_.as_deref()?;
    let sound = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(is_whole),
        _ => true,
    };
    let article = if matches!(wanted, "object" | "array" | "integer") { "an" } else { "a" };
    (!sound).then(|| format!("must be {article} {wanted}, not {}", type_name(value)))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if is_whole(number) => "an integer",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn check_text(
    text: &str,
    value: &Value,
    schema: &JSONSchemaProps,
    path: &FieldPath,
    problems: &mut Problems,
) {
    if schema.max_length.is_some() || schema.min_length.is_some() {
        let characters = text.chars().count();
        if let Some(limit) = schema.max_length.filter(|&limit| characters as i64 > limit) {
            problems.too_long(path, characters, limit);
        }
        if let Some(limit) = schema.min_length.filter(|&limit| (characters as i64) < limit) {
            let unit = if limit == 1 { "character" } else { "characters" };
            problems.invalid(path, value, &format!("must have at least {limit} {unit}"));
        }
    }
    if let Some(pattern) = &schema.pattern {
        match pattern::is_match(pattern, text) {
            Some(true) => {}
            Some(false) => problems.invalid(path, value, &format!("must match '{pattern}'")),
            None => problems.invalid(path, value, &format!("cannot be checked against '{pattern}'")),
        }
    }
    if let Some(name) = &schema.format
        && !format::holds(name, text)
    {
        problems.invalid(path, value, format::rule(name));
    }
}

fn check_number(
    number: &Number,
    value: &Value,
    schema: &JSONSchemaProps,
    path: &FieldPath,
    problems: &mut Problems,
) {
    let float = number.as_f64().unwrap_or(f64::NAN);
    if schema.type_.as_deref() == Some("integer") {
        let fits = match schema.format.as_deref() {
            Some("int32") => float >= f64::from(i32::MIN) && float <= f64::from(i32::MAX),
            Some("int64") => number.is_i64() || (number.is_f64() && float.abs() < i64::MAX as f64),
            _ => true,
        };
        if !fits {
            let format = schema.format.as_deref().unwrap_or_default();
            problems.invalid(path, value, &format!("must fit {format}"));
        }
    }
    if let Some(limit) = schema.maximum {
        let exclusive = schema.exclusive_maximum == Some(true);
        if float > limit || (exclusive && float >= limit) {
            let relation = if exclusive { "less than" } else { "at most" };
            problems.invalid(path, value, &format!("must be {relation} {limit}"));
        }
    }
    if let Some(limit) = schema.minimum {
        let exclusive = schema.exclusive_minimum == Some(true);
        if float < limit || (exclusive && float <= limit) {
            let relation = if exclusive { "greater than" } else { "at least" };
            problems.invalid(path, value, &format!("must be {relation} {limit}"));
        }
    }
    if let Some(step) = schema.multiple_of.filter(|&step| step > 0.0)
        && (float / step).fract() != 0.0
    {
        problems.invalid(path, value, &format!("must be a multiple of {step}"));
    }
}

fn check_list(
    entries: &[Value],
    value: &Value,
    schema: &JSONSchemaProps,
    path: &FieldPath,
    problems: &mut Problems,
) {
    if let Some(limit) = schema.max_items.filter(|&limit| entries.len() as i64 > limit) {
        problems.too_many(path, entries.len(), limit);
    }
    if let Some(limit) = schema.min_items.filter(|&limit| (entries.len() as i64) < limit) {
        problems.invalid(path, value, &format!("must have at least {limit} items"));
    }
    if let Some(schema) = items(schema) {
        for (index, entry) in entries.iter().enumerate() {
            check(entry, schema, &path.index(index), problems);
        }
    }
    match schema.x_kubernetes_list_type.as_deref() {
        Some("set") => check_unique(entries.iter().map(Cow::Borrowed), path, problems),
        // Where an item is no object at all that has been reported, and the others' keys mean little.
        Some("map") if entries.iter().all(|entry| entry.is_object() || entry.is_null()) => {
            let keys = schema.x_kubernetes_list_map_keys.as_deref().unwrap_or_default();
            check_unique(entries.iter().map(|entry| Cow::Owned(key_of(entry, keys))), path, problems);
        }
        _ if schema.unique_items == Some(true) => {
            check_unique(entries.iter().map(Cow::Borrowed), path, problems);
        }
        _ => {}
    }
}

/// The part of a list item that identifies it. Keys are scalars; a compound in place of one has been reported.
fn key_of(entry: &Value, keys: &[String]) -> Value {
    let part = |key: &String| match entry.get(key) {
        None | Some(Value::Array(_) | Value::Object(_)) => None,
        Some(scalar) => Some((key.clone(), scalar.clone())),
    };
    Value::Object(keys.iter().filter_map(part).collect())
}

/// Each value that occurs again is named once, where it occurs the second time.
fn check_unique<'a>(keys: impl Iterator<Item = Cow<'a, Value>>, path: &FieldPath, problems: &mut Problems) {
    let mut seen = HashSet::new();
    let mut reported = HashSet::new();
    for (index, key) in keys.enumerate() {
        let Some(text) = canonical(&key, CANONICAL_DEPTH_MAX) else {
            continue;
        };
        if seen.contains(&text) {
            if reported.insert(text) {
                problems.duplicate(&path.index(index), &key);
            }
        } else {
            seen.insert(text);
        }
    }
}

/// A text that is the same for equal values, whatever the order of their fields; none for a value too deep.
fn canonical(value: &Value, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        Value::Object(fields) => {
            let mut parts: Vec<String> = fields
                .iter()
                .map(|(name, field)| {
                    canonical(field, depth).map(|field| format!("{}:{field}", Value::from(name.as_str())))
                })
                .collect::<Option<_>>()?;
            parts.sort_unstable();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(entries) => {
            let parts: Vec<String> =
                entries.iter().map(|entry| canonical(entry, depth)).collect::<Option<_>>()?;
            format!("[{}]", parts.join(","))
        }
        scalar => scalar.to_string(),
    })
}

fn check_object(
    fields: &Map<String, Value>,
    value: &Value,
    schema: &JSONSchemaProps,
    path: &FieldPath,
    problems: &mut Problems,
) {
    for name in schema.required.iter().flatten().filter(|name| !fields.contains_key(*name)) {
        problems.required(&path.field(name));
    }
    if let Some(limit) = schema.max_properties.filter(|&limit| fields.len() as i64 > limit) {
        problems.too_many(path, fields.len(), limit);
    }
    if let Some(limit) = schema.min_properties.filter(|&limit| (fields.len() as i64) < limit) {
        problems.invalid(path, value, &format!("must have at least {limit} entries"));
    }
    for (name, field) in fields {
        if let Some(property) = child(schema, name) {
            let named = schema.properties.as_ref().is_some_and(|properties| properties.contains_key(name));
            let path = if named { path.field(name) } else { path.key(name) };
            check(field, property, &path, problems);
        }
    }
}

fn check_combinations(value: &Value, schema: &JSONSchemaProps, path: &FieldPath, problems: &mut Problems) {
    let holds = |part: &JSONSchemaProps| {
        let mut trial = Problems::default();
        check(value, part, path, &mut trial);
        trial.is_empty()
    };
    for part in schema.all_of.iter().flatten() {
        check(value, part, path, problems);
    }
    if let Some(parts) = &schema.any_of
        && !parts.iter().any(holds)
    {
        problems.invalid(path, value, "must keep at least one of the alternatives (anyOf)");
    }
    if let Some(parts) = &schema.one_of
        && parts.iter().filter(|part| holds(part)).count() != 1
    {
        problems.invalid(path, value, "must keep exactly one of the alternatives (oneOf)");
    }
    if let Some(part) = &schema.not
        && holds(part)
    {
        problems.invalid(path, value, "must not keep the excluded rule (not)");
    }
}

/// Equality in which 1 and 1.0 are the same number.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

#[cfg(test)]
mod tests;
