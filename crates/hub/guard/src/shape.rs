//! Writing into JSON of unknown shape without ever panicking: what is in the way and not an object is replaced.

use serde_json::{Map, Value};

/// The object at `path`, made where it is missing.
pub(crate) fn object_at<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let map = value.as_object_mut().expect("it was made an object just above");
    match path.split_first() {
        None => map,
        Some((key, rest)) => object_at(map.entry((*key).to_owned()).or_insert(Value::Null), rest),
    }
}

/// Sets the field `path` to `new`.
pub(crate) fn set(value: &mut Value, path: &[&str], new: Value) {
    if let Some((key, parents)) = path.split_last() {
        object_at(value, parents).insert((*key).to_owned(), new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_is_in_the_way_gives_way() {
        let mut value = json!({"a": "text", "b": {"c": 1}});
        set(&mut value, &["a", "x"], json!(1));
        set(&mut value, &["b", "d", "e"], json!(2));
        assert_eq!(value, json!({"a": {"x": 1}, "b": {"c": 1, "d": {"e": 2}}}));
        let mut list = json!([1]);
        set(&mut list, &["k"], json!(3));
        assert_eq!(list, json!({"k": 3}));
    }
}
