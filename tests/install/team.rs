//! What a team has on the server, which is there before Berth and stays when it goes.

use serde_json::{Value, json};

use crate::ground::{GROUP, Ground, POLICIES};

pub(crate) const PLACEMENTS: &str =
    "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/team/placements";

/// Many objects, for `kubectl apply`.
pub(crate) fn as_list(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// What a team has before anything is upgraded.
pub(crate) async fn fleet(ground: &Ground) {
    ground.namespace("team").await;
    let spec = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
    ground.make("v1beta2", None, "ManagedClusterSet", "blue", spec).await;
    ground
        .make("v1beta2", Some("team"), "ManagedClusterSetBinding", "blue", json!({"clusterSet": "blue"}))
        .await;
    ground.make("v1", None, "ManagedCluster", "c1", json!({"hubAcceptsClient": true})).await;
    let label = json!({"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": "blue"}}});
    ground.caller.merge(&format!("{GROUP}/v1/managedclusters/c1"), &label).await.ok();
    let claims = json!({"status": {"clusterClaims": [{"name": "region", "value": "north"}]}});
    ground.caller.merge(&format!("{GROUP}/v1/managedclusters/c1/status"), &claims).await.ok();
    ground.make("v1beta1", Some("team"), "Placement", "web", json!({"numberOfClusters": 1})).await;
    // As whoever decided before has left it.
    let told = json!({"status": {"numberOfSelectedClusters": 1, "decisionGroups": [{
        "decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["web-decision-1"], "clusterCount": 1,
    }]}});
    ground.caller.merge(&format!("{PLACEMENTS}/web/status"), &told).await.ok();
    let slices = format!("{GROUP}/v1beta1/namespaces/team/placementdecisions");
    let slice = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {
            "name": "web-decision-1", "labels": {"cluster.open-cluster-management.io/placement": "web"},
        },
    });
    ground.caller.post(&slices, &slice).await.ok();
    let decided = json!({"status": {"decisions": [{"clusterName": "c1", "reason": "Told"}]}});
    ground.caller.merge(&format!("{slices}/web-decision-1/status"), &decided).await.ok();
}

/// How the team wants its pods to leave ailing nodes.
pub(crate) async fn policies(ground: &Ground) {
    let kind = |kind: &str, spec: Value| json!({"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": {"name": "web"}, "spec": spec});
    let eviction = json!({"pods": {"selector": {"matchLabels": {"app": "web"}}}, "way": "Hold"});
    let replacement = json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
        "replacements": {"taintReplacementOptions": [{"key": "*", "durationInSeconds": 60}]},
    });
    ground.caller.post(&format!("{POLICIES}/evictionpolicies"), &kind("EvictionPolicy", eviction)).await.ok();
    let path = format!("{POLICIES}/namespaces/team/replacementpolicies");
    ground.caller.post(&path, &kind("ReplacementPolicy", replacement)).await.ok();
}

pub(crate) const POLICY_PATHS: [&str; 2] = [
    "/apis/berth.dev/v1alpha1/evictionpolicies/web",
    "/apis/berth.dev/v1alpha1/namespaces/team/replacementpolicies/web",
];

/// What is in each object of the fleet that somebody wrote, and in each policy if there are any.
pub(crate) async fn contents(ground: &Ground, has_policies: bool) -> Vec<Value> {
    let mut contents = Vec::new();
    let fleet = [
        "v1/managedclusters/c1",
        "v1beta2/managedclustersets/blue",
        "v1beta2/namespaces/team/managedclustersetbindings/blue",
        "v1beta1/namespaces/team/placements/web",
        "v1beta1/namespaces/team/placementdecisions/web-decision-1",
    ];
    let policies = POLICY_PATHS.into_iter().filter(|_| has_policies).map(str::to_owned);
    for path in fleet.map(|path| format!("{GROUP}/{path}")).into_iter().chain(policies) {
        let found = ground.caller.get(&path).await.ok();
        let (metadata, spec, status) = (&found["metadata"], &found["spec"], &found["status"]);
        let (uid, labels, generation) = (&metadata["uid"], &metadata["labels"], &metadata["generation"]);
        contents.push(json!([path, uid, labels, generation, spec, status]));
    }
    contents
}

const GREEN: &str =
    "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/team/managedclustersetbindings/green";

/// The administrator grants a set to the team, which becomes a binding.
pub(crate) async fn granted_by_rbac(ground: &Ground) {
    let spec = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
    ground.make("v1beta2", None, "ManagedClusterSet", "green", spec).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "placement", "namespace": "team"}});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "bind-green"},
        "rules": [{
            "apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclustersets/bind"],
            "resourceNames": ["green"], "verbs": ["create"],
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bind-green"},
        "subjects": [{"kind": "ServiceAccount", "name": "placement", "namespace": "team"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bind-green"},
    });
    ground.kubectl(&["apply", "-f", "-"], &as_list(&[account, role, binding]));
    let follows = |binding: &Value| binding["metadata"]["labels"]["berth.dev/bound-by"] == "rbac";
    ground.caller.until(GREEN, "follows from the grant", follows).await;
}

/// A binding that followed from RBAC outlives those who made it, and goes by the command that `berth uninstall` names; one
/// that was made by hand does not.
pub(crate) async fn unbound(ground: &Ground, flags: &[&str]) {
    assert_eq!(ground.caller.get(GREEN).await.code, 200, "what was written for users stays");
    ground.kubectl(&["delete", "clusterrolebinding,clusterrole", "bind-green"], "");
    let output = ground.berth(&[&["uninstall"], flags].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    let (_, command) = told.split_once("to delete them now: kubectl ").unwrap_or_else(|| panic!("{told}"));
    ground.kubectl(&command.split_whitespace().collect::<Vec<_>>(), "");
    assert_eq!(ground.caller.get(GREEN).await.code, 404);
    assert_eq!(ground.caller.get(&GREEN.replace("green", "blue")).await.code, 200, "made by hand");
}
