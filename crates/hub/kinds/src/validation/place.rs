//! A value and where it is, and the problems found on the way.
//!
//! Owns the vocabulary in which the rules of kinds are written. Knows no kind.

use berth_schema::{FieldPath, Problem, gotext, names};
use serde_json::Value;

/// What stands for an absent value.
static NOTHING: Value = Value::Null;

/// A value and its path. An absent value is null.
#[derive(Debug, Clone)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) path: FieldPath,
}

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value) -> At<'a> {
        At { value, path: FieldPath::root() }
    }

    pub(super) fn get(&self, name: &str) -> At<'a> {
        At { value: self.value.get(name).unwrap_or(&NOTHING), path: self.path.field(name) }
    }

    /// The items of a list, none of anything else.
    pub(super) fn items(&self) -> impl Iterator<Item = At<'a>> + use<'a> {
        let path = self.path.clone();
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(move |(index, value)| At { value, path: path.index(index) })
    }

    /// The entries of a map with their keys, their paths in brackets.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, At<'a>)> + use<'a> {
        let path = self.path.clone();
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(move |(key, value)| (key.as_str(), At { value, path: path.key(key) }))
    }

    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// How many items or entries there are.
    pub(super) fn len(&self) -> usize {
        self.value
            .as_array()
            .map(Vec::len)
            .or_else(|| self.value.as_object().map(serde_json::Map::len))
            .unwrap_or(0)
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Found(pub(super) Vec<Problem>);

impl Found {
    pub(super) fn required(&mut self, at: &At<'_>, detail: &str) {
        self.0.push(Problem::required(&at.path, detail));
    }

    pub(super) fn invalid(&mut self, at: &At<'_>, detail: &str) {
        self.0.push(Problem::invalid(&at.path, at.value, detail));
    }

    /// `Invalid value`, of a text that may be absent.
    pub(super) fn invalid_text(&mut self, at: &At<'_>, text: &str, detail: &str) {
        self.0.push(Problem::invalid_text(&at.path, text, detail));
    }

    /// `Invalid value`, shown in a form of its own.
    pub(super) fn invalid_shown(&mut self, path: &FieldPath, value: &Value, detail: &str) {
        self.0.push(Problem::invalid(path, value, detail));
    }

    pub(super) fn forbidden(&mut self, at: &At<'_>, detail: &str) {
        self.0.push(Problem::forbidden(&at.path, detail));
    }

    pub(super) fn duplicate(&mut self, at: &At<'_>) {
        self.0.push(Problem::duplicate(&at.path, at.value));
    }

    pub(super) fn not_supported(&mut self, at: &At<'_>, allowed: &[&str]) {
        let value = if at.is_set() { at.value.clone() } else { Value::from("") };
        self.0.push(Problem::not_supported(&at.path, &value, allowed));
    }

    /// Each sentence as a problem of the text at a place.
    pub(super) fn sentences(&mut self, at: &At<'_>, sentences: Vec<String>) {
        for sentence in sentences {
            self.invalid_text(at, at.text(), &sentence);
        }
    }

    pub(super) fn extend(&mut self, problems: Vec<Problem>) {
        self.0.extend(problems);
    }

    /// A text that has to be one of a few, required if it is empty.
    pub(super) fn one_of(&mut self, at: &At<'_>, allowed: &[&str]) {
        if at.text().is_empty() {
            self.required(at, "");
        } else if !allowed.contains(&at.text()) {
            self.not_supported(at, allowed);
        }
    }

    /// As [`Found::one_of`], for a text that may be absent.
    pub(super) fn one_of_if_set(&mut self, at: &At<'_>, allowed: &[&str]) {
        if at.is_set() && !allowed.contains(&at.text()) {
            self.not_supported(at, allowed);
        }
    }

    pub(super) fn not_negative(&mut self, at: &At<'_>) {
        if at.int().is_some_and(|value| value < 0) {
            self.invalid(at, "must be greater than or equal to 0");
        }
    }

    pub(super) fn label(&mut self, at: &At<'_>) {
        self.sentences(at, names::dns_label(at.text()));
    }

    pub(super) fn subdomain(&mut self, at: &At<'_>) {
        self.sentences(at, names::dns_subdomain(at.text()));
    }

    pub(super) fn port(&mut self, at: &At<'_>) {
        if !at.int().is_some_and(|port| (1..=65535).contains(&port)) {
            let value = at.int().unwrap_or(0).into();
            self.invalid_shown(&at.path, &value, "must be between 1 and 65535, inclusive");
        }
    }

    pub(super) fn port_or_name(&mut self, at: &At<'_>) {
        match at.value {
            Value::String(name) => self.sentences(at, port_name(name)),
            _ => self.port(at),
        }
    }

    /// Labels as they stand in selectors: problems point to the map, not to the entry.
    pub(super) fn labels(&mut self, at: &At<'_>) {
        for (key, value) in at.entries() {
            for sentence in names::label_key(key) {
                self.invalid_text(at, key, &sentence);
            }
            for sentence in names::label_value(value.text()) {
                self.invalid_text(at, value.text(), &sentence);
            }
        }
    }

    pub(super) fn label_name(&mut self, at: &At<'_>) {
        self.sentences(at, names::label_key(at.text()));
    }

    pub(super) fn immutable(&mut self, new: &At<'_>, old: &At<'_>) {
        if new.value != old.value {
            self.invalid(new, "field is immutable");
        }
    }
}

/// What is wrong with the name of a port.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > 15 {
        found.push("must be no more than 15 characters".to_owned());
    }
    if name.is_empty()
        || !name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
    {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        found.push("must not contain consecutive hyphens".to_owned());
    }
    if !name.is_empty() && (name.starts_with('-') || name.ends_with('-')) {
        found.push("must not begin or end with a hyphen".to_owned());
    }
    found
}

/// What is wrong with a key of a config map or secret.
pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    if key.len() > 253 {
        found.push("must be no more than 253 bytes".to_owned());
    }
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        found.push(names::regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match key {
        "." | ".." => found.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => found.push("must not start with '..'".to_owned()),
        _ => {}
    }
    found
}

/// A record in the words of Go's internal types, whose fields are not renamed: `apiGroup` reads `APIGroup`.
pub(super) fn internal(fields: &[(&str, &Value)]) -> String {
    let inner: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{}:{}", gotext::quote(name), gotext::json(value)))
        .collect();
    format!("{{{}}}", inner.join(","))
}
