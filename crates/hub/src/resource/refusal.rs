//! The refusals of the lifecycle, in the words clients know.
//!
//! Owns which sentence goes with which step. The shape of a `Status` and the common sentences are the wire's.

use berth_hub_wire::{Cause, GroupKind, GroupResource, Reason, Status};

use crate::registry::Resource;

use super::act::Act;
use super::meta;

/// The words of a refusal to change what nothing in the request can tell apart.
const REJECTED_PATCH: &str = "the server rejected our request due to an error in our request";

impl Resource {
    /// The plural and group, as most failures name a resource.
    pub(crate) fn group_resource(&self) -> GroupResource<'_> {
        GroupResource::new(&self.group, &self.plural)
    }
}

/// 404: there is no object of this name.
pub(crate) fn not_found(resource: &Resource, name: &str) -> Status {
    Status::not_found(resource.group_resource(), name)
}

/// 409: the object changed since it was read.
pub(crate) fn stale(resource: &Resource, name: &str) -> Status {
    Status::stale(resource.group_resource(), name)
}

/// 409 for a create that found an object of its name.
pub(crate) fn exists(
    resource: &Resource,
    object: &serde_json::Value,
    live: Option<&serde_json::Value>,
) -> Status {
    let name = meta::text(object, "name");
    let mut status = if meta::text(object, "generateName").is_empty() {
        Status::already_exists(resource.group_resource(), name)
    } else {
        Status::no_name_generated(resource.group_resource(), name)
    };
    if live.is_some_and(meta::deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// 500 with a bare sentence and no reason: what the real server says where it did not expect to fail.
pub(crate) fn bare(message: impl Into<String>) -> Status {
    let mut status = Status::failure(500, Reason::InternalError, message);
    status.reason = None;
    status
}

/// 422 that says nothing but that the patch does not fit the object.
pub(crate) fn rejected_patch() -> Status {
    Status::failure(422, Reason::Invalid, REJECTED_PATCH).with_details(berth_hub_wire::Details::default())
}

/// 422 about the patched object as a whole; `shown` is the object or the patch, as the real server shows it.
pub(crate) fn invalid_patch(shown: &str, why: &str) -> Status {
    let message = format!("Invalid value: {}: {why}", berth_hub_wire::gotext::quote(shown));
    Status::invalid(GroupKind::new("", ""), "", &[Cause::new("FieldValueInvalid", message, "patch")])
}

/// 422: an update of this resource must say which state it is about.
pub(crate) fn version_needed(resource: &Resource, name: &str) -> Status {
    let cause = Cause::new(
        "FieldValueInvalid",
        "Invalid value: 0: must be specified for an update",
        "metadata.resourceVersion",
    );
    // The real server puts the plural where the kind belongs here.
    Status::invalid(GroupKind::new(&resource.group, &resource.plural), name, &[cause])
}

/// 409: the uid in the request is another object's. The sentence names the key as a store would.
pub(crate) fn other_uid(act: &Act<'_>, sent: &str, found: &str) -> Status {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: {sent}, UID in object meta: {found}",
        store_key(act)
    );
    Status::conflict(act.resource.group_resource(), act.name, &why)
}

/// The key that messages name: resources built into the API server lie at the root, all others under their group.
fn store_key(act: &Act<'_>) -> String {
    let (resource, name) = (act.resource, act.name);
    // A dry run never gets as far as where the prefix is put before the key.
    let root = if act.dry_run { "" } else { "/registry" };
    let place = match (&*resource.group, &*resource.plural, resource.is_custom()) {
        ("", "nodes", _) => "minions".to_owned(),
        ("apiextensions.k8s.io", plural, _) => format!("apiextensions.k8s.io/{plural}"),
        (group, plural, true) => format!("{group}/{plural}"),
        (_, plural, false) => plural.to_owned(),
    };
    match act.object_namespace() {
        "" => format!("{root}/{place}/{name}"),
        namespace => format!("{root}/{place}/{namespace}/{name}"),
    }
}
