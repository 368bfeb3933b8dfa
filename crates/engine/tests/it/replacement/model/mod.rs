//! Every way a small world can go: members, nodes with two taints, a gate, crashes between any two steps.
//!
//! The explorer goes breadth-first over all interleavings of the controller (look, write, act), of Kubernetes (pods end, are
//! made anew, become ready) and of mishaps (taints come and go, a node that was given up comes back after all, gates flip,
//! members fail, things cannot be read, somebody deletes a pod, suspends a replacement, lowers the budget or changes the policy). Whatever is
//! written is read back from objects and must lead to the same, so a crash is possible anywhere. States are the same if they
//! differ only in how long ago something was that is long ago. A rule that is broken is told with the shortest way to it.
//!
//! Gone through to their end are worlds of three to five members with two taints and crashes between any two steps: as they are,
//! and for three members with whatever makes somebody wait coming and going at any time and without end: members that fail and
//! recover, taints, a gate, the sight of the others. Mishaps of every other kind are counted, and what they lead to is cut
//! ([`NEAREST`]).

mod controller;
mod explorer;
mod world;

use berth_engine::replace::{Budget, Policy, Strategy, Volumes};
use serde_json::{Value, json};

use self::world::{Restless, Telling, World};
use super::fixtures::compiled;

/// More states than a world has of which all are looked at; the largest has 18,852, which takes some seconds.
const ALL_MAX: usize = 30_000;
/// More states than two members have with one mishap; they had 33,031, which takes a dozen seconds.
const TWO_MAX: usize = 60_000;
/// How many states of a larger world are looked at: those nearest to the beginning, breadth-first, so that every way of fewer steps
/// than the first that is left out is gone through, with every mishap at every step of it.
///
/// The cut stays because a mishap may come at every step and is of some twenty kinds: a world with one has many times the states of
/// the same world with none, and all of these worlds together run in every build. What is left out are ways on which a mishap comes
/// late that is neither a member's, nor a taint's, nor the gate's, nor of the sight of the others: those come and go without end in
/// worlds that are gone through to their end, and in the world of two members one of any kind comes at any time. From every state that
/// is looked at, after whatever has gone wrong, the world is led on until it rests, by the same rules for every act.
const NEAREST: usize = 4_000;

fn policy(part: &Value) -> Policy {
    let mut spec = json!({
        "triggers": {"taints": [
            {"key": "a"}, {"key": "b", "durationSeconds": 1}, {"key": "planned", "intent": "Temporary"},
            {"key": "ignored", "durationSeconds": i64::MAX},
        ]},
        "budget": {"breaker": {"maxAffectedFaultDomains": "100%"}, "retry": {"retryPeriodSeconds": 0, "maxRetry": 1_000}},
        "strategy": {"ready": {"timeoutSeconds": 1_000_000, "minReadySeconds": 0}},
        "gates": [{"name": "g", "cel": "true"}],
    });
    for (place, value) in part.as_object().unwrap() {
        let fields = value.as_object().cloned();
        match (spec.get_mut(place).and_then(Value::as_object_mut), fields) {
            (Some(known), Some(fields)) => known.extend(fields),
            _ => spec[place] = value.clone(),
        }
    }
    compiled(spec)
}

/// Three members of which two have to go, one at a time.
fn world(part: &Value, mishaps: u8) -> World {
    let policy = policy(part);
    let removes_volumes = policy.strategy.volumes != Volumes::Retain;
    let keeping = |policy: &Policy| Policy {
        strategy: Strategy { volumes: Volumes::Retain, ..policy.strategy.clone() },
        ..policy.clone()
    };
    let lowered = Policy { budget: Budget { max: 1, ..policy.budget.clone() }, ..policy.clone() };
    World {
        policies: [policy.clone(), keeping(&policy), lowered.clone(), keeping(&lowered)],
        facts: world::facts(),
        places: vec![0, 1, 2],
        nodes: 4,
        max: 1,
        by_domain: false,
        removes_volumes,
        telling: Telling::Nobody,
        mishaps,
        restless: &[],
        is_careless: false,
    }
}

/// Three members of which two lose their volumes.
fn three(mishaps: u8) -> World {
    let part = json!({"budget": {"maxConcurrent": 2}, "strategy": {"volumes": {"policy": "Delete"}}});
    World { max: 2, ..world(&part, mishaps) }
}

/// Explores all of a world; how many states it has.
fn all_of(world: &World) -> usize {
    let (states, is_all) = world.explore(ALL_MAX).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(is_all, "there are more than {states} states");
    states
}

/// Explores what is nearest to the beginning of a larger world: a matter of seconds.
fn nearest_of(world: &World) -> usize {
    world.explore(NEAREST).unwrap_or_else(|broken| panic!("{broken}")).0
}

#[test]
fn three_members_lose_their_volumes_one_at_a_time_in_every_order_and_whenever_it_crashes() {
    let states = all_of(&three(0));
    assert!(states > 100, "{states}");
}

/// At any moment any member may fail, also between the last look and the act: no volume goes while another is not ready.
#[test]
fn three_members_lose_their_volumes_one_at_a_time_while_members_fail_and_recover_without_end() {
    let states = all_of(&World { restless: &[Restless::Members], ..three(0) });
    assert!(states > 3_000, "{states}");
}

#[test]
fn three_members_lose_their_volumes_one_at_a_time_while_their_taints_come_and_go_without_end() {
    let states = all_of(&World { restless: &[Restless::Taints], ..three(0) });
    assert!(states > 10_000, "{states}");
}

#[test]
fn three_members_lose_their_volumes_one_at_a_time_while_gate_and_sight_change_without_end() {
    for restless in [&[Restless::Gate], &[Restless::Sight]] {
        let states = all_of(&World { restless, ..three(0) });
        assert!(states > 1_000, "{states}");
    }
}

#[test]
fn three_members_lose_their_volumes_one_at_a_time_whatever_goes_wrong() {
    let states = nearest_of(&three(1));
    assert!(states >= NEAREST, "{states}");
}

#[test]
fn three_members_with_two_mishaps_and_volumes_that_cannot_leave() {
    let states = nearest_of(&world(&json!({"strategy": {"volumes": {"policy": "DeleteNodeLocal"}}}), 2));
    assert!(states >= NEAREST, "{states}");
}

#[test]
fn three_members_whose_nodes_may_take_them_back_lose_their_volumes_whatever_goes_wrong() {
    let part = json!({"strategy": {
        "volumes": {"policy": "Delete"}, "placement": {"requireUnschedulableNode": false},
    }});
    assert!(all_of(&world(&part, 0)) > 100);
    assert!(nearest_of(&world(&part, 1)) >= NEAREST);
}

fn handshake() -> Value {
    json!({"gates": [{"name": "g", "annotation": {"key": "done"}}], "strategy": {"volumes": {"policy": "Delete"}}})
}

fn operator() -> Value {
    json!({
        // When it is safe to remove the pod the operator knows.
        "gates": [{"name": "g", "cel": "true", "stage": "BeforeComplete"}],
        "strategy": {"type": "Delegate", "delegate": {"annotatePod": {"key": "remove", "value": "true"}}},
    })
}

#[test]
fn three_members_whose_answer_is_waited_for_whatever_goes_wrong() {
    let telling = Telling::Handshake;
    assert!(all_of(&World { telling, ..world(&handshake(), 0) }) > 100);
    assert!(nearest_of(&World { telling, ..world(&handshake(), 1) }) >= NEAREST);
}

#[test]
fn three_members_of_an_operator_whatever_goes_wrong() {
    let telling = Telling::Operator;
    assert!(all_of(&World { telling, ..world(&operator(), 0) }) > 100);
    assert!(nearest_of(&World { telling, ..world(&operator(), 1) }) >= NEAREST);
}

#[test]
fn four_members_on_two_hosts_leave_host_by_host() {
    let part = json!({"budget": {"maxConcurrent": 1, "byFaultDomain": true}});
    let on_two = World { places: vec![0, 0, 1, 1], nodes: 3, by_domain: true, ..world(&part, 1) };
    let states = nearest_of(&on_two);
    assert!(states >= NEAREST, "{states}");
    // To the end where one of the four is well.
    let states = all_of(&World { places: vec![0, 0, 1, 2], by_domain: true, ..world(&part, 0) });
    assert!(states > 5_000, "{states}");
}

#[test]
fn five_members_two_at_a_time() {
    let part = json!({"budget": {"maxConcurrent": 2}});
    let states = nearest_of(&World { places: vec![0, 0, 1, 2, 2], max: 2, ..world(&part, 1) });
    assert!(states >= NEAREST, "{states}");
    // To the end where two of the five have to go.
    let states = all_of(&World { places: vec![0, 1, 2, 2, 2], max: 2, ..world(&part, 0) });
    assert!(states > 500, "{states}");
}

/// Small enough for all of it, with a mishap anywhere: also late, when one is away and the budget is lowered.
#[test]
fn two_members_at_once_whatever_goes_wrong_to_the_end() {
    let part = json!({"budget": {"maxConcurrent": 2}});
    let world = World { places: vec![0, 1], nodes: 3, max: 2, ..world(&part, 1) };
    let (states, is_all) = world.explore(TWO_MAX).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(is_all, "there are more than {states} states");
}

/// What the explorer is there to notice: a controller that does not look again breaks the rules, and the way there is told.
#[test]
fn a_controller_that_does_not_look_again_before_it_acts_is_found_out() {
    let world = World { is_careless: true, ..three(1) };
    let broken = world.explore(NEAREST).unwrap_err();
    let way: Vec<&str> = broken.lines().collect();
    assert!(way[0].contains("although") || way[0].contains("while another is not ready"), "{broken}");
    assert!(way.len() > 5 && way.iter().any(|line| line.ends_with("Write")), "{broken}");
}
