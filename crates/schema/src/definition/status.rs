//! What a server says about a definition.
//!
//! Owns the status: which names are accepted, whether the kind is established, and in which versions objects may be
//! stored. Pure: the other definitions and the time are given.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::gotext;

/// Gives a definition the status it begins with: as it was before, or empty, with the version that is stored now.
pub fn prepare_definition(definition: &mut Value, old: Option<&Value>) {
    let Value::Object(fields) = definition else { return };
    let status = match old {
        Some(old) => old.get("status").cloned().filter(Value::is_object).unwrap_or_else(|| json!({})),
        None => json!({}),
    };
    fields.insert("status".to_owned(), status);
    add_stored_version(definition);
}

/// Adds the version that objects are stored in to those they may be stored in.
fn add_stored_version(definition: &mut Value) {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let stored =
        versions.into_iter().flatten().find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let Some(name) =
        stored.and_then(|version| version.get("name")).and_then(Value::as_str).map(str::to_owned)
    else {
        return;
    };
    let Some(status) = definition.get_mut("status").and_then(Value::as_object_mut) else { return };
    let known = status.entry("storedVersions").or_insert_with(|| json!([]));
    if let Value::Array(known) = known
        && !known.iter().any(|known| known.as_str() == Some(&name))
    {
        known.push(name.into());
    }
}

/// Fills in what a definition may leave out: its singular, the kind of its lists, the conversion between its versions,
/// and the version its objects are stored in.
pub fn default_definition(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = text(names, "kind").to_owned();
        if text(names, "singular").is_empty() && !kind.is_empty() {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if text(names, "listKind").is_empty() && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let stored = definition.pointer("/status/storedVersions").and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty)
        && let Value::Object(fields) = definition
    {
        fields.entry("status").or_insert_with(|| json!({}));
        add_stored_version(definition);
    }
}

/// Decides which of a definition's names are accepted beside those of the other definitions, and whether it is
/// established, and writes that into its status. `now` is the time in RFC 3339. Says whether anything changed.
pub fn settle_definition<'a>(
    definition: &mut Value,
    others: impl IntoIterator<Item = &'a Value>,
    now: &str,
) -> bool {
    let before = definition.get("status").cloned();
    let empty = Map::new();
    let names_at = |definition: &Value, at: &str| definition.pointer(at).and_then(Value::as_object).cloned();
    let requested = names_at(definition, "/spec/names").unwrap_or_default();
    let accepted = names_at(definition, "/status/acceptedNames").unwrap_or_default();
    let group = definition.pointer("/spec/group").cloned();
    let own = definition.pointer("/metadata/name").cloned();
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in others {
        if other.pointer("/spec/group").cloned() != group || other.pointer("/metadata/name").cloned() == own {
            continue;
        }
        let names = other.pointer("/status/acceptedNames").and_then(Value::as_object).unwrap_or(&empty);
        resources.extend(["plural", "singular"].map(|name| text(names, name).to_owned()));
        resources.extend(texts(names, "shortNames").map(str::to_owned));
        kinds.extend(["kind", "listKind"].map(|name| text(names, name).to_owned()));
    }
    let mut settled = accepted.clone();
    let mut conflict: Option<(&str, String)> = None;
    let taken = |name: &str, ours: &str, used: &BTreeSet<String>| name != ours && used.contains(name);
    let in_use = |name: &str| format!("{} is already in use", gotext::quote(name));
    for (name, reason) in [("plural", "PluralConflict"), ("singular", "SingularConflict")] {
        let wanted = text(&requested, name);
        if taken(wanted, text(&accepted, name), &resources) {
            conflict = Some((reason, in_use(wanted)));
        } else {
            put(&mut settled, name, requested.get(name));
        }
    }
    let ours: BTreeSet<&str> = texts(&accepted, "shortNames").collect();
    let clashes: Vec<String> = texts(&requested, "shortNames")
        .filter(|name| !ours.contains(name) && taken(name, "", &resources))
        .map(in_use)
        .collect();
    match clashes.as_slice() {
        [] => put(&mut settled, "shortNames", requested.get("shortNames")),
        [only] => conflict = Some(("ShortNamesConflict", only.clone())),
        several => conflict = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
    }
    for (name, reason) in [("kind", "KindConflict"), ("listKind", "ListKindConflict")] {
        let wanted = text(&requested, name);
        if taken(wanted, text(&accepted, name), &kinds) {
            conflict = Some((reason, in_use(wanted)));
        } else {
            put(&mut settled, name, requested.get(name));
        }
    }
    put(&mut settled, "categories", requested.get("categories"));

    let Value::Object(fields) = definition else { return false };
    let status = fields.entry("status").or_insert_with(|| json!({}));
    let Value::Object(status) = status else { return false };
    status.insert("acceptedNames".to_owned(), Value::Object(settled));
    match &conflict {
        Some((reason, message)) => set_condition(status, "NamesAccepted", "False", reason, message, now),
        None => set_condition(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
    }
    let established =
        condition(status, "Established").is_some_and(|found| found.get("status") == Some(&"True".into()));
    if !established && conflict.is_none() {
        let message = "the initial names have been accepted";
        set_condition(status, "Established", "True", "InitialNamesAccepted", message, now);
    } else if condition(status, "Established").is_none() {
        set_condition(status, "Established", "False", "NotAccepted", "not all names are accepted", now);
    }
    before.as_ref() != fields.get("status")
}

/// Whether a definition's kind is served.
pub fn is_established(definition: &Value) -> bool {
    let status = definition.get("status").and_then(Value::as_object);
    let found = status.and_then(|status| condition(status, "Established"));
    found.is_some_and(|found| found.get("status").and_then(Value::as_str) == Some("True"))
}

fn condition<'a>(status: &'a Map<String, Value>, kind: &str) -> Option<&'a Value> {
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|found| found.get("type").and_then(Value::as_str) == Some(kind))
}

fn set_condition(
    status: &mut Map<String, Value>,
    kind: &str,
    value: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    let found = conditions.iter_mut().filter_map(Value::as_object_mut);
    match found.into_iter().find(|found| found.get("type").and_then(Value::as_str) == Some(kind)) {
        Some(found) => {
            if text(found, "status") != value || text(found, "lastTransitionTime").is_empty() {
                found.insert("lastTransitionTime".to_owned(), now.into());
            }
            found.insert("status".to_owned(), value.into());
            found.insert("reason".to_owned(), reason.into());
            found.insert("message".to_owned(), message.into());
        }
        None => conditions.push(json!({
            "type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": now,
        })),
    }
}

fn put(names: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    match value.filter(|value| !value.is_null()) {
        Some(value) => {
            names.insert(name.to_owned(), value.clone());
        }
        None => {
            names.remove(name);
        }
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(fields: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a str> {
    fields.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, kind: &str, short: &[&str]) -> Value {
        let mut definition = json!({
            "metadata": {"name": format!("{plural}.x.io")},
            "spec": {
                "group": "x.io",
                "names": {"plural": plural, "kind": kind, "shortNames": short},
                "versions": [{"name": "v1", "storage": true}],
            },
        });
        default_definition(&mut definition);
        prepare_definition(&mut definition, None);
        definition
    }

    fn told(definition: &Value, kind: &str) -> String {
        let found = condition(definition["status"].as_object().unwrap(), kind).unwrap();
        format!("{} {}: {}", found["status"], found["reason"], found["message"])
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        let definition = definition("things", "Thing", &[]);
        assert_eq!(definition["spec"]["names"]["singular"], "thing");
        assert_eq!(definition["spec"]["names"]["listKind"], "ThingList");
        assert_eq!(definition["spec"]["conversion"], json!({"strategy": "None"}));
        assert_eq!(definition["status"], json!({"storedVersions": ["v1"]}));
    }

    #[test]
    fn names_without_conflict_are_accepted_and_the_kind_is_established() {
        let mut one = definition("things", "Thing", &["th"]);
        assert!(settle_definition(&mut one, [], "2024-01-01T00:00:00Z"));
        assert_eq!(told(&one, "NamesAccepted"), r#""True" "NoConflicts": "no conflicts found""#);
        assert_eq!(
            told(&one, "Established"),
            r#""True" "InitialNamesAccepted": "the initial names have been accepted""#
        );
        assert!(is_established(&one));
        assert_eq!(one["status"]["acceptedNames"], one["spec"]["names"]);
        let copy = one.clone();
        assert!(!settle_definition(&mut one, [&copy], "2025-01-01T00:00:00Z"));
    }

    #[test]
    fn a_name_that_is_taken_is_refused_until_it_is_free() {
        let mut one = definition("things", "Thing", &["th"]);
        settle_definition(&mut one, [], "2024-01-01T00:00:00Z");
        let mut other = definition("others", "Thing", &["th"]);
        settle_definition(&mut other, [&one], "2024-01-01T00:00:00Z");
        assert_eq!(
            told(&other, "NamesAccepted"),
            r#""False" "ListKindConflict": "\"ThingList\" is already in use""#
        );
        assert_eq!(told(&other, "Established"), r#""False" "NotAccepted": "not all names are accepted""#);
        assert_eq!(other["status"]["acceptedNames"]["plural"], "others");
        assert_eq!(other["status"]["acceptedNames"].get("kind"), None);
        settle_definition(&mut other, [], "2024-01-02T00:00:00Z");
        assert!(is_established(&other));
    }

    #[test]
    fn a_version_that_was_stored_once_is_remembered() {
        let old = definition("things", "Thing", &[]);
        let mut new = old.clone();
        new["spec"]["versions"] = json!([{"name": "v1"}, {"name": "v2", "storage": true}]);
        prepare_definition(&mut new, Some(&old));
        assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    }
}
