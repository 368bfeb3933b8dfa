//! What people are told about pods, as events.

use berth_engine::evict::policy::Keep;

use crate::act::{Note, Target};
use crate::names::ControllerName;
use crate::world::{Kind, Pod};

/// What events about pods give as their reason.
const REASON: &str = "TaintManagerEviction";
/// What events about pods that are due and stay give as their reason.
const HELD_REASON: &str = "EvictionHeld";
/// The longest note of an event, in characters: what API servers take, with room to spare.
const NOTE_CHARS_MAX: usize = 900;

/// That a pod is due and stays.
pub(super) fn held(pod: &Pod, keep: &Keep) -> Note {
    let mut told = note(pod, "HoldEviction", "Holding Pod");
    told.reason = HELD_REASON;
    told.note = format!("{}: {keep}", told.note);
    // Events take so many characters and no more.
    told.note = told.note.chars().take(NOTE_CHARS_MAX).collect();
    told
}

/// That something is done about a pod.
pub(super) fn note(pod: &Pod, action: &'static str, what: &str) -> Note {
    let key = &pod.identity.key;
    Note {
        regarding: Target {
            kind: Kind::Pod,
            key: key.clone(),
            uid: Some(pod.identity.uid.to_string()).filter(|uid| !uid.is_empty()),
            resource_version: None,
        },
        related: None,
        is_warning: false,
        reason: REASON,
        action,
        note: format!("{what} {key}"),
        reporter: ControllerName::TaintEviction.as_str(),
        namespace: key.namespace.to_string(),
    }
}
