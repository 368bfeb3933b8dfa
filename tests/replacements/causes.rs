//! Why members are replaced, and why they are not: what goes away, what is contradictory, what may not be looked at.

use std::fs;

use berth_bed::Bed;
use berth_tests::caller::{condition, documents, text};
use http::Method;
use serde_json::json;

use crate::{
    gate::{Gate, Outcome},
    ground::{Turn, controller, grounds},
    scene::{Scene, by_hand, member, no_schedule, said, taints, with},
    set::Set,
};

/// The way of somebody who may do everything with what policies are about, but for nodes.
async fn without_nodes(bed: &Bed, scene: &Scene) -> std::path::PathBuf {
    let everything = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["*"]});
    let name = scene.name("narrow");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [
            everything("", &["pods", "pods/eviction", "events", "configmaps", "namespaces"]),
            everything("", &["persistentvolumeclaims", "persistentvolumes"]),
            everything("events.k8s.io", &["events"]), everything("apps", &["*"]), everything("berth.dev", &["*"]),
            everything("apiextensions.k8s.io", &["customresourcedefinitions"]),
            everything("storage.k8s.io", &["storageclasses"]), everything("policy", &["*"]),
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    scene.caller.post(&format!("{rbac}/clusterroles"), &role).await.ok();
    scene.caller.post(&format!("{rbac}/clusterrolebindings"), &binding).await.ok();
    let mut kubeconfig = documents(&fs::read_to_string(bed.kubeconfig()).unwrap()).remove(0);
    kubeconfig["users"][0]["user"]["as"] = json!(name);
    let path = bed.folder().join(format!("kubeconfig-{name}"));
    fs::write(&path, kubeconfig.to_string()).unwrap();
    path
}

grounds! {
    /// A taint that goes while members wait leaves no trace, and one that goes while a replacement waits calls it off. When it
    /// comes again, its clock begins anew.
    ///
    /// Upstream: replacement-defects "B8".
    beside async fn a_taint_that_goes_midway_calls_it_off(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        scene.policy("p", with(taints(&[("slow", 600), ("quick", 0)], 0), json!({"gates": by_hand()}))).await;
        let before = scene.uids(&["db-0"]).await;
        let home = scene.home("db-0").await;
        scene.taint(&home, &[no_schedule("slow")]).await;
        scene.policy_is("p", "having seen it", |policy| policy["status"]["counts"]["detected"] == 1).await;
        scene.untaint(&home).await;
        scene.policy_is("p", "without it", |policy| {
            policy["status"]["counts"]["detected"] == 0 && member(policy, "db-0")["causes"].is_null()
        })
        .await;

        scene.taint(&home, &[no_schedule("slow"), no_schedule("quick")]).await;
        let first = scene.replacement_is("db-0", "at its gate", |last| last["status"]["reason"] == "GateShut").await;
        // What is left would be a cause in ten minutes.
        scene.taint(&home, &[no_schedule("slow")]).await;
        let ended = scene.was("db-0", "Aborted").await;
        assert_eq!(ended["status"]["reason"], "Cleared", "{ended}");
        scene.stays("db-0", &before["db-0"]).await;

        scene.taint(&home, &[no_schedule("quick")]).await;
        let second = scene
            .replacement_is("db-0", "at its gate again", |last| {
                last["status"]["startedAt"] != first["status"]["startedAt"] && last["status"]["reason"] == "GateShut"
            })
            .await;
        assert!(text(&second, "/status/startedAt") >= text(&ended, "/status/endedAt"), "{second} {ended}");
        scene.release("db-0").await;
        scene.is_replaced("db-0", &before["db-0"]).await;
    }

    /// A node that is deleted is missed for as long as the policy says, and then its member is replaced, with the volume that
    /// was lost with it. A policy that says nothing of it does nothing.
    ///
    /// Upstream: replacement-defects "B2".
    beside async fn a_node_that_is_deleted_gives_its_members_up(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("db", 3).with_volumes()).await;
        let spec = json!({
            "triggers": {"nodeMissing": {"durationSeconds": 2}},
            "strategy": {"volumes": {"policy": "DeleteNodeLocal"}},
        });
        scene.policy("p", spec).await;
        let before = scene.uids(&["db-0", "db-1", "db-2"]).await;
        let (home, claim) = (scene.home("db-1").await, scene.claim("db-1").await);
        scene.caller.delete(&scene.node_path(&home)).await.ok();
        let policy = scene.policy_is("p", "missing it", |policy| !member(policy, "db-1").is_null()).await;
        assert_eq!(member(&policy, "db-1")["causes"][0]["kind"], "NodeMissing", "{policy}");
        let successor = scene.is_replaced("db-1", &before["db-1"]).await;
        assert_ne!(text(&successor, "/spec/nodeName"), scene.name(&home));
        assert_ne!(scene.claim("db-1").await, claim);
        for pod in ["db-0", "db-2"] {
            scene.stays(pod, &before[pod]).await;
        }
        scene.caught_up().await;
        scene.chronicle.claims_went_alone(&["db-0", "db-1", "db-2"]);
    }

    /// Where two policies speak of one pod neither acts, and both say so; with one of them gone the other does.
    beside async fn two_policies_about_one_pod_stop_each_other(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        scene.policy("one", taints(&[("*", 0)], 0)).await;
        let other = with(taints(&[("*", 0)], 0), json!({"selector": {"matchLabels": {"app": "db"}}}));
        scene.policy("two", other).await;
        for policy in ["one", "two"] {
            scene.policy_says(policy, "Overlap", "True").await;
        }
        let before = scene.uids(&["db-0"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        for policy in ["one", "two"] {
            scene.held(policy, "db-0", "another policy speaks of the same pod").await;
        }
        scene.stays("db-0", &before["db-0"]).await;
        assert_eq!(scene.replacements("db-0").await.len(), 0);
        scene.caller.delete(&scene.policy_path("two")).await.ok();
        scene.is_replaced("db-0", &before["db-0"]).await;
    }

    /// Kubernetes would delete a pod that does not tolerate a NoExecute taint, whatever budgets and gates say: that is warned
    /// of, before it happens where it can be.
    beside async fn a_race_with_kubernetes_is_warned_of(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        scene.policy("p", taints(&[("*", 3600)], 3600)).await;
        let before = scene.uids(&["db-0"]).await;
        scene.taint(&scene.home("db-0").await, &[json!({"key": "out", "effect": "NoExecute"})]).await;
        let warning = scene.event("db-0", "TaintEvictionRace").await;
        assert_eq!(warning["type"], "Warning", "{warning}");
        assert!(text(&warning, "/message").contains("out:NoExecute"), "{warning}");
        scene.policy_says("p", "TaintEvictionRace", "True").await;
        scene.untaint(&scene.home("db-0").await).await;
        scene.policy_says("p", "TaintEvictionRace", "False").await;
        scene.stays("db-0", &before["db-0"]).await;
    }

    /// Without a rule about nodes none is read: not listed, not watched, not by name. What a pod says of itself counts all the
    /// same.
    ///
    /// Upstream: operator_test.go
    /// "cluster disables taint feature with empty taint option: should not remove any Pod whose Nodes are tainted".
    turn async fn without_options_no_node_is_read(turn: &mut Turn<'_>) {
        let scene = &turn.scene;
        let way = Gate::open(turn.bed, |_, _| Outcome::Pass).await;
        let Some(_controller) = controller(turn.bed, way.kubeconfig(), "nodeless").await else { return };
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 3)).await;
        let spec = json!({
            "replacements": {"enabled": true, "taintReplacementOptions": []},
            "triggers": {"podConditions": [{"type": "Ready", "status": "False", "durationSeconds": 1}]},
        });
        scene.policy("p", spec).await;
        let before = scene.uids(&["db-0", "db-1"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        scene.hands.order(|orders| _ = orders.unready.insert("db-1".to_owned()));
        scene.reaches("db-1", "AwaitingSuccessor").await;
        scene.hands.order(|orders| orders.unready.clear());
        scene.is_replaced("db-1", &before["db-1"]).await;
        scene.stays("db-0", &before["db-0"]).await;
        let read: Vec<_> = way.answered(&Method::GET).into_iter().filter(|it| it.path.starts_with("/api/v1/nodes")).collect();
        assert!(read.is_empty(), "{read:?}");
    }

    /// Whoever may not look at nodes is told by the policy, and what needs no node goes on.
    turn async fn denied_access_to_nodes_is_told(turn: &mut Turn<'_>) {
        let scene = &turn.scene;
        let kubeconfig = without_nodes(turn.bed, scene).await;
        let Some(_controller) = controller(turn.bed, &kubeconfig, "narrow").await else { return };
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        let more = json!({
            "triggers": {"podConditions": [{"type": "Ready", "status": "False", "durationSeconds": 1}]},
            "strategy": {"placement": {"requireFeasibleTarget": false}},
        });
        scene.policy("p", with(taints(&[("*", 0)], 0), more)).await;
        let told = scene.policy_says("p", "NodeAccess", "False").await;
        assert!(text(&told, "/message").contains("nodes"), "{told}");
        let before = scene.uids(&["db-0", "db-1"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        // What became due after the taint, and is not about a node, is done.
        scene.hands.order(|orders| _ = orders.unready.insert("db-1".to_owned()));
        scene.reaches("db-1", "AwaitingSuccessor").await;
        scene.hands.order(|orders| orders.unready.clear());
        scene.is_replaced("db-1", &before["db-1"]).await;
        // What is granted is noticed, and nothing had happened until then.
        scene.stays("db-0", &before["db-0"]).await;
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{}", scene.name("narrow"));
        let mut role = scene.caller.get(&path).await.ok();
        let nodes = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]});
        role["rules"].as_array_mut().unwrap().push(nodes);
        scene.caller.put(&path, &role).await.ok();
        scene.policy_says("p", "NodeAccess", "True").await;
        scene.is_replaced("db-0", &before["db-0"]).await;
        let policy = scene.policy_is("p", "at rest", |policy| policy["status"]["counts"]["inFlight"] == 0).await;
        assert_eq!(condition(&policy, "Accepted")["status"], "True", "{policy}");
        assert!(said(member(&policy, "db-0"), "NodeTaintDetected").is_null(), "{policy}");
    }
}
