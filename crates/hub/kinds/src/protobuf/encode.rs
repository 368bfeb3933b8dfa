//! Objects written as protobuf, for tests alone: what the server reads is held against it here, and a real server is sent it.
//!
//! Never part of a server, which answers in JSON.

use base64::Engine as _;
use serde_json::Value;

use super::MAGIC;
use crate::{
    conform::conform,
    gvk::Gvk,
    registry::Builtins,
    types::{Field, Kind, Slot, Type, TypeId, Types},
};

/// A body that holds an object, as Go's clients write it. None for what is no object of a built-in kind.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let gvk = Gvk::of(object)?;
    let id = Builtins::load().body(&gvk)?;
    let object = conform(id, object.clone()).ok()?.value;
    Some(Writer(&Builtins::load().types).body(&gvk, id, &object))
}

/// Writes objects as Go does, so that reading can be held against it: fields that are not pointers are always there.
pub(super) struct Writer<'a>(pub(super) &'a Types);

impl Writer<'_> {
    pub(super) fn body(&self, gvk: &Gvk, id: TypeId, object: &Value) -> Vec<u8> {
        let mut meta = Vec::new();
        bytes(&mut meta, 1, gvk.api_version().as_bytes());
        bytes(&mut meta, 2, gvk.kind.as_bytes());
        let mut out = MAGIC.to_vec();
        bytes(&mut out, 1, &meta);
        bytes(&mut out, 2, &self.message(self.0.get(id), object));
        bytes(&mut out, 3, b"");
        out
    }

    fn message(&self, found: &Type, object: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        let mut numbers: Vec<(&u32, &Slot)> = found.slots.iter().collect();
        numbers.sort_by_key(|(number, _)| **number);
        for (&number, slot) in numbers {
            match slot {
                Slot::Inline(id) => bytes(&mut out, number, &self.message(self.0.get(*id), object)),
                Slot::Field(at) => {
                    let field = &found.fields[*at as usize];
                    self.field(&mut out, number, field, &object[&*field.name]);
                }
            }
        }
        out
    }

    fn field(&self, out: &mut Vec<u8>, number: u32, field: &Field, value: &Value) {
        match &field.kind {
            Kind::List(item) => {
                value.as_array().into_iter().flatten().for_each(|value| self.value(out, number, item, value));
            }
            Kind::Map(item) => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let mut entry = Vec::new();
                    bytes(&mut entry, 1, key.as_bytes());
                    if let Kind::List(item) = &**item {
                        let mut items = Vec::new();
                        value
                            .as_array()
                            .into_iter()
                            .flatten()
                            .for_each(|value| self.value(&mut items, 1, item, value));
                        bytes(&mut entry, 2, &items);
                    } else {
                        self.value(&mut entry, 2, item, value);
                    }
                    bytes(out, number, &entry);
                }
            }
            _ if value.is_null() && field.pointer => {}
            kind => self.value(out, number, kind, value),
        }
    }

    fn value(&self, out: &mut Vec<u8>, number: u32, kind: &Kind, value: &Value) {
        let string = value.as_str().unwrap_or_default();
        match kind {
            Kind::Bool => varint_field(out, number, u64::from(value.as_bool().unwrap_or(false))),
            Kind::Int32 | Kind::Int64 => varint_field(out, number, value.as_i64().unwrap_or(0) as u64),
            Kind::Double => {
                varint(out, u64::from(number) << 3 | 1);
                out.extend(value.as_f64().unwrap_or(0.0).to_le_bytes());
            }
            Kind::String => bytes(out, number, string.as_bytes()),
            // No bytes are not the same as none.
            Kind::Bytes if value.is_null() => {}
            Kind::Bytes => {
                let content = base64::engine::general_purpose::STANDARD.decode(string).unwrap_or_default();
                bytes(out, number, &content);
            }
            Kind::Time | Kind::MicroTime => {
                let mut inner = Vec::new();
                if let Ok(time) = string.parse::<jiff::Timestamp>() {
                    varint_field(&mut inner, 1, time.as_second() as u64);
                    varint_field(&mut inner, 2, time.subsec_nanosecond() as u64);
                }
                bytes(out, number, &inner);
            }
            Kind::Quantity => {
                let mut inner = Vec::new();
                bytes(&mut inner, 1, string.as_bytes());
                bytes(out, number, &inner);
            }
            Kind::IntOrString => {
                let mut inner = Vec::new();
                varint_field(&mut inner, 1, u64::from(value.is_string()));
                varint_field(&mut inner, 2, value.as_i64().unwrap_or(0) as u64);
                bytes(&mut inner, 3, string.as_bytes());
                bytes(out, number, &inner);
            }
            Kind::Raw | Kind::Any | Kind::Fields => {
                let mut inner = Vec::new();
                if !value.is_null() {
                    bytes(&mut inner, 1, value.to_string().as_bytes());
                }
                bytes(out, number, &inner);
            }
            Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings => {
                let props = self.0.find("apiextensions.v1.JSONSchemaProps").expect("the table has schemas");
                let props = self.0.get(props);
                let mut inner = Vec::new();
                match value {
                    Value::Bool(value) => varint_field(&mut inner, 1, u64::from(*value)),
                    Value::Array(items) if *kind == Kind::SchemaOrStrings => {
                        for item in items {
                            bytes(&mut inner, 2, item.as_str().unwrap_or_default().as_bytes());
                        }
                    }
                    Value::Array(items) => {
                        for item in items {
                            bytes(&mut inner, 2, &self.message(props, item));
                        }
                    }
                    schema => {
                        bytes(
                            &mut inner,
                            if *kind == Kind::SchemaOrBool { 2 } else { 1 },
                            &self.message(props, schema),
                        );
                    }
                }
                bytes(out, number, &inner);
            }
            Kind::Struct(id) => bytes(out, number, &self.message(self.0.get(*id), value)),
            Kind::List(_) | Kind::Map(_) => unreachable!("lists and maps are written by their field"),
        }
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_field(out: &mut Vec<u8>, number: u32, value: u64) {
    varint(out, u64::from(number) << 3);
    varint(out, value);
}

pub(super) fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, content.len() as u64);
    out.extend(content);
}
