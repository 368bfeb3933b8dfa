//! What metadata consists of.
//!
//! Owns the fields and their types: reading them back as Kubernetes' own reader would, finding those it does not know
//! and those it cannot read. Whether a readable value is a good one is the parent's question.

use serde_json::{Map, Value};

use crate::{
    DEPTH_MAX,
    format::DateTime,
    gotext,
    node::Schema,
    path::{FieldPath, Place},
    problem::Problem,
    unknown::PATHS_MAX,
};

/// The type of a field.
#[derive(Clone, Copy)]
enum Kind {
    Text(&'static str),
    Whole,
    Flag,
    Time,
    Texts,
    Entries,
    Records(&'static str, &'static [Field]),
    Raw,
}

/// A field and its type.
type Field = (&'static str, Kind);

const OWNER: &[Field] = &[
    ("apiVersion", Kind::Text("string")),
    ("blockOwnerDeletion", Kind::Flag),
    ("controller", Kind::Flag),
    ("kind", Kind::Text("string")),
    ("name", Kind::Text("string")),
    ("uid", Kind::Text("types.UID")),
];

const MANAGED: &[Field] = &[
    ("apiVersion", Kind::Text("string")),
    ("fieldsType", Kind::Text("string")),
    ("fieldsV1", Kind::Raw),
    ("manager", Kind::Text("string")),
    ("operation", Kind::Text("v1.ManagedFieldsOperationType")),
    ("subresource", Kind::Text("string")),
    ("time", Kind::Time),
];

const METADATA: &[Field] = &[
    ("annotations", Kind::Entries),
    ("creationTimestamp", Kind::Time),
    ("deletionGracePeriodSeconds", Kind::Whole),
    ("deletionTimestamp", Kind::Time),
    ("finalizers", Kind::Texts),
    ("generateName", Kind::Text("string")),
    ("generation", Kind::Whole),
    ("labels", Kind::Entries),
    ("managedFields", Kind::Records("ManagedFieldsEntry", MANAGED)),
    ("name", Kind::Text("string")),
    ("namespace", Kind::Text("string")),
    ("ownerReferences", Kind::Records("OwnerReference", OWNER)),
    ("resourceVersion", Kind::Text("string")),
    ("selfLink", Kind::Text("string")),
    ("uid", Kind::Text("types.UID")),
];

/// A field of metadata that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Where it is, below the metadata.
    pub path: FieldPath,
    /// What it is.
    pub value: Value,
    /// What it should be, for people.
    pub rule: &'static str,
    /// What Kubernetes' reader says.
    pub message: String,
}

/// The fields of metadata that cannot be read, because they are of another type.
pub fn metadata_misfits(metadata: &Value) -> Vec<Misfit> {
    let mut found = Vec::new();
    match metadata {
        Value::Null => {}
        Value::Object(fields) => misfits(fields, "ObjectMeta", METADATA, "", &FieldPath::root(), &mut found),
        other => found.push(Misfit {
            path: FieldPath::root(),
            value: shallow(other),
            rule: "must be an object",
            message: format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                gotext::json_kind(other)
            ),
        }),
    }
    found
}

fn misfits(
    fields: &Map<String, Value>,
    record: &str,
    known: &[Field],
    stack: &str,
    path: &FieldPath,
    found: &mut Vec<Misfit>,
) {
    for (name, kind) in known {
        let Some(value) = fields.get(*name).filter(|value| !value.is_null()) else { continue };
        let path = path.field(name);
        let mut misfit = |path: &FieldPath, value: &Value, rule, wanted: &str| {
            found.push(Misfit {
                path: path.clone(),
                value: shallow(value),
                rule,
                message: format!(
                    "json: cannot unmarshal {} into Go struct field {record}.{stack}{name} of type {wanted}",
                    gotext::json_kind(value)
                ),
            });
        };
        match kind {
            Kind::Text(wanted) if !value.is_string() => misfit(&path, value, "must be a string", wanted),
            Kind::Whole if !value.is_i64() => misfit(&path, value, "must be a whole number", "int64"),
            Kind::Flag if !value.is_boolean() => misfit(&path, value, "must be true or false", "bool"),
            Kind::Time => match value {
                Value::String(text) if DateTime::of(text).is_some() => {}
                Value::String(text) => found.push(Misfit {
                    path,
                    value: value.clone(),
                    rule: "must be a time such as 2024-05-01T12:00:00Z (RFC 3339)",
                    message: format!(
                        "parsing time {0} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0} as \"2006\"",
                        gotext::quote(text)
                    ),
                }),
                other => {
                    misfit(&path, other, "must be a time such as 2024-05-01T12:00:00Z (RFC 3339)", "string");
                }
            },
            Kind::Texts => match value {
                Value::Array(entries) => {
                    for (index, entry) in
                        entries.iter().enumerate().filter(|(_, entry)| !readable_text(entry))
                    {
                        misfit(&path.index(index), entry, "must be a string", "string");
                    }
                }
                other => misfit(&path, other, "must be a list", "[]string"),
            },
            Kind::Entries => match value {
                Value::Object(entries) => {
                    for (key, entry) in entries.iter().filter(|(_, entry)| !readable_text(entry)) {
                        misfit(&path.key(key), entry, "must be a string", "string");
                    }
                }
                other => misfit(&path, other, "must be an object", "map[string]string"),
            },
            Kind::Records(inner, known) => match value {
                Value::Array(entries) => {
                    for (index, entry) in entries.iter().enumerate() {
                        match entry {
                            Value::Null => {}
                            Value::Object(fields) => {
                                let stack = format!("{stack}{name}.");
                                misfits(fields, inner, known, &stack, &path.index(index), found);
                            }
                            other => found.push(Misfit {
                                path: path.index(index),
                                value: shallow(other),
                                rule: "must be an object",
                                message: format!(
                                    "json: cannot unmarshal {} into Go struct field {record}.{stack}{name} of type v1.{inner}",
                                    gotext::json_kind(other)
                                ),
                            }),
                        }
                    }
                }
                other => misfit(&path, other, "must be a list", &format!("[]v1.{inner}")),
            },
            _ => {}
        }
    }
}

/// A value, or only the name of its type if it is nested: it may be so to any depth.
fn shallow(value: &Value) -> Value {
    let nested = |value: &Value| value.is_array() || value.is_object();
    let deep = match value {
        Value::Array(entries) => entries.iter().any(nested),
        Value::Object(fields) => fields.values().any(nested),
        _ => false,
    };
    if deep { gotext::json_kind(value).into() } else { value.clone() }
}

/// Null reads as the empty text.
fn readable_text(value: &Value) -> bool {
    value.is_string() || value.is_null()
}

/// The paths of fields that metadata does not have, at most a hundred.
pub(crate) fn unknown_fields(metadata: &Value, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Value::Object(fields) = metadata {
        find_unknown(fields, METADATA, prefix, &mut found);
    }
    found
}

fn find_unknown(fields: &Map<String, Value>, known: &[Field], prefix: &str, found: &mut Vec<String>) {
    for (name, value) in fields {
        if found.len() >= PATHS_MAX {
            return;
        }
        match known.iter().find(|(known, _)| known == name) {
            None => found.push(format!("{prefix}.{name}")),
            Some((_, Kind::Records(_, known))) => {
                for (index, entry) in value.as_array().into_iter().flatten().enumerate() {
                    if let Value::Object(fields) = entry {
                        find_unknown(fields, known, &format!("{prefix}.{name}[{index}]"), found);
                    }
                }
            }
            Some(_) => {}
        }
    }
}

/// Reads the metadata of an object, and of objects embedded in it, and writes it back as Kubernetes does: unknown fields
/// gone, empty ones left out, times in UTC with whole seconds. Gives the paths of what was unknown.
pub fn coerce_metadata(object: &mut Value, schema: Option<Schema<'_>>) -> Result<Vec<String>, Problem> {
    let mut unknown = Vec::new();
    coerce_within(object, schema, true, &Place::Root, &mut unknown, DEPTH_MAX)?;
    unknown.sort_unstable();
    unknown.truncate(PATHS_MAX);
    Ok(unknown)
}

/// As [`coerce_metadata`] for a part of an object, at a path; with `root` the part is an object itself.
pub(crate) fn coerce_part(
    value: &mut Value,
    schema: Schema<'_>,
    root: bool,
    path: &FieldPath,
) -> Result<(), Problem> {
    let place = Place::Field(&Place::Root, path.as_str());
    coerce_within(value, Some(schema), root, &place, &mut Vec::new(), DEPTH_MAX)
}

fn coerce_within(
    value: &mut Value,
    schema: Option<Schema<'_>>,
    root: bool,
    place: &Place<'_>,
    unknown: &mut Vec<String>,
    depth: usize,
) -> Result<(), Problem> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    match value {
        Value::Object(fields) => {
            let embedded = root || schema.is_some_and(|schema| schema.node().embedded_resource);
            if embedded {
                for name in ["apiVersion", "kind"] {
                    if let Some(field) = fields.get(name).filter(|field| !field.is_string()) {
                        return Err(Problem::invalid(&place.path().field(name), field, "must be a string"));
                    }
                }
                coerce_one(fields, place, unknown)?;
            }
            let Some(schema) = schema else { return Ok(()) };
            for (name, field) in fields {
                if embedded && name == "metadata" {
                    continue;
                }
                if let Some(schema) = schema.field(name).filter(|_| field.is_object() || field.is_array()) {
                    let declared = schema.node();
                    // Nothing inside can be an object of its own unless the schema says what is inside.
                    if declared.properties.is_empty()
                        && declared.additional.is_none()
                        && declared.items.is_none()
                        && !declared.embedded_resource
                    {
                        continue;
                    }
                    coerce_within(field, Some(schema), false, &Place::Field(place, name), unknown, depth)?;
                }
            }
        }
        Value::Array(entries) => {
            if let Some(schema) = schema.and_then(Schema::items) {
                for (index, entry) in entries.iter_mut().enumerate() {
                    coerce_within(entry, Some(schema), false, &Place::Index(place, index), unknown, depth)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_one(
    fields: &mut Map<String, Value>,
    place: &Place<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), Problem> {
    let Some(metadata) = fields.get_mut("metadata") else { return Ok(()) };
    let path = place.path().field("metadata");
    if let Some(misfit) = metadata_misfits(metadata).first() {
        return Err(Problem::invalid(&path, metadata, &misfit.message));
    }
    unknown.extend(unknown_fields(metadata, path.as_str()));
    match metadata {
        Value::Object(metadata) => normalise(metadata, METADATA),
        // A null reads as metadata that says nothing.
        other => *other = Value::Object(Map::new()),
    }
    Ok(())
}

/// Keeps what is known and says something, in the one spelling it has.
fn normalise(fields: &mut Map<String, Value>, known: &[Field]) {
    fields.retain(|name, value| {
        let Some((_, kind)) = known.iter().find(|(known, _)| known == name) else { return false };
        match kind {
            Kind::Text(_) => value.as_str().is_some_and(|text| !text.is_empty()),
            // Zero is as good as nothing for the generation; the grace period may well be zero.
            Kind::Whole => {
                value.as_i64().is_some_and(|whole| whole != 0 || name == "deletionGracePeriodSeconds")
            }
            Kind::Flag | Kind::Raw => !value.is_null(),
            Kind::Time => match value.as_str().and_then(utc_seconds) {
                Some(text) => {
                    *value = Value::String(text);
                    true
                }
                None => !value.is_null(),
            },
            Kind::Texts => {
                value.as_array_mut().into_iter().flatten().for_each(fill_null);
                value.as_array().is_some_and(|entries| !entries.is_empty())
            }
            Kind::Entries => {
                value.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(fill_null);
                value.as_object().is_some_and(|entries| !entries.is_empty())
            }
            Kind::Records(record, known) => {
                for entry in value.as_array_mut().into_iter().flatten() {
                    if entry.is_null() {
                        *entry = Value::Object(Map::new());
                    }
                    let Some(fields) = entry.as_object_mut() else { continue };
                    normalise(fields, known);
                    if *record == "OwnerReference" {
                        for name in ["apiVersion", "kind", "name", "uid"] {
                            fields.entry(name).or_insert_with(|| "".into());
                        }
                    }
                }
                value.as_array().is_some_and(|entries| !entries.is_empty())
            }
        }
    });
}

fn fill_null(value: &mut Value) {
    if value.is_null() {
        *value = Value::String(String::new());
    }
}

/// A time in UTC with whole seconds; none if it lies past what can be computed with.
fn utc_seconds(text: &str) -> Option<String> {
    let DateTime { date, time, offset, .. } = DateTime::of(text)?;
    if offset == "Z" {
        return Some(format!("{date}T{time}Z"));
    }
    let time: jiff::Timestamp = format!("{date}T{time}{offset}").parse().ok()?;
    jiff::fmt::strtime::format("%Y-%m-%dT%H:%M:%SZ", time).ok()
}
