//! Budgets that change while members are being replaced.

use berth_engine::replace::{Act, Known, Phase, Readiness, State, Verdict};
use serde_json::{Value, json};

use super::course::policy;
use super::fixtures::{START, World, after};

fn spec(max: usize, part: &Value) -> Value {
    let mut budget = json!({"maxConcurrent": max, "breaker": {"maxAffectedFaultDomains": "100%"}});
    budget.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    policy(json!({
        "budget": budget, "gates": [{"name": "g", "cel": "true"}],
        "strategy": {"ready": {"minReadySeconds": 0, "timeoutSeconds": 600}},
    }))
}

/// Three members of which two have begun and wait for a gate.
fn two_under_way(part: &Value) -> World {
    let mut world = World::of(3, spec(2, part));
    for node in ["n0", "n1"] {
        world.taint(node, "a", None);
    }
    for name in ["db-0", "db-1"] {
        world.tell(name, |member| member.gates = vec![Verdict::Deny]);
    }
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-0", "db-1"]);
    world
}

fn open(world: &mut World) {
    for name in ["db-0", "db-1"] {
        world.tell(name, |member| member.gates = vec![Verdict::Pass]);
    }
}

fn evicts(world: &World, name: &str) -> bool {
    world.acts(name).iter().any(|act| matches!(act, Act::Evict { .. }))
}

#[test]
fn who_is_beyond_a_budget_that_was_lowered_goes_no_further_until_there_is_a_place() {
    let mut world = two_under_way(&json!({}));
    world.set_policy(spec(1, &json!({})));
    open(&mut world);
    world.look(after(2));
    assert!(evicts(&world, "db-0"), "one may");
    assert_eq!((world.state("db-1"), world.acts("db-1")), (State::Course(Phase::Gating), vec![]));
    assert!(world.words("db-1").contains(&"BudgetFull"), "{:?}", world.words("db-1"));
    world.restart();
    world.recreate("db-0", "spare", 1, after(3));
    world.unready(&["db-0"]);
    world.look(after(3));
    assert_eq!(world.acts("db-1"), [], "the first has its place until its successor is ready");
    world.tell_pod("db-0", |pod| pod.ready = Readiness::Since(after(4)));
    world.unready(&[]);
    world.look(after(5));
    assert_eq!(world.state("db-0"), State::Course(Phase::Done));
    world.look(after(6));
    assert!(evicts(&world, "db-1"), "{:?}", world.words("db-1"));
}

#[test]
fn whoever_is_furthest_keeps_the_place() {
    let mut world = two_under_way(&json!({}));
    world.tell("db-1", |member| member.gates = vec![Verdict::Pass]);
    world.look(after(2));
    assert!(evicts(&world, "db-1"));
    world.set_policy(spec(1, &json!({})));
    open(&mut world);
    world.look(after(3));
    assert_eq!((evicts(&world, "db-0"), evicts(&world, "db-1")), (false, true));
    world.tell("db-1", |member| member.pod = Known::Known(None));
    world.unready(&["db-1"]);
    world.look(after(4));
    assert_eq!((world.acts("db-0"), world.state("db-1")), (vec![], State::Course(Phase::AwaitingSuccessor)));
}

#[test]
fn nobody_goes_on_where_none_may_any_more_but_for_those_whose_pod_is_gone() {
    let mut world = two_under_way(&json!({}));
    world.tell("db-1", |member| member.pod = Known::Known(None));
    world.look(after(2));
    assert_eq!(world.state("db-1"), State::Course(Phase::Aborted), "it went by itself");
    world.set_policy(spec(0, &json!({})));
    open(&mut world);
    world.look(after(3));
    assert_eq!((world.state("db-0"), world.acts("db-0")), (State::Course(Phase::Gating), vec![]));
    world.set_policy(spec(1, &json!({})));
    world.look(after(4));
    assert!(evicts(&world, "db-0"));
}

#[test]
fn a_lowered_budget_of_fault_domains_lets_one_domain_be_emptied_and_holds_the_other() {
    let by_domain = json!({"byFaultDomain": true});
    let mut world = two_under_way(&by_domain);
    world.set_policy(spec(1, &by_domain));
    open(&mut world);
    world.look(after(2));
    assert_eq!((evicts(&world, "db-0"), evicts(&world, "db-1")), (true, false));
    assert!(world.words("db-1").contains(&"DomainsFull"), "{:?}", world.words("db-1"));
}
