//! Rankings kept by difference over fleets larger than what a ranking keeps: every decision equals one from nothing.

use std::collections::BTreeSet;

use berth_engine::model::ObjectKey;
use berth_engine::select::Decision;
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

/// Those, and others to whom what is held, shunned or loaded counts the other way round or not at all.
fn all_requests(number: i32) -> Vec<Request> {
    let others = [
        placement("ns", "restless").number(number).additive(&[("Steady", -2)]),
        placement("ns", "careless").number(number).exact(&[("Steady", 1)]),
        placement("ns", "crowded").number(number).additive(&[("Balance", -1)]),
        placement("ns", "contrary").number(number).additive(&[("PreferNoSelect", -1)]),
    ];
    requests(number).into_iter().chain(others).collect()
}

/// The change of the world that a step is; `None` for one that looks at it.
fn change(step: &Step) -> Option<Delta> {
    let other = |number: usize| PlacementKey::new("elsewhere", &format!("other{number}"));
    let cluster = |fleet: Fleet| fleet.objects.into_iter().next_back().unwrap();
    Some(match step {
        Step::Taint(number, taint, added) => {
            cluster(bare().cluster(&name(*number)).label("env", "prod").taint(taint, *added))
        }
        Step::Clean(number) => cluster(bare().cluster(&name(*number)).label("env", "prod")),
        Step::Relabel(number, env) => cluster(bare().cluster(&name(*number)).label("env", env)),
        Step::Gone(number) => Delta::ClusterGone(name(*number)),
        Step::Between(depth) => {
            let between = format!("{}{}", name(0), "0".repeat(*depth));
            cluster(bare().cluster(&between).label("env", "prod"))
        }
        Step::Load(number, from, count) => {
            let names: Vec<String> = (*from..(*from + *count).min(CLUSTERS)).map(name).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Delta::Decision(Box::new(decision(&other(*number), 1, &names)))
        }
        Step::Unload(number) => {
            Delta::DecisionGone(ObjectKey::new("elsewhere", &format!("other{number}-decision-1")))
        }
        Step::Clock(_) | Step::Decide | Step::Settle => return None,
    })
}

fn take(world: &mut World, step: &Step, requests: &[Request], now: &mut i64) {
    match step {
        Step::Clock(seconds) => *now = *seconds,
        // Deciding compares with a decision from nothing.
        Step::Decide => requests.iter().for_each(|request| drop(world.decide(&request.key(), at(*now)))),
        Step::Settle => requests.iter().for_each(|request| drop(world.settle(&request.key(), at(*now)))),
        step => drop(world.apply(change(step).expect("the others change the world"))),
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

    #[test]
    fn who_is_not_touched_by_a_cluster_decides_as_before(
        number in 0..10_i32,
        steps in prop::collection::vec(any_step(), 0..40),
    ) {
        let requests = requests(number);
        let mut world = large(&requests);
        let mut now = 0;
        for step in &steps {
            let Some(delta) = change(step).filter(|_| !matches!(step, Step::Load(..) | Step::Unload(_))) else {
                take(&mut world, step, &requests, &mut now);
                continue;
            };
            // What others took meanwhile is looked at whenever somebody is decided, and touches nobody by itself.
            let before = requests.each_ref().map(|request| world.decide(&request.key(), at(now)));
            let touched = world.apply(delta);
            for (request, before) in requests.iter().zip(before) {
                if !touched.contains(&request.key()) {
                    let after = world.model.decide_afresh(&request.key(), at(now));
                    prop_assert_eq!(after, before, "{} was not touched by {:?}", request.key(), step);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases / 10, ..config() })]

    /// What is known of who was not asked for long is old, and must not be relied on.
    #[test]
    fn who_is_not_touched_by_a_cluster_decides_as_before_however_long_ago_it_decided(
        number in 1..10_i32,
        steps in prop::collection::vec(any_step(), 0..80),
    ) {
        let requests = all_requests(number);
        let mut world = large(&requests);
        let mut now = 0;
        let mut chosen: Vec<Option<BTreeSet<String>>> = vec![None; requests.len()];
        let names = |decision: &Decision| World::names(decision).into_iter().collect::<BTreeSet<String>>();
        for step in &steps {
            if matches!(step, Step::Decide | Step::Settle) {
                for (request, chosen) in requests.iter().zip(&mut chosen) {
                    *chosen = world.decide(&request.key(), at(now)).as_ref().map(names);
                }
            }
            let Some(delta) = change(step).filter(|_| !matches!(step, Step::Load(..) | Step::Unload(_))) else {
                take(&mut world, step, &requests, &mut now);
                continue;
            };
            let before: Vec<Option<Decision>> =
                requests.iter().map(|request| world.model.decide_afresh(&request.key(), at(now))).collect();
            let touched = world.apply(delta);
            for ((request, before), chosen) in requests.iter().zip(before).zip(&chosen) {
                // Who would choose others by now was touched before, or is moved by loads alone.
                if before.as_ref().map(names) == *chosen && !touched.contains(&request.key()) {
                    let after = world.model.decide_afresh(&request.key(), at(now));
                    prop_assert_eq!(after, before, "{} was not touched by {:?}", request.key(), step);
                }
            }
        }
    }
}

/// Three placements of so many clusters each, decided and written, and a cluster that they had to leave.
fn left_cluster(number: i32) -> (World, [Request; 3]) {
    let requests = requests(number);
    let mut world = large(&requests);
    let mut now = 0;
    take(&mut world, &Step::Settle, &requests, &mut now);
    let touched = world.apply(change(&Step::Taint(0, "new:NoSelect", 0)).unwrap());
    assert!(!touched.is_empty(), "somebody has it");
    take(&mut world, &Step::Settle, &requests, &mut now);
    (world, requests)
}

#[test]
fn a_cluster_that_comes_free_concerns_nobody_who_has_enough_that_rank_before_it() {
    let (mut world, _) = left_cluster(10);
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), []);
    let newcomer = bare().cluster("c000-b").label("env", "prod").objects.pop().unwrap();
    assert_eq!(world.apply(newcomer), [], "nor does one that is new");
}

#[test]
fn a_cluster_that_comes_free_concerns_who_has_one_that_ranks_behind_it() {
    let (mut world, requests) = left_cluster(10);
    // Others take all that the first has, several times over: it would rather have the one that came free.
    let held = world.selected(&requests[0].key(), at(0));
    for other in 0..6 {
        let key = PlacementKey::new("elsewhere", &format!("other{other}"));
        let names: Vec<&str> = held.iter().map(String::as_str).collect();
        world.apply(Delta::Decision(Box::new(decision(&key, 1, &names))));
    }
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), [requests[0].key()]);
}

#[test]
fn a_cluster_that_comes_free_concerns_who_has_too_few() {
    let (mut world, requests) = left_cluster(CLUSTERS as i32);
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), requests.each_ref().map(Request::key));
}

/// So many other placements take one cluster, each for itself.
fn crowd(world: &mut World, cluster: &str, others: std::ops::Range<usize>) {
    for other in others {
        let key = PlacementKey::new("elsewhere", &format!("other{other}"));
        world.apply(Delta::Decision(Box::new(decision(&key, 1, &[cluster]))));
    }
}

/// The same after the cluster came free once, which concerned nobody, and had to be left again. Others are on the last
/// cluster, so that none of those that somebody chose is the most loaded.
fn left_cluster_that_came_free(number: i32) -> (World, [Request; 3]) {
    let (mut world, requests) = left_cluster(number);
    crowd(&mut world, &name(CLUSTERS - 1), 0..9);
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), []);
    assert_eq!(world.apply(change(&Step::Taint(0, "new:NoSelect", 0)).unwrap()), []);
    (world, requests)
}

#[test]
fn a_cluster_that_comes_free_again_concerns_nobody_either() {
    let (mut world, _) = left_cluster_that_came_free(10);
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), []);
}

#[test]
fn a_cluster_that_comes_free_again_concerns_who_wants_fewer_by_now() {
    let (mut world, _) = left_cluster_that_came_free(10);
    let edited = requests(5);
    for request in &edited {
        assert_eq!(world.apply(Delta::Placement(Box::new(request.0.clone()))), [request.key()]);
    }
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), edited.each_ref().map(Request::key));
}

#[test]
fn a_cluster_that_comes_free_again_concerns_who_has_one_that_is_crowded_by_now() {
    let (mut world, requests) = left_cluster_that_came_free(10);
    let held = world.selected(&requests[0].key(), at(0));
    crowd(&mut world, &held[9], 10..16);
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), [requests[0].key()]);
}

#[test]
fn a_cluster_that_comes_free_again_concerns_nobody_for_what_is_crowded_elsewhere() {
    let (mut world, _) = left_cluster_that_came_free(10);
    crowd(&mut world, &name(CLUSTERS - 2), 10..30);
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), []);
}

#[test]
fn a_cluster_that_comes_free_again_concerns_who_holds_it_by_now() {
    let (mut world, requests) = left_cluster_that_came_free(10);
    let key = requests[0].key();
    let slice = Delta::Decision(Box::new(decision(&key, 2, &[&name(0)])));
    assert_eq!(world.apply(slice), std::slice::from_ref(&key));
    assert_eq!(world.apply(change(&Step::Clean(0)).unwrap()), [key]);
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
