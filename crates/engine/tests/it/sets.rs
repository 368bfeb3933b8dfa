//! Sets, bindings and who is touched when they change: upstream's cases by name.

use std::collections::BTreeSet;

use berth_api::names::label;
use berth_engine::model::ObjectKey;
use berth_engine::select::Outcome;
use berth_engine::{Delta, PlacementKey};
use serde_json::{Value, json};

use crate::fixtures::{Fleet, Request, at, bare, placement, web};
use crate::world::World;

/// Two exclusive sets with two clusters each, and one cluster outside; nothing is bound.
fn two_sets() -> Fleet {
    bare()
        .set("blue")
        .set("green")
        .cluster("b1")
        .in_set("blue")
        .cluster("b2")
        .in_set("blue")
        .cluster("g1")
        .in_set("green")
        .cluster("g2")
        .in_set("green")
        .cluster("free")
}

fn outcome(fleet: Fleet, request: &Request) -> Outcome {
    fleet.placement(request).world().decide(&request.key(), at(0)).unwrap().outcome
}

/// Upstream: scheduling_controller_test.go "TestGetValidManagedClusterSetBindings".
#[test]
fn a_binding_counts_if_its_set_exists() {
    assert_eq!(outcome(two_sets(), &web()), Outcome::NoBindings, "no bound clusterset");
    assert_eq!(outcome(two_sets().bind("missing", "ns"), &web()), Outcome::NoBindings, "invalid binding");
    assert_eq!(outcome(two_sets().bind("blue", "other"), &web()), Outcome::NoBindings, "bound elsewhere");
    assert_eq!(two_sets().bind("blue", "ns").selected(&web(), 0), ["b1", "b2"], "valid binding");
}

/// Upstream: defects "16".
#[test]
fn a_binding_that_names_another_set_than_itself_grants_nothing() {
    let mut world = two_sets().bind("blue", "ns").placement(&web()).world();
    let mut binding = world.bindings.values().next().unwrap().clone();
    binding.spec.as_mut().unwrap().cluster_set = Some("green".into());
    assert_eq!(world.apply(Delta::Binding(Box::new(binding))), [web().key()]);
    assert_eq!(world.decide(&web().key(), at(0)).unwrap().outcome, Outcome::NoBindings);
    let account = world.explain(&web().key(), at(0));
    assert_eq!(&*account.sets.ignored[0].binding, "blue", "and it is said why");
}

/// Upstream: scheduling_controller_test.go "TestGetValidManagedClusterSets".
#[test]
fn a_placement_draws_from_the_sets_it_names_and_may_use() {
    let bound = || two_sets().bind("blue", "ns").bind("green", "ns");
    assert_eq!(outcome(two_sets(), &web().sets(&["blue"])), Outcome::NoBindings, "no clusterset bindings");
    assert_eq!(bound().selected(&web(), 0), ["b1", "b2", "g1", "g2"], "no placement clusterset");
    assert_eq!(
        bound().selected(&web().sets(&["green", "nowhere"]), 0),
        ["g1", "g2"],
        "intersection of clusterset bindings and placement clusterset"
    );
    let asked = vec!["nowhere".to_owned()];
    assert_eq!(outcome(bound(), &web().sets(&["nowhere"])), Outcome::NoIntersection { asked });
}

/// Upstream: scheduling_controller_test.go "TestGetAvailableClusters: no clusterset", "TestGetAvailableClusters: select
/// clusters from clustersets", "TestGetAvailableClusters: clusterset has no ClusterSelector",
/// "TestGetAvailableClusters: clusterset has default ClusterSelector", "TestGetAvailableClusters: clusterset has Legacy
/// set label ClusterSelector", "TestGetAvailableClusters: clusterset has labelSelector type ClusterSelector",
/// "TestGetAvailableClusters: clusterset has labelSelector type ClusterSelector(select everything)".
#[test]
fn every_kind_of_set_has_its_members() {
    let cases: [(&str, Value, &[&str]); 8] = [
        ("clusterset has no ClusterSelector", Value::Null, &["b1", "b2"]),
        (
            "clusterset has default ClusterSelector",
            json!({"selectorType": "ExclusiveClusterSetLabel"}),
            &["b1", "b2"],
        ),
        (
            "clusterset has Legacy set label ClusterSelector",
            json!({"selectorType": "LegacyClusterSetLabel"}),
            &["b1", "b2"],
        ),
        ("an empty type is the exclusive label", json!({"selectorType": ""}), &["b1", "b2"]),
        (
            "clusterset has labelSelector type ClusterSelector",
            json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {label::CLUSTER_SET: "green"}}}),
            &["g1", "g2"],
        ),
        (
            "clusterset has labelSelector type ClusterSelector(select everything)",
            json!({"selectorType": "LabelSelector", "labelSelector": {}}),
            &["b1", "b2", "free", "g1", "g2"],
        ),
        (
            "labels may be asked for in every way",
            json!({"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": label::CLUSTER_SET, "operator": "DoesNotExist"}]}}),
            &["free"],
        ),
        ("no selector has nobody", json!({"selectorType": "LabelSelector"}), &[]),
    ];
    for (upstream, selector, selected) in cases {
        let fleet = two_sets().set_by("blue", selector).bind("blue", "ns");
        assert_eq!(fleet.selected(&web(), 0), selected, "{upstream}");
    }
}

/// Upstream: scheduling_controller_test.go "TestGetAvailableClusters: exclude clusters with deletion timestamp",
/// "TestGetAvailableClusters: clusterset is removed".
#[test]
fn clusters_that_are_being_deleted_and_sets_that_are_gone_do_not_count() {
    let fleet = two_sets().cluster("b1").in_set("blue").deleting().bind("blue", "ns").bind("green", "ns");
    let mut world = fleet.placement(&web()).world();
    assert_eq!(world.selected(&web().key(), at(0)), ["b2", "g1", "g2"]);
    assert_eq!(world.apply(Delta::SetGone("green".into())), [web().key()]);
    assert_eq!(world.selected(&web().key(), at(0)), ["b2"]);
}

/// Where upstream fails and tries again for ever, ours keeps what it had and says why.
/// Upstream: scheduling_controller_test.go "TestGetAvailableClusters: clusterset has invalid ClusterSelector".
#[test]
fn a_set_that_cannot_be_understood_keeps_what_was_selected() {
    let broken = json!({"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}});
    for selector in [broken, json!({"selectorType": "Magic"})] {
        let mut world = two_sets().bind("blue", "ns").bind("green", "ns").placement(&web()).world();
        world.settle(&web().key(), at(0)).unwrap();
        let set = bare().set_by("blue", selector).objects.pop().unwrap();
        assert_eq!(world.apply(set), [web().key()]);
        let published = world.settle(&web().key(), at(1)).unwrap();
        let decision = world.decide(&web().key(), at(1)).unwrap();
        assert!(
            matches!(&decision.outcome, Outcome::Kept { why } if why.contains("blue")),
            "{:?}",
            decision.outcome
        );
        assert_eq!(published.decisions[0].decisions().len(), 4);
        let touched = world.apply(bare().set("blue").objects.pop().unwrap());
        assert_eq!(touched, [web().key()], "mended");
        assert_eq!(world.decide(&web().key(), at(1)).unwrap().outcome, Outcome::Decided);
    }
}

/// Upstream: defects "6".
#[test]
fn a_broken_set_concerns_only_those_who_draw_from_it() {
    let unconcerned = placement("ns", "unconcerned").sets(&["green"]);
    let mut world =
        two_sets().bind("blue", "ns").bind("green", "ns").placement(&web()).placement(&unconcerned).world();
    let broken = bare().set_by("blue", json!({"selectorType": "Magic"})).objects.pop().unwrap();
    assert_eq!(world.apply(broken), [web().key()]);
    assert_eq!(world.selected(&unconcerned.key(), at(0)), ["g1", "g2"]);
    // And clusters go on being noticed.
    let cluster = bare().cluster("g3").in_set("green").objects.pop().unwrap();
    assert!(world.apply(cluster).contains(&unconcerned.key()));
}

/// Upstream: integration/placement/placement_test.go "Should schedule successfully once new clusterset is bound",
/// "Should schedule successfully once new labelselector clusterset is bound", "Should schedule successfully once a
/// clusterset deleted/added", "Should schedule successfully once a labelselector clusterset deleted/added", "Should
/// schedule successfully once a clustersetbinding deleted/added", "Should be satisfied once new clusters are added",
/// "Should schedule placement successfully once spec.ClusterSets changes".
#[test]
fn sets_bindings_and_clusters_may_come_and_go_in_any_order() {
    let label_set =
        |name: &str, of: &str| bare().set_of(name, json!({"matchLabels": {label::CLUSTER_SET: of}}));
    for green in [bare().set("green"), label_set("green", "green")] {
        let green = green.objects[0].clone();
        let bound = bare().bind("green", "ns").objects[0].clone();
        let mut world = two_sets().bind("blue", "ns").placement(&web().number(10)).world();
        let expect = |world: &mut World, delta: Delta, clusters: &[&str]| {
            assert_eq!(world.apply(delta.clone()), [web().key()], "{delta:?}");
            assert_eq!(world.selected(&web().key(), at(0)), clusters);
        };
        world.apply(green.clone());
        expect(&mut world, bound.clone(), &["b1", "b2", "g1", "g2"]);
        expect(&mut world, Delta::SetGone("green".into()), &["b1", "b2"]);
        expect(&mut world, green, &["b1", "b2", "g1", "g2"]);
        expect(&mut world, Delta::BindingGone(ObjectKey::new("ns", "green")), &["b1", "b2"]);
        expect(&mut world, bound, &["b1", "b2", "g1", "g2"]);
        expect(&mut world, Delta::Placement(Box::new(web().number(10).sets(&["green"]).0)), &["g1", "g2"]);
        expect(&mut world, bare().cluster("g0").in_set("green").objects[0].clone(), &["g0", "g1", "g2"]);
        expect(&mut world, Delta::ClusterGone("g1".into()), &["g0", "g2"]);
    }
}

/// Whom a change touches, with a placement in each of several namespaces.
fn touched(world: &mut World, delta: Delta) -> BTreeSet<String> {
    world.apply(delta).iter().map(ToString::to_string).collect()
}

fn keys(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn neighbours() -> World {
    two_sets()
        .bind("blue", "n1")
        .bind("green", "n2")
        .bind("blue", "n3")
        .bind("green", "n3")
        .placement(&placement("n1", "p"))
        .placement(&placement("n2", "p"))
        .placement(&placement("n3", "any"))
        .placement(&placement("n3", "green").sets(&["green"]))
        .world()
}

fn cluster(name: &str, set: Option<&str>) -> Delta {
    let fleet = bare().cluster(name);
    let fleet = if let Some(set) = set { fleet.in_set(set) } else { fleet };
    fleet.objects[0].clone()
}

/// Upstream: cluster_event_handler_test.go "TestOnClusterChange: clusterset does not exist", "TestOnClusterChange:
/// clusterset exists", "TestOnClusterUpdate: cluster belongs to no clusterset", "TestOnClusterUpdate: assign a cluster
/// to a clusterset", "TestOnClusterUpdate: remove cluster from a clusterset", "TestOnClusterUpdate: label change only",
/// "TestOnClusterUpdate: move cluster from one clusterset to another", "TestOnClusterDelete: cluster".
#[test]
fn a_cluster_touches_the_placements_of_its_sets() {
    let cases: [(&str, Delta, &[&str]); 9] = [
        ("clusterset does not exist", cluster("x", Some("nowhere")), &[]),
        ("clusterset exists", cluster("x", Some("blue")), &["n1/p", "n3/any"]),
        ("cluster belongs to no clusterset", cluster("x", None), &[]),
        ("assign a cluster to a clusterset", cluster("free", Some("green")), &["n2/p", "n3/any", "n3/green"]),
        ("remove cluster from a clusterset", cluster("b1", None), &["n1/p", "n3/any"]),
        (
            "move cluster from one clusterset to another",
            cluster("b1", Some("green")),
            &["n1/p", "n2/p", "n3/any", "n3/green"],
        ),
        // Upstream wakes everybody; here nobody asks for that label.
        (
            "label change only",
            bare().cluster("b1").in_set("blue").label("idle", "talk").objects[0].clone(),
            &[],
        ),
        ("cluster deleted", Delta::ClusterGone("g1".into()), &["n2/p", "n3/any", "n3/green"]),
        ("a cluster nobody knew is gone", Delta::ClusterGone("nobody".into()), &[]),
    ];
    for (upstream, delta, wanted) in cases {
        let mut world = neighbours();
        for key in world.placements.keys().cloned().collect::<Vec<_>>() {
            world.settle(&key, at(0)).unwrap();
        }
        assert_eq!(touched(&mut world, delta), keys(wanted), "{upstream}");
    }
}

/// Upstream: cluster_event_handler_test.go "TestOnClusterChange: cluster blongs to multiple clusterset",
/// "TestOnClusterUpdate: cluster blongs to multiple clusterset".
#[test]
fn a_cluster_of_several_sets_touches_the_placements_of_all() {
    let mut world = neighbours();
    world.apply(bare().set_of("all", json!({})).objects[0].clone());
    world.apply(bare().bind("all", "n2").objects[0].clone());
    assert_eq!(touched(&mut world, cluster("x", Some("blue"))), keys(&["n1/p", "n2/p", "n3/any"]));
}

/// Upstream: enqueue_test.go "TestEnqueuePlacementsByClusterSet: enqueue placements in a namespace",
/// "TestEnqueuePlacementsByClusterSet: clusterset selector type is LegacyClusterSetLabel",
/// "TestEnqueuePlacementsByClusterSet: clusterset selector type is LabelSelector",
/// "TestEnqueuePlacementsByClusterSetBinding: enqueue placements by clusterSetBinding",
/// "TestEnqueuePlacementsByClusterSetBinding: on clustersetbinding change", "TestEnqueuePlacementsByClusterSetBinding:
/// clusterset".
#[test]
fn a_set_and_a_binding_touch_the_placements_that_draw_from_it() {
    let by_label = bare().set_of("green", json!({})).objects[0].clone();
    assert_eq!(
        touched(&mut neighbours(), by_label),
        keys(&["n2/p", "n3/any", "n3/green"]),
        "clusterset selector type is LabelSelector"
    );
    assert_eq!(touched(&mut neighbours(), Delta::SetGone("blue".into())), keys(&["n1/p", "n3/any"]));
    let binding = bare().bind("green", "n1").objects[0].clone();
    assert_eq!(
        touched(&mut neighbours(), binding),
        keys(&["n1/p"]),
        "enqueue placements by clusterSetBinding"
    );
    let gone = Delta::BindingGone(ObjectKey::new("n3", "green"));
    assert_eq!(touched(&mut neighbours(), gone), keys(&["n3/any", "n3/green"]));
    let unused = bare().set("unused").objects[0].clone();
    assert_eq!(touched(&mut neighbours(), unused), keys(&[]));
}

/// Upstream: enqueue_test.go "TestEnqueuePlacementsByScore: ensueue score", "TestEnqueuePlacementsByScore: only enqueue
/// score with filtered placement".
#[test]
fn a_score_touches_the_placements_that_rank_by_it_and_could_select_its_cluster() {
    let ranks = |namespace: &str| placement(namespace, "ranks").exact(&[("AddOn/demo/cpu", 1)]);
    let mut world = neighbours();
    for namespace in ["n1", "n2", "n4"] {
        world.apply(Delta::Placement(Box::new(ranks(namespace).0)));
    }
    let score = |name: &str| bare().score("b1", name, "cpu", 5, None).objects[0].clone();
    assert_eq!(touched(&mut world, score("demo")), keys(&["n1/ranks"]));
    assert_eq!(touched(&mut world, score("unused")), keys(&[]));
}

#[test]
fn a_status_nobody_looks_at_touches_nobody() {
    let mut world = neighbours();
    let busy =
        bare().cluster("b1").in_set("blue").available("True").resources("5", "5").claim("load", "high");
    assert_eq!(touched(&mut world, busy.objects[0].clone()), keys(&[]));
}

#[test]
fn a_placement_that_is_gone_or_switched_off_is_not_decided() {
    let off = web().annotate(berth_api::names::annotation::SCHEDULING_DISABLED, "true");
    let mut world = two_sets().bind("blue", "ns").placement(&off).world();
    assert!(world.decide(&web().key(), at(0)).is_none(), "placement schedule controller is disabled");
    assert_eq!(touched(&mut world, cluster("b3", Some("blue"))), keys(&[]));
    let on = web().annotate(berth_api::names::annotation::SCHEDULING_DISABLED, "no");
    assert_eq!(touched(&mut world, Delta::Placement(Box::new(on.0))), keys(&["ns/web"]));
    assert_eq!(world.selected(&web().key(), at(0)), ["b1", "b2", "b3"]);
    let mut leaving = web();
    leaving.0.metadata.deletion_timestamp = Some(crate::fixtures::time(0));
    world.apply(Delta::Placement(Box::new(leaving.0)));
    assert!(world.decide(&web().key(), at(0)).is_none());
    world.apply(Delta::PlacementGone(web().key()));
    assert!(world.model.decide(&web().key(), at(0)).is_none());
    assert!(world.model.decide(&PlacementKey::new("ns", "never"), at(0)).is_none());
}
