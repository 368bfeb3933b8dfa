//! One Kubernetes object as it stood in a file.
//!
//! Owns telling objects from other documents, opening lists, and finding the line of a field. Never checks an object
//! against a schema.

use std::sync::Arc;

use serde_json::Value;

use super::node::{Content, Field, Node, Positions};
use super::path::FieldPath;
use super::problem::{Position, Problem};

/// An object and where it stood.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The file it stood in.
    pub file: Arc<str>,
    /// Where inside its document, as in `items[3]`; empty when it was the whole document.
    pub within: String,
    /// `apiVersion`, as written.
    pub api_version: String,
    /// `kind`, as written (or taken from the list it stood in).
    pub kind: String,
    /// The object itself.
    pub value: Value,
    /// The place of every field of `value`.
    pub positions: Positions,
}

impl Object {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version inside the group.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }

    /// `metadata.namespace`, empty when there is none.
    pub fn namespace(&self) -> &str {
        self.value.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.name`, empty when there is none.
    pub fn name(&self) -> &str {
        self.value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The object for a message: `Placement ns1/web`, `ManagedCluster c1`.
    pub fn title(&self) -> String {
        match self.namespace() {
            "" => format!("{} {}", self.kind, self.name()),
            namespace => format!("{} {namespace}/{}", self.kind, self.name()),
        }
    }

    /// Where the object begins.
    pub fn position(&self) -> Position {
        self.positions.find(&self.value, "")
    }

    /// A fault of the field at `path` of this object.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Problem {
        let at = self.positions.find(&self.value, path);
        let separator =
            if self.within.is_empty() || path.is_empty() || path.starts_with('[') { "" } else { "." };
        Problem::at(&self.file, at, format!("{}{separator}{path}", self.within), message)
    }
}

/// What a document turned out to be.
#[derive(Debug)]
pub(super) enum Found {
    /// An object of its own, or an item of a list.
    Object(Box<Object>),
    /// Neither `apiVersion` nor `kind`: something else's file.
    Foreign(Position),
}

/// Opens a document: an object, the items of a list (lists inside lists too), or something that is neither.
/// Nothing is pushed for an empty document.
pub(super) fn open(document: Node, file: &Arc<str>, found: &mut Vec<Found>, problems: &mut Vec<Problem>) {
    open_at(document, "", None, file, found, problems);
}

/// What the items of a typed list are when they do not say so themselves.
struct Items<'l> {
    api_version: &'l str,
    kind: &'l str,
}

/// Recursion is bounded by [`super::DEPTH_MAX`], as a list inside a list is nested text.
fn open_at(
    mut node: Node,
    within: &str,
    items_of: Option<&Items<'_>>,
    file: &Arc<str>,
    found: &mut Vec<Found>,
    problems: &mut Vec<Problem>,
) {
    let at = node.at;
    if node.is_null() && within.is_empty() {
        return;
    }
    if !matches!(node.content, Content::Mapping(_)) {
        if within.is_empty() {
            found.push(Found::Foreign(at));
        } else {
            problems.push(Problem::at(file, at, within, "expected an object"));
        }
        return;
    }
    if within.is_empty() && node.get("apiVersion").is_none() && node.get("kind").is_none() {
        found.push(Found::Foreign(at));
        return;
    }
    let mut word = |field: &str, inherited: Option<&str>| match node.get(field) {
        None => inherited.map(str::to_owned).or_else(|| {
            problems.push(Problem::at(file, at, joined(within, field), "required, and missing"));
            None
        }),
        Some(value) => match value.as_str() {
            Some(text) if !text.is_empty() => Some(text.to_owned()),
            _ => {
                let message =
                    format!("expected a word such as {}", if field == "kind" { "Placement" } else { "v1" });
                problems.push(Problem::at(file, value.at, joined(within, field), message));
                None
            }
        },
    };
    let api_version = word("apiVersion", items_of.map(|i| i.api_version));
    let kind = word("kind", items_of.map(|i| i.kind));
    let (Some(api_version), Some(kind)) = (api_version, kind) else { return };

    if let Some(item_kind) = kind.strip_suffix("List").filter(|_| node.get("items").is_some()) {
        let items = node.take("items").expect("the list was just seen to have items");
        let inherited = Items { api_version: &api_version, kind: item_kind };
        let items_of = (!item_kind.is_empty()).then_some(&inherited);
        match items.content {
            Content::Sequence(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    let within = format!("{}[{index}]", joined(within, "items"));
                    open_at(item, &within, items_of, file, found, problems);
                }
            }
            Content::Scalar(Value::Null) => {}
            _ => problems.push(Problem::at(file, items.at, joined(within, "items"), "expected a list")),
        }
        return;
    }
    complete(&mut node, "apiVersion", &api_version);
    complete(&mut node, "kind", &kind);
    let (value, positions) = node.split();
    let object =
        Object { file: Arc::clone(file), within: within.to_owned(), api_version, kind, value, positions };
    found.push(Found::Object(Box::new(object)));
}

/// Writes an inherited word into an item that left it out, so that the item stands on its own.
fn complete(node: &mut Node, key: &str, text: &str) {
    let at = node.at;
    if node.get(key).is_none()
        && let Content::Mapping(fields) = &mut node.content
    {
        let value = Node { at, content: Content::Scalar(Value::String(text.to_owned())) };
        fields.push(Field { key: key.to_owned(), key_at: at, value });
    }
}

fn joined(within: &str, field: &str) -> String {
    if within.is_empty() {
        let mut path = FieldPath::default();
        path.push_key(field);
        path.as_str().to_owned()
    } else {
        format!("{within}.{field}")
    }
}
