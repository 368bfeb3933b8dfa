//! How many are on their way out at once, of all and of each zone.

use super::policies::{after, put_policy, settle};
use super::*;

/// How long the pods of these worlds take to end.
const GRACE: i64 = 30;

/// Tainted nodes with so many pods each, each node in a zone of its name; none of the pods tolerates the taint.
fn emptying(limits: EvictionLimits, nodes: &[(&str, usize)]) -> Scene {
    let mut stage = with(limits);
    let taint = taint(&stage, KEY);
    for (zone, pods) in nodes {
        let mut node = node(zone, json!([taint]));
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(zone);
        stage.put(Kind::Node, node);
        for number in 0..*pods {
            stage.put(Kind::Pod, slow(&format!("{zone}-{number}"), zone));
        }
    }
    stage
}

/// A pod that takes its time to end.
fn slow(name: &str, node: &str) -> Value {
    let mut pod = named(name, node, json!([]));
    pod["spec"]["terminationGracePeriodSeconds"] = json!(GRACE);
    pod
}

fn deleted(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("delete Pod n/")).collect()
}

fn so_many(in_flight: u32) -> EvictionLimits {
    EvictionLimits { in_flight: Some(in_flight), ..EvictionLimits::default() }
}

#[test]
fn so_many_are_on_their_way_out_at_once_and_no_more() {
    let mut stage = emptying(so_many(3), &[("a", 4), ("b", 4)]);
    assert_eq!(deleted(&stage.settle()).len(), 3);
    assert_eq!(deleted(&stage.after_seconds(GRACE - 1)), NOTHING);
    assert!(stage.controller.metrics.text().contains("berth_evictions_held{reason=\"full\"} 5"));
    let leaving = stage.world.pods.iter().find(|(_, pod)| pod.is_terminating()).unwrap().0.clone();
    stage.remove(Kind::Pod, &leaving);
    assert_eq!(deleted(&stage.settle()).len(), 1);
}

#[test]
fn so_many_of_one_zone_are_on_their_way_out_at_once_and_no_more() {
    let limits = EvictionLimits { zone_in_flight: Some(1), ..EvictionLimits::default() };
    let mut stage = emptying(limits, &[("a", 2), ("b", 2)]);
    assert_eq!(deleted(&stage.settle()), ["a-0", "b-0"]);
    stage.remove(Kind::Pod, &key("b-0"));
    assert_eq!(deleted(&stage.settle()), ["b-1"]);
    assert_eq!(deleted(&stage.after_seconds(GRACE - 1)), NOTHING);
}

#[test]
fn who_hangs_keeps_nobody_waiting_for_longer_than_its_grace_period() {
    let mut stage = emptying(so_many(1), &[("a", 2)]);
    assert_eq!(deleted(&stage.settle()), ["a-0"]);
    assert_eq!(stage.controller.leaving.wake(), Some(stage.now.plus_seconds(GRACE)));
    assert_eq!(deleted(&stage.after_seconds(GRACE - 1)), NOTHING);
    assert_eq!(deleted(&stage.after_seconds(1)), ["a-1"], "the first one is there for ever");
}

#[test]
fn who_leaves_by_anothers_hand_counts_and_who_leaves_a_clean_node_does_not() {
    let mut stage = emptying(so_many(1), &[("a", 1)]);
    stage.put(Kind::Node, node("clean", json!([])));
    for (name, node) in [("rolled", "clean"), ("others", "a")] {
        let mut pod = slow(name, node);
        pod["metadata"]["deletionTimestamp"] = json!(stage.now.plus_seconds(GRACE).to_string());
        stage.put(Kind::Pod, pod);
    }
    assert_eq!(stage.settle(), NOTHING);
    stage.remove(Kind::Pod, &key("others"));
    assert_eq!(deleted(&stage.settle()), ["a-0"]);
}

#[test]
fn a_process_that_begins_counts_those_whom_it_finds_on_their_way() {
    let mut stage = emptying(so_many(1), &[("a", 2)]);
    assert_eq!(deleted(&stage.settle()), ["a-0"]);
    let mut begun = with(so_many(1));
    begun.now = stage.now.plus_seconds(1);
    for ((kind, _), object) in stage.objects() {
        begun.bring(*kind, object.clone());
    }
    assert_eq!(deleted(&begun.settle()), NOTHING);
    begun.remove(Kind::Pod, &key("a-0"));
    assert_eq!(deleted(&begun.settle()), ["a-1"]);
}

#[test]
fn a_bound_above_the_places_for_requests_leaves_those_as_they_are() {
    let many = u32::try_from(PLACES).unwrap() + 10;
    let limits = so_many(many);
    assert_eq!(limits.of_all(PLACES, 0).in_flight.of(0), PLACES);
    assert_eq!(limits.of_all(PLACES, 5).in_flight.of(0), PLACES + 5, "five are answered, and still leaving");
    assert_eq!(limits.of_all(PLACES, 40).in_flight.of(0), PLACES + 10);
    let mut stage = emptying(limits, &[("a", PLACES + 20)]);
    assert_eq!(deleted(&stage.settle()).len(), PLACES + 10);
}

#[test]
fn who_does_not_end_is_not_kept_from_force_by_the_place_that_it_takes_itself() {
    let after_all = json!({"forceDeleteAfterSeconds": 60, "acceptRisk": true});
    let mut stage = with(so_many(1));
    put_policy(&mut stage, "p", json!({"way": "Delete", "after": after_all}));
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, slow("p", "node"));
    assert_eq!(settle(&mut stage), BOTH);
    assert_eq!(after(&mut stage, 90), ["delete by force Pod n/p"]);
}
