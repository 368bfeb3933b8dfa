//! What a request asks for, apart from the body: where, by whom, how strictly, and when.
//!
//! Owns the facts the pure functions of this module need. The clock and the dice are read by the caller and come in as
//! values, so that the same act on the same object gives the same outcome always.

use berth_hub_merge::{Operation, Writer};
use berth_hub_wire::FieldValidation;
use jiff::Timestamp;

use crate::registry::Resource;

/// One write to one object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act<'a> {
    /// The resource in the path.
    pub resource: &'a Resource,
    /// The namespace in the path, empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// The name in the path, empty when a collection is posted to.
    pub name: &'a str,
    /// Which part of the object may be written.
    pub part: Part,
    /// Who owns the fields written: `fieldManager`, or what the User-Agent begins with.
    pub manager: &'a str,
    /// What happens to fields the schema does not know.
    pub field_validation: FieldValidation,
    /// Whether nothing may be kept.
    pub dry_run: bool,
    /// The time of the request.
    pub now: Timestamp,
}

/// Which part of an object a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Part {
    /// Everything but the status, where the status is a subresource.
    #[default]
    Whole,
    /// The status alone.
    Status,
    /// A namespace's own finalizers alone.
    Finalize,
    /// The replicas alone, in the shape of a scale.
    Scale,
}

impl Part {
    /// The name of the subresource in paths and in managed fields.
    pub(crate) fn subresource(self) -> Option<&'static str> {
        match self {
            Part::Whole => None,
            Part::Status => Some("status"),
            Part::Finalize => Some("finalize"),
            Part::Scale => Some("scale"),
        }
    }
}

/// What only dice can give a new object. A fresh one is needed for every attempt at a generated name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mint {
    /// The uid.
    pub uid: String,
    /// The source of the generated suffix; see [`super::name::generate`].
    pub random: u64,
}

impl Act<'_> {
    /// The time of the request as objects carry it.
    pub(crate) fn stamp(&self) -> String {
        stamp(self.now)
    }

    /// The namespace an object of this resource has: none for cluster-scoped ones, whatever the path says.
    pub(crate) fn object_namespace(&self) -> &str {
        if self.resource.namespaced { self.namespace } else { "" }
    }

    /// Calls `then` with the writer whose fields are tracked.
    pub(crate) fn as_writer<T>(&self, operation: Operation, then: impl FnOnce(&Writer<'_>) -> T) -> T {
        let (api_version, now) = (self.form().gvk().api_version(), self.stamp());
        then(&Writer {
            manager: self.manager,
            operation,
            api_version: &api_version,
            subresource: self.part.subresource(),
            now: &now,
        })
    }
}

/// A time in the form of `metadata.creationTimestamp`: UTC, whole seconds.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_whole_seconds_and_ends_in_z() {
        let at: Timestamp = "2026-11-15T22:50:54.987Z".parse().unwrap();
        assert_eq!(stamp(at), "2026-11-15T22:50:54Z");
    }
}
