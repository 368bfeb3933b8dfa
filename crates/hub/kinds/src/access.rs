//! Short ways to read and write fields of an object.
//!
//! Owns only that: an absent field, null and a field below something that is no object all read as absent, so that callers
//! never have to ask. Writing makes the objects on the way.

use serde_json::{Map, Value};

/// The value at a path of field names, absent when it is null.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// The text at a path, empty when there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a path.
pub(crate) fn int(object: &Value, path: &[&str]) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// Whether true stands at a path.
pub(crate) fn flag(object: &Value, path: &[&str]) -> bool {
    at(object, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The items of the list at a path.
pub(crate) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The entries of the object at a path.
pub(crate) fn entries<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = (&'a String, &'a Value)> {
    at(object, path).and_then(Value::as_object).into_iter().flatten()
}

/// The object at a path, made where it is absent. `None` when something else stands in the way.
pub(crate) fn make<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut place = object;
    for name in path {
        let map = place.as_object_mut()?;
        let next = map.entry(*name).or_insert(Value::Null);
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        place = next;
    }
    place.as_object_mut()
}

/// Sets the field at the end of a path, or removes it.
pub(crate) fn put(object: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((last, parents)) = path.split_last() else { return };
    if value.is_none() && at(object, parents).is_none() {
        return;
    }
    let Some(map) = make(object, parents) else { return };
    match value {
        Some(value) => map.insert((*last).to_owned(), value),
        None => map.remove(*last),
    };
}
