//! Regular expressions of schemas.
//!
//! Owns matching with Go's meaning of an expression, which is what Kubernetes uses: `\d`, `\w` and `\s` are
//! ASCII only, and a bracket or a doubled sign inside a class is just itself. Compiled expressions are kept, up to a
//! limit, because the same few are used for every object.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use regex::Regex;

/// The most compiled expressions kept. Our own definitions have about a dozen; the limit bounds what
/// definitions written by users can make us hold.
const CACHED_MAX: usize = 1024;

static CACHE: LazyLock<RwLock<HashMap<String, Option<Arc<Regex>>>>> = LazyLock::new(RwLock::default);

/// Whether the text contains a match; `None` when the expression itself cannot be understood.
pub(crate) fn is_match(pattern: &str, text: &str) -> Option<bool> {
    let cached = CACHE.read().unwrap_or_else(PoisonError::into_inner).get(pattern).cloned();
    let regex = cached.unwrap_or_else(|| {
        // Shared, not cloned: each clone of a `Regex` would begin with an empty cache of its own.
        let compiled = Regex::new(&translate(pattern)).ok().map(Arc::new);
        let mut cache = CACHE.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() < CACHED_MAX {
            cache.insert(pattern.to_owned(), compiled.clone());
        }
        compiled
    });
    regex.map(|regex| regex.is_match(text))
}

/// Rewrites a Go expression so that Rust's reader gives it the same meaning.
fn translate(pattern: &str) -> String {
    let mut output = String::with_capacity(pattern.len() + 16);
    let mut characters = pattern.chars().peekable();
    let mut in_class = false;
    let mut previous_in_class = None;
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next();
                match escaped {
                    Some('d') => output.push_str("[0-9]"),
                    Some('D') => output.push_str("[^0-9]"),
                    Some('w') => output.push_str("[0-9A-Za-z_]"),
                    Some('W') => output.push_str("[^0-9A-Za-z_]"),
                    Some('s') => output.push_str(r"[\t\n\f\r ]"),
                    Some('S') => output.push_str(r"[^\t\n\f\r ]"),
                    Some('b') if !in_class => output.push_str(r"(?-u:\b)"),
                    Some('Q') if !in_class => quote(&mut characters, &mut output),
                    Some(other) => {
                        output.push('\\');
                        output.push(other);
                    }
                    None => output.push('\\'),
                }
                previous_in_class = None;
                continue;
            }
            '[' if !in_class => {
                in_class = true;
                output.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    output.push('^');
                }
                // Directly behind the opening a closing bracket is an ordinary character.
                if characters.next_if_eq(&']').is_some() {
                    output.push_str(r"\]");
                }
                previous_in_class = None;
                continue;
            }
            '[' if characters.peek() == Some(&':') => {
                // A named class runs to its own closing bracket.
                output.push('[');
                for part in characters.by_ref() {
                    output.push(part);
                    if part == ']' {
                        break;
                    }
                }
                previous_in_class = None;
                continue;
            }
            '[' if in_class => output.push_str(r"\["),
            ']' if in_class => {
                in_class = false;
                output.push(']');
            }
            '&' | '~' | '-' if in_class && previous_in_class == Some(character) => {
                // Doubled, these are set operations for Rust and plain characters for Go.
                output.push('\\');
                output.push(character);
            }
            other => output.push(other),
        }
        previous_in_class = in_class.then_some(character);
    }
    output
}

/// Copies a `\Q...\E` section as literal text.
fn quote(characters: &mut std::iter::Peekable<std::str::Chars<'_>>, output: &mut String) {
    while let Some(character) = characters.next() {
        if character == '\\' && characters.next_if_eq(&'E').is_some() {
            return;
        }
        let _ = write!(output, "{}", regex::escape(character.encode_utf8(&mut [0; 4])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_mean_the_ends_of_the_whole_text() {
        assert_eq!(is_match("^[0-9]+[hms]$", "10m"), Some(true));
        assert_eq!(is_match("^[0-9]+[hms]$", "10m\n"), Some(false));
        assert_eq!(is_match("^[0-9]+[hms]$", "x\n10m"), Some(false));
        assert_eq!(is_match("[0-9]", "no anchor: 7"), Some(true));
    }

    #[test]
    fn classes_are_ascii_only_as_in_go() {
        assert_eq!(is_match(r"^\d$", "٣"), Some(false));
        assert_eq!(is_match(r"^[\w.]$", "é"), Some(false));
        assert_eq!(is_match(r"^\W$", "é"), Some(true));
        assert_eq!(is_match(r"^\s$", "\u{a0}"), Some(false));
    }

    #[test]
    fn signs_inside_a_class_are_just_themselves() {
        assert_eq!(is_match("^[a&&b]+$", "a&b"), Some(true));
        assert_eq!(is_match("^[[a]+$", "[a["), Some(true));
        assert_eq!(is_match("^[]a]+$", "]a"), Some(true));
        assert_eq!(is_match("^[[:digit:]x]+$", "1x"), Some(true));
        assert_eq!(is_match(r"^\Qa.b\E$", "a.b"), Some(true));
        assert_eq!(is_match(r"^\Qa.b\E$", "axb"), Some(false));
    }

    #[test]
    fn an_expression_nobody_can_read_is_reported() {
        assert_eq!(is_match("(", "x"), None);
        assert_eq!(is_match("a{1000}{1000}{1000}", "x"), None);
    }
}
