//! Names of kinds and resources, as messages and documents spell them.
//!
//! Owns only the spelling. Never knows which of them are served.

use std::fmt;

/// A resource of a group: `placements.cluster.open-cluster-management.io`, or just `pods` in the core group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
}

/// A kind of a group: `Placement.cluster.open-cluster-management.io`, or just `Pod` in the core group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
}

/// What `apiVersion` and `kind` say together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl<'a> GroupResource<'a> {
    /// A resource by group and plural name.
    pub fn new(group: &'a str, resource: &'a str) -> Self {
        GroupResource { group, resource }
    }
}

impl<'a> GroupKind<'a> {
    /// A kind by group and name.
    pub fn new(group: &'a str, kind: &'a str) -> Self {
        GroupKind { group, kind }
    }
}

impl GroupVersionKind {
    /// A kind by group, version and name.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// What `apiVersion` holds: `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

/// Joins a group and a version as `apiVersion` holds them.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Splits an `apiVersion`; the error is the sentence a Kubernetes server gives.
pub fn split_api_version(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('/') {
        None => Ok(("", text)),
        Some((group, version)) if !version.contains('/') => Ok((group, version)),
        Some(_) => Err(format!("unexpected GroupVersion string: {text}")),
    }
}

fn dotted(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(f, self.resource, self.group)
    }
}

impl fmt::Display for GroupKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(f, self.kind, self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_group_is_not_spelled() {
        assert_eq!(GroupResource::new("", "pods").to_string(), "pods");
        assert_eq!(GroupKind::new("apps", "Deployment").to_string(), "Deployment.apps");
        assert_eq!(api_version("", "v1"), "v1");
        assert_eq!(api_version("apps", "v1"), "apps/v1");
    }

    #[test]
    fn an_api_version_has_at_most_one_slash() {
        assert_eq!(split_api_version("v1"), Ok(("", "v1")));
        assert_eq!(split_api_version("apps/v1"), Ok(("apps", "v1")));
        assert_eq!(split_api_version(""), Ok(("", "")));
        assert_eq!(split_api_version("a/b/c"), Err("unexpected GroupVersion string: a/b/c".to_owned()));
    }
}
