//! What a change would move, held against two worlds: one without the change and one with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_engine::impact::{Impact, impact};
use berth_engine::model::ObjectKey;
use berth_engine::{Delta, Moment, PlacementKey};
use proptest::prelude::*;
use proptest::sample::select;

use crate::fixtures::{at, bare, fleet, placement};
use crate::properties::config;
use crate::random::{Breadth, Story, any_fact, any_time, any_world, line, placement_keys};
use crate::world::{World, key};

/// The same object as the world has it.
fn as_it_is(world: &World, delta: &Delta) -> Delta {
    let named = |object: &ObjectKey| object.name.to_string();
    let cluster = |name: &str| {
        world
            .clusters
            .get(name)
            .map_or(Delta::ClusterGone(name.into()), |object| Delta::Cluster(Box::new(object.clone())))
    };
    let set = |name: &str| {
        world
            .sets
            .get(name)
            .map_or(Delta::SetGone(name.into()), |object| Delta::Set(Box::new(object.clone())))
    };
    let binding = |key: &ObjectKey| {
        world
            .bindings
            .get(key)
            .map_or(Delta::BindingGone(key.clone()), |object| Delta::Binding(Box::new(object.clone())))
    };
    let placement = |key: &ObjectKey| {
        world
            .placements
            .get(key)
            .map_or(Delta::PlacementGone(key.clone()), |object| Delta::Placement(Box::new(object.clone())))
    };
    let score = |key: &ObjectKey| {
        world
            .scores
            .get(key)
            .map_or(Delta::ScoreGone(key.clone()), |object| Delta::Score(Box::new(object.clone())))
    };
    match delta {
        Delta::Cluster(object) => cluster(&named(&key(&object.metadata))),
        Delta::ClusterGone(name) => cluster(name),
        Delta::Set(object) => set(&named(&key(&object.metadata))),
        Delta::SetGone(name) => set(name),
        Delta::Binding(object) => binding(&key(&object.metadata)),
        Delta::BindingGone(key) => binding(key),
        Delta::Placement(object) => placement(&key(&object.metadata)),
        Delta::PlacementGone(key) => placement(key),
        Delta::Score(object) => score(&key(&object.metadata)),
        Delta::ScoreGone(key) => score(key),
        Delta::Decision(_) | Delta::DecisionGone(_) => unreachable!("decisions are no facts"),
    }
}

fn tried(world: &mut World, change: &Delta, now: Moment) -> Impact {
    let undo = as_it_is(world, change);
    impact(&mut world.model, change, undo, now)
}

/// Every placement's selection, decided from nothing in a world told anew.
fn selections(world: &World, now: Moment) -> BTreeMap<PlacementKey, BTreeSet<String>> {
    let mut fresh = world.rebuilt();
    let keys: Vec<PlacementKey> = fresh.placements.keys().cloned().collect();
    let decided = keys.into_iter().filter_map(|key| {
        let decision = fresh.model.decide_afresh(&key, now)?;
        Some((key, World::names(&decision).into_iter().collect()))
    });
    decided.collect()
}

/// The losses, by two worlds and no cleverness.
fn naive(world: &World, change: &Delta, now: Moment) -> BTreeMap<PlacementKey, BTreeSet<String>> {
    let before = selections(world, now);
    let mut changed = world.rebuilt();
    changed.apply(change.clone());
    let after = selections(&changed, now);
    let held = |key: &PlacementKey| -> BTreeSet<String> {
        world.model.held(key).iter().map(ToString::to_string).collect()
    };
    if let Delta::PlacementGone(key) = change {
        return BTreeMap::from([(key.clone(), held(key))])
            .into_iter()
            .filter(|(_, lost)| !lost.is_empty())
            .collect();
    }
    let lost = before.iter().filter_map(|(key, had)| {
        let has = after.get(key)?;
        let lost: BTreeSet<String> =
            held(key).into_iter().filter(|name| had.contains(name) && !has.contains(name)).collect();
        (!lost.is_empty()).then(|| (key.clone(), lost))
    });
    lost.collect()
}

#[derive(Clone)]
struct Change(Delta);

impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&line(&self.0))
    }
}

proptest! {
    // Every case decides every placement a dozen times over.
    #![proptest_config(ProptestConfig { cases: config().cases / 4, ..config() })]

    #[test]
    fn an_impact_equals_the_difference_of_two_worlds_and_leaves_none(
        Story(story) in any_world(Breadth::Full),
        settled in prop::collection::vec(select(placement_keys()), 0..8),
        changes in prop::collection::vec(any_fact(Breadth::Full).prop_map(Change), 1..5),
        now in any_time(),
    ) {
        let mut world = World::of(story);
        for key in settled.iter().filter(|key| world.placements.contains_key(*key)).cloned().collect::<Vec<_>>() {
            drop(world.settle(&key, at(now)));
        }
        let keys: Vec<PlacementKey> = world.placements.keys().cloned().collect();
        for Change(change) in &changes {
            let before: Vec<_> = keys.iter().map(|key| world.rendered(key, at(now))).collect();
            let impact = tried(&mut world, change, at(now));
            let naive = naive(&world, change, at(now));
            let losses: BTreeMap<PlacementKey, usize> = impact.losses.iter().cloned().collect();
            prop_assert_eq!(&losses, &naive.iter().map(|(key, lost)| (key.clone(), lost.len())).collect());
            let clusters: BTreeSet<Arc<str>> = naive.values().flatten().map(|name| name.as_str().into()).collect();
            prop_assert_eq!(&impact.clusters, &clusters);
            let after: Vec<_> = keys.iter().map(|key| world.rendered(key, at(now))).collect();
            prop_assert_eq!(before, after);
            // Whatever is kept for deciding sooner is still right, too.
            for key in &keys {
                drop(world.decide(key, at(now)));
            }
        }
    }
}

#[test]
fn a_taint_tells_who_loses_the_cluster_and_who_will() {
    let mut world = fleet()
        .cluster("fra-1")
        .cluster("sto-1")
        .placement(&placement("ns", "web"))
        .placement(&placement("ns", "ledger").exists("gpu").seconds(20))
        .placement(&placement("ns", "any").exists("gpu"))
        .world();
    for name in ["web", "ledger", "any"] {
        world.settle(&PlacementKey::new("ns", name), at(0));
    }
    let tainted = bare().cluster("fra-1").taint("gpu:NoSelect", 0);
    let tainted = tainted.objects.into_iter().next_back().unwrap();
    let impact = tried(&mut world, &tainted, at(0));
    assert_eq!(impact.losses, [(PlacementKey::new("ns", "web"), 1)]);
    assert_eq!(impact.later, Some((1, at(20))));
}

#[test]
fn a_fleet_that_is_too_large_is_looked_at_in_part() {
    let mut fleet = fleet();
    for number in 0..1_001 {
        fleet = fleet.cluster(&format!("c{number:04}"));
    }
    for number in 0..600 {
        fleet = fleet.placement(&placement("ns", &format!("p{number:03}")).number(1));
    }
    let mut world = fleet.world();
    let keys: Vec<PlacementKey> = world.placements.keys().cloned().collect();
    for key in &keys {
        let one = crate::fixtures::decision(key, 1, &["c0000"]);
        world.apply(Delta::Decision(Box::new(one)));
    }
    let gone = tried(&mut world, &Delta::ClusterGone("c0000".into()), at(0));
    assert!(gone.is_partial);
    assert!(gone.losses.len() < keys.len(), "{}", gone.losses.len());
}
