//! Least privilege, proven: every controller alone, with exactly the role that `berth install` prints for it.
//!
//! The audit log says what it asked for. A request that was refused fails the test, and so does a rule that no request used.

use std::{collections::BTreeSet, time::Duration};

use berth_tests::{
    caller::condition,
    waiting::{eventually, until},
};
use serde_json::{Value, json};

use crate::{
    ground::{GROUP, Ground, run},
    pod::Pod,
    rules::{Granted, granted, refused, unused},
};

/// How long all rules may take to be used: a lease that runs out takes seconds, a busy machine takes more.
const PATIENCE: Duration = Duration::from_mins(2);

const ACCOUNT: &str = "berth";
const TEAM: &str = "team";

/// Rights that no request of the controllers uses: admission asks about them when the controllers write. That of finalizers
/// is proven below; the others are asked about by Berth's own rules, which `crates/berth` holds against the same roles.
const ASKED_BY_ADMISSION: [(&str, &str); 4] = [
    ("placements/finalizers", "update"),
    ("managedclustersets/bind", "create"),
    ("managedclustersets/join", "create"),
    ("managedclusters/systemtaints", "update"),
];

fn is_request(rule: &Granted) -> bool {
    !ASKED_BY_ADMISSION.contains(&(&*rule.resource, &*rule.verb))
}

/// Runs one controller through its scenario and holds what it asked for against what it may.
async fn prove(ground: &Ground, controller: &str, scenario: impl AsyncFnOnce(&str)) {
    let namespace = format!("berth-{controller}");
    let flags = ["--namespace", &*namespace, "--controllers", controller, "--without-webhooks"];
    let objects = ground.install(&flags).await;
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let Some(mut leader) = Pod::start(ground, "leader", deployment).await else { return };
    // The one that stands by watches for its turn.
    let Some(mut other) = Pod::start(ground, "stand-by", deployment).await else { return };
    let user = leader.user.clone();
    scenario(&user).await;
    let rules = granted(&objects, ACCOUNT);
    all_used(ground, &rules, &user).await;
    leader.process.stop().await.unwrap();
    other.process.stop().await.unwrap();
    none_refused(ground, &rules, &user);
}

/// Waits until every rule was used by a request.
pub(crate) async fn all_used(ground: &Ground, rules: &BTreeSet<Granted>, user: &str) {
    until(&format!("every rule of {user} being used"), PATIENCE, async || {
        let left = unused(rules, &ground.ledger(), user);
        let left: Vec<String> =
            left.iter().filter(|rule| is_request(rule)).map(ToString::to_string).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("no request used {left:#?}")) }
    })
    .await;
}

/// Every request had its rule.
pub(crate) fn none_refused(ground: &Ground, rules: &BTreeSet<Granted>, user: &str) {
    let refused = refused(rules, &ground.ledger(), user);
    assert!(refused.is_empty(), "{user} was refused, or asked without a rule: {refused:#?}");
}

impl Ground {
    fn path(kind: &str, name: &str) -> String {
        format!("{GROUP}/{kind}/{name}")
    }

    /// A cluster of the set blue.
    async fn cluster(&self, name: &str) {
        self.make(
            "v1",
            None,
            "ManagedCluster",
            name,
            json!({"hubAcceptsClient": true, "leaseDurationSeconds": 1}),
        )
        .await;
        let label =
            json!({"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": "blue"}}});
        self.caller.merge(&Self::path("v1/managedclusters", name), &label).await.ok();
    }

    async fn set(&self, name: &str) {
        let spec = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
        self.make("v1beta2", None, "ManagedClusterSet", name, spec).await;
    }

    /// Says of a cluster that it was accepted, and whether it is available.
    async fn report(&self, cluster: &str, available: &str) {
        let said = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "Told", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let conditions =
            [said("HubAcceptedManagedCluster", "True"), said("ManagedClusterConditionAvailable", available)];
        let path = Self::path("v1/managedclusters", &format!("{cluster}/status"));
        self.caller.merge(&path, &json!({"status": {"conditions": conditions}})).await.ok();
    }
}

async fn placements(ground: &Ground, user: &str) {
    let team = |kind: &str, name: &str| format!("{GROUP}/v1beta1/namespaces/{TEAM}/{kind}/{name}");
    ground.make("v1beta1", Some(TEAM), "Placement", "p", json!({"numberOfClusters": 1})).await;
    let slice = team("placementdecisions", "p-decision-1");
    let is_filled = |slice: &Value| slice["status"]["decisions"][0]["clusterName"] == "c1";
    ground.caller.until(&slice, "names the cluster", is_filled).await;
    // Somebody takes a label away, and it comes back.
    let label = "cluster.open-cluster-management.io/decision-group-index";
    ground.caller.merge(&slice, &json!({"metadata": {"labels": {label: null}}})).await.ok();
    ground.caller.until(&slice, "is labelled again", |slice| slice["metadata"]["labels"][label] == "0").await;
    // A slice too many goes.
    let surplus = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": "p-decision-9", "labels": {"cluster.open-cluster-management.io/placement": "p"}},
    });
    ground.caller.post(&format!("{GROUP}/v1beta1/namespaces/{TEAM}/placementdecisions"), &surplus).await.ok();
    ground.caller.until_gone(&team("placementdecisions", "p-decision-9")).await;
    assert_eq!(ground.ledger().of(user).filter(|asked| asked.code == 403).count(), 0);
}

/// Where owners are protected, a slice cannot be made without a say in the going of its Placement.
async fn without_finalizers(ground: &Ground) {
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth:placement-controller";
    let role = ground.caller.get(path).await.ok();
    let is_other = |rule: &&Value| rule["resources"] != json!(["placements/finalizers"]);
    let fewer: Vec<&Value> = role["rules"].as_array().unwrap().iter().filter(is_other).collect();
    assert_eq!(fewer.len() + 1, role["rules"].as_array().unwrap().len());
    ground.caller.merge(path, &json!({"rules": fewer})).await.ok();
    let namespace = "berth-placement-controller";
    let objects = berth_tests::caller::documents(&ground.print(&[
        "install",
        "--namespace",
        namespace,
        "--without-webhooks",
        "--without-crds",
    ]));
    let user = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    eventually("the rule being gone", async || {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": ["system:serviceaccounts"], "resourceAttributes": {
                "verb": "update", "group": "cluster.open-cluster-management.io", "resource": "placements",
                "subresource": "finalizers",
            }},
        });
        let answer =
            ground.caller.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.ok();
        (answer["status"]["allowed"] == false).then_some(())
    })
    .await;
    let mut deployment = objects.into_iter().find(|object| object["kind"] == "Deployment").unwrap();
    let args = &mut deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    *args = json!(["run", "--controllers=placement-controller", "--metrics-bind=0.0.0.0:8080"]);
    let Some(mut pod) = Pod::start(ground, "without-finalizers", &deployment).await else { return };
    ground.make("v1beta1", Some(TEAM), "Placement", "q", json!({"numberOfClusters": 1})).await;
    eventually("a slice being refused", async || {
        let ledger = ground.ledger();
        let mut asked = ledger.of(&user);
        asked
            .any(|one| one.code == 403 && one.verb == "create" && one.resource == "placementdecisions")
            .then_some(())
    })
    .await;
    pod.process.stop().await.unwrap();
}

async fn leases(ground: &Ground) {
    // It gets a lease in its namespace, which nobody renews.
    ground.namespace("c1").await;
    ground.report("c1", "True").await;
    let is_unknown =
        |cluster: &Value| condition(cluster, "ManagedClusterConditionAvailable")["status"] == "Unknown";
    ground
        .caller
        .until(&Ground::path("v1/managedclusters", "c1"), "is of unknown availability", is_unknown)
        .await;
}

async fn taints(ground: &Ground) {
    ground.report("c1", "False").await;
    let is_tainted = |cluster: &Value| {
        cluster["spec"]["taints"][0]["key"] == "cluster.open-cluster-management.io/unavailable"
    };
    ground.caller.until(&Ground::path("v1/managedclusters", "c1"), "is tainted", is_tainted).await;
}

async fn sets(ground: &Ground) {
    let path = |name: &str| Ground::path("v1beta2/managedclustersets", name);
    let is_counted = |set: &Value| condition(set, "ClusterSetEmpty")["status"].is_string();
    ground.caller.until(&path("default"), "is counted", is_counted).await;
    let bent = json!({"spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}});
    ground.caller.merge(&path("default"), &bent).await.ok();
    let is_right = |set: &Value| set["spec"]["clusterSelector"]["selectorType"] == "ExclusiveClusterSetLabel";
    ground.caller.until(&path("default"), "is as it should be", is_right).await;
}

async fn bindings(ground: &Ground) {
    let path = format!("{GROUP}/v1beta2/namespaces/{TEAM}/managedclustersetbindings/blue");
    ground.caller.until(&path, "is bound", |binding| condition(binding, "Bound")["status"] == "True").await;
}

async fn grants(ground: &Ground) {
    let rbac = |kind: &str, name: &str| format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{name}");
    ground.namespace("tenant").await;
    let role = json!({"metadata": {"name": "binder"}, "rules": [{
        "verbs": ["create"], "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclustersets/bind"], "resourceNames": ["blue"],
    }]});
    ground.caller.post(&rbac("clusterroles", ""), &role).await.ok();
    let binding = json!({
        "metadata": {"name": "tenant-binds"},
        "subjects": [{"kind": "ServiceAccount", "name": "placement", "namespace": "tenant"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "binder"},
    });
    ground.caller.post(&rbac("clusterrolebindings", ""), &binding).await.ok();
    let path = format!("{GROUP}/v1beta2/namespaces/tenant/managedclustersetbindings/blue");
    let is_bound = |binding: &Value| binding["spec"]["clusterSet"] == "blue";
    ground.caller.until(&path, "is made", is_bound).await;
    ground.caller.merge(&path, &json!({"spec": {"clusterSet": "red"}})).await.ok();
    ground.caller.until(&path, "is put right", is_bound).await;
    ground.caller.delete(&rbac("clusterrolebindings", "tenant-binds")).await.ok();
    ground.caller.until_gone(&path).await;
}

/// Without a kubelet a pod without a grace period is gone at once.
async fn evictions(ground: &Ground) {
    let pods = format!("/api/v1/namespaces/{TEAM}/pods");
    let pod = |name: &str, tolerations: Value| {
        json!({"metadata": {"name": name}, "spec": {
            "nodeName": "node", "terminationGracePeriodSeconds": 0, "tolerations": tolerations,
            "containers": [{"name": "c", "image": "i"}],
        }})
    };
    let node =
        json!({"metadata": {"name": "node"}, "spec": {"taints": [{"key": "down", "effect": "NoExecute"}]}});
    ground.caller.post("/api/v1/nodes", &node).await.ok();
    let patient =
        json!([{"key": "down", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}]);
    ground.caller.post(&pods, &pod("patient", patient)).await.ok();
    // The time of a taint that somebody tolerates for a while is written down.
    let is_timed = |node: &Value| node["spec"]["taints"][0]["timeAdded"].is_string();
    ground.caller.until("/api/v1/nodes/node", "says since when", is_timed).await;
    ground.caller.post(&pods, &pod("hasty", json!([]))).await.ok();
    ground.caller.until_gone(&format!("{pods}/hasty")).await;
}

/// A node that nobody ever hears of, and a pod there that says it is ready.
async fn silent_node(ground: &Ground) {
    ground.caller.post("/api/v1/nodes", &json!({"metadata": {"name": "silent"}})).await.ok();
    let pods = format!("/api/v1/namespaces/{TEAM}/pods");
    let pod = json!({"metadata": {"name": "serving"}, "spec": {
        "nodeName": "silent", "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "i"}],
    }});
    ground.caller.post(&pods, &pod).await.ok();
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    ground.caller.merge(&format!("{pods}/serving/status"), &ready).await.ok();
}

/// It has a minute from when it was made.
async fn silence(ground: &Ground) {
    let pod = format!("/api/v1/namespaces/{TEAM}/pods/serving");
    until("the silence being noticed", PATIENCE, async || {
        let node = ground.caller.get("/api/v1/nodes/silent").await.ok();
        let pod = ground.caller.get(&pod).await.ok();
        let is_barred = node["spec"]["taints"].to_string().contains("unreachable");
        let is_told = pod["status"]["conditions"][0]["status"] == "False";
        if is_barred && is_told { Ok(()) } else { Err(format!("{node}\n{pod}")) }
    })
    .await;
}

#[test]
fn every_controller_does_its_work_with_exactly_the_rights_it_is_given() {
    run(async {
        let Some(ground) = Ground::new().await else { return };
        prove(&ground, "clusterset-controller", async |_| sets(&ground).await).await;
        ground.namespace(TEAM).await;
        silent_node(&ground).await;
        ground.set("blue").await;
        ground
            .make("v1beta2", Some(TEAM), "ManagedClusterSetBinding", "blue", json!({"clusterSet": "blue"}))
            .await;
        ground.cluster("c1").await;
        prove(&ground, "clustersetbinding-controller", async |_| bindings(&ground).await).await;
        prove(&ground, "placement-controller", async |user| placements(&ground, user).await).await;
        without_finalizers(&ground).await;
        prove(&ground, "rbac-binding-controller", async |_| grants(&ground).await).await;
        prove(&ground, "cluster-lease-controller", async |_| leases(&ground).await).await;
        prove(&ground, "cluster-taint-controller", async |_| taints(&ground).await).await;
        prove(&ground, "taint-eviction-controller", async |_| evictions(&ground).await).await;
        prove(&ground, "node-lifecycle-controller", async |_| silence(&ground).await).await;
    });
}
