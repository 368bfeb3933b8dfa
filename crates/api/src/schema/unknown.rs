//! Fields that nobody will read.
//!
//! Owns finding them, for a notice to whoever wrote them: an API server drops such fields silently. Finding them
//! is no reason to refuse an object.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use super::{
    path::FieldPath,
    prepare::{child, items},
};

/// The most paths listed for one object.
const PATHS_MAX: usize = 100;

/// What object metadata may contain.
const METADATA_FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The paths of fields the schema does not have, at most a hundred of them.
pub fn unknown_fields(value: &Value, schema: &JSONSchemaProps) -> Vec<FieldPath> {
    let mut found = Vec::new();
    if let Some(Value::Object(metadata)) = value.get("metadata") {
        let path = FieldPath::root().field("metadata");
        found.extend(
            metadata
                .keys()
                .filter(|name| !METADATA_FIELDS.contains(&name.as_str()))
                .map(|name| path.field(name)),
        );
        found.truncate(PATHS_MAX);
    }
    walk(value, schema, &FieldPath::root(), &mut found);
    found
}

fn walk(value: &Value, schema: &JSONSchemaProps, path: &FieldPath, found: &mut Vec<FieldPath>) {
    let open = schema.x_kubernetes_preserve_unknown_fields == Some(true);
    match value {
        Value::Object(fields) => {
            // A plain object without any description of its fields (metadata) is looked after elsewhere.
            if path.as_str() == "metadata" {
                return;
            }
            let map = matches!(
                schema.additional_properties,
                Some(JSONSchemaPropsOrBool::Schema(_) | JSONSchemaPropsOrBool::Bool(true))
            );
            for (name, field) in fields {
                if found.len() >= PATHS_MAX {
                    return;
                }
                match child(schema, name) {
                    Some(schema) if map => walk(field, schema, &path.key(name), found),
                    Some(schema) => walk(field, schema, &path.field(name), found),
                    None if open || map => {}
                    None => found.push(path.field(name)),
                }
            }
        }
        Value::Array(entries) => {
            if let Some(schema) = items(schema) {
                for (index, entry) in entries.iter().enumerate() {
                    if entry.is_object() || entry.is_array() {
                        walk(entry, schema, &path.index(index), found);
                    }
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn misspelt_fields_are_found_at_any_depth_and_map_keys_are_not_fields() {
        let schema = crate::schema_for("cluster.open-cluster-management.io/v1beta1", "Placement").unwrap();
        let value = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement",
            "metadata": {"name": "a", "lables": {}, "labels": {"anything": "goes"}},
            "spec": {
                "numberOfCluster": 3,
                "tolerations": [{}, {"keys": "a"}],
                "predicates": [{"labelSelector": {"matchLabels": {"any": "label"}}}],
            },
            "stats": {},
        });
        let mut found: Vec<String> = unknown_fields(&value, schema).iter().map(ToString::to_string).collect();
        found.sort();
        assert_eq!(found, ["metadata.lables", "spec.numberOfCluster", "spec.tolerations[1].keys", "stats"]);
    }
}
