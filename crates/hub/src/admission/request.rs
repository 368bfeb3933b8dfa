//! What is asked of the hub, as far as admission needs to know it.

use berth_hub_guard::User;
use berth_hub_guard::webhook::{Kind, Operation, Resource};
use jiff::Timestamp;
use serde_json::Value;

/// One write on its way to the log, apart from the object that would be stored.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it does. A patch is a creation or an update, depending on what it finds.
    pub operation: Operation,
    /// The resource in the path: group, version and plural.
    pub resource: Resource<'a>,
    /// The subresource in the path, or empty.
    pub subresource: &'a str,
    /// The kind of the object: that of the resource, except at subresources that have a kind of their own.
    pub kind: Kind<'a>,
    /// The namespace, empty at the cluster's scope. A namespace is in itself.
    pub namespace: &'a str,
    /// The name, empty while it is still to be generated.
    pub name: &'a str,
    /// The name in the path, empty when a collection is posted to.
    pub path_name: &'a str,
    /// Who writes: name, uid, groups and extra.
    pub user: &'a User,
    /// The object as it is stored, in the version of the path. There is none in a creation.
    pub old: Option<&'a Value>,
    /// Whether nothing will be kept.
    pub dry_run: bool,
    /// The time of the request: the one its stamps carry.
    pub now: Timestamp,
}

impl Request<'_> {
    /// Whether it is about this resource itself, in whatever version, and not about a subresource.
    pub fn is_about(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && self.is_within(group, plural)
    }

    /// Whether it is about this resource or one of its subresources, in whatever version.
    pub fn is_within(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.resource == plural
    }
}
