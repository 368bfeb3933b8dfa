//! Least privilege, proven: every controller alone, with exactly the role that `berth install` prints for it.
//!
//! The audit log says what it asked for, and what the webhook asked about it. A request that was refused fails the test, and so
//! does a rule that no request used and nobody asked about.

use std::{collections::BTreeSet, time::Duration};

use berth_control::ControllerName;
use berth_tests::{
    caller::condition,
    waiting::{eventually, until},
};
use serde_json::{Value, json};

use crate::{
    ground::{GROUP, Ground, run},
    guard::Guard,
    members::replacements,
    pod::Pod,
    rules::{Granted, granted, refused, unused},
};

/// How long all rules may take to be used: a lease that runs out takes seconds, a busy machine takes more.
const PATIENCE: Duration = Duration::from_mins(2);

const ACCOUNT: &str = "berth";
const TEAM: &str = "team";

/// The one right that the audit log never shows: Kubernetes asks about it within itself, when a slice is made whose owner is
/// protected. It is proven below.
const ASKED_BY_KUBERNETES: (&str, &str) = ("placements/finalizers", "update");

/// Rights that Berth's own rules ask about, where nobody is trusted by them.
const ASKED_BY_OUR_RULES: [(&str, &str); 3] = [
    ("managedclustersets/bind", "create"),
    ("managedclustersets/join", "create"),
    ("managedclusters/systemtaints", "update"),
];

/// The controllers that were proven, one by one.
struct Proofs<'g> {
    ground: &'g Ground,
    proven: BTreeSet<String>,
}

/// Where a controller is installed alone.
fn home(controller: &str) -> String {
    format!("berth-{controller}")
}

impl Proofs<'_> {
    /// Runs one controller through its scenario and holds what it asked for against what it may; nothing where pods cannot run.
    async fn prove(&mut self, controller: &str, scenario: impl AsyncFnOnce(&str)) -> Option<()> {
        let objects = self.install(controller).await;
        self.run(controller, &objects, scenario, &[]).await?;
        self.proven.insert(controller.to_owned());
        Some(())
    }

    /// The same of one whose writes our rules have questions about: all but what they ask about. The rest is left to
    /// [`Self::prove_judged`], and without it the controller is not proven.
    async fn prove_in_part(&mut self, controller: &str, scenario: impl AsyncFnOnce()) -> Option<()> {
        let objects = self.install(controller).await;
        self.run(controller, &objects, async |_| scenario().await, &ASKED_BY_OUR_RULES).await
    }

    /// Runs it once more with the webhook in front of the API server, which trusts nobody: what it asks about the controller
    /// counts as use of the right.
    async fn prove_judged(&mut self, controller: &str, scenario: impl AsyncFnOnce()) -> Option<()> {
        let guard = Guard::post(self.ground, &home(controller), controller).await?;
        self.run(controller, &guard.objects, async |_| scenario().await, &[]).await?;
        guard.leave(self.ground).await;
        self.proven.insert(controller.to_owned());
        Some(())
    }

    async fn install(&self, controller: &str) -> Vec<Value> {
        let flags = ["--namespace", &*home(controller), "--controllers", controller, "--without-webhooks"];
        self.ground.install(&flags).await
    }

    async fn run(
        &self,
        controller: &str,
        objects: &[Value],
        scenario: impl AsyncFnOnce(&str),
        exempt: &[(&str, &str)],
    ) -> Option<()> {
        let ground = self.ground;
        let is_it = |object: &&Value| {
            object["kind"] == "Deployment" && object["metadata"]["name"] == "berth-controllers"
        };
        let deployment =
            objects.iter().find(is_it).unwrap_or_else(|| panic!("{controller} has no Deployment"));
        let mut leader = Pod::start(ground, "leader", deployment).await?;
        // The one that stands by watches for its turn.
        let mut other = Pod::start(ground, "stand-by", deployment).await?;
        let user = leader.user.clone();
        scenario(&user).await;
        let rules = granted(objects, ACCOUNT);
        used_but(exempt, ground, &rules, &user).await;
        leader.process.stop().await.unwrap();
        other.process.stop().await.unwrap();
        none_refused(ground, &rules, &user);
        Some(())
    }
}

/// Waits until every rule was used by a request, or asked about.
pub(crate) async fn all_used(ground: &Ground, rules: &BTreeSet<Granted>, user: &str) {
    used_but(&[], ground, rules, user).await;
}

async fn used_but(exempt: &[(&str, &str)], ground: &Ground, rules: &BTreeSet<Granted>, user: &str) {
    let is_held = |rule: &&Granted| {
        let right = (&*rule.resource, &*rule.verb);
        right != ASKED_BY_KUBERNETES && !exempt.contains(&right)
    };
    until(&format!("every rule of {user} being used"), PATIENCE, async || {
        let left = unused(rules, &ground.ledger(), user);
        let left: Vec<String> = left.iter().filter(is_held).map(ToString::to_string).collect();
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

/// A cluster of no set, made while nobody puts it into one: whoever writes to it next does, and is asked whether they may.
async fn cluster_of_no_set(ground: &Ground) {
    ground.make("v1", None, "ManagedCluster", "c2", json!({"hubAcceptsClient": true})).await;
}

async fn judged_taints(ground: &Ground) {
    ground.report("c2", "False").await;
    let is_tainted = |cluster: &Value| {
        let taints = cluster["spec"]["taints"].to_string();
        let set = &cluster["metadata"]["labels"]["cluster.open-cluster-management.io/clusterset"];
        taints.contains("cluster.open-cluster-management.io/unavailable") && set == "default"
    };
    ground
        .caller
        .until(&Ground::path("v1/managedclusters", "c2"), "is tainted, and in a set", is_tainted)
        .await;
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

const TENANT: &str =
    "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/tenant/managedclustersetbindings/blue";

fn rbac(kind: &str, name: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{name}")
}

fn is_bound(binding: &Value) -> bool {
    binding["spec"]["clusterSet"] == "blue"
}

/// Lets the tenant have the set, and waits until it has.
async fn grant(ground: &Ground) {
    let binding = json!({
        "metadata": {"name": "tenant-binds"},
        "subjects": [{"kind": "ServiceAccount", "name": "placement", "namespace": "tenant"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "binder"},
    });
    ground.caller.post(&rbac("clusterrolebindings", ""), &binding).await.ok();
    ground.caller.until(TENANT, "is made", is_bound).await;
}

/// Takes it away again.
async fn withdraw(ground: &Ground) {
    ground.caller.delete(&rbac("clusterrolebindings", "tenant-binds")).await.ok();
    ground.caller.until_gone(TENANT).await;
}

async fn grants(ground: &Ground) {
    ground.namespace("tenant").await;
    let role = json!({"metadata": {"name": "binder"}, "rules": [{
        "verbs": ["create"], "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclustersets/bind"], "resourceNames": ["blue"],
    }]});
    ground.caller.post(&rbac("clusterroles", ""), &role).await.ok();
    grant(ground).await;
    ground.caller.merge(TENANT, &json!({"spec": {"clusterSet": "red"}})).await.ok();
    ground.caller.until(TENANT, "is put right", is_bound).await;
    withdraw(ground).await;
}

async fn judged_grants(ground: &Ground) {
    grant(ground).await;
    withdraw(ground).await;
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
    // A policy that asks for the labels of namespaces, and about the owners of pods.
    let policy = json!({
        "apiVersion": "berth.dev/v1alpha1", "kind": "EvictionPolicy", "metadata": {"name": "proof"},
        "spec": {
            "pods": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": TEAM}},
                "selector": {"matchLabels": {"app": "owned"}},
            },
            "way": "Evict",
            "gates": [{"name": "owned", "cel": {"expression": "owner != null"}}],
        },
    });
    let policies = "/apis/berth.dev/v1alpha1/evictionpolicies";
    ground.caller.post(policies, &policy).await.ok();
    ground.caller.until(&format!("{policies}/proof"), "is read", |policy| !policy["status"].is_null()).await;
    for (name, reference) in owners(ground, TEAM).await {
        let mut owned = pod(&name, json!([]));
        owned["metadata"]["labels"] = json!({"app": "owned"});
        owned["metadata"]["ownerReferences"] = json!([reference]);
        ground.caller.post(&pods, &owned).await.ok();
        ground.caller.until_gone(&format!("{pods}/{name}")).await;
    }
}

/// A workload of each kind, for pods with the label `app: owned`, of which it wants none: its name, and how its pods name it.
pub(crate) async fn owners(ground: &Ground, namespace: &str) -> Vec<(String, Value)> {
    let mut owners = Vec::new();
    for (version, kind, plural) in [
        ("apis/apps/v1", "ReplicaSet", "replicasets"),
        ("apis/apps/v1", "StatefulSet", "statefulsets"),
        ("apis/apps/v1", "DaemonSet", "daemonsets"),
        ("apis/batch/v1", "Job", "jobs"),
        ("api/v1", "ReplicationController", "replicationcontrollers"),
    ] {
        let name = kind.to_lowercase();
        let template = json!({
            "metadata": {"labels": {"app": "owned"}},
            "spec": {"restartPolicy": if kind == "Job" { "Never" } else { "Always" }, "containers": [{"name": "c", "image": "i"}]},
        });
        let spec = match kind {
            "Job" => json!({"template": template}),
            "ReplicationController" => {
                json!({"replicas": 0, "selector": {"app": "owned"}, "template": template})
            }
            "DaemonSet" => json!({"selector": {"matchLabels": {"app": "owned"}}, "template": template}),
            "StatefulSet" => json!({
                "replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"app": "owned"}}, "template": template,
            }),
            _ => json!({"replicas": 0, "selector": {"matchLabels": {"app": "owned"}}, "template": template}),
        };
        let path = format!("/{version}/namespaces/{namespace}/{plural}");
        let owner = ground.caller.post(&path, &json!({"metadata": {"name": name}, "spec": spec})).await.ok();
        let reference = json!({
            "apiVersion": version.trim_start_matches("apis/").trim_start_matches("api/"),
            "kind": kind, "name": name, "uid": owner["metadata"]["uid"], "controller": true,
        });
        owners.push((name, reference));
    }
    owners
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

/// Each in its turn, on what those before it have left; nothing where pods cannot run.
async fn each(ground: &Ground) -> Option<BTreeSet<String>> {
    let mut proofs = Proofs { ground, proven: BTreeSet::new() };
    proofs.prove("clusterset-controller", async |_| sets(ground).await).await?;
    ground.namespace(TEAM).await;
    silent_node(ground).await;
    ground.set("blue").await;
    ground
        .make("v1beta2", Some(TEAM), "ManagedClusterSetBinding", "blue", json!({"clusterSet": "blue"}))
        .await;
    ground.cluster("c1").await;
    proofs.prove("clustersetbinding-controller", async |_| bindings(ground).await).await?;
    proofs.prove("placement-controller", async |user| placements(ground, user).await).await?;
    without_finalizers(ground).await;
    proofs.prove_in_part("rbac-binding-controller", async || grants(ground).await).await?;
    proofs.prove_judged("rbac-binding-controller", async || judged_grants(ground).await).await?;
    proofs.prove("cluster-lease-controller", async |_| leases(ground).await).await?;
    proofs.prove_in_part("cluster-taint-controller", async || taints(ground).await).await?;
    cluster_of_no_set(ground).await;
    proofs.prove_judged("cluster-taint-controller", async || judged_taints(ground).await).await?;
    proofs.prove("taint-eviction-controller", async |_| evictions(ground).await).await?;
    proofs.prove("node-lifecycle-controller", async |_| silence(ground).await).await?;
    proofs.prove("replacement-controller", async |_| replacements(ground).await).await?;
    Some(proofs.proven)
}

#[test]
fn every_controller_does_its_work_with_exactly_the_rights_it_is_given() {
    run(async {
        let Some(ground) = Ground::new().await else { return };
        let Some(proven) = each(&ground).await else { return };
        let all: BTreeSet<String> = ControllerName::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(proven, all, "a controller whose rights nobody has proven");
    });
}
