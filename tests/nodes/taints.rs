//! What happens when the taints of a node change.

use jiff::Timestamp;
use serde_json::json;

use crate::{
    ground::grounds,
    pod::Pod,
    scene::Scene,
    taint::{added, forever, no_execute, no_execute_of, seconds},
};

grounds! {
    /// A node that appears with a taint drives away who is on it already.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestCreateNode".
    eviction async fn nodes_that_come_tainted_drive_pods_away(scene: &Scene) {
        scene.pods([
            Pod::named("on-clean").on("clean"),
            Pod::named("bare").on("tainted"),
            Pod::named("tolerating").on("tainted").tolerating([forever("a")]),
        ]).await;
        scene.node("clean").await;
        scene.tainted_node("tainted", &[no_execute("a")]).await;
        scene.leaves("bare").await;
        scene.passes_on("tainted").await;
        scene.stay(&["on-clean", "tolerating"]);
    }

    /// A taint drives away who does not tolerate it, and one of two is enough.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestUpdateNode: Added taint, expect node patched and deleted",
    /// "TestUpdateNode: Added tolerated taint", "TestUpdateNode: Only one added taint tolerated".
    /// Upstream: e2e/node/taints.go "evicts pods from tainted nodes", "doesn't evict pod with tolerations from tainted nodes",
    /// "only evicts pods without tolerations from tainted nodes".
    eviction async fn a_taint_drives_away_who_does_not_tolerate_it(scene: &Scene) {
        scene.node("n").await;
        scene.node("other").await;
        scene.pods([
            Pod::named("bare").on("n"),
            Pod::named("half").on("n").tolerating([forever("a")]),
            Pod::named("whole").on("n").tolerating([forever("a"), forever("b")]),
            Pod::named("wildcard").on("n").tolerating([json!({"operator": "Exists"})]),
            Pod::named("elsewhere").on("other"),
        ]).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.leaves("bare").await;
        scene.passes_on("n").await;
        scene.stay(&["half", "whole", "wildcard", "elsewhere"]);
        scene.taint("n", &[no_execute("a"), no_execute("b")]).await;
        scene.leaves("half").await;
        scene.passes_on("n").await;
        scene.stay(&["whole", "wildcard", "elsewhere"]);
    }

    /// Keys, values, operators and effects match as everywhere in Kubernetes.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestFilterNoExecuteTaints".
    eviction async fn tolerations_match_by_key_value_operator_and_effect(scene: &Scene) {
        scene.node("mild").await;
        scene.node("n").await;
        let tolerating = |name: &str, toleration| Pod::named(name).on("n").tolerating([toleration]);
        scene.pods([
            Pod::named("undisturbed").on("mild"),
            tolerating("equal", json!({"key": "a", "value": "v"})),
            tolerating("equal-said", json!({"key": "a", "operator": "Equal", "value": "v", "effect": "NoExecute"})),
            tolerating("other-value", json!({"key": "a", "value": "w"})),
            tolerating("no-value", json!({"key": "a"})),
            tolerating("other-effect", json!({"key": "a", "operator": "Exists", "effect": "NoSchedule"})),
            tolerating("exists", json!({"key": "a", "operator": "Exists"})),
        ]).await;
        let mild = ["NoSchedule", "PreferNoSchedule"].map(|effect| json!({"key": "a", "value": "v", "effect": effect}));
        scene.taint("mild", &mild).await;
        scene.taint("n", &[no_execute_of("a", "v")]).await;
        scene.all_leave(&["other-value", "no-value", "other-effect"]).await;
        scene.passes_on("n").await;
        scene.stay(&["undisturbed", "equal", "equal-said", "exists"]);
        // A value that changes is another taint.
        scene.taint("n", &[no_execute_of("a", "w")]).await;
        scene.all_leave(&["equal", "equal-said"]).await;
        scene.passes_on("n").await;
        scene.stay(&["undisturbed", "exists"]);
    }

    /// A taint that goes before the time is up spares the pod; it is waited for longer than that time.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestUpdateNode: Taint removed".
    /// Upstream: e2e/node/taints.go "removing taint cancels eviction".
    eviction async fn a_taint_that_goes_in_time_spares_the_pod(scene: &Scene) {
        scene.node("n").await;
        scene.node("control").await;
        let pods = ["n", "control"].map(|node| {
            Pod::named(&format!("on-{node}")).on(node).tolerating([seconds("a", 3)])
        });
        scene.pods(pods).await;
        let now = Timestamp::now();
        scene.taint("n", &[added("a", now)]).await;
        let clock = scene.taint_now("control", &[added("a", now)]).await;
        scene.passes_on("n").await;
        scene.untaint("n").await;
        // The one on the other node tells when it would have been.
        scene.leaves_after("on-control", clock, 3).await;
        scene.passes().await;
        scene.stay(&["on-n"]);
    }

    /// The shortest toleration that is used counts.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestUpdateNode: Pod with multiple tolerations are evicted when first one
    /// runs out", "TestGetMinTolerationTime".
    /// Upstream: e2e/node/taints.go "eventually evict pod with finite tolerations from tainted nodes".
    eviction async fn the_shortest_toleration_that_is_used_counts(scene: &Scene) {
        scene.node("n").await;
        let pod = |name: &str| Pod::named(name).on("n");
        scene.pods([
            pod("two").tolerating([seconds("a", 1), seconds("b", 100)]),
            pod("with-infinite").tolerating([forever("a"), seconds("b", 2)]),
            // The first that matches is used, and what comes after it is not.
            pod("first").tolerating([seconds("a", 2), forever("a"), forever("b")]),
            pod("first-infinite").tolerating([forever("a"), seconds("a", 1), forever("b")]),
            pod("negative").tolerating([seconds("a", -5), forever("b")]),
        ]).await;
        let now = Timestamp::now();
        let clock = scene.taint_now("n", &[added("a", now), added("b", now)]).await;
        scene.leaves_after("negative", clock, 0).await;
        scene.leaves_after("two", clock, 1).await;
        scene.leaves_after("with-infinite", clock, 2).await;
        scene.leaves_after("first", clock, 2).await;
        scene.passes_on("n").await;
        scene.stay(&["first-infinite"]);
    }

    /// A second taint starts a countdown, and its going ends that.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestUpdateNodeWithMultipleTaints".
    eviction async fn a_second_taint_that_comes_and_goes_changes_nothing(scene: &Scene) {
        scene.node("n").await;
        scene.node("control").await;
        let pods = ["n", "control"].map(|node| {
            Pod::named(&format!("on-{node}")).on(node).tolerating([forever("a"), seconds("b", 2)])
        });
        scene.pods(pods).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.passes_on("n").await;
        let now = Timestamp::now();
        scene.taint("n", &[no_execute("a"), added("b", now)]).await;
        let clock = scene.taint_now("control", &[added("b", now)]).await;
        scene.passes_on("n").await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.leaves_after("on-control", clock, 2).await;
        scene.passes().await;
        scene.stay(&["on-n"]);
    }

    /// Each pod of a node leaves at its own time.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestUpdateNodeWithMultiplePods".
    /// Upstream: e2e/node/taints.go "evicts pods with minTolerationSeconds".
    eviction async fn pods_of_a_node_leave_each_at_its_own_time(scene: &Scene) {
        scene.node("n").await;
        scene.node("both").await;
        let pod = |name: &str| Pod::named(name).on("n");
        scene.pods([
            pod("zero").tolerating([seconds("a", 0)]),
            pod("one").tolerating([seconds("a", 1)]),
            pod("three").tolerating([seconds("a", 3)]),
            pod("never").tolerating([forever("a")]),
            Pod::named("both-one").on("both").tolerating([seconds("a", 1)]),
            Pod::named("both-never").on("both").tolerating([forever("a")]),
        ]).await;
        let now = Timestamp::now();
        let both = scene.taint_now("both", &[added("a", now), added("b", now)]).await;
        let clock = scene.taint_now("n", &[added("a", now)]).await;
        for pod in ["both-one", "both-never"] {
            scene.leaves_after(pod, both, 0).await;
        }
        scene.leaves_after("zero", clock, 0).await;
        scene.leaves_after("one", clock, 1).await;
        scene.leaves_after("three", clock, 3).await;
        scene.passes_on("n").await;
        scene.stay(&["never"]);
    }
}
