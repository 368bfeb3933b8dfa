//! Which nodes a selector of nodes speaks of, as Kubernetes reads it.

use berth_api::core::Node;
use serde_json::Value;

/// The most terms of a node selector that are looked at; one with more matches nothing.
const TERMS_MAX: usize = 256;

/// The value of a label of a node.
pub(super) fn label<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Whether a pod with this spec asks for such a node, by its selector and its affinity to nodes.
pub(super) fn is_asked_for(node: &Node, spec: &Value) -> bool {
    let wanted = spec["nodeSelector"].as_object();
    let has_labels = wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| value.as_str().is_some_and(|value| label(node, key) == Some(value)));
    let affinity = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    has_labels && (affinity.is_null() || selects(affinity, node))
}

/// Whether one of the terms of a node selector speaks of a node. A term without anything in it speaks of none.
pub(super) fn selects(selector: &Value, node: &Node) -> bool {
    let Some(terms) = selector["nodeSelectorTerms"].as_array().filter(|terms| terms.len() <= TERMS_MAX)
    else {
        return false;
    };
    terms.iter().any(|term| {
        let list = |field: &str| term[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let (expressions, fields) = (list("matchExpressions"), list("matchFields"));
        let name = node.metadata.name.as_deref();
        (!expressions.is_empty() || !fields.is_empty())
            && expressions.iter().all(|one| holds(one, label(node, one["key"].as_str().unwrap_or_default())))
            && fields.iter().all(|one| one["key"] == "metadata.name" && holds(one, name))
    })
}

fn holds(requirement: &Value, found: Option<&str>) -> bool {
    let values: Vec<&str> =
        requirement["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let number = |text: &str| text.parse::<i64>().ok();
    let bound = values.first().and_then(|value| number(value));
    match requirement["operator"].as_str().unwrap_or_default() {
        "In" => found.is_some_and(|found| values.contains(&found)),
        "NotIn" => found.is_none_or(|found| !values.contains(&found)),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => found.and_then(number).zip(bound).is_some_and(|(found, bound)| found > bound),
        "Lt" => found.and_then(number).zip(bound).is_some_and(|(found, bound)| found < bound),
        _ => false,
    }
}
