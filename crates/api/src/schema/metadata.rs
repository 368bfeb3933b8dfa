//! Names, labels and annotations.
//!
//! Owns the rules for object metadata, which no definition describes because they are the same for every kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use super::{
    format,
    path::FieldPath,
    pattern,
    problem::{Problem, Problems},
};
use crate::{kinds::KindInfo, names::DNS_LABEL_PATTERN};

/// The longest DNS label in characters.
const DNS_LABEL_CHARS_MAX: usize = 63;
/// The longest DNS subdomain in characters.
const DNS_SUBDOMAIN_CHARS_MAX: usize = 253;
/// The longest label value, and the longest name part of a label key, in characters.
const LABEL_CHARS_MAX: usize = 63;
/// All annotations of an object together, keys and values, in bytes.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

const DNS_SUBDOMAIN_PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const QUALIFIED_NAME_PATTERN: &str = r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";

/// Everything that is wrong with the metadata of an object of this kind.
pub fn validate_metadata(object: &Value, kind: &KindInfo) -> Vec<Problem> {
    let mut problems = Problems::default();
    let path = FieldPath::root().field("metadata");
    match object.get("metadata") {
        None | Some(Value::Null) => problems.required(&path.field("name")),
        Some(Value::Object(metadata)) => check(metadata, kind, &path, &mut problems),
        Some(other) => problems.invalid(&path, other, "must be an object"),
    }
    problems.finish()
}

fn check(metadata: &Map<String, Value>, kind: &KindInfo, path: &FieldPath, problems: &mut Problems) {
    let prefix = text(metadata, "generateName", path, problems).filter(|prefix| !prefix.is_empty());
    match text(metadata, "name", path, problems) {
        Some(name) if !name.is_empty() => check_name(name, kind, &path.field("name"), problems),
        // A generated name stands for a missing one; a name of the wrong type has been reported already.
        _ if prefix.is_some()
            || metadata.get("name").is_some_and(|name| !name.is_string() && !name.is_null()) => {}
        _ => problems.required(&path.field("name")),
    }
    if let Some(namespace) =
        text(metadata, "namespace", path, problems).filter(|namespace| !namespace.is_empty())
    {
        let path = path.field("namespace");
        if kind.namespaced {
            check_dns_label(namespace, &path, problems);
        } else {
            problems.forbidden(&path, &format!("{} is not in a namespace; leave it out", kind.kind));
        }
    }
    let mut server_fields = Problems::default();
    check_server_fields(metadata, path, &mut server_fields);
    if server_fields.is_empty() {
        check_readable(metadata, path, &mut server_fields);
    }
    problems.append(server_fields);
    for (key, value, path) in entries(metadata, "labels", path, problems) {
        check_key(key, &path, problems);
        if value.len() > LABEL_CHARS_MAX {
            problems.too_long(&path, value.chars().count(), LABEL_CHARS_MAX as i64);
        } else if !value.is_empty() && pattern::is_match(QUALIFIED_NAME_PATTERN, value) != Some(true) {
            let rule =
                "must be letters, digits, '-', '_' or '.', beginning and ending with a letter or digit";
            problems.invalid(&path, &value.into(), rule);
        }
    }
    let mut bytes = 0;
    for (key, value, path) in entries(metadata, "annotations", path, problems) {
        check_key(&key.to_lowercase(), &path, problems);
        bytes += key.len() + value.len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        problems.too_long(&path.field("annotations"), bytes, ANNOTATIONS_BYTES_MAX as i64);
    }
}

/// The fields that a server fills in: an object saved from one carries them, and they must be readable again.
fn check_server_fields(metadata: &Map<String, Value>, path: &FieldPath, problems: &mut Problems) {
    for name in ["uid", "resourceVersion", "selfLink"] {
        text(metadata, name, path, problems);
    }
    for name in ["generation", "deletionGracePeriodSeconds"] {
        if let Some(value) = metadata.get(name).filter(|value| !value.is_null() && !value.is_i64()) {
            problems.invalid(&path.field(name), value, "must be a whole number");
        }
    }
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(time) = text(metadata, name, path, problems)
            && !format::is_date_time(time)
        {
            problems.invalid(&path.field(name), &time.into(), format::rule("date-time"));
        }
    }
    for (index, finalizer) in elements(metadata, "finalizers", path, problems).iter().enumerate() {
        if !finalizer.is_string() {
            problems.invalid(&path.field("finalizers").index(index), finalizer, "must be a string");
        }
    }
    for (index, owner) in elements(metadata, "ownerReferences", path, problems).iter().enumerate() {
        let path = path.field("ownerReferences").index(index);
        let Value::Object(owner) = owner else {
            problems.invalid(&path, owner, "must be an object");
            continue;
        };
        for name in ["apiVersion", "kind", "name", "uid"] {
            match owner.get(name) {
                None | Some(Value::Null) => problems.required(&path.field(name)),
                Some(_) => {
                    text(owner, name, &path, problems);
                }
            }
        }
        for name in ["controller", "blockOwnerDeletion"] {
            if let Some(value) = owner.get(name).filter(|value| !value.is_null() && !value.is_boolean()) {
                problems.invalid(&path.field(name), value, "must be true or false");
            }
        }
    }
}

/// Finds whatever else cannot be read: fields without a rule of their own here, and texts that pass for a time but
/// are none.
fn check_readable(metadata: &Map<String, Value>, path: &FieldPath, problems: &mut Problems) {
    const HAVE_RULES: [&str; 5] = ["name", "generateName", "namespace", "labels", "annotations"];
    for (name, value) in metadata.iter().filter(|(name, _)| !HAVE_RULES.contains(&name.as_str())) {
        let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        if let Err(error) = serde_json::from_value::<ObjectMeta>(alone) {
            problems.invalid(&path.field(name), value, &error.to_string());
        }
    }
}

/// Makes null labels and annotations empty strings, which is what Kubernetes' own readers make of them.
pub(super) fn fill_null_entries(object: &mut Value) {
    for field in ["/metadata/labels", "/metadata/annotations"] {
        let entries = object.pointer_mut(field).and_then(Value::as_object_mut);
        for entry in entries.into_iter().flat_map(Map::values_mut).filter(|entry| entry.is_null()) {
            *entry = Value::String(String::new());
        }
    }
}

/// The elements of a list; none where it is absent or, which is reported, no list.
fn elements<'a>(
    metadata: &'a Map<String, Value>,
    name: &str,
    path: &FieldPath,
    problems: &mut Problems,
) -> &'a [Value] {
    match metadata.get(name) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(elements)) => elements,
        Some(other) => {
            problems.invalid(&path.field(name), other, "must be a list");
            &[]
        }
    }
}

fn check_name(name: &str, kind: &KindInfo, path: &FieldPath, problems: &mut Problems) {
    if kind.name_is_namespace {
        check_dns_label(name, path, problems);
    } else if name.len() > DNS_SUBDOMAIN_CHARS_MAX {
        problems.too_long(path, name.chars().count(), DNS_SUBDOMAIN_CHARS_MAX as i64);
    } else if pattern::is_match(DNS_SUBDOMAIN_PATTERN, name) != Some(true) {
        let rule =
            "must be lower case letters, digits, '-' or '.', beginning and ending with a letter or digit";
        problems.invalid(path, &name.into(), rule);
    }
}

fn check_dns_label(name: &str, path: &FieldPath, problems: &mut Problems) {
    if name.len() > DNS_LABEL_CHARS_MAX {
        problems.too_long(path, name.chars().count(), DNS_LABEL_CHARS_MAX as i64);
    } else if pattern::is_match(DNS_LABEL_PATTERN, name) != Some(true) {
        let rule = "must be lower case letters, digits or '-', beginning and ending with a letter or digit";
        problems.invalid(path, &name.into(), rule);
    }
}

fn check_key(key: &str, path: &FieldPath, problems: &mut Problems) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_sound = prefix.is_none_or(|prefix| {
        prefix.len() <= DNS_SUBDOMAIN_CHARS_MAX
            && pattern::is_match(DNS_SUBDOMAIN_PATTERN, prefix) == Some(true)
    });
    let name_sound =
        name.len() <= LABEL_CHARS_MAX && pattern::is_match(QUALIFIED_NAME_PATTERN, name) == Some(true);
    if !(prefix_sound && name_sound) {
        let rule = "must be a name of at most 63 characters, optionally after a DNS subdomain and '/'";
        problems.invalid(path, &key.into(), rule);
    }
}

fn text<'a>(
    metadata: &'a Map<String, Value>,
    name: &str,
    path: &FieldPath,
    problems: &mut Problems,
) -> Option<&'a str> {
    match metadata.get(name)? {
        Value::String(text) => Some(text),
        Value::Null => None,
        other => {
            problems.invalid(&path.field(name), other, "must be a string");
            None
        }
    }
}

fn entries<'a>(
    metadata: &'a Map<String, Value>,
    name: &str,
    path: &FieldPath,
    problems: &mut Problems,
) -> Vec<(&'a str, &'a str, FieldPath)> {
    let path = path.field(name);
    match metadata.get(name) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(entries)) => entries
            .iter()
            .filter_map(|(key, value)| {
                let path = path.key(key);
                match value {
                    Value::String(text) => Some((key.as_str(), text.as_str(), path)),
                    // A null entry reads as the empty string.
                    Value::Null => Some((key.as_str(), "", path)),
                    other => {
                        problems.invalid(&path, other, "must be a string");
                        None
                    }
                }
            })
            .collect(),
        Some(other) => {
            problems.invalid(&path, other, "must be an object");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(problems("Placement", json!({"name": name, "namespace": "ns1"})), [] as [&str; 0]);
        assert_eq!(
            problems("ManagedCluster", json!({"name": name})),
            ["metadata.name: Too long: 64 characters: may not be more than 63"]
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
                "metadata.uid",
                "metadata.generation",
                "metadata.creationTimestamp",
                "metadata.finalizers[0]",
                "metadata.ownerReferences[0].name",
                "metadata.ownerReferences[0].uid",
                "metadata.ownerReferences[0].controller",
            ]
        );
    }

    #[test]
    fn a_field_without_a_rule_of_its_own_must_still_be_readable() {
        let told = problems("ManagedCluster", json!({"name": "c", "managedFields": 3}));
        assert!(told[0].starts_with("metadata.managedFields: "), "{told:?}");
    }

    #[test]
    fn a_null_label_is_an_empty_one() {
        let mut object = json!({"metadata": {"labels": {"a": null, "b": "c"}}});
        fill_null_entries(&mut object);
        assert_eq!(object, json!({"metadata": {"labels": {"a": "", "b": "c"}}}));
    }

    #[test]
    fn a_missing_name_is_required_unless_one_is_generated() {
        assert_eq!(problems("Placement", json!({})), ["metadata.name: Required value"]);
        assert_eq!(problems("Placement", json!({"generateName": "p-"})), [] as [&str; 0]);
        assert_eq!(problems("Placement", Value::Null), ["metadata.name: Required value"]);
    }

    #[test]
    fn a_cluster_scoped_kind_takes_no_namespace() {
        assert_eq!(
            problems("ManagedCluster", json!({"name": "c1", "namespace": "ns1"})),
            ["metadata.namespace: Forbidden: ManagedCluster is not in a namespace; leave it out"]
        );
    }

    #[test]
    fn labels_and_annotations_keep_their_rules() {
        let found = problems(
            "Placement",
            json!({
                "name": "p",
                "labels": {"ok": "", "bad value": "x", "k": "-x", "n": 7, "a/b/c": "x", "e.x/y": "z"},
                "annotations": {"Example.COM/Note": "any text é", "": "x"},
            }),
        );
        assert_eq!(found.len(), 5, "{found:#?}");
    }

    #[test]
    fn hostile_metadata_is_a_problem_not_a_panic() {
        for metadata in
            [json!(7), json!([]), json!({"name": {}}), json!({"labels": []}), json!({"name": "é".repeat(40)})]
        {
            assert!(!problems("ManagedCluster", metadata).is_empty());
        }
        let big = "x".repeat(300_000);
        assert_eq!(problems("Placement", json!({"name": "p", "annotations": {"a": big}})).len(), 1);
    }
}
