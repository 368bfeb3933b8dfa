//! What moves a countdown that runs already. Upstream's runs to its end whatever comes, unless nothing is left to run for.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    ground::grounds,
    pod::Pod,
    scene::{Clock, Scene},
    taint::{added, forever, no_execute, seconds, whole},
};

/// Longer than any scenario.
const LONG: i64 = 600;

grounds! {
    /// Tolerations that change count as if they had always been so, by ours. Upstream keeps the countdown that runs, in both
    /// directions.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestUpdatePod: lengthening toleration shouldn't work".
    /// Upstream: node-defects "2".
    /// Upstream: not-upstream "tolerationSeconds changed up/down/0 while armed".
    eviction async fn tolerations_that_change_move_the_moment(scene: &Scene) {
        scene.node("n").await;
        let pod = |name: &str, given: i64| Pod::named(name).on("n").tolerating([seconds("a", given)]);
        scene.pods([pod("longer", 3), pod("shorter", LONG), pod("to-zero", LONG), pod("to-infinite", 3)]).await;
        let clock = scene.taint_now("n", &[added("a", Timestamp::now())]).await;
        scene.passes_on("n").await;
        scene.tolerate("longer", &[seconds("a", LONG)]).await;
        scene.tolerate("shorter", &[seconds("a", 3)]).await;
        scene.tolerate("to-zero", &[seconds("a", 0)]).await;
        scene.tolerate("to-infinite", &[json!({"key": "a", "operator": "Exists", "effect": "NoExecute"})]).await;
        if scene.is_ours() {
            scene.leaves_after("to-zero", clock, 0).await;
            scene.leaves_after("shorter", clock, 3).await;
            scene.passes_on("n").await;
            scene.stay(&["longer", "to-infinite"]);
        } else {
            scene.leaves_after("longer", clock, 3).await;
            scene.passes_on("n").await;
            scene.stay(&["shorter", "to-zero", "to-infinite"]);
        }
    }

    /// A further taint with a shorter window shortens the time, by ours; upstream goes on with the one it began with.
    ///
    /// Upstream: node-defects "2".
    /// Upstream: not-upstream "taint added with shorter window".
    eviction async fn a_further_taint_with_a_shorter_window_shortens_the_time(scene: &Scene) {
        scene.node("n").await;
        scene.pod(Pod::named("p").on("n").tolerating([seconds("a", LONG), seconds("b", 2)])).await;
        scene.pod(Pod::named("witness").on("n").tolerating([forever("a"), seconds("b", 2)])).await;
        let first = added("a", Timestamp::now());
        scene.taint("n", std::slice::from_ref(&first)).await;
        scene.passes_on("n").await;
        let now = Timestamp::now();
        let clock = scene.taint_now("n", &[first, added("b", now)]).await;
        let clock = Clock { from: whole(now), ..clock };
        scene.leaves_after("witness", clock, 2).await;
        if scene.is_ours() {
            scene.leaves_after("p", clock, 2).await;
        } else {
            scene.passes_on("n").await;
            scene.stay(&["p"]);
        }
    }

    /// One of two taints that goes leaves the other's time as it was: each runs from when it was added.
    eviction async fn a_taint_that_is_exchanged_for_another_goes_on_counting(scene: &Scene) {
        scene.node("n").await;
        scene.pod(Pod::named("p").on("n").tolerating([seconds("not-ready", 4), seconds("unreachable", 4)])).await;
        let now = Timestamp::now();
        let clock = scene.taint_now("n", &[added("not-ready", now)]).await;
        scene.passes_on("n").await;
        // As whoever judges nodes does: the other taint, and the same clock.
        scene.taint("n", &[added("unreachable", now)]).await;
        scene.leaves_after("p", clock, 4).await;
    }

    /// A pod that comes back under its name on another node is another pod: what the first had coming is not its business.
    ///
    /// Upstream: node-defects "6".
    /// Upstream: not-upstream "same-name StatefulSet recreation on other node".
    eviction async fn a_successor_of_the_same_name_is_left_alone(scene: &Scene) {
        scene.node("n").await;
        scene.node("haven").await;
        scene.node("control").await;
        let pod = |name: &str, node: &str| Pod::named(name).on(node).tolerating([seconds("a", 2)]);
        scene.pods([pod("web-0", "n"), pod("control", "control")]).await;
        let now = Timestamp::now();
        scene.taint("n", &[added("a", now)]).await;
        let clock = scene.taint_now("control", &[added("a", now)]).await;
        scene.passes_on("n").await;
        scene.caller.delete(&scene.pod_path("web-0")).await.ok();
        let successor = scene.pod(pod("web-0", "haven")).await;
        scene.leaves_after("control", clock, 2).await;
        scene.passes().await;
        let now = scene.caller.get(&scene.pod_path("web-0")).await.ok();
        assert_eq!(now["metadata"]["resourceVersion"], successor["metadata"]["resourceVersion"], "{now}");
    }

    /// A taint whose time lies ahead counts from when it was seen, and one from before the node from when the node came: a
    /// clock that is wrong neither keeps a pod for ever nor costs it its time. Upstream reads no time at all.
    ///
    /// Upstream: not-upstream "clock skew on timeAdded (future/very old/absent)".
    eviction async fn a_time_that_cannot_be_true_counts_for_little(scene: &Scene) {
        for node in ["ahead", "behind", "absent"] {
            scene.node(node).await;
            scene.pod(Pod::named(&format!("on-{node}")).on(node).tolerating([seconds("a", 3)])).await;
        }
        let created = Timestamp::now();
        let hour = SignedDuration::from_hours(1);
        let ahead = scene.taint_now("ahead", &[added("a", created + hour)]).await;
        let absent = scene.taint_now("absent", &[no_execute("a")]).await;
        let behind = scene.taint_now("behind", &[added("a", "1999-12-31T23:59:59Z".parse().unwrap())]).await;
        // No earlier than the node, whose age is told in whole seconds.
        let behind = Clock { from: Timestamp::from_second(created.as_second() - 2).unwrap(), ..behind };
        scene.leaves_after("on-behind", behind, 3).await;
        scene.leaves_after("on-ahead", ahead, 3).await;
        scene.leaves_after("on-absent", absent, 3).await;
    }

    /// A taint that was removed and added again counts anew, also without a time of its own.
    eviction async fn a_taint_that_comes_again_counts_anew(scene: &Scene) {
        scene.node("n").await;
        scene.pod(Pod::named("p").on("n").tolerating([seconds("a", 3)])).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.passes_on("n").await;
        scene.untaint("n").await;
        scene.event("p", "TaintManagerEviction", "Cancelling deletion").await;
        let clock = scene.taint_now("n", &[no_execute("a")]).await;
        scene.leaves_after("p", clock, 3).await;
    }

    /// Who comes to a node that was tainted long before has all of the time that it asks for.
    eviction async fn who_comes_to_an_old_taint_has_all_its_time(scene: &Scene) {
        scene.tainted_node("n", &[added("a", Timestamp::now() - SignedDuration::from_hours(1))]).await;
        scene.pod(Pod::named("first").on("n").tolerating([seconds("a", 1)])).await;
        scene.leaves("first").await;
        let from = whole(Timestamp::now());
        scene.pod(Pod::named("p").on("n").tolerating([seconds("a", 2)])).await;
        let clock = Clock { from, to: Timestamp::now() };
        scene.leaves_after("p", clock, 2).await;
    }

    /// Ours writes down when it first saw a taint without a time, and changes nothing else of the node: by that, whoever
    /// comes after it counts from there. Upstream writes nothing.
    ///
    /// Upstream: node-defects "1".
    /// Upstream: not-upstream "kubectl-added taint without timeAdded".
    eviction async fn a_taint_without_a_time_is_given_one(scene: &Scene) {
        scene.node("n").await;
        scene.pod(Pod::named("p").on("n").tolerating([seconds("a", LONG)])).await;
        let before = whole(Timestamp::now());
        let mild = json!({"key": "mild", "effect": "NoSchedule"});
        let timed = added("b", "2020-01-01T00:00:00Z".parse().unwrap());
        scene.pod(Pod::named("infinite").on("n").tolerating([forever("a"), forever("b")])).await;
        scene.tolerate("p", &[seconds("a", LONG), forever("b")]).await;
        scene.taint("n", &[mild.clone(), no_execute("a"), timed.clone()]).await;
        if !scene.is_ours() {
            scene.passes_on("n").await;
            let node = scene.caller.get(&scene.node_path("n")).await.ok();
            assert_eq!(node["spec"]["taints"], json!([mild, no_execute("a"), timed]));
            return;
        }
        let node = scene.node_is("n", "having a time", |node| node["spec"]["taints"][1]["timeAdded"].is_string()).await;
        let taints = &node["spec"]["taints"];
        assert_eq!((&taints[0], &taints[2]), (&mild, &timed), "{taints}");
        let given: Timestamp = taints[1]["timeAdded"].as_str().unwrap().parse().unwrap();
        assert!(given >= before && given <= Timestamp::now() + SignedDuration::from_secs(1), "{given} {before}");
        scene.passes_on("n").await;
        scene.stay(&["p", "infinite"]);
        let after = scene.caller.get(&scene.node_path("n")).await.ok();
        assert_eq!(after["metadata"]["resourceVersion"], node["metadata"]["resourceVersion"], "written once");
    }
}
