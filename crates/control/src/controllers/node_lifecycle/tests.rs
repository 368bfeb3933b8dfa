//! The controller on a stage.

use berth_engine::node::{DisruptionPolicy, WhenAllDown};

use super::*;
use crate::controllers::stage::Stage;

const NOTHING: [&str; 0] = [];

type NodeStage = Stage<NodeLifecycleController>;

fn stage() -> NodeStage {
    Stage::new(NodeLifecycleController::new(LifecyclePolicy::default(), Arc::default()))
}

fn stamp(now: Moment) -> String {
    now.timestamp().unwrap().to_string()
}

fn node(name: &str, ready: Option<&str>, now: Moment) -> Value {
    let conditions: Vec<Value> = ready
        .map(|status| {
            json!({
                "type": "Ready", "status": status, "reason": "KubeletReady", "message": "kubelet is posting ready status",
                "lastHeartbeatTime": stamp(now), "lastTransitionTime": stamp(now),
            })
        })
        .into_iter()
        .collect();
    json!({
        "metadata": {"name": name, "creationTimestamp": stamp(now)},
        "spec": {}, "status": {"conditions": conditions},
    })
}

/// The kubelet posts this now; what it does not answer for stays.
fn says(stage: &mut NodeStage, name: &str, ready: &str) {
    let mut posted = node(name, Some(ready), stage.now);
    if let Some(known) = stage.get(Kind::Node, "", name) {
        posted["spec"] = known["spec"].clone();
        posted["metadata"]["labels"] = known["metadata"]["labels"].clone();
        posted["metadata"]["creationTimestamp"] = known["metadata"]["creationTimestamp"].clone();
    }
    stage.put(Kind::Node, posted);
}

fn renews(stage: &mut NodeStage, name: &str) {
    let renewed = stage.now.timestamp().unwrap();
    stage.put(
        Kind::NodeLease,
        json!({
            "metadata": {"namespace": "kube-node-lease", "name": name},
            "spec": {"renewTime": format!("{renewed:.6}")},
        }),
    );
}

fn put_pod(stage: &mut NodeStage, name: &str, node: &str, ready: &str) {
    stage.put(
        Kind::Pod,
        json!({
            "metadata": {"namespace": "d", "name": name},
            "spec": {"nodeName": node},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": ready, "reason": "Told"}, {"type": "Initialized", "status": "True"},
            ]},
        }),
    );
}

/// Lets time pass; these nodes renew their leases meanwhile.
fn pass(stage: &mut NodeStage, seconds: i64, alive: &[&str]) -> Vec<String> {
    let mut written = Vec::new();
    for _ in 0..seconds {
        stage.now = stage.now.plus_seconds(1);
        for name in alive {
            renews(stage, name);
        }
        written.extend(stage.settle());
    }
    written
}

fn condition_of(stage: &NodeStage, kind: Kind, key: (&str, &str), name: &str) -> Value {
    let conditions = stage.get(kind, key.0, key.1).unwrap()["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|one| one["type"] == name).cloned().unwrap_or_default()
}

fn ready(stage: &NodeStage, node: &str) -> String {
    condition_of(stage, Kind::Node, ("", node), "Ready")["status"].as_str().unwrap_or("none").to_owned()
}

fn pod_ready(stage: &NodeStage, pod: &str) -> String {
    condition_of(stage, Kind::Pod, ("d", pod), "Ready")["status"].as_str().unwrap().to_owned()
}

fn taints(stage: &NodeStage, node: &str) -> Vec<String> {
    let list = stage.get(Kind::Node, "", node).unwrap()["spec"]["taints"].as_array().cloned();
    let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or_default().to_owned();
    list.unwrap_or_default()
        .iter()
        .map(|taint| {
            let key = text(taint, "key").replace("node.kubernetes.io/", "");
            format!("{key}:{}", text(taint, "effect"))
        })
        .collect()
}

fn events(stage: &NodeStage) -> Vec<String> {
    stage
        .notes
        .iter()
        .map(|note| format!("{} {}/{}: {}", note.reason, note.namespace, note.regarding.key.name, note.note))
        .collect()
}

/// Two nodes that are ready and have leases.
fn two() -> NodeStage {
    let mut stage = stage();
    for name in ["n1", "n2"] {
        says(&mut stage, name, "True");
        renews(&mut stage, name);
    }
    stage.settle();
    stage
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealthMarkPodsNotReady",
/// "TestMonitorNodeHealthMarkPodsNotReadyRetry: successful pod status update, no retry required".
#[test]
fn a_node_that_falls_silent_is_unknown_tainted_and_its_pods_are_told() {
    let mut stage = two();
    put_pod(&mut stage, "ready", "n1", "True");
    put_pod(&mut stage, "not-ready", "n1", "False");
    put_pod(&mut stage, "elsewhere", "n2", "True");
    assert_eq!(pass(&mut stage, 49, &["n2"]), NOTHING);
    assert_eq!(
        pass(&mut stage, 1, &["n2"]),
        ["patch Node /n1/status", "patch Node /n1", "patch Node /n1", "patch Pod d/ready/status"]
    );
    assert_eq!(ready(&stage, "n1"), "Unknown");
    let told = condition_of(&stage, Kind::Node, ("", "n1"), "Ready");
    assert_eq!(told["reason"], "NodeStatusUnknown");
    assert_eq!(told["message"], "Kubelet stopped posting node status.");
    let never = condition_of(&stage, Kind::Node, ("", "n1"), "PIDPressure");
    assert_eq!(never["reason"], "NodeStatusNeverUpdated");
    assert_eq!(taints(&stage, "n1"), ["unreachable:NoSchedule", "unreachable:NoExecute"]);
    assert_eq!((pod_ready(&stage, "ready"), pod_ready(&stage, "elsewhere")), ("False".into(), "True".into()));
    let told = condition_of(&stage, Kind::Pod, ("d", "ready"), "Ready");
    assert_eq!(
        (&told["reason"], &told["lastTransitionTime"]),
        (&json!("Told"), &json!(stage.now.to_string()))
    );
    assert_eq!(pass(&mut stage, 100, &["n2"]), NOTHING);
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestNodeEventGeneration".
#[test]
fn what_happens_to_nodes_is_told_in_events() {
    let mut stage = two();
    put_pod(&mut stage, "p", "n1", "True");
    pass(&mut stage, 51, &["n2"]);
    stage.remove(Kind::Node, &ObjectKey::new("", "n2"));
    stage.settle();
    assert_eq!(
        events(&stage),
        [
            "RegisteredNode default/n1: Node n1 event: Registered Node n1 in Controller",
            "RegisteredNode default/n2: Node n2 event: Registered Node n2 in Controller",
            "NodeNotReady default/n1: Node n1 status is now: NodeNotReady",
            "NodeNotReady d/p: Node is not ready",
            "RemovingNode default/n2: Node n2 event: Removing Node n2 from Controller",
        ]
    );
    assert!(
        stage.notes.iter().all(|note| note.regarding.uid.is_some() && note.reporter == "node-controller")
    );
}

#[test]
fn a_node_made_again_under_its_name_is_told_as_two() {
    let mut stage = two();
    stage.notes.clear();
    stage.remove(Kind::Node, &ObjectKey::new("", "n2"));
    let now = stage.now;
    stage.put(Kind::Node, node("n2", Some("True"), now));
    stage.settle();
    let reasons: Vec<_> = stage.notes.iter().map(|note| note.reason).collect();
    assert_eq!(reasons, ["RemovingNode", "RegisteredNode"]);
}

/// Who stands by hears everything and judges nothing.
#[test]
fn who_stands_by_does_not_remember_nodes_that_are_no_more() {
    let mut stage = stage();
    for number in 0..500 {
        let name = format!("n{number}");
        let object = node(&name, Some("True"), stage.now);
        stage.put(Kind::Node, object);
        renews(&mut stage, &name);
        stage.remove(Kind::Node, &ObjectKey::new("", &name));
        stage.remove(Kind::NodeLease, &ObjectKey::new("kube-node-lease", &name));
    }
    assert_eq!((stage.due.waiting(), stage.controller.removed.len()), (0, 0));
    assert!(stage.settle().is_empty() && events(&stage).is_empty());
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealthUpdateStatus: created long ago, without status",
/// "TestMonitorNodeHealthUpdateStatus: created recently, without status".
#[test]
fn a_node_that_never_says_anything_is_unknown_a_startup_grace_after_it_was_made() {
    let mut stage = two();
    let now = stage.now;
    stage.put(Kind::Node, node("new", None, now));
    pass(&mut stage, 59, &["n1", "n2"]);
    assert_eq!(ready(&stage, "new"), "none");
    pass(&mut stage, 1, &["n1", "n2"]);
    assert_eq!(ready(&stage, "new"), "Unknown");
    let told = condition_of(&stage, Kind::Node, ("", "new"), "Ready");
    assert_eq!(
        (&told["reason"], &told["lastHeartbeatTime"]),
        (&json!("NodeStatusNeverUpdated"), &json!(stamp(now)))
    );
}

#[test]
fn a_node_is_welcome_when_its_kubelet_says_so_and_its_labels_follow() {
    let mut stage = two();
    let now = stage.now;
    let mut new = node("new", Some("False"), now);
    new["spec"]["taints"] = json!([
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, {"key": "mine", "effect": "NoSchedule"},
    ]);
    new["metadata"]["labels"] = json!({"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "windows"});
    stage.put(Kind::Node, new);
    stage.settle();
    assert_eq!(taints(&stage, "new"), ["not-ready:NoSchedule", "mine:NoSchedule", "not-ready:NoExecute"]);
    says(&mut stage, "new", "True");
    assert_eq!(stage.settle(), ["patch Node /new"]);
    assert_eq!(taints(&stage, "new"), ["mine:NoSchedule"]);
    let labels = &stage.get(Kind::Node, "", "new").unwrap()["metadata"]["labels"];
    assert_eq!(labels["beta.kubernetes.io/os"], "linux");
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go
/// "TestProcessPodMarkPodNotReady: Pod marked as NotReady when the scheduled node is not ready".
#[test]
fn a_pod_that_comes_late_to_a_silent_node_is_told_as_well() {
    let mut stage = two();
    pass(&mut stage, 50, &["n2"]);
    put_pod(&mut stage, "late", "n1", "True");
    assert_eq!(stage.settle(), ["patch Pod d/late/status"]);
    put_pod(&mut stage, "late", "n1", "True");
    assert_eq!(stage.settle(), NOTHING, "somebody who is there made it ready again");
}

/// How many of the pods `p00` to `p39` have been told.
fn told_of_40(stage: &NodeStage) -> usize {
    (0..40).filter(|index| pod_ready(stage, &format!("p{index:02}")) == "False").count()
}

/// Two nodes, and 40 ready pods on the first.
fn forty() -> NodeStage {
    let mut stage = two();
    for index in 0..40 {
        put_pod(&mut stage, &format!("p{index:02}"), "n1", "True");
    }
    stage
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go
/// "TestMonitorNodeHealthMarkPodsNotReadyRetry: unsuccessful pod status update, retry required".
#[test]
fn pods_are_told_until_all_have_been_also_by_a_new_process() {
    let mut before = forty();
    before.refused = Some("patch Pod d/p35".to_owned());
    pass(&mut before, 50, &["n2"]);
    assert_eq!(told_of_40(&before), 39);
    let mut after = stage();
    after.now = before.now;
    for ((kind, _), object) in before.objects() {
        after.put(*kind, object.clone());
    }
    after.settle();
    assert_eq!(told_of_40(&after), 40);
}

#[test]
fn a_pod_that_cannot_be_told_keeps_nobody_else_waiting_and_is_tried_again_later_and_later() {
    let mut stage = forty();
    stage.refused = Some("patch Pod d/p05".to_owned());
    let written = pass(&mut stage, 50, &["n2"]);
    let tries = |written: &[String]| written.iter().filter(|line| line.starts_with("refused: ")).count();
    assert_eq!((told_of_40(&stage), tries(&written)), (39, 1), "{written:?}");
    assert_eq!(written.iter().filter(|line| line.starts_with("patch Pod")).count(), 39, "each is told once");

    let mut waits = Vec::new();
    for _ in 0..12 {
        let next = stage.due.next().expect("it is tried again");
        waits.push(stage.now.until(next));
        stage.now = next;
        renews(&mut stage, "n2");
        assert_eq!(stage.settle(), ["refused: patch Pod d/p05/status"]);
    }
    assert!(
        waits.is_sorted_by(|one, next| one < next || *one >= std::time::Duration::from_secs(30)),
        "{waits:?}"
    );
    assert!(waits[11] >= std::time::Duration::from_secs(20), "{waits:?}");

    stage.refused = None;
    assert_eq!(pass(&mut stage, 31, &["n2"]), ["patch Pod d/p05/status"]);
    let told = |pod: &str| stage.notes.iter().filter(|note| &*note.regarding.key.name == pod).count();
    assert_eq!((told("p05"), told("p06")), (1, 1), "an event for each");
}

#[test]
fn when_no_pod_can_be_told_each_is_tried_once_and_then_waits() {
    let mut stage = forty();
    stage.refused = Some("patch Pod".to_owned());
    let written = pass(&mut stage, 50, &["n2"]);
    assert_eq!(written.iter().filter(|line| line.starts_with("refused: ")).count(), 40);
    assert_eq!(taints(&stage, "n1"), ["unreachable:NoSchedule", "unreachable:NoExecute"]);
}

#[test]
fn in_a_new_silence_pods_are_told_again() {
    let mut stage = forty();
    stage.refused = Some("patch Pod d/p05".to_owned());
    pass(&mut stage, 50, &["n2"]);
    says(&mut stage, "n1", "True");
    for index in 0..40 {
        put_pod(&mut stage, &format!("p{index:02}"), "n1", "True");
    }
    let back = pass(&mut stage, 40, &["n1", "n2"]);
    assert!(
        back.iter().all(|line| line == "patch Node /n1"),
        "nobody is told of a node that is back: {back:?}"
    );
    assert_eq!(told_of_40(&stage), 0);
    stage.refused = None;
    let written = pass(&mut stage, 60, &["n2"]);
    assert_eq!(told_of_40(&stage), 40);
    assert_eq!(written.iter().filter(|line| line.starts_with("patch Pod")).count(), 40);
}

#[test]
fn a_silence_that_ends_and_begins_again_unnoticed_is_a_new_one() {
    let mut stage = two();
    put_pod(&mut stage, "p", "n1", "True");
    pass(&mut stage, 50, &["n2"]);
    let silent = stage.get(Kind::Node, "", "n1").unwrap().clone();
    says(&mut stage, "n1", "True");
    put_pod(&mut stage, "p", "n1", "True");
    stage.put(Kind::Node, silent);
    assert_eq!(stage.settle(), ["patch Pod d/p/status"]);
}

#[test]
fn pods_are_told_when_not_everything_is_down_any_more_and_none_a_second_time() {
    let disruption = DisruptionPolicy { when_all_down: WhenAllDown::Hold, ..DisruptionPolicy::default() };
    let policy = LifecyclePolicy { disruption, ..LifecyclePolicy::default() };
    let mut stage = Stage::new(NodeLifecycleController::new(policy, Arc::default()));
    for name in ["n1", "n2"] {
        says(&mut stage, name, "True");
        renews(&mut stage, name);
    }
    put_pod(&mut stage, "early", "n1", "True");
    stage.settle();
    pass(&mut stage, 55, &["n2"]);
    assert_eq!(pod_ready(&stage, "early"), "False");
    put_pod(&mut stage, "early", "n1", "True");
    pass(&mut stage, 60, &[]);
    put_pod(&mut stage, "held", "n1", "True");
    pass(&mut stage, 10, &[]);
    assert_eq!(pod_ready(&stage, "held"), "True");
    says(&mut stage, "n2", "True");
    pass(&mut stage, 300, &["n2"]);
    assert_eq!(ready(&stage, "n1"), "Unknown");
    assert_eq!((pod_ready(&stage, "held"), pod_ready(&stage, "early")), ("False".into(), "True".into()));
}

#[test]
fn what_is_remembered_of_pods_goes_with_them() {
    let mut stage = two();
    put_pod(&mut stage, "p", "n1", "True");
    pass(&mut stage, 50, &["n2"]);
    stage.remove(Kind::Pod, &ObjectKey::new("d", "p"));
    put_pod(&mut stage, "p", "n1", "True");
    assert_eq!(stage.settle(), ["patch Pod d/p/status"], "another pod by the same name");
    stage.remove(Kind::Node, &ObjectKey::new("", "n1"));
    put_pod(&mut stage, "q", "n1", "True");
    stage.settle();
    assert_eq!(
        pod_ready(&stage, "q"),
        "True",
        "of a node that is not there nobody can say that it is silent"
    );
    assert!(stage.controller.silent.is_empty());
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestProcessPodMarkPodNotReady: Do not mark pod as NotReady when the
/// scheduled node's healthy is not gathered yet".
#[test]
fn where_the_kubelet_says_that_its_node_is_not_ready_its_pods_are_its_business() {
    let mut stage = two();
    put_pod(&mut stage, "p", "n1", "True");
    says(&mut stage, "n1", "False");
    stage.settle();
    assert_eq!(taints(&stage, "n1"), ["not-ready:NoSchedule", "not-ready:NoExecute"]);
    assert_eq!(pod_ready(&stage, "p"), "True");
    pass(&mut stage, 50, &["n2"]);
    assert_eq!((ready(&stage, "n1"), pod_ready(&stage, "p")), ("Unknown".into(), "False".into()));
}

#[test]
fn a_new_process_takes_no_taint_off_and_starts_no_clock_again() {
    let mut before = two();
    pass(&mut before, 60, &["n2"]);
    let taints_before = before.get(Kind::Node, "", "n1").unwrap()["spec"]["taints"].clone();
    let mut after = stage();
    after.now = before.now.plus_seconds(5_000);
    for ((kind, _), object) in before.objects() {
        after.put(*kind, object.clone());
    }
    assert_eq!(after.settle(), NOTHING);
    assert_eq!(pass(&mut after, 49, &[]), NOTHING, "everybody has a whole grace");
    assert_eq!(after.get(Kind::Node, "", "n1").unwrap()["spec"]["taints"], taints_before);
}

#[test]
fn where_everything_is_down_no_pod_is_made_to_leave() {
    let mut stage = two();
    put_pod(&mut stage, "p", "n1", "True");
    pass(&mut stage, 60, &[]);
    for name in ["n1", "n2"] {
        assert_eq!(taints(&stage, name), ["unreachable:NoSchedule"], "{name}");
    }
    assert_eq!(pod_ready(&stage, "p"), "False", "as Kubernetes does");
    let disruption = DisruptionPolicy { when_all_down: WhenAllDown::Hold, ..DisruptionPolicy::default() };
    let policy = LifecyclePolicy { disruption, ..LifecyclePolicy::default() };
    let mut held = Stage::new(NodeLifecycleController::new(policy, Arc::default()));
    says(&mut held, "n1", "True");
    put_pod(&mut held, "p", "n1", "True");
    held.settle();
    pass(&mut held, 60, &[]);
    assert_eq!((ready(&held, "n1"), pod_ready(&held, "p")), ("Unknown".into(), "True".into()));
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by kubelet exceeds grace
/// period. Node lease is expired in cache, but fresh in API server.".
#[test]
fn before_a_verdict_the_server_is_asked_for_the_lease_and_for_want_of_one_whether_there_is_none() {
    let mut stage = two();
    let mut verdict_of = |lease: bool| {
        if !lease {
            stage.remove(Kind::NodeLease, &ObjectKey::new("kube-node-lease", "n1"));
        }
        let now = stage.now.plus_seconds(60);
        stage.controller.decide(&subject("n1"), &stage.world, now).writes
    };
    for has_lease in [true, false] {
        let writes = verdict_of(has_lease);
        let [Write::Unchanged(lease), Write::Strategic { target, subresource: Some("status"), .. }] =
            &writes[..]
        else {
            panic!("{writes:?}")
        };
        assert_eq!((lease.kind, &*lease.key.name), (Kind::NodeLease, "n1"));
        assert_eq!(lease.resource_version.is_some(), has_lease);
        assert!(target.uid.is_some() && target.resource_version.is_some(), "the node as it was seen");
    }
}

#[test]
fn the_figures_of_the_zones_are_told_in_kubernetes_words() {
    let mut stage = two();
    stage.put(Kind::Node, {
        let mut node = node("far", Some("True"), stage.now);
        node["metadata"]["labels"] =
            json!({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"});
        node
    });
    pass(&mut stage, 60, &["n2", "far"]);
    let text = stage.controller.metrics.text();
    for line in [
        "node_collector_zone_size{zone=\"\"} 2",
        "node_collector_zone_size{zone=\"r:\0:z\"} 1",
        "node_collector_unhealthy_nodes_in_zone{zone=\"\"} 1",
        "node_collector_zone_health{zone=\"\"} 50",
        "node_collector_zone_health{zone=\"r:\0:z\"} 100",
        "node_collector_evictions_total{zone=\"\"} 1",
    ] {
        assert!(text.lines().any(|told| told == line), "{line:?} is not in\n{text}");
    }
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node lease expired in cache but fresh in API server. EnsureReady should skip
/// on second run.".
#[test]
fn nobody_falls_silent_while_the_watch_of_leases_is_lost() {
    let mut stage = stage();
    says(&mut stage, "n", "True");
    renews(&mut stage, "n");
    stage.settle();
    stage.world.hear(crate::world::Told::Lost(Kind::NodeLease));
    for _ in 0..20 {
        assert_eq!(stage.after_seconds(10), NOTHING, "nothing could be heard");
    }
    stage.world.hear(crate::world::Told::Followed(Kind::NodeLease));
    assert_eq!(stage.settle(), NOTHING);
    for _ in 0..4 {
        assert_eq!(stage.after_seconds(10), NOTHING, "a whole grace from then on");
    }
    assert_ne!(stage.after_seconds(11), NOTHING, "a node that is silent all the same");
}

#[test]
fn a_server_that_does_not_answer_says_nothing_of_its_nodes() {
    let mut stage = stage();
    says(&mut stage, "n", "True");
    renews(&mut stage, "n");
    stage.settle();
    for _ in 0..4 {
        stage.after_seconds(10);
    }
    let subject = ObjectKey::new("", "n");
    let ended = Ended::Unanswered { jitter: 1.0 };
    stage.controller.ended(&subject, ended, stage.now, &stage.world, &mut stage.due);
    assert_eq!(stage.after_seconds(12), NOTHING, "the grace begins anew");
    for _ in 0..4 {
        stage.after_seconds(10);
    }
    assert!(stage.get(Kind::Node, "", "n").unwrap()["status"]["conditions"].to_string().contains("Unknown"));
}
