//! Field selectors: `metadata.name=x,status.phase!=Failed`.

use std::fmt;

use crate::gotext::quote;
use crate::status::Status;

/// One condition on a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldTerm {
    /// The field's label, such as `spec.nodeName`.
    pub field: String,
    /// Whether the value must differ.
    pub negated: bool,
    /// The value; a field that is missing counts as empty.
    pub value: String,
}

/// Conditions that must all hold. Without any, every object is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// How a kind words its refusal of a field it cannot select by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldLabelRule {
    /// Kinds that list their fields, and custom resources.
    Listed,
    /// Built-in kinds that know only name and namespace.
    MetadataOnly,
}

impl FieldSelector {
    /// Reads a selector; the error is the sentence a Kubernetes server gives.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, negated, value)) = split_term(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescape(value)?;
            // A term about nothing asks for nothing.
            if !(field.is_empty() && value.is_empty()) {
                terms.push(FieldTerm { field: field.to_owned(), negated, value });
            }
        }
        Ok(FieldSelector { terms })
    }

    /// Reads the selector of a query; the error is the answer to the request.
    pub fn parse_query(text: &str) -> Result<Self, Status> {
        Self::parse(text).map_err(Status::bad_request)
    }

    /// Selects objects of one name.
    pub fn name(name: &str) -> Self {
        let term = FieldTerm { field: "metadata.name".to_owned(), negated: false, value: name.to_owned() };
        FieldSelector { terms: vec![term] }
    }

    /// The conditions.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// Whether it selects every object.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Refuses fields that `is_supported` does not know.
    pub fn check(&self, is_supported: impl Fn(&str) -> bool, rule: FieldLabelRule) -> Result<(), Status> {
        let Some(term) = self.terms.iter().find(|term| !is_supported(&term.field)) else { return Ok(()) };
        Err(Status::bad_request(match rule {
            FieldLabelRule::Listed => format!("field label not supported: {}", term.field),
            FieldLabelRule::MetadataOnly => format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                quote(&term.field)
            ),
        }))
    }

    /// The same with fields renamed, as old labels of a kind are.
    #[must_use]
    pub fn renamed(mut self, rename: impl Fn(&str) -> Option<String>) -> Self {
        for term in &mut self.terms {
            if let Some(name) = rename(&term.field) {
                term.field = name;
            }
        }
        self
    }

    /// Whether it selects an object, given a way to look up its fields; a missing field is an empty one.
    pub fn matches<'o>(&self, field: impl Fn(&str) -> Option<std::borrow::Cow<'o, str>>) -> bool {
        self.terms.iter().all(|term| {
            let found = field(&term.field);
            (found.as_deref().unwrap_or_default() == term.value) != term.negated
        })
    }

    /// The one value that a field must have, when there is one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| !term.negated && term.field == field).map(|term| term.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if term.negated { "!=" } else { "=" };
            write!(f, "{comma}{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// Cuts at commas that no backslash protects.
fn split_terms(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// The field, whether it is negated, and the value as it is written. The first operator from the left divides.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(at, _)| {
        let rest = &term[at..];
        if let Some(value) = rest.strip_prefix("!=") {
            Some((&term[..at], true, value))
        } else {
            let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
            Some((&term[..at], false, value))
        }
    })
}

fn unescape(text: &str) -> Result<String, String> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => value.push(c),
                other => {
                    let sequence: String = other.into_iter().collect();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{sequence}"));
                }
            },
            // The real server shows the character by its number.
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", c as u32));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::borrow::Cow;

    #[test]
    fn terms_are_sorted_and_values_unescaped() {
        let selector = FieldSelector::parse("status.phase!=Failed,,a==b\\,c\\=\\\\,metadata.name=x").unwrap();
        assert_eq!(selector.to_string(), "a=b\\,c\\=\\\\,metadata.name=x,status.phase!=Failed");
        assert_eq!(selector.exact("a"), Some("b,c=\\"));
        assert_eq!(selector.exact("status.phase"), None);
        assert!(FieldSelector::parse("=,!=,==").unwrap().is_everything());
    }

    #[test]
    fn complaints_are_those_of_the_real_server() {
        for (text, want) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("b=1,x", "invalid selector: 'b=1,x'; can't understand 'x'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
            ("a=\\", "invalid field selector: invalid escape sequence: \\"),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap_err(), want, "{text}");
        }
    }

    #[test]
    fn unknown_fields_are_refused_in_the_words_of_the_kind() {
        let selector = FieldSelector::parse("spec.foo=x").unwrap();
        let known = |field: &str| field == "metadata.name";
        assert_eq!(
            selector.check(known, FieldLabelRule::Listed).unwrap_err().message,
            "field label not supported: spec.foo"
        );
        assert_eq!(
            selector.check(known, FieldLabelRule::MetadataOnly).unwrap_err().message,
            "\"spec.foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
        assert!(FieldSelector::name("x").check(known, FieldLabelRule::Listed).is_ok());
    }

    #[test]
    fn a_missing_field_is_an_empty_one() {
        let fields = |field: &str| (field == "a").then_some(Cow::Borrowed("1"));
        for (text, want) in
            [("", true), ("a=1", true), ("a!=1", false), ("b=", true), ("b!=", false), ("b!=x,a=1", true)]
        {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(fields), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_value_survives_escaping(value in ".{0,20}") {
            let term = FieldTerm { field: "f".into(), negated: false, value };
            let selector = FieldSelector { terms: vec![term] };
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn any_text_is_a_selector_or_a_sentence(text in "[ab=!,\\\\é]{0,24}") {
            let _ = FieldSelector::parse(&text);
        }
    }
}
