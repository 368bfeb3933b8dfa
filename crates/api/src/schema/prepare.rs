//! What happens to an object before it is looked at.
//!
//! Owns dropping nulls, equalising whole numbers and filling in defaults, in the order and with the exceptions
//! Kubernetes has. Idempotent: preparing a prepared object changes nothing.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Number, Value};

use super::metadata::fill_null_entries;

/// Floats up to here represent every whole number exactly.
const WHOLE_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

/// Drops nulls, turns whole floats into integers and fills in defaults.
pub fn prepare(value: &mut Value, schema: &JSONSchemaProps) {
    fill_null_entries(value);
    drop_nulls(value, schema);
    whole_numbers(value, schema);
    apply_defaults(value, schema);
}

/// Removes fields and map entries that are null where the schema does not allow null. List items stay, so that
/// indexes keep their meaning; a null item is found by validation.
pub fn drop_nulls(value: &mut Value, schema: &JSONSchemaProps) {
    if let Value::Object(fields) = value {
        fields.retain(|name, field| {
            let unwanted = child(schema, name).is_some_and(|schema| schema.nullable != Some(true));
            !(field.is_null() && unwanted)
        });
    }
    for_each_child(value, schema, &mut drop_nulls);
}

/// Fills in the defaults of absent fields, then those inside what was filled in. A null list item is replaced by
/// the items' default if they have one.
pub fn apply_defaults(value: &mut Value, schema: &JSONSchemaProps) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema.properties.iter().flatten() {
                if let Some(default) = &property.default {
                    let absent = fields
                        .get(name)
                        .is_none_or(|field| field.is_null() && property.nullable != Some(true));
                    if absent {
                        fields.insert(name.clone(), default.0.clone());
                    }
                }
            }
        }
        Value::Array(entries) => {
            let default = items(schema)
                .filter(|items| items.nullable != Some(true))
                .and_then(|items| items.default.as_ref());
            if let Some(default) = default {
                entries
                    .iter_mut()
                    .filter(|entry| entry.is_null())
                    .for_each(|entry| *entry = default.0.clone());
            }
        }
        _ => {}
    }
    for_each_child(value, schema, &mut apply_defaults);
}

/// JSON does not tell 3.0 from 3, and Kubernetes takes either for an integer; typed readers do not.
fn whole_numbers(value: &mut Value, schema: &JSONSchemaProps) {
    if let Value::Number(number) = value {
        let wanted =
            schema.type_.as_deref() == Some("integer") || schema.x_kubernetes_int_or_string == Some(true);
        if let Some(whole) = number.as_f64().filter(|_| wanted && number.is_f64()).and_then(whole) {
            *value = Value::Number(whole);
        }
        return;
    }
    for_each_child(value, schema, &mut whole_numbers);
}

fn whole(float: f64) -> Option<Number> {
    let exact = float.fract() == 0.0 && float.abs() <= WHOLE_FLOAT_MAX;
    exact.then_some(Number::from(float as i64))
}

fn for_each_child(
    value: &mut Value,
    schema: &JSONSchemaProps,
    visit: &mut dyn FnMut(&mut Value, &JSONSchemaProps),
) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if let Some(schema) = child(schema, name) {
                    visit(field, schema);
                }
            }
        }
        Value::Array(entries) => {
            if let Some(schema) = items(schema) {
                for entry in entries {
                    visit(entry, schema);
                }
            }
        }
        _ => {}
    }
}

/// The schema of a field or of a map's entries, if there is one.
pub(crate) fn child<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    let property = schema.properties.as_ref().and_then(|properties| properties.get(name));
    property.or(match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(schema)) => Some(schema),
        _ => None,
    })
}

/// The schema of a list's items, if there is one.
pub(crate) fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(schema) => Some(schema),
        // Tuples are not structural; Kubernetes refuses definitions that have them.
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: Value) -> JSONSchemaProps {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_null_without_permission_is_dropped_and_then_defaulted() {
        let schema = schema(json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "default": "x"},
                "b": {"type": "string", "nullable": true, "default": "y"},
                "c": {"type": "string"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }));
        let mut value = json!({"a": null, "b": null, "c": null, "map": {"k": null}, "unknown": null});
        prepare(&mut value, &schema);
        assert_eq!(value, json!({"a": "x", "b": null, "map": {}, "unknown": null}));
    }

    #[test]
    fn defaults_reach_into_defaults_and_lists_but_make_no_parents() {
        let inner = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}});
        let mut with_default = inner.clone();
        with_default["default"] = json!({});
        let schema = schema(json!({
            "type": "object",
            "properties": {"given": with_default, "absent": inner, "list": {"type": "array", "items": inner}},
        }));
        let mut value = json!({"list": [{}, {"n": 2}]});
        prepare(&mut value, &schema);
        assert_eq!(value, json!({"given": {"n": 1}, "list": [{"n": 1}, {"n": 2}]}));
    }

    #[test]
    fn whole_floats_become_integers_where_integers_are_wanted() {
        let schema = schema(json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}, "f": {"type": "number"}},
        }));
        let mut value = json!({"n": 3.0, "m": 3.5, "f": 3.0});
        prepare(&mut value, &schema);
        assert_eq!(value.to_string(), r#"{"f":3.0,"m":3.5,"n":3}"#);
    }
}
