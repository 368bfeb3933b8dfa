//! What a placement selects, and what it says of itself, as sets, bindings and clusters come and go.

use serde_json::json;

use crate::{cluster::Cluster, ground::grounds, handle::Fleet, slices::LABEL};

/// A spec that looks only at the scenario's own clusters, for sets that have all clusters of the hub.
fn among_ours(fleet: &Fleet, rest: &str) -> String {
    format!(
        "predicates: [{{requiredClusterSelector: {{labelSelector: {{matchLabels: {{fleet: {}}}}}}}}}]\n{rest}",
        fleet.namespace
    )
}

grounds! {
    /// Upstream: integration/placement/placement_test.go "Should re-create placementdecisions successfully once
    /// placementdecisions are deleted".
    calm async fn decisions_that_are_deleted_come_back(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        fleet.place("p", "numberOfClusters: 10").await;
        let before = fleet.holds("p", 5, 1).await;
        fleet.caller.delete(&fleet.decision_path("p", 1)).await.ok();
        let uid = before.0[0]["metadata"]["uid"].clone();
        fleet.until(&fleet.decision_path("p", 1), "is made anew", |slice| {
            slice["metadata"]["uid"].is_string() && slice["metadata"]["uid"] != uid
        }).await;
        let after = fleet.holds("p", 5, 1).await;
        assert_eq!(before.clusters(), after.clusters());
        fleet.groups("p", &[("", 5)]).await;
    }

    /// Upstream: integration/placement/placement_test.go "Should re-create placementdecisions successfully once
    /// selected clusters are terminating".
    calm async fn a_cluster_on_its_way_out_is_not_selected(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        fleet.place("p", "numberOfClusters: 10").await;
        fleet.holds("p", 5, 1).await;
        fleet.change("blue1", &json!({"metadata": {"finalizers": ["berth.dev/hold"]}})).await;
        fleet.remove("blue1").await;
        fleet.selects("p", &["blue2", "blue3", "blue4", "blue5"]).await;
        fleet.groups("p", &[("", 4)]).await;
        fleet.change("blue1", &json!({"metadata": {"finalizers": null}})).await;
        fleet.caller.until_gone(&fleet.cluster_path("blue1")).await;
        fleet.holds("p", 4, 1).await;
    }

    /// Upstream: integration/placement/placement_test.go "Should create empty placementdecision when no cluster
    /// selected".
    calm async fn a_placement_without_clusters_has_one_empty_slice(fleet: &Fleet) {
        fleet.place("p", "{}").await;
        let slices = fleet.holds("p", 0, 1).await;
        assert_eq!(slices.0[0]["metadata"]["labels"][format!("{LABEL}/decision-group-index")], "0");
        fleet.groups("p", &[("", 0)]).await;
        let said = fleet.says("p", "PlacementSatisfied", "False", "NoManagedClusterSetBindings").await;
        assert_eq!(said["message"], "No valid ManagedClusterSetBindings found in placement namespace");
        let said = fleet.says("p", "PlacementMisconfigured", "False", "Succeedconfigured").await;
        assert_eq!(said["message"], "Placement configurations check pass");
    }

    /// Upstream: integration/placement/placement_test.go "Should create multiple placementdecisions once scheduled".
    calm async fn more_than_a_hundred_clusters_take_several_slices(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 101).await;
        fleet.place("p", "{}").await;
        let slices = fleet.holds("p", 101, 2).await;
        let sizes: Vec<_> = slices.0.iter().map(|slice| slice["status"]["decisions"].as_array().unwrap().len()).collect();
        assert_eq!(sizes, [100, 1]);
        fleet.groups("p", &[("", 101)]).await;
        fleet.is_satisfied("p").await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule placement successfully once spec.ClusterSets
    /// changes".
    /// Upstream: triggers "Placement".
    calm async fn naming_a_set_narrows_the_choice(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.bound_set("red").await;
        fleet.add_many("blue", 2).await;
        fleet.add_many("red", 3).await;
        fleet.place("p", "numberOfClusters: 10").await;
        fleet.holds("p", 5, 1).await;
        fleet.edit("p", &format!("clusterSets: [{}]", fleet.name("blue"))).await;
        fleet.selects("p", &["blue1", "blue2"]).await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once spec.NumberOfClusters is
    /// reduced".
    calm async fn fewer_are_selected_when_fewer_are_asked_for(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        fleet.place("p", "numberOfClusters: 10").await;
        fleet.holds("p", 5, 1).await;
        fleet.misses("p", 5).await;
        fleet.edit("p", "numberOfClusters: 4").await;
        fleet.holds("p", 4, 1).await;
        fleet.is_satisfied("p").await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once spec.NumberOfClusters is
    /// increased".
    calm async fn more_are_selected_when_more_are_asked_for(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 10).await;
        fleet.place("p", "numberOfClusters: 5").await;
        let before = fleet.holds("p", 5, 1).await;
        fleet.edit("p", "numberOfClusters: 8").await;
        let after = fleet.holds("p", 8, 1).await;
        assert!(after.set().is_superset(&before.set()), "those that were selected stay");
        fleet.is_satisfied("p").await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once MisConfigured is fixed".
    calm async fn a_misconfigured_placement_works_once_it_is_fixed(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 1).await;
        fleet.place("p", "{numberOfClusters: 1, tolerations: [{key: key1, operator: Exists, value: value1}]}").await;
        fleet.holds("p", 0, 1).await;
        let said = fleet.says("p", "PlacementMisconfigured", "True", "Misconfigured").await;
        assert_eq!(said["message"], "TaintToleration:If the operator is Exists, the value should be empty.");
        fleet.edit("p", "tolerations: []").await;
        fleet.holds("p", 1, 1).await;
        fleet.says("p", "PlacementMisconfigured", "False", "Succeedconfigured").await;
        fleet.is_satisfied("p").await;
    }

    /// Upstream: integration/placement/placement_test.go "Should be satisfied once new clusters are added".
    calm async fn clusters_that_join_satisfy_a_placement(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        fleet.place("p", "numberOfClusters: 10").await;
        fleet.holds("p", 5, 1).await;
        fleet.misses("p", 5).await;
        for name in ["more1", "more2", "more3", "more4", "more5"] {
            fleet.add(Cluster::named(name).of("blue")).await;
        }
        fleet.holds("p", 10, 1).await;
        fleet.is_satisfied("p").await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once clusters belong to
    /// labelselector clusterset are added/deleted".
    /// Upstream: triggers "ManagedCluster".
    calm async fn clusters_come_and_go_in_a_set_by_label(fleet: &Fleet) {
        fleet.set_by_label("blue", "vendor", &fleet.namespace).await;
        fleet.bind("blue").await;
        let cluster = |name| Cluster::named(name).label("vendor", &fleet.namespace);
        fleet.add(cluster("c1")).await;
        fleet.place("p", "numberOfClusters: 2").await;
        fleet.selects("p", &["c1"]).await;
        fleet.add(cluster("c2")).await;
        fleet.selects("p", &["c1", "c2"]).await;
        fleet.is_satisfied("p").await;
        fleet.remove("c1").await;
        fleet.selects("p", &["c2"]).await;
        fleet.change("c2", &json!({"metadata": {"labels": {"vendor": "another"}}})).await;
        fleet.selects("p", &[]).await;
        fleet.change("c2", &json!({"metadata": {"labels": {"vendor": fleet.namespace}}})).await;
        fleet.selects("p", &["c2"]).await;
        fleet.remove("c2").await;
        fleet.selects("p", &[]).await;
        let said = fleet.says("p", "PlacementSatisfied", "False", "AllManagedClusterSetsEmpty").await;
        assert_eq!(said["message"], format!("All ManagedClusterSets [{}] have no member ManagedCluster", fleet.name("blue")));
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once clusters belong to
    /// global(empty labelselector) clusterset are added/deleted)".
    calm async fn clusters_come_and_go_in_a_set_of_all_clusters(fleet: &Fleet) {
        fleet.set_of("all", &json!({"selectorType": "LabelSelector", "labelSelector": {}})).await;
        fleet.bind("all").await;
        fleet.add(Cluster::named("c1")).await;
        fleet.place("p", &among_ours(fleet, "numberOfClusters: 2")).await;
        fleet.selects("p", &["c1"]).await;
        fleet.add(Cluster::named("c2")).await;
        fleet.selects("p", &["c1", "c2"]).await;
        fleet.is_satisfied("p").await;
        fleet.remove("c1").await;
        fleet.selects("p", &["c2"]).await;
        fleet.remove("c2").await;
        fleet.selects("p", &[]).await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once new clusterset is bound".
    calm async fn a_set_that_is_bound_later_is_used(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        fleet.place("p", "numberOfClusters: 10").await;
        fleet.holds("p", 5, 1).await;
        fleet.bound_set("red").await;
        fleet.add_many("red", 3).await;
        fleet.holds("p", 8, 1).await;
        fleet.misses("p", 2).await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once new labelselector
    /// clusterset is bound".
    calm async fn a_set_by_label_that_is_bound_later_is_used(fleet: &Fleet) {
        let (one, other) = (fleet.name("openShift"), fleet.name("IKS"));
        fleet.set_by_label("blue", "vendor", &one).await;
        fleet.bind("blue").await;
        fleet.add(Cluster::named("c1").label("vendor", &one)).await;
        fleet.place("p", "numberOfClusters: 2").await;
        fleet.selects("p", &["c1"]).await;
        fleet.set_by_label("red", "vendor", &other).await;
        fleet.bind("red").await;
        fleet.add(Cluster::named("c2").label("vendor", &other)).await;
        fleet.selects("p", &["c1", "c2"]).await;
        fleet.is_satisfied("p").await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once a clusterset
    /// deleted/added".
    /// Upstream: triggers "ManagedClusterSet".
    calm async fn a_set_that_goes_takes_its_clusters_and_brings_them_back(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        fleet.place("p", "numberOfClusters: 10").await;
        fleet.holds("p", 5, 1).await;
        fleet.misses("p", 5).await;
        fleet.caller.delete(&fleet.set_path("blue")).await.ok();
        fleet.holds("p", 0, 1).await;
        fleet.says("p", "PlacementSatisfied", "False", "NoManagedClusterSetBindings").await;
        fleet.set("blue").await;
        fleet.holds("p", 5, 1).await;
        fleet.misses("p", 5).await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once a labelselector clusterset
    /// deleted/added".
    calm async fn a_set_by_label_that_goes_takes_its_clusters_and_brings_them_back(fleet: &Fleet) {
        let (one, other) = (fleet.name("openShift"), fleet.name("IKS"));
        fleet.set_by_label("blue", "vendor", &one).await;
        fleet.bind("blue").await;
        fleet.add(Cluster::named("c1").label("vendor", &one)).await;
        fleet.add(Cluster::named("c2").label("vendor", &other)).await;
        fleet.place("p", "numberOfClusters: 10").await;
        fleet.selects("p", &["c1"]).await;
        fleet.misses("p", 9).await;
        fleet.caller.delete(&fleet.set_path("blue")).await.ok();
        fleet.selects("p", &[]).await;
        fleet.set_by_label("blue", "vendor", &one).await;
        fleet.selects("p", &["c1"]).await;
        fleet.misses("p", 9).await;
        fleet.remove("c1").await;
        fleet.selects("p", &[]).await;
    }

    /// Upstream: integration/placement/placement_test.go "Should schedule successfully once a clustersetbinding
    /// deleted/added".
    /// Upstream: triggers "ManagedClusterSetBinding".
    calm async fn a_binding_that_goes_takes_its_clusters_and_brings_them_back(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        fleet.place("p", "numberOfClusters: 10").await;
        fleet.holds("p", 5, 1).await;
        fleet.misses("p", 5).await;
        fleet.caller.delete(&fleet.binding_path("blue")).await.ok();
        fleet.holds("p", 0, 1).await;
        fleet.bind("blue").await;
        fleet.holds("p", 5, 1).await;
        fleet.misses("p", 5).await;
    }

    /// A placement that names sets none of which is bound selects nothing and says which.
    calm async fn sets_that_are_not_bound_are_named(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 1).await;
        fleet.place("p", "clusterSets: [elsewhere, nowhere]").await;
        fleet.holds("p", 0, 1).await;
        let said = fleet.says("p", "PlacementSatisfied", "False", "NoIntersection").await;
        assert_eq!(said["message"], "None of ManagedClusterSets [elsewhere,nowhere] is bound to placement namespace");
    }

    /// Upstream: e2e/placement_test.go "Should schedule successfully".
    /// Upstream: e2e/placement_test.go "Should support v1beta1 placement".
    calm async fn a_placement_from_its_first_decision_to_its_end(fleet: &Fleet) {
        let tolerant = "tolerations: [{key: cluster.open-cluster-management.io/unreachable}]";
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        fleet.place("p", &format!("numberOfClusters: 10\n{tolerant}")).await;
        fleet.holds("p", 5, 1).await;
        fleet.misses("p", 5).await;
        let created = "Decision p-decision-1 is created with placement p in namespace";
        let event = fleet.event("p", "DecisionCreate", created).await;
        assert_eq!(event["reportingController"], "placement-controller");
        assert_eq!((&event["action"], &event["type"]), (&json!("DecisionCreated"), &json!("Normal")));
        assert_eq!(event["related"]["name"], "p-decision-1");

        fleet.edit("p", "numberOfClusters: 6").await;
        fleet.misses("p", 1).await;
        fleet.set_of("all", &json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"fleet": fleet.namespace}}})).await;
        fleet.bind("all").await;
        fleet.add(Cluster::named("c1")).await;
        fleet.holds("p", 6, 1).await;
        fleet.is_satisfied("p").await;
        fleet.event("p", "DecisionUpdate", "Decision p-decision-1 is updated with placement p in namespace").await;
        fleet.event("p", "ScoreUpdate", &fleet.name("blue1")).await;

        // Its slices go with it.
        fleet.caller.delete(&fleet.placement_path("p")).await.ok();
        fleet.caller.until_gone(&fleet.decision_path("p", 1)).await;
        fleet.sentinel().await.passes().await;
        assert!(fleet.slices("p").await.0.is_empty());
    }

    /// Upstream: e2e/placement_test.go "Should delete placementdecision successfully".
    calm async fn slices_that_are_too_many_go(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 102).await;
        fleet.place("p", "{}").await;
        fleet.holds("p", 102, 2).await;
        fleet.edit("p", "predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {no: such}}}}]").await;
        fleet.holds("p", 0, 1).await;
        let said = fleet.says("p", "PlacementSatisfied", "False", "NoManagedClusterMatched").await;
        assert_eq!(said["message"], "No ManagedCluster matches any of the cluster predicate");
        fleet.event("p", "DecisionDelete", "Decision p-decision-2 is deleted with placement p in namespace").await;
    }
}
