//! Replacements on a stage: what is written when, what is read before, and what is never done.

use serde_json::{Value, json};

mod last_looks;
mod operators;
mod reads;
mod restarts;
mod room;

use super::*;
use crate::controllers::stage::Stage as Theatre;
use crate::serve::Metrics;

type Scene = Theatre<ReplacementController>;

const NS: &str = "n";
const KEY: &str = "example.org/maintenance";

fn node(name: &str, taints: &Value) -> Value {
    json!({
        "metadata": {
            "name": name, "labels": {"kubernetes.io/hostname": name}, "creationTimestamp": "2023-01-01T00:00:00Z",
        },
        "spec": {"taints": taints},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
        },
    })
}

fn taint() -> Value {
    json!([{"key": KEY, "effect": "NoSchedule"}])
}

fn pod(index: usize, on: &str, is_ready: bool) -> Value {
    json!({
        "metadata": {
            "name": format!("db-{index}"), "namespace": NS, "labels": {"app": "db"},
            "creationTimestamp": "2023-06-01T00:00:00Z",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "set", "controller": true},
            ],
        },
        "spec": {
            "nodeName": on,
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": format!("data-db-{index}")}}],
        },
        "status": {
            "phase": if is_ready { "Running" } else { "Pending" },
            "conditions": [{
                "type": "Ready", "status": if is_ready { "True" } else { "False" },
                "lastTransitionTime": "2023-06-01T00:01:00Z",
            }],
        },
    })
}

fn claim(index: usize, volume: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("data-db-{index}"), "namespace": NS, "finalizers": ["kubernetes.io/pvc-protection"],
        },
        "spec": {"storageClassName": "local", "volumeName": volume},
    })
}

fn volume(name: &str, on: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "local": {"path": "/d"}, "persistentVolumeReclaimPolicy": "Delete",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]},
            ]}]}},
        },
    })
}

fn set(more: &Value) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": NS, "uid": "set", "resourceVersion": "1", "generation": 1},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "db"}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        },
        "status": {
            "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "currentRevision": "a", "updateRevision": "a",
        },
    });
    for (field, value) in more.as_object().unwrap() {
        set["status"][field] = value.clone();
    }
    set
}

fn policy(more: &Value) -> Value {
    let mut policy = json!({
        "metadata": {"name": "p", "namespace": NS, "generation": 1},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "mode": "Enforce",
            "triggers": {"taints": [{"key": KEY, "durationSeconds": 60}]},
            "strategy": {"ready": {"minReadySeconds": 30, "timeoutSeconds": 600}},
        },
    });
    policy["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    policy
}

fn with_volumes() -> Value {
    json!({"strategy": {
        "volumes": {"policy": "DeleteNodeLocal", "setReclaimPolicy": "Retain"},
        "ready": {"minReadySeconds": 30, "timeoutSeconds": 600},
    }})
}

/// Volumes stay, and nobody asks where the successor may go.
fn plain(more: &Value) -> Value {
    let mut plain = json!({"strategy": {
        "placement": {"requireFeasibleTarget": false}, "ready": {"minReadySeconds": 30, "timeoutSeconds": 600},
    }});
    plain.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    plain
}

fn fresh() -> ReplacementController {
    ReplacementController::new(Arc::new(Metrics::default()))
}

/// Three members on nodes of their own, a node to spare, and a policy.
fn scene(more: &Value) -> Scene {
    let mut scene = Scene::new(fresh());
    for index in 0..4 {
        scene.put(Kind::Node, node(&format!("n{index}"), &json!([])));
    }
    for index in 0..3 {
        scene.put(Kind::Volume, volume(&format!("pv-{index}"), &format!("n{index}")));
        scene.put(Kind::Claim, claim(index, &format!("pv-{index}")));
        scene.put(Kind::Pod, pod(index, &format!("n{index}"), true));
    }
    scene.foreign.insert(ObjectKey::new(NS, "db"), set(&json!({})));
    scene.put(Kind::ReplacementPolicy, policy(more));
    scene
}

/// What was done, without what was only written down.
fn done(written: Vec<String>) -> Vec<String> {
    written.into_iter().filter(|line| !line.ends_with("/status")).collect()
}

fn phase(scene: &Scene) -> Vec<String> {
    let works = scene.objects().iter().filter(|((kind, _), _)| *kind == Kind::Replacement);
    works
        .map(|(_, work)| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{} {}", text(&work["spec"]["target"]["name"]), text(&work["status"]["phase"]))
        })
        .collect()
}

fn condition(scene: &Scene, kind: &str) -> Value {
    let policy = scene.get(Kind::ReplacementPolicy, NS, "p").unwrap();
    let conditions = policy["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NS, name)
}

/// What Kubernetes does once a pod is gone: its claim, if it was deleted, goes, and both are made anew elsewhere.
fn come_back(scene: &mut Scene, index: usize, on: &str, is_ready: bool) {
    let name = format!("data-db-{index}");
    let is_leaving = scene
        .get(Kind::Claim, NS, &name)
        .is_some_and(|claim| !claim["metadata"]["deletionTimestamp"].is_null());
    if is_leaving {
        scene.remove(Kind::Claim, &key(&name));
        scene.put(Kind::Volume, volume(&format!("new-{index}"), on));
        scene.put(Kind::Claim, claim(index, &format!("new-{index}")));
    }
    let mut pod = pod(index, on, is_ready);
    pod["status"]["conditions"][0]["lastTransitionTime"] = json!(scene.now.to_string());
    pod["metadata"]["creationTimestamp"] = json!(scene.now.to_string());
    scene.put(Kind::Pod, pod);
}

#[test]
fn a_member_on_a_tainted_node_is_replaced_from_the_first_sight_to_the_end() {
    let mut scene = scene(&with_volumes());
    assert_eq!(done(scene.settle()), [""; 0]);
    assert_eq!(condition(&scene, "NodeAccess")["status"], "True");
    scene.put(Kind::Node, node("n0", &taint()));
    assert_eq!(done(scene.settle()), [""; 0]);
    let status = &scene.get(Kind::ReplacementPolicy, NS, "p").unwrap()["status"];
    assert_eq!(status["counts"]["detected"], 1, "{status}");
    assert_eq!(status["pods"][0]["conditions"][0]["type"], "NodeTaintDetected");
    assert_eq!(status["pods"][0]["causes"][0]["sinceSource"], "FirstSeen");
    assert_eq!(done(scene.after_seconds(60)), [""; 0], "strictly longer than so many seconds");
    assert_eq!(
        done(scene.after_seconds(1)),
        [
            "create Replacement n/".to_owned() + &works(&scene)[0],
            "patch PersistentVolume /pv-0".to_owned(),
            "delete PersistentVolumeClaim n/data-db-0".to_owned(),
            "evict Pod n/db-0".to_owned(),
        ]
    );
    let volume = scene.get(Kind::Volume, "", "pv-0").unwrap();
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert_eq!(phase(&scene), ["db-0 AwaitingSuccessor"]);
    come_back(&mut scene, 0, "n3", false);
    assert_eq!(done(scene.settle()), [""; 0]);
    assert_eq!(phase(&scene), ["db-0 AwaitingSuccessor"]);
    scene.now = scene.now.plus_seconds(10);
    come_back(&mut scene, 0, "n3", true);
    scene.settle();
    assert_eq!(phase(&scene), ["db-0 Verifying"]);
    assert_eq!(done(scene.after_seconds(30)), [""; 0]);
    assert_eq!(phase(&scene), ["db-0 Done"]);
    let work = scene.get(Kind::Replacement, NS, &works(&scene)[0]).unwrap();
    assert_eq!(work["status"]["successor"]["node"], "n3");
    let reasons: Vec<&str> = scene.notes.iter().map(|note| note.reason).collect();
    assert!(reasons.contains(&"ReplacementRemoves") && reasons.contains(&"Replaced"), "{reasons:?}");
    assert_eq!(done(scene.after_seconds(3_600)), [""; 0], "and that is all");
}

fn works(scene: &Scene) -> Vec<String> {
    let names = scene.names(Kind::Replacement);
    names.into_iter().map(|name| name.trim_start_matches("n/").to_owned()).collect()
}

/// Another process takes over: it has seen what there is, and nothing else.
fn restart(scene: &mut Scene) {
    let objects: Vec<(Kind, Value)> =
        scene.objects().iter().map(|((kind, _), object)| (*kind, object.clone())).collect();
    let mut next = Scene::new(fresh());
    next.now = scene.now;
    next.foreign = std::mem::take(&mut scene.foreign);
    next.notes = std::mem::take(&mut scene.notes);
    for (kind, object) in objects {
        next.bring(kind, object);
    }
    *scene = next;
}

#[test]
fn a_trial_tells_what_would_be_done_and_does_nothing() {
    let mut scene = scene(&plain(&json!({"mode": "DryRun"})));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    assert_eq!(done(scene.after_seconds(61)), [""; 0]);
    let status = &scene.get(Kind::ReplacementPolicy, NS, "p").unwrap()["status"];
    assert_eq!(status["counts"]["blocked"], 1);
    assert!(status["pods"][0]["message"].as_str().unwrap().contains("DryRun"), "{status}");
}

#[test]
fn without_rules_about_nodes_no_node_is_read() {
    let mut scene = scene(&json!({
        "triggers": {}, "replacements": {"taintReplacementOptions": [], "failureDetectionTimeSeconds": 60},
    }));
    scene.is_denied_nodes = true;
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.put(Kind::Pod, pod(1, "n1", false));
    assert_eq!(done(scene.settle()).last().map(String::as_str), Some("evict Pod n/db-1"));
    for ask in &scene.asks {
        let is_of_nodes = match ask {
            Ask::Get { kind, .. } | Ask::List { kind, .. } => *kind == Kind::Node,
            Ask::Member { with_node, .. } => *with_node,
            Ask::May { .. } => true,
            Ask::Trial { .. } => false,
        };
        assert!(!is_of_nodes, "{ask:?}");
    }
    assert!(!scene.controller.needs_more(), "and none is watched");
    assert_eq!(condition(&scene, "NodeAccess")["reason"], "NotNeeded");
}

#[test]
fn who_may_not_read_nodes_is_told_so_and_asks_again() {
    let mut scene = scene(&json!({}));
    scene.is_denied_nodes = true;
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    assert_eq!(condition(&scene, "NodeAccess")["status"], "False");
    assert!(!scene.controller.needs_more());
    assert_eq!(done(scene.after_seconds(30)), [""; 0]);
    scene.is_denied_nodes = false;
    scene.after_seconds(60);
    assert_eq!(condition(&scene, "NodeAccess")["status"], "True");
    assert!(scene.controller.needs_more());
}

/// Another process takes over in each state there is: what is done in all is the same, each thing once.
#[test]
fn volumes_of_two_members_are_never_removed_at_once() {
    let mut more = with_volumes();
    more["budget"] = json!({"maxConcurrent": 3, "breaker": {"maxAffectedFaultDomains": 3}});
    let mut scene = scene(&more);
    scene.put(Kind::Node, node("n4", &json!([])));
    for name in ["n0", "n1", "n2"] {
        scene.put(Kind::Node, node(name, &taint()));
    }
    scene.settle();
    scene.now = scene.now.plus_seconds(61);
    let mut order = Vec::new();
    for _ in 0..40 {
        let written = done(scene.after_seconds(5));
        order.extend(written.iter().filter(|line| line.contains("evict")).cloned());
        let leaving = (0..3).filter(|index| {
            let claim = scene.get(Kind::Claim, NS, &format!("data-db-{index}"));
            claim.is_some_and(|claim| !claim["metadata"]["deletionTimestamp"].is_null())
        });
        assert!(leaving.count() <= 1);
        let under_way = phase(&scene).iter().filter(|phase| !phase.ends_with("Done")).count();
        assert!(under_way <= 1, "{:?}", phase(&scene));
        for index in 0..3 {
            if scene.get(Kind::Pod, NS, &format!("db-{index}")).is_none() {
                come_back(&mut scene, index, if index == 0 { "n3" } else { "n4" }, true);
            }
        }
    }
    assert_eq!(order, ["evict Pod n/db-0", "evict Pod n/db-1", "evict Pod n/db-2"]);
}

#[test]
fn a_disruption_budget_keeps_claims_and_pods_alike() {
    let mut scene = scene(&with_volumes());
    scene.budget = Some("the budget is used up".to_owned());
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    let written = done(scene.after_seconds(61));
    assert!(!written.iter().any(|line| line.starts_with("delete")), "{written:?}");
    let name = works(&scene)[0].clone();
    scene.after_seconds(5);
    let message = scene.get(Kind::Replacement, NS, &name).unwrap()["status"]["message"].clone();
    assert!(message.as_str().unwrap().contains("the budget is used up"), "{message}");
    scene.budget = None;
    assert!(done(scene.after_seconds(20)).contains(&"evict Pod n/db-0".to_owned()));
}

#[test]
fn a_freeze_holds_replacements_too() {
    let mut scene = scene(&plain(&json!({})));
    scene.put(Kind::Freeze, json!({"metadata": {"name": "berth-freeze-evictions", "namespace": "h"}, "data": {"reason": "storm"}}));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    assert_eq!(done(scene.after_seconds(61)), [""; 0]);
    assert_eq!(condition(&scene, "Paused")["reason"], "Frozen");
    let confirmed = |scene: &Scene, reason| scene.notes.iter().filter(|note| note.reason == reason).count();
    assert_eq!(confirmed(&scene, "EvictionsFrozen"), 1, "whoever threw the switch waits for it");
    scene.remove(Kind::Freeze, &ObjectKey::new("h", "berth-freeze-evictions"));
    assert!(done(scene.after_seconds(1)).contains(&"evict Pod n/db-0".to_owned()));
    assert_eq!(confirmed(&scene, "EvictionsUnfrozen"), 1);
}

#[test]
fn a_taint_that_goes_calls_the_replacement_off_before_anything_is_removed() {
    let mut scene = scene(&plain(&json!({"gates": [{"name": "never", "cel": "false"}]})));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.after_seconds(61);
    assert_eq!(phase(&scene), ["db-0 Gating"]);
    let work = scene.get(Kind::Replacement, NS, &works(&scene)[0]).unwrap();
    assert_eq!(work["status"]["gates"][0]["verdict"], "Deny", "{work}");
    scene.put(Kind::Node, node("n0", &json!([])));
    scene.settle();
    assert_eq!(phase(&scene), ["db-0 Aborted"]);
}

#[test]
fn two_policies_that_speak_of_the_same_pod_both_stand_still() {
    let mut scene = scene(&plain(&json!({})));
    let mut other = policy(&plain(&json!({})));
    other["metadata"]["name"] = json!("q");
    scene.put(Kind::ReplacementPolicy, other);
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    assert_eq!(done(scene.after_seconds(61)), [""; 0]);
    assert_eq!(condition(&scene, "Overlap")["status"], "True");
    scene.remove(Kind::ReplacementPolicy, &key("q"));
    assert!(done(scene.after_seconds(15)).contains(&"evict Pod n/db-0".to_owned()));
}

#[test]
fn a_successor_that_is_bound_where_its_volume_is_not_is_made_anew() {
    let mut scene = scene(&with_volumes());
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.after_seconds(61);
    assert_eq!(phase(&scene), ["db-0 AwaitingSuccessor"]);
    // The scheduler went by the claim that was on its way out.
    come_back(&mut scene, 0, "n3", false);
    let mut stuck = pod(0, "n1", false);
    stuck["metadata"]["creationTimestamp"] = json!(scene.now.to_string());
    scene.put(Kind::Pod, stuck);
    assert_eq!(done(scene.settle()), ["delete Pod n/db-0"]);
    come_back(&mut scene, 0, "n3", true);
    scene.settle();
    scene.after_seconds(31);
    assert_eq!(phase(&scene), ["db-0 Done"]);
}

#[test]
fn a_policy_that_cannot_be_understood_is_told_so_and_starts_nothing() {
    let mut scene = scene(&json!({"gates": [{"name": "g", "cel": "pod."}]}));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    assert_eq!(done(scene.after_seconds(600)), [""; 0]);
    let accepted = condition(&scene, "Accepted");
    assert_eq!(accepted["status"], "False");
    assert!(accepted["message"].as_str().unwrap().contains("spec.gates[0].cel"), "{accepted}");
}

#[test]
fn a_workload_of_the_same_kind_and_name_in_another_group_is_not_meant() {
    let mut other = plain(&json!({}));
    other["targetRef"] = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "db"});
    let mut scene = scene(&other);
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    assert_eq!(done(scene.after_seconds(61)), [""; 0]);
    assert_eq!(done(scene.after_seconds(60)), [""; 0]);
}

#[test]
fn a_taint_that_makes_kubernetes_faster_is_warned_about() {
    let mut scene = scene(&json!({"triggers": {"taints": [{"key": KEY, "durationSeconds": 600}]}}));
    scene.put(Kind::Node, node("n0", &json!([{"key": KEY, "effect": "NoExecute"}])));
    scene.settle();
    assert_eq!(condition(&scene, "TaintEvictionRace")["status"], "True");
    assert!(scene.notes.iter().any(|note| note.reason == "TaintEvictionRace" && note.is_warning));
}

#[test]
fn no_place_for_the_successor_is_no_replacement() {
    let mut scene = scene(&json!({}));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    // The volumes stay, and with them the member.
    assert_eq!(done(scene.after_seconds(61)), [""; 0]);
    let status = &scene.get(Kind::ReplacementPolicy, NS, "p").unwrap()["status"];
    assert!(status["pods"][0]["message"].as_str().unwrap().contains("no other node"), "{status}");
}

#[test]
fn a_policy_that_is_made_anew_does_not_go_on_with_what_another_began() {
    let mut scene = scene(&plain(&json!({"gates": [{"name": "g", "cel": "false"}]})));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.after_seconds(61);
    assert_eq!(phase(&scene), ["db-0 Gating"]);
    scene.remove(Kind::ReplacementPolicy, &key("p"));
    scene.settle();
    let patient = json!({"triggers": {"taints": [{"key": KEY, "durationSeconds": 600}]}});
    scene.put(Kind::ReplacementPolicy, policy(&plain(&patient)));
    assert_eq!(done(scene.settle()), [""; 0]);
    assert_eq!(done(scene.after_seconds(300)), [""; 0], "it has a clock of its own");
    let written = done(scene.after_seconds(301));
    assert!(written.iter().any(|line| line.starts_with("create Replacement")), "{written:?}");
}

#[test]
fn claims_stay_if_the_policy_is_changed_while_a_budget_holds_the_pod() {
    let mut scene = scene(&with_volumes());
    scene.budget = Some("the budget is used up".to_owned());
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.after_seconds(61);
    assert_eq!(phase(&scene), ["db-0 RemovingVolumes"]);
    let mut keeping = policy(&plain(&json!({})));
    keeping["metadata"]["generation"] = json!(2);
    // A replacement is named by when it began.
    scene.now = scene.now.plus_seconds(5);
    scene.put(Kind::ReplacementPolicy, keeping);
    scene.budget = None;
    let mut written = done(scene.settle());
    written.extend(done(scene.after_seconds(30)));
    assert!(!written.iter().any(|line| line.starts_with("delete")), "{written:?}");
    assert!(phase(&scene).contains(&"db-0 Aborted".to_owned()), "{:?}", phase(&scene));
    assert!(written.contains(&"evict Pod n/db-0".to_owned()), "and the pod goes without them: {written:?}");
}

#[test]
fn a_pod_that_the_selector_no_longer_names_is_let_go() {
    let mut by_label = plain(&json!({"gates": [{"name": "g", "cel": "false"}]}));
    by_label["selector"] = json!({"matchLabels": {"app": "db"}});
    by_label["targetRef"] = Value::Null;
    let mut scene = scene(&by_label);
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.after_seconds(61);
    assert_eq!(phase(&scene), ["db-0 Gating"]);
    let mut other = pod(0, "n0", true);
    other["metadata"]["labels"] = json!({"app": "other"});
    scene.put(Kind::Pod, other);
    scene.settle();
    assert_eq!(phase(&scene), ["db-0 Aborted"]);
}

/// Each of them is complete by itself, and the policy names them all.
#[test]
fn no_volume_goes_while_another_workload_of_the_policy_is_not_complete() {
    let mut by_label = with_volumes();
    by_label["selector"] = json!({"matchLabels": {"app": "db"}});
    by_label["targetRef"] = Value::Null;
    let mut scene = scene(&by_label);
    let mut other_set = set(&json!({}));
    (other_set["metadata"]["name"], other_set["metadata"]["uid"]) = (json!("other"), json!("other"));
    other_set["spec"]["replicas"] = json!(2);
    scene.foreign.insert(key("other"), other_set);
    let other = |index: usize| {
        let mut member = pod(index, "n3", true);
        member["metadata"]["name"] = json!(format!("other-{index}"));
        member["metadata"]["ownerReferences"][0]["name"] = json!("other");
        member["metadata"]["ownerReferences"][0]["uid"] = json!("other");
        member["spec"]["volumes"] = json!([]);
        member
    };
    scene.put(Kind::Pod, other(0));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    let written = done(scene.after_seconds(61));
    assert_eq!(written, [""; 0], "other-1 is missing");
    scene.put(Kind::Pod, other(1));
    let mut written = done(scene.settle());
    written.extend(done(scene.after_seconds(30)));
    assert!(written.contains(&"delete PersistentVolumeClaim n/data-db-0".to_owned()), "{written:?}");
}
