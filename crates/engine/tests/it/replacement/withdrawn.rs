//! What is withdrawn: a cause, a policy's word, a membership. Nothing is removed by what was said before.

use berth_engine::replace::{Act, Known, NodeFact, Phase, Policy, State, Sure, Verdict};
use serde_json::{Value, json};

use super::course::{begun, deletes, evict, policy};
use super::fixtures::{START, World, after, claim, compiled};

#[test]
fn an_annotation_is_taken_back_when_it_is_called_off() {
    let spec = json!({"strategy": {
        "type": "Delegate", "delegate": {"annotatePod": {"key": "strimzi.io/manual-rolling-update", "value": "true"}},
    }});
    let mut world = begun(2, spec);
    world.look(after(2));
    assert!(
        matches!(&world.acts("db-0")[..], [Act::Annotate { key, .. }] if &**key == "strimzi.io/manual-rolling-update")
    );
    world.tell("db-0", |member| member.told = Sure::Yes);
    world.untaint("n0", "a");
    world.look(after(3));
    assert!(matches!(&world.acts("db-0")[..], [Act::Retract { .. }]));
    world.restart();
    world.look(after(4));
    assert!(matches!(&world.acts("db-0")[..], [Act::Retract { .. }]), "also by who comes after a crash");
    world.fleet.set_policy(&world.key.clone(), frozen(json!({"strategy": {
        "type": "Delegate", "delegate": {"annotatePod": {"key": "strimzi.io/manual-rolling-update", "value": "true"}},
    }})), None);
    world.look(after(5));
    assert_eq!(
        (world.acts("db-0"), world.words("db-0")),
        (vec![], vec!["Frozen"]),
        "not while all is stopped"
    );
    world.tell("db-0", |member| member.told = Sure::No);
    world.look(after(6));
    assert_eq!((world.acts("db-0"), world.state("db-0")), (vec![], State::Course(Phase::Aborted)));
    world.tell("db-0", |member| member.told = Sure::Yes);
    world.look(after(7));
    assert!(world.acts("db-0").is_empty(), "what is there since then is somebody else's");
}

fn frozen(part: Value) -> Policy {
    let mut policy = compiled(policy(part));
    policy.frozen = Some("an outage".into());
    policy
}

/// A member of which it is written that its claim goes, and it has not.
fn about_to_lose_its_volume(part: Value) -> World {
    let mut spec = json!({
        "triggers": {"taints": [
            {"key": "a"}, {"key": "a", "value": "planned", "intent": "Temporary"},
            {"key": "never", "durationSeconds": i64::MAX}, {"key": "late", "durationSeconds": 3_600},
        ]},
        "strategy": {"volumes": {"policy": "Delete"}},
    });
    spec.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    let mut world = begun(3, spec);
    world.look(after(2));
    assert!(deletes(&world), "{:?}", world.words("db-0"));
    assert_eq!(world.state("db-0"), State::Course(Phase::RemovingVolumes));
    world
}

fn turns_back(world: &World) -> bool {
    world.acts("db-0") == [Act::TurnBack]
}

#[test]
fn claims_stay_once_the_policy_says_so_whatever_was_written() {
    for volumes in
        [json!({"policy": "Retain"}), json!({"policy": "Delete", "storageClassNames": ["another"]})]
    {
        let mut world = about_to_lose_its_volume(json!({}));
        world.set_policy(policy(json!({"strategy": {"volumes": volumes}})));
        world.restart();
        world.look(after(3));
        assert!(turns_back(&world), "{volumes}: {:?}", world.acts("db-0"));
        assert_eq!(world.words("db-0"), ["VolumesStay"]);
    }
    let both = |world: &mut World, is_leaving: bool| {
        world.tell("db-0", |member| {
            let mut other = claim("db-0", 7);
            (other.name, other.class) = ("logs-db-0".into(), Some("slow".into()));
            let mut data = claim("db-0", 0);
            data.is_leaving = is_leaving;
            member.claims = Known::Known(vec![data, other]);
        });
    };
    let mut world = World::of(1, policy(json!({"strategy": {"volumes": {"policy": "Delete"}}})));
    both(&mut world, false);
    world.taint("n0", "a", None);
    for second in 0..3 {
        world.look(after(second));
    }
    assert_eq!(world.acts("db-0").len(), 2);
    world.set_policy(policy(
        json!({"strategy": {"volumes": {"policy": "Delete", "storageClassNames": ["local"]}}}),
    ));
    world.look(after(3));
    let delete = Act::DeleteClaim { claim: "data-db-0".into(), uid: "data-db-0-0".into() };
    assert_eq!(world.acts("db-0"), [delete], "the other one stays");
    both(&mut world, true);
    world.look(after(4));
    assert!(evict(&world) && !deletes(&world));
}

#[test]
fn claims_stay_once_the_node_is_to_come_back_whatever_was_written() {
    let mut world = about_to_lose_its_volume(json!({}));
    world.tell_node("n0", |node| node.taints[0].value = "planned".into());
    world.look(after(3));
    assert!(turns_back(&world), "{:?}", world.acts("db-0"));
    world.look(after(4));
    assert!(turns_back(&world), "{:?}", world.acts("db-0"));
    assert_eq!(world.words("db-0"), ["VolumesStay"], "it is due again, but not for its volumes");
}

#[test]
fn claims_stay_once_the_cause_is_gone_whatever_is_beside_it() {
    for (beside, on_cleared) in
        [("never", "BeforePointOfNoReturn"), ("late", "BeforePointOfNoReturn"), ("never", "Never")]
    {
        let mut world = about_to_lose_its_volume(json!({"cancel": {"onCleared": on_cleared}}));
        world.taint("n0", beside, None);
        world.look(after(3));
        assert!(deletes(&world), "{beside}");
        world.untaint("n0", "a");
        world.look(after(4));
        assert!(turns_back(&world), "{beside}, {on_cleared}: {:?}", world.acts("db-0"));
    }
}

#[test]
fn a_taint_that_does_nothing_keeps_no_replacement_going() {
    let mut world = World::of(
        2,
        json!({
            "triggers": {"taints": [{"key": "a"}, {"key": "never", "durationSeconds": i64::MAX}]},
            "gates": [{"name": "g", "cel": "true"}],
        }),
    );
    world.taint("n0", "never", Some(after(-1_000)));
    world.taint("n0", "a", None);
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-0"]);
    world.untaint("n0", "a");
    world.look(after(2));
    assert_eq!((world.state("db-0"), world.words("db-0")), (State::Course(Phase::Aborted), vec!["Cleared"]));
}

#[test]
fn a_replacement_goes_on_for_another_cause_that_is_due_as_well() {
    let mut world = World::of(
        2,
        json!({
            "triggers": {"taints": [{"key": "a"}, {"key": "b"}]}, "gates": [{"name": "g", "cel": "true"}],
        }),
    );
    world.taint("n0", "a", None);
    world.look(START);
    world.look(after(1));
    world.taint("n0", "b", None);
    world.look(after(2));
    world.untaint("n0", "a");
    world.look(after(3));
    assert_eq!(world.state("db-0"), State::Course(Phase::Gating));
}

#[test]
fn clocks_that_a_disabled_policy_forgot_begin_anew() {
    let spec = |mode: &str| {
        json!({
            "mode": mode, "triggers": {"taints": [{"key": "a", "durationSeconds": 100}]},
            "gates": [{"name": "g", "cel": "true"}],
        })
    };
    let mut world = World::of(1, spec("Enforce"));
    world.taint("n0", "a", None);
    world.look(START);
    world.look(after(101));
    assert_eq!(world.begun(), ["db-0"]);
    world.set_policy(spec("Disabled"));
    world.look(after(102));
    world.set_policy(spec("Enforce"));
    world.look(after(103));
    assert_eq!(world.state("db-0"), State::Course(Phase::Aborted), "what is seen has only just begun");
}

#[test]
fn a_node_that_cannot_be_read_holds_whatever_the_placement() {
    for volumes in ["Retain", "Delete"] {
        let spec = json!({"strategy": {
            "volumes": {"policy": volumes},
            "placement": {"requireUnschedulableNode": false, "requireFeasibleTarget": false},
        }});
        let mut world = begun(2, spec);
        world.look(after(2));
        assert!(evict(&world) || deletes(&world));
        world.node_is("n0", NodeFact::Unknown);
        world.look(after(3));
        assert_eq!((world.acts("db-0"), world.words("db-0")), (vec![], vec!["NodeUnknown"]), "{volumes}");
    }
}

#[test]
fn claims_that_others_use_are_never_removed() {
    for (is_own, removed, word) in
        [(Sure::Yes, 2, ""), (Sure::No, 1, ""), (Sure::Unknown, 0, "ClaimUsersUnknown")]
    {
        let mut world = World::of(1, policy(json!({"strategy": {"volumes": {"policy": "Delete"}}})));
        world.tell("db-0", |member| {
            let mut shared = claim("db-0", 7);
            (shared.name, shared.is_own) = ("backups".into(), is_own);
            member.claims = Known::Known(vec![claim("db-0", 0), shared]);
        });
        world.taint("n0", "a", None);
        for second in 0..3 {
            world.look(after(second));
        }
        let acts = world.acts("db-0");
        let deleted = acts.iter().filter(|act| matches!(act, Act::DeleteClaim { .. })).count();
        assert_eq!(deleted, removed, "{is_own:?}");
        assert_eq!(world.words("db-0").contains(&word), !word.is_empty(), "{:?}", world.words("db-0"));
    }
}

#[test]
fn a_member_that_the_policy_no_longer_speaks_of_is_let_go() {
    let mut world = begun(2, json!({"gates": [{"name": "g", "cel": "true"}]}));
    world.tell("db-0", |member| (member.is_dismissed, member.gates) = (true, vec![Verdict::Pass]));
    world.look(after(2));
    assert_eq!((world.state("db-0"), world.words("db-0")), (State::Course(Phase::Aborted), vec!["NotMeant"]));

    let mut world = about_to_lose_its_volume(json!({}));
    world.tell("db-0", |member| member.is_dismissed = true);
    world.look(after(3));
    assert!(turns_back(&world));
    world.tell("db-0", |member| {
        let mut leaving = claim("db-0", 0);
        leaving.is_leaving = true;
        member.claims = Known::Known(vec![leaving]);
    });
    world.look(after(4));
    assert_eq!(
        (world.acts("db-0"), world.words("db-0")),
        (vec![], vec!["NotMeant"]),
        "and nothing more is done"
    );
}

#[test]
fn what_stops_a_replacement_also_spares_a_successor_that_is_stuck() {
    let stuck = || {
        let mut world = begun(2, json!({}));
        world.look(after(2));
        world.recreate("db-0", "spare", 1, after(3));
        world.unready(&["db-0"]);
        world.tell_pod("db-0", |pod| (pod.is_stuck, pod.node) = (true, None));
        world
    };
    let mut world = stuck();
    world.set_policy(policy(json!({"mode": "DryRun"})));
    world.look(after(4));
    assert!(world.acts("db-0").is_empty() && world.words("db-0").contains(&"NotEnforced"));
    let mut world = stuck();
    world.tell("db-0", |member| member.word.suspend = true);
    world.look(after(4));
    assert!(world.acts("db-0").is_empty() && world.words("db-0").contains(&"Suspended"));
    let mut world = stuck();
    world.tell_pod("db-0", |pod| pod.is_skipped = true);
    world.look(after(4));
    assert!(world.acts("db-0").is_empty() && world.words("db-0").contains(&"Skipped"));
}
