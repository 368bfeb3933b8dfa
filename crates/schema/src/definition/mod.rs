//! Definitions of custom resources.
//!
//! Owns what is asked of a `CustomResourceDefinition` when it is created or changed, what is filled into it, and the
//! status a server gives it. Problems carry the paths Kubernetes gives them, which are those of its inner form: what all
//! versions have in common is found at the top of the spec (`spec.validation`), not in each version.

mod defaults;
mod props;
mod schema;
mod status;
mod structural;
mod version;

use serde_json::{Map, Value};

pub use status::{default_definition, is_established, prepare_definition, settle_definition};
pub use structural::check_structural;

use crate::{
    gotext,
    metadata::{FIELD_IS_IMMUTABLE, MetadataRules, validate_metadata, validate_metadata_update},
    names::{self, NameRule},
    path::FieldPath,
    problem::Problem,
};
use version::Common;

/// The annotation by which a definition in one of Kubernetes' own groups says who approved it.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Everything that is wrong with a definition, defaults filled in and status prepared, that is to be created or, given
/// the old one, changed.
pub fn validate_definition(definition: &Value, old: Option<&Value>) -> Vec<Problem> {
    let empty = Map::new();
    let spec = definition.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let old_spec = old.and_then(|old| old.get("spec")).and_then(Value::as_object);
    let path = FieldPath::root().field("spec");
    let mut found = match old {
        None => validate_new_metadata(definition, spec),
        Some(old) => validate_metadata_update(definition, old),
    };
    validate_spec(spec, old_spec, &path, &mut found);
    if let (Some(old), Some(old_spec)) = (old, old_spec) {
        validate_change(spec, old_spec, is_established(old), &path, &mut found);
    }
    let status = definition.get("status").and_then(Value::as_object).unwrap_or(&empty);
    let path = FieldPath::root().field("status");
    if let Some(names) = status.get("acceptedNames").and_then(Value::as_object) {
        validate_names(names, &path.field("acceptedNames"), &mut found);
    }
    validate_stored_versions(status, spec, &path.field("storedVersions"), &mut found);
    found.extend(validate_approval(definition, old, text(spec, "group")));
    let preserves = |spec: &Map<String, Value>| spec.get("preserveUnknownFields") == Some(&Value::Bool(true));
    if preserves(spec) && !old_spec.is_some_and(preserves) {
        let rule = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        let path = FieldPath::from("spec.preserveUnknownFields");
        found.push(Problem::invalid(&path, &Value::Bool(true), rule));
    }
    found
}

/// What is said about a definition without refusing it: formats that nobody checks.
pub fn definition_warnings(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known: std::collections::HashSet<String> =
        old.map(schema::unknown_formats).unwrap_or_default().into_iter().collect();
    let new = schema::unknown_formats(definition).into_iter().filter(|format| !known.contains(format));
    new.map(|format| format!("unrecognized format {}", gotext::quote(&format))).collect()
}

fn validate_new_metadata(definition: &Value, spec: &Map<String, Value>) -> Vec<Problem> {
    let names = spec.get("names").and_then(Value::as_object);
    let required = format!("{}.{}", names.map_or("", |names| text(names, "plural")), text(spec, "group"));
    let rules = MetadataRules::new(false, NameRule::DnsSubdomain);
    let mut found = validate_metadata(definition, &rules);
    // Behind whatever else is wrong with the name, or with what it would be made from.
    let mut at = 0;
    for field in ["generateName", "name"] {
        let name =
            definition.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default();
        let path = FieldPath::root().field("metadata").field(field);
        at = found.iter().rposition(|problem| problem.path == path).map_or(at, |last| last + 1);
        if !name.is_empty() && name != required {
            let rule = "must be spec.names.plural+\".\"+spec.group";
            found.insert(at, Problem::invalid_text(&path, name, rule));
            at += 1;
        }
    }
    found
}

fn validate_spec(
    spec: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let group = text(spec, "group");
    let rules = names::dns_subdomain(group);
    if group.is_empty() {
        found.push(Problem::required(&path.field("group"), ""));
    } else if !rules.is_empty() {
        found.push(Problem::invalid_text(&path.field("group"), group, &rules.join(",")));
    } else if !group.contains('.') {
        found.push(Problem::invalid_text(
            &path.field("group"),
            group,
            "should be a domain with at least one dot",
        ));
    }
    match text(spec, "scope") {
        "" => found.push(Problem::required(&path.field("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => found.push(Problem::not_supported(
            &path.field("scope"),
            &other.into(),
            &["Cluster", "Namespaced"],
        )),
    }
    version::validate_versions(spec, old, path, found);
    let empty = Map::new();
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&empty);
    let names_path = path.field("names");
    for name in
        ["plural", "singular", "kind", "listKind"].into_iter().filter(|name| text(names, name).is_empty())
    {
        found.push(Problem::required(&names_path.field(name), ""));
    }
    validate_names(names, &names_path, found);
    let common = Common::of(spec);
    version::validate_common(spec, &common, old, path, found);
    validate_conversion(spec, path, found);
}

fn validate_names(names: &Map<String, Value>, path: &FieldPath, found: &mut Vec<Problem>) {
    for name in ["plural", "singular"] {
        let value = text(names, name);
        let rules = names::dns_1035_label(value);
        if !value.is_empty() && !rules.is_empty() {
            found.push(Problem::invalid_text(&path.field(name), value, &rules.join(",")));
        }
    }
    for name in ["kind", "listKind"] {
        let value = text(names, name);
        let rules = names::dns_1035_label(&value.to_lowercase());
        if !value.is_empty() && !rules.is_empty() {
            let rule = format!("may have mixed case, but should otherwise match: {}", rules.join(","));
            found.push(Problem::invalid_text(&path.field(name), value, &rule));
        }
    }
    let labels = |name: &str, found: &mut Vec<Problem>| {
        let entries = names.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, value) in entries.filter_map(Value::as_str).enumerate() {
            let rules = names::dns_1035_label(value);
            if !rules.is_empty() {
                found.push(Problem::invalid_text(&path.field(name).index(index), value, &rules.join(",")));
            }
        }
    };
    labels("shortNames", found);
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let rule = "kind and listKind may not be the same";
        found.push(Problem::invalid_text(&path.field("listKind"), kind, rule));
    }
    labels("categories", found);
}

/// Objects are converted between versions by changing their `apiVersion` and nothing else.
fn validate_conversion(spec: &Map<String, Value>, path: &FieldPath, found: &mut Vec<Problem>) {
    let Some(conversion) = spec.get("conversion").and_then(Value::as_object) else { return };
    let path = path.field("conversion");
    match text(conversion, "strategy") {
        "" => found.push(Problem::required(&path.field("strategy"), "")),
        "None" => {
            let webhook = conversion.get("webhook").and_then(Value::as_object);
            let rule = "should not be set when strategy is not set to Webhook";
            let set = |name: &str| {
                webhook.and_then(|webhook| webhook.get(name)).is_some_and(|value| !value.is_null())
            };
            if set("clientConfig") {
                found.push(Problem::forbidden(&path.field("webhookClientConfig"), rule));
            }
            if set("conversionReviewVersions") {
                found.push(Problem::forbidden(&path.field("conversionReviewVersions"), rule));
            }
        }
        "Webhook" => {
            let rule = "conversion by webhook is not served here: set the strategy to None and give all versions one shape";
            found.push(Problem::invalid_text(&path.field("strategy"), "Webhook", rule));
        }
        other => {
            found.push(Problem::not_supported(&path.field("strategy"), &other.into(), &["None", "Webhook"]));
        }
    }
}

/// What must stay as it is: where objects are found, and once they may exist also what they are.
fn validate_change(
    spec: &Map<String, Value>,
    old: &Map<String, Value>,
    established: bool,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let at = |spec: &Map<String, Value>, names: bool, name: &str| {
        let fields =
            if names { spec.get("names").and_then(Value::as_object).cloned() } else { Some(spec.clone()) };
        fields.map(|fields| text(&fields, name).to_owned()).unwrap_or_default()
    };
    let fixed: &[(bool, &str)] = if established {
        &[(false, "scope"), (true, "kind"), (false, "group"), (true, "plural")]
    } else {
        &[(false, "group"), (true, "plural")]
    };
    for &(names, name) in fixed {
        let value = at(spec, names, name);
        if value != at(old, names, name) {
            let path = if names { path.field("names").field(name) } else { path.field(name) };
            found.push(Problem::invalid_text(&path, &value, FIELD_IS_IMMUTABLE));
        }
    }
}

fn validate_stored_versions(
    status: &Map<String, Value>,
    spec: &Map<String, Value>,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let stored = status.get("storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    if stored.is_empty() {
        let shown = status.get("storedVersions").cloned().unwrap_or(Value::Null);
        found.push(Problem::invalid(path, &shown, "must have at least one stored version"));
        return;
    }
    let versions: Vec<&Value> =
        spec.get("versions").and_then(Value::as_array).into_iter().flatten().collect();
    let name_of =
        |version: &Value| version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut unmet: Vec<&str> = stored.iter().filter_map(Value::as_str).collect();
    for version in &versions {
        let name = name_of(version);
        let known = unmet.contains(&name.as_str());
        // A second version of the same name finds nothing left.
        unmet.retain(|stored| *stored != name);
        if version.get("storage") == Some(&Value::Bool(true)) && !known {
            let rule = format!("must have the storage version {name}");
            found.push(Problem::invalid(path, &Value::Array(stored.clone()), &rule));
        }
    }
    for (index, stored) in stored.iter().enumerate() {
        let name = stored.as_str().unwrap_or_default();
        if !versions.iter().any(|version| name_of(version) == name) {
            let rule = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            found.push(Problem::invalid_text(&path.index(index), name, &rule));
        }
    }
}

#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Given,
    Bypassed,
    Invalid,
}

/// Groups of Kubernetes' own ask for a note of who approved the definition.
fn validate_approval(definition: &Value, old: Option<&Value>, group: &str) -> Option<Problem> {
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let state = |definition: &Value| {
        let annotations = definition.pointer("/metadata/annotations");
        let note = annotations
            .and_then(|annotations| annotations.get(APPROVAL))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let link = note
            .split_once("://")
            .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.trim_matches('/').is_empty());
        let state = match note {
            "" => Approval::Missing,
            note if note.starts_with("unapproved") => Approval::Bypassed,
            _ if link => Approval::Given,
            _ => Approval::Invalid,
        };
        (state, note.to_owned())
    };
    if !protected {
        return None;
    }
    let (now, note) = state(definition);
    if old.is_some_and(|old| state(old).0 == now) {
        return None;
    }
    let path = FieldPath::from("metadata.annotations").key(APPROVAL);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match now {
        Approval::Missing => {
            let rule = format!("protected groups must have approval annotation \"{APPROVAL}\", {see}");
            Some(Problem::required(&path, &rule))
        }
        Approval::Invalid => {
            let rule = format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting with \"unapproved\", {see}"
            );
            Some(Problem::invalid_text(&path, &note, &rule))
        }
        Approval::Given | Approval::Bypassed => None,
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
