//! The way of one replacement, phase by phase.

use berth_engine::Moment;
use berth_engine::replace::{
    Act, Demand, Feasibility, Known, Misfit, Phase, Policy, Readiness, State, Strategy, Sure, Verdict,
};
use serde_json::{Value, json};

use super::fixtures::{START, World, after, claim, compiled};

/// A policy by which a tainted member is due a second later.
pub(super) fn policy(part: Value) -> Value {
    let mut spec = json!({"triggers": {"taints": [{"key": "a"}]}});
    spec.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    spec
}

pub(super) fn begun(members: usize, part: Value) -> World {
    let mut world = World::of(members, policy(part));
    world.taint("n0", "a", None);
    world.look(START);
    assert_eq!(world.state("db-0"), State::Detected);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-0"]);
    assert_eq!(world.state("db-0"), State::Course(Phase::Gating));
    world
}

pub(super) fn evict(world: &World) -> bool {
    world.acts("db-0").iter().any(|act| matches!(act, Act::Evict { .. }))
}

pub(super) fn deletes(world: &World) -> bool {
    world.acts("db-0").iter().any(|act| matches!(act, Act::DeleteClaim { .. }))
}

#[test]
fn a_member_whose_volumes_stay_is_evicted_awaited_and_verified() {
    let mut world = begun(3, json!({}));
    world.look(after(2));
    assert_eq!(world.state("db-0"), State::Course(Phase::RemovingPod));
    assert_eq!(world.acts("db-0"), [Act::Evict { uid: "db-0-uid-0".into() }]);
    world.restart();
    world.look(after(3));
    assert_eq!(world.acts("db-0"), [Act::Evict { uid: "db-0-uid-0".into() }], "and again after a crash");
    world.tell_pod("db-0", |pod| pod.is_leaving = true);
    world.look(after(4));
    assert_eq!((world.acts("db-0"), world.words("db-0")), (vec![], vec!["AwaitsTheEndOfThePod"]));
    world.recreate("db-0", "spare", 1, after(5));
    world.unready(&["db-0"]);
    let plan = world.look(after(5));
    assert_eq!(
        (world.state("db-0"), plan.deadline),
        (State::Course(Phase::AwaitingSuccessor), after(5 + 1_800))
    );
    world.tell_pod("db-0", |pod| pod.ready = Readiness::Since(after(10)));
    world.unready(&[]);
    world.restart();
    let plan = world.look(after(11));
    assert_eq!((world.state("db-0"), plan.deadline), (State::Course(Phase::Verifying), after(70)));
    world.look(after(70));
    assert_eq!((world.state("db-0"), world.words("db-0")), (State::Course(Phase::Done), vec!["Completed"]));
    world.restart();
    world.look(after(71));
    assert_eq!(world.state("db-0"), State::Healthy);
    assert_eq!(world.memory("db-0").record.attempts, 1);
}

#[test]
fn claims_go_before_the_pod_and_the_pod_only_when_they_are_on_their_way() {
    let volumes =
        json!({"strategy": {"volumes": {"policy": "DeleteNodeLocal", "setReclaimPolicy": "Retain"}}});
    let mut world = begun(3, volumes);
    world.look(after(2));
    assert_eq!(world.state("db-0"), State::Course(Phase::RemovingVolumes));
    let [uid, name] = ["data-db-0-0", "data-db-0"].map(Box::from);
    let keep = Act::KeepVolume { claim: Box::clone(&name), uid: Box::clone(&uid) };
    let delete = Act::DeleteClaim { claim: name, uid };
    assert_eq!(world.acts("db-0"), [keep, delete.clone()]);
    for demand in [Demand::Peers, Demand::Gates, Demand::EvictionTrial, Demand::Replacements, Demand::Claims]
    {
        assert!(delete.demands().contains(&demand));
    }
    assert!(world.memory("db-0").course.unwrap().point_of_no_return.is_some(), "written before it is done");
    world.restart();
    world.untaint("n0", "a");
    world.tell("db-0", |member| member.word.cancel = true);
    world.look(after(3));
    assert_eq!(
        world.acts("db-0"),
        [Act::TurnBack],
        "unless a look at the server shows that nothing has gone"
    );
    world.tell("db-0", |member| {
        let mut leaving = claim("db-0", 0);
        leaving.is_leaving = true;
        member.claims = Known::Known(vec![leaving]);
    });
    world.unready(&["db-2"]);
    world.look(after(4));
    assert_eq!(world.state("db-0"), State::Course(Phase::RemovingPod));
    assert!(!evict(&world), "what is lost is lost with the pod");
    assert!(world.words("db-0").contains(&"TooLateToCancel"));
    world.unready(&[]);
    world.taint("n0", "a", None);
    world.look(after(5));
    assert!(evict(&world));
}

#[test]
fn only_claims_that_are_surely_meant_are_removed() {
    let with = |volumes: Value| json!({"strategy": {"volumes": volumes}});
    let local = with(json!({"policy": "DeleteNodeLocal"}));
    let cases: [(&str, Value, Sure, bool, &str); 5] = [
        ("a local one", local.clone(), Sure::Yes, true, ""),
        ("one that can leave", local.clone(), Sure::No, false, ""),
        ("any, where all go", with(json!({"policy": "Delete"})), Sure::Unknown, true, ""),
        (
            "of another class",
            with(json!({"policy": "Delete", "storageClassNames": ["fast"]})),
            Sure::Yes,
            false,
            "",
        ),
        ("nobody knows", local.clone(), Sure::Unknown, false, "ClaimLocalityUnknown"),
    ];
    for (name, part, is_local, is_removed, held) in cases {
        let mut world = World::of(1, policy(part));
        world.taint("n0", "a", None);
        world.tell("db-0", |member| {
            let mut claim = claim("db-0", 0);
            claim.is_local = is_local;
            member.claims = Known::Known(vec![claim]);
        });
        for second in 0..3 {
            world.look(after(second));
        }
        assert_eq!(deletes(&world), is_removed, "{name}");
        assert_eq!(world.words("db-0").contains(&held), !held.is_empty(), "{name}");
    }
    let mut world = World::of(1, policy(local));
    world.taint("n0", "a", None);
    world.tell("db-0", |member| member.claims = Known::Unknown);
    world.look(START);
    world.look(after(1));
    assert!(world.words("db-0").contains(&"ClaimsUnknown"));
}

#[test]
fn a_node_that_comes_back_keeps_its_volumes() {
    let spec = json!({
        "triggers": {"taints": [{"key": "a", "intent": "Temporary"}]},
        "strategy": {"volumes": {"policy": "Delete"}},
    });
    let mut world = begun(1, spec);
    world.look(after(2));
    assert!(evict(&world) && !deletes(&world));
}

#[test]
fn a_claim_that_somebody_else_deletes_is_not_lost_by_us() {
    let mut world = begun(1, json!({}));
    world.tell("db-0", |member| {
        let mut leaving = claim("db-0", 0);
        leaving.is_leaving = true;
        member.claims = Known::Known(vec![leaving]);
    });
    world.look(after(2));
    assert!(!evict(&world) && world.words("db-0").contains(&"ClaimLeaving"));
}

#[test]
fn only_one_member_of_a_workload_loses_its_volumes_at_a_time_whatever_the_budget() {
    let spec = json!({
        "budget": {"maxConcurrent": 10, "breaker": {"maxAffectedFaultDomains": "100%"}},
        "strategy": {"volumes": {"policy": "Delete"}},
    });
    let mut world = World::of(3, policy(spec));
    for node in ["n0", "n1", "n2"] {
        world.taint(node, "a", None);
    }
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-0"]);
    assert!(world.words("db-1").contains(&"VolumeTurn"));
}

#[test]
fn the_successor_must_have_a_place_and_not_the_old_one() {
    let mut world = World::of(1, policy(json!({})));
    world.taint("n0", "a", None);
    world.tell_node("n0", |node| {
        node.taints[0].effect = berth_engine::taint::NodeEffect::PreferNoSchedule;
    });
    world.tell("db-0", |member| member.feasibility = Feasibility::No([Misfit::Cordoned].into()));
    world.look(START);
    world.look(after(1));
    let words = world.words("db-0");
    assert!(words.contains(&"NodeTakesItBack") && words.contains(&"NoFeasibleTarget"), "{words:?}");
    world.tell_node("n0", |node| node.is_cordoned = true);
    world.tell("db-0", |member| member.feasibility = Feasibility::default());
    world.look(after(2));
    assert!(world.words("db-0").contains(&"FeasibilityUnknown"));
    world.tell("db-0", |member| member.feasibility = Feasibility::Yes);
    world.look(after(3));
    assert_eq!(world.begun(), ["db-0"]);
}

#[test]
fn a_gate_that_shuts_between_the_check_and_the_act_stops_the_act() {
    let mut world = World::of(2, policy(json!({"gates": [{"name": "healthy", "cel": "true"}]})));
    world.taint("n0", "a", None);
    world.tell("db-0", |member| member.gates = vec![Verdict::Pass]);
    for second in 0..3 {
        world.look(after(second));
    }
    let act = Act::Evict { uid: "db-0-uid-0".into() };
    assert!(evict(&world) && world.fleet.confirm(&world.key, "db-0", &act, after(3)).is_ok());
    for verdict in [Verdict::Deny, Verdict::Unknown, Verdict::InProgress] {
        world.tell("db-0", |member| member.gates = vec![verdict]);
        let why = world.fleet.confirm(&world.key, "db-0", &act, after(3)).unwrap_err();
        assert_eq!(why.last().map(berth_engine::replace::Reason::word), Some("GateShut"), "{verdict:?}");
    }
}

#[test]
fn a_gate_that_stays_shut_blocks_gives_up_or_is_passed_by_as_it_says() {
    let gate = |on_timeout: &str| {
        policy(
            json!({"gates": [{"name": "g", "cel": "true", "timeoutSeconds": 100, "onTimeout": on_timeout}]}),
        )
    };
    for (on_timeout, state) in [
        ("Block", State::Course(Phase::Gating)),
        ("Abort", State::Course(Phase::Aborted)),
        ("Proceed", State::Course(Phase::RemovingPod)),
    ] {
        let mut world = World::of(1, gate(on_timeout));
        world.taint("n0", "a", None);
        world.tell("db-0", |member| member.gates = vec![Verdict::Deny]);
        world.look(START);
        world.look(after(1));
        let plan = world.look(after(2));
        assert_eq!(world.state("db-0"), State::Course(Phase::Gating));
        let expected = if on_timeout == "Block" { Moment::NEVER } else { after(102) };
        assert_eq!(plan.deadline, expected, "{on_timeout}");
        world.restart();
        world.look(after(101));
        assert_eq!(world.state("db-0"), State::Course(Phase::Gating), "{on_timeout}");
        world.look(after(102));
        assert_eq!(world.state("db-0"), state, "{on_timeout}");
    }
}

#[test]
fn a_gate_is_given_its_time_from_when_it_shut() {
    let gate =
        json!({"gates": [{"name": "g", "cel": "true", "timeoutSeconds": 100, "onTimeout": "Proceed"}]});
    let mut world = World::of(2, policy(gate));
    world.taint("n0", "a", None);
    world.tell("db-0", |member| member.gates = vec![Verdict::Pass]);
    world.look(START);
    world.look(after(1));
    world.unready(&["db-1"]);
    world.look(after(500));
    world.tell("db-0", |member| member.gates = vec![Verdict::Deny]);
    world.unready(&[]);
    world.look(after(501));
    assert!(!evict(&world), "it was open until now");
    world.look(after(550));
    world.restart();
    world.look(after(601));
    assert!(evict(&world) && world.words("db-0").contains(&"GatePassedByTime"));
}

#[test]
fn no_volume_goes_because_a_gate_took_too_long() {
    // No policy that removes volumes may say so. If one ever did, it would not count.
    let spec = policy(json!({
        "gates": [{"name": "g", "cel": "true", "timeoutSeconds": 100, "onTimeout": "Proceed"}],
    }));
    let mut world = World::of(1, spec.clone());
    let keeping = compiled(spec);
    let deleting = compiled(policy(json!({"strategy": {"volumes": {"policy": "Delete"}}})));
    let strategy = Strategy { volumes: deleting.strategy.volumes, ..keeping.strategy.clone() };
    world.fleet.set_policy(&world.key.clone(), Policy { strategy, ..keeping }, None);
    world.taint("n0", "a", None);
    world.tell("db-0", |member| member.gates = vec![Verdict::Deny]);
    for second in [0, 1, 2, 1_000, 100_000] {
        let plan = world.look(after(second));
        assert!(!deletes(&world) && !evict(&world), "after {second} s");
        assert!(second < 2 || plan.deadline == Moment::NEVER);
    }
    assert_eq!(world.state("db-0"), State::Course(Phase::Gating));
    world.tell("db-0", |member| member.gates = vec![Verdict::Pass]);
    world.look(after(100_001));
    assert!(deletes(&world));
}

#[test]
fn a_successor_that_is_late_has_failed_and_one_that_is_stuck_is_made_anew() {
    let mut world = begun(2, json!({}));
    world.look(after(2));
    world.recreate("db-0", "spare", 1, after(3));
    world.unready(&["db-0"]);
    world.tell_pod("db-0", |pod| (pod.is_stuck, pod.node) = (true, None));
    world.look(after(4));
    assert_eq!(world.acts("db-0"), [Act::DeleteStuck { uid: "db-0-uid-1".into() }]);
    world.tell_pod("db-0", |pod| pod.is_stuck = false);
    world.look(after(3 + 1_799));
    assert_eq!(world.state("db-0"), State::Course(Phase::AwaitingSuccessor));
    world.look(after(4 + 1_800));
    assert_eq!(
        (world.state("db-0"), world.words("db-0")),
        (State::Course(Phase::Failed), vec!["SuccessorLate"])
    );
    world.taint("n1", "a", None);
    world.look(after(2_000));
    world.look(after(2_001));
    assert_eq!(world.begun(), [] as [&str; 0], "no other goes while it is not ready");
    assert!(world.words("db-1").contains(&"PeersNotReady"));
}

#[test]
fn a_successor_that_falls_ill_again_is_awaited_again() {
    let mut world = begun(1, json!({}));
    world.look(after(2));
    world.recreate("db-0", "spare", 1, after(3));
    world.tell_pod("db-0", |pod| pod.ready = Readiness::Since(after(4)));
    world.look(after(5));
    assert_eq!(world.state("db-0"), State::Course(Phase::Verifying));
    world.tell_pod("db-0", |pod| pod.ready = Readiness::Not);
    world.look(after(6));
    assert_eq!(world.state("db-0"), State::Course(Phase::AwaitingSuccessor));
}

#[test]
fn a_pod_that_goes_by_itself_ends_a_replacement_that_has_done_nothing() {
    let mut world = begun(1, json!({"gates": [{"name": "g", "cel": "true"}]}));
    world.recreate("db-0", "n0", 1, after(2));
    world.look(after(2));
    assert_eq!(
        (world.state("db-0"), world.words("db-0")),
        (State::Course(Phase::Aborted), vec!["Overtaken"])
    );
    assert_eq!(world.memory("db-0").record.attempts, 0);
}

#[test]
fn claims_of_a_pod_that_goes_before_they_do_are_left_alone() {
    let mut world = begun(1, json!({"strategy": {"volumes": {"policy": "Delete"}}}));
    world.look(after(2));
    assert!(deletes(&world));
    world.recreate("db-0", "n0", 1, after(3));
    world.tell("db-0", |member| member.claims = Known::Known(vec![claim("db-0", 0)]));
    world.look(after(3));
    assert_eq!(world.state("db-0"), State::Course(Phase::AwaitingSuccessor));
    assert!(world.acts("db-0").is_empty() && world.words("db-0").contains(&"ClaimsLeftAlone"));
}

#[test]
fn a_handshake_asks_before_it_waits_for_the_answer() {
    let gate = json!({"gates": [{"name": "drained", "annotation": {"key": "drain.example.org/finished"}}]});
    let mut world = begun(2, gate);
    world.look(after(2));
    assert_eq!(world.state("db-0"), State::Course(Phase::Draining));
    assert!(
        matches!(&world.acts("db-0")[..], [Act::Annotate { key, .. }] if &**key == "berth.dev/replacing")
    );
    world.tell("db-0", |member| (member.told, member.gates) = (Sure::Yes, vec![Verdict::InProgress]));
    world.look(after(3));
    assert!(world.acts("db-0").is_empty());
    world.tell("db-0", |member| member.gates = vec![Verdict::Pass]);
    world.look(after(4));
    assert!(evict(&world));
    world.tell("db-0", |member| member.gates = vec![Verdict::InProgress]);
    world.look(after(5));
    assert!(!evict(&world), "an answer may be taken back");
}

#[test]
fn on_trial_it_is_told_who_would_begin_and_nothing_is_done() {
    let mut world = World::of(
        2,
        policy(json!({
            "mode": "DryRun", "budget": {"breaker": {"maxAffectedFaultDomains": 5}},
        })),
    );
    world.taint("n0", "a", None);
    world.taint("n1", "a", None);
    world.look(START);
    let plan = world.look(after(1));
    assert!(plan.steps.iter().all(|step| step.acts.is_empty()));
    assert_eq!((world.state("db-0"), world.state("db-1")), (State::Queued, State::Queued));
    assert!(world.words("db-0").contains(&"DryRun") && world.words("db-1").contains(&"BudgetFull"));
}

#[test]
fn a_pause_holds_what_is_new_and_a_word_holds_what_is_under_way() {
    let mut world = World::of(2, policy(json!({"pauseRequests": ["upgrade by @x"]})));
    world.taint("n0", "a", None);
    world.look(START);
    world.look(after(1));
    assert!(world.words("db-0").contains(&"Paused"));
    world.set_policy(policy(json!({})));
    world.look(after(2));
    world.set_policy(policy(json!({"pauseRequests": ["upgrade by @x"]})));
    world.look(after(3));
    assert!(evict(&world), "what has begun goes on");
    world.tell("db-0", |member| member.word.suspend = true);
    world.look(after(4));
    assert_eq!((world.acts("db-0"), world.words("db-0")), (vec![], vec!["Suspended"]));
    world.tell("db-0", |member| member.word.suspend = false);
    world.set_policy(policy(json!({"mode": "Disabled"})));
    world.look(after(5));
    assert_eq!((world.acts("db-0"), world.words("db-0")), (vec![], vec!["NotEnforced"]));
}

/// Upstream: remove_process_groups_test.go
/// "a process group is marked as terminating and not fully removed: should remove only one process group".
#[test]
fn between_two_replacements_there_is_a_rest() {
    let mut world = begun(
        2,
        json!({
            "budget": {"cooldownSeconds": 500, "breaker": {"maxAffectedFaultDomains": 5}},
            "strategy": {"ready": {"minReadySeconds": 0}},
        }),
    );
    world.taint("n1", "a", None);
    world.look(after(2));
    world.recreate("db-0", "spare", 1, after(3));
    world.tell_pod("db-0", |pod| pod.ready = Readiness::Since(after(4)));
    world.look(after(10));
    assert_eq!(world.state("db-0"), State::Course(Phase::Done));
    world.restart();
    let plan = world.look(after(10));
    assert!(world.words("db-1").contains(&"Cooldown"));
    assert_eq!(plan.deadline, after(510));
    world.look(after(510));
    assert_eq!(world.begun(), ["db-1"]);
}

#[test]
fn a_bucket_has_a_budget_of_its_own() {
    let spec = json!({"budget": {
        "maxConcurrent": 1, "breaker": {"maxAffectedFaultDomains": "100%"},
        "buckets": [{"selector": {"matchLabels": {"class": "storage"}}, "maxConcurrent": 1}],
    }});
    let mut world = World::of(4, policy(spec));
    for number in 0..4 {
        world.taint(&format!("n{number}"), "a", None);
    }
    for name in ["db-0", "db-1"] {
        world.tell_pod(name, |pod| {
            pod.labels.insert("class".into(), "storage".into());
        });
    }
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-0", "db-2"]);
    world.look(after(2));
    world.tell("db-0", |member| member.pod = Known::Known(None));
    world.unready(&["db-0"]);
    world.look(after(3));
    assert_eq!(world.begun(), [] as [&str; 0], "nor does it when the pod that has the labels is gone");
}

#[test]
fn windows_hold_what_is_new_until_one_opens() {
    let mut world = World::of(1, policy(json!({})));
    world.taint("n0", "a", None);
    world
        .fleet
        .set_window(&world.key.clone(), berth_engine::replace::Opening::Closed { opens: after(5_000) });
    world.look(START);
    let plan = world.look(after(1));
    assert_eq!((world.begun().len(), plan.deadline), (0, after(5_000)));
    world.fleet.set_window(&world.key.clone(), berth_engine::replace::Opening::Unknown);
    world.look(after(5_000));
    assert!(world.words("db-0").contains(&"WindowUnknown"));
    world.fleet.set_window(&world.key.clone(), berth_engine::replace::Opening::ALWAYS);
    world.look(after(5_001));
    assert_eq!(world.begun(), ["db-0"]);
}

#[test]
fn the_rule_that_says_more_of_a_taint_decides() {
    let spec = json!({"triggers": {"taints": [
        {"key": "*", "durationSeconds": 5},
        {"key": "drain", "durationSeconds": 1_000},
        {"key": "drain", "value": "now", "durationSeconds": 10},
        {"key": "other", "effects": ["NoExecute"], "durationSeconds": 2_000},
    ], "cordon": {"durationSeconds": 30}}});
    let due = |key: &str, value: &str, cordoned: bool| {
        let mut world = World::of(1, spec.clone());
        if !key.is_empty() {
            world.taint("n0", key, Some(START));
            world.tell_node("n0", |node| node.taints[0].value = value.into());
        }
        world.tell_node("n0", |node| node.is_cordoned = cordoned);
        world.look(START).deadline.seconds_since(START) - 1
    };
    assert_eq!(due("drain", "now", false), 10);
    assert_eq!(due("drain", "soon", false), 1_000);
    assert_eq!(due("other", "", false), 5, "a rule for another effect does not speak of it");
    assert_eq!(due("", "", true), 30, "a cordon is a trigger of its own");
}
