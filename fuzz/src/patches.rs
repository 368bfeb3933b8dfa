//! Any two documents as a stored object and a patch of it.
//!
//! Owns the promises: every kind of patch ends with a document or with a refusal that says why, an object stays an
//! object that can be stored and read, nothing grows beyond what was sent, and doing the same again changes nothing.

use std::sync::LazyLock;

use berth_hub::CustomVersion;
use berth_hub_kinds::{Builtin, Builtins, conform};
use berth_hub_merge::{
    ApplyError, MAX_COPY_BYTES, ObjectType, Operation, PatchError, Writer, apply, check_merge_patch,
    json_patch, merge_patch, strategic_merge, track_update, validate_managed_fields,
};
use berth_hub_wire::body::json;
use berth_schema::Schema;
use serde_json::{Map, Value, json};

use crate::bodies::stored_and_read;
use crate::parts::parts;

/// Bytes of managed fields that one byte of an object can make: a field `a` of one character is `"f:a":{},` there, once
/// in the set of each manager, and the list it is an item of may name it by its value.
const OWNED: usize = 16;
/// Bytes that are there whatever is sent: the kind, and what an entry says about its manager.
const AROUND: usize = 4 * 1024;

static DEPLOYMENT: LazyLock<&Builtin> =
    LazyLock::new(|| Builtins::load().kind("apps", "v1", "Deployment").expect("deployments are built in"));

/// What a deployment is before anything is given.
static ZERO: LazyLock<Value> = LazyLock::new(|| deployment(json!({})).expect("nothing is a deployment"));

/// A kind with each sort of list, free-form parts and defaults.
static WIDGET: LazyLock<CustomVersion> = LazyLock::new(|| {
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "port": {"type": "integer", "default": 80}, "weights": {"type": "array", "items": {"type": "number"}},
    }});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"},
            "size": {"x-kubernetes-int-or-string": true},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"], "items": item},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "steps": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version.clone()]},
    });
    CustomVersion::compile(&definition, &version).expect("the fixed definition is valid")
});

/// Patches the first document by the second in every way there is.
pub fn patches(bytes: &[u8]) {
    let mut documents = parts(bytes).map(json::read);
    let (Some(Ok(live)), Some(Ok(patch))) = (documents.next(), documents.next()) else { return };
    let (live, patch) = (live.value, patch.value);
    plain(&live, &patch);
    if let Some(live) = deployment(live.clone()) {
        let schema = Builtins::load().schema_of(*DEPLOYMENT);
        strategic(&live, &patch, schema);
        tracked(&live, &patch, ObjectType::builtin(schema, &ZERO), ("apps/v1", "Deployment"));
    }
    let schema = WIDGET.typed_schema();
    tracked(&live, &patch, ObjectType::custom(schema), ("example.com/v1", "Widget"));
}

/// The document as the store would have it as a deployment.
fn deployment(document: Value) -> Option<Value> {
    conform::conform(DEPLOYMENT.type_id, document).ok().map(|conformed| conformed.value)
}

fn bytes_of(value: &Value) -> usize {
    serde_json::to_vec(value).expect("a value in memory has a JSON text").len()
}

/// A document that can be stored and is not larger than it may be.
fn kept(document: &Value, most: usize) {
    let written = serde_json::to_vec(document).expect("a value in memory has a JSON text");
    stored_and_read(document, &written);
    assert!(written.len() <= most, "{} bytes where at most {most} were expected", written.len());
}

/// The patches that know no schema.
fn plain(live: &Value, patch: &Value) {
    let sent = bytes_of(live) + bytes_of(patch);
    match json_patch(live, patch) {
        Ok(patched) => kept(&patched, sent + MAX_COPY_BYTES + AROUND),
        Err(error) => refused(&error),
    }
    if let Err(error) = check_merge_patch(patch) {
        return refused(&error);
    }
    let mut merged = live.clone();
    merge_patch(&mut merged, patch);
    assert!(merged.is_object(), "an object merged into anything is an object");
    kept(&merged, sent + AROUND);
    // A real server leaves nulls in a list that replaces an object, and takes them out of one that replaces a list.
    merge_patch(&mut merged, patch);
    let twice = merged.clone();
    merge_patch(&mut merged, patch);
    assert_eq!(merged, twice, "merging the same again changes nothing");
}

fn strategic(live: &Value, patch: &Value, schema: Schema<'_>) {
    match strategic_merge(live, patch, schema) {
        Ok(merged) => {
            assert!(merged.is_object(), "an object stays one");
            // A merge key may be given once and stand in several items.
            kept(&merged, (bytes_of(live) + bytes_of(patch)) * 2 + AROUND);
        }
        Err(error) => refused(&error),
    }
}

fn refused(error: &PatchError) {
    assert!(
        (400..=500).contains(&error.code()) && !error.to_string().is_empty(),
        "a refusal says what is wrong"
    );
}

/// A writer of a kind at a fixed time.
fn writer<'a>(manager: &'a str, operation: Operation, api_version: &'a str) -> Writer<'a> {
    Writer { manager, operation, api_version, subresource: None, now: "2026-01-02T03:04:05Z" }
}

/// The patch as an update and as an apply of an object of this type.
fn tracked(live: &Value, patch: &Value, of: ObjectType<'_>, (api_version, kind): (&str, &str)) {
    let named = |document: &Value| {
        let mut fields = document.as_object().cloned().unwrap_or_else(Map::new);
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
        Value::Object(fields)
    };
    let (mut live, patch) = (named(live), named(patch));
    // What is stored was written by us: its entries can be read.
    if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.get("managedFields").is_some_and(|entries| validate_managed_fields(entries).is_err())
    {
        metadata.remove("managedFields");
    }
    let most = (bytes_of(&live) + bytes_of(&patch)) * OWNED + AROUND;

    let updating = writer("edit", Operation::Update, api_version);
    for live in [None, Some(&live)] {
        let mut new = live.cloned().unwrap_or_else(|| named(&Value::Null));
        merge_patch(&mut new, &patch);
        // A merge may take the kind away; what reads the result puts it back.
        let mut new = named(&new);
        track_update(live, &mut new, of, &updating, &[&["status"]]);
        owned(&new, most);
        if live.is_some() {
            let mut again = new.clone();
            track_update(Some(&new), &mut again, of, &updating, &[&["status"]]);
            assert_eq!(again, new, "an update without a change changes no owner");
        }
    }

    let applying = writer("apply", Operation::Apply, api_version);
    for (live, force) in [(None, false), (Some(&live), false), (Some(&live), true)] {
        match apply(live, &patch, of, &applying, force, &[&["status"]]) {
            Ok(applied) => {
                assert!(applied.is_object(), "an object stays one");
                owned(&applied, most);
                // What is left of a map whose last field was let go is a null, until it is applied once more.
                let again = |live: &Value| apply(Some(live), &patch, of, &applying, force, &[&["status"]]);
                let twice = again(&applied).expect("what was applied can be applied again");
                assert_eq!(again(&twice).as_ref(), Ok(&twice), "applying the same again changes nothing");
            }
            Err(ApplyError::Conflicts(conflicts)) => {
                assert!(!force && !conflicts.0.is_empty(), "who forces has no conflicts");
            }
            Err(error) => assert!(!error.to_string().is_empty(), "a refusal says what is wrong"),
        }
    }
}

/// An object whose entries can be read again.
fn owned(object: &Value, most: usize) {
    kept(object, most);
    if let Some(entries) = object.pointer("/metadata/managedFields") {
        assert_eq!(validate_managed_fields(entries), Ok(()), "entries are read as they were written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deployment_among_the_seeds_is_merged_by_the_keys_of_its_lists() {
        let seed = include_bytes!("../corpus/patches/strategic");
        let documents: Vec<Value> = parts(seed).map(|part| json::read(part).unwrap().value).collect();
        let live = deployment(documents[0].clone()).unwrap();
        let merged = strategic_merge(&live, &documents[1], Builtins::load().schema_of(*DEPLOYMENT)).unwrap();
        let images = merged["spec"]["template"]["spec"]["containers"].as_array().unwrap().iter();
        let images: Vec<&str> = images.map(|container| container["image"].as_str().unwrap()).collect();
        assert_eq!(images, ["web:2", "log:1"]);
    }
}
