//! Events, one storage with two views: `v1` and `events.k8s.io/v1`.
//!
//! Owns how the fields of one view are named in the other. Objects are stored in the first.

use serde_json::{Map, Value};

use crate::{
    conform::conform,
    registry::{Builtin, Builtins},
};

/// Fields whose names differ: in `v1`, in `events.k8s.io/v1`.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// An object as it is stored, from the view of the kind it was sent as. Other kinds are stored as they are.
pub fn to_stored(kind: &Builtin, object: Value) -> Value {
    if is_second_view(kind) { convert(object, "", |(first, second)| (second, first)) } else { object }
}

/// A stored object in the view of a kind.
pub fn from_stored(kind: &Builtin, object: Value) -> Value {
    if is_second_view(kind) { convert(object, kind.group, |names| names) } else { object }
}

fn is_second_view(kind: &Builtin) -> bool {
    kind.kind == "Event" && !kind.group.is_empty()
}

fn convert(
    object: Value,
    group: &str,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    let Value::Object(mut map) = object else { return object };
    let mut out = Map::new();
    for names in RENAMED {
        let (from, to) = direction(names);
        if let Some(value) = map.remove(from) {
            out.insert(to.to_owned(), value);
        }
    }
    out.extend(map);
    let builtins = Builtins::load();
    let target = builtins.kind(group, "v1", "Event").expect("both views of events are built in");
    out.insert("apiVersion".to_owned(), target.api_version().into());
    let renamed = Value::Object(out);
    // The views differ in which empty fields are written. What cannot be read as the other view was no event before either.
    conform(target.type_id, renamed.clone()).map_or(renamed, |conformed| conformed.value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_survives_both_views() {
        let builtins = Builtins::load();
        let (core, events) = (
            builtins.kind("", "v1", "Event").unwrap(),
            builtins.kind("events.k8s.io", "v1", "Event").unwrap(),
        );
        let sent = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "p"}, "note": "hello", "reportingController": "c", "type": "Normal",
            "eventTime": "2026-01-02T03:04:05.000000Z", "deprecatedCount": 3});
        let sent = conform(events.type_id, sent).unwrap().value;
        let stored = to_stored(events, sent.clone());
        assert_eq!(stored["apiVersion"], "v1");
        assert_eq!(stored["involvedObject"]["name"], "p");
        assert_eq!(stored["message"], "hello");
        assert_eq!(stored["count"], 3);
        assert_eq!(stored["reportingComponent"], "c");
        assert_eq!(from_stored(events, stored.clone()), sent);
        assert_eq!(from_stored(core, stored.clone()), stored);
    }
}
