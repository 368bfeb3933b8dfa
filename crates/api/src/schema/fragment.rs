//! Schema fragments for types that come from elsewhere.
//!
//! Owns the schemas of Kubernetes' shared types as our fields use them, described in our own words.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::taint::{QUALIFIED_KEY_CHARS_MAX, QUALIFIED_KEY_PATTERN};

/// An RFC 3339 time.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// An RFC 3339 time that may also be an explicit null.
pub(crate) fn nullable_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}

/// Base64 text.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "byte" })
}

/// A number or a percentage, all clusters unless given.
pub(crate) fn clusters_per_decision_group(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$",
        "default": "100%",
    })
}

/// A number from one on, or a percentage.
pub(crate) fn count_or_percent(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": "^(100|[1-9][0-9]?)%$",
        "maxLength": 4,
        "minimum": 1,
        "maximum": 1_000_000,
    })
}

/// So many a second.
pub(crate) fn per_second(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "number", "minimum": 0.0001, "maximum": 10_000 })
}

/// A number of fault domains, or a percentage of all of them.
pub(crate) fn affected_fault_domains(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "minimum": 0,
        "pattern": "^(100|[1-9]?[0-9])%$",
    })
}

/// A label selector, owned as a whole by whoever applies it.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels that must be present with exactly these values.",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": {
                "type": "array",
                "description": "Requirements on labels; all of them have to hold.",
                "x-kubernetes-list-type": "atomic",
                "items": requirement(),
            },
        },
    })
}

/// A list of requirements on claims.
pub(crate) fn requirements(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": requirement() })
}

/// Conditions, one of each type.
pub(crate) fn conditions_by_type(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": condition(),
    })
}

/// Conditions as a plain list, where the reference does not ask for one of each type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": condition() })
}

fn requirement() -> Value {
    json!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": { "type": "string", "description": "The key the requirement is about." },
            "operator": {
                "type": "string",
                "description": "In, NotIn, Exists or DoesNotExist.",
            },
            "values": {
                "type": "array",
                "description": "What In and NotIn compare with, at least one value; empty for Exists and DoesNotExist.",
                "x-kubernetes-list-type": "atomic",
                "items": { "type": "string" },
            },
        },
    })
}

fn condition() -> Value {
    json!({
        "type": "object",
        "description": "One aspect of how the object stands.",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "type": {
                "type": "string",
                "description": "Which aspect this is about.",
                "maxLength": QUALIFIED_KEY_CHARS_MAX,
                "pattern": QUALIFIED_KEY_PATTERN,
            },
            "status": {
                "type": "string",
                "description": "Whether it is so: True, False or Unknown.",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": {
                "type": "string",
                "description": "Why, as one word for programs.",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "message": {
                "type": "string",
                "description": "Why, as a sentence for people; may be empty.",
                "maxLength": 32768,
            },
            "lastTransitionTime": {
                "type": "string",
                "description": "Since when the status is what it is.",
                "format": "date-time",
            },
            "observedGeneration": {
                "type": "integer",
                "description": "The generation of the object that was looked at.",
                "format": "int64",
                "minimum": 0,
            },
        },
    })
}
