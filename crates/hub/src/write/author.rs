//! Whoever writes: the user of a request, or a keeper.

use berth_hub_guard::User;
use berth_hub_wire::{FieldValidation, Query};
use jiff::Timestamp;

use crate::core::Core;
use crate::registry::{Registry, Resource};
use crate::resource::{Act, Part};

/// Who writes, when, and what they said beside the object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Author<'a> {
    pub(crate) core: &'a Core,
    /// The resources served when they began: the same ones until they are answered.
    pub(crate) registry: &'a Registry,
    pub(crate) user: &'a User,
    /// The options of the request, which webhooks are shown.
    pub(crate) query: &'a Query,
    pub(crate) now: Timestamp,
}

impl Author<'_> {
    /// An act on the whole of an object, as nobody in particular. What is said about it is for the caller to add.
    pub(crate) fn act<'a>(&self, resource: &'a Resource, namespace: &'a str, name: &'a str) -> Act<'a> {
        Act {
            resource,
            namespace,
            name,
            part: Part::Whole,
            manager: "",
            field_validation: FieldValidation::Ignore,
            dry_run: false,
            now: self.now,
        }
    }
}
