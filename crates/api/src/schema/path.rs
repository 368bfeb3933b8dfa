//! Where in an object something is.
//!
//! Owns the spelling of field paths: `spec.tolerations[0].effect`, and `status.capacity[cpu]` for the entries of
//! a map, whose keys may contain dots.

use std::fmt::{self, Write as _};

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
        let separator = if self.0.is_empty() { "" } else { "." };
        Self(format!("{}{separator}{name}", self.0))
    }

    /// An item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of this map; very long keys are cut, since a path is read by people.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        /// Longer than any valid label key, in characters.
        const KEY_CHARS_MAX: usize = 330;
        let mut path = format!("{}[", self.0);
        let end = key.char_indices().nth(KEY_CHARS_MAX).map_or(key.len(), |(at, _)| at);
        path.push_str(&key[..end]);
        if end < key.len() {
            let _ = write!(path, "... ({} bytes)", key.len());
        }
        path.push(']');
        Self(path)
    }

    /// The path as text, empty for the object itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<object>" } else { &self.0 })
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
        assert_eq!(root.to_string(), "<object>");
    }

    #[test]
    fn an_endless_key_does_not_make_an_endless_path() {
        assert!(FieldPath::root().key(&"ä".repeat(100_000)).as_str().len() < 1000);
    }
}
