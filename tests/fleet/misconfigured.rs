//! Fail static: what cannot be understood changes nothing, and says why.

use serde_json::{Value, json};

use crate::{ground::grounds, handle::Fleet, slices::Slices};

/// Edits that make nonsense of a placement, and what its condition says then; the first word upstream's consumers know.
fn nonsense() -> Vec<(&'static str, Value, &'static str)> {
    let selector = |selector: Value| json!({"predicates": [{"requiredClusterSelector": selector}]});
    let expression = |text: &str| selector(json!({"celSelector": {"celExpressions": [text]}}));
    let requirement = json!([{"key": "cloud", "operator": "Resembles", "values": ["a"]}]);
    let policy = |policy: Value| json!({"prioritizerPolicy": policy});
    let coordinate = |coordinate: Value| {
        policy(json!({"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate}]}))
    };
    vec![
        ("an expression that cannot be read", expression("managedCluster.metadata.labels["), "Predicate:"),
        ("an expression about nothing", expression("nothing.of.that"), "Predicate:"),
        ("an expression that is no condition", expression("1 + 1"), "Predicate:"),
        (
            "a label with no such operator",
            selector(json!({"labelSelector": {"matchExpressions": requirement}})),
            "Predicate:",
        ),
        (
            "a label that is none",
            selector(json!({"labelSelector": {"matchLabels": {"no label!": "a"}}})),
            "Predicate:",
        ),
        (
            "a claim with no such operator",
            selector(json!({"claimSelector": {"matchExpressions": requirement}})),
            "Predicate:",
        ),
        (
            "a value where only the key counts",
            json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
            "TaintToleration:",
        ),
        (
            "no key where the value counts",
            json!({"tolerations": [{"operator": "Equal", "value": "b"}]}),
            "TaintToleration:",
        ),
        ("an unknown mode", policy(json!({"mode": "Sometimes"})), ":incorrect prioritizer policy mode"),
        (
            "an unknown prioritizer",
            coordinate(json!({"type": "BuiltIn", "builtIn": "Luck"})),
            ":incorrect builtin prioritizer",
        ),
        ("a score of nobody", coordinate(json!({"type": "AddOn"})), ":addOn should not be empty"),
        (
            "a group size that is no share",
            json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "50"}}}),
            ":",
        ),
        ("fewer than no clusters", json!({"numberOfClusters": -1}), ":"),
    ]
}

/// Whether each is left as it was.
async fn is_untouched(fleet: &Fleet, before: &Slices) {
    let after = fleet.slices("p").await;
    assert_eq!(after.versions(), before.versions(), "somebody wrote");
}

grounds! {
    /// A live placement edited into each kind of misconfiguration keeps its decisions, and its condition says why.
    calm async fn a_live_placement_keeps_its_decisions(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.place("p", "numberOfClusters: 2").await;
        let before = fleet.holds("p", 2, 1).await;
        let sound = fleet.placement("p").await["spec"].clone();
        let mut understood = 0;
        for (what, spec, message) in nonsense() {
            let answer = fleet.caller.merge(&fleet.placement_path("p"), &json!({"spec": spec})).await;
            if matches!(answer.code, 400 | 422) {
                // Refused at the door, by the definitions or by admission: better still.
                is_untouched(fleet, &before).await;
                continue;
            }
            answer.ok();
            understood += 1;
            let said = fleet.says("p", "PlacementMisconfigured", "True", "Misconfigured").await;
            assert!(said["message"].as_str().unwrap().starts_with(message), "{what}: {said}");
            let satisfied = fleet.says("p", "PlacementSatisfied", "False", "NotAllDecisionsScheduled").await;
            assert!(satisfied["message"].as_str().unwrap().contains("kept"), "{what}: {satisfied}");
            is_untouched(fleet, &before).await;
            // Clusters that come and go do not matter while nobody knows what is wanted.
            fleet.groups("p", &[("", 2)]).await;

            let mut repaired = fleet.placement("p").await;
            repaired["spec"] = sound.clone();
            fleet.caller.put(&fleet.placement_path("p"), &repaired).await.ok();
            fleet.says("p", "PlacementMisconfigured", "False", "Succeedconfigured").await;
            fleet.is_satisfied("p").await;
            is_untouched(fleet, &before).await;
        }
        assert!(understood >= 9, "nearly all was refused before a controller saw it");
    }

    /// While a placement cannot be understood, clusters it has no right to any more still leave.
    calm async fn a_cluster_that_is_no_longer_granted_leaves_all_the_same(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.place("p", "{}").await;
        fleet.holds("p", 3, 1).await;
        fleet.edit("p", "tolerations: [{key: a, operator: Exists, value: b}]").await;
        fleet.says("p", "PlacementMisconfigured", "True", "Misconfigured").await;
        fleet.holds("p", 3, 1).await;
        fleet.remove("blue2").await;
        fleet.selects("p", &["blue1", "blue3"]).await;
        fleet.says("p", "PlacementMisconfigured", "True", "Misconfigured").await;
    }

    /// A set whose selector cannot be understood freezes the placements that use it, and nobody else's.
    calm async fn a_set_that_cannot_be_understood_freezes_its_placements_only(fleet: &Fleet) {
        fleet.set_by_label("blue", "color", &fleet.namespace).await;
        fleet.bind("blue").await;
        fleet.bound_set("red").await;
        for name in ["c1", "c2"] {
            fleet.add(crate::cluster::Cluster::named(name).label("color", &fleet.namespace)).await;
        }
        fleet.add_many("red", 1).await;
        fleet.place("p", &format!("clusterSets: [{}]", fleet.name("blue"))).await;
        fleet.place("other", &format!("clusterSets: [{}]", fleet.name("red"))).await;
        let before = fleet.selects("p", &["c1", "c2"]).await;
        fleet.selects("other", &["red1"]).await;
        let broken = json!({"spec": {"clusterSelector": {"labelSelector": {
            "matchLabels": null, "matchExpressions": [{"key": "color", "operator": "Resembles", "values": ["a"]}],
        }}}});
        let answer = fleet.caller.merge(&fleet.set_path("blue"), &broken).await;
        if answer.code == 422 {
            return;
        }
        answer.ok();
        let said = fleet.says("p", "PlacementSatisfied", "False", "NotAllDecisionsScheduled").await;
        assert!(said["message"].as_str().unwrap().contains(&fleet.name("blue")), "{said}");
        is_untouched(fleet, &before).await;
        fleet.add(crate::cluster::Cluster::named("red2").of("red")).await;
        fleet.selects("other", &["red1", "red2"]).await;
        is_untouched(fleet, &before).await;
        let mended = json!({"spec": {"clusterSelector": {"labelSelector": {
            "matchExpressions": null, "matchLabels": {"color": fleet.namespace},
        }}}});
        fleet.caller.merge(&fleet.set_path("blue"), &mended).await.ok();
        fleet.is_satisfied("p").await;
        is_untouched(fleet, &before).await;
    }
}
