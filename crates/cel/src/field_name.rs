//! Field names as expressions write them.
//!
//! Kubernetes lets an expression reach a field whose name is no CEL identifier under an escaped name:
//! `my-field` as `my__dash__field`, `namespace` as `__namespace__`. A single underscore stays as it is.

use crate::parser::is_reserved;

/// What stands for the characters an identifier cannot contain; `__` first, since it is what the others
/// begin with.
const ESCAPES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// The name under which an expression reaches a field; `None` if it cannot reach it.
pub fn escape_field_name(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some((plain, escape)) = ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain)) {
            escaped.push_str(escape);
            rest = &rest[plain.len()..];
        } else if c.is_ascii_alphanumeric() || c == '_' {
            escaped.push(c);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(escaped)
}

/// The field that an escaped name stands for; `None` if it is not one that escaping gives.
pub fn unescape_field_name(escaped: &str) -> Option<String> {
    if let Some(word) = escaped.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"))
        && is_reserved(word)
    {
        return Some(word.to_owned());
    }
    let mut name = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(c) = rest.chars().next() {
        // Of three underscores the first belongs to the name and the others begin an escape.
        if let Some((plain, escape)) = ESCAPES.iter().find(|(_, escape)| rest.starts_with(escape)) {
            name.push_str(plain);
            rest = &rest[escape.len()..];
        } else if rest.starts_with("__") && !rest.starts_with("___") {
            return None;
        } else {
            name.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_escaped_as_kubernetes_escapes_them() {
        for (name, escaped) in [
            ("plain", "plain"),
            ("my_field", "my_field"),
            ("my-field", "my__dash__field"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("a___b", "a__underscores___b"),
            ("namespace", "__namespace__"),
            ("in", "__in__"),
        ] {
            assert_eq!(escape_field_name(name).as_deref(), Some(escaped));
            assert_eq!(unescape_field_name(escaped).as_deref(), Some(name));
        }
    }

    #[test]
    fn names_that_cannot_be_written_are_not_reachable() {
        for name in ["", "1a", "a b", "é", "a$"] {
            assert_eq!(escape_field_name(name), None, "{name}");
        }
        assert_eq!(unescape_field_name("a__nope__b"), None);
    }

    proptest! {
        #[test]
        fn escaping_is_undone_by_unescaping(name in "[a-z_./-]{1,12}") {
            let escaped = escape_field_name(&name).expect("all its characters are allowed");
            prop_assert_eq!(unescape_field_name(&escaped), Some(name));
        }
    }
}
