//! The rules of events, which are lenient through the core group and strict through their own.
//!
//! Objects come in the view of their group: what core calls `involvedObject`, `message` and `reportingComponent` the other
//! calls `regarding`, `note` and `reportingController`. Problems name the fields as Kubernetes' internal form has them.

use berth_schema::{FieldPath, Problem, ProblemKind, names};
use serde_json::{Value, json};

use super::place::{At, Found, internal};
use crate::registry::Builtin;

const REPORTING_INSTANCE_BYTES_MAX: usize = 128;
const ACTION_BYTES_MAX: usize = 128;
const REASON_BYTES_MAX: usize = 128;
const NOTE_BYTES_MAX: usize = 1024;
/// The fewest events a series has.
const SERIES_MIN: i64 = 2;

/// A field under the name its group gives it, and the path problems show.
fn field<'a>(object: &At<'a>, name: &str, shown: &str) -> At<'a> {
    At { value: object.get(name).value, path: FieldPath::root().field(shown) }
}

pub(super) fn event(kind: &Builtin, object: &At<'_>, new: bool, found: &mut Found) {
    let core = kind.group.is_empty();
    legacy(object, core, found);
    if core || !new {
        return;
    }
    found.extend(super::metadata(kind, object.value));
    series(object, found);
    let at = |name: &str| FieldPath::root().field(name);
    if !object.get("eventTime").is_set() {
        found.extend(vec![Problem::required(&at("eventTime"), "")]);
    }
    let kind = object.get("type").text();
    if !matches!(kind, "Normal" | "Warning") {
        found.extend(vec![Problem::invalid_text(&at("type"), "", &format!("has invalid value: {kind}"))]);
    }
    for (name, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        if is_given(object.get(name).value) {
            found.extend(vec![Problem::invalid_text(&at(shown), "", "needs to be unset")]);
        }
    }
}

fn is_given(value: &Value) -> bool {
    !(value.is_null() || value == &json!(0) || value.as_object().is_some_and(serde_json::Map::is_empty))
}

/// What events were always held to.
fn legacy(object: &At<'_>, core: bool, found: &mut Found) {
    let about = object.get(if core { "involvedObject" } else { "regarding" });
    let about = At {
        value: about.get("namespace").value,
        path: FieldPath::root().field("involvedObject").field("namespace"),
    };
    let namespace = object.get("metadata").get("namespace").text();
    let dated = object.get("eventTime").is_set();
    let fits = match (about.text(), dated) {
        ("", false) => matches!(namespace, "" | "default"),
        ("", true) => matches!(namespace, "default" | "kube-system"),
        (about, false) => about == namespace,
        (_, true) => true,
    };
    if !fits {
        found.invalid_text(&about, about.text(), "does not match event.namespace");
    }
    if !dated {
        return;
    }
    let controller = if core { "reportingComponent" } else { "reportingController" };
    let controller = field(object, controller, controller);
    if controller.text().is_empty() {
        found.required(&controller, "");
    }
    found.sentences(&controller, names::label_key(controller.text()));
    let mut sized = |name: &str, shown: &str, most: usize, needed: bool| {
        let at = field(object, name, shown);
        if needed && at.text().is_empty() {
            found.required(&at, "");
        }
        if at.text().len() > most {
            found.invalid_text(&at, "", &format!("can have at most {most} characters"));
        }
    };
    sized("reportingInstance", "reportingInstance", REPORTING_INSTANCE_BYTES_MAX, true);
    sized("action", "action", ACTION_BYTES_MAX, true);
    sized("reason", "reason", REASON_BYTES_MAX, true);
    sized(if core { "message" } else { "note" }, "message", NOTE_BYTES_MAX, false);
}

fn series(object: &At<'_>, found: &mut Found) {
    let series = object.get("series");
    if !series.is_set() {
        return;
    }
    if series.get("count").int().unwrap_or(0) < SERIES_MIN {
        found.extend(vec![Problem::invalid_text(
            &FieldPath::root().field("series.count"),
            "",
            "should be at least 2",
        )]);
    }
    if !series.get("lastObservedTime").is_set() {
        found.extend(vec![Problem::required(&FieldPath::root().field("series.lastObservedTime"), "")]);
    }
}

/// A reference as messages show it: every field of Kubernetes' internal form, in its order.
fn internal_reference(reference: &At<'_>) -> String {
    let fields = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"]
        .map(|name| Value::from(reference.get(name).text()));
    let shown = ["Kind", "Namespace", "Name", "UID", "APIVersion", "ResourceVersion", "FieldPath"];
    internal(&shown.into_iter().zip(&fields).collect::<Vec<_>>())
}

/// Through its own group, nothing of an event changes but its series.
pub(super) fn event_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    if new.get("series").value != old.get("series").value {
        series(new, found);
    }
    for (name, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let (now, before) = (field(new, name, shown), field(old, name, shown));
        let same = now.value == before.value || (!is_given(now.value) && !is_given(before.value));
        if !same && now.value.is_object() && matches!(name, "regarding" | "related") {
            let reference = internal_reference(&now);
            let message = format!("Invalid value: {reference}: field is immutable");
            found.extend(vec![Problem { path: now.path.clone(), kind: ProblemKind::Invalid, message }]);
        } else if !same {
            let untimed = !name.ends_with("Time") && !name.ends_with("Timestamp");
            let shown = if !now.is_set() && untimed { json!("") } else { now.value.clone() };
            found.invalid_shown(&now.path, &shown, "field is immutable");
        }
    }
}
