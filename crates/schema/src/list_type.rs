//! Lists whose items must differ.
//!
//! Owns `x-kubernetes-list-type`: in a set no item occurs twice, in a map no two items have the same keys. Each that
//! occurs again is named once, where it occurs the second time.

use std::{collections::HashMap, hash::Hash};

use serde_json::{Map, Value};

use crate::{
    DEPTH_MAX, gotext,
    node::{ListType, Schema},
    path::Place,
    problem::{Problem, Problems},
};

/// Every item that should not be there a second time.
pub fn validate_list_types(value: &Value, schema: Schema<'_>) -> Vec<Problem> {
    let mut problems = Problems::default();
    if value.is_object() {
        check(value, schema, &Place::Root, &mut problems, DEPTH_MAX);
    }
    problems.finish()
}

fn check(value: &Value, schema: Schema<'_>, place: &Place<'_>, problems: &mut Problems, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Array(entries) => {
            match &schema.node().list {
                ListType::Atomic => {}
                ListType::Set => check_set(entries, place, problems),
                ListType::Map(keys) => check_map(entries, keys, place, problems),
            }
            if let Some(items) = schema.items() {
                for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| is_compound(entry)) {
                    check(entry, items, &Place::Index(place, index), problems, depth);
                }
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(_, field)| is_compound(field)) {
                if let Some(property) = schema.property(name) {
                    check(field, property, &Place::Field(place, name), problems, depth);
                } else if let Some(additional) = schema.additional() {
                    check(field, additional, &Place::Key(place, name), problems, depth);
                }
            }
        }
        _ => {}
    }
}

fn is_compound(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

fn check_set(entries: &[Value], place: &Place<'_>, problems: &mut Problems) {
    for index in repeated(entries.iter().map(|entry| Key::of(Some(entry))), entries.len()) {
        problems.add(|| Problem::duplicate(&Place::Index(place, index).path(), &entries[index]));
    }
}

fn check_map(entries: &[Value], keys: &[Box<str>], place: &Place<'_>, problems: &mut Problems) {
    if let Some(index) = entries.iter().position(|entry| !entry.is_object() && !entry.is_null()) {
        let rule = "must be an object for an array of list-type map";
        return problems.add(|| Problem::invalid(&Place::Index(place, index).path(), &entries[index], rule));
    }
    let shown = |entry: &Value| {
        let parts = keys.iter().filter_map(|key| Some((key.to_string(), entry.get(&**key)?.clone())));
        Value::Object(parts.collect::<Map<_, _>>())
    };
    let found = match keys {
        [key] => repeated(entries.iter().map(|entry| Key::of(entry.get(&**key))), entries.len()),
        keys => {
            let identity =
                |entry| keys.iter().map(|key| Key::of(Value::get(entry, &**key))).collect::<Vec<_>>();
            repeated(entries.iter().map(identity), entries.len())
        }
    };
    for index in found {
        problems.add(|| Problem::duplicate(&Place::Index(place, index).path(), &shown(&entries[index])));
    }
}

/// What tells one value from another, without copying texts.
#[derive(PartialEq, Eq, Hash)]
enum Key<'v> {
    Absent,
    Text(&'v str),
    Other(String),
}

impl<'v> Key<'v> {
    fn of(value: Option<&'v Value>) -> Self {
        match value {
            None => Self::Absent,
            Some(Value::String(text)) => Self::Text(text),
            Some(other) => Self::Other(gotext::json(other)),
        }
    }
}

/// The places where a key occurs for the second time.
fn repeated<K: Eq + Hash>(keys: impl Iterator<Item = K>, count: usize) -> Vec<usize> {
    if count < 2 {
        return Vec::new();
    }
    let mut seen: HashMap<K, usize> = HashMap::with_capacity(count);
    let mut found = Vec::new();
    for (index, key) in keys.enumerate() {
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            found.push(index);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{compile, node::Arena};

    fn problems(schema: &Value, value: &Value) -> Vec<String> {
        let mut arena = Arena::default();
        let schema = json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": schema}}});
        let id = compile(&mut arena, &schema).unwrap();
        let value = json!({"m": {"v": value}});
        validate_list_types(&value, arena.schema(id)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_item_that_occurs_again_is_named_once() {
        let map = json!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["set", "name"],
            "items": {"type": "object"},
        });
        let item = |set: &str, name: &str, other: i32| json!({"set": set, "name": name, "other": other});
        let list = json!([item("a", "x", 1), item("a", "y", 1), item("a", "x", 2), item("a", "x", 3)]);
        assert_eq!(problems(&map, &list), ["m[v][2]: Duplicate value: {\"name\":\"x\",\"set\":\"a\"}"]);
        assert_eq!(problems(&map, &json!([null, {}])), ["m[v][1]: Duplicate value: {}"]);
        assert_eq!(
            problems(&map, &json!([{}, 7])),
            ["m[v][1]: Invalid value: 7: must be an object for an array of list-type map"]
        );
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        assert_eq!(problems(&set, &json!(["a", "b", "a", "a"])), ["m[v][2]: Duplicate value: \"a\""]);
        assert_eq!(problems(&set, &json!(["a", ["a"], {"a": 1}])), [] as [&str; 0]);
    }

    #[test]
    fn keys_are_never_confused_by_their_content() {
        let map = json!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a", "b"],
            "items": {"type": "object"},
        });
        let list = json!([{"a": "1", "b": "x\",\"c"}, {"a": "1\",\"b", "b": "x"}, {"a": 1}]);
        assert_eq!(problems(&map, &list), [] as [&str; 0]);
    }
}
