//! PlacementDecision: decisions under `status`, the placement's label by its current name, owners in the current
//! group.

use berth_api::names::{GROUP, label};
use serde_json::{Map, Value, json};

use super::{DRAFT_GROUP, Remarks, mapping_at, says};

/// The label that named the placement in the drafts: the group's own name.
const DRAFT_LABEL: &str = DRAFT_GROUP;

pub(super) fn convert(value: &mut Value, remarks: &mut Remarks) {
    let Some(object) = value.as_object_mut() else { return };
    let is_current = object.get("apiVersion").is_some_and(|version| *version == format!("{GROUP}/v1beta1"));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        convert_labels(metadata, is_current, remarks);
        convert_owners(metadata, remarks);
    }
    convert_decisions(object, remarks);
}

fn convert_labels(metadata: &mut Map<String, Value>, is_current: bool, remarks: &mut Remarks) {
    let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) else { return };
    if let Some(name) = labels.remove(DRAFT_LABEL) {
        let from = format!("metadata.labels[{DRAFT_LABEL}]");
        match labels.get(label::PLACEMENT) {
            Some(current) if *current != name => {
                remarks.conflict(
                    from,
                    format!("{} beside it names another placement: keep one of the two", label::PLACEMENT),
                );
            }
            _ => {
                labels.insert(label::PLACEMENT.into(), name);
                remarks.changed(from, format!("renamed to {}", label::PLACEMENT));
            }
        }
    }
    // Readers of decisions take a slice without a group index for a fault; the drafts knew no groups.
    if !is_current
        && labels.contains_key(label::PLACEMENT)
        && !labels.contains_key(label::DECISION_GROUP_INDEX)
    {
        labels.insert(label::DECISION_GROUP_INDEX.into(), "0".into());
        labels.entry(label::DECISION_GROUP_NAME).or_insert_with(|| "".into());
        remarks.changed("metadata.labels", "labelled as decision group 0, which is every cluster");
    }
}

fn convert_owners(metadata: &mut Map<String, Value>, remarks: &mut Remarks) {
    let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
    for (index, owner) in owners.into_iter().flatten().enumerate() {
        let Some(owner) = owner.as_object_mut().filter(|o| o.get("kind").is_some_and(|k| k == "Placement"))
        else {
            continue;
        };
        let version = owner.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let current = format!("{GROUP}/v1beta1");
        if group == DRAFT_GROUP || version == format!("{GROUP}/v1alpha1") {
            let message = format!("changed from {version} to {current}");
            remarks.changed(format!("metadata.ownerReferences[{index}].apiVersion"), message);
            owner.insert("apiVersion".into(), current.into());
        }
    }
}

/// The drafts kept decisions at the root or under `spec`.
fn convert_decisions(object: &mut Map<String, Value>, remarks: &mut Remarks) {
    let at_root = object.remove("decisions").map(|decisions| ("decisions", decisions));
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let in_spec =
        spec.and_then(|spec| spec.remove("decisions")).map(|decisions| ("spec.decisions", decisions));
    if in_spec.is_some() && object.get("spec").and_then(Value::as_object).is_some_and(Map::is_empty) {
        object.remove("spec");
    }
    for (from, decisions) in [at_root, in_spec].into_iter().flatten() {
        let Some(status) = mapping_at(object, "status") else {
            remarks.conflict(from, "status is not a mapping: make it one");
            return;
        };
        if says(status, "decisions") {
            remarks.conflict(from, "decisions are given in two places: keep one of the two");
            return;
        }
        status.insert("decisions".into(), if decisions.is_null() { json!([]) } else { decisions });
        remarks.changed(from, "moved to status.decisions");
        convert_items(status, from, remarks);
    }
}

fn convert_items(status: &mut Map<String, Value>, from: &str, remarks: &mut Remarks) {
    let items = status.get_mut("decisions").and_then(Value::as_array_mut);
    let (mut dropped, mut completed) = (0_usize, 0_usize);
    for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
        dropped += usize::from(item.remove("available").is_some());
        if !says(item, "reason") {
            item.insert("reason".into(), "".into());
            completed += 1;
        }
    }
    if dropped > 0 {
        let message =
            format!("dropped `available` of {dropped} decisions: the clusters' own conditions tell it");
        remarks.changed(from, message);
    }
    if completed > 0 {
        remarks.changed(from, format!("gave {completed} decisions an empty reason, which is required"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::convert;
    use serde_json::json;

    #[test]
    fn the_draft_of_the_proposal_becomes_a_current_slice() {
        let result = convert(json!({
            "apiVersion": "placement.open-cluster-management.io/v1alpha1",
            "kind": "PlacementDecision",
            "metadata": {
                "name": "placement1-decision-1", "namespace": "ns1",
                "labels": {"placement.open-cluster-management.io": "placement1"},
                "ownerReferences": [{"apiVersion": "placement.open-cluster-management.io/v1alpha1", "kind": "Placement", "name": "placement1", "uid": "u"}],
            },
            "spec": {"decisions": [{"clusterName": "cluster1", "available": true}, {"clusterName": "cluster2", "available": false}]},
        }));
        assert_eq!(result.conflicts, []);
        assert_eq!(
            result.value,
            json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta1",
                "kind": "PlacementDecision",
                "metadata": {
                    "name": "placement1-decision-1", "namespace": "ns1",
                    "labels": {
                        "cluster.open-cluster-management.io/placement": "placement1",
                        "cluster.open-cluster-management.io/decision-group-index": "0",
                        "cluster.open-cluster-management.io/decision-group-name": "",
                    },
                    "ownerReferences": [{"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "placement1", "uid": "u"}],
                },
                "status": {"decisions": [{"clusterName": "cluster1", "reason": ""}, {"clusterName": "cluster2", "reason": ""}]},
            })
        );
    }

    #[test]
    fn decisions_at_the_root_move_too() {
        let result = convert(json!({
            "apiVersion": "placement.open-cluster-management.io/v1alpha1", "kind": "PlacementDecision",
            "decisions": [{"clusterName": "c", "reason": "because"}],
        }));
        assert_eq!(result.value["status"]["decisions"], json!([{"clusterName": "c", "reason": "because"}]));
        assert!(result.value.get("decisions").is_none());
    }

    #[test]
    fn decisions_in_two_places_are_a_conflict() {
        let result = convert(json!({
            "apiVersion": "placement.open-cluster-management.io/v1alpha1", "kind": "PlacementDecision",
            "spec": {"decisions": []}, "status": {"decisions": [{"clusterName": "c", "reason": ""}]},
        }));
        assert_eq!(result.conflicts[0].path, "spec.decisions");
    }
}
