//! The merge patch that turns one value into another.

use serde::Serialize;
use serde_json::{Map, Value};

/// The smallest merge patch from `before` to `after`; `None` if they are the same.
pub fn difference<T: Serialize + PartialEq>(before: &T, after: &T) -> Option<Value> {
    // Most often they are, and that is told far sooner than what they look like.
    if before == after {
        return None;
    }
    let read =
        |value: &T| serde_json::to_value(value).expect("our types have string keys and finite numbers only");
    values(&read(before), &read(after))
}

fn values(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return Some(after.clone()) };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        let changed = before.get(name).map_or_else(|| Some(value.clone()), |before| values(before, value));
        patch.extend(changed.map(|changed| (name.clone(), changed)));
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_in_the_patch() {
        let before = json!({"a": 1, "b": {"c": 2, "d": 3}, "gone": true, "list": [1, 2]});
        let after = json!({"a": 1, "b": {"c": 2, "d": 4}, "list": [2], "new": {}});
        assert_eq!(
            difference(&before, &after),
            Some(json!({"b": {"d": 4}, "gone": null, "list": [2], "new": {}}))
        );
        assert_eq!(difference(&after, &after), None);
    }
}
