//! Protobuf request bodies of built-in kinds, read into JSON.
//!
//! Owns the envelope, the wire format and what the special messages (times, quantities, raw JSON) stand for; which number is
//! which field comes from the table. A server never writes
//! protobuf: every client that sends it also takes JSON.
//!
//! A reader of the wire format is short and needs no descriptors at run time, where a reflection library would need a second,
//! larger copy of the table. Numbers that the table does not have are skipped, as Go does.

#[cfg(any(test, feature = "encode"))]
mod encode;

use base64::Engine as _;
use serde_json::{Map, Value};

use crate::{
    conform::conform,
    gvk::Gvk,
    instant,
    registry::Builtins,
    types::{Field, Kind, Slot, TypeId, Types},
};

#[cfg(any(test, feature = "encode"))]
pub use encode::encode;

/// What every body begins with.
pub const MAGIC: [u8; 4] = *b"k8s\0";
/// How deep messages may be nested, in levels. The deepest real ones (schemas in definitions) stay far below.
pub const DEPTH_MAX: usize = 100;
/// How many values one body may hold. Two bytes can stand for an object of hundreds, so the size of the body is no bound.
pub const VALUES_MAX: usize = 200_000;

/// How deep the object of a body may be nested, in levels of JSON: as deep as one that is sent as JSON. One message is up to
/// two levels, and holds raw JSON with levels of its own.
pub const OBJECT_DEPTH_MAX: usize = 120;

/// Why a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtoError {
    /// It does not begin as protobuf bodies of Kubernetes do.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    /// It ends within a field.
    #[error("unexpected EOF")]
    Truncated,
    /// A number of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field of a form that does not exist, or that does not fit what the field holds.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    Wire {
        /// The form found.
        wire: u8,
        /// The field.
        field: String,
    },
    /// Neither the body nor the request says what it is.
    #[error("Object 'Kind' is missing in the protobuf body")]
    NoKind,
    /// A kind that is not built in.
    #[error("no kind \"{}\" is registered for version \"{}\"", .0.kind, .0.api_version())]
    UnknownKind(Gvk),
    /// The content is compressed or otherwise encoded.
    #[error("the content encoding {0:?} is not supported, send the object without one")]
    Encoded(String),
    /// Too deep.
    #[error("the message is nested deeper than {DEPTH_MAX} levels")]
    Depth,
    /// The object is too deep.
    #[error("the object is nested deeper than {OBJECT_DEPTH_MAX} levels")]
    ObjectDepth,
    /// Too many values.
    #[error("the message holds more than {VALUES_MAX} values")]
    Values,
    /// A field whose content is not what it claims.
    #[error("{field}: {problem}")]
    Content {
        /// The field.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// The object cannot be read as its kind.
    #[error("{0}")]
    Object(String),
}

/// Reads a body: what it is and the object, in the form [`conform`] gives it, with `apiVersion` and `kind` set.
/// What the body does not say about its kind is taken from `expected`.
pub fn decode(body: &[u8], expected: Option<&Gvk>) -> Result<(Gvk, Value), ProtoError> {
    let mut wire = Wire(body.strip_prefix(&MAGIC).ok_or(ProtoError::Magic)?);
    let (mut api_version, mut kind, mut raw, mut encoding) =
        (String::new(), String::new(), &[][..], String::new());
    while let Some((number, part)) = wire.field()? {
        match (number, part) {
            (1, Part::Bytes(bytes)) => {
                let mut wire = Wire(bytes);
                while let Some((number, part)) = wire.field()? {
                    match (number, part) {
                        (1, Part::Bytes(bytes)) => api_version = text(bytes),
                        (2, Part::Bytes(bytes)) => kind = text(bytes),
                        _ => {}
                    }
                }
            }
            (2, Part::Bytes(bytes)) => raw = bytes,
            (3, Part::Bytes(bytes)) => encoding = text(bytes),
            _ => {}
        }
    }
    if !encoding.is_empty() {
        return Err(ProtoError::Encoded(encoding));
    }
    let gvk = match (kind.is_empty(), expected) {
        (false, _) => Gvk::new(&api_version, &kind).ok_or(ProtoError::NoKind)?,
        (true, Some(expected)) => expected.clone(),
        (true, None) => return Err(ProtoError::NoKind),
    };
    let builtins = Builtins::load();
    let id = builtins.body(&gvk).ok_or_else(|| ProtoError::UnknownKind(gvk.clone()))?;
    let mut reader = Reader { types: &builtins.types, values: 0, depth: 0 };
    let mut object = Map::new();
    reader.message(id, raw, &mut object)?;
    object.insert("apiVersion".into(), gvk.api_version().into());
    object.insert("kind".into(), gvk.kind.to_string().into());
    let object = conform(id, Value::Object(object)).map_err(|error| ProtoError::Object(error.0))?;
    if !within(&object.value, OBJECT_DEPTH_MAX) {
        return Err(ProtoError::ObjectDepth);
    }
    Ok((gvk, object.value))
}

/// Whether a value stays within so many levels.
fn within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| within(item, levels - 1)),
        Value::Object(map) => levels > 0 && map.values().all(|value| within(value, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// One value on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl Part<'_> {
    fn wire(self) -> u8 {
        match self {
            Part::Varint(_) => 0,
            Part::Fixed64(_) => 1,
            Part::Bytes(_) => 2,
            Part::Fixed32 => 5,
        }
    }
}

/// What is left of a message.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    fn field(&mut self) -> Result<Option<(u32, Part<'a>)>, ProtoError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtoError::Overflow)?;
        let part = match tag & 7 {
            0 => Part::Varint(self.varint()?),
            1 => Part::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes were taken"))),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtoError::Truncated)?;
                Part::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Part::Fixed32
            }
            // Groups are not in any of these definitions.
            wire => return Err(ProtoError::Wire { wire: wire as u8, field: number.to_string() }),
        };
        Ok(Some((number, part)))
    }

    fn varint(&mut self) -> Result<u64, ProtoError> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(ProtoError::Truncated)?;
            self.0 = rest;
            if shift == 63 && byte > 1 {
                return Err(ProtoError::Overflow);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtoError::Overflow)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ProtoError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ProtoError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }
}

struct Reader<'a> {
    types: &'a Types,
    values: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn message(&mut self, id: TypeId, bytes: &[u8], out: &mut Map<String, Value>) -> Result<(), ProtoError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ProtoError::Depth);
        }
        let found = self.types.get(id);
        let mut wire = Wire(bytes);
        while let Some((number, part)) = wire.field()? {
            match found.slots.get(&number) {
                None => {}
                Some(Slot::Inline(inlined)) => {
                    let Part::Bytes(bytes) = part else {
                        return Err(ProtoError::Wire { wire: part.wire(), field: found.short.to_string() });
                    };
                    self.message(*inlined, bytes, out)?;
                }
                Some(Slot::Field(at)) => self.field(&found.fields[*at as usize], part, out)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn field(
        &mut self,
        field: &'a Field,
        part: Part<'_>,
        out: &mut Map<String, Value>,
    ) -> Result<(), ProtoError> {
        match &field.kind {
            Kind::List(item) => {
                let slot = out.entry(&*field.name).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(items) = slot else { return Ok(()) };
                if let (Kind::Bool | Kind::Int32 | Kind::Int64, Part::Bytes(packed)) = (&**item, part) {
                    let mut wire = Wire(packed);
                    while !wire.0.is_empty() {
                        let part = Part::Varint(wire.varint()?);
                        items.push(self.value(item, part, &field.name)?);
                    }
                } else {
                    items.push(self.value(item, part, &field.name)?);
                }
            }
            Kind::Map(item) => {
                let slot = out.entry(&*field.name).or_insert_with(|| Value::Object(Map::new()));
                let (Value::Object(map), Part::Bytes(entry)) = (slot, part) else {
                    return Err(ProtoError::Wire { wire: part.wire(), field: field.name.to_string() });
                };
                let (mut key, mut value) = (String::new(), Value::Null);
                let mut wire = Wire(entry);
                while let Some((number, part)) = wire.field()? {
                    match (number, part) {
                        (1, Part::Bytes(bytes)) => key = text(bytes),
                        (2, part) => value = self.entry(item, part, &field.name)?,
                        _ => {}
                    }
                }
                map.insert(key, value);
            }
            kind => {
                let value = self.value(kind, part, &field.name)?;
                out.insert(field.name.to_string(), value);
            }
        }
        Ok(())
    }

    /// The value of a map's entry. A map cannot hold lists in protobuf, so these are wrapped in a message of `items`.
    fn entry(&mut self, kind: &'a Kind, part: Part<'_>, name: &str) -> Result<Value, ProtoError> {
        let Kind::List(item) = kind else { return self.value(kind, part, name) };
        let Part::Bytes(wrapped) = part else {
            return Err(ProtoError::Wire { wire: part.wire(), field: name.to_owned() });
        };
        let mut items = Vec::new();
        let mut wire = Wire(wrapped);
        while let Some((number, part)) = wire.field()? {
            if number == 1 {
                items.push(self.value(item, part, name)?);
            }
        }
        Ok(items.into())
    }

    fn value(&mut self, kind: &'a Kind, part: Part<'_>, name: &str) -> Result<Value, ProtoError> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(ProtoError::Values);
        }
        let content = |problem: String| ProtoError::Content { field: name.to_owned(), problem };
        Ok(match (kind, part) {
            (Kind::Bool, Part::Varint(value)) => (value != 0).into(),
            // Go truncates what does not fit, too.
            (Kind::Int32, Part::Varint(value)) => (value as i32).into(),
            (Kind::Int64, Part::Varint(value)) => (value as i64).into(),
            (Kind::Double, Part::Fixed64(bits)) => f64::from_bits(bits).into(),
            (Kind::String, Part::Bytes(bytes)) => text(bytes).into(),
            (Kind::Bytes, Part::Bytes(bytes)) => {
                base64::engine::general_purpose::STANDARD.encode(bytes).into()
            }
            // An empty time is one that was never set.
            (Kind::Time | Kind::MicroTime, Part::Bytes([])) => Value::Null,
            (Kind::Time | Kind::MicroTime, Part::Bytes(bytes)) => {
                let (seconds, nanos) = (integer(bytes, 1)?, integer(bytes, 2)?);
                let written = match kind {
                    Kind::Time => instant::seconds_text(seconds as i64),
                    _ => instant::micros_text(seconds as i64, nanos as i32),
                };
                written.ok_or_else(|| content("the year is beyond 9999".into()))?.into()
            }
            (Kind::Quantity, Part::Bytes(bytes)) => match only(bytes, 1)? {
                b"" => "0".into(),
                bytes => text(bytes).into(),
            },
            (Kind::IntOrString, Part::Bytes(bytes)) => match integer(bytes, 1)? {
                1 => text(only(bytes, 3)?).into(),
                _ => (integer(bytes, 2)? as i32).into(),
            },
            (Kind::Raw | Kind::Any | Kind::Fields, Part::Bytes(bytes)) => match only(bytes, 1)? {
                b"" => Value::Null,
                raw => serde_json::from_slice(raw).map_err(|error| content(error.to_string()))?,
            },
            (Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings, Part::Bytes(bytes)) => {
                self.schema_or(kind, bytes, name)?
            }
            (Kind::Struct(id), Part::Bytes(bytes)) => {
                let mut map = Map::new();
                self.message(*id, bytes, &mut map)?;
                Value::Object(map)
            }
            (_, part) => return Err(ProtoError::Wire { wire: part.wire(), field: name.to_owned() }),
        })
    }

    fn schema_or(&mut self, kind: &Kind, bytes: &[u8], name: &str) -> Result<Value, ProtoError> {
        let props =
            self.types.find("apiextensions.v1.JSONSchemaProps").expect("JSONSchemaProps is in the table");
        let schema_number = if *kind == Kind::SchemaOrBool { 2 } else { 1 };
        let (mut schema, mut others, mut allows) = (None, Vec::new(), false);
        let mut wire = Wire(bytes);
        while let Some((number, part)) = wire.field()? {
            match (number, part) {
                (number, Part::Bytes(bytes)) if number == schema_number || *kind == Kind::SchemaOrList => {
                    let mut map = Map::new();
                    self.values += 1;
                    self.message(props, bytes, &mut map)?;
                    match number {
                        2 if *kind == Kind::SchemaOrList => others.push(Value::Object(map)),
                        _ => schema = Some(Value::Object(map)),
                    }
                }
                (1, Part::Varint(value)) => allows = value != 0,
                (2, Part::Bytes(bytes)) => others.push(text(bytes).into()),
                (_, part) => return Err(ProtoError::Wire { wire: part.wire(), field: name.to_owned() }),
            }
        }
        Ok(match (kind, schema) {
            (Kind::SchemaOrList | Kind::SchemaOrStrings, _) if !others.is_empty() => others.into(),
            (_, Some(schema)) => schema,
            (Kind::SchemaOrBool, None) => allows.into(),
            _ => Value::Null,
        })
    }
}

/// Go writes what is not UTF-8 with replacement characters, and so do we.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The bytes of one field of a small message, empty when it is not there.
fn only(bytes: &[u8], wanted: u32) -> Result<&[u8], ProtoError> {
    let (mut wire, mut found) = (Wire(bytes), &[][..]);
    while let Some((number, part)) = wire.field()? {
        if let (true, Part::Bytes(bytes)) = (number == wanted, part) {
            found = bytes;
        }
    }
    Ok(found)
}

/// The whole number in one field of a small message, 0 when it is not there.
fn integer(bytes: &[u8], wanted: u32) -> Result<u64, ProtoError> {
    let (mut wire, mut found) = (Wire(bytes), 0);
    while let Some((number, part)) = wire.field()? {
        if let (true, Part::Varint(value)) = (number == wanted, part) {
            found = value;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
