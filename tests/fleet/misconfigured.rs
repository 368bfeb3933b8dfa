//! Fail static: what cannot be understood changes nothing, and says why.

use std::collections::BTreeSet;

use berth_engine::select::{DETAILS_ANNOTATION, Mistake, compile};
use serde_json::{Value, json};

use crate::{cluster::Cluster, ground::grounds, handle::Fleet, slices::Slices};

/// An edit that makes nonsense of a placement.
struct Nonsense {
    what: &'static str,
    /// The kind of mistake that the engine will find.
    mistake: Mistake,
    /// The edit, as a merge patch.
    patch: Value,
    /// How the message of the condition begins; the first word is what upstream's consumers know.
    message: &'static str,
}

fn nonsense(what: &'static str, mistake: Mistake, spec: &Value, message: &'static str) -> Nonsense {
    Nonsense { what, mistake, patch: json!({"spec": spec}), message }
}

/// At least one of each kind.
fn all_nonsense() -> Vec<Nonsense> {
    let selector = |selector: Value| json!({"predicates": [{"requiredClusterSelector": selector}]});
    let expression = |text: &str| selector(json!({"celSelector": {"celExpressions": [text]}}));
    let resembles = json!({"matchExpressions": [{"key": "cloud", "operator": "Resembles", "values": ["a"]}]});
    let policy = |policy: Value| json!({"prioritizerPolicy": policy});
    let configured = |one: Value| policy(json!({"mode": "Exact", "configurations": [one]}));
    let coordinate = |coordinate: Value| configured(json!({"scoreCoordinate": coordinate}));
    let balance = json!({"type": "BuiltIn", "builtIn": "Balance"});
    let spread = |constraints: Value| json!({"spreadPolicy": {"spreadConstraints": constraints}});
    let by_zone = json!({"topologyKey": "zone", "topologyKeyType": "Label"});
    let with = |field: &str, value: Value| {
        let mut constraint = by_zone.clone();
        constraint[field] = value;
        spread(json!([constraint]))
    };
    let groups = |strategy: Value| json!({"decisionStrategy": {"groupStrategy": strategy}});
    let group = |selector: Value| {
        groups(json!({"decisionGroups": [{"groupName": "canary", "groupClusterSelector": selector}]}))
    };
    vec![
        nonsense(
            "an expression that cannot be read",
            Mistake::PredicateExpression,
            &expression("managedCluster.metadata.labels["),
            "Predicate:",
        ),
        nonsense(
            "an expression about nothing",
            Mistake::PredicateExpression,
            &expression("nothing.of.that"),
            "Predicate:",
        ),
        nonsense(
            "an expression that is no condition",
            Mistake::PredicateExpression,
            &expression("1 + 1"),
            "Predicate:",
        ),
        nonsense(
            "a label with no such operator",
            Mistake::PredicateLabels,
            &selector(json!({"labelSelector": resembles})),
            "Predicate:",
        ),
        nonsense(
            "a label that is none",
            Mistake::PredicateLabels,
            &selector(json!({"labelSelector": {"matchLabels": {"no label!": "a"}}})),
            "Predicate:",
        ),
        nonsense(
            "a claim with no such operator",
            Mistake::PredicateClaims,
            &selector(json!({"claimSelector": resembles})),
            "Predicate:",
        ),
        nonsense(
            "a value where only the key counts",
            Mistake::TolerationValue,
            &json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
            "TaintToleration:",
        ),
        nonsense(
            "no key where the value counts",
            Mistake::TolerationKey,
            &json!({"tolerations": [{"operator": "Equal", "value": "b"}]}),
            "TaintToleration:",
        ),
        nonsense(
            "an unknown mode",
            Mistake::PolicyMode,
            &policy(json!({"mode": "Sometimes"})),
            ":incorrect prioritizer policy mode",
        ),
        nonsense(
            "a weight beyond all measure",
            Mistake::Weight,
            &configured(json!({"scoreCoordinate": balance, "weight": 11})),
            ":weight 11",
        ),
        nonsense(
            "a prioritizer without a name",
            Mistake::ScoreCoordinate,
            &configured(json!({"weight": 1})),
            ":scoreCoordinate field is required",
        ),
        nonsense(
            "an unknown prioritizer",
            Mistake::BuiltIn,
            &coordinate(json!({"type": "BuiltIn", "builtIn": "Luck"})),
            ":incorrect builtin prioritizer",
        ),
        nonsense(
            "a score of nobody",
            Mistake::AddOn,
            &coordinate(json!({"type": "AddOn"})),
            ":addOn should not be empty",
        ),
        nonsense(
            "a prioritizer of no known type",
            Mistake::ScoreType,
            &coordinate(json!({"type": "Guess"})),
            ":incorrect score coordinate type",
        ),
        nonsense(
            "too many spread constraints",
            Mistake::SpreadConstraints,
            &spread(json!(vec![by_zone.clone(); 9])),
            ":at most 8",
        ),
        nonsense(
            "no difference allowed at all",
            Mistake::SpreadSkew,
            &with("maxSkew", json!(0)),
            ":maxSkew 0",
        ),
        nonsense(
            "an unknown way out of a spread",
            Mistake::SpreadAction,
            &with("whenUnsatisfiable", json!("Perhaps")),
            ":unknown action",
        ),
        nonsense(
            "an unknown kind of topology",
            Mistake::TopologyKeyType,
            &with("topologyKeyType", json!("Star")),
            ":unknown topology key type",
        ),
        nonsense(
            "a topology without a name",
            Mistake::TopologyKey,
            &with("topologyKey", json!("")),
            ":a topology key is required",
        ),
        nonsense(
            "a group size that is no share",
            Mistake::GroupSize,
            &groups(json!({"clustersPerDecisionGroup": "50"})),
            ":group size",
        ),
        nonsense(
            "a group by a label with no such operator",
            Mistake::GroupLabels,
            &group(json!({"labelSelector": resembles})),
            ":",
        ),
        nonsense(
            "a group by a claim with no such operator",
            Mistake::GroupClaims,
            &group(json!({"claimSelector": resembles})),
            ":",
        ),
        nonsense(
            "fewer than no clusters",
            Mistake::NumberOfClusters,
            &json!({"numberOfClusters": -1}),
            ":numberOfClusters -1",
        ),
        nonsense("an unknown order", Mistake::SortBy, &json!({"sortBy": "Whim"}), ":unknown order"),
        Nonsense {
            what: "an unknown detail",
            mistake: Mistake::Details,
            patch: json!({"metadata": {"annotations": {DETAILS_ANNOTATION: "colour"}}}),
            message: ":unknown detail",
        },
    ]
}

/// Kinds that nothing live can be edited into: a name stays what it is.
const OF_A_NEW_PLACEMENT: &[Mistake] = &[Mistake::Name];
/// Kinds that are found when clusters are asked, and not in the object: a scenario of its own shows them.
const OF_A_FLEET: &[Mistake] = &[Mistake::PredicateCost];

/// Clusters of whom [`dear_expression`] is too much to ask: each answers for 600,000 units, and all may for 20,000,000.
const DEAR_FROM: usize = 40;

/// True, and within the limit of one cluster.
fn dear_expression() -> String {
    format!("!'{}'.contains('{}')", "y".repeat(8_000), "x".repeat(7_500))
}

/// The table above is whole, and each of its rows is what it says.
#[test]
fn there_is_nonsense_of_every_kind() {
    for nonsense in all_nonsense() {
        let mut object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "p", "namespace": "n"}, "spec": {},
        });
        for part in ["metadata", "spec"] {
            for (field, value) in nonsense.patch[part].as_object().into_iter().flatten() {
                object[part][field] = value.clone();
            }
        }
        let complaints = compile(&serde_json::from_value(object).unwrap()).unwrap_err();
        let Nonsense { what, mistake, message, .. } = nonsense;
        assert_eq!(complaints[0].mistake, Some(mistake), "{what}: {complaints:?}");
        let said = complaints[0].condition_message();
        assert!(said.starts_with(message), "{what}: {said}");
    }
    let there: BTreeSet<Mistake> = all_nonsense().iter().map(|nonsense| nonsense.mistake).collect();
    let missing: Vec<_> = Mistake::ALL
        .iter()
        .filter(|kind| {
            !there.contains(*kind) && !OF_A_NEW_PLACEMENT.contains(*kind) && !OF_A_FLEET.contains(*kind)
        })
        .collect();
    assert!(missing.is_empty(), "no edit of a live placement makes {missing:?}");
}

/// Whether each is left as it was.
async fn is_untouched(fleet: &Fleet, before: &Slices) {
    let after = fleet.slices("p").await;
    assert_eq!(after.versions(), before.versions(), "somebody wrote");
}

grounds! {
    /// A live placement edited into each kind of misconfiguration keeps its decisions, and its condition says why.
    /// Upstream: defects "3", "4", "13".
    calm async fn a_live_placement_keeps_its_decisions(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.place("p", "numberOfClusters: 2").await;
        let before = fleet.holds("p", 2, 1).await;
        let sentinel = fleet.sentinel().await;
        let sound = fleet.placement("p").await["spec"].clone();
        let mut understood = 0;
        for Nonsense { what, patch, message, .. } in all_nonsense() {
            let answer = fleet.caller.merge(&fleet.placement_path("p"), &patch).await;
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
            // A cluster that comes and goes does not matter while nobody knows what is wanted.
            fleet.add(Cluster::named("visitor").of("blue")).await;
            sentinel.passes().await;
            is_untouched(fleet, &before).await;
            fleet.groups("p", &[("", 2)]).await;
            fleet.remove("visitor").await;

            let mut repaired = fleet.placement("p").await;
            repaired["spec"] = sound.clone();
            repaired["metadata"]["annotations"] = json!({});
            fleet.caller.put(&fleet.placement_path("p"), &repaired).await.ok();
            fleet.says("p", "PlacementMisconfigured", "False", "Succeedconfigured").await;
            fleet.is_satisfied("p").await;
            is_untouched(fleet, &before).await;
        }
        assert!(understood >= 9, "nearly all was refused before a controller saw it");
    }

    /// While a placement cannot be understood, clusters it has no right to any more still leave.
    calm async fn a_cluster_that_is_no_longer_granted_leaves_all_the_same(fleet: &Fleet) {
        for set in ["blue", "red"] {
            fleet.bound_set(set).await;
            fleet.add_many(set, 2).await;
        }
        fleet.place("p", "{}").await;
        fleet.selects("p", &["blue1", "blue2", "red1", "red2"]).await;
        fleet.edit("p", "tolerations: [{key: a, operator: Exists, value: b}]").await;
        fleet.says("p", "PlacementMisconfigured", "True", "Misconfigured").await;
        fleet.holds("p", 4, 1).await;
        // The grant of a set goes, then a cluster of the other, and then the other grant.
        fleet.caller.delete(&fleet.binding_path("red")).await.ok();
        fleet.selects("p", &["blue1", "blue2"]).await;
        fleet.remove("blue2").await;
        fleet.selects("p", &["blue1"]).await;
        fleet.caller.delete(&fleet.binding_path("blue")).await.ok();
        fleet.selects("p", &[]).await;
        fleet.says("p", "PlacementMisconfigured", "True", "Misconfigured").await;
    }

    /// An expression that costs too much over the whole fleet is misconfigured as well, though no single cluster finds it
    /// dear: the decision is kept until it is asked of fewer.
    calm async fn an_expression_that_costs_too_much_changes_nothing(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", DEAR_FROM).await;
        fleet.place("p", "numberOfClusters: 2").await;
        let before = fleet.holds("p", 2, 1).await;
        // Labels are looked at first: the clusters of others are not asked.
        let dear = json!({
            "labelSelector": {"matchLabels": {"fleet": fleet.namespace}},
            "celSelector": {"celExpressions": [dear_expression()]},
        });
        let patch = json!({"spec": {"predicates": [{"requiredClusterSelector": dear}]}});
        fleet.caller.merge(&fleet.placement_path("p"), &patch).await.ok();
        let said = fleet.says("p", "PlacementMisconfigured", "True", "Misconfigured").await;
        assert!(said["message"].as_str().unwrap().starts_with("Predicate:"), "{said}");
        let satisfied = fleet.says("p", "PlacementSatisfied", "False", "NotAllDecisionsScheduled").await;
        assert!(satisfied["message"].as_str().unwrap().contains("kept"), "{satisfied}");
        is_untouched(fleet, &before).await;
        fleet.edit("p", "predicates: null").await;
        fleet.is_satisfied("p").await;
        is_untouched(fleet, &before).await;
    }

    /// A set whose selector cannot be understood freezes the placements that use it, and nobody else's.
    /// Upstream: defects "6".
    calm async fn a_set_that_cannot_be_understood_freezes_its_placements_only(fleet: &Fleet) {
        fleet.set_by_label("blue", "color", &fleet.namespace).await;
        fleet.bind("blue").await;
        fleet.bound_set("red").await;
        for name in ["c1", "c2"] {
            fleet.add(Cluster::named(name).label("color", &fleet.namespace)).await;
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
        fleet.add(Cluster::named("red2").of("red")).await;
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
