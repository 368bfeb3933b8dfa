//! Fields that nobody will read.
//!
//! Owns finding and removing them. A custom resource keeps what its schema describes; the rest is pruned, and named to
//! whoever sent it as far as they want to know.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{DEPTH_MAX, metadata, node::Schema, path::FieldPath};

/// The most paths listed for one object.
pub const PATHS_MAX: usize = 100;

/// What every object has at its root, and every embedded one.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// How an object is pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneOptions {
    /// Whether the value is a whole object, whose `apiVersion`, `kind` and `metadata` stay whatever the schema says.
    pub resource_root: bool,
}

impl Default for PruneOptions {
    fn default() -> Self {
        Self { resource_root: true }
    }
}

/// Removes what the schema does not describe and gives the paths of what was removed, sorted, at most a hundred.
pub fn prune(value: &mut Value, schema: Schema<'_>, options: &PruneOptions) -> Vec<String> {
    let mut trail = Trail::default();
    prune_within(value, Some(schema), options.resource_root, &mut trail, DEPTH_MAX);
    trail.found.sort_unstable();
    trail.found
}

/// The paths of fields the schema does not have, metadata included, at most a hundred of them.
pub fn unknown_fields(value: &Value, schema: Schema<'_>) -> Vec<FieldPath> {
    let mut trail = Trail::default();
    find_within(value, Some(schema), true, &mut trail, DEPTH_MAX);
    if let Some(metadata) = value.get("metadata") {
        trail.found.extend(metadata::unknown_fields(metadata, "metadata"));
    }
    trail.found.sort_unstable();
    trail.found.truncate(PATHS_MAX);
    trail.found.iter().map(|path| FieldPath::from(path.as_str())).collect()
}

/// The path being walked along, written out as it goes, and what was found on the way.
#[derive(Default)]
struct Trail {
    path: String,
    found: Vec<String>,
}

impl Trail {
    fn enter(&mut self, name: &str) -> usize {
        let mark = self.path.len();
        if mark > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        mark
    }

    fn enter_index(&mut self, index: usize) -> usize {
        let mark = self.path.len();
        let _ = write!(self.path, "[{index}]");
        mark
    }

    fn leave(&mut self, mark: usize) {
        self.path.truncate(mark);
    }

    fn record(&mut self, name: &str) {
        if self.found.len() < PATHS_MAX {
            let mark = self.enter(name);
            self.found.push(self.path.clone());
            self.leave(mark);
        }
    }
}

/// What is to be done with a field.
enum Fate<'a> {
    /// It stays as it is.
    Keep,
    /// It stays, and what is inside is looked at.
    Enter(Option<Schema<'a>>),
    /// It goes.
    Drop,
}

/// Where the schema describes nothing at all everything goes; a part of an object kind stays in any case.
fn fate<'a>(schema: Option<Schema<'a>>, embedded: bool, name: &str) -> Fate<'a> {
    let Some(schema) = schema else { return Fate::Drop };
    let node = schema.node();
    if (embedded || node.embedded_resource) && OBJECT_FIELDS.contains(&name) {
        return Fate::Keep;
    }
    match schema.field(name) {
        Some(field) => Fate::Enter(Some(field)),
        None if node.preserve_unknown => Fate::Keep,
        None => Fate::Drop,
    }
}

/// Whether the items of a list are looked at, and with what schema. Where unknown fields are preserved, they are so in
/// items that are not described either.
fn items(schema: Option<Schema<'_>>) -> Fate<'_> {
    match schema {
        Some(schema) if schema.node().preserve_unknown && schema.items().is_none() => Fate::Keep,
        Some(schema) => Fate::Enter(schema.items()),
        None => Fate::Enter(None),
    }
}

fn prune_within(
    value: &mut Value,
    schema: Option<Schema<'_>>,
    embedded: bool,
    trail: &mut Trail,
    depth: usize,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(fields) => fields.retain(|name, field| match fate(schema, embedded, name) {
            Fate::Keep => true,
            Fate::Enter(schema) => {
                let mark = trail.enter(name);
                prune_within(field, schema, false, trail, depth);
                trail.leave(mark);
                true
            }
            Fate::Drop => {
                trail.record(name);
                false
            }
        }),
        Value::Array(entries) => {
            if let Fate::Enter(schema) = items(schema) {
                for (index, entry) in entries.iter_mut().enumerate().filter(|(_, entry)| is_compound(entry)) {
                    let mark = trail.enter_index(index);
                    prune_within(entry, schema, false, trail, depth);
                    trail.leave(mark);
                }
            }
        }
        _ => {}
    }
}

fn find_within(value: &Value, schema: Option<Schema<'_>>, embedded: bool, trail: &mut Trail, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(fields) => find_in_object(fields, schema, embedded, trail, depth),
        Value::Array(entries) => {
            if let Fate::Enter(schema) = items(schema) {
                for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| is_compound(entry)) {
                    let mark = trail.enter_index(index);
                    find_within(entry, schema, false, trail, depth);
                    trail.leave(mark);
                }
            }
        }
        _ => {}
    }
}

fn find_in_object(
    fields: &Map<String, Value>,
    schema: Option<Schema<'_>>,
    embedded: bool,
    trail: &mut Trail,
    depth: usize,
) {
    for (name, field) in fields {
        match fate(schema, embedded, name) {
            Fate::Keep => {}
            Fate::Enter(schema) => {
                if is_compound(field) {
                    let mark = trail.enter(name);
                    find_within(field, schema, false, trail, depth);
                    trail.leave(mark);
                }
            }
            Fate::Drop => trail.record(name),
        }
    }
}

fn is_compound(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{compile, node::Arena};

    #[test]
    fn what_is_not_described_goes_and_is_named() {
        let mut arena = Arena::default();
        let schema = json!({
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                        "map": {"type": "object", "additionalProperties": {"type": "object"}},
                        "free": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": true,
                            "properties": {"known": {"type": "object"}},
                        },
                        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
                    },
                },
            },
        });
        let id = compile(&mut arena, &schema).unwrap();
        let mut value = json!({
            "apiVersion": "x/v1",
            "kind": "X",
            "metadata": {"name": "a", "lables": {}, "labels": {"anything": "goes"}},
            "spec": {
                "list": [{"a": "b"}, {"b": "c"}],
                "map": {"k": {"x": 1}},
                "free": {"any": {"thing": 1}, "known": {"x": 1}},
                "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"x": 1}, "more": 1},
                "typo": 1,
            },
            "stats": {},
        });
        let unknown: Vec<String> =
            unknown_fields(&value, arena.schema(id)).iter().map(ToString::to_string).collect();
        assert_eq!(
            unknown,
            [
                "metadata.lables",
                "spec.free.known.x",
                "spec.list[1].b",
                "spec.map.k.x",
                "spec.pod.more",
                "spec.pod.spec.x",
                "spec.typo",
                "stats",
            ]
        );
        let pruned = prune(&mut value, arena.schema(id), &PruneOptions::default());
        assert_eq!(pruned, unknown[1..]);
        assert_eq!(
            value["spec"],
            json!({
                "list": [{"a": "b"}, {}],
                "map": {"k": {}},
                "free": {"any": {"thing": 1}, "known": {}},
                "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}},
            })
        );
        assert_eq!(prune(&mut value, arena.schema(id), &PruneOptions::default()), [] as [&str; 0]);
    }
}
