//! What an admission function may ask about the rest of the world.

use berth_hub_guard::webhook::Resource;
use berth_hub_guard::{Attributes, Verdict};
use serde_json::Value;

/// The hub's objects and its policy, to read. The hub brings it; tests of a function bring their own.
pub trait Lookup: Sync {
    /// One object in the version asked for, as it is stored now. The namespace is empty for cluster-scoped resources.
    fn find(&self, resource: Resource<'_>, namespace: &str, name: &str) -> Option<Value>;

    /// Every object of a resource, or of one namespace, in the version asked for and in order of their names. All are
    /// from one moment. None when no such resource is served.
    fn list(&self, resource: Resource<'_>, namespace: Option<&str>) -> Vec<Value>;

    /// What policy says to a question, as a `SubjectAccessReview` would.
    fn authorize(&self, question: &Attributes<'_>) -> Verdict;
}
