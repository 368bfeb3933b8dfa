//! The name of a kind: group, version and kind.
//!
//! Owns how `apiVersion` and `kind` are read and written. Never says whether such a kind exists.

use std::fmt;

use serde_json::Value;

/// Group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Gvk {
    /// The API group, empty for the core group.
    pub group: Box<str>,
    /// The version.
    pub version: Box<str>,
    /// The kind.
    pub kind: Box<str>,
}

impl Gvk {
    /// From `apiVersion` and `kind`. What has more than one slash is no API version.
    pub fn new(api_version: &str, kind: &str) -> Option<Gvk> {
        let (group, version) = match api_version.split_once('/') {
            None => ("", api_version),
            Some((group, version)) if !version.contains('/') => (group, version),
            Some(_) => return None,
        };
        Some(Gvk { group: group.into(), version: version.into(), kind: kind.into() })
    }

    /// Of an object, absent when it does not say.
    pub fn of(object: &Value) -> Option<Gvk> {
        Gvk::new(object.get("apiVersion")?.as_str()?, object.get("kind")?.as_str()?)
    }

    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}
