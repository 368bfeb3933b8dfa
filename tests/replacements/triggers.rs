//! What makes members due besides taints, when they may go, and whom one policy may speak of.

use berth_tests::caller::text;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    ground::grounds,
    scene::{Scene, member, no_schedule, now, taints, with},
    set::Set,
};

/// Says something of a node in its status, as whoever looks after nodes does.
async fn condition_of(scene: &Scene, node: &str, kind: &str, status: &str) {
    let condition = json!({
        "type": kind, "status": status, "reason": "Scenario", "message": "",
        "lastHeartbeatTime": now(), "lastTransitionTime": now(),
    });
    let patch = json!({"status": {"conditions": [condition]}});
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    let path = format!("{}/status", scene.node_path(node));
    scene.caller.send(Method::PATCH, &path, &headers, Some(patch.to_string())).await.ok();
}

async fn cordon(scene: &Scene, node: &str) {
    scene.caller.merge(&scene.node_path(node), &json!({"spec": {"unschedulable": true}})).await.ok();
}

/// The time of day at which a schedule opens once a day, a while from now.
fn later(hours: i64) -> String {
    let at = Timestamp::now() + SignedDuration::from_hours(hours);
    at.strftime("%M %H * * *").to_string()
}

grounds! {
    /// A cordon alone makes nobody due, unless the policy names it: then it does, for as long as it says.
    beside async fn a_cordon_counts_only_where_the_policy_names_it(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("db", 2)).await;
        let slow = taints(&[("slow", 3600)], 0);
        scene.policy("p", slow.clone()).await;
        let before = scene.uids(&["db-0", "db-1"]).await;
        let (home, other) = (scene.home("db-0").await, scene.home("db-1").await);
        cordon(scene, &home).await;
        // What comes after it has been seen, so it was seen itself.
        scene.taint(&other, &[no_schedule("slow")]).await;
        let policy = scene.policy_is("p", "having seen both", |policy| !member(policy, "db-1").is_null()).await;
        assert!(member(&policy, "db-0").is_null(), "{policy}");
        scene.policy("p", with(slow, json!({"triggers": {"cordon": {"durationSeconds": 1}}}))).await;
        let policy = scene.policy_is("p", "having seen the cordon", |policy| !member(policy, "db-0").is_null()).await;
        assert_eq!(member(&policy, "db-0")["causes"][0]["kind"], "Cordon", "{policy}");
        let successor = scene.is_replaced("db-0", &before["db-0"]).await;
        assert_ne!(text(&successor, "/spec/nodeName"), scene.name(&home));
        scene.stays("db-1", &before["db-1"]).await;
    }

    /// A condition of the node makes its member due. A node that would take the successor back keeps it until it is cordoned,
    /// and a condition that says otherwise calls nobody.
    beside async fn a_condition_of_the_node_counts_once_it_takes_nobody_back(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        let condition = json!({"type": "MaintenanceInProgress", "status": "True", "durationSeconds": 1});
        scene.policy("p", json!({"triggers": {"nodeConditions": [condition]}})).await;
        let before = scene.uids(&["db-0", "db-1"]).await;
        let (home, other) = (scene.home("db-0").await, scene.home("db-1").await);
        condition_of(scene, &other, "MaintenanceInProgress", "False").await;
        condition_of(scene, &home, "MaintenanceInProgress", "True").await;
        let held = scene.held("p", "db-0", "the successor could go back to the same node").await;
        assert_eq!(held["causes"][0]["kind"], "NodeCondition", "{held}");
        scene.stays("db-0", &before["db-0"]).await;
        cordon(scene, &home).await;
        let successor = scene.is_replaced("db-0", &before["db-0"]).await;
        assert_ne!(text(&successor, "/spec/nodeName"), scene.name(&home));
        scene.stays("db-1", &before["db-1"]).await;
    }

    /// Outside of its windows a policy begins nothing, and says when the next one opens; in one it does.
    beside async fn members_wait_for_a_window(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        let window = |schedule: &str, seconds: i64| {
            let windows = json!([{"schedule": schedule, "durationSeconds": seconds}]);
            with(taints(&[("*", 0)], 0), json!({"budget": {"windows": windows}}))
        };
        // Hours away, whichever day it is by then.
        scene.policy("p", window(&later(12), 60)).await;
        let before = scene.uids(&["db-0"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        let held = scene.held("p", "db-0", "no window is open before").await;
        let opens: Timestamp = text(&held, "/nextTransitionTime").parse().unwrap();
        assert!(opens > Timestamp::now() + SignedDuration::from_hours(6), "{held}");
        assert_eq!(scene.policy_says("p", "Paused", "True").await["reason"], "WindowClosed");
        scene.stays("db-0", &before["db-0"]).await;
        assert!(scene.replacements("db-0").await.is_empty());
        // One that opens every minute for an hour is never shut.
        scene.policy("p", window("* * * * *", 3600)).await;
        scene.is_replaced("db-0", &before["db-0"]).await;
    }

    /// One policy for several sets has one budget for all of them, and no member loses its volumes while one of another set is
    /// not ready.
    beside async fn one_policy_for_several_sets_has_one_budget(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("blue", 2).with_volumes()).await;
        scene.set(Set::of("red", 2).with_volumes()).await;
        scene.nodes(&["e", "f", "g"]).await;
        let pods = ["blue-0", "blue-1", "red-0", "red-1"];
        let selector = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["blue", "red"]}]});
        let spec = json!({
            "selector": selector, "strategy": {"volumes": {"policy": "DeleteNodeLocal"}},
            "replacements": {"maxConcurrentReplacements": 2, "maxFaultDomainsWithTaintedProcessGroups": "100%"},
        });
        scene.policy("p", with(taints(&[("*", 0)], 0), spec)).await;
        scene.policy_is("p", "with all members", |policy| policy["status"]["counts"]["matched"] == 4).await;
        let before = scene.uids(&pods).await;
        let (blue, red) = (scene.home("blue-0").await, scene.home("red-0").await);
        scene.hands.order(|orders| _ = orders.unready.insert("red-1".to_owned()));
        scene.caller.until(&scene.set_path("red"), "lacks one", |set| set["status"]["readyReplicas"] == 1).await;
        scene.taint(&blue, &[no_schedule("example.org/broken")]).await;
        scene.held("p", "blue-0", "red-1 not ready").await;
        scene.stays("blue-0", &before["blue-0"]).await;
        scene.hands.order(|orders| orders.unready.clear());
        scene.taint(&red, &[no_schedule("example.org/broken")]).await;
        for pod in ["blue-0", "red-0"] {
            scene.is_replaced(pod, &before[pod]).await;
        }
        scene.caught_up().await;
        scene.chronicle.claims_went_alone(&pods);
        scene.chronicle.at_most_at_once(1);
        for pod in ["blue-1", "red-1"] {
            scene.stays(pod, &before[pod]).await;
        }
    }

    /// A node without room for the successor is none that it can go to, and the policy says what it lacks; with room, it goes.
    beside async fn nobody_goes_before_there_is_room_for_the_successor(scene: &Scene) {
        scene.nodes(&["a", "b"]).await;
        // Other scenarios have nodes too, which are not its own.
        let asks = json!({"cpu": "6"});
        scene.set(Set::of("db", 2).asking(&asks, &scene.namespace)).await;
        scene.policy("p", taints(&[("*", 0)], 0)).await;
        let before = scene.uids(&["db-0", "db-1"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        let held = scene.held("p", "db-0", "no other node can take the successor").await;
        assert!(text(&held, "/message").contains("too little room (cpu)"), "{held}");
        scene.stays("db-0", &before["db-0"]).await;
        scene.nodes(&["c"]).await;
        scene.is_replaced("db-0", &before["db-0"]).await;
        assert_eq!(scene.home("db-0").await, "c");
        scene.stays("db-1", &before["db-1"]).await;
    }
}
