//! Tests of the zones.

use proptest::prelude::*;

use super::super::fixtures::{at, zone};
use super::*;

/// Counts so many nodes of a zone as ready, and so many as not.
fn put(zones: &mut Zones, name: &str, ready: usize, not_ready: usize) {
    for index in 0..ready + not_ready {
        let standing = if index < ready { Standing::Ready } else { Standing::NotReady };
        zones.count(&format!("{name}-{index}").into(), &zone(name), standing);
    }
}

fn all_down(zones: &mut Zones, now: i64) -> bool {
    zones.turn(at(now));
    zones.is_all_down()
}

/// The pace of a zone, in nodes a second.
fn pace(zones: &Zones, name: &str) -> f64 {
    match zones.watched[&zone(name)].pace.unwrap() {
        Rate::Every { interval, burst: 1 } => 1.0 / interval.as_secs_f64(),
        Rate::Stopped => 0.0,
        other => panic!("{other:?}"),
    }
}

/// The table of the disruption modes.
#[test]
fn the_pace_follows_the_state_of_the_zone_and_its_size() {
    for (ready, not_ready, per_second) in
        [(10, 0, 0.1), (1, 2, 0.1), (2, 3, 0.0), (22, 28, 0.0), (22, 29, 0.01), (0, 4, 0.1), (0, 60, 0.1)]
    {
        let mut zones = Zones::new(DisruptionPolicy::default());
        put(&mut zones, "a", ready, not_ready);
        put(&mut zones, "other", 1, 0);
        zones.turn(at(0));
        assert!((pace(&zones, "a") - per_second).abs() < 1e-9, "{ready} ready, {not_ready} not");
    }
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealth: No Disruption: Initially both zones down,
/// one comes back", "TestMonitorNodeHealth: Full Disruption: all the Nodes in both the zones are down".
#[test]
fn everything_is_down_only_when_no_zone_has_a_node_that_is_ready() {
    let mut zones = Zones::new(DisruptionPolicy::default());
    put(&mut zones, "a", 0, 3);
    put(&mut zones, "b", 1, 2);
    assert!(!all_down(&mut zones, 0));
    put(&mut zones, "b", 0, 3);
    assert!(all_down(&mut zones, 1));
    assert!(pace(&zones, "a") == 0.0 && pace(&zones, "b") == 0.0);
    put(&mut zones, "b", 1, 2);
    assert!(all_down(&mut zones, 2), "a flicker is not the end of it");
    assert_eq!(zones.wake(), Some(at(7)));
    assert!(!all_down(&mut zones, 7));
    assert!(pace(&zones, "a") > 0.0 && pace(&zones, "b") > 0.0, "and nobody waits for another calm");
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealth: Full Disruption: the only available Node
/// has the node.kubernetes.io/exclude-disruption label".
#[test]
fn excluded_nodes_do_not_count_and_where_nobody_counts_nothing_is_said() {
    let mut zones = Zones::new(DisruptionPolicy::default());
    put(&mut zones, "a", 0, 2);
    zones.count(&"alive".into(), &zone("a"), Standing::Excluded);
    assert!(all_down(&mut zones, 0));
    let mut zones = Zones::new(DisruptionPolicy::default());
    zones.count(&"dead".into(), &zone("a"), Standing::Excluded);
    assert!(!all_down(&mut zones, 0));
    assert!(pace(&zones, "a") > 0.0, "it goes at the pace of a zone that is well");
}

#[test]
fn less_is_let_go_at_once_and_more_after_a_calm() {
    let mut zones = Zones::new(DisruptionPolicy::default());
    put(&mut zones, "a", 10, 0);
    assert_eq!(zones.turn(at(0)), [ZoneNews::Pace(zone("a"), Rate::per_second(0.1, 1))]);
    put(&mut zones, "a", 4, 6);
    assert_eq!(zones.turn(at(1)), [ZoneNews::Pace(zone("a"), Rate::Stopped)]);
    put(&mut zones, "a", 5, 5);
    assert_eq!(zones.turn(at(2)), []);
    put(&mut zones, "a", 4, 6);
    assert_eq!(zones.turn(at(6)), []);
    put(&mut zones, "a", 5, 5);
    assert_eq!(zones.turn(at(7)), [], "a flutter begins the calm anew");
    assert_eq!(zones.turn(at(11)), []);
    assert_eq!(zones.wake(), Some(at(12)));
    assert_eq!(zones.turn(at(12)), [ZoneNews::Pace(zone("a"), Rate::per_second(0.1, 1))]);
    assert_eq!((zones.turn(at(13)), zones.wake()), (vec![], None));
}

#[test]
fn a_zone_without_nodes_is_forgotten_after_a_while_and_not_before() {
    let mut zones = Zones::new(DisruptionPolicy::default());
    put(&mut zones, "a", 1, 0);
    put(&mut zones, "b", 1, 0);
    zones.turn(at(0));
    zones.forget("a-0");
    assert_eq!((zones.turn(at(1)), zones.counts().count()), (vec![], 1));
    put(&mut zones, "a", 1, 0);
    assert_eq!((zones.turn(at(2)), zones.counts().count()), (vec![], 2));
    zones.forget("a-0");
    zones.turn(at(3));
    zones.forget("b-0");
    assert_eq!(zones.turn(at(603)), [ZoneNews::Gone(zone("a"))]);
}

#[test]
fn armed_evictions_are_held_where_that_is_wanted() {
    for (when_all_down, holds) in [(WhenAllDown::Untaint, false), (WhenAllDown::Hold, true)] {
        let mut zones = Zones::new(DisruptionPolicy { when_all_down, ..DisruptionPolicy::default() });
        put(&mut zones, "a", 1, 0);
        zones.turn(at(0));
        assert_eq!(zones.freeze(), None);
        put(&mut zones, "a", 0, 1);
        zones.turn(at(1));
        assert_eq!(zones.freeze().is_some(), holds);
        assert!(zones.freeze().is_none_or(|freeze| freeze.since == Some(at(1))));
    }
}

proptest! {
    /// After any history, a calm with the same counts ends in what the counts say, and never with more let go before it.
    #[test]
    fn the_pace_ends_where_the_counts_say_and_never_gets_there_too_soon(
        steps in prop::collection::vec((0_usize..2, 0_usize..6, 0_usize..6, -20_i64..20), 1..40),
    ) {
        let policy = DisruptionPolicy::default();
        let mut zones = Zones::new(policy);
        let mut now = 0;
        for (place, ready, not_ready, step) in steps {
            now += step;
            let name = ["a", "b"][place];
            for index in 0..12 {
                zones.forget(&format!("{name}-{index}"));
            }
            put(&mut zones, name, ready, not_ready);
            zones.turn(at(now));
            for watched in zones.watched.values() {
                let target = policy.pace(watched.state(policy.unhealthy_share), watched.counts.size());
                prop_assert!(!watched.pace.unwrap().lets_more_go_than(target));
            }
            let wake = zones.wake();
            prop_assert!(wake.is_none_or(|wake| wake <= at(now).plus(policy.calm)));
        }
        zones.turn(at(now + 5));
        zones.turn(at(now + 10));
        let fresh_down = {
            let mut counted = zones.watched.values().filter(|zone| zone.counts.size() > 0).peekable();
            counted.peek().is_some() && counted.all(|zone| zone.counts.ready == 0)
        };
        if zones.watched.values().any(|zone| zone.counts.size() > 0) {
            prop_assert_eq!(zones.is_all_down(), fresh_down);
        }
        for watched in zones.watched.values() {
            let by_counts = policy.pace(watched.state(policy.unhealthy_share), watched.counts.size());
            let expected = if zones.is_all_down() { Rate::Stopped } else { by_counts };
            prop_assert_eq!(watched.pace, Some(expected));
        }
    }
}
