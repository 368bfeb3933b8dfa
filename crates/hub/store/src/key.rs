//! Names of things in the store.
//!
//! Owns the order in which objects are listed: by resource, then namespace, then name, as bytes of `namespace/name`. It
//! never checks that a name is a legal Kubernetes name.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A kind of object as the store knows it: `plural.group`, or just `plural` in the core group.
///
/// The version is not part of it: every served version of a resource shares one storage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey(Arc<str>);

impl ResourceKey {
    /// The resource `plural` in `group`; the core group is the empty string.
    pub fn new(group: &str, plural: &str) -> Self {
        if group.is_empty() { Self(plural.into()) } else { Self(format!("{plural}.{group}").into()) }
    }

    /// The text form, `plural.group` or `plural`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn from_stored(text: &str) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for ResourceKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What one object is stored under. Ordered by resource, namespace, name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kind of object.
    pub resource: ResourceKey,
    /// The namespace; empty for an object that belongs to the whole cluster.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
}

impl Key {
    /// A key; `namespace` is empty for cluster-scoped objects.
    pub fn new(resource: &ResourceKey, namespace: &str, name: &str) -> Self {
        Self { resource: resource.clone(), namespace: namespace.into(), name: name.into() }
    }

    /// The bytes of text in this key.
    pub(crate) fn text_bytes(&self) -> usize {
        self.resource.0.len() + self.namespace.len() + self.name.len()
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.resource.cmp(&other.resource).then_with(|| self.place().cmp(&other.place()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}/{}", self.resource, self.name)
        } else {
            write!(f, "{}/{}/{}", self.resource, self.namespace, self.name)
        }
    }
}

/// Where an object stands within its resource: namespace and name.
///
/// A trait so that the ordered set of entries can be searched with borrowed text, without making a key.
pub(crate) trait Place {
    fn place(&self) -> Spot<'_>;
}

impl Place for Key {
    fn place(&self) -> Spot<'_> {
        Spot { namespace: &self.namespace, name: &self.name }
    }
}

impl Place for Spot<'_> {
    fn place(&self) -> Spot<'_> {
        *self
    }
}

/// A namespace and a name, in the order of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl PartialOrd for Spot<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Spot<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        order_of_namespaces(self.namespace, other.namespace).then_with(|| self.name.cmp(other.name))
    }
}

/// Namespaces are in the order of their objects' keys in etcd, `namespace/name`: `a-b` comes before `a`, since `-` comes
/// before `/`. Clients page through lists in this order, and see it.
pub(crate) fn order_of_namespaces(left: &str, right: &str) -> Ordering {
    // Objects of no namespace have no separator either.
    let end = |namespace: &str| (!namespace.is_empty()).then_some(b'/');
    left.bytes().chain(end(left)).cmp(right.bytes().chain(end(right)))
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for dyn Place + '_ {}

impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_resource_has_no_group_in_its_text() {
        assert_eq!(ResourceKey::new("", "pods").as_str(), "pods");
        assert_eq!(ResourceKey::new("apps", "deployments").as_str(), "deployments.apps");
    }

    #[test]
    fn keys_are_ordered_by_namespace_before_name() {
        let pods = ResourceKey::new("", "pods");
        assert!(Key::new(&pods, "a", "z") < Key::new(&pods, "b", "a"));
        assert!(Key::new(&pods, "", "z") < Key::new(&pods, "a", "a"));
    }

    #[test]
    fn a_namespace_that_begins_with_the_name_of_another_comes_before_it_as_in_etcd() {
        let pods = ResourceKey::new("", "pods");
        assert!(Key::new(&pods, "a-b", "z") < Key::new(&pods, "a", "a"));
        assert!(Key::new(&pods, "a", "z") < Key::new(&pods, "a0", "a"));
    }
}
