//! A stored object as a resource shows it.
//!
//! Owns the way from the bytes at rest to the bytes in an answer. Nearly always they are the same bytes; only another
//! version, another view, or an object older than its definition is taken apart and put together again.
//!
//! An object older than the defaults of its definition gets them as far as a write would get them. Where that ends, the
//! rest is shown as it is kept: so it can still be seen, made smaller, and deleted. A write that leaves it so large is
//! refused.

use berth_hub_kinds::events;
use berth_hub_store::Entry;
use bytes::Bytes;
use serde_json::Value;

use crate::registry::{Origin, Resource};
use crate::resource::growth;

/// The object as `resource` shows it.
pub(super) fn present(resource: &Resource, entry: &Entry) -> Bytes {
    if is_as_stored(resource, entry) { entry.json().clone() } else { present_json(resource, entry.json()) }
}

/// The object as `resource` shows it, as a value.
pub(crate) fn present_value(resource: &Resource, entry: &Entry) -> Value {
    let value = parse(entry.json());
    if is_as_stored(resource, entry) { value } else { convert(resource, value) }
}

/// Bytes of a stored object, which may not be those of an entry, as `resource` shows it.
fn present_json(resource: &Resource, json: &Bytes) -> Bytes {
    serde_json::to_vec(&convert(resource, parse(json))).expect("a value of JSON is JSON").into()
}

/// An item of a list: items of built-in kinds do not repeat what the list says about them.
pub(super) fn present_item(resource: &Resource, entry: &Entry) -> Item {
    let json = present(resource, entry);
    match &resource.origin {
        Origin::Custom(_) => Item::Whole(json),
        Origin::Builtin(_) => {
            let head = resource.head.whole();
            if json.starts_with(head) {
                Item::Headless(json.slice(head.len()..))
            } else {
                Item::Whole(without_type(&json))
            }
        }
    }
}

/// An item of a list, in pieces that need no copy before the list itself is written.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// A whole object.
    Whole(Bytes),
    /// An object without its opening brace.
    Headless(Bytes),
}

impl Item {
    /// The item's text, in two pieces.
    pub(super) fn pieces(&self) -> [&[u8]; 2] {
        match self {
            Item::Whole(json) => [json, b""],
            Item::Headless(json) => [b"{", json],
        }
    }
}

/// Objects in the store are ours: they are JSON because we wrote them.
pub(crate) fn parse(json: &[u8]) -> Value {
    serde_json::from_slice(json).expect("the store gives back the JSON it was given")
}

fn is_as_stored(resource: &Resource, entry: &Entry) -> bool {
    match &resource.origin {
        Origin::Builtin(_) => resource.is_storage_form(),
        Origin::Custom(version) => {
            entry.revision() >= version.since && entry.json().starts_with(resource.head.version())
        }
    }
}

fn convert(resource: &Resource, mut value: Value) -> Value {
    match &resource.origin {
        Origin::Builtin(kind) => events::from_stored(kind, value),
        Origin::Custom(version) => {
            value["apiVersion"] = resource.api_version().into();
            berth_schema::prune(
                &mut value,
                version.arena.schema(version.root),
                &berth_schema::PruneOptions::default(),
            );
            let (schema, allowance) = (version.arena.schema(version.root), growth::allowance(&value));
            if let Err(error) = berth_schema::apply_defaults(&mut value, schema, allowance) {
                tracing::debug!(%error, kind = &*resource.kind, "an object is shown without all of its defaults");
            }
            value
        }
    }
}

fn without_type(json: &Bytes) -> Bytes {
    let mut value = parse(json);
    if let Value::Object(members) = &mut value {
        members.remove("apiVersion");
        members.remove("kind");
    }
    serde_json::to_vec(&value).expect("a value of JSON is JSON").into()
}
