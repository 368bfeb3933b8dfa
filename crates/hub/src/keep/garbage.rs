//! Garbage: what becomes of objects whose owners go or are gone.
//!
//! ```text
//! an object with owners ──► all gone: delete it    some gone: cut those references    one waits for it: delete it first
//! an owner that waits   ──► "orphan": set its dependents free, then let it go
//!                           "foregroundDeletion": delete its dependents; let it go when none of them blocks it
//! ```
//! Owns the decisions. The index of owners, and doing what is decided, is the caller's.

use serde_json::Value;

use berth_hub_wire::Propagation;

use crate::resource::delete::{FOREGROUND, ORPHAN};
use crate::resource::meta;

/// A reference to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    /// The owner's `apiVersion`.
    pub api_version: &'a str,
    /// The owner's kind.
    pub kind: &'a str,
    /// The owner's name.
    pub name: &'a str,
    /// The owner's uid.
    pub uid: &'a str,
    /// Whether the owner waits for this dependent when it is deleted in the foreground.
    pub blocks: bool,
}

/// What is known of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It is there.
    Present,
    /// It is there, and waits for its dependents to go.
    Waiting,
    /// It is gone: there is no object of this name, or it has another uid.
    Gone,
    /// Nobody can say, because nothing serves its kind.
    Unknown,
}

/// What to do with an object that has owners.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fate {
    /// Leave it.
    Keep,
    /// Keep it in this state, with the references to owners that are gone cut.
    Cut(Value),
    /// Delete it so.
    Delete(Propagation),
}

/// What to do about an owner that is being deleted.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ending {
    /// Dependents in the state to keep them in, free of this owner.
    pub freed: Vec<Value>,
    /// Positions of dependents to delete in the background or foreground, as they say themselves.
    pub deleted: Vec<(usize, Propagation)>,
    /// The owner in the state to keep it in, once nothing holds it any more.
    pub owner: Option<Value>,
}

/// The owners an object names.
pub(crate) fn references(object: &Value) -> Vec<Reference<'_>> {
    let list = meta::at(object, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .map(|reference| Reference {
            api_version: text(reference, "apiVersion"),
            kind: text(reference, "kind"),
            name: text(reference, "name"),
            uid: text(reference, "uid"),
            blocks: reference.get("blockOwnerDeletion") == Some(&Value::Bool(true)),
        })
        .collect()
}

fn text<'a>(reference: &'a Value, field: &str) -> &'a str {
    reference.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an object waits for its dependents.
pub(crate) fn waits(object: &Value) -> bool {
    meta::deleting(object) && meta::finalizers(object).contains(&FOREGROUND)
}

/// What to do with an object, given what is known of each of its owners and whether it has dependents of its own.
pub(crate) fn decide(object: &Value, owner: &dyn Fn(&Reference<'_>) -> Owner, has_dependents: bool) -> Fate {
    if meta::deleting(object) {
        // It is on its way; if it waits for dependents, they are what moves it.
        return Fate::Keep;
    }
    let references = references(object);
    if references.is_empty() {
        return Fate::Keep;
    }
    let known: Vec<Owner> = references.iter().map(owner).collect();
    if known.contains(&Owner::Unknown) {
        return Fate::Keep;
    }
    if known.contains(&Owner::Present) {
        let lost: Vec<&str> = references
            .iter()
            .zip(&known)
            .filter(|(_, known)| **known != Owner::Present)
            .map(|(reference, _)| reference.uid)
            .collect();
        return if lost.is_empty() { Fate::Keep } else { Fate::Cut(without(object, &lost)) };
    }
    if known.contains(&Owner::Waiting) && has_dependents {
        return Fate::Delete(Propagation::Foreground);
    }
    Fate::Delete(said_propagation(object))
}

/// What to do about an owner and the objects that name it, in a state where it is being deleted.
pub(crate) fn end(owner: &Value, dependents: &[&Value]) -> Ending {
    let mut ending = Ending::default();
    if !meta::deleting(owner) {
        return ending;
    }
    let (uid, finalizers) = (meta::text(owner, "uid"), meta::finalizers(owner));
    if finalizers.contains(&ORPHAN) {
        ending.freed = dependents.iter().map(|dependent| without(dependent, &[uid])).collect();
        ending.owner = Some(without_finalizer(owner, ORPHAN));
        return ending;
    }
    if !finalizers.contains(&FOREGROUND) {
        return ending;
    }
    let blocking = dependents.iter().any(|dependent| {
        references(dependent).iter().any(|reference| reference.uid == uid && reference.blocks)
    });
    if !blocking {
        ending.owner = Some(without_finalizer(owner, FOREGROUND));
        return ending;
    }
    for (position, dependent) in dependents.iter().enumerate() {
        if !meta::deleting(dependent) {
            ending.deleted.push((position, Propagation::Foreground));
        }
    }
    ending
}

/// How an object asks to be deleted, through finalizers put on it beforehand.
fn said_propagation(object: &Value) -> Propagation {
    let finalizers = meta::finalizers(object);
    if finalizers.contains(&ORPHAN) {
        Propagation::Orphan
    } else if finalizers.contains(&FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}

fn without(object: &Value, uids: &[&str]) -> Value {
    let mut object = object.clone();
    let meta = meta::of(&mut object);
    if let Some(Value::Array(references)) = meta.get_mut("ownerReferences") {
        references.retain(|reference| !uids.contains(&text(reference, "uid")));
        if references.is_empty() {
            meta.remove("ownerReferences");
        }
    }
    object
}

fn without_finalizer(object: &Value, finalizer: &str) -> Value {
    let mut object = object.clone();
    let left: Vec<String> =
        meta::finalizers(&object).into_iter().filter(|f| *f != finalizer).map(str::to_owned).collect();
    meta::set_finalizers(&mut object, left);
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(uids: &[&str]) -> Value {
        let references: Vec<Value> = uids
            .iter()
            .map(|uid| json!({"uid": uid, "name": uid, "kind": "A", "blockOwnerDeletion": true}))
            .collect();
        json!({"metadata": {"name": "x", "uid": "x", "ownerReferences": references}})
    }

    fn fate(object: &Value, has_dependents: bool) -> Fate {
        let owner = |reference: &Reference<'_>| match reference.uid {
            "here" => Owner::Present,
            "waiting" => Owner::Waiting,
            "strange" => Owner::Unknown,
            _ => Owner::Gone,
        };
        decide(object, &owner, has_dependents)
    }

    #[test]
    fn an_object_goes_when_all_its_owners_are_gone() {
        assert_eq!(fate(&owned(&["a", "b"]), false), Fate::Delete(Propagation::Background));
        assert_eq!(fate(&owned(&[]), false), Fate::Keep);
        assert_eq!(fate(&owned(&["here"]), false), Fate::Keep);
    }

    #[test]
    fn references_to_owners_that_are_gone_are_cut_while_another_is_there() {
        assert_eq!(fate(&owned(&["a", "here", "waiting"]), false), Fate::Cut(owned(&["here"])));
    }

    #[test]
    fn an_owner_of_a_kind_that_nobody_serves_keeps_its_dependents() {
        assert_eq!(fate(&owned(&["a", "strange"]), false), Fate::Keep);
    }

    #[test]
    fn a_dependent_with_dependents_goes_in_the_foreground_when_its_owner_waits() {
        assert_eq!(fate(&owned(&["waiting"]), true), Fate::Delete(Propagation::Foreground));
        assert_eq!(fate(&owned(&["waiting"]), false), Fate::Delete(Propagation::Background));
    }

    #[test]
    fn finalizers_put_on_beforehand_say_how_an_object_goes() {
        let mut object = owned(&["a"]);
        object["metadata"]["finalizers"] = json!(["orphan"]);
        assert_eq!(fate(&object, true), Fate::Delete(Propagation::Orphan));
    }

    fn ending(finalizer: &str) -> Value {
        json!({"metadata": {"uid": "o", "deletionTimestamp": "2026-11-15T22:50:54Z", "finalizers": [finalizer, "x.io/f"]}})
    }

    #[test]
    fn an_orphaning_owner_frees_its_dependents_and_goes() {
        let dependent = owned(&["o", "p"]);
        let ending = end(&ending("orphan"), &[&dependent]);
        assert_eq!(ending.freed, [owned(&["p"])]);
        assert_eq!(meta::finalizers(ending.owner.as_ref().unwrap()), ["x.io/f"]);
        assert!(ending.deleted.is_empty());
    }

    #[test]
    fn a_waiting_owner_stays_while_a_dependent_blocks_it() {
        let blocking = owned(&["o"]);
        let ending_now = end(&ending("foregroundDeletion"), &[&blocking]);
        assert_eq!(ending_now.deleted, [(0, Propagation::Foreground)]);
        assert_eq!(ending_now.owner, None);
        let mut free = owned(&["o"]);
        free["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = false.into();
        assert!(end(&ending("foregroundDeletion"), &[&free]).owner.is_some());
        assert!(end(&ending("foregroundDeletion"), &[]).owner.is_some());
    }

    #[test]
    fn a_dependent_on_its_way_is_not_deleted_twice() {
        let mut going = owned(&["o"]);
        going["metadata"]["deletionTimestamp"] = "2026-11-15T22:50:54Z".into();
        let ending = end(&ending("foregroundDeletion"), &[&going]);
        assert_eq!(ending.deleted, []);
        assert_eq!(ending.owner, None);
    }
}
