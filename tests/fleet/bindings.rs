//! ManagedClusterSetBindings: whether they bind anything, and those that follow from RBAC.

use berth_tests::caller::condition;
use serde_json::{Value, json};

use crate::{
    ground::grounds,
    handle::{Fleet, GROUP},
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const BOUND_BY: &str = "berth.dev/bound-by";

fn is_bound(status: &'static str, reason: &'static str) -> impl Fn(&Value) -> bool {
    move |binding| {
        let said = condition(binding, "Bound");
        said["status"] == status && said["reason"] == reason
    }
}

impl Fleet {
    /// Grants to a namespace's service account `placement` what a role of these rules grants, and gives the binding's path.
    async fn grant(&self, role: &str, rule: Value) -> String {
        let name = format!("open-cluster-management:managedclusterset:{}", self.name(role));
        let account = json!({"kind": "ServiceAccount", "name": "placement", "namespace": self.namespace});
        self.allow(&account, &name, &json!([rule])).await
    }

    /// Lets somebody do something everywhere, by a role and a binding of that name; gives the binding's path.
    pub(crate) async fn allow(&self, subject: &Value, name: &str, rules: &Value) -> String {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": rules,
        });
        self.caller.post(&format!("{RBAC}/clusterroles"), &role).await.ok();
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "subjects": [subject],
            "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"},
        });
        self.caller.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.ok();
        format!("{RBAC}/clusterrolebindings/{name}")
    }
}

/// The right to bind these sets; all of them if none is named.
fn may_bind(sets: &[String]) -> Value {
    let mut rule = json!({
        "apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclustersets/bind"], "verbs": ["create"],
    });
    if !sets.is_empty() {
        rule["resourceNames"] = json!(sets);
    }
    rule
}

grounds! {
    /// Upstream: e2e/managedclustersetbinding_test.go "should bound a ManagedClusterSetBinding".
    calm async fn a_binding_says_whether_its_set_is_there(fleet: &Fleet) {
        fleet.bind("blue").await;
        let path = fleet.binding_path("blue");
        fleet.until(&path, "is not bound", is_bound("False", "ClusterSetNotFound")).await;
        fleet.set("blue").await;
        fleet.until(&path, "is bound", is_bound("True", "ClusterSetBound")).await;
        fleet.caller.delete(&fleet.set_path("blue")).await.ok();
        fleet.until(&path, "is not bound", is_bound("False", "ClusterSetNotFound")).await;
        fleet.set("blue").await;
        let bound = fleet.until(&path, "is bound", is_bound("True", "ClusterSetBound")).await;
        assert_eq!(condition(&bound, "Bound")["message"], "");
    }

    /// The second scenario of the placement APIs: an administrator grants sets to the service account `placement` of a
    /// namespace, and its placements select from them.
    calm async fn a_grant_to_the_service_account_binds(fleet: &Fleet) {
        for set in ["blue", "red", "green"] {
            fleet.set(set).await;
        }
        fleet.add_many("blue", 2).await;
        fleet.add_many("red", 1).await;
        fleet.account("placement").await;
        fleet.place("p", "{}").await;
        fleet.holds("p", 0, 1).await;

        let sets = [fleet.name("blue"), fleet.name("later")];
        let grant = fleet.grant("some", may_bind(&sets)).await;
        fleet.selects("p", &["blue1", "blue2"]).await;
        let binding = fleet.until(&fleet.binding_path("blue"), "is bound", is_bound("True", "ClusterSetBound")).await;
        assert_eq!(binding["metadata"]["labels"][BOUND_BY], "rbac");
        assert_eq!(binding["spec"]["clusterSet"], fleet.name("blue"));

        // A set that comes later is bound when it comes, and one that was bound by hand is not ours.
        fleet.set("later").await;
        fleet.add_many("later", 1).await;
        fleet.bind("green").await;
        fleet.selects("p", &["blue1", "blue2", "later1"]).await;

        // What was taken away by hand is still granted.
        fleet.caller.delete(&fleet.binding_path("blue")).await.ok();
        fleet.until(&fleet.binding_path("blue"), "is made anew", is_bound("True", "ClusterSetBound")).await;

        // The grant goes, and what followed from it, and nothing else.
        fleet.caller.delete(&grant).await.ok();
        fleet.selects("p", &[]).await;
        fleet.caller.until_gone(&fleet.binding_path("blue")).await;
        fleet.caller.until_gone(&fleet.binding_path("later")).await;
        fleet.until(&fleet.binding_path("green"), "stays", is_bound("True", "ClusterSetBound")).await;
    }

    /// A role that names no set grants all of them, those to come as well; a role that grants other things, nothing.
    calm async fn a_grant_of_all_sets_binds_them_all(fleet: &Fleet) {
        fleet.set("blue").await;
        fleet.bind("blue").await;
        fleet.set("red").await;
        let other = json!({"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclustersets"], "verbs": ["*"]});
        fleet.grant("other", other).await;
        let grant = fleet.grant("all", may_bind(&[])).await;
        fleet.until(&fleet.binding_path("red"), "is bound", is_bound("True", "ClusterSetBound")).await;
        let path = fleet.path("v1beta2", "managedclustersetbindings/global");
        fleet.until(&path, "is bound", is_bound("True", "ClusterSetBound")).await;
        fleet.set("green").await;
        fleet.until(&fleet.binding_path("green"), "is bound", is_bound("True", "ClusterSetBound")).await;
        let by_hand = fleet.caller.get(&fleet.binding_path("blue")).await.ok();
        assert!(by_hand["metadata"]["labels"][BOUND_BY].is_null(), "{by_hand}");

        fleet.caller.delete(&grant).await.ok();
        fleet.until(&fleet.path("v1beta2", "managedclustersetbindings"), "has what was made by hand", |list| {
            list["items"].as_array().is_some_and(|items| {
                items.iter().map(|item| &item["metadata"]["name"]).eq([&json!(fleet.name("blue"))])
            })
        }).await;
        assert!(fleet.caller.get(&format!("{GROUP}/v1beta2/managedclustersets/global")).await.code == 200);
    }

    /// Grants to another account, or by a binding within the namespace, bind nothing.
    calm async fn only_grants_of_the_cluster_to_that_account_bind(fleet: &Fleet) {
        fleet.set("blue").await;
        let name = fleet.name("strangers");
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": [may_bind(&[fleet.name("blue")])],
        });
        fleet.caller.post(&format!("{RBAC}/clusterroles"), &role).await.ok();
        let to = |subjects: Value, kind: &str, binding: &str| json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": fleet.name(binding)},
            "subjects": subjects, "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"},
        });
        let placement = json!([{"kind": "ServiceAccount", "name": "placement", "namespace": fleet.namespace}]);
        let within = format!("{RBAC}/namespaces/{}/rolebindings", fleet.namespace);
        fleet.caller.post(&within, &to(placement, "RoleBinding", "within")).await.ok();
        let others = json!([
            {"kind": "ServiceAccount", "name": "other", "namespace": fleet.namespace},
            {"kind": "User", "name": "placement", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "Group", "name": format!("system:serviceaccounts:{}", fleet.namespace), "apiGroup": "rbac.authorization.k8s.io"},
        ]);
        let all = format!("{RBAC}/clusterrolebindings");
        fleet.caller.post(&all, &to(others, "ClusterRoleBinding", "others")).await.ok();
        // Heard after those: a grant that counts.
        fleet.set("red").await;
        fleet.grant("counts", may_bind(&[fleet.name("red")])).await;
        fleet.until(&fleet.binding_path("red"), "is bound", is_bound("True", "ClusterSetBound")).await;
        assert_eq!(fleet.caller.get(&fleet.binding_path("blue")).await.code, 404);
    }
}
