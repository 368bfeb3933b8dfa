//! What happens to pods that come, change and go.

use jiff::Timestamp;

use crate::{
    ground::grounds,
    pod::Pod,
    scene::Scene,
    taint::{added, forever, no_execute, seconds},
};

/// What a pod is told about its end.
const REASON: &str = "DeletionByTaintManager";
const MESSAGE: &str = "Taint manager: deleting due to NoExecute taint";

grounds! {
    /// A pod that comes to a tainted node leaves it, unless it tolerates the taint; who is on no node, or on a clean one, is
    /// nobody's business. Who leaves is told why.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestCreatePod".
    eviction async fn pods_that_come_are_judged_by_their_tolerations(scene: &Scene) {
        scene.node("clean").await;
        scene.tainted_node("tainted", &[added("a", Timestamp::now())]).await;
        scene.pods([
            Pod::named("unbound"),
            Pod::named("on-clean").on("clean"),
            Pod::named("bare").on("tainted").held(),
            Pod::named("finite").on("tainted").tolerating([seconds("a", 600)]),
            Pod::named("infinite").on("tainted").tolerating([forever("a")]),
            Pod::named("mistaken").on("tainted").tolerating([forever("b")]).held(),
        ]).await;
        scene.all_leave(&["bare", "mistaken"]).await;
        for pod in ["bare", "mistaken"] {
            let fate = scene.fate(pod).unwrap();
            let told = fate.disruption();
            assert_eq!((&told["status"], &told["reason"]), (&"True".into(), &REASON.into()), "{told}");
            assert_eq!(told["message"], MESSAGE);
        }
        scene.passes_on("tainted").await;
        scene.stay(&["unbound", "on-clean", "finite", "infinite"]);
    }

    /// A pod that is bound to a tainted node counts from then.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestUpdatePod: scheduling onto tainted Node",
    /// "TestUpdatePod: scheduling onto tainted Node with toleration".
    eviction async fn pods_that_are_bound_are_judged_then(scene: &Scene) {
        scene.tainted_node("tainted", &[no_execute("a")]).await;
        scene.pods([Pod::named("bare"), Pod::named("infinite").tolerating([forever("a")])]).await;
        scene.passes_on("tainted").await;
        scene.stay(&["bare", "infinite"]);
        scene.bind("infinite", "tainted").await;
        scene.bind("bare", "tainted").await;
        scene.leaves("bare").await;
        scene.passes_on("tainted").await;
        scene.stay(&["infinite"]);
    }

    /// A pod with a countdown that somebody else deletes, and a node that goes with its pods on it, are no trouble.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestDeletePod", "TestDeleteNode".
    /// Upstream: not-upstream "a node object deleted mid-countdown".
    eviction async fn pods_and_nodes_that_go_leave_nothing_behind(scene: &Scene) {
        scene.tainted_node("tainted", &[no_execute("a")]).await;
        scene.pods(["p1", "p2"].map(|name| Pod::named(name).on("tainted").tolerating([seconds("a", 600)]))).await;
        scene.passes_on("tainted").await;
        scene.caller.delete(&scene.pod_path("p1")).await.ok();
        scene.passes_on("tainted").await;
        scene.caller.delete(&scene.node_path("tainted")).await.ok();
        scene.passes().await;
        scene.stay(&["p2"]);
    }

    /// Pods that are seen only after their node was judged leave as well, whichever came first.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestEventualConsistency".
    eviction async fn pods_that_come_after_the_taint_leave_too(scene: &Scene) {
        scene.node("n").await;
        scene.pods([Pod::named("early").on("n"), Pod::named("tolerating").on("n").tolerating([forever("a")])]).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.leaves("early").await;
        scene.pods([Pod::named("late1").on("n"), Pod::named("late2").on("n").tolerating([seconds("a", 0)])]).await;
        scene.all_leave(&["late1", "late2"]).await;
        scene.stay(&["tolerating"]);
    }

    /// Somebody who deletes it first is not in the way, and a pod that cannot be removed yet is on its way out.
    ///
    /// Upstream: e2e/node/taints.go "pods evicted from tainted nodes have pod disruption condition".
    eviction async fn pods_that_somebody_holds_are_told_and_wait(scene: &Scene) {
        scene.node("n").await;
        scene.pods([Pod::named("held").on("n").held(), Pod::named("graceful").on("n").grace(600).held()]).await;
        scene.taint("n", &[no_execute("a")]).await;
        for pod in ["held", "graceful"] {
            scene.leaves(pod).await;
            let fate = scene.fate(pod).unwrap();
            assert!(!fate.is_gone);
            assert_eq!(fate.disruption()["reason"], REASON, "{fate:?}");
            assert_eq!(fate.disruption()["status"], "True");
        }
        // The pod's own grace, neither less nor more.
        let fate = scene.fate("graceful").unwrap();
        assert_eq!(fate.pod["metadata"]["deletionGracePeriodSeconds"], 600);
    }

    /// A pod that has ended is left where it is with its logs, by ours, and so is what a kubelet only shows; upstream deletes
    /// them.
    ///
    /// Upstream: node-defects "7".
    /// Upstream: not-upstream "terminal pods".
    eviction async fn pods_that_have_ended_are_left_alone(scene: &Scene) {
        scene.node("n").await;
        for (pod, phase) in [("succeeded", "Succeeded"), ("failed", "Failed")] {
            scene.pod(Pod::named(pod).on("n")).await;
            scene.report(pod, &serde_json::json!({"phase": phase})).await;
        }
        scene.pod(Pod::named("mirror").on("n").mirror()).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.passes_on("n").await;
        if scene.is_ours() {
            scene.stay(&["succeeded", "failed", "mirror"]);
        } else {
            scene.all_leave(&["succeeded", "failed", "mirror"]).await;
        }
    }

    /// What is said: that a pod is marked, and that it is no longer.
    ///
    /// Upstream: tainteviction/taint_eviction_test.go "TestPodDeletionEvent".
    eviction async fn events_tell_who_is_marked_and_who_is_spared(scene: &Scene) {
        scene.node("n").await;
        scene.pods([Pod::named("bare").on("n"), Pod::named("spared").on("n").tolerating([seconds("a", 600)])]).await;
        scene.taint("n", &[no_execute("a")]).await;
        let about = |pod: &str| format!("{}/{pod}", scene.namespace);
        let marking = format!("Marking for deletion Pod {}", about("bare"));
        let event = scene.event("bare", "TaintManagerEviction", &marking).await;
        assert_eq!((&event["type"], &event["message"]), (&"Normal".into(), &marking.as_str().into()), "{event}");
        assert_eq!(event["involvedObject"]["kind"], "Pod");
        assert_eq!(event["involvedObject"]["namespace"], scene.namespace);
        let component = [&event["source"]["component"], &event["reportingComponent"]];
        assert!(component.iter().any(|component| **component == "taint-eviction-controller"), "{event}");
        scene.passes_on("n").await;
        scene.untaint("n").await;
        let cancelling = format!("Cancelling deletion of Pod {}", about("spared"));
        scene.event("spared", "TaintManagerEviction", &cancelling).await;
        scene.stay(&["spared"]);
        let told = scene.events("bare").await;
        assert_eq!(told.len(), 1, "{told:?}");
    }
}
