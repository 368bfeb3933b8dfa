//! Objects drawn at random from a schema: whatever it allows.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use proptest::{collection, option, prelude::*, sample, string::string_regex};
use serde_json::{Map, Value, json};

/// Objects of a kind.
pub(crate) fn object(
    schema: &JSONSchemaProps,
    api_version: String,
    kind: String,
    namespaced: bool,
) -> BoxedStrategy<Value> {
    let labels = collection::btree_map("[a-z]{1,8}", "[a-z0-9]{0,8}", 0..3);
    (value(schema), "[a-z]([-a-z0-9]{0,20}[a-z0-9])?", option::of(labels))
        .prop_map(move |(mut object, name, labels)| {
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            object["metadata"] = json!({ "name": name });
            if namespaced {
                object["metadata"]["namespace"] = json!("ns1");
            }
            if let Some(labels) = labels {
                object["metadata"]["labels"] = json!(labels);
            }
            object
        })
        .boxed()
}

/// Values that a schema allows.
fn value(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let strategy = if schema.x_kubernetes_int_or_string == Some(true) {
        prop_oneof![(-1000..1_000_000).prop_map(Value::from), text(schema)].boxed()
    } else if let Some(words) = &schema.enum_ {
        sample::select(words.iter().map(|word| word.0.clone()).collect::<Vec<_>>()).boxed()
    } else {
        match schema.type_.as_deref() {
            Some("string") => text(schema),
            Some("integer") => integer(schema),
            Some("number") => number(schema),
            Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
            Some("array") => list(schema),
            Some("object") => fields(schema),
            other => panic!("no way to draw a value of type {other:?}"),
        }
    };
    if schema.nullable == Some(true) {
        prop_oneof![4 => strategy, 1 => Just(Value::Null)].boxed()
    } else {
        strategy
    }
}

fn text(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let (min, max) = (schema.min_length.unwrap_or(0) as usize, schema.max_length.unwrap_or(40) as usize);
    let drawn = match (schema.format.as_deref(), &schema.pattern) {
        (Some("date-time"), _) => time(),
        (Some("byte"), _) => string_regex("([A-Za-z0-9+/]{4}){1,6}").unwrap().boxed(),
        (_, Some(pattern)) => {
            let unanchored = pattern.trim_start_matches('^').trim_end_matches('$');
            string_regex(unanchored).unwrap().boxed()
        }
        _ => string_regex(&format!("\\PC{{{min},{}}}", max.min(min + 12))).unwrap().boxed(),
    };
    drawn
        .prop_filter("length", move |text| (min..=max).contains(&text.chars().count()))
        .prop_map(Value::from)
        .boxed()
}

fn time() -> BoxedStrategy<String> {
    let offset = prop_oneof![Just("Z".to_owned()), "[+-](0[0-9]|1[0-3]):[0-5][0-9]"];
    ("(19[7-9][0-9]|20[0-9]{2})-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?", offset)
        .prop_map(|(local, offset)| format!("{local}{offset}"))
        .boxed()
}

fn integer(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let (least, most) = match schema.format.as_deref() {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let least = schema.minimum.map_or(least, |limit| limit as i64);
    let most = schema.maximum.map_or(most, |limit| limit as i64);
    prop_oneof![least..=most, Just(least), Just(most), least.max(-100).min(most)..=most.min(100).max(least),]
        .prop_map(Value::from)
        .boxed()
}

fn number(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let (least, most) = (schema.minimum.unwrap_or(-1e9), schema.maximum.unwrap_or(1e9));
    prop_oneof![least..=most, Just(least), Just(most)].prop_map(Value::from).boxed()
}

fn list(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else {
        panic!("a list without items");
    };
    let (min, max) = (schema.min_items.unwrap_or(0) as usize, schema.max_items.unwrap_or(4).min(4) as usize);
    let keys = schema.x_kubernetes_list_map_keys.clone().unwrap_or_default();
    collection::vec(value(items), min..=max)
        .prop_map(move |mut entries| {
            if !keys.is_empty() {
                let mut seen = Vec::new();
                entries.retain(|entry| {
                    let key: Vec<Value> = keys.iter().map(|key| entry[key].clone()).collect();
                    let new = !seen.contains(&key);
                    seen.push(key);
                    new
                });
            }
            Value::Array(entries)
        })
        .boxed()
}

fn fields(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(JSONSchemaPropsOrBool::Schema(entries)) = &schema.additional_properties {
        let map = collection::btree_map("[a-z]{1,8}", value(entries), 0..4);
        return map.prop_map(|entries| entries.into_iter().collect::<Map<_, _>>().into()).boxed();
    }
    let required = schema.required.clone().unwrap_or_default();
    let mut strategy = Just(Map::new()).boxed();
    for (name, property) in schema.properties.iter().flatten() {
        let (name, drawn) = (name.clone(), value(property));
        // An explicit null where none is allowed counts as absent, and people write it.
        let field = if required.contains(&name) {
            drawn.prop_map(Some).boxed()
        } else {
            prop_oneof![6 => drawn.prop_map(Some), 5 => Just(None), 1 => Just(Some(Value::Null))].boxed()
        };
        strategy = (strategy, field)
            .prop_map(move |(mut fields, field)| {
                if let Some(field) = field {
                    fields.insert(name.clone(), field);
                }
                fields
            })
            .boxed();
    }
    strategy.prop_map(Value::Object).boxed()
}
