//! Taints and tolerations, as people write them.

use jiff::Timestamp;
use serde_json::{Value, json};

/// A taint that drives pods away, without the time at which it was added: `kubectl taint` writes none.
pub(crate) fn no_execute(key: &str) -> Value {
    json!({"key": key, "effect": "NoExecute"})
}

/// The same with a value.
pub(crate) fn no_execute_of(key: &str, value: &str) -> Value {
    json!({"key": key, "value": value, "effect": "NoExecute"})
}

/// The same with the time at which it was added, in whole seconds.
pub(crate) fn added(key: &str, at: Timestamp) -> Value {
    json!({"key": key, "effect": "NoExecute", "timeAdded": whole(at).to_string()})
}

/// Tolerates a key for ever.
pub(crate) fn forever(key: &str) -> Value {
    json!({"key": key, "operator": "Exists", "effect": "NoExecute"})
}

/// Tolerates a key for a while.
pub(crate) fn seconds(key: &str, seconds: i64) -> Value {
    json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds})
}

/// A time as the API tells it: in whole seconds, those that have begun left out.
pub(crate) fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).expect("a time without its fraction is one")
}
