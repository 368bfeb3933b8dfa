//! What is counted: members that have no names of their own, attempts, and time.

use berth_engine::replace::{Act, Known, Phase, Readiness, State, Sure};
use serde_json::json;

use super::course::{begun, deletes, evict, policy};
use super::fixtures::{START, World, after, claim};

#[test]
fn an_operator_is_told_by_a_list_and_then_left_to_it() {
    let spec = json!({"strategy": {"type": "Delegate", "delegate": {"patchOwner": {
        "list": "spec.processGroupsToRemove", "entryFromLabel": "foundationdb.org/fdb-process-group-id",
    }}}});
    let mut world = begun(2, spec);
    world.tell_target(|target| (target.is_settled, target.is_silent) = (Sure::Unknown, true));
    world.tell_pod("db-0", |pod| {
        pod.labels.insert("foundationdb.org/fdb-process-group-id".into(), "storage-1".into());
    });
    world.look(after(2));
    let append = Act::Append { list: "spec.processGroupsToRemove".into(), entry: "storage-1".into() };
    assert_eq!((world.state("db-0"), world.acts("db-0")), (State::Course(Phase::Draining), vec![append]));
    world.tell("db-0", |member| member.told = Sure::Yes);
    world.untaint("n0", "a");
    world.look(after(3));
    assert_eq!(
        (world.acts("db-0"), world.words("db-0")),
        (vec![], vec!["AwaitsOperator"]),
        "nobody takes it back"
    );
    world.tell("db-0", |member| (member.pod, member.has_no_successor) = (Known::Known(None), true));
    world.look(after(4));
    let awaiting = State::Course(Phase::AwaitingSuccessor);
    assert_eq!(world.state("db-0"), awaiting, "nobody knows how many there should be");
    assert!(world.words("db-0").contains(&"MembersUnknown"));
    world.muster(&["db-1"], Some(2));
    world.look(after(5));
    assert_eq!(world.state("db-0"), awaiting, "one is missing");
    assert!(world.words("db-0").contains(&"MembersMissing"));
    world.unready(&["db-7"]);
    world.look(after(6));
    assert_eq!(world.state("db-0"), awaiting, "it is there, and not ready");
    world.unready(&[]);
    world.muster(&["db-1", "db-7"], Some(2));
    let plan = world.look(after(7));
    assert_eq!((world.state("db-0"), plan.deadline), (State::Course(Phase::Verifying), after(67)));
    world.muster(&["db-1"], Some(2));
    world.look(after(8));
    assert_eq!(world.state("db-0"), awaiting, "and gone again");
    world.muster(&["db-1", "db-8"], Some(2));
    world.look(after(9));
    world.look(after(68));
    assert_eq!(world.state("db-0"), State::Course(Phase::Verifying), "ready, but not for long enough");
    world.look(after(69));
    assert_eq!(world.state("db-0"), State::Course(Phase::Done));
}

#[test]
fn where_members_have_no_names_they_are_counted() {
    let spec = policy(json!({
        "budget": {"maxConcurrent": 2, "breaker": {"maxAffectedFaultDomains": "100%"}},
        "strategy": {"volumes": {"policy": "Delete"}},
    }));
    let mut world = World::of(3, spec);
    world.tell_target(|target| target.is_silent = true);
    world.muster(&["db-0", "db-1", "db-2"], None);
    for name in ["db-0", "db-1"] {
        world.tell(name, |member| member.has_no_successor = true);
    }
    world.taint("n0", "a", None);
    world.taint("n1", "a", None);
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-0"]);
    assert_eq!(world.memory("db-0").course.unwrap().members, Some(3));
    world.look(after(2));
    assert!(deletes(&world));
    world.muster(&["db-0", "db-2"], None);
    world.restart();
    world.look(after(3));
    assert!(!deletes(&world), "one went while nobody told its name: {:?}", world.words("db-0"));
    world.muster(&["db-0", "db-1", "db-2"], None);
    world.tell("db-0", |member| {
        let mut leaving = claim("db-0", 0);
        leaving.is_leaving = true;
        member.claims = Known::Known(vec![leaving]);
    });
    world.look(after(4));
    assert!(evict(&world));
    world.tell("db-0", |member| member.pod = Known::Known(None));
    world.muster(&["db-1", "db-2"], None);
    for second in [5, 100, 1_000] {
        world.look(after(second));
        assert_eq!(world.state("db-0"), State::Course(Phase::AwaitingSuccessor), "after {second} s");
        assert_eq!(world.begun(), [] as [&str; 0], "its successor is not there");
    }
    world.muster(&["db-1", "db-2", "db-9"], None);
    world.look(after(1_001));
    world.look(after(1_061));
    assert_eq!(world.state("db-0"), State::Course(Phase::Done));
    world.look(after(1_062));
    assert_eq!(world.begun(), ["db-1"]);
}

#[test]
fn an_owner_that_says_nothing_of_how_far_it_is_holds_only_volumes() {
    for (volumes, begins) in [("Retain", true), ("Delete", false)] {
        let mut world = World::of(2, policy(json!({"strategy": {"volumes": {"policy": volumes}}})));
        world.tell_target(|target| (target.is_settled, target.is_silent) = (Sure::Unknown, true));
        world.muster(&["db-0", "db-1"], Some(2));
        world.taint("n0", "a", None);
        world.look(START);
        world.look(after(1));
        assert_eq!(!world.begun().is_empty(), begins, "{volumes}: {:?}", world.words("db-0"));
    }
}

#[test]
fn a_replacement_counts_once_whatever_the_clock_says() {
    let spec = policy(json!({
        "strategy": {"ready": {"minReadySeconds": 0}},
        "budget": {"cooldownSeconds": 60, "retry": {"retryPeriodSeconds": 100, "maxRetry": 5}},
    }));
    let mut world = World::of(2, spec);
    world.taint("n0", "a", None);
    world.look(START);
    world.look(after(1));
    world.look(after(2));
    world.recreate("db-0", "spare", 1, after(10_000));
    world.tell_pod("db-0", |pod| pod.ready = Readiness::Since(after(10_000)));
    world.look(after(10_000));
    assert_eq!(world.state("db-0"), State::Course(Phase::Done));
    assert_eq!(world.memory("db-0").record.attempts, 0, "it is not written yet");
    // The clock was an hour and more ahead.
    world.tell_pod("db-0", |pod| pod.arrived = Some(after(100)));
    world.taint("spare", "a", None);
    for second in [100, 101, 102] {
        world.look(after(second));
        world.restart();
        assert_eq!(world.memory("db-0").record.attempts, 1, "after {second} s");
    }
    assert!(world.words("db-0").contains(&"RetryLater"), "{:?}", world.words("db-0"));
    world.look(after(200));
    assert_eq!(world.begun(), ["db-0"], "{:?}", world.words("db-0"));
}

#[test]
fn what_never_marks_a_member_does_not_keep_it_from_a_new_beginning() {
    let spec = json!({
        "triggers": {"taints": [{"key": "a"}, {"key": "never", "durationSeconds": i64::MAX}]},
        "strategy": {"ready": {"minReadySeconds": 0}},
        "budget": {"retry": {"minHealthySeconds": 1_000, "retryPeriodSeconds": 0}},
    });
    let mut world = World::of(1, spec);
    world.taint("n0", "a", None);
    for second in 0..3 {
        world.look(after(second));
    }
    world.recreate("db-0", "spare", 1, after(3));
    world.taint("spare", "never", None);
    world.tell_pod("db-0", |pod| pod.ready = Readiness::Since(after(4)));
    world.look(after(4));
    world.look(after(5));
    assert_eq!(world.memory("db-0").record.attempts, 1);
    world.taint("spare", "a", None);
    world.look(after(5_000));
    world.look(after(5_001));
    assert_eq!(world.memory("db-0").record.attempts, 0, "it was well for long enough");
}

#[test]
fn a_node_that_was_not_ready_and_falls_silent_keeps_its_clock_for_longer_than_a_look() {
    let spec = json!({"triggers": {"taints": [{"key": "*", "durationSeconds": 100}]}});
    let mut world = World::of(1, spec);
    world.taint("n0", "node.kubernetes.io/not-ready", Some(START));
    world.look(after(50));
    world.untaint("n0", "node.kubernetes.io/not-ready");
    world.taint("n0", "node.kubernetes.io/unreachable", Some(after(60)));
    for second in [61, 62, 90] {
        world.look(after(second));
        assert_eq!(world.memory("db-0").sightings[0].since, START, "after {second} s");
        world.restart();
    }
    world.look(after(101));
    assert_eq!(world.begun(), ["db-0"]);
}
