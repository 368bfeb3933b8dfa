//! A webhook that is down: what must be judged is refused, and what the controllers live on goes through.

use berth_bed::{Bed, or_skip};
use berth_tests::{caller::Caller, waiting::eventually};
use serde_json::{Value, json};

use crate::ground::{GROUP, Ground, alone, cluster, webhook};

fn placement(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name}, "spec": {},
    })
}

async fn down(bed: &mut Bed) {
    let Some(mut webhook) = or_skip(webhook(bed, "webhook", &[]).await) else { return };
    let admin = Caller::admin(bed);
    let namespace = bed.namespace("down").await;
    let placements = format!("{GROUP}/v1beta1/namespaces/{namespace}/placements");
    let clusters = format!("{GROUP}/v1/managedclusters");
    let bindings = format!("{GROUP}/v1beta2/namespaces/{namespace}/managedclustersetbindings");
    admin.post(&placements, &placement("there")).await.ok();
    admin.post(&clusters, &cluster("c1", &json!({}))).await.ok();
    let held = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "held", "finalizers": ["berth.dev/test"]}, "spec": {"clusterSet": "held"},
    });
    admin.post(&bindings, &held).await.ok();
    // The account of the controllers may write clusters, and is named as trusted.
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "controllers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "controllers"}],
    });
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &role).await.ok();
    let controllers = Caller::acting_as(bed, "controllers", &[]);
    webhook.kill();

    // What must be judged is refused, in words that name the webhook.
    let refusal = admin.post(&placements, &placement("new")).await.refused(500);
    assert!(refusal.message().contains("placements.admission.berth.dev"), "{}", refusal.message());
    admin.merge(&format!("{clusters}/c1"), &json!({"metadata": {"labels": {"a": "b"}}})).await.refused(500);
    // A Placement's metadata is nobody's business, and neither is what only would have been warned about.
    admin.merge(&format!("{placements}/there"), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    admin.delete(&format!("{placements}/there")).await.ok();
    // Status and leases never go through it.
    let condition = json!({
        "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "Test", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    admin.merge(&format!("{clusters}/c1/status"), &json!({"status": {"conditions": [condition]}})).await.ok();
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "managed-cluster-lease"}, "spec": {}});
    admin.post(&format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"), &lease).await.ok();
    // The controllers taint a cluster that fails meanwhile.
    eventually("the rights of the controllers", async || {
        (controllers.get(&clusters).await.code == 200).then_some(())
    })
    .await;
    let taint = json!({"spec": {"taints": [{
        "key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z",
    }]}});
    controllers.merge(&format!("{clusters}/c1"), &taint).await.ok();
    // What is being deleted can be let go of.
    admin.delete(&format!("{bindings}/held")).await.ok();
    let mut held = admin.get(&format!("{bindings}/held")).await.ok();
    held["metadata"].as_object_mut().unwrap().remove("finalizers");
    admin.put(&format!("{bindings}/held"), &held).await.ok();
    admin.until_gone(&format!("{bindings}/held")).await;

    // It comes back on another port, says so, and is asked again.
    webhook.start().await.unwrap();
    eventually("a write going through again", async || {
        (admin.post(&placements, &placement("new")).await.code == 201).then_some(())
    })
    .await;
}

#[test]
fn a_webhook_that_is_down_locks_nobody_out_on_the_hub() {
    alone(Ground::Hub, down);
}

#[test]
fn a_webhook_that_is_down_locks_nobody_out_on_kubernetes() {
    alone(Ground::Kubernetes, down);
}
