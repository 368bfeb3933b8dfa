//! The generated table: every type the built-in kinds are made of, field by field.
//!
//! Owns reading `data/kinds.txt`, one line per fact:
//!
//! ```text
//! package core.v1 io.k8s.api.core.v1          how OpenAPI names the package
//! type core.v1.Taint [map=atomic]
//!   key string 1 r                            name, kind, protobuf number, flags
//!   timeAdded time 4 * o
//!   ~ core.v1.VolumeSource 2                  fields written into this object, a message of its own in protobuf
//!   - name 3                                  a protobuf number in use, never in JSON
//! ```
//!
//! Kinds are scalars (`string`, `int32`, `time`, …), other types, `[]` lists and `{}` maps of them. Flags: `*` a pointer in Go,
//! `o` left out when empty, `z` left out when zero, `r` required by the published schema, `list=`, `map=`, `patch=` the merge
//! rules, `default=` the published default, `go=` what Go calls the type where the kind does not tell.
//! Never looks at an object.

use std::collections::HashMap;

use berth_schema::{ListType, PatchRule};
use serde_json::Value;

/// The number of a type in [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

/// What a field holds, as Go and protobuf see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `float64`.
    Double,
    /// A string or a named string.
    String,
    /// Bytes, base64 in JSON.
    Bytes,
    /// A time to the second, RFC 3339 in JSON.
    Time,
    /// A time to the microsecond.
    MicroTime,
    /// A resource quantity such as `250m`.
    Quantity,
    /// A whole number or a string.
    IntOrString,
    /// Any object (`RawExtension`).
    Raw,
    /// Any JSON.
    Any,
    /// The fields of a `managedFields` entry.
    Fields,
    /// One JSON schema or a list of them.
    SchemaOrList,
    /// A JSON schema or true or false.
    SchemaOrBool,
    /// A JSON schema or a list of property names.
    SchemaOrStrings,
    /// A record.
    Struct(TypeId),
    /// A list.
    List(Box<Kind>),
    /// A map with string keys.
    Map(Box<Kind>),
}

/// When a field is left out of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omit {
    /// Never: an unset list or pointer is written as null, an unset scalar as its zero value.
    Never,
    /// When it is null, an empty list, map or string, zero or false. A record that is not a pointer is always written.
    Empty,
    /// As [`Omit::Empty`], and a zero time too.
    Zero,
}

/// One field of a type.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the table")]
pub struct Field {
    /// Its name in JSON.
    pub name: Box<str>,
    /// What it holds.
    pub kind: Kind,
    /// Its protobuf number within the message that declares it, 0 when it is not in protobuf.
    pub number: u32,
    /// Whether Go holds a pointer, so that a zero value is told from an absent one.
    pub pointer: bool,
    /// When it is left out of JSON.
    pub omit: Omit,
    /// Whether the published schema requires it.
    pub required: bool,
    /// The published list type.
    pub list: Option<ListType>,
    /// Whether the published schema calls the map or record atomic here.
    pub atomic: bool,
    /// How a strategic merge patch treats it.
    pub patch: Option<PatchRule>,
    /// The published default, other than a zero value.
    pub default: Option<Value>,
    /// Go's name of the type, where the kind does not tell.
    pub go: Option<Box<str>>,
    /// Whether the field comes from an inlined type.
    pub inlined: bool,
}

/// What a protobuf number of a message stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A field, by its place in [`Type::fields`].
    Field(u32),
    /// A message whose fields are written into the same object.
    Inline(TypeId),
}

/// One type: the fields of its JSON in Go's order, those of inlined types included.
#[derive(Debug, Clone, Default)]
pub struct Type {
    /// Its name with the short package, as `core.v1.Pod`.
    pub short: Box<str>,
    /// Its name in OpenAPI, as `io.k8s.api.core.v1.Pod`.
    pub name: Box<str>,
    /// Its fields.
    pub fields: Vec<Field>,
    /// Whether the whole type is atomic when merged.
    pub atomic: bool,
    /// Its protobuf numbers.
    pub(crate) slots: HashMap<u32, Slot>,
    by_name: HashMap<Box<str>, u32>,
    inlines: Vec<(usize, TypeId)>,
}

impl Type {
    /// The field of this JSON name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name).map(|&at| &self.fields[at as usize])
    }

    /// The last part of its name, as Go's messages have it.
    pub fn go_name(&self) -> &str {
        self.short.rsplit('.').next().unwrap_or(&self.short)
    }
}

/// All types of the table.
#[derive(Debug, Default)]
pub struct Types {
    types: Vec<Type>,
    by_short: HashMap<Box<str>, TypeId>,
}

impl Types {
    /// The type of this number.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// The type of this short name (`core.v1.Pod`).
    pub fn find(&self, short: &str) -> Option<TypeId> {
        self.by_short.get(short).copied()
    }

    /// All types with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        self.types.iter().enumerate().map(|(at, found)| (TypeId(at as u32), found))
    }

    /// What Go calls the type of a field in its messages.
    pub fn go_type(&self, field: &Field) -> String {
        field.go.as_deref().map_or_else(|| self.go_kind(&field.kind), |go| go.replace("[]byte", "[]uint8"))
    }

    /// What Go calls a kind when nothing else is said.
    pub fn go_kind(&self, kind: &Kind) -> String {
        match kind {
            Kind::Bool => "bool".into(),
            Kind::Int32 => "int32".into(),
            Kind::Int64 => "int64".into(),
            Kind::Double => "float64".into(),
            Kind::String => "string".into(),
            Kind::Bytes => "[]uint8".into(),
            Kind::Time => "v1.Time".into(),
            Kind::MicroTime => "v1.MicroTime".into(),
            Kind::Quantity => "resource.Quantity".into(),
            Kind::IntOrString => "intstr.IntOrString".into(),
            Kind::Raw => "runtime.RawExtension".into(),
            Kind::Any => "v1.JSON".into(),
            Kind::Fields => "v1.FieldsV1".into(),
            Kind::SchemaOrList => "v1.JSONSchemaPropsOrArray".into(),
            Kind::SchemaOrBool => "v1.JSONSchemaPropsOrBool".into(),
            Kind::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".into(),
            Kind::Struct(id) => format!("v1.{}", self.get(*id).go_name()),
            Kind::List(item) => format!("[]{}", self.go_kind(item)),
            Kind::Map(item) => format!("map[string]{}", self.go_kind(item)),
        }
    }

    /// Reads a table.
    ///
    /// # Panics
    /// When the text is not a table: it is part of the program, written by our own tool and read in our tests.
    pub(crate) fn read(text: &str) -> Types {
        let mut types = Types::default();
        let mut packages: HashMap<&str, &str> = HashMap::new();
        for line in text.lines() {
            if let Some((short, long)) = line.strip_prefix("package ").and_then(|rest| rest.split_once(' ')) {
                packages.insert(short, long);
            } else if let Some(rest) = line.strip_prefix("type ") {
                let mut words = rest.split(' ');
                let short = words.next().expect("a type line names its type");
                let (package, name) = short.rsplit_once('.').expect("a type has a package");
                let id = TypeId(types.types.len() as u32);
                types.by_short.insert(short.into(), id);
                types.types.push(Type {
                    short: short.into(),
                    name: format!(
                        "{}.{name}",
                        packages.get(package).expect("a package line names the package")
                    )
                    .into(),
                    atomic: words.any(|word| word == "map=atomic"),
                    ..Type::default()
                });
            }
        }
        let mut current = 0;
        let mut next = 0;
        for line in text.lines() {
            if line.starts_with("type ") {
                current = next;
                next += 1;
            } else if let Some(rest) = line.strip_prefix("  ") {
                types.read_field(current, rest);
            }
        }
        types.inline();
        types
    }

    fn read_field(&mut self, current: usize, line: &str) {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("a field line has a name, a kind and a number");
        let (name, kind) = (word(), word());
        match name {
            "-" => {}
            "~" => {
                let id = self.find(kind).expect("an inlined type is in the table");
                let number = word().parse().expect("a protobuf number is a number");
                let at = self.types[current].fields.len();
                self.types[current].inlines.push((at, id));
                self.types[current].slots.insert(number, Slot::Inline(id));
            }
            name => {
                let number = word().parse().expect("a protobuf number is a number");
                let kind = self.kind(kind);
                let field = read_flags(Field::new(name, kind, number), words);
                let at = self.types[current].fields.len() as u32;
                if number != 0 {
                    self.types[current].slots.insert(number, Slot::Field(at));
                }
                self.types[current].fields.push(field);
            }
        }
    }

    /// Writes the fields of inlined types into the types that inline them. Inlined types inline nothing themselves.
    fn inline(&mut self) {
        for at in 0..self.types.len() {
            for (place, id) in std::mem::take(&mut self.types[at].inlines).into_iter().rev() {
                let inlined = self.get(id);
                debug_assert!(inlined.inlines.is_empty(), "{} is inlined and inlines", inlined.short);
                let fields: Vec<Field> =
                    inlined.fields.iter().cloned().map(|field| Field { inlined: true, ..field }).collect();
                let (grown, count) = (&mut self.types[at], fields.len() as u32);
                grown.fields.splice(place..place, fields);
                for slot in grown.slots.values_mut() {
                    if let Slot::Field(field) = slot
                        && *field as usize >= place
                    {
                        *field += count;
                    }
                }
            }
            let grown = &mut self.types[at];
            grown.by_name = (0..).zip(&grown.fields).map(|(at, field)| (field.name.clone(), at)).collect();
        }
    }

    fn kind(&self, word: &str) -> Kind {
        if let Some(item) = word.strip_prefix("[]") {
            return Kind::List(Box::new(self.kind(item)));
        }
        if let Some(value) = word.strip_prefix("{}") {
            return Kind::Map(Box::new(self.kind(value)));
        }
        match word {
            "bool" => Kind::Bool,
            "int32" => Kind::Int32,
            "int64" => Kind::Int64,
            "double" => Kind::Double,
            "string" => Kind::String,
            "bytes" => Kind::Bytes,
            "time" => Kind::Time,
            "microtime" => Kind::MicroTime,
            "quantity" => Kind::Quantity,
            "intorstring" => Kind::IntOrString,
            "raw" => Kind::Raw,
            "any" => Kind::Any,
            "fields" => Kind::Fields,
            "schemaorlist" => Kind::SchemaOrList,
            "schemaorbool" => Kind::SchemaOrBool,
            "schemaorstrings" => Kind::SchemaOrStrings,
            name => Kind::Struct(self.find(name).expect("every type that is named is in the table")),
        }
    }
}

impl Field {
    fn new(name: &str, kind: Kind, number: u32) -> Field {
        Field {
            name: name.into(),
            kind,
            number,
            pointer: false,
            omit: Omit::Never,
            required: false,
            list: None,
            atomic: false,
            patch: None,
            default: None,
            go: None,
            inlined: false,
        }
    }
}

fn read_flags<'a>(mut field: Field, words: impl Iterator<Item = &'a str>) -> Field {
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("*", _) => field.pointer = true,
            ("o", _) => field.omit = Omit::Empty,
            ("z", _) => field.omit = Omit::Zero,
            ("r", _) => field.required = true,
            ("map", kind) => field.atomic = kind == "atomic",
            ("go", name) => field.go = Some(name.into()),
            ("default", json) => field.default = Some(serde_json::from_str(json).expect("a default is JSON")),
            ("list", kind) => field.list = Some(list_type(kind)),
            ("patch", rule) => {
                let (strategies, key) =
                    rule.split_once(':').map_or((rule, None), |(all, key)| (all, Some(key)));
                field.patch = Some(PatchRule {
                    merge: strategies.split(',').any(|strategy| strategy == "merge"),
                    retain_keys: strategies.split(',').any(|strategy| strategy == "retainKeys"),
                    merge_key: key.map(Into::into),
                });
            }
            _ => panic!("unknown flag {word} in the table"),
        }
    }
    field
}

fn list_type(word: &str) -> ListType {
    match word.split_once(':') {
        Some(("map", keys)) => ListType::Map(keys.split(',').map(Into::into).collect()),
        _ if word == "set" => ListType::Set,
        _ => ListType::Atomic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TABLE;

    #[test]
    fn inlined_fields_stand_where_their_type_was_inlined() {
        let types = Types::read(TABLE);
        let volume = types.get(types.find("core.v1.Volume").unwrap());
        assert_eq!(&*volume.fields[0].name, "name");
        assert!(volume.field("configMap").unwrap().inlined);
        assert_eq!(volume.slots[&2], Slot::Inline(types.find("core.v1.VolumeSource").unwrap()));
    }

    #[test]
    fn fields_after_an_inlined_type_keep_their_protobuf_number() {
        let types = Types::read(TABLE);
        let probe = types.get(types.find("core.v1.Probe").unwrap());
        let Slot::Field(at) = probe.slots[&2] else { panic!("a field") };
        assert_eq!(&*probe.fields[at as usize].name, "initialDelaySeconds");
        assert_eq!(types.get(types.find("core.v1.Pod").unwrap()).name.as_ref(), "io.k8s.api.core.v1.Pod");
    }

    #[test]
    fn no_type_declares_a_name_twice() {
        for (_, found) in Types::read(TABLE).iter() {
            assert_eq!(found.by_name.len(), found.fields.len(), "{}", found.short);
        }
    }
}
