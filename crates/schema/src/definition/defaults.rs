//! The defaults of a schema.
//!
//! Owns what is asked of them: a default fits the schema it is given in, contains nothing that would be pruned, and
//! keeps the rules there.

use serde_json::Value;

use crate::{
    SCHEMA_DEPTH_MAX,
    embedded::validate_embedded_below,
    metadata::coerce_part,
    node::Schema,
    path::{FieldPath, Place},
    problem::Problem,
    rules::Rules,
    unknown::{PruneOptions, prune},
    validate::validate_below,
};

/// Everything that is wrong with the defaults of a structural schema, which is that of a whole object.
pub(super) fn validate_defaults(schema: Schema<'_>, path: &FieldPath) -> Vec<Problem> {
    let mut found = Vec::new();
    visit(schema, true, false, path, &mut found, SCHEMA_DEPTH_MAX);
    found
}

fn visit(
    schema: Schema<'_>,
    root: bool,
    metadata: bool,
    path: &FieldPath,
    found: &mut Vec<Problem>,
    depth: usize,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let node = schema.node();
    let object = root || node.embedded_resource;
    let metadata = metadata && !node.embedded_resource;
    if let Some(default) = &node.default {
        check(default, schema, object, metadata, &path.field("default"), found);
    }
    // There are no defaults inside of additional properties.
    if let Some(items) = schema.items() {
        visit(items, false, metadata, &path.field("items"), found, depth);
    }
    for name in node.properties.keys() {
        let Some(property) = schema.property(name) else { continue };
        let inside = metadata || (object && matches!(&**name, "metadata" | "apiVersion" | "kind"));
        visit(property, false, inside, &path.field("properties").key(name), found, depth);
    }
}

fn check(
    default: &Value,
    schema: Schema<'_>,
    object: bool,
    metadata: bool,
    path: &FieldPath,
    found: &mut Vec<Problem>,
) {
    let embedded = schema.node().embedded_resource;
    if !metadata {
        let mut pruned = default.clone();
        prune(&mut pruned, schema, &PruneOptions { resource_root: embedded });
        if pruned != *default {
            found.push(Problem::invalid(path, default, "must not have unknown fields"));
        }
    }
    let mut coerced = default.clone();
    if let Err(problem) = coerce_part(&mut coerced, schema, embedded, path) {
        found.push(problem);
        return;
    }
    let place = Place::Field(&Place::Root, path.as_str());
    let mut problems = validate_embedded_below(&place, default, schema, embedded);
    if problems.is_empty() {
        problems = validate_below(path.clone(), default, schema);
    }
    if problems.is_empty()
        && let Ok(rules) = Rules::compile_part(schema, object)
    {
        // Rules about a change hold when nothing changes; the others when the default comes out of nothing.
        problems = rules.check_below(path, schema, default, Some(default), None);
        if problems.is_empty() {
            problems = rules.check_below(path, schema, default, None, None);
        }
    }
    found.append(&mut problems);
}
