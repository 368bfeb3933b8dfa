//! Reading and writing `metadata` on plain values.
//!
//! Owns the few accessors that every step needs. Tolerant: a field of the wrong type reads as absent, because types are
//! judged by the schema, not here.

use serde_json::{Map, Value};

/// A text field of the metadata, empty when absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|meta| meta.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number of the metadata.
pub(crate) fn number(object: &Value, field: &str) -> Option<i64> {
    object.get("metadata")?.get(field)?.as_i64()
}

/// The finalizers, in order.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    strings(object.get("metadata").and_then(|meta| meta.get("finalizers")))
}

/// The texts in a list.
pub(crate) fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array)
        .map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Whether deletion has begun.
pub(crate) fn deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// The metadata, made an object if it is none.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    child(map(object), "metadata")
}

/// Sets a field of the metadata, or removes it.
pub(crate) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let meta = of(object);
    match value {
        Some(value) => {
            meta.insert(field.to_owned(), value);
        }
        None => {
            meta.remove(field);
        }
    }
}

/// Sets the finalizers; none of them removes the field.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    let value = (!finalizers.is_empty()).then(|| finalizers.into());
    set(object, "finalizers", value);
}

/// A field that is an object, made one if it is none.
pub(crate) fn child<'a>(parent: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    map(parent.entry(field).or_insert_with(|| Value::Object(Map::new())))
}

/// The value as an object, made one if it is none.
pub(crate) fn map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just made an object")
}

/// The value at a path of fields.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, field| value.get(field))
}

/// Whether two objects are the same in all fields but one.
pub(crate) fn same_except(a: Option<&Value>, b: Option<&Value>, field: &str) -> bool {
    let (Some(Value::Object(a)), Some(Value::Object(b))) = (a, b) else { return a == b };
    let others = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(field));
    others(a) == others(b) && a.iter().all(|(key, value)| key == field || b.get(key) == Some(value))
}
