//! Older forms of the placement kinds brought into the current one.
//!
//! Owns two histories: the earliest drafts in group `placement.open-cluster-management.io`, and the older versions
//! and spellings in `cluster.open-cluster-management.io`. Every rewrite is told, and where two fields say the same
//! thing differently the object is refused rather than guessed at. Never touches any other kind.

mod decision;
mod placement;
mod set;

use berth_api::names::GROUP;
use serde_json::{Map, Value};

/// The group of the earliest drafts.
pub const DRAFT_GROUP: &str = "placement.open-cluster-management.io";

/// Something said about a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The field, in the object as it was given.
    pub path: String,
    /// What was done, or what stands in the way.
    pub message: String,
}

/// An object in its current form.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The object.
    pub value: Value,
    /// What was changed; nothing when the form was current already.
    pub changes: Vec<Remark>,
    /// What could not be changed without guessing. The value is of no use unless this is empty.
    pub conflicts: Vec<Remark>,
}

/// Whether [`convert`] could change objects of this group and kind.
pub fn concerns(group: &str, kind: &str) -> bool {
    match kind {
        "Placement" | "PlacementDecision" => group == DRAFT_GROUP || group == GROUP,
        "ManagedClusterSet" | "ManagedClusterSetBinding" => group == GROUP,
        _ => false,
    }
}

/// Brings one object into the current form. Kinds this knows nothing of come back as they were.
pub fn convert(mut value: Value) -> Converted {
    let mut remarks = Remarks::default();
    let word = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (word("apiVersion"), word("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let is_draft = group == DRAFT_GROUP;
    let current = match kind.as_str() {
        _ if !concerns(group, &kind) => None,
        "Placement" => {
            placement::convert(&mut value, &mut remarks);
            Some("v1beta1")
        }
        "PlacementDecision" => {
            decision::convert(&mut value, &mut remarks);
            Some("v1beta1")
        }
        "ManagedClusterSet" => {
            set::convert(&mut value, &mut remarks);
            Some("v1beta2")
        }
        _ => Some("v1beta2"),
    };
    if let (Some(current), Some(object)) = (current, value.as_object_mut())
        && (is_draft || is_older(version, current))
    {
        let wanted = format!("{GROUP}/{current}");
        remarks.changes.insert(
            0,
            Remark { path: "apiVersion".into(), message: format!("changed from {api_version} to {wanted}") },
        );
        object.insert("apiVersion".into(), wanted.into());
    }
    Converted { value, changes: remarks.changes, conflicts: remarks.conflicts }
}

/// Versions older than the current one; a version this program has never heard of is left alone.
fn is_older(version: &str, current: &str) -> bool {
    match current {
        "v1beta1" => version == "v1alpha1",
        "v1beta2" => matches!(version, "v1alpha1" | "v1beta1"),
        _ => false,
    }
}

#[derive(Debug, Default)]
struct Remarks {
    changes: Vec<Remark>,
    conflicts: Vec<Remark>,
}

impl Remarks {
    fn changed(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.changes.push(Remark { path: path.into(), message: message.into() });
    }

    fn conflict(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.conflicts.push(Remark { path: path.into(), message: message.into() });
    }
}

/// The field `key` as a mapping, made when it is missing or null; nothing when it is something else, which is the
/// schema's to report.
fn mapping_at<'v>(map: &'v mut Map<String, Value>, key: &str) -> Option<&'v mut Map<String, Value>> {
    let field = map.entry(key).or_insert(Value::Null);
    if field.is_null() {
        *field = Value::Object(Map::new());
    }
    field.as_object_mut()
}

/// Whether a field says something: it is there and not null.
fn says(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).is_some_and(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn other_kinds_and_current_forms_come_back_as_they_were() {
        for value in [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"buildIn": "x"}}),
            json!({"apiVersion": "other.io/v1", "kind": "Placement", "spec": {"predicates": [{"clusterName": "c"}]}}),
            json!({"apiVersion": "placement.open-cluster-management.io/v1alpha1", "kind": "Other"}),
            json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "spec": {}}),
            json!({"apiVersion": "cluster.open-cluster-management.io/v9", "kind": "ManagedClusterSet"}),
            json!(7),
        ] {
            let converted = convert(value.clone());
            assert_eq!((converted.value, converted.changes, converted.conflicts), (value, vec![], vec![]));
        }
    }

    #[test]
    fn bindings_and_sets_reach_the_current_version() {
        let converted = convert(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "s", "namespace": "ns1"}, "spec": {"clusterSet": "s"},
        }));
        assert_eq!(converted.value["apiVersion"], "cluster.open-cluster-management.io/v1beta2");
        assert_eq!(converted.changes.len(), 1);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let word = prop_oneof![
            Just("spec"),
            Just("status"),
            Just("predicates"),
            Just("labelSelector"),
            Just("claimSelector"),
            Just("matchClaims"),
            Just("requiredClusterSelector"),
            Just("clusterName"),
            Just("decisions"),
            Just("prioritizerPolicy"),
            Just("configurations"),
            Just("scoreCoordinate"),
            Just("buildIn"),
            Just("name"),
            Just("metadata"),
            Just("labels"),
            Just("ownerReferences"),
            Just("clusterSelector"),
        ];
        let leaf = prop_oneof![Just(Value::Null), Just(json!(1)), Just(json!("x")), Just(json!(""))];
        leaf.prop_recursive(6, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn converting_never_panics_and_twice_is_once(
            spec in any_json(), status in any_json(), metadata in any_json(),
            kind in prop_oneof![Just("Placement"), Just("PlacementDecision"), Just("ManagedClusterSet")],
            version in prop_oneof![
                Just("placement.open-cluster-management.io/v1alpha1"),
                Just("cluster.open-cluster-management.io/v1alpha1"),
                Just("cluster.open-cluster-management.io/v1beta1"),
            ],
        ) {
            let value = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status});
            let once = convert(value);
            if once.conflicts.is_empty() {
                let twice = convert(once.value.clone());
                prop_assert_eq!(&twice.value, &once.value);
                prop_assert_eq!(twice.changes, vec![]);
            }
        }
    }
}
