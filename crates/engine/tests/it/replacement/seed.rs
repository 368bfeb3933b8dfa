//! The design that taint replacement began with: its example configuration, timed as it says.

use berth_engine::Moment;
use berth_engine::replace::{Act, State};
use serde_json::{Value, json};

use super::fixtures::{START, World, after, pasted};

fn example() -> Value {
    pasted(json!({
        "enabled": true,
        "failureDetectionTimeSeconds": 7200,
        "maxConcurrentReplacements": 1,
        "taintReplacementOptions": [
            {"key": "example.org/maintenance", "durationInSeconds": 7200},
            {"key": "example.org/disconnected", "durationInSeconds": 1200},
            {"key": "*", "durationInSeconds": 3600},
        ],
        "taintReplacementTimeSeconds": 1800,
    }))
}

/// When the only member begins to be replaced after a taint is put on its node, looked at whenever it is due.
fn begins(key: &str, added: Option<Moment>) -> i64 {
    let mut world = World::of(1, example());
    world.taint("n0", key, added);
    let mut now = START;
    loop {
        let plan = world.look(now);
        if plan.steps[0].acts.contains(&Act::Begin) {
            return now.seconds_since(START);
        }
        assert!(
            plan.deadline > now && plan.deadline < Moment::NEVER,
            "nothing is polled, and nothing forgotten"
        );
        now = plan.deadline;
    }
}

#[test]
fn the_example_takes_at_least_as_long_as_it_says_and_two_seconds_more() {
    for (key, least) in [
        ("example.org/disconnected", 1_200 + 1_800),
        ("example.org/maintenance", 7_200 + 1_800),
        ("example.org/anything", 3_600 + 1_800),
    ] {
        for added in [None, Some(START)] {
            let took = begins(key, added);
            assert!(took >= least, "{key}: {took} s");
            // Each of the two waits is for more than so many whole seconds, and not for a second longer.
            assert_eq!(took, least + 2, "{key}");
        }
    }
}

#[test]
fn the_second_wait_begins_when_the_first_was_seen_to_be_over() {
    assert_eq!(begins("example.org/disconnected", Some(after(-100_000))), 1_801);
}

#[test]
fn requirement_1_it_can_be_switched_off_by_leaving_the_rules_out() {
    let mut off = example();
    off["replacements"].as_object_mut().unwrap().remove("taintReplacementOptions");
    let mut world = World::of(1, off);
    world.taint("n0", "example.org/disconnected", Some(after(-100_000)));
    let plan = world.look(START);
    assert_eq!((world.state("db-0"), plan.deadline), (State::Healthy, Moment::NEVER));
    assert!(world.fleet.nodes_to_read().is_empty());
}

#[test]
fn requirement_3_the_status_lists_the_taints_with_since_and_due() {
    let mut world = World::of(1, example());
    world.taint("n0", "example.org/disconnected", Some(after(-1_300)));
    let plan = world.look(START);
    let status = berth_engine::replace::member_status(&plan.steps[0]).unwrap();
    let shown = serde_json::to_value(&status).unwrap();
    assert_eq!(shown["causes"][0]["key"], "example.org/disconnected");
    assert_eq!(shown["causes"][0]["sinceSource"], "TimeAdded");
    let text = |moment: Moment| json!(moment.to_string());
    assert_eq!(shown["causes"][0]["since"], text(after(-1_300)));
    assert_eq!(shown["causes"][0]["replacingSince"], text(START));
    assert_eq!(shown["causes"][0]["dueAt"], text(after(1_801)));
    assert_eq!(shown["nextTransitionTime"], text(after(1_801)));
    assert_eq!(shown["conditions"][1]["type"], "NodeTaintReplacing");
}
