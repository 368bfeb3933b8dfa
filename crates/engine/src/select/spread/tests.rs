//! The selection against one that asks everybody at every step, and what it costs.

use berth_api::Placement;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::select::compile;

/// A rule that spreads over `hard.len()` keys.
fn rule(weight: i64, skews: &[(usize, bool)], apart: bool) -> Rule {
    let constraint = |(number, (skew, hard)): (usize, &(usize, bool))| {
        json!({
            "topologyKey": format!("k{number}"), "topologyKeyType": "Label", "maxSkew": skew,
            "whenUnsatisfiable": if *hard { "DoNotSchedule" } else { "ScheduleAnyway" },
        })
    };
    let constraints: Vec<_> = skews.iter().enumerate().map(constraint).collect();
    let spread = json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Spread"}, "weight": weight});
    let mut spec = json!({
        "spreadPolicy": {"spreadConstraints": constraints},
        "prioritizerPolicy": {"mode": "Exact", "configurations": [spread]},
    });
    if apart {
        spec["antiAffinity"] = json!({"topologyKey": "rack", "topologyKeyType": "Label"});
    }
    let placement: Placement =
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec}))
            .unwrap();
    compile(&placement).unwrap()
}

/// A cluster: its score, its place in each topology, and its value for anti-affinity.
type Cluster = (i64, Vec<Place>, Option<usize>);

fn spreader<'r>(rule: &'r Rule, clusters: &[Cluster]) -> Spreader<'r> {
    let terms = rule.spread.iter().enumerate().map(|(number, term)| {
        let places =
            clusters.iter().filter_map(|(_, places, _)| places[number]).max().map_or(0, |last| last + 1);
        // A topology is one because a cluster is in it.
        let here = |place: &usize| clusters.iter().any(|(_, places, _)| places[number] == Some(*place));
        let counts: Vec<usize> =
            (0..places).map(|place| if here(&place) { 0 } else { usize::MAX / 2 }).collect();
        Term {
            topology: &term.topology,
            max_skew: term.max_skew,
            hard: term.hard,
            values: counts.iter().map(|count| count.to_string().into()).collect(),
            numbers: HashMap::new(),
            at_least: counts.iter().filter(|count| **count == 0).count(),
            counts,
            least: 0,
        }
    });
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    order.sort_by_key(|number| (Reverse(clusters[*number].0), *number));
    let mut cells: Vec<Cell> = Vec::new();
    for number in order {
        let (score, places, apart) = &clusters[number];
        let ranked = Ranked { score: *score, rank: number as u64, slot: Slot::from_index(number as u32) };
        let apart: Option<Box<str>> = apart.map(|value| value.to_string().into());
        match cells.iter_mut().find(|cell| cell.places == *places && cell.apart == apart) {
            Some(cell) => cell.queue.push_back(ranked),
            None => cells.push(Cell { places: places.clone(), apart, queue: [ranked].into() }),
        }
    }
    let apart = rule.anti_affinity.as_ref().map(|topology| (topology, HashSet::new()));
    Spreader { rule, terms: terms.collect(), apart, cells }
}

/// Chooses by asking the head of every cell at every step.
fn ask_everybody(spreader: &mut Spreader<'_>, count: usize) -> Vec<Chosen> {
    let weight = spreader.rule.weight(&Prioritizer::Spread);
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let bids = spreader.cells.iter().enumerate().filter_map(|(number, cell)| {
            let head = cell.queue.front()?;
            let allowed = spreader.obstacle_at(&cell.places, cell.apart.as_deref()).is_none();
            let value = spreader.spread_value(&cell.places);
            let worth = spreader.worth(value);
            allowed.then_some((head.score + weight * worth, value, Reverse(head.rank), number))
        });
        let Some((_, value, _, cell)) = bids.max() else { break };
        let ranked = spreader.cells[cell].queue.pop_front().unwrap();
        chosen.push(Chosen { ranked, spread: spreader.worth(value) });
        spreader.occupy(cell);
    }
    chosen
}

fn any_fleet() -> impl Strategy<Value = (i64, Vec<(usize, bool)>, bool, Vec<Cluster>)> {
    let keys = prop::collection::vec((1..3_usize, prop::bool::weighted(0.3)), 1..4);
    let sizes = prop::collection::vec(1..9_usize, 3);
    (-3..4_i64, keys, prop::bool::weighted(0.2), sizes).prop_flat_map(|(weight, keys, apart, sizes)| {
        let place = |size: usize| prop::option::weighted(0.95, 0..size);
        let places: Vec<_> = (0..keys.len()).map(|number| place(sizes[number])).collect();
        let cluster = (prop_oneof![Just(0), -120..120_i64], places, place(12));
        (Just(weight), Just(keys), Just(apart), prop::collection::vec(cluster, 0..60))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tiers_choose_as_if_everybody_was_asked_whatever_counts_as_few(
        (weight, keys, apart, clusters) in any_fleet(),
        count in 0..70_usize,
    ) {
        let rule = rule(weight, &keys, apart);
        let wanted = ask_everybody(&mut spreader(&rule, &clusters), count);
        prop_assert_eq!(&spreader(&rule, &clusters).choose(count), &wanted);
        for few in [0, 1, 2, 5, 60] {
            let mut spreader = spreader(&rule, &clusters);
            let sizes: Vec<usize> = spreader.terms.iter().map(|term| term.counts.len()).collect();
            let cells = spreader.cells.iter().map(|cell| &*cell.places);
            let mut tiers = spreader.seated(Tiers::with(cells, &sizes, |_, _| few));
            prop_assert_eq!(&spreader.choose_from(&mut tiers, count), &wanted, "up to {} are few", few);
        }
    }
}

/// Looks and moves per chosen cluster, where nearly all of `clusters` are chosen.
fn effort(weight: i64, keys: usize, clusters: usize, place: &Layout) -> usize {
    let rule = rule(weight, &vec![(1, false); keys], false);
    let places = |number| (0..keys).map(|key| Some(place(number, key))).collect();
    // Every cluster has a cell of its own, so putting them there one by one would take longest.
    let clusters: Vec<Cluster> = (0..clusters).map(|number| (0, places(number), None)).collect();
    let mut spreader = spreader(&rule, &[]);
    for (term, number) in spreader.terms.iter_mut().zip(0..) {
        let size = clusters.iter().filter_map(|(_, places, _)| places[number]).max().unwrap_or_default() + 1;
        (term.counts, term.at_least) = (vec![0; size], size);
    }
    spreader.cells = (0_u32..)
        .zip(&clusters)
        .map(|(number, (score, places, _))| {
            let ranked = Ranked { score: *score, rank: number.into(), slot: Slot::from_index(number) };
            Cell { places: places.clone(), apart: None, queue: [ranked].into() }
        })
        .collect();
    let mut tiers = spreader.tiers();
    assert_eq!(spreader.choose_from(&mut tiers, clusters.len() - 1).len(), clusters.len() - 1);
    tiers.effort / clusters.len()
}

/// The place of a cluster, by its number, for a key, by its own.
type Layout = dyn Fn(usize, usize) -> usize;

#[test]
fn choosing_does_not_look_at_every_cluster_again() {
    const CLUSTERS: usize = 2000;
    /// Far above what each of these takes, far below the number of clusters.
    const EFFORT_MAX: usize = 250;
    let cases: [(&str, i64, usize, &Layout); 7] = [
        ("one place, then one each", 2, 2, &|number, key| if key == 0 { 0 } else { number }),
        ("one each, then one place", 2, 2, &|number, key| if key == 1 { 0 } else { number }),
        ("two places, then one each, twice", 2, 3, &|number, key| if key == 0 { number % 2 } else { number }),
        ("crowding in one each", -2, 1, &|number, _| number),
        ("crowding in sixteen, one each", -2, 2, &|number, key| if key == 0 { number % 16 } else { number }),
        ("half in one place, the others one each", 2, 2, &|number, key| {
            if key == 0 && number % 2 == 0 { 0 } else { number }
        }),
        ("forty by fifty", 2, 2, &|number, key| if key == 0 { number % 40 } else { number / 40 }),
    ];
    for (name, weight, keys, place) in cases {
        let effort = effort(weight, keys, CLUSTERS, place);
        assert!(effort <= EFFORT_MAX, "{name}: {effort} for each");
    }
}
