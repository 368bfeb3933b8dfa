//! A schema as it is written in a definition.
//!
//! Owns reading its fields; one of another type, which the reader of definitions refuses, counts as absent.

use serde_json::{Map, Value};

/// The fields of a schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Props<'a>(&'a Map<String, Value>);

/// What a schema says of properties it does not name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Additional<'a> {
    Bool(bool),
    Schema(Props<'a>),
}

impl<'a> Props<'a> {
    pub(crate) fn of(schema: &'a Value) -> Option<Self> {
        schema.as_object().map(Self)
    }

    /// A field that says something: not null, not empty, not false and not zero.
    pub(crate) fn says(self, name: &str) -> bool {
        match self.0.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(entries)) => !entries.is_empty(),
            Some(Value::Object(fields)) => !fields.is_empty(),
            Some(_) => true,
        }
    }

    /// The names of the fields that say something.
    pub(crate) fn said(self) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(move |name| self.says(name))
    }

    /// A field that is there, whatever it says.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn flag(self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    pub(crate) fn list(self, name: &str) -> &'a [Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn texts(self, name: &str) -> impl Iterator<Item = &'a str> {
        self.list(name).iter().filter_map(Value::as_str)
    }

    pub(crate) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(crate) fn properties(self) -> impl Iterator<Item = (&'a str, Props<'a>)> {
        let properties = self.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().filter_map(|(name, schema)| Some((name.as_str(), Self::of(schema)?)))
    }

    pub(crate) fn property(self, name: &str) -> Option<Props<'a>> {
        self.get("properties").and_then(|properties| properties.get(name)).and_then(Self::of)
    }

    pub(crate) fn items(self) -> Option<Props<'a>> {
        self.get("items").and_then(Self::of)
    }

    pub(crate) fn additional(self) -> Option<Additional<'a>> {
        match self.get("additionalProperties")? {
            Value::Bool(allows) => Some(Additional::Bool(*allows)),
            schema => Self::of(schema).map(Additional::Schema),
        }
    }

    pub(crate) fn not(self) -> Option<Props<'a>> {
        self.get("not").and_then(Self::of)
    }

    pub(crate) fn schemas(self, name: &str) -> impl Iterator<Item = (usize, Props<'a>)> {
        self.list(name).iter().enumerate().filter_map(|(index, schema)| Some((index, Self::of(schema)?)))
    }
}

/// Whether a value nests deeper than so many levels.
pub(crate) fn deeper_than(value: &Value, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(entries) => entries.iter().any(|entry| deeper_than(entry, levels)),
        Value::Object(fields) => fields.values().any(|field| deeper_than(field, levels)),
        _ => false,
    }
}
