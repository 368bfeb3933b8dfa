//! From a Rust type to the schema of a definition.
//!
//! Owns the rewriting of generated JSON schemas into the form definitions are allowed to have: everything in
//! place, one type each, no explicit null (an optional field is simply not required).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// The structural schema of a type.
pub(crate) fn structural_schema<T: JsonSchema>() -> JSONSchemaProps {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    restructure(&mut schema);
    serde_json::from_value(schema).expect("a generated schema keeps the form of definitions")
}

fn restructure(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    fields.remove("title");
    // An optional value of a compound type: `anyOf: [the type, null]`.
    let optional = fields.get("anyOf").and_then(Value::as_array).and_then(|parts| match parts.as_slice() {
        [inner, null] if null["type"] == "null" => Some(inner.clone()),
        _ => None,
    });
    if let Some(Value::Object(inner)) = optional {
        fields.remove("anyOf");
        for (name, value) in inner {
            fields.entry(name).or_insert(value);
        }
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|kind| kind != "null");
        let only = types.first().cloned();
        if let Some(only) = only {
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    // Generated texts are wrapped where the source is; readers of a definition wrap for themselves.
    if let Some(Value::String(description)) = fields.get_mut("description") {
        *description =
            description.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(restructure);
    }
    for nested in ["items", "additionalProperties"] {
        if let Some(nested) = fields.get_mut(nested) {
            restructure(nested);
        }
    }
}
