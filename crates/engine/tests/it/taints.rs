//! Taints and tolerations: upstream's cases by name, and what ours adds to them.

use berth_engine::select::{Cause, Outcome};

use crate::fixtures::{Fleet, Request, at, fleet, web};

/// What becomes of cluster `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Selected,
    Refused,
    /// The placement cannot be understood.
    Misconfigured(&'static str),
}
use Is::{Misconfigured, Refused, Selected};

struct Case {
    upstream: &'static str,
    taints: &'static [&'static str],
    tolerations: fn(Request) -> Request,
    /// Whether the placement holds the cluster already.
    held: bool,
    is: Is,
}

const fn case(
    upstream: &'static str,
    taints: &'static [&'static str],
    tolerations: fn(Request) -> Request,
    held: bool,
    is: Is,
) -> Case {
    Case { upstream, taints, tolerations, held, is }
}

fn none(request: Request) -> Request {
    request
}

fn key1_value1(request: Request) -> Request {
    request.tolerate("key1", "Equal", "value1")
}

fn key2_value2(request: Request) -> Request {
    request.tolerate("key2", "Equal", "value2")
}

const NEW: bool = false;
const HELD: bool = true;

/// TestMatchWithClusterTaintToleration.
const CASES: &[Case] = &[
    case("taint.Effect is NoSelect and tolerations is empty", &["key1=value1:NoSelect"], none, NEW, Refused),
    case(
        "taint.Effect is NoSelect and tolerations.Operator is Equal, key/value matches",
        &["key1=value1:NoSelect"],
        key1_value1,
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelect and tolerations.Operator is Equal, toleration has empty key",
        &["key1=value1:NoSelect"],
        |request| request.tolerate("", "Equal", "value1"),
        NEW,
        Misconfigured("TaintToleration:If the key is empty, operator must be Exists."),
    ),
    case(
        "taint.Effect is NoSelect and tolerations.Operator is Equal, toleration has empty value",
        &["key1:NoSelect"],
        |request| request.tolerate("key1", "Equal", ""),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelect and tolerations.Operator is Equal, key/value doesn't match",
        &["key1=value1:NoSelect"],
        key2_value2,
        NEW,
        Refused,
    ),
    case(
        "taint.Effect is NoSelect and tolerations.Operator is Exist, key matches",
        &["key1=value1:NoSelect"],
        |request| request.exists("key1"),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelect and tolerations.Operator is Exist, toleration has empty key",
        &["key1=value1:NoSelect", "key2=value2:NoSelect"],
        |request| request.exists(""),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelect and tolerations.Operator is Exist, toleration has empty value",
        &["key1=value1:NoSelect"],
        |request| request.tolerate("key1", "Exists", ""),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelect and tolerations.Operator is Exist, toleration key doesn't match",
        &["key1=value1:NoSelect"],
        |request| request.exists("key2"),
        NEW,
        Refused,
    ),
    case(
        "taint.Effect is NoSelectIfNew and tolerations is empty, cluster is not in decision",
        &["key1=value1:NoSelectIfNew"],
        none,
        NEW,
        Refused,
    ),
    case(
        "taint.Effect is NoSelectIfNew and tolerations is empty, cluster is in decision",
        &["key1=value1:NoSelectIfNew"],
        none,
        HELD,
        Selected,
    ),
    case(
        "taint.Effect is NoSelectIfNew and tolerations matches, cluster is not in decision",
        &["key1=value1:NoSelectIfNew"],
        key1_value1,
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelectIfNew and tolerations matches, cluster is in decision",
        &["key1=value1:NoSelectIfNew"],
        key1_value1,
        HELD,
        Selected,
    ),
    case(
        "taint.Effect is NoSelectIfNew and tolerations doesn't match, cluster is not in decision",
        &["key1=value1:NoSelectIfNew"],
        key2_value2,
        NEW,
        Refused,
    ),
    case(
        "taint.Effect is NoSelectIfNew and tolerations doesn't match, cluster is in decision",
        &["key1=value1:NoSelectIfNew"],
        key2_value2,
        HELD,
        Selected,
    ),
    case(
        "taint.Effect is PreferNoSelect and tolerations is Empty",
        &["key1=value1:PreferNoSelect"],
        none,
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is PreferNoSelect and tolerations matches",
        &["key1=value1:PreferNoSelect"],
        key1_value1,
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is PreferNoSelect and tolerations doesn't match",
        &["key1=value1:PreferNoSelect"],
        key2_value2,
        NEW,
        Selected,
    ),
    case(
        "cluster has multiple taints and placement has multiple tolerations, all the taints are matched",
        &["key1=value1:NoSelect", "key2=value2:NoSelect"],
        |request| key2_value2(key1_value1(request)),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelect, key/value matches, toleration effect is empty",
        &["key1=value1:NoSelect"],
        |request| key1_value1(request).effect(""),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelect, key/value matches, toleration effect doesn't match",
        &["key1=value1:NoSelect"],
        |request| key1_value1(request).effect("NoSelectIfNew"),
        NEW,
        Refused,
    ),
    case(
        "taint.Effect is NoSelect, key/value matches, toleration effect matches",
        &["key1=value1:NoSelect"],
        |request| key1_value1(request).effect("NoSelect"),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelectIfNew, key/value matches, toleration effect is empty",
        &["key1=value1:NoSelectIfNew"],
        |request| key1_value1(request).effect(""),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelectIfNew, key/value matches, toleration effect matches",
        &["key1=value1:NoSelectIfNew"],
        |request| key1_value1(request).effect("NoSelectIfNew"),
        NEW,
        Selected,
    ),
    case(
        "taint.Effect is NoSelectIfNew, key/value matches, toleration effect doesn't match",
        &["key1=value1:NoSelectIfNew"],
        |request| key1_value1(request).effect("NoSelect"),
        NEW,
        Refused,
    ),
    case(
        "taint.Effect is NoSelectIfNew, cluster is in decision, toleration effect is empty",
        &["key1=value1:NoSelectIfNew"],
        |request| key1_value1(request).effect(""),
        HELD,
        Selected,
    ),
    case(
        "taint.Effect is NoSelectIfNew, cluster is in decision, toleration effect matches",
        &["key1=value1:NoSelectIfNew"],
        |request| key1_value1(request).effect("NoSelectIfNew"),
        HELD,
        Selected,
    ),
    case(
        "taint.Effect is NoSelectIfNew, cluster is in decision, toleration effect doesn't match",
        &["key1=value1:NoSelectIfNew"],
        |request| key1_value1(request).effect("NoSelect"),
        HELD,
        Selected,
    ),
];

/// Beyond upstream's list.
const MORE: &[Case] = &[
    case(
        "an operator Exists with a value is a mistake",
        &["key1=value1:NoSelect"],
        |request| request.tolerate("key1", "Exists", "value1"),
        NEW,
        Misconfigured("TaintToleration:If the operator is Exists, the value should be empty."),
    ),
    case(
        "all taints must be tolerated, not some",
        &["key1=value1:NoSelect", "key2:NoSelect"],
        key1_value1,
        NEW,
        Refused,
    ),
    case("a cluster that is held leaves for NoSelect", &["key1=value1:NoSelect"], none, HELD, Refused),
    case(
        "an empty operator is Equal",
        &["key1=v:NoSelect"],
        |request| request.tolerate("key1", "", "v"),
        NEW,
        Selected,
    ),
    case(
        "a later toleration may be the one that matches",
        &["key1=value1:NoSelect"],
        |request| key1_value1(key2_value2(request)),
        NEW,
        Selected,
    ),
    case(
        "of two that match, the one that still holds decides",
        &["key1=value1:NoSelect"],
        |request| key1_value1(request).seconds(0).exists("key1").seconds(60),
        NEW,
        Selected,
    ),
    case("an effect nobody knows bars", &["key1=value1:Melt"], none, HELD, Refused),
    case("keys and values are told apart by case", &["Key1=value1:NoSelect"], key1_value1, NEW, Refused),
];

/// Upstream: taint_toleration_test.go "TestMatchWithClusterTaintToleration".
/// Upstream: integration/placement/toleration_test.go "Should schedule successfully when taint/toleration matches".
#[test]
fn every_case_of_taint_and_toleration() {
    for Case { upstream, taints, tolerations, held, is } in CASES.iter().chain(MORE) {
        let request = tolerations(web());
        let mut fleet = fleet().cluster("a");
        for taint in *taints {
            fleet = fleet.taint(taint, 0);
        }
        if *held {
            fleet = fleet.decided(&request.key(), &["a"]);
        }
        let mut world = fleet.placement(&request).world();
        let decision = world.decide(&request.key(), at(0)).unwrap();
        let got = match &decision.complaints[..] {
            [] if decision.picks.is_empty() => Refused,
            [] => Selected,
            [first, ..] => Misconfigured(first.condition_message().leak()),
        };
        assert_eq!(got, *is, "{upstream}");
    }
}

/// Upstream: taint_toleration_test.go "TestMatchWithClusterTaintToleration: tanits match tolerations by
/// toleration.TolerationSeconds".
#[test]
fn a_toleration_of_ten_seconds_holds_for_nine_and_not_for_ten() {
    let request = web().exists("key1").seconds(10);
    let fleet = || fleet().cluster("a").taint("key1:NoSelect", 0);
    for (now, selected) in [(-5, true), (0, true), (8, true), (9, true), (10, false), (11, false)] {
        assert_eq!(!fleet().selected(&request, now).is_empty(), selected, "after {now}s");
    }
    let mut world = fleet().placement(&request).world();
    let last_moment = berth_engine::Moment::from_timestamp(
        at(10).timestamp().unwrap() - std::time::Duration::from_micros(1),
    );
    assert_eq!(world.selected(&request.key(), last_moment), ["a"], "it holds strictly before its end");
}

/// Upstream: taint_toleration_test.go "TestMatchWithClusterTaintToleration: placement requeue placement when expire
/// toleration.TolerationSeconds".
#[test]
fn the_next_change_is_the_earliest_end_among_selected_clusters() {
    let request = web().number(2).exists("key1").seconds(10).exists("key2").seconds(20);
    let mut world = fleet()
        .cluster("a")
        .taint("key2:NoSelect", 0)
        .cluster("b")
        .taint("key1:NoSelect", 5)
        .taint("key2:NoSelect", 0)
        .cluster("c")
        .taint("key1:NoSelect", 0)
        .placement(&request)
        .world();
    // c, which is not selected, would be the first to leave.
    let next = world.decide(&request.key(), at(1)).unwrap().next.unwrap();
    assert_eq!((next.at, &*next.cluster), (at(15), "b"));
    assert_eq!(next.cause, Cause::TolerationEnds { taint: "key1:NoSelect".into() });
    assert_eq!(world.selected(&request.key(), at(1)), ["a", "b"]);
    assert_eq!(world.selected(&request.key(), at(15)), ["a"], "c left before b did");
    let next = world.decide(&request.key(), at(15)).unwrap().next.unwrap();
    assert_eq!((next.at, &*next.cluster), (at(20), "a"));
}

#[test]
fn no_time_of_its_own_means_a_limited_toleration_has_ended() {
    let fleet = || fleet().cluster("a").timeless_taint("key1:NoSelect");
    assert!(fleet().selected(&web().exists("key1").seconds(i64::MAX - 1), 0).is_empty());
    assert_eq!(fleet().selected(&web().exists("key1"), 0), ["a"]);
}

#[test]
fn zero_and_less_tolerate_nothing() {
    for seconds in [0, -1, i64::MIN] {
        let fleet = fleet().cluster("a").taint("key1:NoSelect", 0);
        assert!(fleet.selected(&web().exists("key1").seconds(seconds), 0).is_empty(), "{seconds}");
    }
}

#[test]
fn unlimited_beside_limited_lasts_whichever_is_written_first() {
    let fleet = || fleet().cluster("a").taint("key1:NoSelect", 0);
    let limited_first = web().exists("key1").seconds(10).exists("key1");
    let limited_last = web().exists("key1").exists("key1").seconds(10);
    for request in [limited_first, limited_last] {
        let mut world = fleet().placement(&request).world();
        assert_eq!(world.selected(&request.key(), at(100)), ["a"]);
        assert_eq!(world.decide(&request.key(), at(1)).unwrap().next, None);
    }
}

#[test]
fn a_limited_toleration_of_a_bar_against_new_selections_announces_nothing() {
    // Selected while it is tolerated, and kept as held after that: time changes nothing.
    let request = web().exists("key1").seconds(10);
    let mut world = fleet().cluster("a").taint("key1:NoSelectIfNew", 0).placement(&request).world();
    world.settle(&request.key(), at(1)).unwrap();
    assert_eq!(world.decide(&request.key(), at(2)).unwrap().next, None);
    assert_eq!(world.selected(&request.key(), at(100)), ["a"]);
}

#[test]
fn where_scores_are_relative_a_new_cluster_is_not_announced_to_leave_when_it_stays() {
    // Once written it is held, and the bar is against new selections.
    let relative = [
        web().exact(&[("ResourceAllocatableCPU", 1)]),
        web().spread("region", "Label", 1, "ScheduleAnyway"),
        web().apart("region", "Label"),
    ];
    for request in relative {
        let request = request.number(1).exists("key1").seconds(10);
        let fleet = fleet().cluster("a").label("region", "r1").resources("8", "8");
        let fleet = fleet.taint("key1:NoSelectIfNew", 0);
        let mut world = fleet.placement(&request).world();
        let first = world.decide(&request.key(), at(1)).unwrap();
        assert_eq!((crate::world::World::names(&first), first.next), (vec!["a".to_owned()], None));
        world.settle(&request.key(), at(1)).unwrap();
        assert_eq!(world.decide(&request.key(), at(2)).unwrap().next, None);
        assert_eq!(world.selected(&request.key(), at(100)), ["a"]);
    }
}

#[test]
fn where_scores_are_relative_a_cluster_that_is_not_selected_is_still_announced_to_leave() {
    let request = web().number(1).exact(&[("ResourceAllocatableCPU", 1)]).exists("key1").seconds(10);
    let fleet = fleet().cluster("a").resources("8", "8");
    let fleet = fleet.cluster("b").resources("4", "4").taint("key1:NoSelectIfNew", 0);
    let next = fleet.placement(&request).world().decide(&request.key(), at(1)).unwrap().next.unwrap();
    assert_eq!((next.at, &*next.cluster), (at(10), "b"));
}

fn shunning() -> Fleet {
    fleet().cluster("a").taint("old:PreferNoSelect", 0).cluster("b").cluster("c")
}

#[test]
fn whoever_is_to_be_avoided_is_selected_last() {
    assert_eq!(shunning().selected(&web().number(2), 0), ["b", "c"]);
    assert_eq!(shunning().selected(&web().number(3), 0), ["a", "b", "c"]);
    assert_eq!(
        shunning().selected(&web().number(2).exists("old"), 0),
        ["a", "b"],
        "tolerated, it is like the others"
    );
}

#[test]
fn a_cluster_to_be_avoided_is_left_although_it_was_selected() {
    let request = web().number(2);
    let selected = shunning().decided(&request.key(), &["a", "b"]).selected(&request, 0);
    assert_eq!(selected, ["b", "c"]);
}

#[test]
fn a_policy_may_say_what_avoidance_weighs() {
    let keeps = web().number(2).additive(&[("PreferNoSelect", 0)]);
    assert_eq!(shunning().selected(&keeps, 0), ["a", "b"]);
    let weighed = web().number(1).exact(&[("PreferNoSelect", 1), ("AddOn/demo/cpu", 1)]);
    let scored = |value| shunning().score("a", "demo", "cpu", value, None);
    // -100 + 100 against 0: even, and a comes first by name.
    assert_eq!(scored(100).selected(&weighed, 0), ["a"]);
    assert_eq!(scored(99).selected(&weighed, 0), ["b"]);
}

#[test]
fn avoidance_that_begins_later_is_announced() {
    let request = web().number(1).exists("old").seconds(10);
    let mut world = shunning().placement(&request).world();
    assert_eq!(world.selected(&request.key(), at(9)), ["a"]);
    let next = world.decide(&request.key(), at(9)).unwrap().next.unwrap();
    assert_eq!((next.at, next.cause), (at(10), Cause::PreferenceEnds { taint: "old:PreferNoSelect".into() }));
    assert_eq!(world.selected(&request.key(), at(10)), ["b"]);
}

/// Upstream: integration/placement/toleration_test.go "Should schedule when taint/toleration effect matches".
#[test]
fn a_new_bar_evicts_by_its_effect() {
    let request = web();
    for (effect, stays) in [("NoSelect", false), ("NoSelectIfNew", true), ("PreferNoSelect", true)] {
        let mut world = fleet().clusters(["a", "b"]).placement(&request).world();
        world.settle(&request.key(), at(0)).unwrap();
        let tainted = fleet().cluster("a").taint(&format!("key1:{effect}"), 1).objects.pop().unwrap();
        assert_eq!(world.apply(tainted), [request.key()], "whoever holds it is asked");
        let selected = world.selected(&request.key(), at(1));
        assert_eq!(selected.contains(&"a".to_owned()), stays, "{effect}");
    }
}

/// Upstream: integration/placement/toleration_test.go "Should reschedule when expire TolerationSeconds".
#[test]
fn tolerations_of_ten_and_twenty_seconds_end_in_that_order_and_a_new_taint_evicts_at_once() {
    let request = web().number(4).exists("key1").seconds(10).exists("key2").seconds(20);
    let mut world = fleet()
        .cluster("a")
        .taint("key1:NoSelect", 0)
        .cluster("b")
        .taint("key2:NoSelect", 0)
        .clusters(["c", "d"])
        .placement(&request)
        .world();
    assert_eq!(world.selected(&request.key(), at(0)), ["a", "b", "c", "d"]);
    assert_eq!(world.selected(&request.key(), at(10)), ["b", "c", "d"]);
    assert_eq!(world.selected(&request.key(), at(20)), ["c", "d"]);
    let tainted = fleet().cluster("d").taint("key3:NoSelect", 21).objects.pop().unwrap();
    assert_eq!(world.apply(tainted), [request.key()]);
    let decision = world.decide(&request.key(), at(21)).unwrap();
    assert_eq!((crate::world::World::names(&decision), decision.unscheduled), (vec!["c".to_owned()], 3));
    assert_eq!(decision.outcome, Outcome::Decided);
}

#[test]
fn where_avoided_clusters_are_wanted_the_moment_one_becomes_so_is_announced() {
    let request = web().number(1).exact(&[("PreferNoSelect", -1)]).exists("old").seconds(10);
    let mut world =
        fleet().cluster("a").cluster("b").taint("old:PreferNoSelect", 0).placement(&request).world();
    assert_eq!(world.selected(&request.key(), at(9)), ["a"]);
    let next = world.decide(&request.key(), at(9)).unwrap().next.map(|next| next.at);
    assert_eq!(world.selected(&request.key(), at(10)), ["b"]);
    assert_eq!(next, Some(at(10)));
}

#[test]
fn where_avoided_clusters_are_wanted_a_new_taint_touches_those_who_do_not_hold_it() {
    let request = web().number(1).exact(&[("PreferNoSelect", -1)]);
    let mut world = fleet().clusters(["a", "b"]).placement(&request).world();
    world.settle(&request.key(), at(0)).unwrap();
    let tainted = fleet().cluster("b").taint("old:PreferNoSelect", 0).objects.pop().unwrap();
    assert_eq!(world.apply(tainted), [request.key()]);
    assert_eq!(world.selected(&request.key(), at(0)), ["b"]);
}
