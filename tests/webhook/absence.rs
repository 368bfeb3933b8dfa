//! A webhook that is down, or hangs: what must be judged is refused, and what the controllers live on goes through.

use std::time::Duration;

use berth_bed::{Bed, or_skip};
use berth_tests::{
    caller::{Answer, Caller},
    waiting::eventually,
};
use futures::{
    FutureExt as _,
    future::{LocalBoxFuture, join_all},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::ground::{GROUP, Ground, alone, cluster, webhook};

/// How long the API server waits for a verdict, and for a warning, as `docs/admission.md` says.
const VERDICT: Duration = Duration::from_secs(10);
const WARNING: Duration = Duration::from_secs(2);
/// How long an API server waits for any webhook at most: what is over it is no slow machine.
const LONGEST: Duration = Duration::from_secs(30);

const POLICIES: &str = "/apis/berth.dev/v1alpha1";

fn object(version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn fleet(version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    object(&format!("cluster.open-cluster-management.io/{version}"), kind, name, spec)
}

fn placement(name: &str) -> Value {
    fleet("v1beta1", "Placement", name, &json!({}))
}

fn set(name: &str) -> Value {
    let spec = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
    fleet("v1beta2", "ManagedClusterSet", name, &spec)
}

fn binding(name: &str) -> Value {
    fleet("v1beta2", "ManagedClusterSetBinding", name, &json!({"clusterSet": name}))
}

fn eviction_policy(name: &str) -> Value {
    let spec = json!({"pods": {"selector": {"matchLabels": {"app": "db"}}}, "way": "Evict"});
    object("berth.dev/v1alpha1", "EvictionPolicy", name, &spec)
}

fn replacement_policy(name: &str) -> Value {
    let spec = json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
        "replacements": {"taintReplacementOptions": [{"key": "*", "durationInSeconds": 60}]},
    });
    object("berth.dev/v1alpha1", "ReplacementPolicy", name, &spec)
}

/// A replacement as its policy makes it.
fn replacement(name: &str, policy: &Value) -> Value {
    let spec = json!({"policy": "there", "target": {"name": "db-0", "uid": "1"}});
    let mut object = object("berth.dev/v1alpha1", "Replacement", name, &spec);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "berth.dev/v1alpha1", "kind": "ReplacementPolicy", "name": "there",
        "uid": policy["metadata"]["uid"], "controller": true,
    }]);
    object
}

fn clusters(name: &str) -> String {
    format!("{GROUP}/v1/managedclusters{name}")
}

fn sets(name: &str) -> String {
    format!("{GROUP}/v1beta2/managedclustersets{name}")
}

fn evictions(name: &str) -> String {
    format!("{POLICIES}/evictionpolicies{name}")
}

/// A write that was tried: what it is, how it was answered, and how long that took.
type Tried = (&'static str, Answer, Duration);

/// Tries writes all at once.
async fn tried(writes: Vec<(&'static str, LocalBoxFuture<'_, Answer>)>) -> Vec<Tried> {
    let timed = writes.into_iter().map(|(name, write)| async move {
        let begun = Instant::now();
        let answer = write.await;
        (name, answer, begun.elapsed())
    });
    join_all(timed).await
}

/// Who writes, and what was there while the webhook answered.
struct Fleet {
    admin: Caller,
    /// The account of the controllers: it may write clusters, and is named as trusted.
    controllers: Caller,
    namespace: String,
}

impl Fleet {
    async fn new(bed: &Bed) -> Self {
        let namespace = bed.namespace("down").await;
        let controllers = Caller::acting_as(bed, "controllers", &[]);
        let fleet = Self { admin: Caller::admin(bed), controllers, namespace };
        let mut held = binding("held");
        held["metadata"]["finalizers"] = json!(["berth.dev/test"]);
        for (path, object) in [
            (fleet.placements(""), placement("there")),
            (clusters(""), cluster("c1", &json!({}))),
            (clusters(""), cluster("c2", &json!({}))),
            (sets(""), set("blue")),
            (sets(""), set("red")),
            (fleet.bindings(""), held),
            (evictions(""), eviction_policy("there")),
            (fleet.policies(""), replacement_policy("there")),
        ] {
            fleet.admin.post(&path, &object).await.ok();
        }
        fleet.admin.post(&fleet.replacements(""), &fleet.replacement("there").await).await.ok();
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "controllers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "controllers"}],
        });
        fleet.admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &role).await.ok();
        eventually("the rights of the controllers", async || {
            (fleet.controllers.get(&clusters("")).await.code == 200).then_some(())
        })
        .await;
        fleet
    }

    fn placements(&self, name: &str) -> String {
        format!("{GROUP}/v1beta1/namespaces/{}/placements{name}", self.namespace)
    }

    fn bindings(&self, name: &str) -> String {
        format!("{GROUP}/v1beta2/namespaces/{}/managedclustersetbindings{name}", self.namespace)
    }

    fn policies(&self, name: &str) -> String {
        format!("{POLICIES}/namespaces/{}/replacementpolicies{name}", self.namespace)
    }

    fn replacements(&self, name: &str) -> String {
        format!("{POLICIES}/namespaces/{}/replacements{name}", self.namespace)
    }

    /// A replacement by the policy that is there.
    async fn replacement(&self, name: &str) -> Value {
        replacement(name, &self.admin.get(&self.policies("/there")).await.ok())
    }

    fn make(&self, path: String, object: Value) -> LocalBoxFuture<'_, Answer> {
        async move { self.admin.post(&path, &object).await }.boxed_local()
    }

    fn change(&self, path: String, patch: Value) -> LocalBoxFuture<'_, Answer> {
        async move { self.admin.merge(&path, &patch).await }.boxed_local()
    }

    fn remove(&self, path: String) -> LocalBoxFuture<'_, Answer> {
        async move { self.admin.delete(&path).await }.boxed_local()
    }

    /// What must be judged is refused, in words that name the webhook; how long that took comes back.
    async fn is_guarded(&self) -> Vec<(&'static str, Duration)> {
        let label = || json!({"metadata": {"labels": {"a": "b"}}});
        let tried = tried(vec![
            ("placements", self.make(self.placements(""), placement("new"))),
            ("managedclusters", self.change(clusters("/c1"), label())),
            ("managedclustersetbindings", self.make(self.bindings(""), binding("blue"))),
            ("evictionpolicies", self.make(evictions(""), eviction_policy("new"))),
            ("evictionpolicies", self.change(evictions("/there"), json!({"spec": {"way": "Hold"}}))),
            ("replacements", self.make(self.policies(""), replacement_policy("new"))),
            ("replacements", self.change(self.policies("/there"), json!({"spec": {"mode": "Enforce"}}))),
            ("replacements", self.change(self.replacements("/there"), json!({"spec": {"suspend": true}}))),
        ])
        .await;
        let refused = |(hook, answer, took): Tried| {
            let refusal = answer.refused(500);
            let named = refusal.message().contains(&format!("{hook}.admission.berth.dev"));
            assert!(named, "{hook}: {}", refusal.message());
            (hook, took)
        };
        tried.into_iter().map(refused).collect()
    }

    /// What only would have been warned about goes through; how long that took comes back.
    async fn is_open(&self) -> Vec<(&'static str, Duration)> {
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let tried = tried(vec![
            ("a Placement deleted", self.remove(self.placements("/there"))),
            ("a cluster deleted", self.remove(clusters("/c2"))),
            ("a set changed", self.change(sets("/blue"), label)),
            ("a set deleted", self.remove(sets("/red"))),
            ("a binding deleted", self.remove(self.bindings("/held"))),
        ])
        .await;
        let passed = |(what, answer, took): Tried| {
            assert_eq!(answer.code, 200, "{what}: {answer:?}");
            (what, took)
        };
        tried.into_iter().map(passed).collect()
    }

    /// What the webhook has no say in goes through.
    async fn goes_on(&self) {
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        // The metadata of a Placement and of policies is nobody's business, and a new set takes nothing from anybody.
        self.admin.merge(&self.placements("/there"), &label).await.ok();
        self.admin.merge(&evictions("/there"), &label).await.ok();
        self.admin.merge(&self.policies("/there"), &label).await.ok();
        self.admin.merge(&self.replacements("/there"), &label).await.ok();
        self.admin.post(&sets(""), &set("green")).await.ok();
        // Status and leases never go through it.
        let condition = json!({
            "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "Test", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = json!({"status": {"conditions": [condition]}});
        self.admin.merge(&clusters("/c1/status"), &status).await.ok();
        self.admin
            .merge(&self.replacements("/there/status"), &json!({"status": {"phase": "Gating"}}))
            .await
            .ok();
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "managed-cluster-lease"}, "spec": {}});
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace);
        self.admin.post(&leases, &lease).await.ok();
        // The controllers taint a cluster that fails meanwhile, and begin a replacement.
        let taint = json!({"spec": {"taints": [{
            "key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z",
        }]}});
        self.controllers.merge(&clusters("/c1"), &taint).await.ok();
        self.controllers.post(&self.replacements(""), &self.replacement("begun").await).await.ok();
    }

    /// What is being deleted can be let go of.
    async fn lets_go(&self) {
        let mut held = self.admin.get(&self.bindings("/held")).await.ok();
        held["metadata"].as_object_mut().unwrap().remove("finalizers");
        self.admin.put(&self.bindings("/held"), &held).await.ok();
        self.admin.until_gone(&self.bindings("/held")).await;
        // A policy needs nobody's word to go.
        self.admin.delete(&evictions("/there")).await.ok();
        self.admin.delete(&self.policies("/there")).await.ok();
    }

    /// It is asked again.
    async fn is_judged_again(&self) {
        eventually("a write going through again", async || {
            (self.admin.post(&self.placements(""), &placement("new")).await.code == 201).then_some(())
        })
        .await;
        let bad = fleet(
            "v1beta1",
            "Placement",
            "bad",
            &json!({"tolerations": [{"operator": "Equal", "value": "a"}]}),
        );
        self.admin.post(&self.placements(""), &bad).await.refused(422);
    }
}

async fn down(bed: &mut Bed) {
    let Some(mut webhook) = or_skip(webhook(bed, "webhook", &[]).await) else { return };
    let fleet = Fleet::new(bed).await;
    webhook.kill();
    fleet.is_guarded().await;
    fleet.goes_on().await;
    fleet.is_open().await;
    fleet.lets_go().await;
    // It comes back on another port, says so, and is asked again.
    webhook.start().await.unwrap();
    fleet.is_judged_again().await;
}

/// It takes connections and says nothing: each write waits as long as is documented, and no longer.
async fn hung(bed: &mut Bed) {
    let Some(webhook) = or_skip(webhook(bed, "webhook", &[]).await) else { return };
    let fleet = Fleet::new(bed).await;
    webhook.pause().unwrap();
    for (what, took) in fleet.is_guarded().await {
        assert!((VERDICT..LONGEST).contains(&took), "{what} was refused after {took:?}");
    }
    let begun = Instant::now();
    fleet.goes_on().await;
    assert!(begun.elapsed() < VERDICT, "somebody was asked: {:?}", begun.elapsed());
    for (what, took) in fleet.is_open().await {
        assert!((WARNING..VERDICT).contains(&took), "{what} after {took:?}");
    }
    fleet.lets_go().await;
    webhook.resume().unwrap();
    fleet.is_judged_again().await;
}

#[test]
fn a_webhook_that_is_down_locks_nobody_out_on_the_hub() {
    alone(Ground::Hub, down);
}

#[test]
fn a_webhook_that_is_down_locks_nobody_out_on_kubernetes() {
    alone(Ground::Kubernetes, down);
}

#[test]
fn a_webhook_that_hangs_keeps_nobody_waiting_for_long_on_the_hub() {
    alone(Ground::Hub, hung);
}

#[test]
fn a_webhook_that_hangs_keeps_nobody_waiting_for_long_on_kubernetes() {
    alone(Ground::Kubernetes, hung);
}
