//! The metadata every object has, whatever its definition says of it: a definition of a custom resource can only narrow
//! metadata, and whose its fields are is the same for all kinds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use berth_schema::{Arena, Checks, ListType, MapType, Node, NodeId, Schema, Shape};

struct Common {
    arena: Arena,
    meta: NodeId,
    text: NodeId,
}

static COMMON: LazyLock<Common> = LazyLock::new(|| {
    let mut arena = Arena::default();
    let of = |shape| Node { shape, ..Node::default() };
    let text = arena.add(of(Shape::String));
    let whole = arena.add(of(Shape::Integer));
    let flag = arena.add(of(Shape::Boolean));
    let any = arena.add(of(Shape::Any));
    let checks = Checks { format: Some("date-time".into()), ..Checks::default() };
    let time = arena.add(Node { checks: Some(Box::new(checks)), ..of(Shape::String) });
    let texts = arena.add(Node { additional: Some(text), ..of(Shape::Object) });
    let finalizers = arena.add(Node { items: Some(text), list: ListType::Set, ..of(Shape::Array) });
    let owner = arena.add(Node {
        properties: fields(&[
            ("apiVersion", text),
            ("blockOwnerDeletion", flag),
            ("controller", flag),
            ("kind", text),
            ("name", text),
            ("uid", text),
        ]),
        map: MapType::Atomic,
        ..of(Shape::Object)
    });
    let owners =
        arena.add(Node { items: Some(owner), list: ListType::Map(vec!["uid".into()]), ..of(Shape::Array) });
    let entries = arena.add(Node { items: Some(any), ..of(Shape::Array) });
    let meta = arena.add(Node {
        properties: fields(&[
            ("annotations", texts),
            ("creationTimestamp", time),
            ("deletionGracePeriodSeconds", whole),
            ("deletionTimestamp", time),
            ("finalizers", finalizers),
            ("generateName", text),
            ("generation", whole),
            ("labels", texts),
            ("managedFields", entries),
            ("name", text),
            ("namespace", text),
            ("ownerReferences", owners),
            ("resourceVersion", text),
            ("selfLink", text),
            ("uid", text),
        ]),
        ..of(Shape::Object)
    });
    Common { arena, meta, text }
});

fn fields(named: &[(&str, NodeId)]) -> BTreeMap<Box<str>, NodeId> {
    named.iter().map(|&(name, id)| (name.into(), id)).collect()
}

/// The schema of a field that every resource has, and that no definition changes.
pub(super) fn common_field(name: &str) -> Option<Schema<'static>> {
    match name {
        "metadata" => Some(COMMON.arena.schema(COMMON.meta)),
        "apiVersion" | "kind" => Some(COMMON.arena.schema(COMMON.text)),
        _ => None,
    }
}
