//! What kind of object is written: its schema, its other versions, and whether it is a built-in kind.

use berth_schema::Schema;
use serde_json::{Map, Value};

use crate::typed::Type;

/// The type of the objects written. A plain [`Schema`] is a custom resource all of whose versions have that schema.
#[derive(Debug, Clone, Copy)]
pub struct ObjectType<'a> {
    schema: Schema<'a>,
    /// What an object of a built-in kind is before anything is given.
    zero: Option<&'a Value>,
    versions: Option<&'a [(&'a str, Schema<'a>)]>,
}

impl<'a> From<Schema<'a>> for ObjectType<'a> {
    fn from(schema: Schema<'a>) -> Self {
        Self { schema, zero: None, versions: None }
    }
}

impl<'a> ObjectType<'a> {
    /// A custom resource with this schema.
    pub fn custom(schema: Schema<'a>) -> Self {
        schema.into()
    }

    /// A built-in kind with this schema. Such a kind is a record: its plain fields exist before they are given, empty
    /// (`spec: {}`, `status: {}`, `containers: null`), and who creates the object does not come to own those that stay
    /// empty. `zero` is what an object looks like in which nothing is given.
    pub fn builtin(schema: Schema<'a>, zero: &'a Value) -> Self {
        Self { schema, zero: Some(zero), versions: None }
    }

    /// The other versions that are served, by `apiVersion`. Entries of managers under versions that are neither these
    /// nor the written one are dropped, as their fields can no longer be told.
    #[must_use]
    pub fn with_versions(self, versions: &'a [(&'a str, Schema<'a>)]) -> Self {
        Self { versions: Some(versions), ..self }
    }

    /// The object that a creation is compared with, of the kind of another.
    pub(super) fn empty(&self, like: &Value) -> Value {
        let mut object = self.zero.and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
        for name in ["apiVersion", "kind"] {
            match like.get(name) {
                Some(text) => object.insert(name.to_owned(), text.clone()),
                None => object.remove(name),
            };
        }
        Value::Object(object)
    }

    /// The type under a version; `None` for a version that is not served.
    pub(super) fn at(&self, version: &str, written: &str) -> Option<Type<'a>> {
        let schema = match self.versions {
            _ if version == written => self.schema,
            None => self.schema,
            Some(versions) => versions.iter().find(|(known, _)| *known == version)?.1,
        };
        Some(Type::root(schema, self.zero.is_some()))
    }

    /// Whether a version has the very schema of the written one.
    pub(super) fn same_schema(&self, version: &str, written: &str) -> bool {
        if version == written {
            return true;
        }
        let Some(versions) = self.versions else { return true };
        versions
            .iter()
            .any(|(known, schema)| *known == version && std::ptr::eq(schema.node(), self.schema.node()))
    }
}
