//! Upstream's suites, as far as they are about decisions, and where each of their cases is.
//!
//! ```text
//!   plugins/tainttoleration, toleration_test.go            taints
//!   plugins/predicate, helpers, predicate_test.go          predicates (costs: the crate of expressions)
//!   plugins/{balance,steady,resource,addon},
//!   prioritizer_test.go                                    prioritizers
//!   TestBind, groups of TestSchedulingController_sync      groups
//!   TestGet*, TestOnCluster*, TestEnqueue*                 sets
//!   TestNew*Condition                                      conditions
//!   TestSchedule, placement_test.go, e2e placement         here
//! ```
//!
//! Events, HTTP, permissions, metrics and retries are not decisions: the controller's tests have them.

use berth_engine::select::Outcome;
use berth_engine::{Delta, PlacementKey};
use serde_json::json;

use crate::fixtures::{Fleet, Request, at, bare, fleet, web};
use crate::world::World;

fn numbered(count: usize) -> Fleet {
    fleet().clusters((1..=count).map(|number| format!("cluster{number}")))
}

fn decided(fleet: Fleet, request: &Request) -> (Vec<String>, usize) {
    let mut world = fleet.placement(request).world();
    let decision = world.decide(&request.key(), at(0)).unwrap();
    (crate::world::World::names(&decision), decision.unscheduled)
}

fn replace(world: &mut World, request: &Request) {
    assert_eq!(world.apply(Delta::Placement(Box::new(request.0.clone()))), [request.key()]);
}

struct Case {
    upstream: &'static str,
    fleet: Fleet,
    request: Request,
    selected: &'static [&'static str],
    unscheduled: usize,
}

/// Upstream: schedule_test.go "TestSchedule: new placement satisfied", "TestSchedule: new placement unsatisfied",
/// "TestSchedule: placement with all decisions scheduled", "TestSchedule: placement with taint and toleration",
/// "TestSchedule: placement with part of decisions scheduled", "TestSchedule: schedule to cluster with least
/// decisions", "TestSchedule: do not schedule to other cluster even with least decisions".
#[test]
fn every_case_of_scheduling() {
    let other = PlacementKey::new("ns", "others");
    let cases = [
        Case {
            upstream: "new placement satisfied",
            fleet: numbered(1),
            request: web().number(1),
            selected: &["cluster1"],
            unscheduled: 0,
        },
        Case {
            upstream: "new placement unsatisfied",
            fleet: numbered(1),
            request: web().number(3),
            selected: &["cluster1"],
            unscheduled: 2,
        },
        Case {
            upstream: "placement with all decisions scheduled",
            fleet: numbered(2).decided(&web().key(), &["cluster1", "cluster2"]),
            request: web().number(2),
            selected: &["cluster1", "cluster2"],
            unscheduled: 0,
        },
        Case {
            upstream: "placement with taint and toleration",
            fleet: fleet()
                .cluster("cluster1")
                .taint("key1=value1:NoSelect", 0)
                .cluster("cluster2")
                .taint("key2=value2:NoSelect", 0)
                .cluster("cluster3"),
            request: web().number(4).tolerate("key1", "Equal", "value1"),
            selected: &["cluster1", "cluster3"],
            unscheduled: 2,
        },
        Case {
            upstream: "placement with part of decisions scheduled",
            fleet: numbered(2).decided(&web().key(), &["cluster1"]),
            request: web().number(4),
            selected: &["cluster1", "cluster2"],
            unscheduled: 2,
        },
        Case {
            upstream: "schedule to cluster with least decisions",
            fleet: numbered(3).decided(&other, &["cluster1", "cluster2"]),
            request: web().number(1),
            selected: &["cluster3"],
            unscheduled: 0,
        },
        Case {
            upstream: "do not schedule to other cluster even with least decisions",
            fleet: numbered(3)
                .decided(&other, &["cluster2"])
                .decided(&PlacementKey::new("ns", "more"), &["cluster2", "cluster1"])
                .decided(&web().key(), &["cluster1"]),
            request: web().number(1),
            selected: &["cluster1"],
            unscheduled: 0,
        },
    ];
    for Case { upstream, fleet, request, selected, unscheduled } in cases {
        let (names, missing) = decided(fleet, &request);
        assert_eq!(
            (names.iter().map(String::as_str).collect::<Vec<_>>(), missing),
            (selected.to_vec(), unscheduled),
            "{upstream}"
        );
    }
}

/// Upstream: schedule_test.go "TestSchedule: new placement misconfigured", "TestFilterResults".
#[test]
fn each_stage_of_filtering_is_accounted_for() {
    let request = web().labelled("env", "prod");
    let fleet = fleet()
        .cluster("a")
        .label("env", "prod")
        .cluster("b")
        .label("env", "prod")
        .taint("down:NoSelect", 0)
        .cluster("c");
    let selection = fleet.placement(&request).world().explain(&request.key(), at(0)).selection;
    assert_eq!(
        (selection.members, selection.candidates, selection.feasible, selection.selected),
        (3, 2, 1, 1)
    );
}

/// Upstream: integration/placement/placement_test.go "Should re-create placementdecisions successfully once selected
/// clusters are terminating".
#[test]
fn a_cluster_on_its_way_out_is_left() {
    let mut world = numbered(5).placement(&web()).world();
    world.settle(&web().key(), at(0)).unwrap();
    let leaving = fleet().cluster("cluster3").deleting().objects.pop().unwrap();
    assert_eq!(world.apply(leaving), [web().key()]);
    assert_eq!(world.selected(&web().key(), at(0)), ["cluster1", "cluster2", "cluster4", "cluster5"]);
}

/// Upstream: integration/placement/placement_test.go "Should create empty placementdecision when no cluster selected".
#[test]
fn without_a_binding_there_is_one_empty_slice() {
    let mut world = bare().cluster("a").placement(&web()).world();
    let published = world.settle(&web().key(), at(0)).unwrap();
    assert_eq!(published.decisions.len(), 1);
    assert!(published.decisions[0].decisions().is_empty());
    assert_eq!(published.status.number_of_selected_clusters, Some(0));
    assert_eq!(published.status.decision_groups.unwrap()[0].cluster_count, Some(0));
}

/// Upstream: integration/placement/placement_test.go "Should schedule successfully once spec.NumberOfClusters is
/// reduced", "Should schedule successfully once spec.NumberOfClusters is increased".
#[test]
fn the_number_may_be_reduced_and_raised() {
    let mut world = numbered(10).placement(&web().number(5)).world();
    world.settle(&web().key(), at(0)).unwrap();
    replace(&mut world, &web().number(8));
    assert_eq!(world.settle(&web().key(), at(0)).unwrap().status.number_of_selected_clusters, Some(8));
    let eight = world.selected(&web().key(), at(0));
    replace(&mut world, &web().number(4));
    let four = world.selected(&web().key(), at(0));
    assert!(four.len() == 4 && four.iter().all(|name| eight.contains(name)), "{four:?} of {eight:?}");
}

/// Upstream: integration/placement/placement_test.go "Should schedule successfully once clusters belong to
/// labelselector clusterset are added/deleted", "Should schedule successfully once clusters belong to global(empty
/// labelselector) clusterset are added/deleted)", "Should be satisfied once new clusters are added".
#[test]
fn clusters_of_label_sets_come_and_go() {
    let by_label =
        bare().set_of("vendor", json!({"matchLabels": {"vendor": "openShift"}})).bind("vendor", "ns");
    for ground in [by_label, fleet()] {
        let mut world = ground.placement(&web().number(3)).world();
        for number in 1..=3 {
            let cluster =
                bare().cluster(&format!("c{number}")).label("vendor", "openShift").objects.pop().unwrap();
            assert_eq!(world.apply(cluster), [web().key()]);
            let decision = world.decide(&web().key(), at(0)).unwrap();
            assert_eq!((decision.picks.len(), decision.unscheduled), (number, 3 - number));
        }
        world.apply(Delta::ClusterGone("c2".into()));
        assert_eq!(world.selected(&web().key(), at(0)), ["c1", "c3"]);
    }
}

/// Five and three for ten.
/// Upstream: integration/placement/placement_test.go "Should schedule successfully once new clusterset is bound".
#[test]
fn more_sets_help_as_far_as_they_have_clusters() {
    let set = |fleet: Fleet, name: &str, count: usize| {
        let fleet = fleet.set(name);
        (1..=count).fold(fleet, |fleet, number| fleet.cluster(&format!("{name}{number}")).in_set(name))
    };
    let ground = set(set(bare(), "one", 5), "two", 3).bind("one", "ns");
    let mut world = ground.placement(&web().number(10)).world();
    assert_eq!(world.decide(&web().key(), at(0)).unwrap().unscheduled, 5);
    assert_eq!(world.apply(bare().bind("two", "ns").objects[0].clone()), [web().key()]);
    assert_eq!(world.decide(&web().key(), at(0)).unwrap().unscheduled, 2);
}

/// Upstream: integration/placement/predicate_test.go "Should schedule placement successfully once spec.Predicates
/// LabelSelector changes", "Should schedule placement successfully once spec.Predicates ClaimSelector changes".
#[test]
fn predicates_may_be_added_and_changed() {
    let ground = fleet()
        .cluster("a")
        .label("cloud", "Amazon")
        .claim("region", "us")
        .cluster("b")
        .claim("region", "eu");
    let mut world = ground.placement(&web()).world();
    assert_eq!(world.selected(&web().key(), at(0)), ["a", "b"]);
    replace(&mut world, &web().labelled("cloud", "Amazon"));
    assert_eq!(world.selected(&web().key(), at(0)), ["a"]);
    let in_eu = json!({"claimSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}});
    replace(&mut world, &web().predicate(in_eu));
    assert_eq!(world.selected(&web().key(), at(0)), ["b"]);
}

/// The placements there tolerate unreachable clusters with the operator left out.
/// Upstream: e2e/placement_test.go "Should schedule successfully".
#[test]
fn a_toleration_without_operator_and_value_meets_the_taint_of_unreachable_clusters() {
    let key = berth_api::names::system_taint::UNREACHABLE;
    let ground = (1..=5).fold(fleet(), |fleet, number| {
        fleet.cluster(&format!("c{number}")).taint(&format!("{key}:NoSelect"), 0)
    });
    let mut request = web().number(10);
    request.0.spec.tolerations = Some(serde_json::from_value(json!([{ "key": key }])).unwrap());
    assert_eq!(decided(ground, &request), ((1..=5).map(|number| format!("c{number}")).collect(), 5));
}

/// Upstream: scheduling_controller_test.go "TestSchedulingController_sync: placement status not changed".
#[test]
fn the_same_world_twice_gives_the_same_status() {
    let mut world = numbered(3).placement(&web().number(2)).world();
    let first = world.settle(&web().key(), at(0)).unwrap();
    let again = world.settle(&web().key(), at(60)).unwrap();
    assert_eq!((first.status, first.decisions), (again.status, again.decisions));
    assert_eq!(world.decide(&web().key(), at(60)).unwrap().outcome, Outcome::Decided);
}
