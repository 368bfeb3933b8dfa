//! Whatever is sent, there is a decision: no input makes the engine panic or fall silent.

use berth_api::{AddOnPlacementScore, ManagedCluster, Placement};
use berth_engine::explain::{cluster_sentences, sentences};
use berth_engine::select::Outcome;
use berth_engine::{Delta, Moment, PlacementKey};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::fixtures::{Request, at, bare, decision, fleet, placement, score, web};
use crate::properties::config;
use crate::world::World;

/// Text nobody should send, and some that anybody might.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("n".repeat(253)),
        Just("n".repeat(10_000)),
        Just("/".to_owned()),
        Just("a/b/c".to_owned()),
        Just("100%".to_owned()),
        Just("99999999999999999999%".to_owned()),
        Just("\u{0}\u{202e}ß🚢".to_owned()),
        select(vec![
            "a", "b", "env", "all", "Exists", "Equal", "NoSelect", "In", "Label", "Claim", "Steady", "Score"
        ])
        .prop_map(ToOwned::to_owned),
        "\\PC{0,12}",
    ]
}

fn any_i32() -> impl Strategy<Value = i32> {
    prop_oneof![select(vec![i32::MIN, -1, 0, 1, 2, i32::MAX]), any::<i32>()]
}

fn any_i64() -> impl Strategy<Value = i64> {
    prop_oneof![select(vec![i64::MIN, -1, 0, 1, i64::MAX]), any::<i64>()]
}

fn any_timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        select(vec![Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH]),
        (0..2_000_000_000_i64).prop_map(|seconds| Timestamp::from_second(seconds).unwrap())
    ]
}

fn any_moment() -> impl Strategy<Value = Moment> {
    prop_oneof![select(vec![Moment::PAST, Moment::NEVER]), any_timestamp().prop_map(Moment::from_timestamp),]
}

fn any_hostile_cluster() -> impl Strategy<Value = ManagedCluster> {
    let texts = || prop::collection::vec((any_text(), any_text()), 0..4);
    let taints =
        prop::collection::vec((any_text(), any_text(), any_text(), prop::option::of(any_timestamp())), 0..4);
    (any_text(), texts(), texts(), taints, any_text()).prop_map(|(name, labels, claims, taints, quantity)| {
        let taints: Vec<Value> = taints
            .into_iter()
            .map(|(key, value, effect, _)| json!({"key": key, "value": value, "effect": effect}))
            .collect();
        let claims: Vec<Value> =
            claims.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let object = json!({
            "metadata": {"name": name, "labels": labels.into_iter().collect::<std::collections::BTreeMap<_, _>>()},
            "spec": {"taints": taints},
            "status": {
                "clusterClaims": claims,
                "allocatable": {"cpu": quantity, "memory": "9E99999"},
                "capacity": {"cpu": quantity, "memory": "1"},
            },
        });
        serde_json::from_value(object).unwrap()
    })
}

fn any_hostile_placement() -> impl Strategy<Value = Placement> {
    let requirement = || {
        (any_text(), any_text(), prop::collection::vec(any_text(), 0..3))
            .prop_map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values}))
    };
    let selector = || prop::collection::vec(requirement(), 0..3);
    let predicate = (selector(), selector(), prop::collection::vec(any_text(), 0..2), any_text()).prop_map(
        |(labels, claims, expressions, name)| {
            json!({
                "clusterName": name,
                "requiredClusterSelector": {
                    "labelSelector": {"matchExpressions": labels},
                    "claimSelector": {"matchExpressions": claims},
                    "celSelector": {"celExpressions": expressions},
                },
            })
        },
    );
    let toleration = (any_text(), any_text(), any_text(), any_text(), prop::option::of(any_i64())).prop_map(
        |(key, operator, value, effect, seconds)| {
            json!({"key": key, "operator": operator, "value": value, "effect": effect, "tolerationSeconds": seconds})
        },
    );
    let configuration =
        (any_text(), any_text(), any_text(), any_i32()).prop_map(|(kind, name, score, weight)| {
            let add_on = json!({"resourceName": name, "scoreName": score});
            json!({"scoreCoordinate": {"type": kind, "builtIn": name, "addOn": add_on}, "weight": weight})
        });
    let constraint = (any_text(), any_text(), any_i32(), any_text()).prop_map(|(key, kind, skew, action)| {
        json!({"topologyKey": key, "topologyKeyType": kind, "maxSkew": skew, "whenUnsatisfiable": action})
    });
    let size = prop_oneof![any_i32().prop_map(|size| json!(size)), any_text().prop_map(|size| json!(size))];
    let group = (any_text(), selector()).prop_map(
        |(name, labels)| json!({"groupName": name, "groupClusterSelector": {"labelSelector": {"matchExpressions": labels}}}),
    );
    let list = |of: BoxedStrategy<Value>| prop::collection::vec(of, 0..3);
    let parts = (
        prop::option::of(any_i32()),
        list(predicate.boxed()),
        list(toleration.boxed()),
        (any_text(), list(configuration.boxed())),
        list(constraint.boxed()),
        (size, list(group.boxed())),
        (any_text(), any_text(), any_text()),
    );
    parts.prop_map(|(number, predicates, tolerations, (mode, configurations), spread, (size, groups), odds)| {
        let (order, limit, name) = odds;
        let object = json!({
            "metadata": {"namespace": "ns", "name": if name.len() > 300 { "web".to_owned() } else { name }},
            "spec": {
                "numberOfClusters": number,
                "predicates": predicates,
                "tolerations": tolerations,
                "prioritizerPolicy": {"mode": mode, "configurations": configurations},
                "spreadPolicy": {"spreadConstraints": spread},
                "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size, "decisionGroups": groups}},
                "sortBy": order,
                "scoreRateLimit": limit,
            },
        });
        serde_json::from_value(object).unwrap()
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_text_and_no_number_makes_the_engine_fall_silent(
        clusters in prop::collection::vec(any_hostile_cluster(), 0..5),
        times in prop::collection::vec(any_timestamp(), 5),
        placement in any_hostile_placement(),
        scores in prop::collection::vec((any_text(), any_text(), any_i32(), any_timestamp()), 0..3),
        named in prop::collection::vec(any_text(), 0..4),
        moments in prop::collection::vec(any_moment(), 1..3),
    ) {
        let mut world = fleet().world();
        for (mut cluster, time) in clusters.into_iter().zip(times) {
            for taint in cluster.spec.get_or_insert_default().taints.iter_mut().flatten() {
                taint.time_added = Some(Time(time));
            }
            world.apply(Delta::Cluster(Box::new(cluster)));
        }
        for (cluster, name, value, until) in scores {
            let mut object: AddOnPlacementScore = score(&cluster, &name, &[(&name, value)], None);
            object.status.get_or_insert_default().valid_until = Some(Time(until));
            world.apply(Delta::Score(Box::new(object)));
        }
        let key = crate::world::key(&placement.metadata);
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        world.apply(Delta::Decision(Box::new(decision(&key, 1, &named))));
        world.apply(Delta::Placement(Box::new(placement)));
        for now in moments {
            let published = world.settle(&key, now);
            prop_assert!(published.is_some());
            let conditions = published.unwrap().status.conditions.unwrap();
            prop_assert_eq!(conditions.len(), 2);
            prop_assert!(conditions.iter().all(|condition| condition.message.chars().count() <= 32_768));
            let account = world.explain(&key, now);
            sentences(&account);
            for one in &account.clusters {
                cluster_sentences(&account, one);
            }
        }
    }
}

/// Decides a single request on a small fleet, and again after it was written.
fn decide(request: &Request) -> (World, Outcome) {
    let mut world =
        fleet().clusters(["a", "b", "c"]).decided(&request.key(), &["b"]).placement(request).world();
    world.settle(&request.key(), at(0)).unwrap();
    let outcome = world.decide(&request.key(), at(0)).unwrap().outcome;
    (world, outcome)
}

#[test]
fn a_number_below_zero_is_a_mistake_and_keeps_what_is_selected() {
    for number in [-1, i32::MIN] {
        let request = web().number(number);
        let (mut world, outcome) = decide(&request);
        assert!(matches!(outcome, Outcome::Kept { .. }), "{outcome:?}");
        assert_eq!(world.selected(&request.key(), at(0)), ["b"]);
    }
}

#[test]
fn the_greatest_number_selects_everybody_and_says_how_many_are_missing() {
    let request = web().number(i32::MAX);
    let (mut world, _) = decide(&request);
    let decision = world.decide(&request.key(), at(0)).unwrap();
    assert_eq!(crate::world::World::names(&decision), ["a", "b", "c"]);
    assert_eq!(decision.unscheduled, i32::MAX as usize - 3);
}

#[test]
fn weights_out_of_range_are_a_mistake() {
    for weight in [11, -11, i32::MAX, i32::MIN] {
        let (_, outcome) = decide(&web().exact(&[("Steady", weight)]));
        assert!(matches!(outcome, Outcome::Kept { .. }), "{weight}: {outcome:?}");
    }
}

#[test]
fn scores_out_of_range_neither_wrap_nor_panic() {
    let request = web().number(1).exact(&[("AddOn/demo/cpu", 10), ("AddOn/other/cpu", 10)]);
    let world = fleet().clusters(["a", "b"]).score("a", "demo", "cpu", i32::MIN, None);
    let selected = world.score("b", "demo", "cpu", i32::MAX, None).selected(&request, 0);
    assert_eq!(selected, ["b"]);
}

#[test]
fn a_group_size_that_makes_no_sense_means_one_group() {
    for size in [
        IntOrString::Int(0),
        IntOrString::Int(i32::MIN),
        IntOrString::Int(i32::MAX),
        IntOrString::String("0%".into()),
    ] {
        let request = web().group_size(size.clone());
        let (mut world, outcome) = decide(&request);
        assert_eq!(outcome, Outcome::Decided);
        assert_eq!(world.decide(&request.key(), at(0)).unwrap().groups.len(), 1, "{size:?}");
    }
}

#[test]
fn ten_thousand_predicates_are_read_and_the_right_ones_match() {
    let request = (0..10_000).fold(web(), |request, number| request.labelled("number", &number.to_string()));
    let fleet = fleet().cluster("a").label("number", "9999").cluster("b").label("number", "10000");
    assert_eq!(fleet.selected(&request, 0), ["a"]);
}

#[test]
fn ten_thousand_tolerations_and_taints_end_in_a_decision() {
    let request = (0..10_000).fold(web(), |request, number| request.exists(&format!("key-{number}")));
    let mut fleet = fleet().cluster("tolerated");
    for number in 0..1_000 {
        fleet = fleet.taint(&format!("key-{number}:NoSelect"), 0);
    }
    let fleet = fleet.cluster("refused").taint("key-10000:NoSelect", 0);
    assert_eq!(fleet.selected(&request, 0), ["tolerated"]);
}

#[test]
fn two_taints_with_one_key_count_one_by_one() {
    let fleet = || fleet().cluster("a").taint("gpu=a:NoSelect", 0).taint("gpu=b:NoSelect", 0);
    assert_eq!(fleet().selected(&web().tolerate("gpu", "Equal", "a"), 0), Vec::<String>::new());
    assert_eq!(fleet().selected(&web().exists("gpu"), 0), ["a"]);
}

#[test]
fn the_same_taint_twice_with_two_times_holds_until_the_earlier_ends() {
    let request = web().exists("gpu").seconds(60);
    let mut world =
        fleet().cluster("a").taint("gpu:NoSelect", 0).taint("gpu:NoSelect", 30).placement(&request).world();
    let next = world.decide(&request.key(), at(40)).unwrap().next.unwrap();
    assert_eq!(next.at, at(60));
    assert!(world.selected(&request.key(), at(60)).is_empty());
}

#[test]
fn the_longest_toleration_lasts_for_ever_whenever_the_taint_was_added() {
    let request = web().exists("gpu").seconds(i64::MAX);
    for added in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        let mut world = fleet().cluster("a").taint("gpu:NoSelect", 0).placement(&request).world();
        let mut cluster = world.clusters["a"].clone();
        cluster.spec.as_mut().unwrap().taints.as_mut().unwrap()[0].time_added = Some(Time(added));
        world.apply(Delta::Cluster(Box::new(cluster)));
        assert_eq!(world.selected(&request.key(), at(0)), ["a"], "{added}");
        assert_eq!(world.decide(&request.key(), at(0)).unwrap().next, None, "{added}");
    }
}

#[test]
fn decisions_may_name_clusters_that_never_existed() {
    let request = web().number(2);
    let fleet = fleet().clusters(["a", "b"]).decided(&request.key(), &["ghost", "ghost", "b"]);
    assert_eq!(fleet.clone().selected(&request, 0), ["a", "b"]);
    // Who cannot be decided keeps only what its sets still have.
    let mut world = fleet.placement(&request.clone().number(-1)).world();
    assert_eq!(world.selected(&request.key(), at(0)), ["b"]);
}

#[test]
fn a_name_too_long_for_a_label_is_a_mistake_that_is_told() {
    let name = "n".repeat(253);
    let request = placement("ns", &name);
    let (world, outcome) = decide(&request);
    assert!(matches!(outcome, Outcome::Kept { .. }), "{outcome:?}");
    assert_eq!(world.placements.len(), 1);
}

#[test]
fn empty_names_are_names() {
    let mut world =
        bare().set_of("", json!({})).bind("", "").cluster("").placement(&placement("", "")).world();
    let key = PlacementKey::new("", "");
    world.settle(&key, at(0)).unwrap();
    assert_eq!(world.selected(&key, at(0)), [""]);
}

#[test]
fn claims_given_twice_count_once_the_last_one() {
    let fleet = fleet().cluster("a").claim("rack", "1").claim("rack", "2").claim("rack", "2");
    let request = |value: &str| {
        web().predicate(json!({"claimSelector": {"matchExpressions": [{"key": "rack", "operator": "In", "values": [value]}]}}))
    };
    assert_eq!(fleet.clone().selected(&request("2"), 0), ["a"]);
    assert_eq!(fleet.selected(&request("1"), 0), Vec::<String>::new());
}
