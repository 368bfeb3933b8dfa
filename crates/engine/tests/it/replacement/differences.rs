//! What differs from FoundationDB's operator on purpose, and what an operator that is told may say and not say.

use berth_engine::replace::{Act, Feasibility, Phase, State, Sure};
use berth_engine::taint::NodeEffect;
use serde_json::{Value, json};

use super::fixtures::{START, World, after, condition, tolerates};

fn block() -> Value {
    json!({"replacements": {
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 60}], "taintReplacementTimeSeconds": 60,
    }})
}

/// The successor could go back to the same node, and would again and again.
///
/// Upstream: replacement-differences "PreferNoSchedule and tolerated taints".
#[test]
fn a_pasted_block_with_its_defaults_does_not_replace_where_the_successor_could_come_back() {
    for is_tolerated in [false, true] {
        let effect = if is_tolerated { NodeEffect::NoSchedule } else { NodeEffect::PreferNoSchedule };
        for (requires, is_replaced) in [(None, false), (Some(false), true)] {
            let mut spec = block();
            if let Some(requires) = requires {
                spec["strategy"] = json!({"placement": {"requireUnschedulableNode": requires}});
            }
            let mut world = World::of(2, spec);
            world.taint("n0", "soft", Some(after(-10)));
            world.tell_node("n0", |node| node.taints[0].effect = effect.clone());
            if is_tolerated {
                world.tell_pod("db-0", |pod| pod.tolerations = vec![tolerates("soft")]);
            }
            world.tell("db-0", |member| member.feasibility = Feasibility::Yes);
            world.run_to(after(600));
            assert_eq!(!world.begun().is_empty(), is_replaced, "{effect:?} {requires:?}");
            if !is_replaced {
                assert_eq!(world.state("db-0"), State::Queued);
                assert!(world.words("db-0").contains(&"NodeTakesItBack"), "{:?}", world.words("db-0"));
            }
        }
    }
}

/// Upstream counts a pod that stays pending as failed as well.
#[test]
fn a_pod_that_finds_no_node_fails_after_its_time() {
    let mut world = World::of(2, json!({"replacements": {"failureDetectionTimeSeconds": 100}}));
    world.tell_pod("db-0", |pod| {
        pod.node = None;
        pod.conditions = vec![condition("PodScheduled", "False", Some(START))];
    });
    world.look(after(100));
    assert_eq!(world.state("db-0"), State::Detected);
    world.look(after(101));
    assert_eq!(world.begun(), ["db-0"]);
}

fn delegated(more: &Value) -> Value {
    let mut delegate = json!({"patchOwner": {"list": "spec.gone"}});
    delegate.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut spec = block();
    spec["strategy"] = json!({"type": "Delegate", "delegate": delegate});
    spec
}

/// A member of which an operator has been told.
fn told(more: &Value) -> World {
    let mut world = World::of(2, delegated(more));
    world.taint("n0", "bad", Some(after(-600)));
    world.look(START);
    world.run_to(after(61));
    world.look(after(62));
    assert!(matches!(world.acts("db-0").as_slice(), [Act::Append { .. }]), "{:?}", world.words("db-0"));
    world.tell("db-0", |member| member.told = Sure::Yes);
    world.look(after(63));
    assert_eq!(world.state("db-0"), State::Course(Phase::Draining));
    world
}

#[test]
fn an_operator_that_says_when_it_is_done_is_waited_for_also_when_the_pod_is_gone() {
    let done = json!({"doneWhen": {"list": "status.members", "key": "id", "field": "excludedAt"}});
    for handed in [Sure::No, Sure::Unknown] {
        let mut world = told(&done);
        world.tell("db-0", |member| {
            member.pod = berth_engine::replace::Known::Known(None);
            member.handed = handed;
        });
        world.look(after(100));
        assert_eq!(world.state("db-0"), State::Course(Phase::Draining), "{handed:?}");
        assert_eq!(world.words("db-0"), ["AwaitsOperator"]);
        world.tell("db-0", |member| member.handed = Sure::Yes);
        world.look(after(101));
        assert_ne!(world.state("db-0"), State::Course(Phase::Draining));
    }
    // Whoever was never told has nothing to say.
    let mut world = told(&done);
    world.tell("db-0", |member| {
        member.pod = berth_engine::replace::Known::Known(None);
        (member.told, member.handed) = (Sure::No, Sure::No);
    });
    world.look(after(100));
    assert_eq!(world.state("db-0"), State::Course(Phase::Aborted));
}

#[test]
fn an_operator_has_as_much_time_as_the_policy_says() {
    let mut world = told(&json!({"timeoutSeconds": 1000}));
    let plan = world.look(after(900));
    assert_eq!(world.state("db-0"), State::Course(Phase::Draining));
    assert!(plan.deadline > after(1_000) && plan.deadline <= after(1_100), "{:?}", plan.deadline);
    world.look(plan.deadline);
    assert_eq!(world.state("db-0"), State::Course(Phase::Failed));
    let mut world = told(&json!({}));
    world.look(after(100_000_000));
    assert_eq!(world.state("db-0"), State::Course(Phase::Draining), "for ever unless it says");
}

/// A pod that may stay for five minutes, is due after two and is held up, may well be deleted by Kubernetes first.
#[test]
fn a_race_is_told_while_a_member_is_held_up() {
    let mut spec = block();
    spec["pauseRequests"] = json!(["upgrade"]);
    let mut world = World::of(2, spec);
    world.taint("n0", "out", Some(START));
    world.tell_node("n0", |node| node.taints[0].effect = NodeEffect::NoExecute);
    world.tell_pod("db-0", |pod| {
        let mut toleration = tolerates("out");
        toleration.seconds = Some(300);
        pod.tolerations = vec![toleration];
    });
    world.tell("db-0", |member| member.feasibility = Feasibility::Yes);
    world.look(START);
    assert!(!world.words("db-0").contains(&"TaintEvictionRace"), "we are faster");
    world.run_to(after(130));
    assert_eq!(world.state("db-0"), State::Queued);
    assert!(world.words("db-0").contains(&"TaintEvictionRace"), "{:?}", world.words("db-0"));
}
