//! What happens to an object before it is looked at.
//!
//! Owns dropping nulls, equalising whole numbers and filling in defaults, in the order and with the exceptions
//! Kubernetes has. Idempotent: preparing a prepared object changes nothing.

use serde_json::{Number, Value};

use crate::{
    DEPTH_MAX,
    allowance::{Allowance, DefaultsError},
    metadata::fill_null_entries,
    node::{Schema, Shape},
};

/// Floats up to here represent every whole number exactly.
const WHOLE_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

/// Drops nulls, turns whole floats into integers and fills in defaults. For schemas that are part of the program: one
/// that somebody sent is taken with [`prepare_within`].
pub fn prepare(value: &mut Value, schema: Schema<'_>) {
    prepare_within(value, schema, Allowance::UNBOUNDED).expect("what is unbounded is never used up");
}

/// The same, with a bound on what defaults may add. What does not fit in is refused before it is copied; the value is
/// then filled in as far as it went.
pub fn prepare_within(
    value: &mut Value,
    schema: Schema<'_>,
    allowance: Allowance,
) -> Result<(), DefaultsError> {
    fill_null_entries(value);
    drop_nulls(value, schema);
    whole_numbers(value, schema, DEPTH_MAX);
    apply_defaults(value, schema, allowance)
}

/// Removes fields and map entries that are null where the schema neither allows null nor has a default to put in its
/// place. List items stay, so that indexes keep their meaning; a null item is found by validation.
pub fn drop_nulls(value: &mut Value, schema: Schema<'_>) {
    drop_nulls_within(value, schema, DEPTH_MAX);
}

fn drop_nulls_within(value: &mut Value, schema: Schema<'_>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(fields) => fields.retain(|name, field| match schema.field(name) {
            Some(schema) if field.is_null() => {
                let node = schema.node();
                node.nullable || node.default.is_some()
            }
            Some(schema) => {
                drop_nulls_within(field, schema, depth);
                true
            }
            None => true,
        }),
        Value::Array(entries) => {
            if let Some(schema) = schema.items() {
                for entry in entries {
                    drop_nulls_within(entry, schema, depth);
                }
            }
        }
        _ => {}
    }
}

/// Fills in the defaults of absent fields, then those inside what was filled in. A null where null is not allowed
/// counts as absent; a null list item or map entry is replaced by the default of its like, if there is one. Where the
/// allowance ends the filling in ends, with what was filled in until then in its place.
pub fn apply_defaults(
    value: &mut Value,
    schema: Schema<'_>,
    mut allowance: Allowance,
) -> Result<(), DefaultsError> {
    fill(value, schema, &mut allowance, DEPTH_MAX)
}

fn fill(
    value: &mut Value,
    schema: Schema<'_>,
    allowance: &mut Allowance,
    depth: usize,
) -> Result<(), DefaultsError> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    match value {
        Value::Object(fields) => {
            for name in schema.node().properties.keys() {
                let Some(property) = schema.property(name).map(Schema::node) else { continue };
                let Some(default) = &property.default else { continue };
                if fields.get(&**name).is_none_or(|field| field.is_null() && !property.nullable) {
                    allowance.spend(name.len(), default)?;
                    fields.insert(name.to_string(), default.clone());
                }
            }
            for (name, field) in fields {
                if let Some(schema) = schema.field(name) {
                    replace_null(field, schema, allowance)?;
                    fill(field, schema, allowance, depth)?;
                }
            }
        }
        Value::Array(entries) => {
            if let Some(schema) = schema.items() {
                for entry in entries {
                    replace_null(entry, schema, allowance)?;
                    fill(entry, schema, allowance, depth)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn replace_null(
    value: &mut Value,
    schema: Schema<'_>,
    allowance: &mut Allowance,
) -> Result<(), DefaultsError> {
    let node = schema.node();
    if let Some(default) = node.default.as_ref().filter(|_| value.is_null() && !node.nullable) {
        allowance.spend(0, default)?;
        *value = default.clone();
    }
    Ok(())
}

/// JSON does not tell 3.0 from 3, and Kubernetes takes either for an integer; typed readers do not.
fn whole_numbers(value: &mut Value, schema: Schema<'_>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Number(number) if number.is_f64() => {
            let wanted = matches!(schema.node().shape, Shape::Integer | Shape::IntOrString);
            if let Some(whole) = number.as_f64().filter(|_| wanted).and_then(whole) {
                *value = Value::Number(whole);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(schema) = schema.field(name) {
                    whole_numbers(field, schema, depth);
                }
            }
        }
        Value::Array(entries) => {
            if let Some(schema) = schema.items() {
                for entry in entries {
                    whole_numbers(entry, schema, depth);
                }
            }
        }
        _ => {}
    }
}

fn whole(float: f64) -> Option<Number> {
    let exact = float.fract() == 0.0 && float.abs() <= WHOLE_FLOAT_MAX;
    exact.then_some(Number::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{compile, node::Arena};

    fn prepared(schema: &Value, value: Value) -> Value {
        let mut arena = Arena::default();
        let id = compile(&mut arena, schema).unwrap();
        let mut value = value;
        prepare(&mut value, arena.schema(id));
        value
    }

    #[test]
    fn a_null_without_permission_is_dropped_and_then_defaulted() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "default": "x"},
                "b": {"type": "string", "nullable": true, "default": "y"},
                "c": {"type": "string"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "filled": {"type": "object", "additionalProperties": {"type": "string", "default": "z"}},
            },
        });
        let value = json!({"a": null, "b": null, "c": null, "map": {"k": null}, "filled": {"k": null}, "unknown": null});
        assert_eq!(
            prepared(&schema, value),
            json!({"a": "x", "b": null, "map": {}, "filled": {"k": "z"}, "unknown": null})
        );
    }

    #[test]
    fn defaults_reach_into_defaults_and_lists_but_make_no_parents() {
        let inner = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}});
        let mut with_default = inner.clone();
        with_default["default"] = json!({});
        let schema = json!({
            "type": "object",
            "properties": {"given": with_default, "absent": inner, "list": {"type": "array", "items": inner}},
        });
        assert_eq!(
            prepared(&schema, json!({"list": [{}, {"n": 2}]})),
            json!({"given": {"n": 1}, "list": [{"n": 1}, {"n": 2}]})
        );
    }

    #[test]
    fn whole_floats_become_integers_where_integers_are_wanted() {
        let schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}, "f": {"type": "number"}},
        });
        let value = prepared(&schema, json!({"n": 3.0, "m": 3.5, "f": 3.0}));
        assert_eq!(value.to_string(), r#"{"f":3.0,"m":3.5,"n":3}"#);
    }
}
