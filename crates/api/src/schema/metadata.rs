//! Names, labels and annotations of our kinds.
//!
//! Owns what is asked of the metadata of an object that no API server has looked at yet: it may lack a namespace, or a
//! name that is going to be generated, but whatever it has must be readable.

use berth_schema::{
    FieldPath, MetadataRules, NameRule, NamespaceRule, Problem, metadata::metadata_misfits,
    validate_metadata as validate,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use crate::kinds::KindInfo;

/// Everything that is wrong with the metadata of an object of this kind.
pub fn validate_metadata(object: &Value, kind: &KindInfo) -> Vec<Problem> {
    let path = FieldPath::root().field("metadata");
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let misfits: Vec<Problem> = metadata_misfits(metadata)
        .iter()
        .map(|misfit| {
            let path = if misfit.path.is_root() { path.clone() } else { path.field(misfit.path.as_str()) };
            Problem::invalid(&path, &misfit.value, misfit.rule)
        })
        .collect();
    if !misfits.is_empty() {
        return misfits;
    }
    let rules = MetadataRules {
        namespace: if kind.namespaced { NamespaceRule::Optional } else { NamespaceRule::Forbidden },
        name: if kind.name_is_namespace { NameRule::DnsLabel } else { NameRule::DnsSubdomain },
        unnamed: true,
    };
    let mut problems = validate(object, &rules);
    // What a plan writes refers to owners that no server has given an identity yet.
    problems.retain(|problem| problem.path.as_str() != "metadata.ownerReferences.uid");
    if problems.is_empty() {
        problems.extend(unreadable(metadata, &path));
    }
    problems
}

/// Finds texts that pass for a time but are past what can be represented, and whatever else cannot be read.
fn unreadable(metadata: &Value, path: &FieldPath) -> Vec<Problem> {
    let fields = metadata.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| {
            let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
            let error = serde_json::from_value::<ObjectMeta>(alone).err()?;
            Some(Problem::invalid(&path.field(name), value, &error.to_string()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NONE: [&str; 0] = [];

    fn problems(kind: &str, metadata: impl Into<Value>) -> Vec<String> {
        let kind = crate::kinds().iter().find(|info| info.kind == kind).unwrap();
        validate_metadata(&json!({ "metadata": metadata.into() }), kind)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_placement_name_may_be_longer_than_a_label_but_a_cluster_name_may_not() {
        let name = "a".repeat(64);
        assert_eq!(problems("Placement", json!({"name": name, "namespace": "ns1"})), NONE);
        assert_eq!(
            problems("ManagedCluster", json!({"name": name})),
            [format!("metadata.name: Invalid value: \"{name}\": must be no more than 63 characters")]
        );
        assert_eq!(problems("ManagedCluster", json!({"name": "a.b"})).len(), 1);
        assert_eq!(problems("Placement", json!({"name": "a".repeat(254)})).len(), 1);
    }

    #[test]
    fn fields_that_a_server_fills_in_are_checked_with_their_place() {
        let metadata = json!({
            "name": "p", "uid": 1111, "generation": "2", "creationTimestamp": "yesterday", "finalizers": [1],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Placement", "name": 7, "controller": "yes"}],
        });
        let told = problems("Placement", metadata);
        let paths: Vec<&str> = told.iter().filter_map(|problem| problem.split(": ").next()).collect();
        assert_eq!(
            paths,
            [
                "metadata.creationTimestamp",
                "metadata.finalizers[0]",
                "metadata.generation",
                "metadata.ownerReferences[0].controller",
                "metadata.ownerReferences[0].name",
                "metadata.uid",
            ]
        );
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named() {
        let told = problems("ManagedCluster", json!({"name": "c", "managedFields": 3}));
        assert_eq!(told, ["metadata.managedFields: Invalid value: 3: must be a list"]);
    }

    #[test]
    fn a_missing_name_is_required_unless_one_is_generated() {
        let required = ["metadata.name: Required value: name or generateName is required"];
        assert_eq!(problems("Placement", json!({})), required);
        assert_eq!(problems("Placement", json!({"generateName": "p-"})), NONE);
        assert_eq!(problems("Placement", Value::Null), required);
    }

    #[test]
    fn a_cluster_scoped_kind_takes_no_namespace() {
        assert_eq!(
            problems("ManagedCluster", json!({"name": "c1", "namespace": "ns1"})),
            ["metadata.namespace: Forbidden: not allowed on this type"]
        );
    }

    #[test]
    fn hostile_metadata_is_a_problem_not_a_panic() {
        for metadata in
            [json!(7), json!([]), json!({"name": {}}), json!({"labels": []}), json!({"name": "é".repeat(40)})]
        {
            assert!(!problems("ManagedCluster", metadata).is_empty());
        }
    }
}
