//! The options of a write as admission webhooks are shown them: what the client said, as an object of its own kind.
//!
//! Owns that shape alone. What options mean was decided before anybody is asked.

use berth_hub_guard::webhook::Operation;
use berth_hub_wire::{Propagation, Query};
use serde_json::{Value, json};

use crate::resource::{Act, Terms};

/// The options of a creation or an update; a patch is either, depending on what it finds.
pub(crate) fn of_write(query: &Query, act: &Act<'_>, operation: Operation) -> Value {
    let mut options =
        begin(if operation == Operation::Create { "CreateOptions" } else { "UpdateOptions" }, act);
    for name in ["fieldManager", "fieldValidation"] {
        if let Some(said) = query.get(name).filter(|said| !said.is_empty()) {
            options[name] = said.into();
        }
    }
    options
}

/// The options of a deletion.
pub(crate) fn of_deletion(act: &Act<'_>, terms: &Terms) -> Value {
    let mut options = begin("DeleteOptions", act);
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            options[name] = value;
        }
    };
    put("gracePeriodSeconds", terms.grace_period_seconds.map(Value::from));
    put("orphanDependents", terms.orphan_dependents.map(Value::from));
    put(
        "propagationPolicy",
        terms.propagation.map(|propagation| {
            Value::from(match propagation {
                Propagation::Foreground => "Foreground",
                Propagation::Background => "Background",
                Propagation::Orphan => "Orphan",
            })
        }),
    );
    let mut conditions = json!({});
    for (name, condition) in [("uid", &terms.uid), ("resourceVersion", &terms.resource_version)] {
        if let Some(condition) = condition {
            conditions[name] = condition.as_str().into();
        }
    }
    put("preconditions", Some(conditions).filter(|conditions| *conditions != json!({})));
    options
}

fn begin(kind: &str, act: &Act<'_>) -> Value {
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if act.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options
}
