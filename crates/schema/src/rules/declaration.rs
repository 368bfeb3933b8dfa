//! What an expression sees of a value.
//!
//! Owns the way from a schema to the type of `self`, and from a value to what `self` is: fields by the names expressions
//! use, times and bytes as such. What the schema does not describe is not seen.

use std::{collections::BTreeMap, sync::Arc};

use berth_cel::{StructType, Type, Value as CelValue, escape_field_name};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::node::{Schema, Shape};

/// The type of a value as expressions see it, with what is needed to make it so.
#[derive(Debug, Clone)]
pub(super) enum Declaration {
    /// An integer or a text: only known when it is met.
    IntOrString,
    Text,
    Bytes,
    Duration,
    Date,
    DateTime,
    Bool,
    Int,
    Double,
    List(Box<Declaration>),
    Map(Box<Declaration>),
    /// By the name in the object: the name in expressions, and the type.
    Object(Fields),
}

/// The fields of an object, by their names in it.
type Fields = BTreeMap<Box<str>, (Arc<str>, Declaration)>;

impl Declaration {
    /// What expressions see of values of a schema, if they see them at all. At the root of an object its kind and name
    /// are seen in any case.
    pub(super) fn of(schema: Schema<'_>, root: bool, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let node = schema.node();
        let inner = |schema: Schema<'_>| Self::of(schema, schema.node().embedded_resource, depth);
        match node.shape {
            Shape::IntOrString => Some(Self::IntOrString),
            Shape::Boolean => Some(Self::Bool),
            Shape::Integer => Some(Self::Int),
            Shape::Number => Some(Self::Double),
            Shape::String => Some(match node.checks.as_ref().and_then(|checks| checks.format.as_deref()) {
                Some("byte") => Self::Bytes,
                Some("duration") => Self::Duration,
                Some("date") => Self::Date,
                Some("date-time") => Self::DateTime,
                _ => Self::Text,
            }),
            Shape::Array => inner(schema.items()?).map(|items| Self::List(Box::new(items))),
            Shape::Object => {
                if let Some(additional) = schema.additional()
                    && !root
                {
                    // Entries of no particular type are not seen, and so is their map.
                    return inner(additional).map(|entries| Self::Map(Box::new(entries)));
                }
                let mut fields = BTreeMap::new();
                for name in node.properties.keys() {
                    let property = schema.property(name).and_then(inner);
                    if let (Some(property), Some(escaped)) = (property, escape_field_name(name)) {
                        fields.insert(name.clone(), (Arc::from(escaped), property));
                    }
                }
                if root {
                    fields.extend(object_fields(&fields));
                }
                Some(Self::Object(fields))
            }
            Shape::Any => None,
        }
    }

    /// The type, under a name that no other type of the expression has.
    pub(super) fn cel_type(&self, name: &str) -> Type {
        match self {
            Self::IntOrString => Type::Dyn,
            Self::Text => Type::String,
            Self::Bytes => Type::Bytes,
            Self::Duration => Type::Duration,
            Self::Date | Self::DateTime => Type::Timestamp,
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Double => Type::Double,
            Self::List(items) => Type::list(items.cel_type(&format!("{name}.@idx"))),
            Self::Map(entries) => Type::map(Type::String, entries.cel_type(&format!("{name}.@elem"))),
            Self::Object(fields) => Type::Struct(Arc::new(StructType {
                name: Arc::from(name),
                fields: fields
                    .values()
                    .map(|(escaped, field)| {
                        (escaped.to_string(), field.cel_type(&format!("{name}.{escaped}")))
                    })
                    .collect(),
            })),
        }
    }

    /// A value as expressions see it. One that does not fit, which has been reported, is seen as it is.
    pub(super) fn view(&self, value: &Value) -> CelValue {
        match (self, value) {
            (Self::List(items), Value::Array(entries)) => {
                CelValue::list(entries.iter().map(|entry| items.view(entry)).collect())
            }
            (Self::Map(entry), Value::Object(entries)) => {
                CelValue::map(entries.iter().map(|(key, value)| (key.as_str(), entry.view(value))))
            }
            (Self::Object(fields), Value::Object(entries)) => {
                CelValue::map(entries.iter().filter_map(|(name, value)| {
                    let (escaped, field) = fields.get(name.as_str())?;
                    Some((Arc::clone(escaped), field.view(value)))
                }))
            }
            (Self::Double, Value::Number(number)) => CelValue::Double(number.as_f64().unwrap_or(f64::NAN)),
            (Self::Int, Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                (None, Some(float)) if float.fract() == 0.0 => CelValue::Int(float as i64),
                _ => scalar(value),
            },
            (Self::Bytes, Value::String(text)) => {
                decode_base64(text).map_or_else(|| scalar(value), |bytes| CelValue::Bytes(Arc::from(bytes)))
            }
            (Self::Duration, Value::String(text)) => {
                text.parse::<SignedDuration>().map_or_else(|_| scalar(value), CelValue::Duration)
            }
            (Self::Date, Value::String(text)) => format!("{text}T00:00:00Z")
                .parse::<Timestamp>()
                .map_or_else(|_| scalar(value), CelValue::Timestamp),
            (Self::DateTime, Value::String(text)) => {
                text.parse::<Timestamp>().map_or_else(|_| scalar(value), CelValue::Timestamp)
            }
            _ => scalar(value),
        }
    }
}

/// A value without regard to a type; nothing is seen of a compound, which may be of any depth.
fn scalar(value: &Value) -> CelValue {
    if value.is_array() || value.is_object() { CelValue::Null } else { CelValue::from_json(value) }
}

/// What the root of every object has: its kind, and as much of its metadata as never changes behind its back.
fn object_fields(known: &Fields) -> Fields {
    let text = |name: &str| (Box::from(name), (Arc::from(name), Declaration::Text));
    let complete = match known.get("metadata") {
        Some((_, Declaration::Object(fields))) => {
            fields.contains_key("name") && fields.contains_key("generateName")
        }
        _ => false,
    };
    let complete = complete && known.contains_key("kind") && known.contains_key("apiVersion");
    if complete {
        return Fields::new();
    }
    let metadata = Declaration::Object([text("name"), text("generateName")].into());
    [text("kind"), text("apiVersion"), (Box::from("metadata"), (Arc::from("metadata"), metadata))].into()
}

/// The bytes of padded base64 in the standard alphabet.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut buffer, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        buffer = buffer << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits & 0xff) as u8);
        }
    }
    Some(bytes)
}
