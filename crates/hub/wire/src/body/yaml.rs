//! YAML text into a value, as a Kubernetes server reads it.
//!
//! Owns anchors, aliases, merge keys, tags, duplicate keys and the limits on all of them. Open collections are kept in
//! a vector, so nesting in the input is never nesting in this program. Never knows what the value is.

use std::collections::HashMap;

use berth_text::yaml::{self as scalars, Scalar};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::json::{DEPTH_MAX, DUPLICATES_MAX, Document};

/// Bytes that aliases may unfold to, beyond what the text itself holds: room for every honest use, none for a bomb.
pub const EXPANSION_BYTES_MAX: usize = 4 << 20;

/// Reads the first document of `text`. The error is a sentence that begins as the real server's does.
pub fn read(text: &[u8]) -> Result<Document, String> {
    let text = std::str::from_utf8(text)
        .map_err(|error| format!("yaml: invalid UTF-8 at byte {}", error.valid_up_to()))?;
    // A block that the text ends in the middle of a line of has no line feed at its end.
    let unfinished_at = (!text.ends_with('\n')).then(|| text.chars().count());
    let mut builder = Builder { unfinished_at, ..Builder::default() };
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| format!("yaml: line {}: {}", error.marker().line(), error.info()))?;
        if builder.accept(event, span)? {
            break;
        }
    }
    let value = builder.root.unwrap_or(Value::Null);
    Ok(Document { value, duplicates: builder.duplicates, duplicate_lines: builder.duplicate_lines })
}

enum Open {
    Sequence { items: Vec<Value>, anchor: usize },
    Mapping { map: Map<String, Value>, merged: Vec<Map<String, Value>>, key: Option<Key>, anchor: usize },
}

enum Key {
    Name(String),
    /// `<<`
    Merge,
}

#[derive(Default)]
struct Builder {
    /// The number of characters of a text whose last line is not ended.
    unfinished_at: Option<usize>,
    root: Option<Value>,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    unfolded_bytes: usize,
    duplicates: Vec<String>,
    duplicate_lines: Vec<usize>,
}

/// A node that aliases may repeat, with what each repetition costs.
struct Anchored {
    value: Value,
    bytes: usize,
    depth: usize,
}

impl Builder {
    /// Takes one event; says whether the first document is complete.
    fn accept(&mut self, event: Event<'_>, span: Span) -> Result<bool, String> {
        let line = span.start.line();
        match event {
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => {}
            Event::StreamEnd | Event::DocumentEnd => return Ok(true),
            Event::SequenceStart(anchor, _) => {
                self.begin(Open::Sequence { items: Vec::new(), anchor }, line)?;
            }
            Event::MappingStart(anchor, _) => {
                self.begin(Open::Mapping { map: Map::new(), merged: Vec::new(), key: None, anchor }, line)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(line)?,
            Event::Alias(anchor) => {
                let Some(target) = self.anchors.get(&anchor) else {
                    return Err(format!("yaml: line {line}: anchor contains itself"));
                };
                self.unfolded_bytes += target.bytes;
                if self.unfolded_bytes > EXPANSION_BYTES_MAX {
                    return Err("yaml: document contains excessive aliasing".to_owned());
                }
                if self.open.len() + target.depth > DEPTH_MAX {
                    return Err(too_deep(line));
                }
                let value = target.value.clone();
                self.place(value, false, line)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_merge = text == "<<" && style == ScalarStyle::Plain && tag.is_none();
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let is_unfinished = is_block && self.unfinished_at.is_some_and(|end| span.end.index() >= end);
                let text = if is_unfinished { text.strip_suffix('\n').unwrap_or(&text) } else { &text };
                let value = scalar(text, style, tag.as_deref(), line)?;
                self.remember(anchor, &value)?;
                self.place(value, is_merge, line)?;
            }
        }
        Ok(false)
    }

    fn begin(&mut self, open: Open, line: usize) -> Result<(), String> {
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep(line));
        }
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self, line: usize) -> Result<(), String> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let (value, anchor) = match open {
            Open::Sequence { items, anchor } => (Value::Array(items), anchor),
            Open::Mapping { mut map, merged, anchor, .. } => {
                // Keys given in the mapping itself win over merged ones, earlier merges over later ones.
                for (key, value) in merged.into_iter().flatten() {
                    map.entry(key).or_insert(value);
                }
                (Value::Object(map), anchor)
            }
        };
        self.remember(anchor, &value)?;
        self.place(value, false, line)
    }

    fn remember(&mut self, anchor: usize, value: &Value) -> Result<(), String> {
        if anchor == 0 {
            return Ok(());
        }
        let (bytes, depth) = size(value);
        self.unfolded_bytes += bytes;
        if self.unfolded_bytes > EXPANSION_BYTES_MAX {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        self.anchors.insert(anchor, Anchored { value: value.clone(), bytes, depth });
        Ok(())
    }

    /// Puts a finished value into the open collection, or keeps it as the document.
    fn place(&mut self, value: Value, is_merge: bool, line: usize) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::Sequence { items, .. }) => items.push(value),
            Some(Open::Mapping { map, merged, key, .. }) => match key.take() {
                None if is_merge => *key = Some(Key::Merge),
                None => {
                    let name = key_name(value, line)?;
                    let is_duplicate = map.contains_key(&name);
                    *key = Some(Key::Name(name));
                    if is_duplicate {
                        self.tell_duplicate(line);
                    }
                }
                Some(Key::Name(name)) => {
                    map.insert(name, value);
                }
                Some(Key::Merge) => match value {
                    Value::Object(map) => merged.push(map),
                    Value::Array(items) if items.iter().all(Value::is_object) => {
                        merged.extend(items.into_iter().filter_map(|item| match item {
                            Value::Object(map) => Some(map),
                            _ => None,
                        }));
                    }
                    _ => {
                        return Err(format!(
                            "yaml: line {line}: map merge requires map or sequence of maps as the value"
                        ));
                    }
                },
            },
        }
        Ok(())
    }

    fn tell_duplicate(&mut self, line: usize) {
        if self.duplicates.len() >= DUPLICATES_MAX {
            return;
        }
        let mut path = String::new();
        for open in &self.open {
            match open {
                Open::Sequence { items, .. } => {
                    use std::fmt::Write as _;
                    let _ = write!(path, "[{}]", items.len());
                }
                Open::Mapping { key: Some(Key::Name(name)), .. } => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Open::Mapping { .. } => {}
            }
        }
        self.duplicates.push(path);
        self.duplicate_lines.push(line);
    }
}

fn too_deep(line: usize) -> String {
    format!("yaml: line {line}: exceeded max depth of {DEPTH_MAX}")
}

/// The bytes a value takes as JSON, about, and its levels of nesting. Recursion is bounded by [`DEPTH_MAX`].
fn size(value: &Value) -> (usize, usize) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => (8, 0),
        Value::String(text) => (text.len() + 8, 0),
        Value::Array(items) => {
            let (bytes, depth) =
                items.iter().map(size).fold((8, 0), |(b, d), (bytes, depth)| (b + bytes, d.max(depth)));
            (bytes, depth + 1)
        }
        Value::Object(map) => {
            let (bytes, depth) = map.iter().fold((8, 0), |(b, d), (key, value)| {
                let (bytes, depth) = size(value);
                (b + bytes + key.len() + 8, d.max(depth))
            });
            (bytes, depth + 1)
        }
    }
}

/// Keys are strings in JSON, so numbers and booleans become their text.
fn key_name(value: Value, line: usize) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null => Ok("null".to_owned()),
        Value::Array(_) | Value::Object(_) => Err(format!("yaml: line {line}: invalid map key")),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, line: usize) -> Result<Value, String> {
    let quoted = || Value::String(text.to_owned());
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { plain(text, line) } else { Ok(quoted()) };
    };
    if !tag.is_yaml_core_schema() {
        return Ok(quoted());
    }
    let wanted: fn(&Value) -> bool = match tag.suffix.as_str() {
        "null" => Value::is_null,
        "bool" => Value::is_boolean,
        "int" => Value::is_i64,
        "float" => Value::is_number,
        // `!!str`, `!!timestamp`, and `!!binary`, which stays in its encoded form.
        _ => return Ok(quoted()),
    };
    let value = plain(text, line)?;
    if wanted(&value) {
        Ok(value)
    } else {
        Err(format!("yaml: line {line}: cannot decode `{text}` as a !!{}", tag.suffix))
    }
}

/// What an unquoted scalar means. Whole numbers beyond 64 bits with a sign are floats, as they are in JSON.
fn plain(text: &str, line: usize) -> Result<Value, String> {
    Ok(match scalars::scalar(text) {
        Scalar::Null => Value::Null,
        Scalar::Bool(truth) => truth.into(),
        Scalar::Integer(number) => number.into(),
        Scalar::Unsigned(number) => (number as f64).into(),
        Scalar::Float(number) => number.into(),
        Scalar::NotFinite => {
            return Err(format!("yaml: line {line}: {text} is not a number that JSON can hold"));
        }
        Scalar::Text => text.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).value
    }

    fn error(text: &str) -> String {
        read(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn plain_scalars_mean_what_kubectl_takes_them_for() {
        assert_eq!(
            value(
                "[yes, off, 012, 0x1F, 1_000, 1.0, 1e3, ~, 2021-07-06, 1:30, '5', 08, +5, .5, 1e400, 0b11]"
            ),
            json!([
                true,
                false,
                10,
                31,
                1000,
                1,
                1000,
                null,
                "2021-07-06",
                "1:30",
                "5",
                8,
                5,
                0.5,
                "1e400",
                3
            ])
        );
        assert_eq!(value("18446744073709551615"), json!(1.844_674_407_370_955_2e19));
        assert!(error("a: .nan").contains("JSON"));
    }

    #[test]
    fn json_is_yaml() {
        assert_eq!(
            value(r#"{"a": [1, "b", null], "c": {"d": "\u00e9"}}"#),
            json!({"a": [1, "b", null], "c": {"d": "é"}})
        );
    }

    #[test]
    fn duplicates_are_named_and_the_last_value_stays() {
        let document = read(b"spec:\n  a: 1\n  b:\n  - x: 1\n    x: 2\n  a: 3\n").unwrap();
        assert_eq!(document.duplicates, ["spec.b[0].x", "spec.a"]);
        assert_eq!(document.duplicate_lines, [5, 6]);
        assert_eq!(document.value, json!({"spec": {"a": 3, "b": [{"x": 2}]}}));
    }

    #[test]
    fn merge_keys_bring_in_fields_and_own_fields_win() {
        assert_eq!(
            value("a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\ne: {b: 9, <<: [*x, {z: 1, c: 7}]}\n"),
            json!({"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}, "e": {"b": 9, "c": 2, "z": 1}})
        );
        assert!(error("a: {<<: 5}").contains("map merge requires"));
    }

    #[test]
    fn a_block_ends_as_the_text_does() {
        assert_eq!(value("a: |\n  x\nb: |\n  y\n"), json!({"a": "x\n", "b": "y\n"}));
        assert_eq!(value("a: |\n  x\nb: |\n  y"), json!({"a": "x\n", "b": "y"}));
    }

    #[test]
    fn only_the_first_document_is_read() {
        assert_eq!(value("a: 1\n---\nb: 2\n"), json!({"a": 1}));
        assert_eq!(value(""), Value::Null);
        assert_eq!(value("# nothing\n"), Value::Null);
    }

    #[test]
    fn aliases_cannot_unfold_without_end() {
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (from, to) in ('a'..'i').zip('b'..='i') {
            let line = format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 9].join(", "));
            bomb.push_str(&line);
        }
        assert_eq!(error(&bomb), "yaml: document contains excessive aliasing");
        assert!(error("a: &a [*a]").contains("anchor contains itself"));
        let mut tower = "a0: &a0 [1]\n".to_owned();
        for level in 1..=DEPTH_MAX {
            let line = format!("a{level}: &a{level} [*a{}]\n", level - 1);
            tower.push_str(&line);
        }
        assert!(error(&tower).contains("exceeded max depth"));
    }

    #[test]
    fn nesting_has_a_limit() {
        assert!(read(format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX)).as_bytes()).is_ok());
        assert!(read("[".repeat(DEPTH_MAX + 1).as_bytes()).is_err());
        assert!(read("- ".repeat(100_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-c:\\-&*!<>|\\[\\]{}\"' ,#\n0-9]{0,80}") {
            let _ = read(text.as_bytes());
        }

        #[test]
        fn json_text_means_the_same_in_both(items in proptest::collection::vec(any::<i64>(), 0..5), text in "[ -~]{0,20}") {
            let value = json!({"items": items, "text": text});
            let body = value.to_string();
            prop_assert_eq!(read(body.as_bytes()).unwrap().value, value);
        }
    }
}
