//! What the hub answers differently on purpose. Each has its reason here and a line in the documentation.

use serde_json::Value;

use crate::exchange::Answer;

/// Makes of an answer to a request for `target` what both servers can agree on.
pub(crate) fn settle(target: &str, answer: &mut Answer) {
    // The real server keeps a new claim without the phase that it shows, so the next write gives it a new revision even
    // where it changes nothing.
    if target.contains("/persistentvolumeclaims") {
        without_revisions(&mut answer.body);
    }
    match &mut answer.body {
        // What a watch saw.
        Value::Array(events) => events.iter_mut().for_each(|event| table(&mut event["object"])),
        body => table(body),
    }
    // A review is kept by nobody, so nobody's fields are told apart. Which of two bindings allows something is chance.
    if target.contains("/authorization.k8s.io/") {
        answer.body["metadata"].as_object_mut().map(|meta| meta.remove("managedFields"));
        if let Some(Value::String(reason)) = answer.body.pointer_mut("/status/reason") {
            reason.truncate(
                reason.find("RBAC: allowed by").map_or(reason.len(), |at| at + "RBAC: allowed by".len()),
            );
        }
    }
    // A scale that cannot be read is refused by both; the real server stumbles over its own scheme while saying why.
    if target.contains("/scale") && answer.code == 400 {
        answer.body["message"] = "a scale that cannot be read".into();
    }
    texts(&mut answer.body);
}

fn table(body: &mut Value) {
    // The hub has no prose of Kubernetes' in it: heads of tables of built-in kinds have no description.
    for column in body.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(column) = column.as_object_mut() {
            column.remove("description");
        }
    }
    // An empty list of rows is an empty list, also where the real server writes null.
    if let Some(rows @ Value::Null) = body.get_mut("rows") {
        *rows = Value::Array(Vec::new());
    }
}

fn without_revisions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_revisions),
        Value::Object(map) => {
            let many = map.contains_key("items");
            if let (false, Some(Value::Object(meta))) = (many, map.get_mut("metadata")) {
                meta.remove("resourceVersion");
            }
            map.values_mut().for_each(without_revisions);
        }
        _ => {}
    }
}

fn texts(value: &mut Value) {
    match value {
        Value::String(text) => words(text),
        Value::Array(items) => items.iter_mut().for_each(texts),
        Value::Object(map) => {
            // The metadata of a daemon set alone lacks what its other form holds outside of metadata.
            if map.get("kind").is_some_and(|kind| kind == "PartialObjectMetadata")
                && let Some(annotations) = map
                    .get_mut("metadata")
                    .and_then(|meta| meta.get_mut("annotations"))
                    .and_then(Value::as_object_mut)
            {
                annotations.remove("deprecated.daemonset.template.generation");
                if annotations.is_empty() {
                    map["metadata"].as_object_mut().map(|meta| meta.remove("annotations"));
                }
            }
            map.values_mut().for_each(texts);
        }
        _ => {}
    }
}

/// Where a message goes on with something that only the real server can say: how the two states of an object differ in
/// its own internal form.
const OWN_FORM: [&str; 3] = [
    "(allow it to be set to 1 if it was previously negative)",
    "volumeAttributesClassName for bound claims",
    "spec.persistentvolumesource is immutable after creation",
];

fn words(text: &mut String) {
    for phrase in OWN_FORM {
        if let Some(at) = text.find(phrase) {
            text.truncate(at);
        }
    }
    // What is wrong with a text that is no YAML is said in the words of the reader.
    if let Some(at) = text.find("yaml: ").filter(|_| !text.contains("yaml: unmarshal errors")) {
        text.truncate(at);
    }
}
