//! A value without some of its fields, and the parents that a set of fields implies.

use serde_json::{Map, Value};

use super::item::element;
use super::kind::{Branch, Items, Type};
use crate::fields::{Element, FieldSet, Node};

/// Removes fields. A container that loses everything becomes null; so does one value of which a part is named.
pub(crate) fn remove(value: &Value, fields: &FieldSet<'_>, of: Type<'_>) -> Value {
    match of.branch(Some(value)) {
        Branch::Scalar => value.clone(),
        Branch::Map => match value.as_object() {
            Some(entries) if !of.map_is_atomic() => map(entries, fields, of),
            _ => Value::Null,
        },
        Branch::List => match value.as_array() {
            Some(items) if of.items() != Items::Atomic => list(items, fields, of),
            _ => Value::Null,
        },
    }
}

fn map(entries: &Map<String, Value>, fields: &FieldSet<'_>, of: Type<'_>) -> Value {
    let mut out = Map::new();
    for (name, entry) in entries {
        let kept = match fields.get(&Element::field(name)) {
            Some(node) if node.member => continue,
            Some(node) => match of.field(name) {
                Some((of, _)) => remove(entry, &node.children, of),
                None => entry.clone(),
            },
            None => entry.clone(),
        };
        out.insert(name.clone(), kept);
    }
    if out.is_empty() { Value::Null } else { Value::Object(out) }
}

fn list(items: &[Value], fields: &FieldSet<'_>, of: Type<'_>) -> Value {
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        let node = element(of, item).ok().and_then(|element| fields.get(&element));
        match node {
            Some(node) if node.member => {}
            Some(node) => out.push(remove(item, &node.children, of.item())),
            None => out.push(item.clone()),
        }
    }
    if out.is_empty() { Value::Null } else { Value::Array(out) }
}

/// The set with every declared field that leads to a member as a member too: taking `a.b.c` away then takes an `a` that
/// the type declares, but not an entry of a map.
pub(crate) fn with_named_parents<'a>(set: &FieldSet<'a>, of: Option<Type<'_>>) -> FieldSet<'a> {
    let nodes = set.nodes.iter().map(|node| {
        let mut member = node.member;
        let mut below = None;
        match (&node.element, of) {
            (Element::Field(name), Some(of)) if accepts_map(of) => {
                if !node.children.is_empty() && of.declares(name) {
                    member = true;
                }
                below = of.field(name).map(|(of, _)| of);
            }
            (Element::Key(_), Some(of)) if accepts_list(of) => below = Some(of.item()),
            _ => {}
        }
        Node { element: node.element.clone(), member, children: with_named_parents(&node.children, below) }
    });
    FieldSet { nodes: nodes.collect() }
}

fn accepts_map(of: Type<'_>) -> bool {
    of.branch(Some(&Value::Object(Map::new()))) == Branch::Map
}

fn accepts_list(of: Type<'_>) -> bool {
    of.branch(Some(&Value::Array(Vec::new()))) == Branch::List
}
