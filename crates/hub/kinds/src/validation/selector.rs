//! Label selectors: whether they are well-formed and what they select.

use berth_schema::names;
use serde_json::Value;

use super::place::{At, Found};

const NEEDS_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const NO_VALUES: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

/// The problems of a label selector.
pub(super) fn check(selector: &At<'_>, found: &mut Found) {
    found.labels(&selector.get("matchLabels"));
    for expression in selector.get("matchExpressions").items() {
        let (operator, values) = (expression.get("operator"), expression.get("values"));
        match operator.text() {
            "In" | "NotIn" if values.len() == 0 => found.required(&values, NEEDS_VALUES),
            "Exists" | "DoesNotExist" if values.len() > 0 => found.forbidden(&values, NO_VALUES),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => found.invalid_text(&operator, other, "not a valid selector operator"),
        }
        found.label_name(&expression.get("key"));
        for value in values.items() {
            found.sentences(&value, names::label_value(value.text()));
        }
    }
}

/// The problems of a selector term of nodes.
pub(super) fn check_node_term(term: &At<'_>, found: &mut Found) {
    for expression in term.get("matchExpressions").items() {
        let (operator, values) = (expression.get("operator"), expression.get("values"));
        match operator.text() {
            "In" | "NotIn" if values.len() == 0 => found.required(&values, NEEDS_VALUES),
            "Exists" | "DoesNotExist" if values.len() > 0 => found.forbidden(&values, NO_VALUES),
            "Gt" | "Lt" if values.len() != 1 => {
                found.required(&values, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => found.invalid_text(&operator, other, "not a valid selector operator"),
        }
        found.label_name(&expression.get("key"));
    }
}

/// Whether a selector, given that it is well-formed, selects these labels; `None` when it is not.
pub(super) fn matches(selector: &Value, labels: &Value) -> Option<bool> {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let mut all = true;
    for (key, value) in crate::access::entries(selector, &["matchLabels"]) {
        all &= label(key) == value.as_str();
    }
    for expression in crate::access::items(selector, &["matchExpressions"]) {
        let found = label(crate::access::text(expression, &["key"]));
        let values = crate::access::items(expression, &["values"]);
        let among = found.is_some_and(|found| values.iter().any(|value| value == found));
        all &= match crate::access::text(expression, &["operator"]) {
            "In" => among,
            "NotIn" => !among,
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => return None,
        };
    }
    Some(all)
}
