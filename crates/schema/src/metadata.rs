//! Names, labels, annotations, owners and finalizers.
//!
//! Owns the rules for object metadata, which no definition describes because they are the same for every kind.

mod fields;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

pub use fields::{Misfit, coerce_metadata, metadata_misfits};
pub(crate) use fields::{coerce_part, unknown_fields};

use crate::{
    gotext,
    names::{self, NameRule},
    path::FieldPath,
    problem::{Problem, ProblemKind, Problems},
};

/// All annotations of an object together, keys and values, in bytes.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// The longest name of a field manager, in bytes.
pub const MANAGER_BYTES_MAX: usize = 128;
/// The longest name of a subresource in managed fields, in bytes.
const SUBRESOURCE_BYTES_MAX: usize = 256;

/// Whether an object has a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceRule {
    /// It has.
    Required,
    /// It may be given one later.
    Optional,
    /// It has none.
    Forbidden,
}

/// What is asked of the metadata of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataRules {
    /// Whether objects are in namespaces.
    pub namespace: NamespaceRule,
    /// What names look like.
    pub name: NameRule,
    /// Whether an object that has a `generateName` may still lack a name.
    pub unnamed: bool,
}

impl MetadataRules {
    /// What is asked when an object is created: the name has been generated and the namespace filled in by then.
    pub fn new(namespaced: bool, name: NameRule) -> Self {
        let namespace = if namespaced { NamespaceRule::Required } else { NamespaceRule::Forbidden };
        Self { namespace, name, unnamed: false }
    }
}

/// Everything that is wrong with the metadata of an object that is to be created.
pub fn validate_metadata(object: &Value, rules: &MetadataRules) -> Vec<Problem> {
    validate_metadata_at(&FieldPath::root().field("metadata"), object.get("metadata"), *rules)
}

/// As [`validate_metadata`], for metadata at any place.
pub(crate) fn validate_metadata_at(
    path: &FieldPath,
    metadata: Option<&Value>,
    rules: MetadataRules,
) -> Vec<Problem> {
    let empty = Map::new();
    let fields = match metadata {
        None | Some(Value::Null) => &empty,
        Some(metadata) => match (fields::metadata_misfits(metadata).first(), metadata) {
            (None, Value::Object(fields)) => fields,
            (misfit, _) => {
                let reason = misfit.map_or("", |misfit| misfit.message.as_str());
                return vec![Problem::invalid(path, metadata, reason)];
            }
        },
    };
    let mut problems = Problems::default();
    check_name(fields, rules, path, &mut problems);
    match (rules.namespace, text(fields, "namespace")) {
        (NamespaceRule::Required, "") => problems.add(|| Problem::required(&path.field("namespace"), "")),
        (_, "") => {}
        (NamespaceRule::Forbidden, _) => {
            problems.add(|| Problem::forbidden(&path.field("namespace"), "not allowed on this type"));
        }
        (_, namespace) => {
            for rule in names::dns_label(namespace) {
                problems.add(|| Problem::invalid_text(&path.field("namespace"), namespace, &rule));
            }
        }
    }
    if let Some(generation) = fields.get("generation").filter(|generation| generation.as_i64() < Some(0)) {
        let path = path.field("generation");
        problems.add(|| Problem::invalid(&path, generation, "must be greater than or equal to 0"));
    }
    check_labels(fields, path, &mut problems);
    check_annotations(fields, path, &mut problems);
    check_owners(fields, path, &mut problems);
    check_finalizers(fields, path, &mut problems);
    check_managed_fields(fields, path, &mut problems);
    problems.finish()
}

/// Everything that is wrong with the metadata of an object that is to replace another.
pub fn validate_metadata_update(object: &Value, old: &Value) -> Vec<Problem> {
    let empty = Map::new();
    let fields = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let old = old.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let path = FieldPath::root().field("metadata");
    let mut problems = Problems::default();
    if old.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        let known: BTreeSet<&str> = texts(old, "finalizers").collect();
        let new: BTreeSet<&str> =
            texts(fields, "finalizers").filter(|finalizer| !known.contains(finalizer)).collect();
        if !new.is_empty() {
            let new: Vec<&str> = new.into_iter().collect();
            let rule = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {}",
                gotext::string_slice(&new)
            );
            problems.add(|| Problem::forbidden(&path.field("finalizers"), &rule));
        }
    }
    if text(fields, "resourceVersion").is_empty() {
        problems.add(|| {
            Problem::invalid_text(&path.field("resourceVersion"), "", "must be specified for an update")
        });
    }
    let generation =
        |fields: &Map<String, Value>| fields.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if generation(fields) < generation(old) {
        let shown = Value::from(generation(fields));
        problems.add(|| Problem::invalid(&path.field("generation"), &shown, "must not be decremented"));
    }
    for name in ["name", "namespace", "uid"] {
        if text(fields, name) != text(old, name) {
            problems.add(|| Problem::invalid_text(&path.field(name), text(fields, name), FIELD_IS_IMMUTABLE));
        }
    }
    for name in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let field = fields.get(name).unwrap_or(&Value::Null);
        if field != old.get(name).unwrap_or(&Value::Null) {
            problems.add(|| Problem::invalid(&path.field(name), field, FIELD_IS_IMMUTABLE));
        }
    }
    check_labels(fields, &path, &mut problems);
    check_annotations(fields, &path, &mut problems);
    check_owners(fields, &path, &mut problems);
    check_managed_fields(fields, &path, &mut problems);
    problems.finish()
}

/// What is said of a field that must stay as it is.
pub const FIELD_IS_IMMUTABLE: &str = "field is immutable";

fn check_name(fields: &Map<String, Value>, rules: MetadataRules, path: &FieldPath, problems: &mut Problems) {
    let prefix = text(fields, "generateName");
    if !prefix.is_empty() {
        for rule in rules.name.check(prefix, true) {
            problems.add(|| Problem::invalid_text(&path.field("generateName"), prefix, &rule));
        }
    }
    match text(fields, "name") {
        "" if rules.unnamed && !prefix.is_empty() => {}
        "" => problems.add(|| Problem::required(&path.field("name"), "name or generateName is required")),
        name => {
            for rule in rules.name.check(name, false) {
                problems.add(|| Problem::invalid_text(&path.field("name"), name, &rule));
            }
        }
    }
}

fn check_labels(fields: &Map<String, Value>, path: &FieldPath, problems: &mut Problems) {
    for (key, value) in entries(fields, "labels") {
        for rule in names::label_key(key) {
            problems.add(|| Problem::invalid_text(&path.field("labels"), key, &rule));
        }
        for rule in names::label_value(value) {
            problems.add(|| Problem::invalid_text(&path.field("labels"), value, &rule));
        }
    }
}

fn check_annotations(fields: &Map<String, Value>, path: &FieldPath, problems: &mut Problems) {
    let path = path.field("annotations");
    let mut bytes = 0;
    for (key, value) in entries(fields, "annotations") {
        // Case does not matter in the key of an annotation.
        for rule in names::label_key(&key.to_lowercase()) {
            problems.add(|| Problem::invalid_text(&path, key, &rule));
        }
        bytes += key.len() + value.len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        problems.add(|| Problem::too_long(&path, ANNOTATIONS_BYTES_MAX as u64));
    }
}

fn check_owners(fields: &Map<String, Value>, path: &FieldPath, problems: &mut Problems) {
    let path = path.field("ownerReferences");
    let mut controller: Option<String> = None;
    let owners = list(fields, "ownerReferences");
    for reference in owners {
        let empty = Map::new();
        let owner = reference.as_object().unwrap_or(&empty);
        let (api_version, kind, name) = (text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name"));
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if version.is_empty() || api_version.matches('/').count() > 1 {
            let path = path.field("apiVersion");
            problems.add(|| Problem::invalid_text(&path, api_version, "version must not be empty"));
        }
        for (name, value) in [("kind", kind), ("name", name), ("uid", text(owner, "uid"))] {
            if value.is_empty() {
                problems.add(|| Problem::invalid_text(&path.field(name), "", "must not be empty"));
            }
        }
        if (api_version, kind) == ("v1", "Event") {
            let rule = "/v1, Kind=Event is disallowed from being an owner";
            problems.add(|| Problem::with_shown(&path, ProblemKind::Invalid, &shown_owner(owner), rule));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let current = format!("{kind}/{name}");
            match &controller {
                None => controller = Some(current),
                Some(first) => problems.add(|| {
                    let rule = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {current}"
                    );
                    let shown: Vec<String> = owners.iter().filter_map(Value::as_object).map(shown_owner).collect();
                    Problem::with_shown(&path, ProblemKind::Invalid, &format!("[{}]", shown.join(",")), &rule)
                }),
            }
        }
    }
}

/// A reference as Kubernetes shows it: its own structure, in its own order.
fn shown_owner(owner: &Map<String, Value>) -> String {
    let mut parts: Vec<String> = ["apiVersion", "kind", "name", "uid"]
        .iter()
        .map(|name| format!("\"{name}\":{}", gotext::json(&text(owner, name).into())))
        .collect();
    for name in ["controller", "blockOwnerDeletion"] {
        parts.extend(owner.get(name).filter(|flag| !flag.is_null()).map(|flag| format!("\"{name}\":{flag}")));
    }
    format!("{{{}}}", parts.join(","))
}

fn check_finalizers(fields: &Map<String, Value>, path: &FieldPath, problems: &mut Problems) {
    let path = path.field("finalizers");
    for finalizer in texts(fields, "finalizers") {
        for rule in names::label_key(finalizer) {
            problems.add(|| Problem::invalid_text(&path, finalizer, &rule));
        }
    }
    let has = |name: &str| texts(fields, "finalizers").any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let rule = "finalizer orphan and foregroundDeletion cannot be both set";
        problems.add(|| Problem::invalid(&path, &json!(list(fields, "finalizers")), rule));
    }
}

fn check_managed_fields(fields: &Map<String, Value>, path: &FieldPath, problems: &mut Problems) {
    for (index, entry) in list(fields, "managedFields").iter().enumerate() {
        let empty = Map::new();
        let entry = entry.as_object().unwrap_or(&empty);
        let path = path.field("managedFields").index(index);
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            let path = path.field("operation");
            problems.add(|| Problem::invalid_text(&path, operation, "must be `Apply` or `Update`"));
        }
        let kind = text(entry, "fieldsType");
        if !matches!(kind, "" | "FieldsV1") {
            problems.add(|| Problem::invalid_text(&path.field("fieldsType"), kind, "must be `FieldsV1`"));
        }
        for problem in validate_manager(text(entry, "manager"), &path.field("manager")) {
            problems.add(|| problem);
        }
        if text(entry, "subresource").len() > SUBRESOURCE_BYTES_MAX {
            problems.add(|| Problem::too_long(&path.field("subresource"), SUBRESOURCE_BYTES_MAX as u64));
        }
    }
}

/// What is wrong with the name of a field manager.
pub fn validate_manager(manager: &str, path: &FieldPath) -> Vec<Problem> {
    let mut problems = Problems::default();
    if manager.len() > MANAGER_BYTES_MAX {
        problems.add(|| Problem::too_long(path, MANAGER_BYTES_MAX as u64));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !gotext::is_print(*c)) {
        let rule = format!("invalid character {} (at position {at})", gotext::code_point(c));
        problems.add(|| Problem::invalid_text(path, manager, &rule));
    }
    problems.finish()
}

/// What is said, without refusing them, about finalizers that were added and whose names invite conflicts.
pub fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    fn finalizers(object: &Value) -> BTreeSet<&str> {
        let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }
    let known = old.map(finalizers).unwrap_or_default();
    let mut warnings = Vec::new();
    for finalizer in finalizers(object).difference(&known) {
        let mut warn = |rule: &str| {
            warnings.push(format!("metadata.finalizers: {}: {rule}", gotext::quote(finalizer)));
        };
        for rule in names::label_key(finalizer) {
            warn(&rule);
        }
        let standard = matches!(*finalizer, "orphan" | "foregroundDeletion" | "kubernetes");
        if !finalizer.contains('/') && !standard {
            warn(if finalizer.contains('.') {
                "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"
            } else {
                "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            });
        }
    }
    warnings
}

/// Makes null labels and annotations empty strings, which is what Kubernetes' own readers make of them.
pub(crate) fn fill_null_entries(object: &mut Value) {
    for field in ["labels", "annotations"] {
        let entries = object.get_mut("metadata").and_then(|metadata| metadata.get_mut(field));
        for entry in entries.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            if entry.is_null() {
                *entry = Value::String(String::new());
            }
        }
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn texts<'a>(fields: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a str> {
    list(fields, name).iter().filter_map(Value::as_str)
}

fn entries<'a>(fields: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = fields.get(name).and_then(Value::as_object);
    entries.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests;
