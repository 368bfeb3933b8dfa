//! The end of a namespace: its content goes, pods first, and it says how far that has come.
//!
//! Owns the order, the conditions and the last step. Deleting the content is the caller's.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::resource::{condition, meta};

/// The entry of `spec.finalizers` that stands for this keeper.
pub(crate) const FINALIZER: &str = "kubernetes";

/// What is left of one resource in a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Remains {
    /// The group.
    pub group: String,
    /// The plural.
    pub plural: String,
    /// How many objects.
    pub count: usize,
    /// How many of them each finalizer holds.
    pub finalizers: BTreeMap<String, usize>,
}

/// What to do next with a namespace that is ending.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Nothing: it is not ending, or this keeper is done with it.
    Nothing,
    /// Delete what is left, of pods alone or of everything, and look again. The namespace in the state to keep it in, if
    /// that changed.
    Delete {
        /// Only pods for now: what they may still use stays until they are gone.
        pods_only: bool,
        /// The namespace with its conditions.
        namespace: Option<Value>,
    },
    /// All is gone: keep the namespace in this state; if nothing else holds it, it is to be removed.
    Finish {
        /// The namespace without this keeper's finalizer.
        namespace: Value,
        /// Whether nothing holds it any more.
        remove: bool,
    },
}

/// What to do next, given what is left after the last round of deletions. `failures` are the words of what could not be
/// deleted.
pub(crate) fn decide(namespace: &Value, left: &[Remains], failures: &[String], now: Timestamp) -> Next {
    let held = meta::strings(meta::at(namespace, &["spec", "finalizers"]));
    if !meta::deleting(namespace) || !held.contains(&FINALIZER) {
        return Next::Nothing;
    }
    let left: Vec<&Remains> = left.iter().filter(|remains| remains.count > 0).collect();
    let pods_only = left.iter().any(|remains| remains.group.is_empty() && remains.plural == "pods");
    let mut updated = namespace.clone();
    meta::child(meta::map(&mut updated), "status").insert("phase".to_owned(), "Terminating".into());
    // While pods are left the rest has not been tried, so nothing is said about it.
    describe(&mut updated, if pods_only { &[] } else { &left }, failures, now);
    if !left.is_empty() || !failures.is_empty() {
        let changed = (updated != *namespace).then_some(updated);
        return Next::Delete { pods_only, namespace: changed };
    }
    let rest: Vec<&str> = held.into_iter().filter(|finalizer| *finalizer != FINALIZER).collect();
    let remove = rest.is_empty() && meta::finalizers(namespace).is_empty();
    let spec = meta::child(meta::map(&mut updated), "spec");
    if rest.is_empty() {
        spec.remove("finalizers");
    } else {
        spec.insert("finalizers".to_owned(), rest.into());
    }
    Next::Finish { namespace: updated, remove }
}

/// Sets the five conditions of an ending namespace.
fn describe(namespace: &mut Value, left: &[&Remains], failures: &[String], now: Timestamp) {
    let mut by_finalizer: BTreeMap<&str, usize> = BTreeMap::new();
    for (finalizer, count) in left.iter().flat_map(|remains| &remains.finalizers) {
        *by_finalizer.entry(finalizer).or_default() += count;
    }
    let mut resources: Vec<String> =
        left.iter().map(|r| format!("{}.{} has {} resource instances", r.plural, r.group, r.count)).collect();
    resources.sort_unstable();
    let holders: Vec<String> = by_finalizer
        .iter()
        .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
        .collect();
    let mut failures = failures.to_vec();
    failures.sort_unstable();
    let failed = (!failures.is_empty()).then(|| {
        format!("Failed to delete all resource types, {} remaining: {}", failures.len(), failures.join(", "))
    });
    let remaining =
        (!resources.is_empty()).then(|| format!("Some resources are remaining: {}", resources.join(", ")));
    let finalizing = (!holders.is_empty())
        .then(|| format!("Some content in the namespace has finalizers remaining: {}", holders.join(", ")));
    let conditions = [
        (
            "NamespaceDeletionDiscoveryFailure",
            None,
            "",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            "",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            failed,
            "ContentDeletionFailed",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            remaining,
            "SomeResourcesRemain",
            "ContentRemoved",
            "All content successfully removed",
        ),
        (
            "NamespaceFinalizersRemaining",
            finalizing,
            "SomeFinalizersRemain",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ];
    for (kind, trouble, reason, good_reason, good) in conditions {
        let (status, reason, message) = match &trouble {
            Some(trouble) => ("True", reason, trouble.as_str()),
            None => ("False", good_reason, good),
        };
        let condition = json!({"type": kind, "status": status, "reason": reason, "message": message});
        condition::set(namespace, condition, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T22:50:54Z".parse().unwrap()
    }

    fn namespace() -> Value {
        json!({
            "metadata": {"name": "n", "deletionTimestamp": "2026-11-15T22:50:00Z"},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Terminating"},
        })
    }

    fn remains(plural: &str, count: usize, finalizer: Option<&str>) -> Remains {
        let finalizers = finalizer.map(|finalizer| (finalizer.to_owned(), count)).into_iter().collect();
        Remains {
            group: if plural == "pods" { "" } else { "x.io" }.to_owned(),
            plural: plural.to_owned(),
            count,
            finalizers,
        }
    }

    #[test]
    fn a_namespace_that_lives_is_left_alone() {
        let mut alive = namespace();
        alive["metadata"] = json!({"name": "n"});
        assert_eq!(decide(&alive, &[], &[], now()), Next::Nothing);
    }

    #[test]
    fn pods_go_first() {
        let left = [remains("pods", 1, None), remains("as", 2, None)];
        assert!(matches!(decide(&namespace(), &left, &[], now()), Next::Delete { pods_only: true, .. }));
        assert!(matches!(
            decide(&namespace(), &left[1..], &[], now()),
            Next::Delete { pods_only: false, .. }
        ));
    }

    #[test]
    fn conditions_say_what_is_left_and_what_holds_it() {
        let left = [remains("bs", 1, Some("x.io/f")), remains("as", 2, Some("x.io/f"))];
        let Next::Delete { namespace: Some(told), .. } = decide(&namespace(), &left, &[], now()) else {
            panic!()
        };
        let message =
            |kind: &str| condition::text(condition::find(&told, kind).unwrap(), "message").to_owned();
        assert_eq!(
            message("NamespaceContentRemaining"),
            "Some resources are remaining: as.x.io has 2 resource instances, bs.x.io has 1 resource instances"
        );
        assert_eq!(
            message("NamespaceFinalizersRemaining"),
            "Some content in the namespace has finalizers remaining: x.io/f in 3 resource instances"
        );
        assert_eq!(message("NamespaceDeletionDiscoveryFailure"), "All resources successfully discovered");
        let again = decide(&told, &left, &[], now());
        assert_eq!(again, Next::Delete { pods_only: false, namespace: None });
    }

    #[test]
    fn an_empty_namespace_is_let_go_and_removed_when_nothing_else_holds_it() {
        let Next::Finish { namespace: done, remove } = decide(&namespace(), &[], &[], now()) else {
            panic!()
        };
        assert!(remove);
        assert_eq!(done["spec"], json!({}));
        let mut held = namespace();
        held["metadata"]["finalizers"] = json!(["x.io/f"]);
        assert!(matches!(decide(&held, &[], &[], now()), Next::Finish { remove: false, .. }));
        held["spec"]["finalizers"] = json!(["kubernetes", "mine"]);
        let Next::Finish { namespace: done, .. } = decide(&held, &[], &[], now()) else { panic!() };
        assert_eq!(done["spec"]["finalizers"], json!(["mine"]));
    }
}
