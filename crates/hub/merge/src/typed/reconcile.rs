//! Field sets written under an older schema: where a container has become one value since, who owned parts of it owns
//! the whole.

use serde_json::Value;

use super::kind::{Branch, Items, Type};
use crate::fields::{Element, FieldSet, containers};

/// Whether a set in its JSON form is out of line with the type: the same question, asked without reading it.
pub(crate) fn is_outdated(fields: &Value, of: Type<'_>) -> bool {
    if settled(of) {
        return false;
    }
    containers(fields).any(|(name, inner)| {
        let below = match (of.branch(None), name.strip_prefix("f:")) {
            (Branch::List, _) => Some(of.item()),
            (_, Some(name)) => of.field(name).map(|(of, _)| of),
            (_, None) => of.entry(),
        };
        below.is_some_and(|of| is_whole(of) || is_outdated(inner, of))
    })
}

/// Whether nothing below can have changed.
fn settled(of: Type<'_>) -> bool {
    match of.branch(None) {
        Branch::Scalar => true,
        // Nothing was ever declared here.
        Branch::Map => of.is_free_map() || of.map_is_atomic(),
        Branch::List => of.items() == Items::Atomic,
    }
}

/// Whether a container is one value, as far as its owners are concerned.
fn is_whole(of: Type<'_>) -> bool {
    match of.branch(None) {
        Branch::Scalar => false,
        Branch::Map => !of.is_free_map() && of.map_is_atomic(),
        Branch::List => of.items() == Items::Atomic,
    }
}

/// Brings a set in line with the type as it is now.
pub(crate) fn reconcile(set: &mut FieldSet<'_>, of: Type<'_>) {
    if settled(of) {
        return;
    }
    for node in set.nodes.iter_mut().filter(|node| !node.children.is_empty()) {
        let below = match (of.branch(None), &node.element) {
            (Branch::List, _) => Some(of.item()),
            (_, Element::Field(name)) => of.field(name).map(|(of, _)| of),
            _ => of.entry(),
        };
        let Some(below) = below else { continue };
        if is_whole(below) {
            node.member = true;
            node.children = FieldSet::new();
        } else {
            reconcile(&mut node.children, below);
        }
    }
}
