//! YAML text into nodes that know their place.
//!
//! Owns anchors, aliases, merge keys, tags, duplicate keys and the limits on all of them. The stack of open
//! collections is a vector, so nesting in the input is never nesting in this program. Never knows files.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::Value;

use super::node::{Content, Field, Node};
use super::path::FieldPath;
use super::problem::Position;
use super::scalar::{self, Scalar};
use super::{Budget, DEPTH_MAX, EXPANSION_BYTES_MAX, Fault, NODES_MAX, Read};

/// Reads every document of `text`, whose first line is line `lines_before + 1` of its file.
pub(super) fn read(text: &str, lines_before: usize, budget: &mut Budget) -> Read {
    let mut builder = Builder {
        lines_before,
        budget,
        read: Read::default(),
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
    };
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((event, span)) => builder.accept(event, span),
            Err(error) => {
                let at = builder.position(error.marker().line(), error.marker().col());
                // The scanner reads ahead and has a depth limit of its own, above ours.
                let message = if error.info() == "recursion limit exceeded" {
                    format!("nested deeper than {DEPTH_MAX} levels")
                } else {
                    format!("not valid YAML: {}", error.info())
                };
                Err(Fault { at, path: String::new(), message })
            }
        };
        if let Err(fault) = step {
            builder.read.faults.push(fault);
            break;
        }
    }
    builder.read
}

/// A collection whose end has not come yet.
struct Open {
    at: Position,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    Sequence(Vec<Node>),
    Mapping {
        fields: Vec<Field>,
        /// Where each key was first given.
        keys: HashMap<String, Position>,
        /// What `<<` brought in, in order.
        merged: Vec<Node>,
        /// The key that waits for its value.
        key: Option<(Key, Position)>,
    },
}

enum Key {
    Name(String),
    /// A key given a second time: reported, and its value read but not kept.
    Repeated(String),
    /// `<<`
    Merge,
}

struct Builder<'b> {
    lines_before: usize,
    budget: &'b mut Budget,
    read: Read,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

type Step = Result<(), Fault>;

impl Builder<'_> {
    fn position(&self, line: usize, column: usize) -> Position {
        Position::new(self.lines_before + line, column + 1)
    }

    fn accept(&mut self, event: Event<'_>, span: Span) -> Step {
        let at = self.position(span.start.line(), span.start.col());
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                // Anchors live as long as their document.
                self.anchors.clear();
                self.nodes = 0;
                Ok(())
            }
            Event::SequenceStart(anchor, _) => self.begin(at, anchor, OpenKind::Sequence(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let kind = OpenKind::Mapping {
                    fields: Vec::new(),
                    keys: HashMap::new(),
                    merged: Vec::new(),
                    key: None,
                };
                self.begin(at, anchor, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let Some(target) = self.anchors.get(&anchor) else {
                    return Err(
                        self.fault(at, "the alias stands inside what it refers to, which can never end")
                    );
                };
                let cost = target.cost_bytes();
                let node = target.clone();
                self.spend(cost, at)?;
                self.place(node, at, false)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_merge = text == "<<" && style == ScalarStyle::Plain && tag.is_none();
                let value = self.scalar(&text, style, tag.as_deref(), at)?;
                let node = Node { at, content: Content::Scalar(value) };
                self.remember(anchor, &node)?;
                self.place(node, at, is_merge)
            }
        }
    }

    fn begin(&mut self, at: Position, anchor: usize, kind: OpenKind) -> Step {
        if self.open.len() >= DEPTH_MAX {
            return Err(self.fault(at, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.open.push(Open { at, anchor, kind });
        Ok(())
    }

    fn end(&mut self) -> Step {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let content = match open.kind {
            OpenKind::Sequence(items) => Content::Sequence(items),
            OpenKind::Mapping { mut fields, mut keys, merged, .. } => {
                // Keys given in the mapping itself win over merged ones, earlier merges over later ones.
                for field in merged.into_iter().flat_map(mapping_fields) {
                    if !keys.contains_key(&field.key) {
                        keys.insert(field.key.clone(), field.key_at);
                        fields.push(field);
                    }
                }
                Content::Mapping(fields)
            }
        };
        let node = Node { at: open.at, content };
        self.remember(open.anchor, &node)?;
        self.place(node, open.at, false)
    }

    /// Keeps a copy of an anchored node for the aliases to come.
    fn remember(&mut self, anchor: usize, node: &Node) -> Step {
        if anchor != 0 {
            self.spend(node.cost_bytes(), node.at)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(())
    }

    fn spend(&mut self, bytes: usize, at: Position) -> Step {
        match self.budget.expansion_bytes.checked_sub(bytes) {
            Some(left) => {
                self.budget.expansion_bytes = left;
                Ok(())
            }
            None => Err(self.fault(
                at,
                format!("anchors and aliases unfold to more than {} MiB", EXPANSION_BYTES_MAX >> 20),
            )),
        }
    }

    /// Puts a finished node where it belongs: into the open collection, or out as a document.
    fn place(&mut self, node: Node, at: Position, is_merge: bool) -> Step {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(self.fault(at, format!("more than {NODES_MAX} values in one document")));
        }
        let Some(open) = self.open.last_mut() else {
            if self.budget.documents == 0 {
                return Err(self.fault(at, format!("more than {} documents", super::DOCUMENTS_MAX)));
            }
            self.budget.documents -= 1;
            self.read.documents.push(node);
            return Ok(());
        };
        match &mut open.kind {
            OpenKind::Sequence(items) => items.push(node),
            OpenKind::Mapping { fields, keys, merged, key } => match key.take() {
                None if is_merge => *key = Some((Key::Merge, at)),
                None => {
                    let name = match key_name(&node) {
                        Ok(name) => name,
                        Err(message) => return Err(self.fault(at, message)),
                    };
                    if let Some(first) = keys.get(&name) {
                        let message =
                            format!("the key is given twice, first on line {}: keep one", first.line);
                        *key = Some((Key::Repeated(name), at));
                        let fault = self.fault(at, message);
                        self.read.faults.push(fault);
                    } else {
                        keys.insert(name.clone(), at);
                        *key = Some((Key::Name(name), at));
                    }
                }
                Some((Key::Name(name), key_at)) => fields.push(Field { key: name, key_at, value: node }),
                Some((Key::Repeated(_), _)) => {}
                Some((Key::Merge, _)) => match mergeable(node) {
                    Some(mappings) => merged.extend(mappings),
                    None => {
                        return Err(
                            self.fault(at, "`<<` merges a mapping or a list of mappings, nothing else")
                        );
                    }
                },
            },
        }
        Ok(())
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        at: Position,
    ) -> Result<Value, Fault> {
        let plain = |text: &str| match scalar::resolve(text) {
            Scalar::Value(value) => Ok(value),
            Scalar::NotFinite => Err(self.fault(at, format!("{text} is not a number that JSON can hold"))),
        };
        let Some(tag) = tag else {
            return if style == ScalarStyle::Plain {
                plain(text)
            } else {
                Ok(Value::String(text.to_owned()))
            };
        };
        if !tag.is_yaml_core_schema() {
            return Ok(Value::String(text.to_owned()));
        }
        let wanted: fn(&Value) -> bool = match tag.suffix.as_str() {
            "str" | "timestamp" => return Ok(Value::String(text.to_owned())),
            "null" => Value::is_null,
            "bool" => Value::is_boolean,
            "int" => |v| v.is_i64() || v.is_u64(),
            "float" => Value::is_number,
            other => {
                return Err(self.fault(
                    at,
                    format!("unsupported tag !!{other}: allowed are !!str, !!int, !!float, !!bool, !!null, !!timestamp"),
                ));
            }
        };
        let value = plain(text)?;
        if wanted(&value) {
            Ok(value)
        } else {
            Err(self.fault(at, format!("{text:?} is not a value for the tag !!{}", tag.suffix)))
        }
    }

    /// A fault here, with the path of the field that is being read.
    fn fault(&self, at: Position, message: impl Into<String>) -> Fault {
        let mut path = FieldPath::default();
        for open in &self.open {
            match &open.kind {
                OpenKind::Sequence(items) => path.push_index(items.len()),
                OpenKind::Mapping { key: Some((Key::Name(name) | Key::Repeated(name), _)), .. } => {
                    path.push_key(name);
                }
                OpenKind::Mapping { key: Some((Key::Merge, _)), .. } => path.push_key("<<"),
                OpenKind::Mapping { key: None, .. } => {}
            }
        }
        Fault { at, path: path.as_str().to_owned(), message: message.into() }
    }
}

/// The name a key node gives its field. Keys are strings in JSON, so numbers and booleans become their text.
fn key_name(node: &Node) -> Result<String, &'static str> {
    match &node.content {
        Content::Scalar(Value::String(text)) => Ok(text.clone()),
        Content::Scalar(Value::Null) => Err("a key cannot be empty or null"),
        Content::Scalar(other) => Ok(other.to_string()),
        Content::Sequence(_) | Content::Mapping(_) => Err("a key cannot be a list or a mapping"),
    }
}

fn mapping_fields(node: Node) -> Vec<Field> {
    match node.content {
        Content::Mapping(fields) => fields,
        Content::Scalar(_) | Content::Sequence(_) => Vec::new(),
    }
}

/// The mappings a `<<` brings in, or nothing when its value is something else.
fn mergeable(node: Node) -> Option<Vec<Node>> {
    let is_mapping = |n: &Node| matches!(n.content, Content::Mapping(_));
    match node.content {
        Content::Mapping(_) => Some(vec![node]),
        Content::Sequence(items) if items.iter().all(is_mapping) => Some(items),
        Content::Scalar(_) | Content::Sequence(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_all(text: &str) -> Read {
        read(text, 0, &mut Budget::default())
    }

    fn value(text: &str) -> Value {
        let read = read_all(text);
        assert_eq!(read.faults, [], "{text}");
        read.documents.into_iter().next().expect("one document").split().0
    }

    fn faults(text: &str) -> Vec<String> {
        let shown = |f: &Fault| format!("{}:{}: {}: {}", f.at.line, f.at.column, f.path, f.message);
        read_all(text).faults.iter().map(shown).collect()
    }

    #[test]
    fn every_field_and_item_knows_its_line_and_column() {
        let text = "metadata:\n  labels: {a.b/c: x}\nspec:\n  taints:\n  - key: gpu\n    effect: NoSelect\n  -\n    key: b\n  note: |\n    two\n    lines\n";
        let (value, positions) = read_all(text).documents.remove(0).split();
        let find = |path: &str| {
            let at = positions.find(&value, path);
            (at.line, at.column)
        };
        assert_eq!(find("metadata"), (1, 1));
        assert_eq!(find("metadata.labels"), (2, 3));
        assert_eq!(find("metadata.labels[a.b/c]"), (2, 12));
        assert_eq!(find("metadata.labels.a.b/c"), (2, 12));
        assert_eq!(find("spec.taints"), (4, 3));
        assert_eq!(find("spec.taints[0]"), (5, 5));
        assert_eq!(find("spec.taints[0].key"), (5, 5));
        assert_eq!(find("spec.taints[0].effect"), (6, 5));
        assert_eq!(find("spec.taints[1]"), (8, 5));
        assert_eq!(find("spec.taints[1].key"), (8, 5));
        assert_eq!(find("spec.note"), (9, 3));
        assert_eq!(find("spec.taints[1].effect"), (8, 5), "what is missing is shown where its parent stands");
        assert_eq!(find("spec.taints[9].key"), (4, 3));
        assert_eq!(find("status.x"), (1, 1));
    }

    #[test]
    fn lines_count_from_the_start_of_the_file() {
        let read = read("---\na:\n  b: 1\n", 10, &mut Budget::default());
        let (value, positions) = read.documents.into_iter().next().unwrap().split();
        assert_eq!(positions.find(&value, "a.b").line, 13);
    }

    #[test]
    fn merge_keys_bring_in_fields_and_own_fields_win() {
        let text =
            "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\ne: {b: 9, <<: [*x, {z: 1, c: 7}]}\nf: {\"<<\": 1}\n";
        assert_eq!(
            value(text),
            json!({"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}, "e": {"b": 9, "c": 2, "z": 1}, "f": {"<<": 1}})
        );
    }

    #[test]
    fn keys_are_strings_whatever_they_look_like() {
        assert_eq!(value("5: a\ntrue: b\n1.5: c\n"), json!({"5": "a", "true": "b", "1.5": "c"}));
    }

    #[test]
    fn tags_choose_the_type() {
        assert_eq!(
            value("[!!str 5, !!int \"5\", !own 5, \"5\", '~', !!float 5]"),
            json!(["5", 5, "5", "5", "~", 5])
        );
        assert_eq!(faults("a: !!int x\n"), ["1:4: a: \"x\" is not a value for the tag !!int"]);
    }

    #[test]
    fn every_duplicate_key_is_reported_with_its_first_line() {
        assert_eq!(
            faults("spec:\n  a: 1\n  b: 2\n  a: 3\n  b: {}\n"),
            [
                "4:3: spec.a: the key is given twice, first on line 2: keep one",
                "5:3: spec.b: the key is given twice, first on line 3: keep one"
            ]
        );
    }

    #[test]
    fn an_unfolding_bomb_is_stopped_by_its_cost() {
        let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        let unfolding = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "));
        let text: String = std::iter::once(first).chain((1..20).map(unfolding)).collect();
        let faults = faults(&text);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].ends_with("anchors and aliases unfold to more than 64 MiB"), "{faults:?}");
    }

    #[test]
    fn an_alias_inside_its_own_anchor_is_refused() {
        assert_eq!(
            faults("a: &x [*x]\n"),
            ["1:8: a[0]: the alias stands inside what it refers to, which can never end"]
        );
    }

    #[test]
    fn depth_is_bounded_in_flow_and_block_style() {
        for text in ["[".repeat(5_000), "- ".repeat(5_000), "{a: ".repeat(5_000)] {
            let faults = faults(&text);
            assert_eq!(faults.len(), 1);
            assert!(faults[0].contains("nested deeper than 100 levels"), "{faults:?}");
        }
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        assert_eq!(faults("a: .inf"), ["1:4: a: .inf is not a number that JSON can hold"]);
        assert_eq!(faults("~: 1"), ["1:1: : a key cannot be empty or null"]);
        assert_eq!(faults("? [a]\n: 1"), ["1:3: : a key cannot be a list or a mapping"]);
        assert_eq!(faults("<<: 3"), ["1:5: : `<<` merges a mapping or a list of mappings, nothing else"]);
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        assert_eq!(
            faults("a: 1\n b: 2\n"),
            ["2:3: : not valid YAML: mapping values are not allowed in this context"]
        );
    }
}
