//! What holds for every object and every configuration.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "replay/thing.rs"]
mod thing;

use berth_hub_merge::{ApplyError, Operation, Writer, apply, json_patch, merge_patch, track_update};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const VERSION: &str = "berth.test/v1";
const MAIN: &[&[&str]] = &[&["status"]];

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::btree_set(prop::sample::select(vec!["a", "b", "c", "d"]), 1..4)
        .prop_map(|texts| texts.into_iter().map(Value::from).collect())
}

fn items() -> impl Strategy<Value = Value> {
    let item = (prop::option::of(prop::sample::select(vec!["1", "2"])), prop::option::of(texts()));
    prop::collection::btree_map(prop::sample::select(vec!["x", "y", "z"]), item, 1..3).prop_map(|items| {
        let item = |(name, (value, tags)): (&str, (Option<&str>, Option<Value>))| {
            let mut item = json!({"name": name});
            item.as_object_mut().unwrap().extend(value.map(|value| ("value".to_owned(), json!(value))));
            item.as_object_mut().unwrap().extend(tags.map(|tags| ("tags".to_owned(), tags)));
            item
        };
        items.into_iter().map(item).collect()
    })
}

/// A part of a spec, from the fields that may be in it.
fn spec(fields: &[&'static str]) -> impl Strategy<Value = Map<String, Value>> {
    let chosen = prop::sample::subsequence(fields.to_vec(), 0..=fields.len());
    (chosen, texts(), items(), 0..3_i64, prop::sample::select(vec!["n", "m"])).prop_map(
        |(chosen, texts, items, count, text)| {
            let value = |name: &str| match name {
                "count" => json!(count),
                "name" => json!(text),
                "on" => json!(count > 1),
                "atomic" => json!({"x": text}),
                "labels" => json!({text: "1"}),
                "obj" => json!({"a": text, "b": {"d": count}}),
                "items" => items.clone(),
                _ => texts.clone(),
            };
            chosen.iter().map(|name| ((*name).to_owned(), value(name))).collect()
        },
    )
}

const FIELDS: [&str; 9] = ["count", "name", "on", "atomic", "labels", "obj", "items", "set", "list"];

/// An object; without anything in its spec it has none.
fn object(spec: &Map<String, Value>) -> Value {
    let mut object = json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "t"}});
    if !spec.is_empty() {
        object["spec"] = json!(spec);
    }
    object
}

fn applied(
    live: Option<&Value>,
    manager: &str,
    spec: &Map<String, Value>,
    force: bool,
) -> Result<Value, ApplyError> {
    let (arena, root) = thing::thing();
    let writer = Writer {
        manager,
        operation: Operation::Apply,
        api_version: VERSION,
        subresource: None,
        now: "2026-01-01T00:00:00Z",
    };
    let mut result = apply(live, &object(spec), arena.schema(root), &writer, force, MAIN)?;
    result["metadata"]["uid"] = json!("u");
    Ok(result)
}

fn updated(live: Option<&Value>, manager: &str, mut new: Value) -> Value {
    let (arena, root) = thing::thing();
    let writer = Writer {
        manager,
        operation: Operation::Update,
        api_version: VERSION,
        subresource: None,
        now: "2026-01-01T00:00:00Z",
    };
    track_update(live, &mut new, arena.schema(root), &writer, MAIN);
    new["metadata"]["uid"] = json!("u");
    new
}

/// What was taken out may leave an empty container or a null behind; neither says anything.
fn meaning(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| (name.clone(), meaning(field)));
            Value::Object(fields.filter(|(_, field)| !field.is_null()).collect())
        }
        other => other.clone(),
    }
}

/// Lists without their order, in which merging is free.
fn unordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), unordered(field))).collect()
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(unordered).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn applying_again_changes_nothing(a in spec(&FIELDS), b in spec(&FIELDS)) {
        let first = applied(None, "a", &a, false).unwrap();
        let second = applied(Some(&first), "b", &b, true).unwrap();
        let again = applied(Some(&second), "b", &b, true).unwrap();
        prop_assert_eq!(&again, &second);
        // And needs no force: everything is its own by now.
        prop_assert_eq!(applied(Some(&second), "b", &b, false).unwrap(), second);
    }

    #[test]
    fn appliers_of_different_fields_commute(
        a in spec(&["count", "labels", "items", "set"]),
        b in spec(&["name", "on", "atomic", "obj", "list"]),
    ) {
        let one = applied(Some(&applied(None, "a", &a, false).unwrap()), "b", &b, false).unwrap();
        let other = applied(Some(&applied(None, "b", &b, false).unwrap()), "a", &a, false).unwrap();
        prop_assert_eq!(unordered(&one["spec"]), unordered(&other["spec"]));
        // A configuration that changes nothing leaves no time; apart from that, the entries agree.
        let entries = |object: &Value| {
            let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            entries.into_iter().map(|entry| (entry["manager"].clone(), entry["fieldsV1"].clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(unordered(&json!(entries(&one))), unordered(&json!(entries(&other))));
    }

    #[test]
    fn letting_go_of_everything_leaves_what_the_others_applied(a in spec(&FIELDS), b in spec(&FIELDS)) {
        let only_b = applied(None, "b", &b, false).unwrap();
        let both = applied(Some(&only_b), "a", &a, true).unwrap();
        let let_go = applied(Some(&both), "a", &Map::new(), true).unwrap();
        let managers: Vec<_> =
            let_go["metadata"]["managedFields"].as_array().into_iter().flatten().map(|entry| &entry["manager"]).collect();
        prop_assert!(!managers.contains(&&json!("a")));
        // What is left is b's: applying it again as a new object gives the same fields, where a did not take any.
        if applied(Some(&only_b), "a", &a, false).is_ok() {
            prop_assert_eq!(unordered(&meaning(&let_go["spec"])), unordered(&meaning(&only_b["spec"])));
        }
    }

    #[test]
    fn an_update_with_nothing_new_is_no_update(a in spec(&FIELDS), b in spec(&FIELDS)) {
        let live = updated(None, "a", object(&a));
        let mut new = object(&b);
        new["metadata"]["uid"] = json!("u");
        let next = updated(Some(&live), "b", new);
        prop_assert_eq!(&updated(Some(&next), "c", next.clone()), &next);
    }

    #[test]
    fn every_field_of_an_object_has_an_owner_after_any_two_updates(
        a in spec(&FIELDS),
        b in spec(&FIELDS),
    ) {
        // An object created with nothing in it is not tracked until something is applied to it.
        prop_assume!(!a.is_empty());
        let live = updated(None, "a", object(&a));
        let mut new = object(&b);
        new["metadata"]["uid"] = json!("u");
        let next = updated(Some(&live), "b", new);
        let entries = next["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        for name in b.keys() {
            let field = format!("f:{name}");
            prop_assert!(entries.iter().any(|entry| entry["fieldsV1"]["f:spec"].get(&field).is_some()), "{name}");
        }
        for entry in &entries {
            for name in entry["fieldsV1"]["f:spec"].as_object().into_iter().flatten().map(|(name, _)| name) {
                prop_assert!(name == "." || b.contains_key(&name[2..]), "{} is gone", name);
            }
        }
    }

    #[test]
    fn a_merge_patch_of_an_object_by_itself_is_itself_without_nulls(a in spec(&FIELDS)) {
        let object = object(&a);
        let mut merged = object.clone();
        merge_patch(&mut merged, &object);
        prop_assert_eq!(merged, object);
    }

    #[test]
    fn adding_and_removing_a_field_is_nothing(a in spec(&FIELDS)) {
        let mut object = object(&a);
        object["spec"]["count"] = json!(1);
        let patch = json!([
            {"op": "add", "path": "/spec/new", "value": 1},
            {"op": "move", "from": "/spec/new", "path": "/spec/newer"},
            {"op": "remove", "path": "/spec/newer"},
        ]);
        prop_assert_eq!(json_patch(&object, &patch).unwrap(), object);
    }
}
