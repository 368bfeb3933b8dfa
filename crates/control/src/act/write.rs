//! Writes, as data.

use std::fmt;
use std::sync::Arc;

use berth_engine::gate::Address;
use berth_engine::model::ObjectKey;
use serde_json::Value;

use super::ask::Ask;
use crate::names::ControllerName;
use crate::review::Question;
use crate::world::{Kind, Object};

/// One write to the API server, or what is asked before one.
#[derive(Clone, Debug)]
pub enum Write {
    /// Make this object.
    Create(Object),
    /// Change an object by a merge patch, if it is still the one that was seen.
    Patch {
        /// The object.
        target: Target,
        /// The subresource, if not the object itself.
        subresource: Option<&'static str>,
        /// The merge patch, without preconditions: those are the target's.
        patch: Value,
    },
    /// Change a part of an object by a strategic merge patch: what has a key of its own in a list, as a condition has its
    /// type, is changed alone, so whatever others write there at the same time stays.
    Strategic {
        /// The object.
        target: Target,
        /// The subresource, if not the object itself.
        subresource: Option<&'static str>,
        /// The patch, without preconditions: those are the target's.
        patch: Value,
    },
    /// Delete an object, if it is still the one that was seen.
    Delete(Target),
    /// Delete a pod without waiting for whoever runs it, if it is still the one that was seen.
    Destroy(Target),
    /// Evict a pod by the API, which asks its disruption budget, if it is still the one that was seen. That the budget does not
    /// allow it is told to who asked.
    Evict {
        /// The pod.
        target: Target,
        /// Who asks.
        asker: ControllerName,
    },
    /// Show a pod, its node and, if wanted, its owner to who asks, as they are now.
    Look {
        /// The pod.
        target: Target,
        /// Its node.
        node: Arc<str>,
        /// Whether the owner is wanted.
        with_owner: bool,
        /// Who asks.
        asker: ControllerName,
    },
    /// Ask somebody outside whether a pod may go; whatever comes of it is told to who asks. Nothing is asked of the API server.
    Review {
        /// The pod.
        target: Target,
        /// Who is asked.
        address: Address,
        /// What.
        question: Box<Question>,
        /// Who asks.
        asker: ControllerName,
    },
    /// Read some objects as they are now; whatever comes of it is told to who asks.
    Ask {
        /// What it is for: the subject of who asks.
        target: Target,
        /// What is asked.
        asks: Vec<Ask>,
        /// Who asks.
        asker: ControllerName,
    },
    /// Change an object of a kind that nobody here knows by a merge patch, if it is still as it was read.
    Foreign {
        /// What it is for.
        target: Target,
        /// Where the object is.
        path: String,
        /// Its identity.
        uid: String,
        /// Its revision.
        resource_version: String,
        /// The merge patch, without preconditions.
        patch: Value,
    },
    /// Go on only if this object, on which what follows was decided, is still as it was seen: for verdicts on what did
    /// *not* happen, which a watch that has gone quiet would give as well. One that was not there must still not be.
    Unchanged(Target),
}

/// An object as it was seen. Where the same job wrote it before, that answer counts instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub kind: Kind,
    /// The name.
    pub key: ObjectKey,
    /// Its identity; `None` for an object that the same job creates.
    pub uid: Option<String>,
    /// Its revision; `None` for an object that the same job creates, and where any revision will do.
    pub resource_version: Option<String>,
}

impl Target {
    /// The object as it is known.
    pub fn of(object: &Object) -> Self {
        Self {
            kind: object.kind(),
            key: object.key(),
            uid: object.uid().map(str::to_owned),
            resource_version: object.resource_version(),
        }
    }

    /// The object of this identity, whatever has become of it since.
    pub fn whatever_revision(object: &Object) -> Self {
        Self { resource_version: None, ..Self::of(object) }
    }

    /// An object that is not there: one that the same job creates, or that must still be missing.
    pub fn to_come(kind: Kind, key: ObjectKey) -> Self {
        Self { kind, key, uid: None, resource_version: None }
    }
}

impl Write {
    /// The kind and the name of what is written.
    pub fn subject(&self) -> (Kind, ObjectKey) {
        match self {
            Self::Create(object) => (object.kind(), object.key()),
            Self::Patch { target, .. }
            | Self::Strategic { target, .. }
            | Self::Delete(target)
            | Self::Destroy(target)
            | Self::Evict { target, .. }
            | Self::Look { target, .. }
            | Self::Review { target, .. }
            | Self::Ask { target, .. }
            | Self::Foreign { target, .. }
            | Self::Unchanged(target) => (target.kind, target.key.clone()),
        }
    }

    /// Whether somebody else is only asked something, for as long as that takes: the API server has nothing to do for it, or has to
    /// show what there is.
    pub(crate) fn only_asks(&self) -> bool {
        matches!(self, Self::Look { .. } | Self::Review { .. } | Self::Ask { .. })
    }

    /// The verb, as roles have it; one of its own where no role is needed.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) | Self::Evict { .. } => "create",
            Self::Patch { .. } | Self::Strategic { .. } | Self::Foreign { .. } => "patch",
            Self::Delete(_) | Self::Destroy(_) => "delete",
            Self::Unchanged(_) | Self::Look { .. } | Self::Ask { .. } => "get",
            Self::Review { .. } => "review",
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, key) = self.subject();
        match self {
            Self::Destroy(_) => write!(f, "delete by force {kind} {key}"),
            Self::Evict { .. } => write!(f, "evict {kind} {key}"),
            Self::Foreign { path, .. } => write!(f, "patch {path}"),
            _ => write!(f, "{} {kind} {key}", self.verb()),
        }
    }
}

/// An event to be recorded about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub regarding: Target,
    /// What else it names.
    pub related: Option<Target>,
    /// Whether somebody should look at it.
    pub is_warning: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// What was done, in one word.
    pub action: &'static str,
    /// The sentence.
    pub note: String,
    /// The controller that says it.
    pub reporter: &'static str,
    /// The namespace it is put into.
    pub namespace: String,
}
