//! A document between text and value: every node still knows where it stands.
//!
//! Owns the split of such a tree into the plain value the rest of the program works on and a compact list of
//! positions beside it. Never parses text.

use serde_json::{Map, Value};

use super::path::{split_index, strip_key};
use super::problem::Position;

/// One node of a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Where the node begins.
    pub at: Position,
    /// What it holds.
    pub content: Content,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// Null, a boolean, a number or a string.
    Scalar(Value),
    /// Items in order.
    Sequence(Vec<Node>),
    /// Fields in the order of the text, each with the place of its key.
    Mapping(Vec<Field>),
}

/// One field of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub key: String,
    pub key_at: Position,
    pub value: Node,
}

impl Node {
    /// Takes the field `key` out of a mapping.
    pub(super) fn take(&mut self, key: &str) -> Option<Node> {
        let Content::Mapping(fields) = &mut self.content else { return None };
        let index = fields.iter().position(|field| field.key == key)?;
        Some(fields.remove(index).value)
    }

    /// The field `key` of a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let Content::Mapping(fields) = &self.content else { return None };
        fields.iter().find(|field| field.key == key).map(|field| &field.value)
    }

    /// The string this node holds.
    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether there is nothing here.
    pub(super) fn is_null(&self) -> bool {
        self.content == Content::Scalar(Value::Null)
    }

    /// A bound on the memory a copy of this node takes, in bytes.
    pub(super) fn cost_bytes(&self) -> usize {
        size_of::<Node>()
            + match &self.content {
                Content::Scalar(Value::String(text)) => text.len(),
                Content::Scalar(_) => 0,
                Content::Sequence(items) => items.iter().map(Node::cost_bytes).sum(),
                Content::Mapping(fields) => {
                    fields.iter().map(|f| size_of::<Field>() + f.key.len() + f.value.cost_bytes()).sum()
                }
            }
    }

    /// The value and its positions.
    pub(super) fn split(self) -> (Value, Positions) {
        let mut places = Vec::new();
        let at = self.at;
        let value = flatten(self, at, &mut places);
        (value, Positions { places: places.into_boxed_slice() })
    }
}

/// Recursion is bounded by [`super::DEPTH_MAX`].
fn flatten(node: Node, at: Position, places: &mut Vec<Position>) -> Value {
    places.push(at);
    match node.content {
        Content::Scalar(value) => value,
        Content::Sequence(items) => items
            .into_iter()
            .map(|item| {
                let at = item.at;
                flatten(item, at, places)
            })
            .collect(),
        Content::Mapping(mut fields) => {
            // Sorted insertion gives the same walk whether the map keeps insertion order or sorts by itself.
            fields.sort_by(|a, b| a.key.cmp(&b.key));
            let mut map = Map::new();
            for field in fields {
                let value = flatten(field.value, field.key_at, places);
                map.insert(field.key, value);
            }
            Value::Object(map)
        }
    }
}

/// The place of every node of one value, eight bytes a node: in the order of a depth-first walk of that value.
///
/// A field stands where its key stands, an item where it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Positions {
    places: Box<[Position]>,
}

impl Positions {
    /// The place of the field at `path`, or of the deepest part of the path that exists in `value`.
    ///
    /// `value` must be the value these positions were made for.
    pub fn find(&self, value: &Value, path: &str) -> Position {
        let (mut value, mut rest, mut slot) = (value, path, 0_usize);
        while let Some((next, after, steps)) = step(value, rest) {
            value = next;
            rest = after;
            slot += steps;
        }
        self.places.get(slot).copied().unwrap_or(Position::START)
    }
}

/// One step along a path: the child, what remains of the path, and how many nodes of the walk lie between.
fn step<'v, 'p>(value: &'v Value, rest: &'p str) -> Option<(&'v Value, &'p str, usize)> {
    match value {
        Value::Array(items) => {
            let (index, after) = split_index(rest)?;
            let child = items.get(index)?;
            let before: usize = items[..index].iter().map(count).sum();
            Some((child, after, before + 1))
        }
        Value::Object(map) => {
            // The longest key that fits wins: an unbracketed `a.b` may be one key or two.
            let (key, after) = map
                .keys()
                .filter_map(|key| strip_key(rest, key).map(|after| (key, after)))
                .min_by_key(|(_, after)| after.len())?;
            let before: usize = map.iter().take_while(|(k, _)| *k != key).map(|(_, v)| count(v)).sum();
            Some((&map[key], after, before + 1))
        }
        _ => None,
    }
}

/// How many nodes a value has, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}
