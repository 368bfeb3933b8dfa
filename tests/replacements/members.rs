//! A member on a tainted node, from the taint to its successor.

use berth_tests::caller::text;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    ground::grounds,
    scene::{Scene, by_hand, member, no_schedule, said, taints, with},
    set::Set,
};

/// A time that an object tells.
fn time(object: &Value, pointer: &str) -> Timestamp {
    text(object, pointer).parse().unwrap()
}

grounds! {
    /// The configuration of the design, with seconds in the place of its minutes: `example.org/disconnected` marks after 3, and
    /// a member that is marked waits 2 more. Everything on the way is told, the volume that cannot leave its node goes with the
    /// member, and nobody else is touched.
    ///
    /// Upstream: operator_test.go
    /// "cluster enables taint feature on focused maintenance taint key: should remove the targeted Pod whose Node is tainted".
    beside async fn the_configuration_of_the_design_is_timed_as_it_says(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("db", 3).with_volumes().ordered()).await;
        let options = taints(&[("example.org/maintenance", 7200), ("example.org/disconnected", 3), ("*", 3600)], 2);
        let volumes = json!({"strategy": {"volumes": {"policy": "DeleteNodeLocal"}}});
        scene.policy("p", with(options, volumes)).await;
        let before = scene.uids(&["db-0", "db-1", "db-2"]).await;
        let (home, claim) = (scene.home("db-1").await, scene.claim("db-1").await);
        let tainted = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        scene.taint(&home, &[no_schedule("example.org/disconnected")]).await;

        let policy = scene.policy_is("p", "having seen it", |policy| !member(policy, "db-1").is_null()).await;
        let seen = member(&policy, "db-1");
        assert_eq!(said(seen, "NodeTaintDetected")["status"], "True", "{seen}");
        assert!(text(said(seen, "NodeTaintDetected"), "/message").contains("example.org/disconnected"), "{seen}");
        let cause = &seen["causes"][0];
        assert_eq!((&cause["kind"], &cause["sinceSource"]), (&json!("Taint"), &json!("FirstSeen")), "{cause}");
        assert!(text(cause, "/rule").contains("taintReplacementOptions[1]"), "{cause}");
        let since = time(cause, "/since");
        assert!(since >= tainted, "{since} {tainted}");
        assert!(time(cause, "/dueAt") >= since + SignedDuration::from_secs(5), "{cause}");
        assert_eq!(policy["status"]["counts"]["matched"], 3, "{policy}");

        scene
            .policy_is("p", "marking it", |policy| said(member(policy, "db-1"), "NodeTaintReplacing")["status"] == "True")
            .await;
        let successor = scene.is_replaced("db-1", &before["db-1"]).await;
        assert_ne!(text(&successor, "/spec/nodeName"), scene.name(&home), "it must not go back");
        assert_ne!(scene.claim("db-1").await, claim, "its volume could not leave the node");
        let replacement = scene.replacements("db-1").await.pop().unwrap();
        // Strictly more than so many whole seconds, twice.
        let started = time(&replacement, "/status/startedAt");
        assert!(started >= since + SignedDuration::from_secs(5), "began at {started}, seen at {since}");
        assert_eq!(replacement["spec"]["trigger"]["key"], "example.org/disconnected", "{replacement}");
        assert_eq!(replacement["spec"]["removesVolumes"], true, "{replacement}");
        assert_eq!(replacement["spec"]["target"]["uid"], before["db-1"].as_str(), "{replacement}");
        assert!(replacement["status"]["pointOfNoReturnAt"].is_string(), "{replacement}");
        for pod in ["db-0", "db-2"] {
            scene.stays(pod, &before[pod]).await;
        }
        scene.caught_up().await;
        scene.chronicle.claims_went_alone(&["db-0", "db-1", "db-2"]);
        assert_eq!(scene.chronicle.claims_lost().len(), 1);
        let phases = scene.chronicle.phases("db-1");
        let way = ["Gating", "RemovingVolumes", "RemovingPod", "AwaitingSuccessor", "Verifying", "Done"];
        // Whoever is quick may pass two at once; none is passed twice, and none comes out of turn.
        let mut expected = way.iter();
        assert!(phases.iter().all(|phase| expected.any(|other| other == phase)), "{phases:?}");
        scene.policy_is("p", "with nothing left", |policy| member(policy, "db-1")["causes"].is_null()).await;
    }

    /// What no rule names goes by the one for `*`, a key that is to be ignored stays ignored however old it is, and members go
    /// one after the other although two nodes are tainted.
    ///
    /// Upstream: operator_test.go
    /// "cluster enables taint feature on star taint key: should eventually remove all Pods whose Nodes are tainted".
    beside async fn a_wildcard_takes_what_no_rule_names(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d", "e"]).await;
        scene.set(Set::of("db", 3)).await;
        let options = taints(&[("*", 1), ("example.org/harmless", i64::MAX)], 0);
        let all = json!({"replacements": {"maxFaultDomainsWithTaintedProcessGroups": "100%"}});
        scene.policy("p", with(options, all)).await;
        let before = scene.uids(&["db-0", "db-1", "db-2"]).await;
        let harmless = json!({"key": "example.org/harmless", "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z"});
        scene.taint(&scene.home("db-2").await, &[harmless]).await;
        for pod in ["db-0", "db-1"] {
            scene.taint(&scene.home(pod).await, &[no_schedule("example.org/broken")]).await;
        }
        for pod in ["db-0", "db-1"] {
            scene.is_replaced(pod, &before[pod]).await;
        }
        scene.stays("db-2", &before["db-2"]).await;
        scene.caught_up().await;
        scene.chronicle.at_most_at_once(1);
        let policy = scene.policy_is("p", "at rest", |policy| policy["status"]["counts"]["inFlight"] == 0).await;
        assert!(said(member(&policy, "db-2"), "NodeTaintReplacing").is_null(), "{policy}");
    }

    /// A policy on trial says what it would do and does nothing; enforced, it goes on from there.
    beside async fn a_dry_run_tells_and_touches_nothing(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2).with_volumes()).await;
        let spec = with(
            taints(&[("*", 0)], 1),
            json!({"mode": "DryRun", "strategy": {"volumes": {"policy": "DeleteNodeLocal"}}}),
        );
        scene.policy("p", spec.clone()).await;
        let before = scene.uids(&["db-0", "db-1"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        scene.held("p", "db-0", "on trial (mode DryRun)").await;
        let policy = scene.policy_is("p", "counting it", |policy| policy["status"]["counts"]["blocked"] == 1).await;
        assert_eq!(policy["status"]["counts"]["replacing"], 1, "{policy}");
        assert_eq!(scene.replacements("db-0").await.len(), 0);
        scene.stays("db-0", &before["db-0"]).await;
        scene.policy("p", with(spec, json!({"mode": "Enforce"}))).await;
        scene.is_replaced("db-0", &before["db-0"]).await;
        scene.stays("db-1", &before["db-1"]).await;
    }

    /// A person stops a replacement where it is, lets it go on, and calls another off.
    beside async fn a_person_has_the_last_word(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("db", 2)).await;
        scene.policy("p", with(taints(&[("*", 0)], 0), json!({"gates": by_hand()}))).await;
        let before = scene.uids(&["db-0"]).await;
        let home = scene.home("db-0").await;
        scene.taint(&home, &[no_schedule("example.org/broken")]).await;
        let first = scene.replacement_is("db-0", "shut out", |last| last["status"]["reason"] == "GateShut").await;
        scene.caller.merge(&scene.path_of(&first), &json!({"spec": {"suspend": true}})).await.ok();
        scene.replacement_is("db-0", "suspended", |last| last["status"]["reason"] == "Suspended").await;
        scene.release("db-0").await;
        scene.policy_is("p", "still there", |policy| policy["status"]["counts"]["inFlight"] == 1).await;
        scene.stays("db-0", &before["db-0"]).await;
        scene.annotate("db-0", "example.org/released", None).await;
        scene.caller.merge(&scene.path_of(&first), &json!({"spec": {"suspend": false}})).await.ok();
        scene.replacement_is("db-0", "shut out again", |last| last["status"]["reason"] == "GateShut").await;
        scene.caller.merge(&scene.path_of(&first), &json!({"spec": {"cancel": true}})).await.ok();
        let ended = scene.was("db-0", "Aborted").await;
        assert_eq!(ended["status"]["reason"], "Cancelled", "{ended}");
        scene.stays("db-0", &before["db-0"]).await;
    }
}
