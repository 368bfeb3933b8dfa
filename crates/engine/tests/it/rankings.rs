//! Rankings kept by difference over fleets larger than what a ranking keeps: every decision equals one from nothing.

use berth_engine::model::ObjectKey;
use berth_engine::{Delta, PlacementKey};
use proptest::prelude::*;
use proptest::sample::select;

use crate::fixtures::{Fleet, Request, at, bare, decision, fleet, placement, web};
use crate::properties::config;
use crate::world::World;

/// More clusters than a ranking keeps behind the selection, several times over.
const CLUSTERS: usize = 220;

fn name(number: usize) -> String {
    format!("c{number:03}")
}

#[derive(Clone, Debug)]
enum Step {
    Taint(usize, &'static str, i64),
    Clean(usize),
    Relabel(usize, &'static str),
    Gone(usize),
    /// A name between two others, so that ranks have to be dealt anew now and then.
    Between(usize),
    /// Another placement takes or leaves clusters, all from one place on.
    Load(usize, usize, usize),
    Unload(usize),
    Clock(i64),
    Decide,
    Settle,
}

fn any_step() -> impl Strategy<Value = Step> {
    let cluster = || prop_oneof![3 => 0..12_usize, 1 => 0..CLUSTERS];
    prop_oneof![
        3 => (cluster(), select(vec!["gpu:NoSelect", "old:PreferNoSelect", "new:NoSelectIfNew"]), -50..50_i64)
            .prop_map(|(cluster, taint, added)| Step::Taint(cluster, taint, added)),
        3 => cluster().prop_map(Step::Clean),
        2 => (cluster(), select(vec!["prod", "test"])).prop_map(|(cluster, env)| Step::Relabel(cluster, env)),
        1 => cluster().prop_map(Step::Gone),
        1 => (1..30_usize).prop_map(Step::Between),
        2 => (0..6_usize, cluster(), 0..CLUSTERS).prop_map(|(other, from, count)| Step::Load(other, from, count)),
        1 => (0..6_usize).prop_map(Step::Unload),
        1 => (-60..60_i64).prop_map(Step::Clock),
        4 => Just(Step::Decide),
        2 => Just(Step::Settle),
    ]
}

fn requests(number: i32) -> [Request; 3] {
    [
        placement("ns", "plain").number(number),
        placement("ns", "timed").number(number).exists("gpu").seconds(30).exists("old").seconds(20),
        placement("ns", "picky").number(number).labelled("env", "prod").additive(&[("Steady", 3)]),
    ]
}

fn take(world: &mut World, step: &Step, requests: &[Request], now: &mut i64) {
    let other = |number: usize| PlacementKey::new("elsewhere", &format!("other{number}"));
    let cluster = |fleet: Fleet| fleet.objects.into_iter().next_back().unwrap();
    match step {
        Step::Taint(number, taint, added) => {
            drop(
                world
                    .apply(cluster(bare().cluster(&name(*number)).label("env", "prod").taint(taint, *added))),
            );
        }
        Step::Clean(number) => {
            drop(world.apply(cluster(bare().cluster(&name(*number)).label("env", "prod"))));
        }
        Step::Relabel(number, env) => {
            drop(world.apply(cluster(bare().cluster(&name(*number)).label("env", env))));
        }
        Step::Gone(number) => drop(world.apply(Delta::ClusterGone(name(*number)))),
        Step::Between(depth) => {
            let between = format!("{}{}", name(0), "0".repeat(*depth));
            drop(world.apply(cluster(bare().cluster(&between).label("env", "prod"))));
        }
        Step::Load(number, from, count) => {
            let names: Vec<String> = (*from..(*from + *count).min(CLUSTERS)).map(name).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            drop(world.apply(Delta::Decision(Box::new(decision(&other(*number), 1, &names)))));
        }
        Step::Unload(number) => {
            let object = ObjectKey::new("elsewhere", &format!("other{number}-decision-1"));
            drop(world.apply(Delta::DecisionGone(object)));
        }
        Step::Clock(seconds) => *now = *seconds,
        // Deciding compares with a decision from nothing.
        Step::Decide => requests.iter().for_each(|request| drop(world.decide(&request.key(), at(*now)))),
        Step::Settle => requests.iter().for_each(|request| drop(world.settle(&request.key(), at(*now)))),
    }
}

fn large(requests: &[Request]) -> World {
    let fleet =
        (0..CLUSTERS).fold(fleet(), |fleet, number| fleet.cluster(&name(number)).label("env", "prod"));
    requests.iter().fold(fleet, Fleet::placement).world()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases / 10, ..config() })]

    #[test]
    fn a_ranking_kept_by_difference_equals_one_made_anew(
        number in 0..10_i32,
        steps in prop::collection::vec(any_step(), 0..120),
    ) {
        let requests = requests(number);
        let mut world = large(&requests);
        let mut now = 0;
        for step in &steps {
            take(&mut world, step, &requests, &mut now);
        }
        take(&mut world, &Step::Decide, &requests, &mut now);
    }
}

#[test]
fn more_changes_than_are_remembered_between_two_decisions_are_not_missed() {
    let request = web().number(3);
    let mut world = large(std::slice::from_ref(&request));
    assert_eq!(world.selected(&request.key(), at(0)), ["c000", "c001", "c002"]);
    for round in 0..30 {
        for number in 0..CLUSTERS {
            let fleet = bare().cluster(&name(number)).label("env", "prod");
            let fleet = if (number + round) % 2 == 0 { fleet.taint("gpu:NoSelect", 0) } else { fleet };
            world.apply(fleet.objects[0].clone());
        }
    }
    assert_eq!(world.selected(&request.key(), at(0)), ["c000", "c002", "c004"]);
}

#[test]
fn when_all_that_was_kept_has_left_the_next_best_are_found() {
    let request = web().number(2);
    let mut world = large(std::slice::from_ref(&request));
    world.settle(&request.key(), at(0)).unwrap();
    for number in 0..150 {
        world.apply(bare().cluster(&name(number)).taint("gpu:NoSelect", 0).objects[0].clone());
        let best = world.selected(&request.key(), at(0));
        assert_eq!(best.len(), 2, "after {number}");
    }
    assert_eq!(world.selected(&request.key(), at(0)), ["c150", "c151"]);
}

#[test]
fn a_clock_that_goes_back_brings_back_who_had_left() {
    let request = web().number(1).exists("gpu").seconds(30);
    let mut world = large(std::slice::from_ref(&request));
    assert_eq!(world.selected(&request.key(), at(10)), ["c000"]);
    // Seen only after its toleration has ended.
    world.apply(bare().cluster("c000").taint("gpu:NoSelect", 0).objects[0].clone());
    assert_eq!(world.selected(&request.key(), at(40)), ["c001"]);
    assert_eq!(world.selected(&request.key(), at(20)), ["c000"]);
}

/// A world in which the ranking of `request` was built while only clusters from `first` on could be selected, grew by all
/// before them, and was cut.
fn cut_ranking(request: &Request, clusters: usize, first: usize) -> World {
    let fleet = (0..clusters).fold(fleet(), |fleet, number| {
        let fleet = fleet.cluster(&name(number)).label("env", "prod");
        if number < first { fleet.taint("gpu:NoSelect", 0) } else { fleet }
    });
    let mut world = fleet.placement(request).world();
    assert_eq!(world.selected(&request.key(), at(0)), [name(first)]);
    for number in 0..first {
        world.apply(bare().cluster(&name(number)).label("env", "prod").objects[0].clone());
    }
    assert_eq!(world.selected(&request.key(), at(0)), [name(0)]);
    world
}

/// The most that are kept for one cluster: itself and twice the reserve.
const KEPT: usize = 129;

#[test]
fn whoever_was_cut_off_a_ranking_comes_before_those_behind_the_cut() {
    let request = web().number(1);
    let mut world = cut_ranking(&request, CLUSTERS, 100);
    // Makes room: a ranking that is full would cut off again what it should not have taken in.
    let barred = |number: usize| bare().cluster(&name(number)).taint("gpu:NoSelect", 0).objects[0].clone();
    world.apply(barred(0));
    // Behind the cut, and before what was the end of the ranking when it was built.
    let behind = bare().cluster(&name(KEPT + 20)).label("env", "prod");
    world.apply(behind.clone().taint("gpu:NoSelect", 0).objects[0].clone());
    world.apply(behind.objects[0].clone());
    assert_eq!(world.selected(&request.key(), at(0)), [name(1)]);
    for number in 1..KEPT {
        world.apply(barred(number));
    }
    assert_eq!(world.selected(&request.key(), at(0)), [name(KEPT)]);
}

#[test]
fn a_ranking_of_all_is_one_of_some_once_it_was_cut() {
    let request = web().number(1);
    let mut world = cut_ranking(&request, 150, 100);
    for number in 0..KEPT {
        world.apply(bare().cluster(&name(number)).taint("gpu:NoSelect", 0).objects[0].clone());
    }
    assert_eq!(world.selected(&request.key(), at(0)), [name(KEPT)]);
}

#[test]
fn a_cluster_that_a_slice_named_twice_and_names_once_has_less_load() {
    let request = web().number(1).additive(&[("Steady", 0)]);
    let other = |name: &str| PlacementKey::new("elsewhere", name);
    let slice =
        |name: &str, clusters: &[&str]| Delta::Decision(Box::new(decision(&other(name), 1, clusters)));
    let mut world = fleet().clusters(["a", "b"]).placement(&request).world();
    world.apply(slice("one", &["a", "a", "b"]));
    world.apply(slice("two", &["b"]));
    let score = |world: &mut World| world.decide(&request.key(), at(0)).unwrap().picks[0].score;
    assert_eq!(score(&mut world), -100, "as loaded as the busiest");
    // The busiest stays the busiest, so a ranking that was not told keeps its scores.
    world.apply(slice("one", &["a", "b"]));
    assert_eq!(score(&mut world), 0);
}
