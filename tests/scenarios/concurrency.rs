//! Several writers at once: nothing that was acknowledged is lost, and of several only one wins.

use std::collections::BTreeSet;

use berth_bed::{Bed, scenario};
use futures::future::join_all;
use http::Method;
use serde_json::{Value, json};

use crate::caller::{Answer, Caller, core, grouped, map, text};

/// How many write at once.
const WRITERS: usize = 8;

/// A lease as one candidate would have it.
fn lease(holder: &str, transitions: u64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": transitions},
    })
}

scenario! {
    managed async fn no_increment_of_a_counter_is_lost(bed: &Bed) {
        const EACH: u64 = 10;
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("counter").await);
        let path = core(&namespace, "configmaps/counter");
        caller.post(&core(&namespace, "configmaps"), &map("counter", "0")).await.ok();
        let conflicts = join_all((0..WRITERS).map(async |_| {
            let mut conflicts = 0_u64;
            for _ in 0..EACH {
                loop {
                    let mut counter = caller.get(&path).await.ok();
                    let value: u64 = text(&counter, "/data/value").parse().unwrap();
                    counter["data"]["value"] = json!((value + 1).to_string());
                    let answer = caller.put(&path, &counter).await;
                    if answer.code == 409 {
                        assert_eq!(answer.refused(409).reason(), "Conflict");
                        conflicts += 1;
                    } else {
                        answer.ok();
                        break;
                    }
                }
            }
            conflicts
        }))
        .await;
        let counter = caller.get(&path).await.ok();
        assert_eq!(text(&counter, "/data/value"), (EACH * WRITERS as u64).to_string());
        assert!(conflicts.iter().sum::<u64>() > 0, "writers that never met prove nothing");
    }

    managed async fn patches_at_the_same_time_all_take_effect(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("patches").await);
        caller.post(&core(&namespace, "configmaps"), &map("shared", "")).await.ok();
        let path = core(&namespace, "configmaps/shared");
        let patched = (0..WRITERS).map(async |writer| {
            caller.merge(&path, &json!({"data": {(format!("by-{writer}")): "x"}})).await.ok();
        });
        join_all(patched).await;
        let data = caller.get(&path).await.ok()["data"].as_object().unwrap().len();
        assert_eq!(data, WRITERS + 1);
    }

    managed async fn of_patches_that_test_the_same_value_one_succeeds(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("tests").await);
        caller.post(&core(&namespace, "configmaps"), &map("shared", "free")).await.ok();
        let path = core(&namespace, "configmaps/shared");
        let codes = join_all((0..WRITERS).map(async |writer| {
            let patch = json!([
                {"op": "test", "path": "/data/value", "value": "free"},
                {"op": "replace", "path": "/data/value", "value": format!("taken by {writer}")},
            ]);
            let headers = [("content-type", "application/json-patch+json")];
            caller.send(Method::PATCH, &path, &headers, Some(patch.to_string())).await.code
        }))
        .await;
        assert_eq!(codes.iter().filter(|code| **code == 200).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == 422).count(), WRITERS - 1, "{codes:?}");
    }

    managed async fn two_appliers_share_an_object_until_they_disagree(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("apply").await);
        let path = core(&namespace, "configmaps/shared");
        let apply = async |manager: &str, data: Value, force: bool| {
            let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": data});
            caller.apply_to(&format!("{path}?fieldManager={manager}&force={force}"), &config).await
        };
        let first = apply("one", json!({"a": "1", "b": "1"}), false).await;
        assert_eq!(first.code, 201);
        apply("two", json!({"c": "2"}), false).await.ok();
        let refusal = apply("two", json!({"b": "2", "c": "2"}), false).await.refused(409);
        assert_eq!(refusal.causes(), ["FieldManagerConflict"]);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], ".data.b");
        assert_eq!(refusal.message(), "Apply failed with 1 conflict: conflict with \"one\": .data.b");

        // The same value is no conflict: it is shared, and stays until both let go of it.
        apply("two", json!({"b": "1", "c": "2"}), false).await.ok();
        let left = apply("one", json!({"a": "1"}), false).await.ok();
        assert_eq!(left["data"], json!({"a": "1", "b": "1", "c": "2"}));
        let left = apply("two", json!({"c": "2"}), false).await.ok();
        assert_eq!(left["data"], json!({"a": "1", "c": "2"}));

        // Force takes the field away from the other.
        let taken = apply("two", json!({"a": "2"}), true).await.ok();
        assert_eq!(taken["data"], json!({"a": "2"}));
        let managers: BTreeSet<_> = taken["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (text(entry, "/manager"), text(entry, "/operation")))
            .collect();
        assert_eq!(managers, BTreeSet::from([("two", "Apply")]));
        apply("one", json!({"a": "1"}), false).await.refused(409);
    }

    managed async fn appliers_at_the_same_time_keep_each_others_fields(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("applies").await);
        let path = core(&namespace, "configmaps/shared");
        let applied = (0..WRITERS).map(async |writer| {
            let data = json!({(format!("by-{writer}")): "x"});
            let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": data});
            caller.apply_to(&format!("{path}?fieldManager=w{writer}"), &config).await.ok();
        });
        join_all(applied).await;
        let object = caller.get(&path).await.ok();
        assert_eq!(object["data"].as_object().unwrap().len(), WRITERS);
        assert_eq!(object["metadata"]["managedFields"].as_array().unwrap().len(), WRITERS);
    }

    managed async fn one_candidate_becomes_the_leader(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("election").await);
        let leases = grouped("coordination.k8s.io/v1", &namespace, "leases");
        let candidates: Vec<String> = (0..WRITERS).map(|number| format!("candidate-{number}")).collect();
        let made =
            join_all(candidates.iter().map(async |name| caller.post(&leases, &lease(name, 0)).await)).await;
        let mut held: Vec<Value> =
            made.into_iter().filter(|answer| answer.code != 409).map(Answer::ok).collect();
        assert_eq!(held.len(), 1);

        // Each round all see the same expired lease and try to take it over.
        let path = format!("{leases}/leader");
        let mut current = held.remove(0);
        for round in 1..=5 {
            let takes = join_all(candidates.iter().map(async |name| {
                let mut wanted = lease(name, round);
                wanted["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
                caller.put(&path, &wanted).await
            }))
            .await;
            let (won, lost): (Vec<_>, Vec<_>) = takes.into_iter().partition(|answer| answer.code == 200);
            assert_eq!((won.len(), lost.len()), (1, WRITERS - 1), "round {round}");
            assert!(
                lost.iter().all(|answer| answer.code == 409 && answer.body["reason"] == "Conflict"),
                "{lost:?}"
            );
            current = caller.get(&path).await.ok();
            assert_eq!(current["spec"], won[0].body["spec"]);
        }
        // A lease cannot be taken blindly.
        let refusal = caller.put(&path, &lease("usurper", 9)).await.refused(422);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], "metadata.resourceVersion");
    }

    managed async fn generated_names_never_collide(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("generated").await);
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "one-of-many-"}});
        let made = join_all(
            (0..WRITERS * 4).map(async |_| caller.post(&core(&namespace, "configmaps"), &object).await.ok()),
        )
        .await;
        let names: BTreeSet<&str> = made.iter().map(|object| text(object, "/metadata/name")).collect();
        assert_eq!(names.len(), WRITERS * 4);
        let revisions: BTreeSet<&str> =
            made.iter().map(|object| text(object, "/metadata/resourceVersion")).collect();
        assert_eq!(revisions.len(), WRITERS * 4);
    }
}
