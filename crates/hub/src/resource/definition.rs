//! Definitions of custom resources: whether their names are free, since when they are served, and how they end.
//!
//! Owns the status of a definition. It is settled in the same step as the write that needs it, so that whoever wrote the
//! definition can use it at once.

use berth_hub_kinds::Builtins;
use berth_hub_merge::{ObjectType, Operation, Writer, track_update};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::resource::act::stamp;
use crate::resource::delete::CLEANUP;
use crate::resource::form::zero;
use crate::resource::{condition, meta};

/// Whose word the status of a definition is.
const CONTROLLER: &str = "kube-apiserver";

/// What to do next with a definition that is being deleted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Nothing: it is not ending, or not held by this keeper.
    Nothing,
    /// Delete its objects and look again; keep the definition in this state, if that changed.
    Delete(Option<Value>),
    /// Its objects are gone: keep it in this state; if nothing else holds it, it is to be removed.
    Finish {
        /// The definition without this keeper's finalizer.
        definition: Value,
        /// Whether nothing holds it any more.
        remove: bool,
    },
}

/// The definition with its names judged against those of all others, or `None` when its status is right already. What a
/// server's controllers would say about it a moment later is put down to them in the managed fields.
pub(crate) fn establish(definition: &Value, others: &[&Value], now: Timestamp) -> Option<Value> {
    let (mut settled, now) = (definition.clone(), stamp(now));
    if !berth_schema::definition::settle_definition(&mut settled, others.iter().copied(), &now) {
        return None;
    }
    if let Some(kind) = Builtins::load().kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition") {
        let tracked = ObjectType::builtin(Builtins::load().schema_of(kind), zero(kind.type_id));
        let writer = Writer {
            manager: CONTROLLER,
            operation: Operation::Update,
            api_version: "apiextensions.k8s.io/v1",
            subresource: Some("status"),
            now: &now,
        };
        track_update(Some(definition), &mut settled, tracked, &writer, &[&["metadata"], &["spec"]]);
    }
    Some(settled)
}

/// What to do next with a definition that is ending, given how many of its objects are left.
pub(crate) fn end(definition: &Value, left: usize, now: Timestamp) -> Next {
    if !meta::deleting(definition) || !meta::finalizers(definition).contains(&CLEANUP) {
        return Next::Nothing;
    }
    let mut updated = definition.clone();
    let mut say = |status: &str, reason: &str, message: &str| {
        let condition =
            json!({"type": "Terminating", "status": status, "reason": reason, "message": message});
        condition::set(&mut updated, condition, now);
    };
    if left > 0 {
        say("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
        return Next::Delete((updated != *definition).then_some(updated));
    }
    if condition::is_true(definition, "Established") {
        say("False", "InstanceDeletionCompleted", "removed all instances");
    } else {
        say("False", "NeverEstablished", "resource was never established");
    }
    let rest: Vec<String> = meta::finalizers(definition)
        .into_iter()
        .filter(|finalizer| *finalizer != CLEANUP)
        .map(str::to_owned)
        .collect();
    let remove = rest.is_empty();
    meta::set_finalizers(&mut updated, rest);
    Next::Finish { definition: updated, remove }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T22:50:54Z".parse().unwrap()
    }

    fn definition(plural: &str, kind: &str) -> Value {
        json!({
            "metadata": {"name": format!("{plural}.x.io")},
            "spec": {"group": "x.io", "names": {"plural": plural, "kind": kind, "listKind": format!("{kind}List"),
                "singular": kind.to_lowercase()}},
        })
    }

    #[test]
    fn free_names_are_accepted_and_served_at_once() {
        let told = establish(&definition("ws", "W"), &[], now()).unwrap();
        assert_eq!(told["status"]["acceptedNames"], told["spec"]["names"]);
        assert!(condition::is_true(&told, "NamesAccepted"));
        assert!(condition::is_true(&told, "Established"));
        assert_eq!(establish(&told, &[&told.clone()], now()), None);
    }

    #[test]
    fn a_name_that_is_taken_is_not_accepted_and_the_rest_is() {
        let first = establish(&definition("ws", "W"), &[], now()).unwrap();
        let second = establish(&definition("vs", "W"), &[&first], now()).unwrap();
        let accepted = condition::find(&second, "NamesAccepted").unwrap();
        assert_eq!(condition::text(accepted, "reason"), "ListKindConflict");
        assert_eq!(condition::text(accepted, "message"), "\"WList\" is already in use");
        assert_eq!(second["status"]["acceptedNames"], json!({"plural": "vs"}));
        assert!(!condition::is_true(&second, "Established"));
        let freed = establish(&second, &[], now()).unwrap();
        assert!(condition::is_true(&freed, "Established"));
    }

    #[test]
    fn a_definition_ends_when_its_objects_are_gone() {
        let mut ending = establish(&definition("ws", "W"), &[], now()).unwrap();
        assert_eq!(end(&ending, 0, now()), Next::Nothing);
        ending["metadata"]["deletionTimestamp"] = "2026-11-15T22:50:54Z".into();
        ending["metadata"]["finalizers"] = json!([CLEANUP]);
        let Next::Delete(Some(told)) = end(&ending, 2, now()) else { panic!() };
        assert_eq!(
            condition::text(condition::find(&told, "Terminating").unwrap(), "reason"),
            "InstanceDeletionInProgress"
        );
        assert_eq!(end(&told, 2, now()), Next::Delete(None));
        let Next::Finish { definition, remove } = end(&told, 0, now()) else { panic!() };
        assert!(remove);
        assert!(meta::finalizers(&definition).is_empty());
    }
}
