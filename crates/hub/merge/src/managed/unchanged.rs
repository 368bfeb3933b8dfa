//! A write that changes nothing but the times of entries changes nothing.

use serde_json::Value;

use super::entry;

/// Puts the stored times back into an object that is the stored one but for them, so that it can be told as unchanged.
///
/// Called with what is about to be stored, after everything else: the answer to a repeated apply is then the very object
/// that is stored, and no event is made of it.
pub fn keep_times_of_unchanged(live: &Value, new: &mut Value) {
    let (Some(old), Some(now)) = (entry::of(live).as_array(), entry::of(new).as_array()) else { return };
    let same_but_times = old.len() == now.len()
        && !old.is_empty()
        && old != now
        && old.iter().zip(now).all(|(old, now)| equal_without(old, now, &["time"]));
    if !same_but_times || !equal_without_entries(live, new) {
        return;
    }
    let old = entry::of(live).clone();
    new["metadata"]["managedFields"] = old;
}

fn equal_without(left: &Value, right: &Value, names: &[&str]) -> bool {
    let (Value::Object(left), Value::Object(right)) = (left, right) else { return left == right };
    let fields = |object: &'_ serde_json::Map<String, Value>| {
        object.keys().filter(|name| !names.contains(&name.as_str())).count()
    };
    fields(left) == fields(right)
        && left
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()))
            .all(|(name, value)| right.get(name) == Some(value))
}

fn equal_without_entries(left: &Value, right: &Value) -> bool {
    let (Some(left_meta), Some(right_meta)) = (left.get("metadata"), right.get("metadata")) else {
        return false;
    };
    equal_without(left_meta, right_meta, &["managedFields"]) && equal_without(left, right, &["metadata"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(time: &str, replicas: u32) -> Value {
        json!({
            "metadata": {"name": "x", "managedFields": [{"manager": "m", "time": time, "fieldsV1": {"f:spec": {}}}]},
            "spec": {"replicas": replicas},
        })
    }

    #[test]
    fn times_alone_are_put_back() {
        let live = object("2026-01-01T00:00:00Z", 1);
        let mut new = object("2026-01-02T00:00:00Z", 1);
        keep_times_of_unchanged(&live, &mut new);
        assert_eq!(new, live);
    }

    #[test]
    fn a_real_change_keeps_its_time() {
        let live = object("2026-01-01T00:00:00Z", 1);
        let mut new = object("2026-01-02T00:00:00Z", 2);
        keep_times_of_unchanged(&live, &mut new);
        assert_eq!(new, object("2026-01-02T00:00:00Z", 2));
    }
}
