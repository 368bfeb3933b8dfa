//! Prioritizers: upstream's cases by name with upstream's numbers, and the policies that weigh them.

use std::collections::BTreeMap;

use berth_engine::PlacementKey;

use crate::fixtures::{Fleet, Request, at, decision, fleet, web};
use berth_engine::Delta;

/// What upstream calls it, the world, and the totals wanted.
type Case = (&'static str, Fleet, [(&'static str, i64); 3]);

/// The totals of all feasible clusters.
fn totals(fleet: Fleet, request: &Request, now: i64) -> BTreeMap<String, i64> {
    let account = fleet.placement(request).world().explain(&request.key(), at(now));
    account.clusters.iter().filter_map(|one| Some((one.cluster.to_string(), one.total?))).collect()
}

fn of<const N: usize>(totals: [(&str, i64); N]) -> BTreeMap<String, i64> {
    totals.map(|(name, total)| (name.to_owned(), total)).into()
}

fn other(name: &str) -> PlacementKey {
    PlacementKey::new("elsewhere", name)
}

/// Upstream: balance_test.go "TestScoreClusterWithSteady".
#[test]
fn balance_counts_the_decisions_of_others() {
    let request = web().exact(&[("Balance", 1)]);
    let fleet = || fleet().clusters(["a", "b", "c"]);
    let cases: [Case; 5] = [
        ("no decisions", fleet(), [("a", 100), ("b", 100), ("c", 100)]),
        (
            "one decision belongs to current placement",
            fleet().decided(&request.key(), &["a"]),
            [("a", 100), ("b", 100), ("c", 100)],
        ),
        (
            "one decision not belong to current placement",
            fleet().decided(&other("p"), &["a"]),
            [("a", -100), ("b", 100), ("c", 100)],
        ),
        (
            "multiple decisions",
            fleet()
                .decided(&request.key(), &["a", "b"])
                .decided(&other("p"), &["a", "b"])
                .decided(&other("q"), &["a"]),
            [("a", -100), ("b", 0), ("c", 100)],
        ),
        (
            "a placement of the same name in another namespace is another",
            fleet().decided(&other("web"), &["a"]),
            [("a", -100), ("b", 100), ("c", 100)],
        ),
    ];
    for (upstream, fleet, wanted) in cases {
        assert_eq!(totals(fleet, &request, 0), of(wanted), "{upstream}");
    }
}

#[test]
fn balance_measures_by_the_busiest_cluster_whether_it_can_be_selected_or_not() {
    // Seven decisions on a cluster that is not even there; the vectors are upstream's, artefacts included.
    let request = web().exact(&[("Balance", 1)]);
    let names: Vec<String> = (0..=10).map(|load| format!("load-{load:02}")).collect();
    for (highest, row) in [
        (3, vec![100, 32, -32, -100]),
        (7, vec![100, 70, 42, 14, -14, -42, -70, -100]),
        (10, vec![100, 80, 60, 40, 18, 0, -18, -38, -60, -80, -100]),
    ] {
        let mut fleet = fleet().clusters(&names[..=highest]);
        for number in 1..=highest {
            let mut holds: Vec<&str> = names[number..=highest].iter().map(String::as_str).collect();
            holds.push("no-such-cluster");
            fleet = fleet.decided(&other(&format!("p{number}")), &holds);
        }
        let got: Vec<i64> = totals(fleet, &request, 0).into_values().collect();
        assert_eq!(got, row, "the busiest has {highest}");
    }
}

/// Upstream: steady_test.go "TestScoreClusterWithSteady".
#[test]
fn steady_prefers_what_is_selected() {
    let request = web().exact(&[("Steady", 1)]);
    let fleet = || fleet().clusters(["a", "b"]);
    let none = of([("a", 0), ("b", 0)]);
    assert_eq!(totals(fleet(), &request, 0), none, "no decisions");
    assert_eq!(
        totals(fleet().decided(&request.key(), &["b"]), &request, 0),
        of([("a", 0), ("b", 100)]),
        "one decisions"
    );
    assert_eq!(
        totals(fleet().decided(&other("web"), &["b"]), &request, 0),
        none,
        "one decisions, of another"
    );
}

/// Upstream: resource_test.go "TestScoreClusterWithResource".
#[test]
fn resources_are_measured_between_the_least_and_the_most() {
    for (name, amount) in [("CPU", ["10", "7", "9"]), ("Memory", ["10Gi", "7Gi", "9Gi"])] {
        let request = web().exact(&[(&format!("ResourceAllocatable{name}"), 1)]);
        let fleet_of = |amounts: [&str; 3]| {
            ["a", "b", "c"]
                .iter()
                .zip(amounts)
                .fold(fleet(), |fleet, (name, amount)| fleet.cluster(name).resources(amount, amount))
        };
        let cases = [
            ("scores of ResourceAllocatable", amount, [100, -100, 33]),
            ("with same resource value", ["5", "5", "5"], [100, 100, 100]),
            ("with zero resource value", ["0", "0", "0"], [100, 100, 100]),
        ];
        for (upstream, amounts, wanted) in cases {
            let wanted = of([("a", wanted[0]), ("b", wanted[1]), ("c", wanted[2])]);
            assert_eq!(totals(fleet_of(amounts), &request, 0), wanted, "{upstream} {name}");
        }
        let without = totals(fleet().clusters(["a", "b"]).cluster("c").resources("1", "1"), &request, 0);
        assert_eq!(without, of([("a", 0), ("b", 0), ("c", 100)]), "with no cluster resource {name}");
    }
}

#[test]
fn resources_follow_upstreams_vectors() {
    let request = web().exact(&[("ResourceAllocatableCPU", 1)]);
    let fleet = (0..=10).fold(fleet(), |fleet, amount| {
        fleet.cluster(&format!("has-{amount:02}")).resources(&amount.to_string(), "1")
    });
    let got: Vec<i64> = totals(fleet, &request, 0).into_values().collect();
    assert_eq!(got, [-100, -80, -60, -40, -19, 0, 19, 39, 60, 80, 100]);
}

#[test]
fn a_cluster_that_cannot_be_selected_does_not_move_the_scale() {
    let request = web().exact(&[("ResourceAllocatableCPU", 1)]);
    let fleet = fleet()
        .cluster("a")
        .resources("1", "1")
        .cluster("b")
        .resources("2", "1")
        .cluster("giant")
        .resources("1000", "1")
        .taint("down:NoSelect", 0);
    assert_eq!(totals(fleet, &request, 0), of([("a", -100), ("b", 100)]));
}

#[test]
fn an_amount_without_a_capacity_is_not_measured() {
    let request = web().exact(&[("ResourceAllocatableCPU", 1)]);
    let mut world =
        fleet().cluster("a").resources("1", "1").cluster("b").resources("3", "1").placement(&request).world();
    let mut cluster = world.clusters["b"].clone();
    cluster.status.as_mut().unwrap().capacity = None;
    assert_eq!(world.apply(Delta::Cluster(Box::new(cluster))), [request.key()]);
    let account = world.explain(&request.key(), at(0));
    let totals: Vec<_> = account.clusters.iter().map(|one| (&*one.cluster, one.total)).collect();
    assert_eq!(totals, [("a", Some(100)), ("b", Some(0))]);
}

/// Upstream: addon_test.go "TestScoreClusterWithAddOn".
#[test]
fn add_on_scores_count_while_they_are_valid() {
    let request = web().exact(&[("AddOn/demo/cpu", 1)]);
    let fleet = || fleet().clusters(["a", "b", "c"]);
    let cases: [Case; 5] = [
        ("no addon scores", fleet(), [("a", 0), ("b", 0), ("c", 0)]),
        (
            "part of addon scores generated",
            fleet().score("a", "demo", "cpu", 30, None),
            [("a", 30), ("b", 0), ("c", 0)],
        ),
        (
            "part of addon scores expired",
            fleet().score("a", "demo", "cpu", 30, Some(-1)).score("b", "demo", "cpu", 40, Some(0)),
            [("a", 0), ("b", 40), ("c", 0)],
        ),
        (
            "all the addon scores generated",
            fleet()
                .score("a", "demo", "cpu", 30, None)
                .score("b", "demo", "cpu", 40, Some(100))
                .score("c", "demo", "cpu", -50, None),
            [("a", 30), ("b", 40), ("c", -50)],
        ),
        (
            "another score, or the same of another resource, is none",
            fleet().score("a", "demo", "memory", 30, None).score("b", "other", "cpu", 30, None),
            [("a", 0), ("b", 0), ("c", 0)],
        ),
    ];
    for (upstream, fleet, wanted) in cases {
        assert_eq!(totals(fleet, &request, 0), of(wanted), "{upstream}");
    }
}

#[test]
fn an_expired_score_is_told_of_and_its_end_announced() {
    let request = web().exact(&[("AddOn/demo/cpu", 1), ("AddOn/demo/memory", 1)]);
    let mut world = fleet()
        .clusters(["b", "a"])
        .scores("a", "demo", &[("cpu", 1), ("memory", 2)], Some(-5))
        .scores("b", "demo", &[("cpu", 1), ("memory", 2)], Some(5))
        .placement(&request)
        .world();
    let decision = world.decide(&request.key(), at(0)).unwrap();
    assert_eq!(decision.expired, [("a".into(), "demo".into())], "once, although two prioritizers read it");
    let next = decision.next.unwrap();
    assert_eq!((next.at, &*next.cluster), (at(5).just_after(), "b"));
}

#[test]
fn a_score_that_changes_touches_only_those_who_rank_by_it() {
    let ranks = web().number(1).exact(&[("AddOn/demo/cpu", 1)]);
    let mut ignores = web().number(1);
    ignores.0.metadata.name = Some("ignores".into());
    let mut world = fleet().clusters(["a", "b"]).placement(&ranks).placement(&ignores).world();
    let score = |cluster: &str| fleet().score(cluster, "demo", "cpu", 50, None).objects.pop().unwrap();
    assert_eq!(world.apply(score("b")), [ranks.key()]);
    assert_eq!(world.selected(&ranks.key(), at(0)), ["b"]);
    assert_eq!(world.apply(score("nobody")), [], "the score of a cluster that is not there");
}

/// With the arithmetic of each policy.
/// Upstream: schedule_test.go "TestSchedule: placement with empty Prioritizer Policy", "TestSchedule: placement with
/// additive Prioritizer Policy", "TestSchedule: placement with exact Prioritizer Policy".
#[test]
fn policies_weigh_what_they_name() {
    let ground = || {
        fleet()
            .cluster("a")
            .resources("10", "50Gi")
            .cluster("b")
            .resources("7", "90Gi")
            .cluster("c")
            .resources("9", "80Gi")
            .decided(&web().key(), &["c"])
            .decided(&other("p"), &["a", "b"])
            .decided(&other("q"), &["b"])
            .score("b", "demo", "cpu", 20, None)
    };
    let cases: [(&str, Request, [i64; 3]); 8] = [
        ("placement with empty Prioritizer Policy", web(), [0, -100, 200]),
        ("an empty mode is Additive", web().policy("", &[]), [0, -100, 200]),
        (
            "placement with additive Prioritizer Policy",
            web().additive(&[("Balance", 3), ("ResourceAllocatableCPU", 1)]),
            [100, -400, 300 + 100 + 33],
        ),
        (
            "placement with exact Prioritizer Policy",
            web().exact(&[("ResourceAllocatableCPU", 1), ("ResourceAllocatableMemory", 1)]),
            [100 - 100, -100 + 100, 33 + 50],
        ),
        ("Exact without anything scores nothing", web().exact(&[]), [0, 0, 0]),
        ("a weight of zero switches a default off", web().additive(&[("Balance", 0)]), [0, 0, 100]),
        ("a negative weight turns the order round", web().exact(&[("AddOn/demo/cpu", -2)]), [0, -40, 0]),
        (
            "the same AddOn twice counts twice",
            web().exact(&[("AddOn/demo/cpu", 2), ("AddOn/demo/cpu", 3)]),
            [0, 100, 0],
        ),
    ];
    for (upstream, request, [a, b, c]) in cases {
        assert_eq!(totals(ground(), &request, 0), of([("a", a), ("b", b), ("c", c)]), "{upstream}");
    }
}

#[test]
fn the_last_of_two_built_in_entries_counts() {
    let request = web().exact(&[("Steady", 2), ("Steady", 5)]);
    let fleet = fleet().cluster("a").decided(&request.key(), &["a"]);
    assert_eq!(totals(fleet, &request, 0), of([("a", 500)]));
}

#[test]
fn policies_that_cannot_be_understood_say_what_is_wrong() {
    let none = || web().exact(&[]);
    let mut no_coordinate = none();
    let configurations = &mut no_coordinate.0.spec.prioritizer_policy.as_mut().unwrap().configurations;
    *configurations = Some(vec![berth_api::PrioritizerConfig::default()]);
    let mut no_add_on = none();
    let coordinate = berth_api::ScoreCoordinate { type_: Some("AddOn".into()), ..Default::default() };
    let configuration =
        berth_api::PrioritizerConfig { score_coordinate: Some(coordinate), ..Default::default() };
    no_add_on.0.spec.prioritizer_policy.as_mut().unwrap().configurations = Some(vec![configuration]);
    let cases = [
        (web().policy("Odd", &[]), ":incorrect prioritizer policy mode: Odd"),
        (web().exact(&[("Odd", 1)]), ":incorrect builtin prioritizer: Odd"),
        (no_coordinate, ":scoreCoordinate field is required"),
        (no_add_on, ":addOn should not be empty"),
    ];
    for (request, message) in cases {
        let decision =
            fleet().cluster("a").placement(&request).world().decide(&request.key(), at(0)).unwrap();
        let told = decision.complaints[0].condition_message();
        assert!(told.starts_with(message), "{told}");
        assert!(decision.picks.is_empty());
    }
    assert_eq!(
        fleet().cluster("a").selected(&web().exact(&[("Odd", 0)]), 0),
        ["a"],
        "what weighs nothing is not read"
    );
}

/// Upstream: schedule_test.go "TestSchedule: schedule to cluster with least decisions", "TestSchedule: do not schedule
/// to other cluster even with least decisions".
#[test]
fn by_default_a_new_placement_goes_where_fewest_are_and_an_old_one_stays() {
    let request = web().number(1);
    let busy = |fleet: Fleet| fleet.decided(&other("p"), &["a", "b"]).decided(&other("q"), &["a"]);
    let fleet = || busy(fleet().clusters(["a", "b", "c"]));
    assert_eq!(fleet().selected(&request, 0), ["c"]);
    // b is used half as much as the busiest, c not at all: 100 + 0 against 100, and b is first by name.
    assert_eq!(fleet().decided(&request.key(), &["b"]).selected(&request, 0), ["b"]);
    // a is the busiest: the difference is more than staying is worth.
    assert_eq!(fleet().decided(&request.key(), &["a"]).selected(&request, 0), ["c"]);
}

/// Upstream: integration/placement/prioritizer_test.go "Should keep steady successfully even placementdecisions'
/// balance and cluster situation changes".
#[test]
fn three_times_steady_outweighs_the_rest() {
    let request = web().number(2).additive(&[("Steady", 3)]);
    let mut world = fleet().clusters(["a", "b", "c", "d"]).placement(&request).world();
    world.settle(&request.key(), at(0)).unwrap();
    for number in 1..4 {
        let slice = decision(&other(&format!("p{number}")), 1, &["a", "b"]);
        assert_eq!(world.apply(Delta::Decision(Box::new(slice))), [], "others' decisions move nobody");
    }
    assert_eq!(world.selected(&request.key(), at(0)), ["a", "b"]);
}

/// Upstream: integration/placement/prioritizer_test.go "Should schedule successfully based on SchedulePolicy balance".
#[test]
fn twice_balance_avoids_a_cluster_that_another_holds() {
    let request = web().number(2).exact(&[("Balance", 2), ("ResourceAllocatableCPU", 1)]);
    let fleet = fleet()
        .cluster("a")
        .resources("10", "1")
        .cluster("b")
        .resources("8", "1")
        .cluster("c")
        .resources("6", "1")
        .decided(&other("p"), &["a"]);
    assert_eq!(fleet.selected(&request, 0), ["b", "c"]);
}

/// Upstream: integration/placement/prioritizer_test.go "Should re-schedule successfully once a new cluster with
/// resources added/deleted".
#[test]
fn a_richer_cluster_takes_the_place_of_a_poorer_one_and_gives_it_back() {
    let request = web().number(1).exact(&[("ResourceAllocatableCPU", 1)]);
    let mut world =
        fleet().cluster("a").resources("1", "1").cluster("b").resources("2", "1").placement(&request).world();
    assert_eq!(world.selected(&request.key(), at(0)), ["b"]);
    let rich = fleet().cluster("c").resources("3", "1").objects.pop().unwrap();
    assert_eq!(world.apply(rich), [request.key()]);
    assert_eq!(world.selected(&request.key(), at(0)), ["c"]);
    assert_eq!(world.apply(Delta::ClusterGone("c".into())), [request.key()]);
    assert_eq!(world.selected(&request.key(), at(0)), ["b"]);
}

#[test]
fn equals_are_taken_in_the_order_of_their_names() {
    assert_eq!(fleet().clusters(["z", "c10", "c2", "a"]).selected(&web().number(3), 0), ["a", "c10", "c2"]);
}
