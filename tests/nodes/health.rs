//! How nodes are judged: by what their kubelets say, and by their silence.

use std::time::Duration;

use berth_tests::{
    caller::{condition, text},
    waiting::until,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    ground::grounds,
    kubelet::{Kubelet, in_zone, lapses, says},
    pod::Pod,
    scene::{PATIENCE, Scene},
    taint::forever,
};

pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// What a node carries that cannot be reached.
pub(crate) const SILENT: [&str; 2] =
    ["node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"];
/// What a node carries that says that it is not well.
pub(crate) const UNWELL: [&str; 2] =
    ["node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/not-ready:NoSchedule"];

/// The conditions that nobody can vouch for when a node is silent.
const VOUCHED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

fn is(status: &str) -> impl Fn(&Value) -> bool {
    move |node| condition(node, "Ready")["status"] == status
}

/// A pod of a node that puts up with everything, and is ready.
async fn ready_pod(scene: &Scene, pod: &str, node: &str) {
    let pod_object = Pod::named(pod).on(node).tolerating([forever(NOT_READY), forever(UNREACHABLE)]);
    scene.pod(pod_object).await;
    is_ready(scene, pod).await;
}

async fn is_ready(scene: &Scene, pod: &str) {
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    scene.report(pod, &json!({"phase": "Running", "conditions": conditions})).await;
}

async fn pod_is(scene: &Scene, pod: &str, ready: &str) -> Value {
    until(&format!("{pod} being ready: {ready}"), PATIENCE, async || {
        let object = scene.caller.get(&scene.pod_path(pod)).await.ok();
        if condition(&object, "Ready")["status"] == ready {
            Ok(object)
        } else {
            Err(object["status"].to_string())
        }
    })
    .await
}

grounds! {
    /// A node whose kubelet says nothing, neither by its lease nor by its status, is unknown after its grace: with the
    /// conditions and the words that Kubernetes gives it. One that says something either way is as it says.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealthUpdateStatus",
    /// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created recently, without status. Node lease is missing.",
    /// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created recently, without status. Node lease is renewed
    /// recently.",
    /// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, without status. Node lease is missing.",
    /// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, without status. Node lease is renewed
    /// recently.",
    /// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, without status. Node lease is expired.",
    /// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by kubelet recently.
    /// Node lease is expired.",
    /// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by kubelet exceeds
    /// grace period. Node lease is renewed.",
    /// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by kubelet exceeds
    /// grace period. Node lease is also expired.".
    lifecycle async fn silence_is_noticed_and_any_sign_of_life_counts(scene: &Scene) {
        let alive = Kubelet::apart(scene, "alive", "alive").await;
        let silent = Kubelet::apart(scene, "silent", "silent").await;
        for node in ["never", "leaseless", "posting", "mute", "lapsed"] {
            scene.node_of(node, &in_zone(scene, node), &[]).await;
        }
        // It renews its lease, and has nothing to say about how it is.
        let mute = Kubelet::mute(scene, "mute").await;
        for node in ["posting", "lapsed"] {
            lapses(scene, node).await;
        }
        says(scene, "leaseless", &[("Ready", "True"), ("NetworkUnavailable", "False")]).await;
        // It has only just come.
        let never = scene.caller.get(&scene.node_path("never")).await.ok();
        assert!(condition(&never, "Ready").is_null(), "{never}");
        scene.node_is("silent", "being ready", is("True")).await;
        silent.falls_silent();

        let posts = async {
            loop {
                says(scene, "posting", &[("Ready", "True")]).await;
                // A heartbeat is told in whole seconds, and one that does not differ is none.
                tokio::time::sleep(Duration::from_millis(1_100)).await;
            }
        };
        let judged = async {
            let silent = scene.node_is("silent", "being unknown", is("Unknown")).await;
            let leaseless = scene.node_is("leaseless", "being unknown", is("Unknown")).await;
            for node in [&silent, &leaseless] {
                let ready = condition(node, "Ready");
                assert_eq!(ready["reason"], "NodeStatusUnknown", "{ready}");
                assert_eq!(ready["message"], "Kubelet stopped posting node status.");
            }
            assert_eq!(condition(&leaseless, "NetworkUnavailable")["status"], "False", "nobody else's business");
            for node in ["never", "lapsed"] {
                let node = scene.node_is(node, "being unknown", is("Unknown")).await;
                for kind in VOUCHED {
                    let unknown = condition(&node, kind);
                    assert_eq!((&unknown["status"], &unknown["reason"]), (&"Unknown".into(), &"NodeStatusNeverUpdated".into()));
                    assert_eq!(unknown["message"], "Kubelet never posted node status.");
                }
            }
            scene.carries("silent", &SILENT).await;
        };
        tokio::select! {
            () = posts => {},
            () = judged => {},
        }
        for node in ["alive", "posting"] {
            let node = scene.caller.get(&scene.node_path(node)).await.ok();
            assert_eq!(condition(&node, "Ready")["status"], "True", "{node}");
            assert_eq!(node["spec"]["taints"], Value::Null);
        }
        let unsaid = scene.caller.get(&scene.node_path("mute")).await.ok();
        assert!(condition(&unsaid, "Ready").is_null(), "{unsaid}");
        drop((alive, mute));
    }

    /// The pods of a node that fell silent are not ready, and those that come to it are not either; whoever depends on that
    /// is told.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestPodStatusChange", "TestMonitorNodeHealthMarkPodsNotReady",
    /// "TestProcessPodMarkPodNotReady: Do not mark pod as NotReady when the scheduled node is ready",
    /// "TestProcessPodMarkPodNotReady: Pod marked as NotReady when the scheduled node is not ready".
    lifecycle async fn pods_of_a_silent_node_are_not_ready(scene: &Scene) {
        let silent = Kubelet::apart(scene, "silent", "silent").await;
        let _alive = Kubelet::apart(scene, "alive", "alive").await;
        for (pod, node) in [("p1", "silent"), ("p2", "silent"), ("elsewhere", "alive")] {
            ready_pod(scene, pod, node).await;
        }
        scene.node_is("silent", "being ready", is("True")).await;
        silent.falls_silent();
        for pod in ["p1", "p2"] {
            let object = pod_is(scene, pod, "False").await;
            assert_eq!(object["status"]["phase"], "Running");
        }
        scene.event(&scene.name("silent"), "NodeNotReady", "").await;
        scene.event("p1", "NodeNotReady", "Node is not ready").await;
        let late = Pod::named("late").tolerating([forever(NOT_READY), forever(UNREACHABLE)]);
        scene.pod(late).await;
        is_ready(scene, "late").await;
        scene.bind("late", "silent").await;
        pod_is(scene, "late", "False").await;
        pod_is(scene, "elsewhere", "True").await;
        scene.stay(&["p1", "p2", "late", "elsewhere"]);
    }

    /// A node is tainted for what its conditions say, at once, and no longer than they say it; what others put on it stays.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestTaintsNodeByCondition: NetworkUnavailable is true",
    /// "TestTaintsNodeByCondition: NetworkUnavailable is true, and Ready is false".
    /// Upstream: scheduler/taint/taint_test.go "TestTaintNodeByCondition: not-ready node",
    /// "TestTaintNodeByCondition: unschedulable node", "TestTaintNodeByCondition: memory pressure node",
    /// "TestTaintNodeByCondition: disk pressure node", "TestTaintNodeByCondition: network unavailable and node is ready",
    /// "TestTaintNodeByCondition: network unavailable and node is not ready", "TestTaintNodeByCondition: pid pressure node",
    /// "TestTaintNodeByCondition: multi taints on node".
    lifecycle async fn conditions_are_taints(scene: &Scene) {
        let _kubelet = Kubelet::start(scene, "n").await;
        scene.node_is("n", "being ready", is("True")).await;
        let foreign = json!({"key": "mine", "effect": "NoSchedule", "value": "v"});
        scene.taint("n", std::slice::from_ref(&foreign)).await;
        for (kind, key) in [
            ("MemoryPressure", "memory-pressure"),
            ("DiskPressure", "disk-pressure"),
            ("PIDPressure", "pid-pressure"),
            ("NetworkUnavailable", "network-unavailable"),
        ] {
            says(scene, "n", &[(kind, "True")]).await;
            let taint = format!("node.kubernetes.io/{key}:NoSchedule");
            let node = scene.carries("n", &["mine:NoSchedule", &taint]).await;
            assert!(node["spec"]["taints"].as_array().unwrap().contains(&foreign), "{node}");
            says(scene, "n", &[(kind, "False")]).await;
            scene.carries("n", &["mine:NoSchedule"]).await;
        }
        scene.caller.merge(&scene.node_path("n"), &json!({"spec": {"unschedulable": true}})).await.ok();
        scene.carries("n", &["mine:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"]).await;
        scene.caller.merge(&scene.node_path("n"), &json!({"spec": {"unschedulable": null}})).await.ok();
        scene.carries("n", &["mine:NoSchedule"]).await;
        // All at once, and one after the other no more.
        let network = "node.kubernetes.io/network-unavailable:NoSchedule";
        says(scene, "n", &[("NetworkUnavailable", "True"), ("Ready", "False")]).await;
        scene.carries("n", &["mine:NoSchedule", network, UNWELL[0], UNWELL[1]]).await;
        says(scene, "n", &[("Ready", "True"), ("MemoryPressure", "True"), ("DiskPressure", "True")]).await;
        let pressed = ["node.kubernetes.io/disk-pressure:NoSchedule", "node.kubernetes.io/memory-pressure:NoSchedule"];
        scene.carries("n", &["mine:NoSchedule", pressed[0], pressed[1], network]).await;
        says(scene, "n", &[("NetworkUnavailable", "False"), ("MemoryPressure", "False")]).await;
        scene.carries("n", &["mine:NoSchedule", pressed[0]]).await;
    }

    /// A node that is not well drives its pods away, and one that cannot be reached does so under another name: never under
    /// both. The one takes over the other's clock, by ours. A node that is well again carries nothing.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestApplyNoExecuteTaints",
    /// "TestApplyNoExecuteTaintsToUnreachableNode", "TestApplyNoExecuteTaintsToNodesEnqueueTwice",
    /// "TestSwapUnreachableNotReadyTaints", "TestTaintsNodeByCondition: Ready is false",
    /// "TestTaintsNodeByCondition: Ready is unknown".
    lifecycle async fn a_node_drives_its_pods_away_for_one_reason_at_a_time(scene: &Scene) {
        let kubelet = Kubelet::start(scene, "n").await;
        scene.node_is("n", "being ready", is("True")).await;
        says(scene, "n", &[("Ready", "False")]).await;
        let unwell = scene.carries("n", &UNWELL).await;
        kubelet.falls_silent();
        let silent = scene.carries("n", &SILENT).await;
        if scene.is_ours() {
            assert_eq!(since(&silent), since(&unwell));
        }
        let kubelet = Kubelet::take(scene, "n").await;
        scene.carries("n", &[]).await;
        // Again, and again.
        says(scene, "n", &[("Ready", "False")]).await;
        scene.carries("n", &UNWELL).await;
        says(scene, "n", &[("Ready", "True")]).await;
        scene.carries("n", &[]).await;
        kubelet.falls_silent();
        scene.carries("n", &SILENT).await;
    }

    /// Who comes and who goes is told, by the node's own UID.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestNodeEventGeneration".
    lifecycle async fn nodes_that_come_and_go_are_told_of(scene: &Scene) {
        let node = scene.node_of("n", &in_zone(scene, "zone"), &[]).await;
        let event = scene.event(&scene.name("n"), "RegisteredNode", "").await;
        assert_eq!(event["involvedObject"]["uid"], node["metadata"]["uid"], "{event}");
        assert_eq!(event["type"], "Normal");
        scene.caller.delete(&scene.node_path("n")).await.ok();
        scene.event(&scene.name("n"), "RemovingNode", "").await;
    }

    /// Labels of an older day follow those of today.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestReconcileNodeLabels".
    lifecycle async fn old_labels_follow_the_new_ones(scene: &Scene) {
        let mut labels = in_zone(scene, "zone");
        labels["kubernetes.io/os"] = json!("linux");
        labels["kubernetes.io/arch"] = json!("riscv64");
        labels["beta.kubernetes.io/arch"] = json!("wrong");
        scene.node_of("n", &labels, &[]).await;
        scene.node_of("plain", &in_zone(scene, "zone"), &[]).await;
        let beta = |node: &Value, name: &str| node["metadata"]["labels"][format!("beta.kubernetes.io/{name}")].clone();
        scene.node_is("n", "having old labels", |node| {
            beta(node, "os") == "linux" && beta(node, "arch") == "riscv64"
        }).await;
        scene.caller.merge(&scene.node_path("n"), &json!({"metadata": {"labels": {"beta.kubernetes.io/os": "odd"}}})).await.ok();
        scene.node_is("n", "having old labels", |node| beta(node, "os") == "linux").await;
        let plain = scene.caller.get(&scene.node_path("plain")).await.ok();
        assert!(beta(&plain, "os").is_null() && beta(&plain, "arch").is_null(), "{plain}");
    }

    /// From a node's silence to a pod's end: at once, after a while, or not yet, as the pod tolerates.
    ///
    /// Upstream: integration/node/lifecycle_test.go "TestTaintBasedEvictions: NodeNotReady and 200 tolerationseconds",
    /// "TestTaintBasedEvictions: NodeNotReady and 0 tolerationseconds", "TestTaintBasedEvictions: NodeUnreachable".
    lifecycle async fn pods_leave_a_node_that_is_not_well(scene: &Scene) {
        let _kubelet = Kubelet::apart(scene, "unwell", "unwell").await;
        let silent = Kubelet::apart(scene, "silent", "silent").await;
        for node in ["unwell", "silent"] {
            scene.node_is(node, "being ready", is("True")).await;
            let pod = |name: &str, given: i64| {
                let tolerations = [NOT_READY, UNREACHABLE].map(|key| crate::taint::seconds(key, given));
                Pod::named(&format!("{name}-{node}")).on(node).tolerating(tolerations)
            };
            scene.pods([pod("zero", 0), pod("two", 2), pod("long", 200)]).await;
        }
        let before = Timestamp::now();
        says(scene, "unwell", &[("Ready", "False")]).await;
        silent.falls_silent();
        for (node, taints) in [("unwell", UNWELL), ("silent", SILENT)] {
            scene.leaves(&format!("zero-{node}")).await;
            let node_object = scene.carries(node, &taints).await;
            let left = scene.leaves(&format!("two-{node}")).await;
            let due = since(&node_object) + jiff::SignedDuration::from_secs(2);
            assert!(left >= due && since(&node_object) >= crate::taint::whole(before), "{left} {due}");
            scene.stay(&[&format!("long-{node}")]);
        }
    }

    /// A pod that says nothing of a node's health is given five minutes, by the API server.
    ///
    /// Upstream: defaulttolerationseconds/defaulttolerationseconds_test.go "TestAdmission".
    /// Upstream: integration/node/lifecycle_test.go "TestTaintBasedEvictions: NodeNotReady with no pod tolerations".
    lifecycle async fn a_pod_that_says_nothing_has_five_minutes(scene: &Scene) {
        scene.node_of("n", &in_zone(scene, "zone"), &[]).await;
        let pod = scene.pod(Pod::named("p").on("n")).await;
        let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
        for key in [NOT_READY, UNREACHABLE] {
            let given = tolerations.iter().find(|toleration| toleration["key"] == key);
            assert_eq!(*given.unwrap(), crate::taint::seconds(key, 300));
        }
    }
}

/// When the taint was added that drives pods away.
pub(crate) fn since(node: &Value) -> Timestamp {
    let taints = node["spec"]["taints"].as_array().unwrap();
    let taint = taints.iter().find(|taint| taint["effect"] == "NoExecute").unwrap();
    text(taint, "/timeAdded").parse().unwrap()
}
