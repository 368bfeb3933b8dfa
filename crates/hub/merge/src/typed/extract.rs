//! The set of fields a configuration mentions: every leaf, every item, and every entry of a map.

use serde_json::Value;

use super::item::element;
use super::kind::{Branch, Items, Type};
use crate::fields::{Element, FieldSet, Node};

/// The fields of a value.
pub(crate) fn extract<'a>(value: &'a Value, of: Type<'a>) -> FieldSet<'a> {
    inner(value, of).1
}

/// Whether the place itself is a leaf, and the paths below.
fn inner<'a>(value: &'a Value, of: Type<'a>) -> (bool, FieldSet<'a>) {
    match of.branch(Some(value)) {
        Branch::Scalar => (true, FieldSet::new()),
        Branch::Map if of.map_is_atomic() => (true, FieldSet::new()),
        Branch::List if of.items() == Items::Atomic => (true, FieldSet::new()),
        Branch::Map => (false, map(value, of)),
        Branch::List => (false, list(value, of)),
    }
}

fn map<'a>(value: &'a Value, of: Type<'a>) -> FieldSet<'a> {
    let mut set = FieldSet::new();
    let Value::Object(fields) = value else { return set };
    set.nodes.reserve(fields.len());
    for (name, field) in fields {
        let Some((of, declared)) = of.field(name) else { continue };
        let (leaf, children) = inner(field, of);
        let empty = field.is_null() || field.as_object().is_some_and(serde_json::Map::is_empty);
        let member = leaf || empty || !declared;
        if member || !children.is_empty() {
            set.push(Node { element: Element::field(name), member, children });
        }
    }
    set
}

fn list<'a>(value: &'a Value, of: Type<'a>) -> FieldSet<'a> {
    let Value::Array(items) = value else { return FieldSet::new() };
    let mut named: Vec<_> = items.iter().filter_map(|item| Some((element(of, item).ok()?, item))).collect();
    named.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut set = FieldSet::new();
    for same in named.chunk_by(|(left, _), (right, _)| left == right) {
        let (element, item) = &same[0];
        // Items that share a name are owned as one.
        let children = if same.len() == 1 { inner(item, of.item()).1 } else { FieldSet::new() };
        set.push(Node { element: element.clone(), member: true, children });
    }
    set
}
