//! What a change would move is told to whoever makes it, before it is made: all of this is asked by dry runs.

use berth_tests::{
    caller::Answer,
    waiting::{PATIENCE, until},
};
use http::Method;
use serde_json::{Value, json};

use crate::ground::{GROUP, Place, cluster, cluster_path, grounds};

/// A set of two clusters, bound, and a Placement that has both.
async fn populate(place: &Place<'_>) -> (String, [String; 2]) {
    let set = place.name("set");
    let names = [place.name("c1"), place.name("c2")];
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": set}, "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}},
    });
    place.admin.post(&format!("{GROUP}/v1beta2/managedclustersets"), &object).await.ok();
    let binding = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": set}, "spec": {"clusterSet": set},
    });
    place.admin.post(&place.path("v1beta2", "managedclustersetbindings"), &binding).await.ok();
    for name in &names {
        let mut object = cluster(name, &json!({}));
        object["metadata"]["labels"] = json!({"cluster.open-cluster-management.io/clusterset": set});
        place.admin.post(&cluster_path(""), &object).await.ok();
    }
    let placement = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "web"}, "spec": {},
    });
    place.admin.post(&place.path("v1beta1", "placements"), &placement).await.ok();
    let decision = place.path("v1beta1", "placementdecisions/web-decision-1");
    if !place.ground.decides() {
        let label = json!({"cluster.open-cluster-management.io/placement": "web"});
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
            "metadata": {"name": "web-decision-1", "labels": label},
        });
        place.admin.post(&place.path("v1beta1", "placementdecisions"), &object).await.ok();
        let decisions: Vec<Value> =
            names.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        let status = json!({"status": {"decisions": decisions}});
        place.admin.merge(&format!("{decision}/status"), &status).await.ok();
    }
    let full = |object: &Value| object["status"]["decisions"].as_array().is_some_and(|list| list.len() == 2);
    place.admin.until(&decision, "has both clusters", full).await;
    (set, names)
}

/// Waits until a dry run is warned in these words; what looks for it may not have seen everything yet.
async fn until_warned(words: &str, mut attempt: impl AsyncFnMut() -> Answer) {
    until(&format!("a warning that says {words:?}"), PATIENCE, async || {
        let answer = attempt().await;
        let warnings = answer.warnings.clone();
        answer.ok();
        if warnings.iter().any(|warning| warning.contains(words)) {
            Ok(())
        } else {
            Err(format!("{warnings:?}"))
        }
    })
    .await;
}

grounds! {
    async fn who_makes_clusters_leave_is_told_so_before(place: &Place<'_>) {
        let (set, [first, _]) = populate(place).await;
        let admin = &place.admin;
        let web = format!("{}/web", place.namespace);
        let dry = |target: String| format!("{target}?dryRun=All");
        let one = format!("this change removes cluster {first} from placement {web}");
        let both = format!("this change removes 2 clusters from placement {web}");

        let taint = json!({"spec": {"taints": [{"key": "gone", "effect": "NoSelect"}]}});
        until_warned(&one, async || admin.merge(&dry(cluster_path(&first)), &taint).await).await;
        let moved = json!({"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": "elsewhere"}}});
        until_warned(&one, async || admin.merge(&dry(cluster_path(&first)), &moved).await).await;
        let delete = async |target: String| admin.send(Method::DELETE, &dry(target), &[], None).await;
        until_warned(&one, async || delete(cluster_path(&first)).await).await;
        until_warned(&both, async || delete(format!("{GROUP}/v1beta2/managedclustersets/{set}")).await).await;
        until_warned(&both, async || delete(place.path("v1beta2", &format!("managedclustersetbindings/{set}"))).await).await;
        until_warned(&both, async || delete(place.path("v1beta1", "placements/web")).await).await;
        let fewer = json!({"spec": {"numberOfClusters": 0}});
        until_warned(&both, async || admin.merge(&dry(place.path("v1beta1", "placements/web")), &fewer).await).await;

        // Nothing leaves, so nothing is said.
        let harmless = json!({"metadata": {"labels": {"a": "b"}}});
        let answer = admin.merge(&dry(cluster_path(&first)), &harmless).await;
        assert_eq!(answer.warnings, Vec::<String>::new());
    }
}
