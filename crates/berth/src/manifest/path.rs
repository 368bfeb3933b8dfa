//! Field paths as Kubernetes prints them: `spec.tolerations[0].effect`, `metadata.labels[example.com/zone]`.
//!
//! Owns building such a path while walking a value, and reading one back against a value. Never holds positions.

use std::fmt::Write as _;

/// A field path under construction: a stack of steps kept as the text they make.
#[derive(Debug, Clone, Default)]
pub struct FieldPath {
    text: String,
    ends: Vec<usize>,
}

impl FieldPath {
    /// Steps into a field of a mapping. A key that is not a plain word is put in brackets, as it would otherwise
    /// read as several steps.
    pub fn push_key(&mut self, key: &str) {
        self.ends.push(self.text.len());
        let plain =
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
        if plain {
            if !self.text.is_empty() {
                self.text.push('.');
            }
            self.text.push_str(key);
        } else {
            self.text.push('[');
            self.text.push_str(key);
            self.text.push(']');
        }
    }

    /// Steps into an item of a sequence.
    pub fn push_index(&mut self, index: usize) {
        self.ends.push(self.text.len());
        write!(self.text, "[{index}]").expect("writing to a string does not fail");
    }

    /// Steps back out; at the root this does nothing.
    pub fn pop(&mut self) {
        if let Some(end) = self.ends.pop() {
            self.text.truncate(end);
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The index at the front of `rest` (as in `[3].spec`), and what follows it.
pub(super) fn split_index(rest: &str) -> Option<(usize, &str)> {
    let (digits, after) = rest.strip_prefix('[')?.split_once(']')?;
    Some((digits.parse().ok()?, after))
}

/// Whether `rest` begins with a step into `key`, and what follows it. Both `.key` and `[key]` are understood, and
/// a dotted key may also stand unbracketed.
pub(super) fn strip_key<'p>(rest: &'p str, key: &str) -> Option<&'p str> {
    if let Some(after) =
        rest.strip_prefix('[').and_then(|r| r.strip_prefix(key)).and_then(|r| r.strip_prefix(']'))
    {
        return Some(after);
    }
    let after = rest.strip_prefix('.').unwrap_or(rest).strip_prefix(key)?;
    (!key.is_empty() && (after.is_empty() || after.starts_with(['.', '[']))).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_no_plain_word_is_bracketed() {
        let mut path = FieldPath::default();
        path.push_key("metadata");
        path.push_key("labels");
        path.push_key("example.com/zone");
        assert_eq!(path.as_str(), "metadata.labels[example.com/zone]");
        path.pop();
        path.pop();
        path.push_key("finalizers");
        path.push_index(2);
        assert_eq!(path.as_str(), "metadata.finalizers[2]");
    }

    #[test]
    fn a_step_into_a_key_matches_whole_words_only() {
        assert_eq!(strip_key("spec.x", "spec"), Some(".x"));
        assert_eq!(strip_key(".spec", "spec"), Some(""));
        assert_eq!(strip_key(".specs", "spec"), None);
        assert_eq!(strip_key("[a.b/c].d", "a.b/c"), Some(".d"));
        assert_eq!(strip_key(".a.b/c.d", "a.b/c"), Some(".d"));
        assert_eq!(split_index("[12].x"), Some((12, ".x")));
        assert_eq!(split_index("[x]"), None);
    }
}
