//! What holds for every body and every patch, however odd.

use berth_hub_wire::PatchType;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::act::{Act, Part};
use super::delete::{self, Terms};
use super::fixtures::{act, builtin, created, patched, placement, placements, stored, updated};
use super::outcome::{Answer, Step};

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z./]{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("status"),
        Just("name"),
        Just("labels"),
        Just("finalizers"),
        Just("numberOfClusters"),
        Just("data"),
        Just("x"),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A body that is at least an object of the right kind.
fn body(extra: Value) -> Value {
    let mut body = placement("p", json!({}));
    if let Value::Object(extra) = extra {
        for (field, value) in extra {
            body[field] = value;
        }
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_body_is_made_or_refused(extra in json_value()) {
        let placements = placements();
        if let Ok(outcome) = created(&act(&placements, ""), &body(extra)) {
            let made = outcome.object().unwrap();
            prop_assert_eq!(&made["metadata"]["namespace"], "default");
            prop_assert_eq!(&made["metadata"]["generation"], 1);
            prop_assert_eq!(made.get("status"), None);
        }
    }

    #[test]
    fn no_patch_changes_who_an_object_is(patch in json_value(), strategic: bool, status: bool) {
        let configs = builtin("", "configmaps");
        let placements = placements();
        let act = act(if strategic { &configs } else { &placements }, "p");
        let live = if strategic {
            stored(&act, &json!({"metadata": {"name": "p"}, "data": {"a": "b"}}), "5")
        } else {
            stored(&act, &placement("p", json!({})), "5")
        };
        let part = if status && !strategic { Part::Status } else { Part::Whole };
        let act = Act { part, ..act };
        let kind = if strategic { PatchType::StrategicMerge } else { PatchType::Merge };
        if let Ok(outcome) = patched(&act, kind, &patch.to_string(), Some(&live)) {
            let after = outcome.object().unwrap_or(&live);
            for field in ["name", "namespace", "uid", "creationTimestamp", "resourceVersion"] {
                prop_assert_eq!(&after["metadata"][field], &live["metadata"][field]);
            }
            if part == Part::Status {
                prop_assert_eq!(&after["spec"], &live["spec"]);
            } else {
                prop_assert_eq!(after.get("status"), live.get("status"));
            }
        }
    }

    #[test]
    fn what_was_written_is_not_new_when_it_is_written_again(extra in json_value()) {
        let placements = placements();
        let Ok(outcome) = created(&act(&placements, ""), &body(extra)) else { return Ok(()) };
        let mut live = outcome.object().unwrap().clone();
        live["metadata"]["resourceVersion"] = "5".into();
        // Any name may have been among what was given.
        let name = live["metadata"]["name"].as_str().unwrap();
        let again = updated(&act(&placements, name), &live, Some(&live)).unwrap();
        prop_assert_eq!((again.steps, again.answer), (Vec::new(), Answer::Live));
    }

    #[test]
    fn a_deletion_removes_exactly_what_nothing_holds(held: bool, orphan: Option<bool>) {
        let placements = placements();
        let act = act(&placements, "p");
        let mut object = placement("p", json!({}));
        if held {
            object["metadata"]["finalizers"] = json!(["x.io/f"]);
        }
        let live = stored(&act, &object, "5");
        let terms = Terms { orphan_dependents: orphan, ..Terms::default() };
        let outcome = delete::decide(&act, &terms, &live).unwrap();
        let removed = matches!(outcome.steps.last(), Some(Step::Remove(_)));
        prop_assert_eq!(removed, !held && orphan != Some(true));
    }
}
