//! Spreading and anti-affinity, in cases small enough to check by hand.

use berth_engine::explain::Verdict;
use berth_engine::select::Obstacle;

use crate::fixtures::{Fleet, Request, at, fleet, web};

/// Clusters `r1-1`, `r1-2`, ... in regions of these sizes.
fn regions(sizes: &[usize]) -> Fleet {
    let each = sizes
        .iter()
        .enumerate()
        .flat_map(|(region, size)| (1..=*size).map(move |number| (region + 1, number)));
    each.fold(fleet(), |fleet, (region, number)| {
        fleet.cluster(&format!("r{region}-{number}")).label("region", &format!("r{region}"))
    })
}

fn hard(skew: i32) -> Request {
    web().spread("region", "Label", skew, "DoNotSchedule")
}

fn soft(skew: i32) -> Request {
    web().spread("region", "Label", skew, "ScheduleAnyway")
}

fn per_region(selected: &[String]) -> Vec<usize> {
    ["r1", "r2", "r3"].map(|region| selected.iter().filter(|name| name.starts_with(region)).count()).to_vec()
}

#[test]
fn a_number_is_divided_evenly() {
    for request in [hard(1), soft(1)] {
        assert_eq!(per_region(&regions(&[9, 9, 9]).selected(&request.clone().number(3), 0)), [1, 1, 1]);
        assert_eq!(per_region(&regions(&[9, 9, 9]).selected(&request.clone().number(7), 0)), [3, 2, 2]);
        assert_eq!(per_region(&regions(&[9, 9, 0]).selected(&request.number(4), 0)), [2, 2, 0]);
    }
}

#[test]
fn a_hard_rule_leaves_the_number_unfilled_and_a_soft_one_fills_it() {
    let count = |request: Request| {
        let mut world = regions(&[5, 1, 5]).placement(&request).world();
        let decision = world.decide(&request.key(), at(0)).unwrap();
        (per_region(&crate::world::World::names(&decision)), decision.unscheduled)
    };
    assert_eq!(count(hard(1).number(9)), (vec![2, 1, 2], 4));
    assert_eq!(count(hard(3).number(9)), (vec![4, 1, 4], 0));
    assert_eq!(count(soft(1).number(9)), (vec![4, 1, 4], 0));
}

#[test]
fn without_a_number_as_many_are_selected_as_a_hard_rule_allows() {
    assert_eq!(per_region(&regions(&[5, 1, 3]).selected(&hard(1), 0)), [2, 1, 2]);
    assert_eq!(per_region(&regions(&[5, 1, 3]).selected(&soft(1), 0)), [5, 1, 3]);
}

#[test]
fn who_is_nowhere_is_refused_by_a_hard_rule_and_last_with_a_soft_one() {
    let fleet = || regions(&[1, 1, 0]).cluster("a-nowhere");
    assert_eq!(fleet().selected(&hard(1), 0), ["r1-1", "r2-1"]);
    assert_eq!(fleet().selected(&soft(1).number(2), 0), ["r1-1", "r2-1"]);
    assert_eq!(fleet().selected(&soft(1), 0), ["a-nowhere", "r1-1", "r2-1"]);
}

#[test]
fn earlier_rules_weigh_more_than_later_ones() {
    let cluster = |fleet: Fleet, name: &str, region: &str, vendor: &str| {
        fleet.cluster(name).label("region", region).label("vendor", vendor)
    };
    let fleet = || {
        let fleet = cluster(fleet(), "a", "r1", "x");
        let fleet = cluster(fleet, "b", "r1", "y");
        cluster(fleet, "c", "r2", "x")
    };
    let by_region = soft(1).spread("vendor", "Label", 1, "ScheduleAnyway").number(2);
    assert_eq!(fleet().selected(&by_region, 0), ["a", "c"]);
    let by_vendor = web()
        .spread("vendor", "Label", 1, "ScheduleAnyway")
        .spread("region", "Label", 1, "ScheduleAnyway")
        .number(2);
    assert_eq!(fleet().selected(&by_vendor, 0), ["a", "b"]);
}

#[test]
fn claims_are_places_too() {
    let fleet = ["a", "b", "c"]
        .iter()
        .zip(["z1", "z1", "z2"])
        .fold(fleet(), |fleet, (name, zone)| fleet.cluster(name).claim("zone", zone));
    assert_eq!(fleet.selected(&web().spread("zone", "Claim", 1, "DoNotSchedule").number(2), 0), ["a", "c"]);
}

#[test]
fn points_and_spreading_are_weighed_against_each_other() {
    let scored = |value: i32| {
        regions(&[2, 1, 0]).score("r1-1", "demo", "cpu", 90, None).score("r1-2", "demo", "cpu", value, None)
    };
    let request =
        |score: i32, spread: i32| soft(1).number(2).exact(&[("AddOn/demo/cpu", score), ("Spread", spread)]);
    // One above the allowed skew costs half of all there is, a hundred points; weights tell what more of either is worth.
    assert_eq!(scored(2).selected(&request(1, 1), 0), ["r1-1", "r2-1"]);
    assert_eq!(scored(80).selected(&request(1, 1), 0), ["r1-1", "r2-1"]);
    assert_eq!(scored(80).selected(&request(2, 1), 0), ["r1-1", "r1-2"]);
    assert_eq!(scored(80).selected(&request(2, 2), 0), ["r1-1", "r2-1"]);
    // A rule is not weighed.
    let rule = hard(1).number(2).exact(&[("AddOn/demo/cpu", 10)]);
    assert_eq!(scored(89).selected(&rule, 0), ["r1-1", "r2-1"]);
}

#[test]
fn apart_means_no_two_in_one_place_and_nobody_from_nowhere() {
    let fleet = || regions(&[3, 2, 1]).cluster("nowhere");
    assert_eq!(fleet().selected(&web().apart("region", "Label"), 0), ["r1-1", "r2-1", "r3-1"]);
    assert_eq!(fleet().selected(&web().apart("region", "Label").number(2), 0), ["r1-1", "r2-1"]);
    let best = web().apart("region", "Label").exact(&[("AddOn/demo/cpu", 1)]);
    assert_eq!(fleet().score("r1-3", "demo", "cpu", 9, None).selected(&best, 0), ["r1-3", "r2-1", "r3-1"]);
}

#[test]
fn the_selection_stays_where_it_is_while_it_is_even() {
    let request = hard(1).number(3);
    let mut world = regions(&[3, 3, 3]).placement(&request).world();
    world.settle(&request.key(), at(0)).unwrap();
    let before = world.selected(&request.key(), at(0));
    world.apply(fleet().cluster("r0-new").label("region", "r1").objects.pop().unwrap());
    assert_eq!(world.selected(&request.key(), at(0)), before);
}

#[test]
fn it_is_told_which_rule_stands_in_the_way() {
    let verdict = |fleet: Fleet, request: &Request, name: &str| {
        let account = fleet.placement(request).world().explain(&request.key(), at(0));
        account.clusters.iter().find(|one| *one.cluster == *name).unwrap().verdict.clone()
    };
    let (key, value) = (Box::<str>::from("region"), Box::<str>::from("r1"));
    assert_eq!(
        verdict(regions(&[3, 1, 0]), &hard(1), "r1-3"),
        Verdict::Obstructed {
            by: Obstacle::Skew { key: key.clone(), value: value.clone(), here: 2, least: 1, max_skew: 1 }
        }
    );
    assert_eq!(
        verdict(regions(&[2, 1, 0]), &web().apart("region", "Label"), "r1-2"),
        Verdict::Obstructed { by: Obstacle::SameTopology { key: key.clone(), value } }
    );
    let nowhere = regions(&[1, 0, 0]).cluster("nowhere");
    assert_eq!(
        verdict(nowhere, &hard(1), "nowhere"),
        Verdict::Obstructed { by: Obstacle::NoTopology { key } }
    );
}

#[test]
fn rules_that_cannot_be_understood_are_told() {
    let many = (0..9)
        .fold(web(), |request, number| request.spread(&format!("k{number}"), "Label", 1, "DoNotSchedule"));
    let cases = [
        (web().spread("region", "Planet", 1, "DoNotSchedule"), "topologyKeyType"),
        (web().spread("", "Label", 1, "DoNotSchedule"), "topologyKey"),
        (web().spread("region", "Label", 0, "DoNotSchedule"), "maxSkew"),
        (web().spread("region", "Label", i32::MIN, "DoNotSchedule"), "maxSkew"),
        (web().spread("region", "Label", 1, "Perhaps"), "whenUnsatisfiable"),
        (web().apart("region", "Planet"), "spec.antiAffinity.topologyKeyType"),
        (many, "spec.spreadPolicy.spreadConstraints"),
    ];
    for (request, path) in cases {
        let decision = regions(&[1, 1, 1]).placement(&request).world().decide(&request.key(), at(0)).unwrap();
        assert!(decision.complaints[0].path.contains(path), "{:?}", decision.complaints);
    }
}

#[test]
fn eight_rules_and_the_greatest_skew_stay_within_numbers() {
    let keys: Vec<String> = (0..8).map(|number| format!("k{number}")).collect();
    let ground = || {
        (0..70).fold(fleet(), |fleet, number| {
            let fleet = fleet.cluster(&format!("c{number:02}"));
            keys.iter().enumerate().fold(fleet, |fleet, (bit, key)| {
                fleet.label(key, if (number >> (bit % 3)) & 1 == 0 { "left" } else { "right" })
            })
        })
    };
    for (skew, action) in [
        (1, "ScheduleAnyway"),
        (i32::MAX, "ScheduleAnyway"),
        (1, "DoNotSchedule"),
        (i32::MAX, "DoNotSchedule"),
    ] {
        let request = keys.iter().fold(web(), |request, key| request.spread(key, "Label", skew, action));
        let selected = ground().selected(&request.number(64), 0);
        assert_eq!(selected.len(), 64, "{skew} {action}");
    }
}

#[test]
fn more_of_one_place_than_the_scale_has_steps_are_still_selected() {
    // One step of the scale per cluster too many; beyond the last step all are alike.
    let request = soft(1).number(90);
    assert_eq!(per_region(&regions(&[100, 1, 0]).selected(&request, 0)), [89, 1, 0]);
}

#[test]
fn a_selection_that_keeps_two_crossing_rules_is_not_lost_when_it_is_read_back() {
    // Alone, `a` fills a region and a vendor so that neither `b` nor `c` may follow; together they keep both rules.
    let cluster = |fleet: Fleet, name: &str, region: &str, vendor: &str| {
        fleet.cluster(name).label("region", region).label("vendor", vendor)
    };
    let fleet = || cluster(cluster(cluster(fleet(), "a", "r1", "x"), "b", "r1", "y"), "c", "r2", "x");
    let request = || hard(1).spread("vendor", "Label", 1, "DoNotSchedule").number(3);
    assert_eq!(fleet().selected(&request(), 0), ["a"], "step by step there is no way on");
    let held = fleet().decided(&request().key(), &["a", "b", "c"]);
    assert_eq!(held.selected(&request(), 0), ["a", "b", "c"]);
}
