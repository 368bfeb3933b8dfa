//! What the tests of FoundationDB's operator ask for, under the names they have there.

use berth_engine::Moment;
use berth_engine::replace::{Known, NodeFact, Phase, Readiness, State, Sure, Verdict};
use serde_json::{Value, json};

use super::fixtures::{START, World, after, condition, pasted};

const DETECTED: &str = "NodeTaintDetected";
const REPLACING: &str = "NodeTaintReplacing";
const MAINTENANCE: &str = "foundationdb.org/maintenance";
const NONE: [&str; 0] = [];

/// The rules of `update_status_test.go`, "validate process group on taint node".
fn update_status() -> Value {
    pasted(json!({"taintReplacementOptions": [
        {"key": "*", "durationInSeconds": 20},
        {"key": MAINTENANCE, "durationInSeconds": 5},
    ]}))
}

/// One member, and a taint that is so old.
fn tainted(spec: Value, key: &str, age: i64) -> World {
    let mut world = World::of(1, spec);
    world.taint("n0", key, Some(after(-age)));
    world.look(START);
    world
}

// controllers/update_status_test.go, "validate process group on taint node"

/// Upstream: update_status_test.go
/// "the taint was just added: should get NodeTaintDetected condition".
#[test]
fn u1_a_taint_that_was_just_added_is_detected() {
    let world = tainted(update_status(), MAINTENANCE, 0);
    assert_eq!(world.conditions("db-0"), [DETECTED]);
    assert_eq!(world.state("db-0"), State::Detected);
}

/// Upstream: update_status_test.go
/// "the taint was just added long enough to to mark the Pod for replacement: should get both NodeTaintDetected and NodeTaintReplacing condition".
#[test]
fn u2_a_taint_older_than_its_duration_marks_by_the_rule_for_its_key() {
    let world = tainted(update_status(), MAINTENANCE, 6);
    assert_eq!(world.conditions("db-0"), [DETECTED, REPLACING]);
    assert_eq!(world.memory("db-0").sightings[0].rule, "replacements.taintReplacementOptions[1]".into());
}

/// Upstream: update_status_test.go
/// "disable and enable taint feature: should enable cluster taint feature".
#[test]
fn u3_disable_and_enable() {
    let mut world = tainted(update_status(), MAINTENANCE, 60);
    world.set_policy(pasted(json!({"taintReplacementOptions": []})));
    world.look(after(1));
    assert_eq!(world.conditions("db-0"), NONE);
    assert_eq!(world.state("db-0"), State::Healthy);
    world.set_policy(update_status());
    world.look(after(2));
    assert_eq!(world.conditions("db-0"), [DETECTED, REPLACING], "on the first look");
}

/// Upstream: update_status_test.go
/// "cluster disables taint feature but node has wildcard taint: should disable taint feature".
#[test]
fn u4_disabled_and_a_node_with_a_taint_whose_key_is_a_star() {
    let world = tainted(pasted(json!({"taintReplacementOptions": []})), "*", 60);
    assert_eq!(world.conditions("db-0"), NONE);
}

/// Upstream: update_status_test.go
/// "node is tainted with a key different from cluster configured taint key: pods on the node should not be tainted".
#[test]
fn u5_a_key_that_is_not_configured_and_then_is() {
    let rule = |key: &str| pasted(json!({"taintReplacementOptions": [{"key": key, "durationInSeconds": 5}]}));
    let mut world = tainted(rule(MAINTENANCE), "example.org/other", 60);
    assert_eq!(world.conditions("db-0"), NONE);
    world.set_policy(rule("example.org/other"));
    world.look(after(1));
    assert_eq!(world.conditions("db-0"), [DETECTED, REPLACING]);
}

/// Upstream: update_status_test.go
/// "node taint is removed: shouldn't keep NodeTaintReplacing condition".
#[test]
fn u6_a_taint_that_is_removed_takes_both_conditions_with_it() {
    let mut world = tainted(update_status(), MAINTENANCE, 60);
    assert_eq!(world.conditions("db-0"), [DETECTED, REPLACING]);
    world.untaint("n0", MAINTENANCE);
    world.look(after(1));
    assert_eq!(world.conditions("db-0"), NONE);
    assert!(world.memory("db-0").sightings.is_empty());
}

// controllers/replace_failed_process_groups_test.go, "replacing pods on tainted nodes"

/// Members on nodes of their own that are all tainted, with rules by which marks come at once and are due 60 s later.
fn due(members: usize, options: Value) -> World {
    let mut all = json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 0}],
        "taintReplacementTimeSeconds": 60,
    });
    all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let mut world = World::of(members, pasted(all));
    for node in 0..members {
        world.taint(&format!("n{node}"), "example.org/broken", Some(after(-600)));
    }
    world.look(START);
    world
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "the process group has the NodeTaintDetected condition but not the NodeTaintReplacing: should not replace the process group".
#[test]
fn r1_detected_only_is_not_replaced() {
    let spec = pasted(json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 3_600}], "taintReplacementTimeSeconds": 0,
    }));
    let mut world = World::of(1, spec);
    world.taint("n0", "a", Some(after(-600)));
    world.run_to(after(1));
    assert_eq!((world.conditions("db-0"), world.begun()), (vec![DETECTED.into()], vec![]));
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "the process group has both the NodeTaintDetected condition and the NodeTaintReplacing condition: should replace the process group".
#[test]
fn r2_detected_and_replacing_is_replaced_once_it_has_waited() {
    let mut world = due(1, json!({}));
    assert_eq!(world.state("db-0"), State::Replacing);
    assert!(world.begun().is_empty());
    world.run_to(after(61));
    assert_eq!(world.begun(), ["db-0"]);
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "the process group has both the NodeTaintDetected condition and the NodeTaintReplacing condition but the node taint feature is disabled: should not replace the process group".
#[test]
fn r3_the_same_without_options_is_not_replaced() {
    let mut world = due(1, json!({}));
    world.set_policy(pasted(json!({"taintReplacementTimeSeconds": 60})));
    world.run_to(after(600));
    assert_eq!((world.begun(), world.state("db-0")), (vec![], State::Healthy));
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "only one fault domain with tainted nodes is allowed: shouldn't remove any pods on tainted nodes".
#[test]
fn r4_two_in_two_fault_domains_and_the_breaker_as_it_comes() {
    let mut world = due(2, json!({"maxConcurrentReplacements": 10}));
    let plan = world.run_to(after(600));
    assert!(plan.steps.iter().all(|step| step.acts.is_empty()));
    assert!(world.words("db-0").contains(&"BreakerOpen"), "and it is told: {:?}", world.words("db-0"));
    assert_eq!((plan.tally.affected, plan.tally.domains, plan.tally.limit), (2, 2, 1));
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "multiple fault domain with tainted nodes is allowed: should remove all pods on tainted nodes".
#[test]
fn r5_two_in_two_fault_domains_and_a_breaker_of_ten() {
    let options = json!({"maxConcurrentReplacements": 10, "maxFaultDomainsWithTaintedProcessGroups": 10});
    let mut world = due(2, options);
    world.run_to(after(61));
    assert_eq!(world.begun(), ["db-0", "db-1"]);
}

// The same file, budgets and guards that taints share with everything else

/// Any number of fault domains may be affected.
fn unbroken(options: Value) -> Value {
    let mut all = json!({"maxFaultDomainsWithTaintedProcessGroups": "100%"});
    all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    all
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "with no missing processes: should not mark anything for removal".
#[test]
fn no_failures_is_nothing_to_do() {
    let mut world = World::of(3, update_status());
    let plan = world.look(START);
    assert_eq!((plan.deadline, plan.tally.matched, plan.tally.replacing), (Moment::NEVER, 3, 0));
    assert!(plan.steps.iter().all(|step| step.acts.is_empty() && step.memory.is_empty()));
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "with multiple failed processes: should mark the first process group for removal",
/// "with another in-flight exclusion: should not mark the process group for removal".
#[test]
fn one_slot_is_for_the_first_only_and_in_flight_it_blocks() {
    let mut world = due(3, unbroken(json!({})));
    world.run_to(after(61));
    assert_eq!(world.begun(), ["db-0"]);
    assert!(world.words("db-1").contains(&"BudgetFull"));
    world.look(after(62));
    assert_eq!(world.begun(), [] as [&str; 0]);
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "max concurrent replacements is set to two: should mark the process group for removal",
/// "max concurrent replacements is set to zero: should not mark the process group for removal".
#[test]
fn two_slots_let_a_second_go_and_none_is_off() {
    let mut world = due(3, unbroken(json!({"maxConcurrentReplacements": 2})));
    world.run_to(after(61));
    assert_eq!(world.begun(), ["db-0", "db-1"]);
    let mut world = due(3, unbroken(json!({"maxConcurrentReplacements": 0})));
    world.run_to(after(600));
    assert_eq!(world.begun(), [] as [&str; 0]);
    assert!(world.words("db-0").contains(&"Off"));
}

/// Upstream: controllers/replace_failed_process_groups_test.go
/// "with another complete exclusion: should mark the process group for removal".
#[test]
fn a_replacement_that_has_ended_frees_its_slot() {
    let mut world = due(2, unbroken(json!({})));
    world.run_to(after(62));
    world.recreate("db-0", "spare", 1, after(63));
    world.look(after(63));
    assert_eq!(world.state("db-0"), State::Course(Phase::AwaitingSuccessor));
    world.tell_pod("db-0", |pod| pod.ready = Readiness::Since(after(64)));
    world.look(after(64));
    world.look(after(124));
    assert_eq!(world.state("db-0"), State::Course(Phase::Done));
    world.look(after(124));
    assert_eq!(world.begun(), ["db-1"], "one look later, when that is written down");
}

/// There it is asked of the database itself; here a gate says so.
/// Upstream: controllers/replace_failed_process_groups_test.go
/// "the cluster is not available: should not mark the process group for removal".
#[test]
fn while_a_gate_before_the_start_denies_nothing_begins_and_no_slot_is_taken() {
    let mut spec = pasted(json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 0}], "taintReplacementTimeSeconds": 0,
        "maxFaultDomainsWithTaintedProcessGroups": "100%",
    }));
    spec["gates"] = json!([{"name": "available", "stage": "BeforeStart", "cel": "true"}]);
    let mut world = World::of(2, spec);
    world.taint("n0", "a", Some(after(-60)));
    world.taint("n1", "a", Some(after(-60)));
    world.tell("db-0", |member| member.gates = vec![Verdict::Deny]);
    world.tell("db-1", |member| member.gates = vec![Verdict::Pass]);
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-1"], "who is denied holds up nobody else");
    assert!(world.words("db-0").contains(&"GateShut"));
}

/// There it is a group in the maintenance zone, in a crash loop list, or with an empty monitor configuration.
/// Upstream: controllers/replace_failed_process_groups_test.go "EmptyMonitorConf is set to true",
/// "Crash loop is set for all process groups", "Crash loop is set for the specific process group",
/// "Crash loop is set for the main container", "Crash loop is set for the sidecar container".
/// Upstream: remove_process_groups_test.go "the Pod is marked as isolated: should not remove that process group".
/// Upstream: controllers/replace_failed_process_groups_test.go
/// "with maintenance mode enabled: should not mark the process group for removal".
#[test]
fn a_pod_that_is_marked_to_be_left_alone_is() {
    let mut world = due(1, json!({}));
    world.tell_pod("db-0", |pod| pod.is_skipped = true);
    world.run_to(after(600));
    assert_eq!(world.begun(), [] as [&str; 0]);
    assert!(world.words("db-0").contains(&"Skipped"));
}

// api/v1beta2/foundationdbcluster_types_test.go, "needs a replacement"

/// Upstream: foundationdbcluster_types_test.go
/// "with a process group that went missing after the window: should not need replacement",
/// "with a process group that went missing before the window: should need replacement".
/// Upstream: controllers/replace_failed_process_groups_test.go
/// "with a process that has been missing for a brief time: should not mark the process group for removal".
#[test]
fn a_failing_member_is_replaced_after_its_own_time_and_not_before() {
    let spec = pasted(json!({"failureDetectionTimeSeconds": 100}));
    let mut world = World::of(2, spec);
    assert!(!compiled_reads_nodes(&json!({"failureDetectionTimeSeconds": 100})));
    world.node_is("n0", NodeFact::Unknown);
    world.tell_pod("db-0", |pod| {
        pod.conditions = vec![condition("Ready", "False", Some(after(-10)))];
        pod.ready = Readiness::Not;
    });
    world.unready(&["db-0"]);
    world.look(after(90));
    assert_eq!((world.state("db-0"), world.begun()), (State::Detected, vec![]), "inside the window");
    world.look(after(91));
    assert_eq!(world.begun(), ["db-0"], "outside");
}

/// Upstream: foundationdbcluster_types_test.go
/// "with a process group that had the wrong command line: should not need replacement".
/// Upstream: controllers/replace_failed_process_groups_test.go
/// "with a process that has had an incorrect pod spec for a long time: should not mark the process group for removal".
#[test]
fn a_condition_that_is_not_one_to_be_replaced_for_never_counts() {
    let mut world = World::of(1, pasted(json!({"failureDetectionTimeSeconds": 1})));
    world.tell_pod("db-0", |pod| {
        pod.conditions = vec![condition("IncorrectCommandLine", "True", Some(START))];
    });
    world.look(after(100_000));
    assert_eq!(world.state("db-0"), State::Healthy);
}

fn compiled_reads_nodes(options: &Value) -> bool {
    super::fixtures::compiled(pasted(options.clone())).reads().nodes
}

/// Upstream: e2e/test_operator/operator_test.go
/// "cluster disables taint feature with empty taint option: should not remove any Pod whose Nodes are tainted".
#[test]
fn without_rules_for_taints_no_node_is_read() {
    assert!(!compiled_reads_nodes(&json!({"enabled": true})));
    assert!(!compiled_reads_nodes(&json!({"taintReplacementOptions": []})));
    assert!(compiled_reads_nodes(
        &json!({"taintReplacementOptions": [{"key": "*", "durationInSeconds": 1}]})
    ));
    let world = World::of(2, pasted(json!({"enabled": true})));
    assert!(world.fleet.nodes_to_read().is_empty());
    assert_eq!(World::of(2, update_status()).fleet.nodes_to_read().len(), 2);
}

// internal/replacements/replace_failed_process_groups_test.go, budgets

/// Members on a few hosts, some of which are being replaced; whether the last one, which is due on `host`, begins.
fn begins(options: Value, in_flight: &[&str], host: &str) -> bool {
    let mut all = json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 0}], "taintReplacementTimeSeconds": 0,
        "maxFaultDomainsWithTaintedProcessGroups": "100%", "maxConcurrentReplacements": 100,
    });
    all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let mut wide = all.clone();
    wide["maxConcurrentReplacements"] = json!(100);
    let mut world = World::new(pasted(wide));
    for (number, host) in in_flight.iter().enumerate() {
        world.add(&format!("a-{number}"), host);
        world.taint(host, "a", Some(after(-60)));
    }
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun().len(), in_flight.len());
    world.set_policy(pasted(all));
    world.add("z", host);
    if !in_flight.contains(&host) {
        world.taint(host, "a", Some(after(-60)));
    }
    world.look(after(2));
    world.look(after(3));
    matches!(world.state("z"), State::Course(_))
}

/// Upstream: internal/replacements/replace_failed_process_groups_test.go
/// "process group based replacement: with 1 replacement allowed",
/// "process group based replacement: with 0 replacements allowed",
/// "fault domain based replacement: no ongoing replacements",
/// "fault domain based replacement: ongoing replacements same fault domain",
/// "fault domain based replacement: ongoing replacements different fault domain",
/// "fault domain based replacement: too many ongoing replacements same fault domain".
/// Upstream: controllers/replace_failed_process_groups_test.go
/// "those failed processes are on different fault domains: should mark the first process group for removal",
/// "both processes are in the same fault domain: should mark the process group for removal".
#[test]
fn g1_to_g6_budgets_by_members_and_by_fault_domains() {
    let members = |max: i32| json!({ "maxConcurrentReplacements": max });
    let domains = |max: i32| json!({"maxConcurrentReplacements": max, "faultDomainBasedReplacements": true});
    let cases: [(&str, Value, &[&str], &str, bool); 8] = [
        ("G1 one is allowed", members(1), &[], "z", true),
        ("G2 none is allowed", members(0), &[], "z", false),
        ("G3 by domains, none ongoing", domains(1), &[], "z", true),
        ("G4 by domains, ongoing in the same", domains(1), &["x"], "x", true),
        ("G5 by domains, ongoing in another at the limit", domains(1), &["x"], "z", false),
        ("G6 by domains, over the limit, even in the same", domains(1), &["x", "y"], "x", false),
        ("by domains, ongoing in another below the limit", domains(2), &["x"], "z", true),
        ("by members, the same host does not help", members(1), &["x"], "x", false),
    ];
    for (name, options, in_flight, host, expected) in cases {
        assert_eq!(begins(options, in_flight, host), expected, "{name}");
    }
}

// The same file, the breaker

/// Whether members that are marked on these of so many hosts may go.
fn breaker_allows(hosts: usize, marked: &[&str]) -> bool {
    let spec = pasted(json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 0}], "taintReplacementTimeSeconds": 0,
        "maxConcurrentReplacements": 100,
    }));
    let mut world = World::of(hosts, spec);
    for (number, host) in marked.iter().enumerate() {
        world.add(&format!("x-{number}"), host);
        world.taint(host, "a", Some(after(-60)));
    }
    world.look(START);
    let plan = world.look(after(1));
    plan.tally.affected <= plan.tally.limit && (marked.is_empty() || !world.begun().is_empty())
}

/// Upstream: internal/replacements/replace_failed_process_groups_test.go
/// "no process groups with taint condition is present and taint feature is disabled",
/// "no process groups with taint condition is present and taint feature is enabled",
/// "one process groups with taint condition is present and taint feature is enabled",
/// "two process groups with taint condition in different fault domains are present and taint feature is enabled",
/// "two process groups with taint condition in the same fault domain are present and taint feature is enabled".
#[test]
fn b1_to_b5_the_breaker() {
    let mut off = World::of(3, pasted(json!({"taintReplacementOptions": []})));
    off.taint("n0", "a", Some(after(-60)));
    for second in [0, 1, 100_000] {
        let plan = off.look(after(second));
        assert_eq!((plan.tally.affected, off.begun().len()), (0, 0), "B1 off");
        assert!(off.conditions("db-0").is_empty(), "B1 off");
    }
    assert!(breaker_allows(3, &[]), "B2 on, none tainted");
    assert!(breaker_allows(3, &["n0"]), "B3 one of three");
    assert!(!breaker_allows(3, &["n0", "n1"]), "B4 two of three");
    assert!(breaker_allows(2, &["n0", "n0"]), "B5 two members in the same of two");
    assert!(breaker_allows(29, &["n0", "n1"]), "a tenth, rounded down, is two of 29");
    assert!(!breaker_allows(29, &["n0", "n1", "n2"]));
}

// What upstream does not test

#[test]
fn the_wait_is_more_than_so_many_seconds_to_the_second() {
    let spec = pasted(json!({
        "taintReplacementOptions": [{"key": "a", "durationInSeconds": 100}], "taintReplacementTimeSeconds": 50,
    }));
    let mut world = World::of(1, spec);
    world.taint("n0", "a", Some(START));
    for (at, state) in [
        (after(100), State::Detected),
        (after(101), State::Replacing),
        (after(151), State::Replacing),
        (after(152), State::Course(Phase::Gating)),
    ] {
        world.look(at);
        assert_eq!(world.state("db-0"), state, "at {at}");
    }
}

#[test]
fn the_rule_for_the_key_decides_even_if_it_is_longer_than_the_one_for_all() {
    let spec = pasted(json!({"taintReplacementOptions": [
        {"key": "*", "durationInSeconds": 10}, {"key": "a", "durationInSeconds": 1_000},
    ]}));
    let mut world = World::of(2, spec);
    world.taint("n0", "a", Some(START));
    world.taint("n1", "b", Some(START));
    world.look(after(500));
    assert_eq!((world.state("db-0"), world.state("db-1")), (State::Detected, State::Replacing));
}

#[test]
fn a_taint_without_a_time_or_with_one_ahead_counts_from_the_first_look_and_survives_a_restart() {
    let spec = pasted(json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 100}], "taintReplacementTimeSeconds": 50,
        "maxFaultDomainsWithTaintedProcessGroups": 3,
    }));
    let mut world = World::of(2, spec);
    world.taint("n0", "a", None);
    world.taint("n1", "a", Some(after(1_000_000)));
    world.look(START);
    world.restart();
    world.look(after(100));
    assert_eq!(world.state("db-0"), State::Detected);
    world.restart();
    world.look(after(101));
    assert_eq!((world.state("db-0"), world.state("db-1")), (State::Replacing, State::Replacing));
    world.restart();
    world.look(after(151));
    assert_eq!(world.begun(), [] as [&str; 0]);
    world.restart();
    world.look(after(152));
    assert_eq!(world.begun(), ["db-0"]);
}

#[test]
fn a_taint_that_flaps_counts_anew_each_time() {
    let spec = pasted(json!({"taintReplacementOptions": [{"key": "*", "durationInSeconds": 100}]}));
    let mut world = World::of(1, spec);
    for round in 0..5 {
        world.taint("n0", "a", None);
        world.look(after(round * 100));
        world.look(after(round * 100 + 99));
        assert_eq!(world.state("db-0"), State::Detected);
        world.untaint("n0", "a");
        world.look(after(round * 100 + 99));
    }
    // And also when nobody looked while it was off.
    world.taint("n0", "a", Some(after(500)));
    world.look(after(600));
    world.untaint("n0", "a");
    world.taint("n0", "a", Some(after(599)));
    world.look(after(650));
    assert_eq!(world.state("db-0"), State::Detected);
    world.look(after(700));
    assert_eq!(world.state("db-0"), State::Replacing);
}

#[test]
fn a_clock_that_is_set_back_does_not_stretch_a_wait() {
    let spec = pasted(json!({"taintReplacementOptions": [{"key": "*", "durationInSeconds": 100}]}));
    let mut world = World::of(1, spec);
    world.taint("n0", "a", None);
    world.look(after(1_000_000));
    world.look(START);
    world.look(after(101));
    assert_eq!(world.state("db-0"), State::Replacing);
}

#[test]
fn of_many_the_lowest_goes_first_then_the_oldest_then_by_name() {
    let spec = pasted(json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 0}], "taintReplacementTimeSeconds": 0,
        "maxFaultDomainsWithTaintedProcessGroups": "100%",
    }));
    let mut world = World::of(12, spec);
    for node in 0..12 {
        world.taint(&format!("n{node}"), "a", Some(after(-60)));
    }
    world.tell("db-0", |member| member.order = Some(10));
    world.tell("db-1", |member| member.order = None);
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-10"], "names are compared as texts, as upstream does");
}

#[test]
fn a_member_in_no_known_domain_waits_where_domains_are_counted() {
    let mut spec = pasted(json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 0}], "taintReplacementTimeSeconds": 0,
        "faultDomainBasedReplacements": true,
    }));
    spec["budget"] = json!({"faultDomainKey": "rack"});
    let mut world = World::of(1, spec);
    world.taint("n0", "a", Some(after(-60)));
    world.look(START);
    world.look(after(1));
    assert!(world.words("db-0").contains(&"DomainUnknown"));
    world.tell_node("n0", |node| {
        node.labels.insert("rack".into(), "r1".into());
    });
    world.look(after(2));
    assert_eq!(world.begun(), ["db-0"]);
}

#[test]
fn what_is_not_known_of_the_others_holds() {
    let mut world = due(1, json!({}));
    world.tell_target(|target| target.unready = Known::Unknown);
    world.run_to(after(61));
    assert!(world.words("db-0").contains(&"PeersUnknown"));
    world.tell_target(|target| target.is_settled = Sure::Unknown);
    world.unready(&[]);
    world.look(after(62));
    assert!(world.words("db-0").contains(&"RolloutUnknown"));
    world.tell_target(|target| target.is_settled = Sure::No);
    world.look(after(63));
    assert!(world.words("db-0").contains(&"RolloutInProgress"));
    world.tell_target(|target| target.is_settled = Sure::Yes);
    world.unready(&["db-7"]);
    world.look(after(64));
    assert!(world.words("db-0").contains(&"PeersNotReady"));
    world.unready(&["db-0"]);
    world.look(after(65));
    assert_eq!(world.begun(), ["db-0"], "that it is not ready itself is no obstacle");
}
