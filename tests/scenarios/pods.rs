//! Pods: binding, deletion with grace, eviction, and the budgets that limit it.

use berth_bed::{Bed, Kind, scenario};
use serde_json::{Value, json};

use crate::{
    caller::{Answer, Caller, condition, core, grouped, text},
    waiting::eventually,
};

/// Makes a pod labelled `app=web`.
async fn pod(caller: &Caller, namespace: &str, name: &str, more: &Value) {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    for (section, fields) in more.as_object().unwrap() {
        object[section].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    }
    caller.post(&core(namespace, "pods"), &object).await.ok();
}

/// Says that a pod runs, and whether it is ready.
async fn report(caller: &Caller, namespace: &str, name: &str, ready: bool) {
    let ready = if ready { "True" } else { "False" };
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
    caller.merge(&core(namespace, &format!("pods/{name}/status")), &status).await.ok();
}

async fn ready_pod(caller: &Caller, namespace: &str, name: &str) {
    pod(caller, namespace, name, &json!({})).await;
    report(caller, namespace, name, true).await;
}

fn budget(namespace: &str) -> String {
    grouped("policy/v1", namespace, "poddisruptionbudgets/web")
}

/// Makes a budget for `app=web`, with one line of its spec.
async fn make_budget(caller: &Caller, namespace: &str, line: &str) {
    caller
        .apply(&format!(
            "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  {line}
"
        ))
        .await;
}

/// Waits for a budget's numbers: current, desired, expected, allowed.
async fn counted(caller: &Caller, namespace: &str, numbers: [i64; 4]) -> Value {
    let fields = ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"];
    let equal = |object: &Value| {
        let status = &object["status"];
        status["observedGeneration"] == object["metadata"]["generation"]
            && fields.iter().zip(numbers).all(|(field, number)| status[*field] == number)
    };
    caller.until(&budget(namespace), &format!("{fields:?} = {numbers:?}"), equal).await
}

async fn evict(caller: &Caller, namespace: &str, name: &str) -> Answer {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}});
    caller.post(&core(namespace, &format!("pods/{name}/eviction")), &eviction).await
}

/// Asks whether it could be evicted, and evicts nobody.
async fn try_evict(caller: &Caller, namespace: &str, name: &str) -> Answer {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    caller.post(&core(namespace, &format!("pods/{name}/eviction?dryRun=All")), &eviction).await
}

/// A ReplicaSet that nobody acts on, and pods that name it as their controller.
async fn controlled(caller: &Caller, namespace: &str, replicas: usize) {
    let set = caller
        .apply(&format!(
            "apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: web}}]}}
"
        ))
        .await;
    let reference = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": text(&set, "/metadata/uid"), "controller": true,
    }]);
    for number in 0..replicas {
        let name = format!("web-{number}");
        pod(caller, namespace, &name, &json!({"metadata": {"ownerReferences": reference}})).await;
        report(caller, namespace, &name, true).await;
    }
}

scenario! {
    /// Upstream: e2e/apps/disruption.go "should block an eviction until the PDB is updated to allow it",
    /// "evictions: too few pods, absolute => should not allow an eviction",
    /// "evictions: enough pods, absolute => should allow an eviction".
    managed async fn a_budget_lets_pods_go_until_it_is_used_up(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("evicted").await);
        make_budget(&caller, &namespace, "minAvailable: 2").await;
        for name in ["a", "b", "c"] {
            ready_pod(&caller, &namespace, name).await;
        }
        counted(&caller, &namespace, [3, 2, 3, 1]).await;
        let answer = evict(&caller, &namespace, "a").await;
        assert_eq!(answer.code, 201, "{answer:?}");
        assert_eq!(answer.body["status"], "Success");
        caller.until_gone(&core(&namespace, "pods/a")).await;

        let object = counted(&caller, &namespace, [2, 2, 2, 0]).await;
        assert_eq!(condition(&object, "DisruptionAllowed")["reason"], "InsufficientPods");
        let refusal = evict(&caller, &namespace, "b").await.refused(429);
        assert_eq!(refusal.reason(), "TooManyRequests");
        assert_eq!(refusal.causes(), ["DisruptionBudget"]);
        assert_eq!(refusal.message(), "Cannot evict pod as it would violate the pod's disruption budget.");
        assert_eq!(
            refusal.0["details"]["causes"][0]["message"],
            "The disruption budget web needs 2 healthy pods and has 2 currently"
        );
        caller.get(&core(&namespace, "pods/b")).await.ok();

        ready_pod(&caller, &namespace, "d").await;
        let object = counted(&caller, &namespace, [3, 2, 3, 1]).await;
        assert_eq!(condition(&object, "DisruptionAllowed")["status"], "True");
        assert_eq!(condition(&object, "DisruptionAllowed")["reason"], "SufficientPods");
        evict(&caller, &namespace, "b").await.ok();
        caller.until_gone(&core(&namespace, "pods/b")).await;
    }

    /// Upstream: e2e/apps/disruption.go "should observe PodDisruptionBudget status updated", "should create a PodDisruptionBudget".
    managed async fn a_budget_counts_pods_as_they_become_ready(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("counted").await);
        make_budget(&caller, &namespace, "minAvailable: 1").await;
        counted(&caller, &namespace, [0, 1, 0, 0]).await;
        for name in ["a", "b"] {
            pod(&caller, &namespace, name, &json!({})).await;
        }
        counted(&caller, &namespace, [0, 1, 2, 0]).await;
        report(&caller, &namespace, "a", true).await;
        counted(&caller, &namespace, [1, 1, 2, 0]).await;
        report(&caller, &namespace, "b", true).await;
        counted(&caller, &namespace, [2, 1, 2, 1]).await;
        report(&caller, &namespace, "a", false).await;
        counted(&caller, &namespace, [1, 1, 2, 0]).await;
        make_budget(&caller, &namespace, "minAvailable: 0").await;
        counted(&caller, &namespace, [1, 0, 2, 1]).await;
    }

    /// Upstream: e2e/apps/disruption.go
    /// "evictions: enough pods, replicaSet, percentage => should allow an eviction",
    /// "evictions: too few pods, replicaSet, percentage => should not allow an eviction",
    /// "evictions: maxUnavailable allow single eviction, percentage => should allow an eviction".
    managed async fn a_share_is_of_what_the_controllers_want(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("shares").await);
        controlled(&caller, &namespace, 5).await;
        make_budget(&caller, &namespace, "minAvailable: 90%").await;
        counted(&caller, &namespace, [5, 5, 5, 0]).await;
        evict(&caller, &namespace, "web-0").await.refused(429);
        make_budget(&caller, &namespace, "minAvailable: 50%").await;
        counted(&caller, &namespace, [5, 3, 5, 2]).await;
        try_evict(&caller, &namespace, "web-0").await.ok();
        caller.delete(&budget(&namespace)).await.ok();
        make_budget(&caller, &namespace, "maxUnavailable: 1").await;
        counted(&caller, &namespace, [5, 4, 5, 1]).await;
        report(&caller, &namespace, "web-0", false).await;
        counted(&caller, &namespace, [4, 4, 5, 0]).await;
        caller.delete(&budget(&namespace)).await.ok();
        make_budget(&caller, &namespace, "maxUnavailable: 25%").await;
        counted(&caller, &namespace, [4, 3, 5, 1]).await;
        try_evict(&caller, &namespace, "web-1").await.ok();
        // What the controller wants counts, not how many there are.
        let scale = json!({"spec": {"replicas": 6}});
        caller.merge(&grouped("apps/v1", &namespace, "replicasets/web"), &scale).await.ok();
        report(&caller, &namespace, "web-0", true).await;
        counted(&caller, &namespace, [5, 4, 6, 1]).await;
    }

    /// Upstream: e2e/apps/disruption.go
    /// "should observe that the PodDisruptionBudget status is not updated for unmanaged pods".
    managed async fn a_share_of_pods_without_a_controller_allows_nothing(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("bare").await);
        ready_pod(&caller, &namespace, "a").await;
        make_budget(&caller, &namespace, "maxUnavailable: 1").await;
        counted(&caller, &namespace, [1, 0, 0, 0]).await;
        evict(&caller, &namespace, "a").await.refused(429);
    }

    managed async fn a_pod_that_does_not_run_is_evicted_whatever_the_budget(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("pending").await);
        make_budget(&caller, &namespace, "minAvailable: 1").await;
        pod(&caller, &namespace, "pending", &json!({})).await;
        counted(&caller, &namespace, [0, 1, 1, 0]).await;
        evict(&caller, &namespace, "pending").await.ok();
        caller.until_gone(&core(&namespace, "pods/pending")).await;
    }

    /// Upstream: integration/evictions/evictions_test.go
    /// "TestEvictionWithFinalizers: running pod should not update conditions in dry-run mode".
    managed async fn an_eviction_as_a_dry_run_uses_nothing_up(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("dry").await);
        make_budget(&caller, &namespace, "minAvailable: 1").await;
        for name in ["a", "b"] {
            ready_pod(&caller, &namespace, name).await;
        }
        let before = counted(&caller, &namespace, [2, 1, 2, 1]).await;
        try_evict(&caller, &namespace, "a").await.ok();
        assert!(
            caller.get(&core(&namespace, "pods/a")).await.ok()["metadata"].get("deletionTimestamp").is_none()
        );
        let after = caller.get(&budget(&namespace)).await.ok();
        assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    }

    managed async fn two_budgets_for_one_pod_are_one_too_many(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("twice").await);
        make_budget(&caller, &namespace, "minAvailable: 0").await;
        let mut second = caller.get(&budget(&namespace)).await.ok();
        second["metadata"] = json!({"name": "again"});
        caller.post(&grouped("policy/v1", &namespace, "poddisruptionbudgets"), &second).await.ok();
        ready_pod(&caller, &namespace, "a").await;
        let refusal = evict(&caller, &namespace, "a").await.refused(500);
        assert!(refusal.message().contains("more than one PodDisruptionBudget"), "{refusal:?}");
    }

    managed async fn a_pod_is_bound_once(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("bound").await);
        pod(&caller, &namespace, "a", &json!({})).await;
        let binding = |node: &str| {
            json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a", "annotations": {"berth.dev/why": "room"}},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            })
        };
        let path = core(&namespace, "pods/a/binding");
        assert_eq!(caller.post(&path, &binding("one")).await.ok()["status"], "Success");
        let bound = caller.get(&core(&namespace, "pods/a")).await.ok();
        assert_eq!(bound["spec"]["nodeName"], "one");
        assert_eq!(bound["metadata"]["annotations"]["berth.dev/why"], "room");
        assert_eq!(condition(&bound, "PodScheduled")["status"], "True");
        let refusal = caller.post(&path, &binding("two")).await.refused(409);
        assert!(refusal.message().contains("pod a is already assigned to node \"one\""), "{refusal:?}");
    }

    managed async fn a_pod_on_a_node_that_lives_is_given_its_grace(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("grace").await);
        // The lease that a kubelet renews; the node itself need not be there.
        let node = format!("node-{namespace}");
        let now = jiff::Timestamp::now();
        caller
            .apply(&format!(
                "apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {{name: {node}, namespace: kube-node-lease}}
spec: {{holderIdentity: {node}, leaseDurationSeconds: 600, renewTime: \"{now:.6}\"}}
"
            ))
            .await;
        pod(
            &caller,
            &namespace,
            "a",
            &json!({"spec": {"nodeName": node, "terminationGracePeriodSeconds": 20}}),
        )
        .await;
        let path = core(&namespace, "pods/a");
        let answer = caller.delete(&path).await.ok();
        assert!(answer["metadata"]["deletionTimestamp"].is_string(), "{answer}");
        assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 20);
        // A shorter grace is granted, a longer one is not.
        let answer = caller.delete_with(&path, &json!({"gracePeriodSeconds": 5})).await.ok();
        assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 5);
        let answer = caller.delete_with(&path, &json!({"gracePeriodSeconds": 50})).await.ok();
        assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 5);
        // The kubelet says that it is done.
        caller.delete_with(&path, &json!({"gracePeriodSeconds": 0})).await.ok();
        caller.get(&path).await.refused(404);
    }

    managed async fn a_pod_without_a_node_goes_at_once(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("unbound").await);
        pod(&caller, &namespace, "a", &json!({})).await;
        caller.delete(&core(&namespace, "pods/a")).await.ok();
        caller.until_gone(&core(&namespace, "pods/a")).await;
    }

    managed async fn a_pod_on_a_node_without_a_kubelet_goes_at_once_on_the_hub(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("lifeless").await);
        pod(&caller, &namespace, "a", &json!({"spec": {"nodeName": "nowhere"}})).await;
        let path = core(&namespace, "pods/a");
        caller.delete(&path).await.ok();
        match bed.kind() {
            Kind::Hub => caller.until_gone(&path).await,
            // Kubernetes waits for a kubelet, or for somebody who insists.
            Kind::Kubernetes => {
                let waiting = caller.get(&path).await.ok();
                assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 30);
                caller.delete_with(&path, &json!({"gracePeriodSeconds": 0})).await.ok();
                caller.get(&path).await.refused(404);
            }
        }
    }

    /// Upstream: integration/evictions/evictions_test.go "TestConcurrentEvictionRequests".
    managed async fn evictions_at_the_same_time_never_take_more_than_is_allowed(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("race").await);
        make_budget(&caller, &namespace, "minAvailable: 4").await;
        let names: Vec<String> = (0..6).map(|number| format!("p{number}")).collect();
        for name in &names {
            ready_pod(&caller, &namespace, name).await;
        }
        counted(&caller, &namespace, [6, 4, 6, 2]).await;
        let codes = futures::future::join_all(
            names.iter().map(async |name| evict(&caller, &namespace, name).await.code),
        )
        .await;
        let went = codes.iter().filter(|code| **code == 201).count();
        assert!((1..=2).contains(&went) && codes.iter().all(|code| matches!(code, 201 | 429)), "{codes:?}");
        eventually("the evicted being gone", async || {
            let left = caller.get(&core(&namespace, "pods")).await.ok()["items"].as_array()?.len();
            (left == 6 - went).then_some(())
        })
        .await;
    }
}
