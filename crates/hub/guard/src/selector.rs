//! Label selectors as webhooks and aggregated roles carry them.
//!
//! Owns what an absent one means there. The language itself is the wire's.

use berth_hub_wire::LabelSelector;
use serde_json::Value;

/// Reads a selector; the error names what cannot be understood. An absent selector selects everything.
pub(crate) fn read(selector: Option<&Value>) -> Result<LabelSelector, String> {
    match selector {
        None | Some(Value::Null) => Ok(LabelSelector::everything()),
        Some(selector) => LabelSelector::from_object(selector),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_absent_selector_selects_everything_and_an_unknown_operator_is_an_error() {
        assert!(read(None).unwrap().is_everything());
        assert!(read(Some(&Value::Null)).unwrap().is_everything());
        assert!(read(Some(&json!({}))).unwrap().is_everything());
        let bad = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
        assert_eq!(read(Some(&bad)).unwrap_err(), "\"Like\" is not a valid label selector operator");
    }
}
