//! The custom kind of the vectors, read from the schema that the oracle reads.

use berth_schema::{Arena, Checks, ListType, MapType, Node, NodeId, Shape};
use serde_json::Value;

fn flag(schema: &Value, name: &str) -> bool {
    schema[name] == Value::Bool(true)
}

/// As much of reading a definition as the vectors need.
pub(crate) fn compile(arena: &mut Arena, schema: &Value) -> NodeId {
    let shape = match schema["type"].as_str() {
        Some("object") => Shape::Object,
        Some("array") => Shape::Array,
        Some("string") => Shape::String,
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        _ if flag(schema, "x-kubernetes-int-or-string") => Shape::IntOrString,
        _ => Shape::Any,
    };
    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    let list = match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(keys.map(|key| key.as_str().unwrap().into()).collect()),
        _ => ListType::Atomic,
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let node = Node {
        shape,
        properties: properties.map(|(name, schema)| (name.as_str().into(), compile(arena, schema))).collect(),
        additional: schema.get("additionalProperties").map(|schema| compile(arena, schema)),
        items: schema.get("items").map(|schema| compile(arena, schema)),
        default: schema.get("default").cloned(),
        preserve_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
        list,
        map: if schema["x-kubernetes-map-type"] == "atomic" { MapType::Atomic } else { MapType::Granular },
        checks: schema["format"]
            .as_str()
            .map(|format| Box::new(Checks { format: Some(format.into()), ..Checks::default() })),
        ..Node::default()
    };
    arena.add(node)
}

/// The schema of the custom kind.
pub(crate) fn thing() -> (Arena, NodeId) {
    let mut arena = Arena::default();
    let schema = serde_json::from_str(include_str!("../oracle/thing.json")).unwrap();
    let root = compile(&mut arena, &schema);
    (arena, root)
}
