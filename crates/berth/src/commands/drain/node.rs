//! What a drain writes on a node, and what undoing it takes off again: pure changes of its spec.

use berth_api::names::{annotation, node_taint};
use berth_engine::Moment;
use berth_engine::taint::{NodeEffect, Taint};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint as NodeTaint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// What makes pods leave.
const EFFECT: &str = "NoExecute";

/// The taint of a drain on a node, if there is one.
pub(super) fn drain_taint(node: &Node) -> Option<&NodeTaint> {
    let taints = node.spec.as_ref()?.taints.as_ref()?;
    taints.iter().find(|taint| taint.key == node_taint::DRAIN && taint.effect == EFFECT)
}

/// The taint as a drain that begins at `now` writes it: by a whole second that has come.
pub(super) fn new_taint(reason: Option<&str>, now: Timestamp) -> NodeTaint {
    let second = Timestamp::from_second(now.as_second()).expect("a second of a timestamp is one");
    NodeTaint {
        key: node_taint::DRAIN.to_owned(),
        value: reason.map(str::to_owned),
        effect: EFFECT.to_owned(),
        time_added: Some(Time(second)),
    }
}

/// The same for the engine.
pub(super) fn as_cause(taint: &NodeTaint) -> Taint<NodeEffect> {
    Taint {
        key: taint.key.as_str().into(),
        value: taint.value.as_deref().unwrap_or_default().into(),
        effect: NodeEffect::NoExecute,
        added: taint.time_added.as_ref().map(|time| Moment::from_timestamp(time.0)),
    }
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
}

fn is_ours(node: &Node) -> bool {
    let annotations = node.metadata.annotations.iter().flatten();
    annotations.into_iter().any(|(key, value)| key == annotation::CORDONED_BY_DRAIN && value == "true")
}

/// The merge patch that begins a drain; nothing where all of it is there. One that was begun goes on: its time stays, and so
/// does its reason unless another is given.
pub(super) fn begin(node: &Node, reason: Option<&str>, now: Timestamp) -> Option<Value> {
    let wanted = match drain_taint(node) {
        Some(begun) => NodeTaint {
            value: reason.map(str::to_owned).or_else(|| begun.value.clone()),
            time_added: begun.time_added.clone().or_else(|| new_taint(None, now).time_added),
            ..begun.clone()
        },
        None => new_taint(reason, now),
    };
    if drain_taint(node) == Some(&wanted) && is_cordoned(node) {
        return None;
    }
    let mut taints = others(node);
    taints.push(wanted);
    let mut patch = bound_to(node);
    patch["spec"] = json!({"unschedulable": true, "taints": taints});
    if !is_cordoned(node) {
        patch["metadata"]["annotations"] = json!({annotation::CORDONED_BY_DRAIN: "true"});
    }
    Some(patch)
}

/// The merge patch that takes a drain back; nothing where there is none. A node that was cordoned before stays cordoned.
pub(super) fn undo(node: &Node) -> Option<Value> {
    if drain_taint(node).is_none() && !is_ours(node) {
        return None;
    }
    let mut patch = bound_to(node);
    let taints = others(node);
    patch["spec"] = json!({"taints": if taints.is_empty() { Value::Null } else { json!(taints) }});
    if is_ours(node) {
        patch["spec"]["unschedulable"] = Value::Null;
        patch["metadata"]["annotations"] = json!({annotation::CORDONED_BY_DRAIN: null});
    }
    Some(patch)
}

/// Whether undoing a drain would leave the node cordoned, by somebody else.
pub(super) fn stays_cordoned(node: &Node) -> bool {
    is_cordoned(node) && !is_ours(node)
}

/// The taints that are not the drain's, in their order.
fn others(node: &Node) -> Vec<NodeTaint> {
    let all = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    all.filter(|taint| taint.key != node_taint::DRAIN || taint.effect != EFFECT).cloned().collect()
}

/// A patch that is refused if the node has changed since: the list of taints is written as a whole.
fn bound_to(node: &Node) -> Value {
    json!({"metadata": {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-17T08:00:00.9Z".parse().unwrap()
    }

    /// The node after a merge patch.
    fn patched(node: &Node, patch: &Value) -> Node {
        let mut value = serde_json::to_value(node).unwrap();
        json_patch::merge(&mut value, patch);
        serde_json::from_value(value).unwrap()
    }

    fn fresh() -> Node {
        node(json!({
            "metadata": {"name": "n", "uid": "u", "resourceVersion": "7"},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "berth.dev/drain", "effect": "NoSchedule"}]},
        }))
    }

    #[test]
    fn a_drain_cordons_and_taints_by_a_second_that_has_come_and_keeps_the_other_taints() {
        let patch = begin(&fresh(), Some("kernel"), now()).unwrap();
        assert_eq!(
            patch,
            json!({
                "metadata": {"uid": "u", "resourceVersion": "7", "annotations": {"berth.dev/cordoned-by-drain": "true"}},
                "spec": {
                    "unschedulable": true,
                    "taints": [
                        {"key": "a", "effect": "NoSchedule"},
                        {"key": "berth.dev/drain", "effect": "NoSchedule"},
                        {"key": "berth.dev/drain", "value": "kernel", "effect": "NoExecute", "timeAdded": "2026-11-17T08:00:00Z"},
                    ],
                },
            })
        );
    }

    #[test]
    fn the_same_command_goes_on_with_a_drain_and_changes_nothing() {
        let drained = patched(&fresh(), &begin(&fresh(), Some("kernel"), now()).unwrap());
        let later: Timestamp = "2026-11-17T09:00:00Z".parse().unwrap();
        assert_eq!(begin(&drained, None, later), None);
        assert_eq!(begin(&drained, Some("kernel"), later), None);
        let other = begin(&drained, Some("disk"), later).unwrap();
        assert_eq!(other["spec"]["taints"][2]["value"], "disk");
        assert_eq!(other["spec"]["taints"][2]["timeAdded"], "2026-11-17T08:00:00Z", "its time stays");
        assert!(other["metadata"].get("annotations").is_none());
    }

    #[test]
    fn undoing_brings_back_what_was() {
        let drained = patched(&fresh(), &begin(&fresh(), None, now()).unwrap());
        assert!(!stays_cordoned(&drained));
        assert_eq!(patched(&drained, &undo(&drained).unwrap()).spec, fresh().spec);
        assert_eq!(undo(&fresh()), None);
    }

    #[test]
    fn a_node_that_somebody_else_cordoned_stays_so() {
        let mut cordoned = fresh();
        cordoned.spec.as_mut().unwrap().unschedulable = Some(true);
        let drained = patched(&cordoned, &begin(&cordoned, None, now()).unwrap());
        assert!(stays_cordoned(&drained));
        assert_eq!(patched(&drained, &undo(&drained).unwrap()).spec, cordoned.spec);
    }
}
