//! Conditions in an object's status.
//!
//! Owns the one rule all of them share: there is one of a type, and its time moves only when its status does.

use jiff::Timestamp;
use serde_json::Value;

use super::act::stamp;
use super::meta;

/// Puts a condition in the place of the one of its type, or at the end.
pub(crate) fn set(object: &mut Value, mut condition: Value, now: Timestamp) {
    let status = meta::child(meta::map(object), "status");
    let list = status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let list = list.as_array_mut().expect("it was just made a list");
    let kind = condition.get("type").cloned();
    let present = list.iter_mut().find(|present| present.get("type") == kind.as_ref());
    let kept = present.as_ref().filter(|present| present.get("status") == condition.get("status"));
    let since =
        kept.and_then(|kept| kept.get("lastTransitionTime")).cloned().unwrap_or_else(|| stamp(now).into());
    meta::map(&mut condition).insert("lastTransitionTime".to_owned(), since);
    match present {
        Some(present) => *present = condition,
        None => list.push(condition),
    }
}

/// The condition of a type.
pub(crate) fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = meta::at(object, &["status", "conditions"])?.as_array()?;
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// A text of a condition, empty when absent.
pub(crate) fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the condition of a type holds.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| text(condition, "status") == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_time_of_a_condition_moves_with_its_status_alone() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut object = json!({});
        set(&mut object, json!({"type": "A", "status": "True"}), at("2026-01-01T00:00:00Z"));
        set(&mut object, json!({"type": "A", "status": "True", "reason": "R"}), at("2026-01-02T00:00:00Z"));
        let since = |object: &Value| object["status"]["conditions"][0]["lastTransitionTime"].clone();
        assert_eq!(since(&object), "2026-01-01T00:00:00Z");
        assert_eq!(object["status"]["conditions"][0]["reason"], "R");
        set(&mut object, json!({"type": "A", "status": "False"}), at("2026-01-03T00:00:00Z"));
        assert_eq!(since(&object), "2026-01-03T00:00:00Z");
        assert!(!is_true(&object, "A"));
    }
}
