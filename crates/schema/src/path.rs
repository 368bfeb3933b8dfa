//! Where in an object something is.
//!
//! Owns the spelling of field paths: `spec.tolerations[0].effect`, and `status.capacity[cpu]` for the entries of
//! a map where Kubernetes spells them so.

use std::fmt::{self, Write as _};

/// The longest map key shown in a path, in characters: longer than any valid label key.
const KEY_CHARS_MAX: usize = 330;

/// A path from the root of an object to one of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A named field of this one.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        let mut path = self.clone();
        path.push_field(name);
        path
    }

    /// An item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of this map; very long keys are cut, since a path is read by people.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut path = self.clone();
        path.push_key(key);
        path
    }

    /// The path as text, empty for the object itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push_field(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push('.');
        }
        self.push_cut(name);
    }

    fn push_key(&mut self, key: &str) {
        self.0.push('[');
        self.push_cut(key);
        self.0.push(']');
    }

    fn push_cut(&mut self, name: &str) {
        let end = name.char_indices().nth(KEY_CHARS_MAX).map_or(name.len(), |(at, _)| at);
        self.0.push_str(&name[..end]);
        if end < name.len() {
            let _ = write!(self.0, "... ({} bytes)", name.len());
        }
    }
}

impl From<&str> for FieldPath {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// The object itself reads `<nil>`, as Kubernetes spells the path of a problem that has none.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// A path that is being walked along: only written down when something is found there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    Root,
    /// A declared field.
    Field(&'a Place<'a>, &'a str),
    /// An entry of a map, in brackets.
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    pub(crate) fn path(&self) -> FieldPath {
        match self {
            Place::Root => FieldPath::root(),
            Place::Field(parent, name) => {
                let mut path = parent.path();
                path.push_field(name);
                path
            }
            Place::Key(parent, key) => {
                let mut path = parent.path();
                path.push_key(key);
                path
            }
            Place::Index(parent, index) => {
                let mut path = parent.path();
                let _ = write!(path.0, "[{index}]");
                path
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_kubernetes_own() {
        let root = FieldPath::root();
        assert_eq!(
            root.field("spec").field("tolerations").index(0).field("effect").as_str(),
            "spec.tolerations[0].effect"
        );
        assert_eq!(root.field("metadata").field("labels").key("a.b/c").as_str(), "metadata.labels[a.b/c]");
        assert_eq!(root.to_string(), "<nil>");
        let spec = Place::Field(&Place::Root, "spec");
        assert_eq!(Place::Index(&Place::Key(&spec, "a.b"), 3).path().as_str(), "spec[a.b][3]");
    }

    #[test]
    fn an_endless_key_does_not_make_an_endless_path() {
        assert!(FieldPath::root().key(&"ä".repeat(100_000)).as_str().len() < 1000);
        assert!(FieldPath::root().field(&"ä".repeat(100_000)).as_str().len() < 1000);
    }
}
