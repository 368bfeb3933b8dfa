//! Who says how pods leave: EvictionPolicies, held against ours on a kube-apiserver and on the hub.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use berth_tests::caller::{condition, grouped};

use crate::{
    countdown::reaches,
    ground::grounds,
    hook::{Hook, Verdict},
    kubelet::hangs,
    pod::Pod,
    scene::Scene,
    taint::no_execute,
};

/// What a pod is told that leaves by the eviction API.
const BY_EVICTION: &str = "EvictionByEvictionAPI";

/// A pod with a label that runs and is ready: budgets count no others.
async fn running(scene: &Scene, pod: Pod, name: &str) {
    scene.pod(pod).await;
    is_running(scene, name).await;
}

async fn is_running(scene: &Scene, name: &str) {
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    scene.report(name, &json!({"phase": "Running", "conditions": conditions})).await;
}

/// A budget that lets nobody with that label go.
async fn budget(scene: &Scene, name: &str, app: &str) {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": app}}},
    });
    scene.caller.post(&grouped("policy/v1", &scene.namespace, "poddisruptionbudgets"), &budget).await.ok();
}

async fn seconds_pass(seconds: i64) {
    reaches(Timestamp::now() + SignedDuration::from_secs(seconds)).await;
}

fn holds(policy: &Value) -> &Value {
    &policy["status"]["holds"][0]
}

grounds! {
    /// Each pod leaves the way its policy says: deleted, evicted, or not at all.
    ///
    /// Upstream: e2e/apps/disruption.go "evictions: no PDB => should allow an eviction".
    ours eviction async fn each_way_is_gone(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        for way in ["Delete", "Evict", "Hold"] {
            let app = way.to_lowercase();
            scene.policy(&app, &app, json!({"way": way})).await;
            running(scene, Pod::named(&app).on("n").labelled("app", &app), &app).await;
        }
        scene.taint("n", &[no_execute("a")]).await;
        scene.all_leave(&["delete", "evict"]).await;
        assert_eq!(scene.fate("delete").unwrap().disruption()["reason"], "DeletionByTaintManager");
        assert_eq!(scene.fate("evict").unwrap().disruption()["reason"], BY_EVICTION);
        let held = scene.policy_is("hold", "holding one", |policy| policy["status"]["held"] == 1).await;
        assert_eq!(holds(&held)["reason"], "Hold");
        scene.policy_is("evict", "counting one", |policy| policy["status"]["evicted"] == 1).await;
        scene.stay(&["hold"]);
        scene.event("hold", "EvictionHeld", "Holding Pod").await;
    }

    /// A budget that lets nobody go is waited for until the deadline, and then the policy's word counts.
    ///
    /// Upstream: node-defects "4".
    /// Upstream: e2e/apps/disruption.go "evictions: maxUnavailable deny evictions, integer => should not allow an eviction".
    /// Upstream: not-upstream "PDB blocks + deadline".
    ours eviction async fn a_budget_blocks_until_the_deadline(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        for (app, fallback) in [("goes", "Delete"), ("stays", "Hold")] {
            budget(scene, app, app).await;
            let evict = json!({"deadlineSeconds": 6, "fallback": fallback});
            scene.policy(app, app, json!({"way": "Evict", "evict": evict})).await;
            running(scene, Pod::named(app).on("n").labelled("app", app), app).await;
        }
        let clock = scene.taint_now("n", &[no_execute("a")]).await;
        let held = scene.policy_is("goes", "held by the budget", |policy| holds(policy)["reason"] == "Budget").await;
        assert!(holds(&held)["message"].as_str().unwrap().contains("disruption budget"), "{held}");
        scene.leaves_after("goes", clock, 6).await;
        scene.policy_is("stays", "past its deadline", |policy| holds(policy)["reason"] == "DeadlinePassed").await;
        scene.stay(&["stays"]);
    }

    /// A pod with two budgets cannot be evicted at all, and still its deadline comes.
    ///
    /// Upstream: not-upstream "two PDBs".
    ours eviction async fn two_budgets_are_no_way_out(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        budget(scene, "one", "db").await;
        budget(scene, "two", "db").await;
        let evict = json!({"deadlineSeconds": 4, "fallback": "Delete"});
        scene.policy("db", "db", json!({"way": "Evict", "evict": evict})).await;
        running(scene, Pod::named("db").on("n").labelled("app", "db"), "db").await;
        let clock = scene.taint_now("n", &[no_execute("a")]).await;
        scene.leaves_after("db", clock, 4).await;
    }

    /// A budget that is no longer in the way is noticed.
    ours eviction async fn a_budget_that_goes_lets_its_pods_go(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        budget(scene, "b", "db").await;
        scene.policy("db", "db", json!({"way": "Evict"})).await;
        running(scene, Pod::named("db").on("n").labelled("app", "db"), "db").await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.policy_is("db", "held by the budget", |policy| holds(policy)["reason"] == "Budget").await;
        let path = grouped("policy/v1", &scene.namespace, "poddisruptionbudgets/b");
        scene.caller.delete(&path).await.ok();
        scene.leaves("db").await;
        assert_eq!(scene.fate("db").unwrap().disruption()["reason"], BY_EVICTION);
    }

    /// Of several policies the most specific counts, and all of them say so. When it goes, the next counts.
    ours eviction async fn the_most_specific_policy_counts(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        scene.policy("wide", "db", json!({"way": "Delete"})).await;
        scene.policy("narrow", "db", json!({"way": "Hold", "taints": [{"key": "a"}]})).await;
        scene.pod(Pod::named("db").on("n").labelled("app", "db")).await;
        scene.taint("n", &[no_execute("a")]).await;
        let reason = |policy: &Value| condition(policy, "Overlapped")["reason"].clone();
        scene.policy_is("narrow", "before the other", |policy| reason(policy) == "MoreSpecific").await;
        scene.policy_is("wide", "behind the other", |policy| reason(policy) == "LessSpecific").await;
        scene.stay(&["db"]);
        scene.caller.delete(&scene.policy_path("narrow")).await.ok();
        scene.leaves("db").await;
    }

    /// A policy that cannot be understood holds its pods, says why, and lets them go once it is mended.
    ours eviction async fn a_broken_policy_holds(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        let gates = json!([{"name": "g", "cel": {"expression": "pod."}}]);
        let broken = scene.policy("p", "db", json!({"way": "Delete", "gates": gates})).await;
        let accepted = condition(&broken, "Accepted");
        assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("False"), &json!("Misconfigured")));
        assert!(accepted["message"].as_str().unwrap().contains("spec.gates[0].cel.expression: "), "{accepted}");
        scene.pod(Pod::named("db").on("n").labelled("app", "db")).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.policy_is("p", "holding", |policy| holds(policy)["reason"] == "Misconfigured").await;
        scene.stay(&["db"]);
        scene.policy("p", "db", json!({"way": "Delete"})).await;
        scene.leaves("db").await;
    }

    /// A gate opens by an annotation, a condition, or what an expression finds in the pod, its node and its owner.
    ours eviction async fn gates_hold_until_they_open(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
            "spec": {
                "replicas": 0, "serviceName": "set", "selector": {"matchLabels": {"app": "cel"}},
                "template": {
                    "metadata": {"labels": {"app": "cel"}},
                    "spec": {"containers": [{"name": "main", "image": "scenario"}]},
                },
            },
        });
        let sets = grouped("apps/v1", &scene.namespace, "statefulsets");
        let set = scene.caller.post(&sets, &set).await.ok();
        let expression = "owner.metadata.?labels['safe'].orValue('') == 'yes' && node.metadata.name.endsWith('-n')";
        for (app, gate) in [
            ("annotation", json!({"annotation": {"key": "example.org/safe", "value": "yes"}})),
            ("condition", json!({"podCondition": {"type": "Saved", "status": "True"}})),
            ("cel", json!({"cel": {"expression": expression}})),
        ] {
            let mut gate = gate;
            gate["name"] = json!("safe");
            scene.policy(app, app, json!({"way": "Delete", "gates": [gate]})).await;
            let pod = Pod::named(app).on("n").labelled("app", app);
            scene.pod(if app == "cel" { pod.kept_by(&set) } else { pod }).await;
        }
        scene.taint("n", &[no_execute("a")]).await;
        for app in ["annotation", "condition", "cel"] {
            scene.policy_is(app, "shut", |policy| holds(policy)["gate"] == "safe").await;
        }
        scene.stay(&["annotation", "condition", "cel"]);
        let path = scene.pod_path("annotation");
        scene.caller.merge(&path, &json!({"metadata": {"annotations": {"example.org/safe": "yes"}}})).await.ok();
        scene.report("condition", &json!({"conditions": [{"type": "Saved", "status": "True"}]})).await;
        let labels = json!({"metadata": {"labels": {"safe": "yes"}}});
        scene.caller.merge(&format!("{sets}/set"), &labels).await.ok();
        scene.all_leave(&["annotation", "condition", "cel"]).await;
    }

    /// A pod that is due outside the windows is held until one opens.
    ours eviction async fn a_window_that_is_shut_holds(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        // Half a day away, whenever this is.
        let hour = (Timestamp::now().as_second() / 3_600 + 12) % 24;
        let windows = json!([{"schedule": format!("0 {hour} * * *"), "durationSeconds": 60}]);
        scene.policy("p", "db", json!({"way": "Delete", "when": {"windows": windows}})).await;
        scene.pod(Pod::named("db").on("n").labelled("app", "db")).await;
        scene.taint("n", &[no_execute("a")]).await;
        let held = scene.policy_is("p", "outside its windows", |policy| holds(policy)["reason"] == "Window").await;
        let told = format!("T{hour:02}:00:00Z");
        assert!(holds(&held)["message"].as_str().unwrap().ends_with(&told), "{held}");
        scene.event("db", "EvictionHeld", "Holding Pod").await;
        scene.stay(&["db"]);
        let windows = json!([{"schedule": "* * * * *", "durationSeconds": 60, "timeZone": "Asia/Kolkata"}]);
        scene.policy("p", "db", json!({"way": "Delete", "when": {"windows": windows}})).await;
        scene.leaves("db").await;
    }

    /// A service is asked before a pod goes. While it says no, or nothing at all, the pod stays.
    ours eviction async fn a_service_has_a_say(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        let agrees = Arc::new(AtomicBool::new(false));
        let does_agree = Arc::clone(&agrees);
        let careful = Hook::new(move |_| {
            Verdict::Say(if does_agree.load(Ordering::SeqCst) {
                json!({"allowed": true})
            } else {
                json!({"allowed": false, "retryAfterSeconds": 1, "message": "the backup runs"})
            })
        })
        .await;
        let silent = Hook::new(|_| Verdict::Silence).await;
        for (app, hook) in [("goes", &careful), ("stays", &silent)] {
            let mut review = hook.client_config();
            review["timeoutSeconds"] = json!(1);
            let gates = json!([{"name": "backup", "review": review}]);
            scene.policy(app, app, json!({"way": "Delete", "gates": gates})).await;
            scene.pod(Pod::named(app).on("n").labelled("app", app)).await;
        }
        scene.taint("n", &[no_execute("a")]).await;
        for (app, told) in [("goes", "the backup runs"), ("stays", "no answer within 1 s")] {
            let held = scene.policy_is(app, "shut", |policy| holds(policy)["gate"] == "backup").await;
            assert!(holds(&held)["message"].as_str().unwrap().ends_with(told), "{held}");
        }
        scene.stay(&["goes", "stays"]);
        agrees.store(true, Ordering::SeqCst);
        scene.leaves("goes").await;
        scene.stay(&["stays"]);
        let asked = careful.asked();
        assert_eq!(asked[0]["request"]["pod"]["name"], "goes");
        assert!(asked.iter().all(|review| review["request"]["uid"] == asked[0]["request"]["uid"]), "{asked:?}");
    }

    /// Whoever opened a gate may shut it again until the pod goes.
    ours eviction async fn what_was_agreed_to_can_be_taken_back(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        let gates = json!([{"name": "safe", "annotation": {"key": "example.org/safe"}}]);
        let spec = json!({"way": "Delete", "when": {"delaySeconds": 3}, "gates": gates});
        scene.policy("p", "db", spec).await;
        scene.pod(Pod::named("db").on("n").labelled("app", "db").annotated("example.org/safe", "yes")).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.policy_is("p", "waiting", |policy| policy["status"]["waiting"] == 1).await;
        let path = scene.pod_path("db");
        scene.caller.merge(&path, &json!({"metadata": {"annotations": {"example.org/safe": null}}})).await.ok();
        scene.policy_is("p", "shut", |policy| holds(policy)["gate"] == "safe").await;
        scene.stay(&["db"]);
    }

    /// A pod that does not end is deleted by force with a proof, and never for want of patience.
    ///
    /// Upstream: node-defects "12".
    /// Upstream: integration/podgc/podgc_test.go "TestTerminatingOnOutOfServiceNode: pod is getting deleted when no finalizer".
    ours eviction async fn force_needs_a_proof(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        hangs(scene, "n").await;
        let proofs = json!([{"type": "OutOfServiceTaint"}]);
        let spec = json!({"way": "Delete", "after": {"forceDeleteAfterSeconds": 0, "proofs": proofs}});
        scene.policy("p", "db", spec).await;
        scene.pod(Pod::named("db").on("n").labelled("app", "db").grace(1)).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.leaves("db").await;
        seconds_pass(4).await;
        assert!(!scene.fate("db").unwrap().is_gone, "time alone proves nothing");
        let out = json!({"key": "node.kubernetes.io/out-of-service", "effect": "NoSchedule"});
        scene.taint("n", &[no_execute("a"), out]).await;
        scene.caller.until_gone(&scene.pod_path("db")).await;
        scene.event("db", "TaintManagerEviction", "Deleting by force Pod").await;
    }

    /// A dry run counts, and evicts nobody.
    ours eviction async fn a_dry_run_only_counts(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        scene.policy("p", "db", json!({"way": "Delete", "dryRun": true})).await;
        scene.pods((0..3).map(|number| Pod::named(&format!("db{number}")).on("n").labelled("app", "db"))).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.policy_is("p", "sparing three", |policy| policy["status"]["spared"] == 3).await;
        scene.stay(&["db0", "db1", "db2"]);
        scene.policy("p", "db", json!({"way": "Delete"})).await;
        scene.all_leave(&["db0", "db1", "db2"]).await;
    }

    /// Of one owner, no more pods are away at once than the policy says: on their way out, or replaced by one that is not ready.
    /// When the successor is ready the next one goes.
    ours eviction async fn one_of_a_workload_at_once(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        scene.node("haven").await;
        // Whoever is on its way out stays so until the scenario, as its kubelet, says that it has ended.
        hangs(scene, "n").await;
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
            "spec": {
                "replicas": 0, "serviceName": "set", "selector": {"matchLabels": {"app": "db"}},
                "template": {
                    "metadata": {"labels": {"app": "db"}},
                    "spec": {"containers": [{"name": "main", "image": "scenario"}]},
                },
            },
        });
        let set = scene.caller.post(&grouped("apps/v1", &scene.namespace, "statefulsets"), &set).await.ok();
        scene.policy("p", "db", json!({"way": "Delete", "pace": {"perWorkload": 1}})).await;
        let member = |name: &str, node: &str| Pod::named(name).on(node).labelled("app", "db").grace(600).kept_by(&set);
        let names: Vec<String> = (0..4).map(|number| format!("db{number}")).collect();
        for name in &names {
            running(scene, member(name, "n"), name).await;
        }
        scene.taint("n", &[no_execute("a")]).await;
        let mut replaced: Vec<&String> = Vec::new();
        for turn in 1..=2 {
            scene.so_many_leave("db", turn, crate::scene::PATIENCE).await;
            seconds_pass(2).await;
            assert_eq!(scene.so_many_left("db"), turn, "one is on its way out");
            let has_left = |name: &&String| scene.fate(name).is_some_and(|fate| fate.left.is_some());
            let going = names.iter().filter(|name| !replaced.contains(name)).find(has_left).unwrap();
            scene.caller.delete_with(&scene.pod_path(going), &json!({"gracePeriodSeconds": 0})).await.ok();
            scene.pod(member(going, "haven")).await;
            seconds_pass(2).await;
            assert_eq!(scene.so_many_left("db"), turn, "{going} has a successor that is not ready");
            is_running(scene, going).await;
            replaced.push(going);
        }
        scene.so_many_leave("db", 3, crate::scene::PATIENCE).await;
        seconds_pass(2).await;
        assert_eq!(scene.so_many_left("db"), 3);
        // A wider bound counts at once.
        scene.policy("p", "db", json!({"way": "Delete", "pace": {"perWorkload": 2}})).await;
        scene.so_many_leave("db", 4, crate::scene::PATIENCE).await;
        for name in replaced {
            scene.stay(&[name]);
        }
    }

    /// When a policy goes while it holds pods, they go by Kubernetes' rule.
    ours eviction async fn a_policy_that_goes_lets_its_pods_go(scene: &Scene) {
        scene.serves_policies().await;
        scene.node("n").await;
        scene.policy("p", "db", json!({"way": "Hold"})).await;
        scene.pod(Pod::named("db").on("n").labelled("app", "db")).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.policy_is("p", "holding one", |policy| policy["status"]["held"] == 1).await;
        scene.caller.delete(&scene.policy_path("p")).await.ok();
        scene.leaves("db").await;
    }

    /// A node that is drained is emptied by eviction, without any policy, and its daemons stay.
    ours eviction async fn a_drained_node_is_emptied_by_eviction(scene: &Scene) {
        scene.node("n").await;
        let set = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "set"},
            "spec": {
                "selector": {"matchLabels": {"app": "daemon"}},
                "template": {
                    "metadata": {"labels": {"app": "daemon"}},
                    "spec": {"containers": [{"name": "main", "image": "scenario"}]},
                },
            },
        });
        let set = scene.caller.post(&grouped("apps/v1", &scene.namespace, "daemonsets"), &set).await.ok();
        budget(scene, "b", "budgeted").await;
        running(scene, Pod::named("plain").on("n"), "plain").await;
        running(scene, Pod::named("budgeted").on("n").labelled("app", "budgeted"), "budgeted").await;
        running(scene, Pod::named("daemon").on("n").kept_by(&set), "daemon").await;
        scene.taint("n", &[no_execute("berth.dev/drain")]).await;
        scene.leaves("plain").await;
        assert_eq!(scene.fate("plain").unwrap().disruption()["reason"], BY_EVICTION);
        scene.event("budgeted", "EvictionHeld", "Holding Pod").await;
        scene.stay(&["budgeted", "daemon"]);
        let path = grouped("policy/v1", &scene.namespace, "poddisruptionbudgets/b");
        scene.caller.delete(&path).await.ok();
        scene.leaves("budgeted").await;
        scene.stay(&["daemon"]);
    }
}
