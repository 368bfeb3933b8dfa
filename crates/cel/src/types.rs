//! The types of CEL, as the checker and the `type()` function see them.
//!
//! Owns how a type is written and which runtime values it admits. Never unifies types: that is the
//! checker's work.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::value::Value;

/// A CEL type. `Dyn` stands for "known only at run time" and agrees with every other type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Known only at run time.
    Dyn,
    /// The type of an expression that already has an issue; agrees with everything so that one mistake
    /// is reported once.
    Error,
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`, 64 bits signed
    Int,
    /// `uint`, 64 bits unsigned
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Duration`
    Duration,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `list(T)`
    List(Arc<Type>),
    /// `map(K, V)`
    Map(Arc<Type>, Arc<Type>),
    /// The type of a type.
    Type(Arc<Type>),
    /// `optional_type(T)`
    Optional(Arc<Type>),
    /// A type without visible structure, such as `kubernetes.Quantity`.
    Opaque(Arc<str>),
    /// A record with named fields; its values are maps with string keys.
    Struct(Arc<StructType>),
    /// A type parameter of an overload.
    Param(char),
    /// A type the checker has yet to find out.
    Var(u32),
}

/// A record type that a host declares, for instance from the schema of a custom resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructType {
    /// The name shown in messages; two record types are the same type if their names are equal.
    pub name: Arc<str>,
    /// The fields by the name an expression uses.
    pub fields: BTreeMap<String, Type>,
}

/// The characters a type may take in a message before it is cut: types can share structure and so be
/// exponentially longer in writing than in memory.
const FORMATTED_TYPE_BYTES_MAX: usize = 1024;

impl Type {
    /// `list(element)`
    pub fn list(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    /// `map(key, value)`
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// `optional_type(inner)`
    pub fn optional(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    /// The type whose values are the type `inner`.
    pub fn of(inner: Type) -> Self {
        Self::Type(Arc::new(inner))
    }

    /// A named type without visible structure.
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(Arc::from(name))
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The name under which an expression refers to the type itself, parameters left out.
    pub fn runtime_name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Error => "!error!",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Optional(_) => "optional_type",
            Self::Opaque(name) => name,
            Self::Struct(record) => &record.name,
            Self::Type(_) | Self::Param(_) | Self::Var(_) => "type",
        }
    }

    /// Whether a value may be passed where this type is wanted. Looks at the outermost type only, as
    /// dispatch at run time does.
    pub(crate) fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Dyn | Self::Error | Self::Param(_) | Self::Var(_) => true,
            Self::Null => matches!(value, Value::Null),
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::Int => matches!(value, Value::Int(_)),
            Self::Uint => matches!(value, Value::Uint(_)),
            Self::Double => matches!(value, Value::Double(_)),
            Self::String => matches!(value, Value::String(_)),
            Self::Bytes => matches!(value, Value::Bytes(_)),
            Self::Duration => matches!(value, Value::Duration(_)),
            Self::Timestamp => matches!(value, Value::Timestamp(_)),
            Self::List(_) => matches!(value, Value::List(_)),
            Self::Map(..) | Self::Struct(_) => matches!(value, Value::Map(_)),
            Self::Type(_) => matches!(value, Value::Type(_)),
            Self::Optional(_) => matches!(value, Value::Optional(_)),
            Self::Opaque(name) => value.opaque_type_name() == Some(name),
        }
    }

    fn write(&self, out: &mut String) {
        if out.len() > FORMATTED_TYPE_BYTES_MAX {
            if !out.ends_with("...") {
                out.push_str("...");
            }
            return;
        }
        match self {
            Self::List(element) => {
                out.push_str("list(");
                element.write(out);
                out.push(')');
            }
            Self::Map(key, value) => {
                out.push_str("map(");
                key.write(out);
                out.push_str(", ");
                value.write(out);
                out.push(')');
            }
            Self::Type(inner) => {
                out.push_str("type(");
                inner.write(out);
                out.push(')');
            }
            Self::Optional(inner) => {
                out.push_str("optional_type(");
                inner.write(out);
                out.push(')');
            }
            Self::Null => out.push_str("null"),
            Self::Duration => out.push_str("duration"),
            Self::Timestamp => out.push_str("timestamp"),
            Self::Param(letter) => out.push(*letter),
            Self::Var(number) => {
                out.push_str("_var");
                out.push_str(&number.to_string());
            }
            other => out.push_str(other.runtime_name()),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}
