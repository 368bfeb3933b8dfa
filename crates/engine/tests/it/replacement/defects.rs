//! Where FoundationDB's operator goes wrong, and ours does not.

use berth_engine::Moment;
use berth_engine::replace::{Known, NodeFact, Phase, Readiness, State, Verdict};
use berth_engine::taint::NodeEffect;
use serde_json::{Value, json};

use super::fixtures::{START, World, after, pasted, taint, tolerates};

const NOBODY: [&str; 0] = [];

fn options(options: Value) -> Value {
    let mut all = json!({
        "taintReplacementOptions": [{"key": "*", "durationInSeconds": 0}], "taintReplacementTimeSeconds": 0,
    });
    all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    pasted(all)
}

/// One clock for all taints makes a fresh one as old as one that is ignored.
///
/// Upstream: replacement-defects "B1".
#[test]
fn b1_an_old_taint_that_is_ignored_does_not_make_a_fresh_one_due() {
    let spec = pasted(json!({
        "taintReplacementOptions": [
            {"key": "example.org/dedicated", "durationInSeconds": i64::MAX}, {"key": "*", "durationInSeconds": 3_600},
        ],
        "taintReplacementTimeSeconds": 0,
    }));
    let mut world = World::of(1, spec);
    world.taint("n0", "example.org/dedicated", Some(after(-36_000)));
    world.look(after(-10));
    world.taint("n0", "example.org/broken", None);
    world.look(START);
    for second in [1, 10, 3_600] {
        world.look(after(second));
        assert_eq!(world.state("db-0"), State::Detected, "after {second} s");
    }
    world.look(after(3_601));
    assert_eq!(world.state("db-0"), State::Replacing);
    world.look(after(3_602));
    assert_eq!(world.begun(), ["db-0"]);
}

/// A node that is gone or may not be read stops the whole workload's reconciliation.
///
/// Upstream: replacement-defects "B2".
#[test]
fn b2_a_node_that_cannot_be_read_concerns_nobody_but_its_own_members() {
    let mut world = World::of(3, options(json!({"maxFaultDomainsWithTaintedProcessGroups": 3})));
    world.taint("n0", "a", Some(after(-60)));
    world.taint("n1", "a", Some(after(-60)));
    world.look(START);
    world.node_is("n0", NodeFact::Unknown);
    world.node_is("n2", NodeFact::Missing);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-1"]);
    assert_eq!(world.state("db-0"), State::Queued, "what was known of it stays");
    assert!(world.words("db-0").contains(&"NodeUnknown"), "and it waits: {:?}", world.words("db-0"));
    assert_eq!(world.state("db-2"), State::Healthy);
}

#[test]
fn a_node_that_is_gone_is_a_cause_of_its_own_where_the_policy_says_so() {
    let spec = json!({"triggers": {"nodeMissing": {"durationSeconds": 60}}});
    let mut world = World::of(1, spec);
    world.look(START);
    world.node_is("n0", NodeFact::Unknown);
    world.look(after(1));
    assert_eq!(world.state("db-0"), State::Healthy, "not known is not gone");
    world.node_is("n0", NodeFact::Missing);
    world.look(after(2));
    assert_eq!(world.state("db-0"), State::Detected);
    world.look(after(63));
    assert_eq!(world.begun(), ["db-0"]);
}

/// Tolerated taints count, and a successor on such a node is due at once, for ever.
///
/// Upstream: replacement-defects "B3".
#[test]
fn b3_a_tolerated_taint_is_nothing_to_leave_for() {
    let native = json!({"triggers": {"taints": [{"key": "*"}]}});
    for (spec, counts) in [
        (native.clone(), false),
        (json!({"triggers": {"taints": [{"key": "*"}], "tolerated": "Match"}}), true),
        (options(json!({})), true),
    ] {
        let mut world = World::of(1, spec);
        world.taint("n0", "dedicated", Some(after(-60)));
        world.tell_pod("db-0", |pod| pod.tolerations = vec![tolerates("dedicated")]);
        world.look(START);
        assert_eq!(world.state("db-0") != State::Healthy, counts);
    }
    let mut world = World::of(1, native);
    world.taint("n0", "dedicated", Some(after(-60)));
    world.look(START);
    assert_ne!(world.state("db-0"), State::Healthy, "it is not tolerated");
}

/// Upstream: replacement-defects "B3".
#[test]
fn b3_a_successor_on_a_node_of_the_same_sort_has_all_of_its_time_and_churn_ends() {
    let mut spec = options(json!({"taintReplacementOptions": [{"key": "*", "durationInSeconds": 300}]}));
    spec["budget"] = json!({"retry": {"maxRetry": 2, "retryPeriodSeconds": 600, "minHealthySeconds": 3_600}});
    let mut world = World::of(1, spec);
    let mut now = START;
    let mut node = "n0".to_owned();
    world.taint(&node, "dedicated", Some(after(-100_000)));
    let mut replaced = 0;
    for generation in 1.. {
        let begun = now;
        let mut rounds = 0;
        while !world.begun_at(now) {
            rounds += 1;
            now = now.plus_seconds(100);
            if rounds > 1_000 {
                break;
            }
        }
        if rounds > 1_000 {
            break;
        }
        replaced += 1;
        if generation > 1 {
            assert!(now.seconds_since(begun) >= 600, "{} s", now.seconds_since(begun));
        }
        node = format!("spare{generation}");
        now = now.plus_seconds(1);
        world.look(now);
        world.recreate("db-0", &node, generation, now);
        world.taint(&node, "dedicated", Some(after(-100_000)));
        world.tell_pod("db-0", |pod| pod.ready = Readiness::Since(now));
        world.look(now);
        now = now.plus_seconds(60);
        world.look(now);
        assert_eq!(world.state("db-0"), State::Course(Phase::Done));
    }
    assert_eq!(replaced, 3, "once, and twice again");
    assert!(world.words("db-0").contains(&"RetriesExhausted"));
}

/// With few fault domains the breaker stops everything, silently, and draining groups keep it open.
///
/// Upstream: replacement-defects "B4".
#[test]
fn b4_the_breaker_tells_has_a_minimum_and_does_not_count_who_is_on_the_way() {
    let mut world = World::of(3, options(json!({"maxConcurrentReplacements": 3})));
    world.taint("n0", "a", Some(after(-60)));
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), ["db-0"]);
    world.taint("n1", "a", Some(after(-60)));
    world.look(after(2));
    let plan = world.look(after(3));
    assert_eq!((plan.tally.affected, world.begun()), (1, vec!["db-1".to_owned()]), "db-0 is on its way");

    let mut two = options(json!({"maxConcurrentReplacements": 3}));
    two["budget"] = json!({"breaker": {"minimum": 2}});
    let counting = |count: bool| {
        let mut spec = options(json!({"maxConcurrentReplacements": 3}));
        spec["budget"] = json!({"breaker": {"countInFlight": count}});
        spec
    };
    let mut world = World::of(3, counting(true));
    world.taint("n0", "a", Some(after(-60)));
    world.taint("n1", "a", Some(after(-60)));
    world.look(START);
    world.look(after(1));
    assert_eq!(world.begun(), NOBODY);
    assert!(world.words("db-0").contains(&"BreakerOpen"));
    world.set_policy(two);
    world.look(after(2));
    assert_eq!(world.begun(), ["db-0", "db-1"]);
}

/// Conditions stay as they were while the pod is missing or pending.
///
/// Upstream: replacement-defects "B5".
#[test]
fn b5_a_pod_that_is_gone_or_has_no_node_takes_its_clocks_with_it() {
    let spec = pasted(json!({"taintReplacementOptions": [{"key": "*", "durationInSeconds": 100}]}));
    for change in [0, 1, 2] {
        let mut world = World::of(1, spec.clone());
        world.taint("n0", "a", None);
        world.look(START);
        world.look(after(101));
        assert_eq!(world.state("db-0"), State::Replacing);
        match change {
            0 => world.tell("db-0", |member| member.pod = Known::Known(None)),
            1 => world.tell_pod("db-0", |pod| pod.node = None),
            _ => world.tell_pod("db-0", |pod| pod.uid = "another".into()),
        }
        world.look(after(102));
        let expected = if change == 2 { State::Detected } else { State::Healthy };
        assert_eq!(world.state("db-0"), expected);
        assert!(world.memory("db-0").sightings.iter().all(|sighting| sighting.since == after(102)));
    }
    let mut world = World::of(1, spec);
    world.taint("n0", "a", None);
    world.look(START);
    world.tell("db-0", |member| member.pod = Known::Unknown);
    world.look(after(102));
    assert_eq!(world.memory("db-0").sightings[0].since, START, "but what cannot be read is not gone");
}

/// A very long wait overflows and means "at once".
///
/// Upstream: replacement-defects "B6".
#[test]
fn b6_the_longest_waits_never_end() {
    for seconds in [9_300_000_000, i64::MAX / 1_000_000, i64::MAX - 1, i64::MAX] {
        let mut world = World::of(1, options(json!({ "taintReplacementTimeSeconds": seconds })));
        world.taint("n0", "a", Some(after(-60)));
        world.look(START);
        let plan = world.look(after(4_000_000_000));
        assert_eq!((world.state("db-0"), world.begun().len()), (State::Replacing, 0), "{seconds}");
        assert!(plan.deadline > after(4_000_000_000));
        let ignored = json!({"taintReplacementOptions": [{"key": "*", "durationInSeconds": seconds}]});
        let mut world = World::of(1, options(ignored));
        world.taint("n0", "a", Some(Moment::from_second(0)));
        world.look(after(4_000_000_000));
        assert_eq!(world.state("db-0"), State::Detected, "{seconds}");
    }
}

/// A taint that is ignored keeps the cluster unreconciled and polled for ever.
///
/// Upstream: replacement-defects "B7".
#[test]
fn b7_a_taint_that_is_ignored_leaves_nothing_to_be_done_or_waited_for() {
    let forever = json!({"taintReplacementOptions": [{"key": "*", "durationInSeconds": i64::MAX}]});
    let mut world = World::of(1, options(forever));
    world.taint("n0", "a", None);
    let plan = world.look(START);
    assert_eq!((plan.deadline, world.acts("db-0")), (Moment::NEVER, vec![]));
    assert!(!world.look(after(100_000)).steps[0].is_changed);
    let native = json!({"triggers": {"taints": [{"key": "*"}, {"key": "a", "action": "Ignore"}]}});
    let mut world = World::of(1, native);
    world.taint("n0", "a", None);
    assert_eq!((world.look(START).deadline, world.state("db-0")), (Moment::NEVER, State::Healthy));
}

/// What is marked cannot be called off.
///
/// Upstream: replacement-defects "B8".
#[test]
fn b8_a_cause_that_is_gone_or_a_person_calls_it_off_until_something_is_removed() {
    let mut spec = options(json!({}));
    spec["gates"] = json!([{"name": "drained", "cel": "true"}]);
    // One that never does anything lies beside the one that counts, as on most nodes.
    spec["replacements"]["taintReplacementOptions"] =
        json!([{"key": "*", "durationInSeconds": 0}, {"key": "dedicated", "durationInSeconds": i64::MAX}]);
    let start = |spec: &Value| {
        let mut world = World::of(2, spec.clone());
        world.taint("n0", "dedicated", Some(after(-36_000)));
        world.taint("n0", "a", Some(after(-60)));
        world.look(START);
        world.look(after(1));
        world.look(after(2));
        assert_eq!(world.state("db-0"), State::Course(Phase::Gating));
        world
    };
    let mut world = start(&spec);
    world.untaint("n0", "a");
    world.look(after(3));
    assert_eq!(world.state("db-0"), State::Course(Phase::Aborted));
    assert_eq!(world.words("db-0"), ["Cleared"]);
    world.look(after(4));
    assert_eq!(world.state("db-0"), State::Detected, "the other one is there, and does nothing");

    let mut world = start(&spec);
    world.tell("db-0", |member| member.word.cancel = true);
    world.look(after(3));
    assert_eq!(world.words("db-0"), ["Cancelled"]);

    spec["cancel"] = json!({"onCleared": "Never"});
    let mut world = start(&spec);
    world.untaint("n0", "a");
    world.look(after(3));
    assert_eq!(world.state("db-0"), State::Course(Phase::Gating));
}

/// A repair command removes everything that is marked, past every guard.
///
/// Upstream: replacement-defects "B9".
#[test]
fn b9_there_is_no_way_around_the_guards() {
    let mut spec = options(json!({"maxFaultDomainsWithTaintedProcessGroups": "100%"}));
    spec["gates"] = json!([{"name": "drained", "cel": "true"}]);
    let mut world = World::of(3, spec);
    for node in ["n0", "n1", "n2"] {
        world.taint(node, "a", Some(after(-60)));
    }
    world.look(START);
    world.look(after(1));
    let evict = berth_engine::replace::Act::Evict { uid: "db-0-uid-0".into() };
    let confirmed = |world: &World, name: &str, act| world.fleet.confirm(&world.key, name, act, after(2));
    assert!(confirmed(&world, "db-1", &berth_engine::replace::Act::Begin).is_err(), "the budget");
    assert!(confirmed(&world, "db-0", &evict).is_err(), "the gate is not known");
    world.tell("db-0", |member| member.gates = vec![Verdict::Pass]);
    assert!(confirmed(&world, "db-0", &evict).is_ok());
    world.unready(&["db-2"]);
    assert!(confirmed(&world, "db-0", &evict).is_err(), "another is not ready");
    world.unready(&[]);
    world.tell("db-0", |member| member.gates = vec![Verdict::Deny]);
    assert!(confirmed(&world, "db-0", &evict).is_err(), "the gate has shut again");
}

#[test]
fn a_taint_by_which_kubernetes_deletes_the_pod_first_is_warned_of() {
    let mut world = World::of(1, options(json!({"taintReplacementTimeSeconds": 600})));
    let mut evicting = taint("a", Some(after(-60)));
    evicting.effect = NodeEffect::NoExecute;
    world.tell_node("n0", |node| node.taints.push(evicting));
    world.look(START);
    assert!(world.words("db-0").contains(&"TaintEvictionRace"));
    world.tell_pod("db-0", |pod| pod.tolerations = vec![tolerates("a")]);
    world.look(after(1));
    assert!(!world.words("db-0").contains(&"TaintEvictionRace"));
}

impl World {
    /// Looks, and says whether the first member has begun.
    fn begun_at(&mut self, now: Moment) -> bool {
        self.look(now);
        !self.begun().is_empty()
    }
}
