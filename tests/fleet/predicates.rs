//! Predicates: labels, claims and expressions.

use crate::{cluster::Cluster, ground::grounds, handle::Fleet};

/// A spec with one predicate.
fn only(selector: &str) -> String {
    format!("predicates: [{{requiredClusterSelector: {{{selector}}}}}]")
}

async fn two_clouds(fleet: &Fleet) {
    fleet.bound_set("blue").await;
    for (name, cloud) in [
        ("azure1", "Azure"),
        ("azure2", "Azure"),
        ("amazon1", "Amazon"),
        ("amazon2", "Amazon"),
        ("amazon3", "Amazon"),
    ] {
        fleet.add(Cluster::named(name).of("blue").label("cloud", cloud).claim("cloud", cloud)).await;
    }
    fleet.place("p", "numberOfClusters: 10").await;
    fleet.holds("p", 5, 1).await;
}

grounds! {
    /// Upstream: integration/placement/predicate_test.go "Should schedule placement successfully once spec.Predicates
    /// LabelSelector changes".
    calm async fn labels_select(fleet: &Fleet) {
        two_clouds(fleet).await;
        fleet.edit("p", &only("labelSelector: {matchLabels: {cloud: Amazon}}")).await;
        fleet.selects("p", &["amazon1", "amazon2", "amazon3"]).await;
        fleet.groups("p", &[("", 3)]).await;
        fleet.edit("p", &only("labelSelector: {matchLabels: {cloud: Azure}}")).await;
        fleet.selects("p", &["azure1", "azure2"]).await;
    }

    /// Upstream: integration/placement/predicate_test.go "Should schedule placement successfully once spec.Predicates
    /// ClaimSelector changes".
    calm async fn claims_select(fleet: &Fleet) {
        two_clouds(fleet).await;
        let claims = |cloud| only(&format!("claimSelector: {{matchExpressions: [{{key: cloud, operator: In, values: [{cloud}]}}]}}"));
        fleet.edit("p", &claims("Amazon")).await;
        fleet.selects("p", &["amazon1", "amazon2", "amazon3"]).await;
        fleet.edit("p", &claims("Azure")).await;
        fleet.selects("p", &["azure1", "azure2"]).await;
        // A claim is reported by the cluster itself, in its status.
        fleet.report("azure1", &serde_json::json!({"clusterClaims": [{"name": "cloud", "value": "Amazon"}]})).await;
        fleet.selects("p", &["azure2"]).await;
    }

    /// Upstream: integration/placement/predicate_test.go "Should schedule placement successfully once spec.Predicates
    /// CelSelector changes".
    calm async fn expressions_select(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.score("blue1", 70, None).await;
        fleet.score("blue2", 90, None).await;
        let cel = |expression: &str| only(&format!("celSelector: {{celExpressions: [\"{expression}\"]}}"));
        fleet.place("p", &format!("numberOfClusters: 1\n{}", cel("xxxx.expression"))).await;
        fleet.holds("p", 0, 1).await;
        let said = fleet.says("p", "PlacementMisconfigured", "True", "Misconfigured").await;
        assert!(said["message"].as_str().unwrap().starts_with("Predicate:"), "{said}");
        fleet.edit("p", &cel("managedCluster.scores('demo').filter(s, s.name == 'demo').all(e, e.value > 80)")).await;
        fleet.selects("p", &["blue2"]).await;
        fleet.says("p", "PlacementMisconfigured", "False", "Succeedconfigured").await;
    }

    /// A score that only an expression looks at moves its placement when it changes, comes or goes.
    /// Upstream: defects "7".
    /// Upstream: triggers "AddOnPlacementScore of an expression".
    calm async fn a_score_in_an_expression_moves_its_placement(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.score("blue1", 70, None).await;
        fleet.score("blue2", 90, None).await;
        let expression = "managedCluster.scores('demo').exists(s, s.name == 'demo' && s.value > 80)";
        fleet.place("p", &only(&format!("celSelector: {{celExpressions: [\"{expression}\"]}}"))).await;
        fleet.selects("p", &["blue2"]).await;
        fleet.score("blue1", 85, None).await;
        fleet.selects("p", &["blue1", "blue2"]).await;
        fleet.score("blue3", 100, None).await;
        fleet.selects("p", &["blue1", "blue2", "blue3"]).await;
        fleet.score("blue2", 10, None).await;
        fleet.selects("p", &["blue1", "blue3"]).await;
        let home = fleet.name("blue3");
        let path = format!("{}/v1alpha1/namespaces/{home}/addonplacementscores/demo", crate::handle::GROUP);
        fleet.caller.delete(&path).await.ok();
        fleet.selects("p", &["blue1"]).await;
    }
}
