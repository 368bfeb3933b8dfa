//! Events: one storage, seen through two API groups.

use berth_bed::{Bed, scenario};
use serde_json::{Value, json};

use crate::caller::{Caller, core, grouped, text};

const GROUP: &str = "events.k8s.io/v1";

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|object| text(object, "/metadata/name")).collect()
}

scenario! {
    managed async fn an_event_of_the_core_group_is_seen_in_the_other(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("events").await);
        let regarding = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": namespace});
        let made = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1"},
            "involvedObject": regarding, "reason": "Started", "message": "it runs", "type": "Normal", "count": 3,
            "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:05:05Z",
        });
        let made = caller.post(&core(&namespace, "events"), &made).await.ok();
        let seen = caller.get(&grouped(GROUP, &namespace, "events/web.1")).await.ok();
        assert_eq!((&seen["apiVersion"], &seen["kind"]), (&json!(GROUP), &json!("Event")));
        assert_eq!(seen["metadata"]["uid"], made["metadata"]["uid"]);
        assert_eq!(seen["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
        assert_eq!((&seen["regarding"], &seen["note"]), (&regarding, &json!("it runs")));
        assert_eq!((&seen["reason"], &seen["type"]), (&json!("Started"), &json!("Normal")));
        assert_eq!(seen["deprecatedSource"], json!({"component": "kubelet", "host": "n1"}));
        assert_eq!(seen["deprecatedCount"], 3);
        assert_eq!(seen["deprecatedFirstTimestamp"], "2026-01-02T03:04:05Z");
        assert_eq!(seen["deprecatedLastTimestamp"], "2026-01-02T03:05:05Z");
        for theirs in ["involvedObject", "message", "source", "count", "firstTimestamp"] {
            assert!(seen.get(theirs).is_none(), "{theirs} in {seen}");
        }
    }

    managed async fn an_event_of_the_newer_group_is_seen_in_the_core_group(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("events").await);
        let events = grouped(GROUP, &namespace, "events");
        let mut made = json!({
            "apiVersion": GROUP, "kind": "Event", "metadata": {"name": "web.2"},
            "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": namespace},
            "related": {"kind": "Node", "name": "n1"},
            "reason": "Moved", "note": "to another node", "type": "Warning", "action": "Move",
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "reportingController": "berth.dev/mover", "reportingInstance": "mover-0",
        });
        caller.post(&events, &made).await.ok();
        let path = core(&namespace, "events/web.2");
        let seen = caller.get(&path).await.ok();
        assert_eq!((&seen["message"], &seen["reason"]), (&json!("to another node"), &json!("Moved")));
        assert_eq!((text(&seen, "/involvedObject/name"), text(&seen, "/related/name")), ("web", "n1"));
        assert_eq!(
            (&seen["reportingComponent"], &seen["reportingInstance"]),
            (&json!("berth.dev/mover"), &json!("mover-0"))
        );
        assert_eq!(
            (&seen["eventTime"], &seen["action"]),
            (&json!("2026-01-02T03:04:05.000006Z"), &json!("Move"))
        );

        // A recorder counts repetitions by patches.
        let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:14:05.000006Z"}});
        caller.merge(&format!("{events}/web.2"), &series).await.ok();
        assert_eq!(caller.get(&path).await.ok()["series"], series["series"]);

        // The newer group asks for more.
        made["metadata"]["name"] = json!("web.3");
        made.as_object_mut().unwrap().remove("reportingController");
        let refusal = caller.post(&events, &made).await.refused(422);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], "reportingController");
        let immutable =
            caller.merge(&format!("{events}/web.2"), &json!({"note": "elsewhere"})).await.refused(422);
        assert!(immutable.message().contains("field is immutable"), "{immutable:?}");
    }

    managed async fn both_groups_list_select_and_watch_the_same_events(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("events").await);
        let ours = core(&namespace, "events");
        let event = |name: &str, about: &str| {
            json!({
                "metadata": {"name": name}, "involvedObject": {"kind": "Pod", "name": about, "namespace": namespace},
                "reason": "Started", "type": "Normal",
            })
        };
        let first = caller.post(&ours, &event("a", "web")).await.ok();
        let from = text(&first, "/metadata/resourceVersion");
        let mut watch =
            caller.watch(&grouped(GROUP, &namespace, &format!("events?resourceVersion={from}"))).await;
        caller.post(&ours, &event("b", "db")).await.ok();
        let seen = watch.next().await;
        assert_eq!(
            (&seen["object"]["apiVersion"], &seen["object"]["regarding"]["name"]),
            (&json!(GROUP), &json!("db"))
        );

        let selected = caller.get(&format!("{ours}?fieldSelector=involvedObject.name%3Dweb")).await.ok();
        assert_eq!(names(&selected), ["a"]);
        let theirs = grouped(GROUP, &namespace, "events?fieldSelector=regarding.name%3Ddb");
        assert_eq!(names(&caller.get(&theirs).await.ok()), ["b"]);
        caller.delete(&grouped(GROUP, &namespace, "events/a")).await.ok();
        caller.get(&core(&namespace, "events/a")).await.refused(404);
    }

    managed async fn an_event_is_about_something_in_its_own_namespace(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("events").await);
        let stray = json!({
            "metadata": {"name": "stray"}, "involvedObject": {"kind": "Pod", "name": "web", "namespace": "elsewhere"},
            "reason": "Started", "type": "Normal",
        });
        let refusal = caller.post(&core(&namespace, "events"), &stray).await.refused(422);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], "involvedObject.namespace");
    }
}
