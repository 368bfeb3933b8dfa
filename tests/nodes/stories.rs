//! The examples in `examples/evictions`, applied as they are written: what people asked of a taint manager.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use berth_tests::{
    caller::{Caller, condition, core, grouped, text},
    waiting::until,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    countdown::reaches,
    ground::grounds,
    hook::{Hook, Verdict},
    kubelet::hangs,
    pod::Pod,
    scene::{PATIENCE, Scene},
    taint::{added, no_execute},
};

/// A namespace of an example, and what is in it.
struct Story<'s> {
    scene: &'s Scene,
    namespace: &'static str,
}

impl<'s> Story<'s> {
    /// Applies an example and waits until its policies have been read.
    async fn of(scene: &'s Scene, folder: &str, namespace: &'static str) -> Self {
        scene.serves_policies().await;
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../examples/evictions")
            .join(folder)
            .join("policy.yaml");
        let example = fs::read_to_string(file).unwrap();
        scene.caller.apply(&example).await;
        for document in berth_tests::caller::documents(&example) {
            if document["kind"] == "EvictionPolicy" {
                let name = text(&document, "/metadata/name").to_owned();
                let policy = policy(&scene.caller, &name, "read", |policy| !policy["status"].is_null()).await;
                assert_eq!(condition(&policy, "Accepted")["status"], "True", "{policy:#}");
            }
        }
        Self { scene, namespace }
    }

    fn path(&self, pod: &str) -> String {
        core(self.namespace, &format!("pods/{pod}"))
    }

    async fn pod(&self, pod: Pod) -> Value {
        let node = pod.node.as_deref().map(|node| self.scene.name(node));
        self.scene.caller.post(&core(self.namespace, "pods"), &pod.object(node.as_deref())).await.ok()
    }

    async fn report(&self, pod: &str, status: Value) {
        let path = format!("{}/status", self.path(pod));
        self.scene.caller.merge(&path, &json!({"status": status})).await.ok();
    }

    /// A StatefulSet that nobody looks after, with so many replicas ready.
    async fn set(&self, name: &str, replicas: i64, ready: i64) -> Value {
        let sets = grouped("apps/v1", self.namespace, "statefulsets");
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {
                "replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "main", "image": "scenario"}]},
                },
            },
        });
        let set = self.scene.caller.post(&sets, &set).await.ok();
        let status = json!({"status": {"replicas": replicas, "readyReplicas": ready}});
        self.scene.caller.merge(&format!("{sets}/{name}/status"), &status).await.ok();
        set
    }

    async fn is_leaving(&self, pod: &str) {
        let path = self.path(pod);
        until(&format!("{path} leaving"), PATIENCE, async || {
            let answer = self.scene.caller.get(&path).await.body;
            let has_left = answer["code"] == 404 || !answer["metadata"]["deletionTimestamp"].is_null();
            if has_left { Ok(()) } else { Err(format!("{:#}", answer["status"])) }
        })
        .await;
    }

    async fn stays(&self, pod: &str) {
        let object = self.scene.caller.get(&self.path(pod)).await.ok();
        assert!(object["metadata"]["deletionTimestamp"].is_null(), "{object:#}");
    }

    async fn end(self) {
        let options = json!({"gracePeriodSeconds": 0});
        self.scene.caller.delete_with(&core(self.namespace, "pods"), &options).await;
    }
}

async fn policy(caller: &Caller, name: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/apis/berth.dev/v1alpha1/evictionpolicies/{name}");
    until(&format!("{name} {what}"), PATIENCE, async || {
        let object = caller.get(&path).await.ok();
        if good(&object) { Ok(object) } else { Err(format!("{:#}", object["status"])) }
    })
    .await
}

fn holds(policy: &Value, gate: &str) -> bool {
    let holds = policy["status"]["holds"].as_array();
    holds.into_iter().flatten().any(|hold| hold["gate"] == gate)
}

grounds! {
    /// Data on local disks is safe before its pod goes.
    ours eviction async fn pods_stay_until_their_data_is_safe(scene: &Scene) {
        let story = Story::of(scene, "checkpoint", "databases").await;
        scene.node("n").await;
        let set = story.set("db", 1, 1).await;
        story.pod(Pod::named("db-0").on("n").kept_by(&set)).await;
        story.pod(Pod::named("other").on("n")).await;
        scene.taint("n", &[no_execute("example.org/fading")]).await;
        story.is_leaving("other").await;
        policy(&scene.caller, "checkpoint", "holding", |policy| holds(policy, "checkpoint-done")).await;
        story.stays("db-0").await;
        story.report("db-0", json!({"conditions": [{"type": "example.org/CheckpointDone", "status": "True"}]})).await;
        story.is_leaving("db-0").await;
        story.end().await;
    }

    /// One place says how pods leave for each taint.
    ours eviction async fn one_place_says_how_pods_leave(scene: &Scene) {
        let story = Story::of(scene, "central", "central-apps").await;
        for node in ["silent", "maintained", "odd"] {
            scene.node(node).await;
            story.pod(Pod::named(node).on(node)).await;
        }
        // The pod was there before, and tolerates the taint for five minutes by default.
        let ago = Timestamp::now() - SignedDuration::from_secs(115);
        scene.taint("silent", &[added("node.kubernetes.io/unreachable", ago)]).await;
        scene.taint("maintained", &[no_execute("example.org/maintenance")]).await;
        scene.taint("odd", &[no_execute("example.org/odd")]).await;
        story.is_leaving("maintained").await;
        policy(&scene.caller, "central-others", "sparing one", |policy| policy["status"]["spared"] == 1).await;
        let next = policy(&scene.caller, "central-unreachable", "with a deadline", |policy| {
            policy["status"]["next"][0]["pod"] == "central-apps/silent"
        })
        .await;
        let at: Timestamp = text(&next, "/status/next/0/at").parse().unwrap();
        let left = at.duration_since(Timestamp::now()).as_secs();
        assert!((0..=121).contains(&left), "two minutes at most: {left} s");
        story.stays("silent").await;
        story.stays("odd").await;
        story.end().await;
    }

    /// A quorum is kept, and others have the last word: a controller by an annotation, and a service that is asked.
    ours eviction async fn others_decide_whether_a_pod_may_go(scene: &Scene) {
        let story = Story::of(scene, "quorum", "consensus").await;
        scene.node("n").await;
        let set = story.set("raft", 3, 2).await;
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        story.pod(Pod::named("raft-0").on("n").kept_by(&set).annotated("example.org/released", "false")).await;
        story.report("raft-0", ready).await;
        scene.taint("n", &[no_execute("a")]).await;
        policy(&scene.caller, "quorum", "keeping the quorum", |policy| holds(policy, "quorum-is-kept")).await;
        let sets = grouped("apps/v1", "consensus", "statefulsets/raft/status");
        scene.caller.merge(&sets, &json!({"status": {"replicas": 3, "readyReplicas": 3}})).await.ok();
        policy(&scene.caller, "quorum", "asking the other", |policy| holds(policy, "released")).await;
        story.stays("raft-0").await;
        let released = json!({"metadata": {"annotations": {"example.org/released": "true"}}});
        scene.caller.merge(&story.path("raft-0"), &released).await.ok();
        // Nobody answers at the address of the example: that is a no.
        let asks = |policy: &Value| holds(policy, "availability");
        let written = policy(&scene.caller, "quorum", "asking the service", asks).await;
        story.stays("raft-0").await;
        let allows = Arc::new(AtomicBool::new(false));
        let does_allow = Arc::clone(&allows);
        let service = Hook::new(move |_| {
            let allowed = does_allow.load(Ordering::SeqCst);
            Verdict::Say(json!({"allowed": allowed, "retryAfterSeconds": 1, "message": "a copy is being made"}))
        })
        .await;
        let mut gates = written["spec"]["gates"].clone();
        gates[2]["review"] = service.client_config();
        let path = "/apis/berth.dev/v1alpha1/evictionpolicies/quorum";
        scene.caller.merge(path, &json!({"spec": {"gates": gates}})).await.ok();
        policy(&scene.caller, "quorum", "told no by the service", |policy| {
            asks(policy) && policy["status"]["holds"].to_string().contains("a copy is being made")
        })
        .await;
        story.stays("raft-0").await;
        allows.store(true, Ordering::SeqCst);
        story.is_leaving("raft-0").await;
        let asked = service.asked();
        assert_eq!(asked[0]["request"]["pod"]["name"], "raft-0", "{asked:?}");
        story.end().await;
    }

    /// Who hangs on a dead node is deleted by force, once it is proven to be dead.
    ours eviction async fn pods_that_hang_are_deleted_with_a_proof(scene: &Scene) {
        let story = Story::of(scene, "stuck", "volumes").await;
        scene.node("n").await;
        hangs(scene, "n").await;
        story.pod(Pod::named("hangs").on("n").grace(1)).await;
        scene.taint("n", &[no_execute("a")]).await;
        story.is_leaving("hangs").await;
        let annotated = json!({"metadata": {"annotations": {"example.org/fenced": "true"}}});
        scene.caller.merge(&scene.node_path("n"), &annotated).await.ok();
        // A minute is the policy's word; half of it shows that a proof alone is not enough.
        reaches(Timestamp::now() + SignedDuration::from_secs(30)).await;
        scene.caller.get(&story.path("hangs")).await.ok();
        until("hangs gone", 2 * PATIENCE, async || {
            let answer = scene.caller.get(&story.path("hangs")).await.body;
            if answer["code"] == 404 { Ok(()) } else { Err(format!("{:#}", answer["metadata"])) }
        })
        .await;
        story.end().await;
    }
}
