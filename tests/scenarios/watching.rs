//! Lists and watches: what a client that follows a kind is told, and that it can go on from where it was.

use berth_bed::{Bed, Kind, scenario};
use serde_json::{Value, json};

use crate::caller::{Caller, core, text};

async fn labelled(caller: &Caller, namespace: &str, name: &str, color: &str) -> Value {
    // Secrets, because nobody else makes one: every namespace is given a ConfigMap.
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"color": color}},
        "data": {"value": ""},
    });
    caller.post(&core(namespace, "secrets"), &object).await.ok()
}

async fn paint(caller: &Caller, namespace: &str, name: &str, color: &str) {
    let patch = json!({"metadata": {"labels": {"color": color}}});
    caller.merge(&core(namespace, &format!("secrets/{name}")), &patch).await.ok();
}

fn event(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|object| text(object, "/metadata/name")).collect()
}

fn revision(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap()
}

scenario! {
    managed async fn a_watch_goes_on_from_the_list(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("following").await);
        let secrets = core(&namespace, "secrets");
        labelled(&caller, &namespace, "before", "red").await;
        let list = caller.get(&secrets).await.ok();
        let from = text(&list, "/metadata/resourceVersion");
        let query = format!("{secrets}?resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=6");
        labelled(&caller, &namespace, "after", "red").await;
        let mut watch = caller.watch(&query).await;
        assert_eq!(watch.step().await, event("ADDED", "after"));
        paint(&caller, &namespace, "before", "blue").await;
        assert_eq!(watch.step().await, event("MODIFIED", "before"));
        let deleted = caller.delete(&core(&namespace, "secrets/after")).await;
        deleted.ok();
        let gone = watch.next().await;
        assert_eq!(gone["type"], "DELETED");
        assert!(revision(&gone["object"]) > revision(&list), "a deletion has a revision of its own");
        // Before a watch ends it says how far it has come.
        let bookmark = watch.next().await;
        assert_eq!(bookmark["type"], "BOOKMARK");
        assert_eq!(
            (&bookmark["object"]["kind"], &bookmark["object"]["apiVersion"]),
            (&json!("Secret"), &json!("v1"))
        );
        assert!(revision(&bookmark["object"]) >= revision(&gone["object"]), "{bookmark}");
    }

    managed async fn a_watch_without_a_revision_begins_with_what_is_there(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("now").await);
        for name in ["a", "b"] {
            labelled(&caller, &namespace, name, "red").await;
        }
        let mut watch = caller.watch(&core(&namespace, "secrets")).await;
        let mut seen = [watch.step().await, watch.step().await];
        seen.sort();
        assert_eq!(seen, [event("ADDED", "a"), event("ADDED", "b")]);
        labelled(&caller, &namespace, "c", "red").await;
        assert_eq!(watch.step().await, event("ADDED", "c"));
    }

    managed async fn a_list_can_be_a_watch(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("streamed").await);
        for name in ["a", "b"] {
            labelled(&caller, &namespace, name, "red").await;
        }
        let last = labelled(&caller, &namespace, "c", "blue").await;
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=color%3Dred";
        let mut watch = caller.watch(&core(&namespace, &format!("secrets?{query}"))).await;
        assert_eq!(watch.step().await, event("ADDED", "a"));
        assert_eq!(watch.step().await, event("ADDED", "b"));
        let end = watch.next().await;
        assert_eq!(end["type"], "BOOKMARK");
        assert_eq!(end["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
        assert!(revision(&end["object"]) >= revision(&last), "{end}");
        paint(&caller, &namespace, "c", "red").await;
        assert_eq!(watch.step().await, event("ADDED", "c"));

        let wrong = core(&namespace, "secrets?watch=true&sendInitialEvents=true");
        let refusal = caller.get(&wrong).await.refused(422);
        assert!(refusal.message().contains("resourceVersionMatch"), "{refusal:?}");
    }

    managed async fn objects_enter_and_leave_what_is_selected(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("selected").await);
        let object = labelled(&caller, &namespace, "a", "blue").await;
        let from = revision(&object);
        let query = core(&namespace, &format!("secrets?labelSelector=color%3Dred&resourceVersion={from}"));
        let mut watch = caller.watch(&query).await;
        paint(&caller, &namespace, "a", "red").await;
        assert_eq!(watch.step().await, event("ADDED", "a"));
        paint(&caller, &namespace, "a", "green").await;
        let left = watch.next().await;
        assert_eq!(
            (&left["type"], &left["object"]["metadata"]["labels"]["color"]),
            (&json!("DELETED"), &json!("red"))
        );
        let now = caller.get(&core(&namespace, "secrets/a")).await.ok();
        assert_eq!(revision(&left["object"]), revision(&now), "as it was, at the revision at which it left");
        paint(&caller, &namespace, "a", "red").await;
        assert_eq!(watch.step().await, event("ADDED", "a"));
        caller.delete(&core(&namespace, "secrets/a")).await.ok();
        assert_eq!(watch.step().await, event("DELETED", "a"));
    }

    managed async fn fields_select_as_labels_do(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("fields").await);
        let pod = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
        for name in ["a", "b"] {
            caller.post(&core(&namespace, "pods"), &pod(name)).await.ok();
        }
        let list =
            caller.get(&core(&namespace, "pods?fieldSelector=metadata.name%3Db,spec.nodeName%3D")).await.ok();
        assert_eq!(names(&list), ["b"]);
        let from = text(&list, "/metadata/resourceVersion");
        let query = format!("pods?fieldSelector=status.phase%3DRunning&resourceVersion={from}");
        let mut watch = caller.watch(&core(&namespace, &query)).await;
        let phase = |phase: &str| json!({"status": {"phase": phase}});
        caller.merge(&core(&namespace, "pods/a/status"), &phase("Running")).await.ok();
        assert_eq!(watch.step().await, event("ADDED", "a"));
        caller.merge(&core(&namespace, "pods/a/status"), &phase("Succeeded")).await.ok();
        assert_eq!(watch.step().await, event("DELETED", "a"));
        let refusal =
            caller.get(&core(&namespace, "pods?fieldSelector=spec.containers%3Da")).await.refused(400);
        assert!(refusal.message().contains("field label not supported: spec.containers"), "{refusal:?}");
    }

    managed async fn metadata_can_be_had_alone(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("metadata").await);
        let made = labelled(&caller, &namespace, "a", "red").await;
        let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let list = caller.get_as(&core(&namespace, "secrets"), accept).await.ok();
        assert_eq!(
            (&list["kind"], &list["apiVersion"]),
            (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1"))
        );
        assert_eq!(list["items"][0]["metadata"], made["metadata"]);
        assert!(list["items"][0].get("data").is_none());
        let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let one = caller.get_as(&core(&namespace, "secrets/a"), accept).await.ok();
        assert_eq!((&one["kind"], &one["metadata"]), (&json!("PartialObjectMetadata"), &made["metadata"]));
        let from = revision(&made);
        let query = core(&namespace, &format!("secrets?resourceVersion={from}"));
        let mut watch = caller.watch_as(&query, accept).await;
        paint(&caller, &namespace, "a", "blue").await;
        let changed = watch.next().await;
        assert_eq!(changed["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(changed["object"]["metadata"]["labels"]["color"], "blue");
        assert!(changed["object"].get("data").is_none());
    }

    managed async fn pages_are_of_one_moment(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("pages").await);
        for name in ["a", "c", "e"] {
            labelled(&caller, &namespace, name, "red").await;
        }
        let secrets = core(&namespace, "secrets");
        let first = caller.get(&format!("{secrets}?limit=2")).await.ok();
        assert_eq!(names(&first), ["a", "c"]);
        assert_eq!(first["metadata"]["remainingItemCount"], 1);
        labelled(&caller, &namespace, "d", "red").await;
        caller.delete(&core(&namespace, "secrets/e")).await.ok();
        let token = text(&first, "/metadata/continue");
        let second = caller.get(&format!("{secrets}?limit=2&continue={token}")).await.ok();
        assert_eq!(names(&second), ["e"], "neither what came nor what went since");
        assert_eq!(revision(&second), revision(&first));
        assert!(second["metadata"].get("continue").is_none_or(|token| token == ""), "{second}");
        assert_eq!(names(&caller.get(&secrets).await.ok()), ["a", "c", "d"]);
    }

    managed async fn a_revision_that_is_not_there_yet_is_waited_for_and_then_given_up(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("future").await);
        let now = revision(&labelled(&caller, &namespace, "a", "red").await);
        let query = format!("secrets?resourceVersion={}", now + 1_000_000);
        let refusal = caller.get(&core(&namespace, &query)).await.refused(504);
        assert_eq!((refusal.reason(), refusal.causes()), ("Timeout", vec!["ResourceVersionTooLarge"]));
        let list = caller
            .get(&core(&namespace, &format!("secrets?resourceVersion={now}&resourceVersionMatch=Exact")))
            .await
            .ok();
        assert_eq!((revision(&list), names(&list)), (now, vec!["a"]));
    }

    async fn a_watch_misses_nothing_when_the_server_ends_and_begins_again(bed: &mut Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("restarted").await);
        let secrets = core(&namespace, "secrets");
        let seen = labelled(&caller, &namespace, "seen", "red").await;
        let from = revision(&seen);
        let mut watch = caller.watch(&format!("{secrets}?resourceVersion={from}")).await;
        labelled(&caller, &namespace, "before", "red").await;
        assert_eq!(watch.step().await, event("ADDED", "before"));
        drop(watch);
        caller.delete(&core(&namespace, "secrets/before")).await.ok();
        bed.kill();
        bed.start().await.unwrap();

        let caller = Caller::admin(bed);
        let mut watch = caller.watch(&format!("{secrets}?resourceVersion={from}")).await;
        match bed.kind() {
            Kind::Hub => {
                assert_eq!(watch.step().await, event("ADDED", "before"));
                assert_eq!(watch.step().await, event("DELETED", "before"));
                labelled(&caller, &namespace, "after", "red").await;
                assert_eq!(watch.step().await, event("ADDED", "after"));
            }
            // kube-apiserver begins with an empty watch cache, and says that the revision is too old for it.
            Kind::Kubernetes => {
                let told = watch.next().await;
                assert_eq!(
                    (&told["type"], &told["object"]["code"]),
                    (&json!("ERROR"), &json!(410)),
                    "{told}"
                );
                assert_eq!(told["object"]["reason"], "Expired");
                let list = caller.get(&secrets).await.ok();
                assert_eq!(names(&list), ["seen"]);
                labelled(&caller, &namespace, "after", "red").await;
                let query = format!("{secrets}?resourceVersion={}", text(&list, "/metadata/resourceVersion"));
                assert_eq!(caller.watch(&query).await.step().await, event("ADDED", "after"));
            }
        }
    }
}
