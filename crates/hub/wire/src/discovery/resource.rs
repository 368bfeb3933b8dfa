//! What discovery knows of a resource.

use base64::Engine as _;
use sha2::{Digest, Sha256};

/// What a custom resource can be asked for, in the order that a real server lists it.
pub const CUSTOM_RESOURCE_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// A resource in one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceInfo {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind of its objects.
    pub kind: String,
    /// The kind of its lists.
    pub list_kind: String,
    /// The name in paths.
    pub plural: String,
    /// The name of one.
    pub singular: String,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Sets it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether a definition made it: documents spell out its group and version where they are left out for others.
    pub is_custom: bool,
    /// What it can be asked for, in the order it is listed.
    pub verbs: Vec<String>,
    /// The group its objects are stored in; differs where two groups share one storage.
    pub storage_group: String,
    /// The version its objects are stored in; empty for resources that are not stored.
    pub storage_version: String,
    /// What stands below an object, in the order it is listed.
    pub subresources: Vec<SubresourceInfo>,
}

/// What stands below an object: `status`, `scale`, `eviction`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubresourceInfo {
    /// Its name.
    pub name: String,
    /// The group of its kind.
    pub group: String,
    /// The version of its kind.
    pub version: String,
    /// The kind it takes and gives.
    pub kind: String,
    /// What it can be asked for.
    pub verbs: Vec<String>,
}

impl ResourceInfo {
    /// A short hash of the kind that its objects are stored as, by which clients see that two resources are one.
    pub(super) fn storage_version_hash(&self) -> Option<String> {
        if self.storage_version.is_empty() {
            return None;
        }
        let kind = format!("{}/{}/{}", self.storage_group, self.storage_version, self.kind);
        let hash = Sha256::digest(kind.as_bytes());
        Some(base64::engine::general_purpose::STANDARD.encode(&hash[..8]))
    }

    /// The group and version to spell next to a kind: empty where they go without saying.
    pub(super) fn spelled<'a>(&self, group: &'a str, version: &'a str) -> (&'a str, &'a str) {
        if group == self.group && version == self.version { ("", "") } else { (group, version) }
    }
}
