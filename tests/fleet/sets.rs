//! ManagedClusterSets: whether they are empty, and the two that always exist.

use berth_tests::caller::condition;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    ground::{QUIET, Turn, grounds},
    handle::{Fleet, GROUP},
    slices::LABEL,
};

impl Fleet {
    /// Waits until a set says how many clusters it has.
    pub(crate) async fn set_counts(&self, set: &str, count: usize) {
        let (status, reason, message) = match count {
            0 => ("True", "NoClusterMatched", "No ManagedCluster selected".to_owned()),
            count => ("False", "ClustersSelected", format!("{count} ManagedClusters selected")),
        };
        self.until(&self.set_path(set), &format!("has {count} clusters"), |set| {
            let said = condition(set, "ClusterSetEmpty");
            said["status"] == status && said["reason"] == reason && said["message"] == message
        })
        .await;
    }
}

fn standard(name: &str) -> String {
    format!("{GROUP}/v1beta2/managedclustersets/{name}")
}

fn selector(set: &Value) -> &Value {
    &set["spec"]["clusterSelector"]
}

grounds! {
    /// Upstream: integration/registration/managedclusterset_test.go "should create empty cluster set and keep it synced
    /// successfully", "should create legacy cluster set and keep it synced successfully".
    calm async fn a_set_counts_the_clusters_that_were_put_into_it(fleet: &Fleet) {
        fleet.set("blue").await;
        fleet.set("red").await;
        fleet.set_counts("blue", 0).await;
        fleet.add_many("blue", 2).await;
        fleet.set_counts("blue", 2).await;
        fleet.set_counts("red", 0).await;
        let moved = json!({"metadata": {"labels": {format!("{LABEL}/clusterset"): fleet.name("red")}}});
        fleet.change("blue1", &moved).await;
        fleet.set_counts("blue", 1).await;
        fleet.set_counts("red", 1).await;
        fleet.remove("blue2").await;
        fleet.set_counts("blue", 0).await;
    }

    /// Upstream: integration/registration/managedclusterset_test.go "should create labelSelector cluster set and keep
    /// it synced successfully".
    calm async fn a_set_by_label_counts_the_clusters_that_carry_it(fleet: &Fleet) {
        fleet.set_by_label("blue", "color", &fleet.namespace).await;
        fleet.set_counts("blue", 0).await;
        for name in ["c1", "c2"] {
            fleet.add(Cluster::named(name).label("color", &fleet.namespace)).await;
        }
        fleet.set_counts("blue", 2).await;
        fleet.change("c1", &json!({"metadata": {"labels": {"color": null}}})).await;
        fleet.set_counts("blue", 1).await;
        let other = json!({"spec": {"clusterSelector": {"labelSelector": {"matchLabels": {"color": "none-such"}}}}});
        fleet.caller.merge(&fleet.set_path("blue"), &other).await.ok();
        fleet.set_counts("blue", 0).await;
        // A selector that is not there selects nobody, an empty one everybody.
        let nobody = json!({"spec": {"clusterSelector": {"labelSelector": null}}});
        fleet.caller.merge(&fleet.set_path("blue"), &nobody).await.ok();
        fleet.set_counts("blue", 0).await;
    }

    /// Upstream: integration/registration/managedclusterset_test.go "should create global cluster set and keep it
    /// synced successfully".
    turn async fn a_set_of_all_clusters_counts_all(turn: &mut Turn<'_>) {
        let Some(_controllers) = berth_bed::or_skip(turn.run("counting", QUIET).await) else { return };
        let fleet = &turn.fleet;
        // Those that other scenarios left here: nobody else is here now.
        let list = fleet.caller.get(&format!("{GROUP}/v1/managedclusters")).await.ok();
        let others = list["items"].as_array().unwrap().len();
        fleet.set_of("all", &json!({"selectorType": "LabelSelector", "labelSelector": {}})).await;
        fleet.set_counts("all", others).await;
        fleet.add(Cluster::named("c1")).await;
        fleet.add(Cluster::named("c2").label("any", "label")).await;
        fleet.set_counts("all", others + 2).await;
        fleet.remove("c1").await;
        fleet.set_counts("all", others + 1).await;
    }

    /// Upstream: integration/registration/default_managedclusterset_controller_test.go "should create
    /// DefaultManagedClusterSet successfully", "should recreate DefaultManagedClusterSet successfully after deleted".
    /// Upstream: integration/registration/global_managedclusterset_controller_test.go "should create
    /// GlobalManagedClusterSet successfully", "should reconcile GlobalManagedClusterSet successfully if it changed",
    /// "should not change users labels/annotations in GlobalManagedClusterSet", "should recreate
    /// GlobalManagedClusterSet successfully after deleted".
    calm async fn the_standard_sets_are_there_and_heal(fleet: &Fleet) {
        let exclusive = |set: &Value| selector(set)["selectorType"] == "ExclusiveClusterSetLabel";
        let everybody = |set: &Value| {
            selector(set)["selectorType"] == "LabelSelector" && selector(set)["labelSelector"] == json!({})
        };
        for name in ["default", "global"] {
            let is_right = |set: &Value| if name == "default" { exclusive(set) } else { everybody(set) };
            let path = standard(name);
            let first = fleet.until(&path, "is there", is_right).await;

            // The selector is rolled back; what users add stays.
            let edit = json!({
                "metadata": {"labels": {"mine": "yes"}, "annotations": {"mine": "too"}},
                "spec": {
                    "clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}},
                    "managedNamespaces": [{"name": "mine"}],
                },
            });
            fleet.caller.merge(&path, &edit).await.ok();
            let healed = fleet.until(&path, "is rolled back", is_right).await;
            assert_eq!(healed["metadata"]["labels"]["mine"], "yes");
            assert_eq!(healed["metadata"]["annotations"]["mine"], "too");
            assert_eq!(healed["spec"]["managedNamespaces"][0]["name"], "mine");

            // Deleted, it comes back.
            fleet.caller.delete(&path).await.ok();
            let uid = first["metadata"]["uid"].clone();
            fleet.until(&path, "is made anew", |set| {
                set["metadata"]["uid"].is_string() && set["metadata"]["uid"] != uid && is_right(set)
            }).await;

            // Who opts out is left alone.
            let opt_out = json!({
                "metadata": {"annotations": {format!("{LABEL}/autoupdate"): "false"}},
                "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}}},
            });
            fleet.caller.merge(&path, &opt_out).await.ok();
            // Sets are watched in order: when this one was counted, the other was seen.
            let marker = format!("after-{name}");
            fleet.set(&marker).await;
            fleet.set_counts(&marker, 0).await;
            let kept = fleet.caller.get(&path).await.ok();
            assert_eq!(selector(&kept)["labelSelector"], json!({"matchLabels": {"a": "b"}}));
            fleet.caller.merge(&path, &json!({"metadata": {"annotations": {format!("{LABEL}/autoupdate"): null}}})).await.ok();
            fleet.until(&path, "is rolled back", is_right).await;
        }
    }
}
