//! Values written back as manifests: YAML documents and JSON lists.
//!
//! Owns the layout, which is the one `kubectl get -o yaml` and `-o json` use (keys sorted, list items level with
//! their key), and the quoting, which is strict enough for YAML 1.1 and 1.2 readers alike. Never reorders lists.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Map, Value, json};

use super::problem::is_unseen;
use super::scalar::{self, Scalar};

/// Writes one YAML document, its `---` line first when it is not the first of its stream.
pub fn write_yaml_document(out: &mut dyn Write, value: &Value, first: bool) -> io::Result<()> {
    if !first {
        out.write_all(b"---\n")?;
    }
    match value {
        Value::Object(map) if !map.is_empty() => mapping(out, map, 0, false),
        Value::Array(items) if !items.is_empty() => sequence(out, items, 0),
        other => {
            inline(out, other, 0)?;
            out.write_all(b"\n")
        }
    }
}

/// Writes the objects as one `v1` List.
pub fn write_json_list(out: &mut dyn Write, items: &[Value]) -> io::Result<()> {
    let list =
        json!({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}});
    write_json_document(out, &list)
}

/// Writes one JSON value.
pub fn write_json_document(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    let formatter = Seen(PrettyFormatter::with_indent(b"    "));
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, formatter);
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// Writes characters that cannot be seen as escapes, which mean the same to every reader of JSON.
struct Seen(PrettyFormatter<'static>);

impl Formatter for Seen {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_unseen(*c)) {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

fn indent(out: &mut dyn Write, width: usize) -> io::Result<()> {
    write!(out, "{:width$}", "")
}

/// Recursion is as deep as the value, which came from a reader that bounds depth or was built by this program.
/// `started` says that the caller already wrote the indent of the first line (after a `- `).
fn mapping(out: &mut dyn Write, map: &Map<String, Value>, width: usize, mut started: bool) -> io::Result<()> {
    let mut fields: Vec<_> = map.iter().collect();
    fields.sort_by(|a, b| a.0.cmp(b.0));
    for (key, value) in fields {
        if !started {
            indent(out, width)?;
        }
        started = false;
        // A key may not span lines, so it never takes the block form.
        if is_plain(key) {
            out.write_all(key.as_bytes())?;
        } else {
            quoted(out, key)?;
        }
        out.write_all(b":")?;
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.write_all(b"\n")?;
                mapping(out, inner, width + 2, false)?;
            }
            Value::Array(items) if !items.is_empty() => {
                out.write_all(b"\n")?;
                sequence(out, items, width)?;
            }
            other => {
                out.write_all(b" ")?;
                inline(out, other, width + 2)?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(())
}

fn sequence(out: &mut dyn Write, items: &[Value], width: usize) -> io::Result<()> {
    for item in items {
        indent(out, width)?;
        match item {
            Value::Object(inner) if !inner.is_empty() => {
                out.write_all(b"- ")?;
                mapping(out, inner, width + 2, true)?;
            }
            Value::Array(inner) if !inner.is_empty() => {
                out.write_all(b"-\n")?;
                sequence(out, inner, width + 2)?;
            }
            other => {
                out.write_all(b"- ")?;
                inline(out, other, width + 2)?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(())
}

/// A scalar or an empty collection; `width` is where the lines of a block string begin.
fn inline(out: &mut dyn Write, value: &Value, width: usize) -> io::Result<()> {
    match value {
        Value::String(text) => string(out, text, width),
        Value::Array(_) => out.write_all(b"[]"),
        Value::Object(_) => out.write_all(b"{}"),
        other => write!(out, "{other}"),
    }
}

fn string(out: &mut dyn Write, text: &str, width: usize) -> io::Result<()> {
    if is_plain(text) {
        return out.write_all(text.as_bytes());
    }
    if !is_block(text) {
        return quoted(out, text);
    }
    let body = text.trim_end_matches('\n');
    let chomping = match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    };
    out.write_all(chomping.as_bytes())?;
    for line in body.split('\n') {
        out.write_all(b"\n")?;
        if !line.is_empty() {
            indent(out, width)?;
            out.write_all(line.as_bytes())?;
        }
    }
    // The caller ends the last line; with `|+` every further newline of the text is one more line end.
    for _ in 1..text.len() - body.len() {
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Whether a string of several lines can stand as a block: no line may carry what a block cannot show.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n'])
        && text.split('\n').all(|line| !line.ends_with([' ', '\t']) && !line.starts_with('\t'))
        && text.chars().all(|c| c == '\n' || is_visible(c))
        && !text.trim_end_matches('\n').is_empty()
}

/// Characters that every reader, and every person, takes as themselves.
fn is_visible(c: char) -> bool {
    !is_unseen(c) && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Whether a string may stand without quotes: it must not read as anything but itself.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let opens_something = "-?:,[]{}#&*!|>'\"%@`=<~. ".contains(first);
    // A leading dash or dot is harmless inside a word (`-flag`), but readers differ; quoting costs nothing.
    let like_a_date_or_base_60 = first.is_ascii_digit()
        && text.chars().all(|c| c.is_ascii_digit() || "-:+.TtZz _".contains(c))
        && text.contains(['-', ':']);
    !opens_something
        && !like_a_date_or_base_60
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(is_visible)
        && matches!(scalar::resolve(text), Scalar::Value(Value::String(_)))
        // Numbers that are out of range read as strings here and as something else elsewhere.
        && text.parse::<f64>().is_err()
}

fn quoted(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(b"\"")?;
    for c in text.chars() {
        match c {
            '"' => out.write_all(b"\\\"")?,
            '\\' => out.write_all(b"\\\\")?,
            '\n' => out.write_all(b"\\n")?,
            '\t' => out.write_all(b"\\t")?,
            '\r' => out.write_all(b"\\r")?,
            c if is_visible(c) => write!(out, "{c}")?,
            c if u32::from(c) > 0xffff => write!(out, "\\U{:08x}", u32::from(c))?,
            c => write!(out, "\\u{:04x}", u32::from(c))?,
        }
    }
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Budget, yaml};
    use proptest::prelude::*;

    fn yaml(value: &Value) -> String {
        let mut out = Vec::new();
        write_yaml_document(&mut out, value, true).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn read_back(text: &str) -> Value {
        let read = yaml::read(text, 0, &mut Budget::default());
        assert_eq!(read.faults, [], "{text}");
        read.documents.into_iter().next().expect("one document").split().0
    }

    #[test]
    fn objects_look_as_kubectl_prints_them() {
        let value = json!({
            "kind": "Placement", "apiVersion": "g/v1", "metadata": {"name": "a", "labels": {}},
            "spec": {"list": [{"b": 1, "a": [true, null]}, [1, [2]], "x", []], "text": "one\ntwo\n"},
        });
        assert_eq!(
            yaml(&value),
            "apiVersion: g/v1\nkind: Placement\nmetadata:\n  labels: {}\n  name: a\nspec:\n  list:\n  - a:\n    - true\n    - null\n    b: 1\n  -\n    - 1\n    -\n      - 2\n  - x\n  - []\n  text: |\n    one\n    two\n"
        );
    }

    #[test]
    fn strings_that_would_read_as_something_else_are_quoted() {
        for text in [
            "",
            "true",
            "yes",
            "N",
            "off",
            "null",
            "~",
            "12",
            "0x1f",
            "1e3",
            "1e400",
            "1_0",
            ".5",
            "2021-07-06",
            "2021-07-06T15:00:00Z",
            "1:30",
            "a: b",
            "a #b",
            " a",
            "a ",
            "- a",
            "*a",
            "&a",
            "<<",
            "=",
            "a:",
            "---",
            "nan",
            "inf",
            "#a",
            "\u{1b}[31m",
            "a\tb",
            "\n",
            "'a'",
        ] {
            let shown = yaml(&json!({"k": text}));
            assert!(shown.starts_with("k: \""), "{shown}");
            assert_eq!(read_back(&shown), json!({"k": text}));
        }
        for text in
            ["a", "a.b/c", "cluster1", "a-b", "50%", "v1.2.3", "10Gi", "a:b", "a#b", "é", "https://x:1/y"]
        {
            assert_eq!(yaml(&json!({"k": text})), format!("k: {text}\n"));
        }
    }

    #[test]
    fn a_list_is_one_json_object() {
        let mut out = Vec::new();
        write_json_list(&mut out, &[json!({"kind": "A"})]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        {\n"));
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn marks_that_turn_a_line_around_are_written_as_escapes_that_read_back() {
        let value = json!({"k\u{2066}": "a\u{202e}b\u{e0041}"});
        assert_eq!(yaml(&value), "\"k\\u2066\": \"a\\u202eb\\U000e0041\"\n");
        assert_eq!(read_back(&yaml(&value)), value);
        let mut out = Vec::new();
        write_json_document(&mut out, &value).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "{\n    \"k\\u2066\": \"a\\u202eb\\udb40\\udc41\"\n}\n");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[a\u{202e}\u{2066}\u{feff}\u{e0041}\u{85} :]{0,6}",
            any::<String>(),
            "[a-z0-9.:/ \n#'\"-]{0,12}",
            "(yes|no|0x1|1e5|~|null|2021-01-01|a: b|\\|\n x|[ \n]{1,4})"
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1000_i32..1000).prop_map(|n| Value::from(f64::from(n) + 0.25)),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(text.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(value in any_value()) {
            // A raw NUL may not stand in YAML, but its escape may.
            let text = yaml(&value);
            prop_assert_eq!(read_back(&text), value, "{}", text);
        }
    }
}
