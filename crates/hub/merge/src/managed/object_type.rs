//! What kind of object is written: its schema, its other versions, and whether it is a built-in kind.

use std::fmt;

use berth_schema::Schema;
use serde_json::{Map, Value};

use crate::typed::Type;

/// The other versions of a kind, by `apiVersion`.
pub trait Versions: fmt::Debug {
    /// The schema under another version; `None` where there is no such version.
    fn schema(&self, version: &str) -> Option<Schema<'_>>;

    /// Why no entry may be of a version that there is not. Where nothing is said such entries are dropped, as their fields
    /// can no longer be told.
    fn refusal(&self, _version: &str) -> Option<String> {
        None
    }
}

impl<const N: usize> Versions for [(&str, Schema<'_>); N] {
    fn schema(&self, version: &str) -> Option<Schema<'_>> {
        self.iter().find(|(known, _)| *known == version).map(|(_, schema)| *schema)
    }
}

/// The type of the objects written. A plain [`Schema`] is a custom resource all of whose versions have that schema.
#[derive(Debug, Clone, Copy)]
pub struct ObjectType<'a> {
    schema: Schema<'a>,
    /// What an object of a built-in kind is before anything is given.
    zero: Option<&'a Value>,
    versions: Option<&'a dyn Versions>,
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

    /// The other versions that there are. Entries of managers under versions that are neither these nor the written one
    /// are dropped or refused, as the versions say.
    #[must_use]
    pub fn with_versions(self, versions: &'a dyn Versions) -> Self {
        Self { versions: Some(versions), ..self }
    }

    /// There is the written version alone.
    #[must_use]
    pub fn alone(self) -> Self {
        static NONE: [(&str, Schema<'static>); 0] = [];
        self.with_versions(&NONE)
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
            Some(versions) => versions.schema(version)?,
        };
        Some(Type::root(schema, self.zero.is_some()))
    }

    /// Whether a version has the very schema of the written one.
    pub(super) fn same_schema(&self, version: &str, written: &str) -> bool {
        if version == written {
            return true;
        }
        let Some(versions) = self.versions else { return true };
        versions.schema(version).is_some_and(|schema| std::ptr::eq(schema.node(), self.schema.node()))
    }

    /// Why no entry may be of a version.
    pub(super) fn refusal(&self, version: &str, written: &str) -> Option<String> {
        self.versions.filter(|_| self.at(version, written).is_none())?.refusal(version)
    }
}
