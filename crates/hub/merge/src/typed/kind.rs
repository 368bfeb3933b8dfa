//! What a value may be and whose its parts are: a schema node, or a rule for what no schema describes.
//!
//! A value that nothing is known about is deduced: objects have an owner per field, lists are one value. Below such a
//! list everything is one value.

use std::sync::LazyLock;

use berth_schema::{ListType, MapType, Schema, Shape};
use serde_json::Value;

use super::object_meta::common_field;

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'a> {
    /// As a schema node says.
    Of {
        /// The node.
        schema: Schema<'a>,
        /// Whether a node above keeps unknown fields: that holds for everything below it too.
        open: bool,
        /// Whether this is a resource of its own, with the fields every resource has.
        resource: bool,
        /// Whether fields exist before they are given, as those of built-in kinds do.
        record: bool,
    },
    /// Objects by field, lists as a whole.
    Deduced,
    /// Everything as a whole.
    Untyped,
}

/// Which kind of value a type is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Branch {
    Map,
    Scalar,
    List,
}

/// Which scalars are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

/// How the items of a list are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Items<'a> {
    /// They are not: the list is one value.
    Atomic,
    /// By what they are.
    Set,
    /// By these fields.
    Keyed(&'a [Box<str>]),
}

impl<'a> Type<'a> {
    /// The type of a whole object. Built-in kinds describe their own metadata; definitions do not get to.
    pub(crate) fn root(schema: Schema<'a>, builtin: bool) -> Self {
        Self::Of { schema, open: false, resource: !builtin, record: builtin }
    }

    fn below(self, schema: Schema<'a>) -> Self {
        let (open, record) = match self {
            Self::Of { schema, open, record, .. } => (open || schema.node().preserve_unknown, record),
            _ => (false, false),
        };
        Self::Of { schema, open, resource: schema.node().embedded_resource, record }
    }

    fn accepts(self, branch: Branch) -> bool {
        match self {
            Self::Deduced | Self::Untyped => true,
            Self::Of { schema, .. } => match schema.node().shape {
                Shape::Any | Shape::IntOrString => true,
                Shape::Object => branch == Branch::Map,
                Shape::Array => branch == Branch::List,
                Shape::String | Shape::Integer | Shape::Number | Shape::Boolean => branch == Branch::Scalar,
            },
        }
    }

    /// How a value is read: by what it is where the type allows it, otherwise by the type alone.
    pub(crate) fn branch(self, value: Option<&Value>) -> Branch {
        let natural = match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => Some(Branch::Scalar),
            Some(Value::Array(_)) => Some(Branch::List),
            Some(Value::Object(_)) => Some(Branch::Map),
            Some(Value::Null) | None => None,
        };
        natural.filter(|&branch| self.accepts(branch)).unwrap_or_else(|| {
            let found =
                [Branch::Map, Branch::Scalar, Branch::List].into_iter().find(|&branch| self.accepts(branch));
            found.expect("every type accepts one kind of value at least")
        })
    }

    /// Which scalars fit.
    pub(crate) fn scalar(self) -> Scalar {
        let Self::Of { schema, .. } = self else { return Scalar::Untyped };
        let node = schema.node();
        match node.shape {
            Shape::Integer | Shape::Number => Scalar::Numeric,
            Shape::Boolean => Scalar::Boolean,
            Shape::String => match node.checks.as_ref().and_then(|checks| checks.format.as_deref()) {
                None | Some("" | "byte") => Scalar::String,
                // A text with a format may be written in other ways too: a time, a quantity.
                Some(_) => Scalar::Untyped,
            },
            _ => Scalar::Untyped,
        }
    }

    /// Whether objects are one value.
    pub(crate) fn map_is_atomic(self) -> bool {
        match self {
            Self::Of { schema, .. } => schema.node().map == MapType::Atomic,
            Self::Deduced => false,
            Self::Untyped => true,
        }
    }

    /// Whether a field is named by the type itself, and not an entry of a map.
    pub(crate) fn declares(self, name: &str) -> bool {
        match self {
            Self::Of { schema, resource, .. } => {
                (resource && common_field(name).is_some()) || schema.node().properties.contains_key(name)
            }
            Self::Deduced | Self::Untyped => false,
        }
    }

    /// The type of a field, and whether it is declared; `None` where there can be no such field.
    pub(crate) fn field(self, name: &str) -> Option<(Self, bool)> {
        let Self::Of { schema, resource, .. } = self else { return self.entry().map(|entry| (entry, false)) };
        if resource && let Some(common) = common_field(name) {
            return Some((Self::Of { schema: common, open: false, resource: false, record: false }, true));
        }
        match schema.property(name) {
            Some(property) => Some((self.below(property), true)),
            None => self.entry().map(|entry| (entry, false)),
        }
    }

    /// The type of fields that are not declared.
    pub(crate) fn entry(self) -> Option<Self> {
        match self {
            Self::Deduced => Some(Self::Deduced),
            Self::Untyped => Some(Self::Untyped),
            Self::Of { schema, open, resource, .. } => {
                let node = schema.node();
                if let Some(entry) = schema.additional() {
                    return Some(self.below(entry));
                }
                let free = open || node.preserve_unknown || (node.properties.is_empty() && !resource);
                free.then_some(Self::Deduced)
            }
        }
    }

    /// Whether nothing is declared and anything goes.
    pub(crate) fn is_free_map(self) -> bool {
        let Self::Of { schema, resource, .. } = self else { return matches!(self, Self::Deduced) };
        if resource || !schema.node().properties.is_empty() {
            return false;
        }
        match self.entry() {
            Some(Self::Deduced) => true,
            Some(Self::Of { schema, .. }) => schema.node().shape == Shape::Any,
            _ => false,
        }
    }

    /// How the items of a list are told apart.
    pub(crate) fn items(self) -> Items<'a> {
        let Self::Of { schema, .. } = self else { return Items::Atomic };
        match &schema.node().list {
            ListType::Atomic => Items::Atomic,
            ListType::Set => Items::Set,
            ListType::Map(keys) => Items::Keyed(keys),
        }
    }

    /// The type of a list's items.
    pub(crate) fn item(self) -> Self {
        let Self::Of { schema, .. } = self else { return Self::Untyped };
        schema.items().map_or(Self::Untyped, |items| self.below(items))
    }

    /// What a key field of a list's item is when it is not given.
    pub(crate) fn key_default(self, name: &str) -> Option<&'a Value> {
        static EMPTY: Value = Value::String(String::new());
        static ZERO: LazyLock<Value> = LazyLock::new(|| Value::from(0));
        let Self::Of { schema, record, .. } = self else { return None };
        let item = schema.items()?;
        let key = item.property(name)?.node();
        if key.default.is_some()
            || !record
            || !item.node().required.iter().any(|required| **required == *name)
        {
            return key.default.as_ref();
        }
        match key.shape {
            Shape::String => Some(&EMPTY),
            Shape::Integer => Some(&ZERO),
            _ => None,
        }
    }
}
