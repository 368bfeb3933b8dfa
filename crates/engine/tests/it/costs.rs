//! What expressions cost across the fleet is bounded, and nobody else pays for those that cost too much.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::explain::{TooCostly, explain_as_if, sentences};
use berth_engine::impact::impact;
use berth_engine::select::{Mistake, Outcome};
use berth_engine::{Delta, PlacementKey};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use crate::fixtures::{Request, at, fleet, placement, web};
use crate::world::World;

/// What all clusters together may cost beyond their free shares, in units of cost.
const ALLOWANCE: u64 = 20_000_000;
/// What one cluster can cost at most: the budget of an object, and the evaluation that uses it up.
const CLUSTER_MAX: u64 = 11_100_000;

/// A condition that always holds, and costs six hundred thousand units on any cluster.
fn costly() -> String {
    format!("!'{}'.contains('{}')", "y".repeat(8_000), "x".repeat(7_500))
}

/// The condition as often as it takes to use up what is allowed for one cluster.
fn exhausting() -> Vec<String> {
    vec![costly(); 30]
}

fn cel(request: Request, expressions: &[String]) -> Request {
    request.cel(&expressions.iter().map(String::as_str).collect::<Vec<_>>())
}

fn labelled(name: &str, key: &str, value: &str) -> Delta {
    crate::world::delta(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": {key: value}},
    }))
}

#[test]
fn two_thousand_clusters_and_an_expression_that_uses_all_it_may_cost_little_and_stop_nobody() {
    let names: Vec<String> = (0..2_000).map(|number| format!("c{number:04}")).collect();
    let (web, other) = (cel(web(), &exhausting()), placement("ns", "other"));
    let mut world = fleet()
        .clusters(&names)
        .decided(&web.key(), &["c0007", "c1999"])
        .placement(&web)
        .placement(&other)
        .world();
    let filled = world.model.expression_cost();
    assert!(filled > ALLOWANCE && filled <= ALLOWANCE + CLUSTER_MAX, "{filled}");

    let decision = world.decide(&web.key(), at(0)).unwrap();
    assert!(matches!(decision.outcome, Outcome::Kept { .. }), "{:?}", decision.outcome);
    assert_eq!(World::names(&decision), ["c0007", "c1999"]);
    assert_eq!(decision.complaints.len(), 1);
    assert_eq!(decision.complaints[0].mistake, Some(Mistake::PredicateCost));
    assert_eq!(decision.complaints[0].path, "spec.predicates[0].requiredClusterSelector.celSelector");
    assert_eq!(world.selected(&other.key(), at(0)).len(), 2_000);

    let published = world.settle(&web.key(), at(0)).unwrap();
    let conditions = published.status.conditions.unwrap();
    let said = |kind: &str| &conditions.iter().find(|condition| condition.type_ == kind).unwrap().message;
    assert!(said("PlacementMisconfigured").starts_with("Predicate:the expressions cost too much"));
    assert!(said("PlacementSatisfied").starts_with("the last decision is kept, with 2 clusters"));
    let account = world.explain(&web.key(), at(0));
    let told = sentences(&account).join("\n");
    assert!(told.contains("cost too much across the fleet"), "{told}");

    // Every cluster changes. Only those by which it is known are asked again: three are enough to know.
    for name in &names {
        world.apply(labelled(name, "env", "prod"));
    }
    let cost = world.model.expression_cost() - filled;
    assert!(cost <= 3 * CLUSTER_MAX, "{cost}");
    assert_eq!(world.selected(&web.key(), at(1)), ["c0007", "c1999"]);
    assert_eq!(world.selected(&other.key(), at(1)).len(), 2_000);

    // Narrowed by a label that one cluster has, the same expressions are asked of one cluster.
    world.apply(labelled("c0003", "gpu", "yes"));
    let narrowed = json!({
        "labelSelector": {"matchLabels": {"gpu": "yes"}}, "celSelector": {"celExpressions": [costly()]},
    });
    let before = world.model.expression_cost();
    let web = crate::fixtures::web().predicate(narrowed);
    world.apply(Delta::Placement(Box::new(web.0.clone())));
    assert_eq!(world.selected(&web.key(), at(2)), ["c0003"]);
    let cost = world.model.expression_cost() - before;
    assert!(cost < 1_000_000, "{cost}");
}

#[test]
fn what_people_write_is_far_from_what_it_may_cost() {
    let mut fleet = fleet();
    for number in 0..100 {
        fleet = fleet.cluster(&format!("c{number:03}")).label("env", "prod").label("version", "1.31.2");
        for claim in 0..20 {
            fleet = fleet.claim(&format!("claim-{claim}.example.com"), "some value of some length");
        }
        fleet = fleet.score(&format!("c{number:03}"), "demo", "cpu", 90, None);
    }
    for expression in [
        r#"managedCluster.metadata.labels["env"] == "prod""#,
        r#"managedCluster.status.clusterClaims.exists(c, c.name == "claim-19.example.com" && c.value.startsWith("some"))"#,
        r#"semver(managedCluster.metadata.labels["version"]).isGreaterThan(semver("1.30.0"))"#,
        r#"managedCluster.scores("demo").filter(s, s.name == "cpu").all(s, s.value > 80)"#,
        r#"managedCluster.metadata.labels.all(k, managedCluster.metadata.labels[k].matches("^[a-z0-9.-]+$"))"#,
    ] {
        let request = web().cel(&[expression]);
        let mut world = fleet.clone().placement(&request).world();
        assert_eq!(world.selected(&request.key(), at(0)).len(), 100, "{expression}");
        let each = world.model.expression_cost() / 100;
        assert!(each < 1_000, "{expression}: {each} of 2000 that are free");
    }
}

/// Five conditions whose cost depends on a label: a hundred units for each of its characters and condition.
fn by_weight() -> Request {
    let one = format!("!'{}'.contains(managedCluster.metadata.labels['weight'])", "y".repeat(10_000));
    cel(web(), &vec![one; 5])
}

/// A cluster that costs nothing to speak of, a quarter of what all may, or so much that it matches no more.
fn any_weight() -> impl Strategy<Value = usize> {
    select(vec![1, 9_000, 9_000, 9_000, 20_000])
}

fn weighed(number: usize, weight: usize) -> Delta {
    labelled(&format!("c{number}"), "weight", &"x".repeat(weight))
}

/// The same objects told in the other order.
fn reversed(world: &World) -> World {
    World::of(world.objects().into_iter().rev())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn who_came_first_and_what_was_before_do_not_decide_what_costs_too_much(
        weights in prop::collection::vec(any_weight(), 6..9),
        changes in prop::collection::vec((0..9_usize, prop::option::weighted(0.8, any_weight())), 1..12),
    ) {
        let (web, key) = (by_weight().number(3), web().key());
        let mut world = fleet().decided(&key, &["c1"]).placement(&web).world();
        for (number, weight) in weights.into_iter().enumerate() {
            world.apply(weighed(number, weight));
        }
        for (number, weight) in changes {
            let before = world.decide(&key, at(0)).unwrap();
            let touched = world.apply(match weight {
                Some(weight) => weighed(number, weight),
                None => Delta::ClusterGone(format!("c{number}")),
            });
            let after = world.model.decide_afresh(&key, at(0)).unwrap();
            let view = |decision: &berth_engine::select::Decision| {
                (decision.outcome.clone(), decision.complaints.clone(), World::names(decision))
            };
            prop_assert!(touched.contains(&key) || view(&before) == view(&after), "touched {:?}", touched);
            let rendered = world.rendered(&key, at(0));
            prop_assert_eq!(&rendered, &world.rebuilt().rendered(&key, at(0)));
            prop_assert_eq!(&rendered, &reversed(&world).rendered(&key, at(0)));
        }
    }
}

#[test]
fn a_placement_is_decided_again_once_the_fleet_costs_less() {
    let web = by_weight();
    let key: PlacementKey = web.key();
    let mut world = fleet().placement(&web).world();
    let is_kept =
        |world: &mut World| matches!(world.decide(&key, at(0)).unwrap().outcome, Outcome::Kept { .. });
    for number in 0..4 {
        world.apply(weighed(number, 9_000));
        assert!(!is_kept(&mut world), "{number}");
    }
    assert_eq!(world.selected(&key, at(0)).len(), 4);
    world.settle(&key, at(0));
    assert_eq!(
        world.apply(weighed(4, 9_000)),
        std::slice::from_ref(&key),
        "the fifth is too much, and that is told"
    );
    assert!(is_kept(&mut world));
    assert_eq!(world.selected(&key, at(0)).len(), 4, "what was selected is kept");
    // One more that nobody knows anything of, and it is still too much when one leaves.
    world.apply(weighed(5, 9_000));
    world.apply(Delta::ClusterGone("c0".to_owned()));
    assert!(is_kept(&mut world));
    assert_eq!(world.apply(weighed(4, 1)), std::slice::from_ref(&key), "now it is not");
    assert_eq!(world.selected(&key, at(0)), ["c1", "c2", "c3", "c4", "c5"]);
}

#[test]
fn an_explanation_does_not_ask_without_end_what_deciding_did_not_have_to_ask() {
    let selector = json!({
        "labelSelector": {"matchLabels": {"gpu": "yes"}}, "celSelector": {"celExpressions": exhausting()},
    });
    let web = web().predicate(selector);
    let names: Vec<String> = (0..50).map(|number| format!("c{number:02}")).collect();
    let mut world = fleet().clusters(&names).placement(&web).world();
    assert_eq!(world.model.expression_cost(), 0, "labels come first");
    let account = world.explain(&web.key(), at(0));
    let failures: Vec<String> =
        account.clusters.iter().map(|one| format!("{:?}", one.predicates[0].failures)).collect();
    // The first uses it up: it is asked for what fails, and again for the nearest change.
    assert_eq!(failures.iter().filter(|failures| !failures.contains("not evaluated")).count(), 1);
    assert!(failures.iter().all(|failures| failures.contains("gpu")), "the label is told of all");
}

/// A predicate of its own that costs six hundred thousand units on any cluster.
fn costly_predicate(number: usize) -> serde_json::Value {
    json!({"celSelector": {"celExpressions": [format!("{} && '{number}' != ''", costly())]}})
}

/// A placement with so many of them.
fn costly_placement(name: &str, predicates: usize) -> Request {
    (0..predicates).fold(placement("ns", name), |request, number| request.predicate(costly_predicate(number)))
}

fn named(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("c{number:02}")).collect()
}

#[test]
fn the_predicates_of_a_placement_share_what_it_may_cost() {
    let names = named(10);
    let (few, many) = (costly_placement("few", 3), costly_placement("many", 40));
    let mut world = fleet().clusters(&names).decided(&many.key(), &["c01"]).placement(&few).world();
    assert_eq!(world.selected(&few.key(), at(0)).len(), 10, "three cost less than is allowed");
    let before = world.model.expression_cost();
    world.apply(Delta::Placement(Box::new(many.0.clone())));
    let cost = world.model.expression_cost() - before;
    assert!(
        cost <= ALLOWANCE,
        "{cost}: those that others had asked already count, and no more are asked than it takes"
    );
    let decision = world.decide(&many.key(), at(0)).unwrap();
    assert!(matches!(decision.outcome, Outcome::Kept { .. }), "{:?}", decision.outcome);
    assert_eq!(World::names(&decision), ["c01"]);
    let [complaint] = &*decision.complaints else { panic!("{:?}", decision.complaints) };
    assert_eq!(complaint.mistake, Some(Mistake::PredicateCost));
    assert_eq!(complaint.path, "spec.predicates");
    assert_eq!(
        world.selected(&few.key(), at(0)).len(),
        10,
        "who shares predicates with it pays nothing for it"
    );
}

#[test]
fn a_turn_asks_no_more_than_it_may_and_the_next_goes_on() {
    const TURN: u64 = 1_000_000;
    let web = costly_placement("web", 1);
    let mut world = fleet().clusters(named(30)).world();
    world.model.be_patient(TURN);
    assert_eq!(world.apply(Delta::Placement(Box::new(web.0.clone()))), [web.key()]);
    let (mut turns, mut before) = (0, 0);
    while world.model.is_behind() {
        assert!(world.model.is_waiting(&web.key()));
        let cost = world.model.expression_cost();
        assert!(cost > before && cost - before < TURN + 700_000, "{cost} after {before}");
        (turns, before) = (turns + 1, cost);
        let touched = world.model.go_on(TURN);
        let touched: Vec<PlacementKey> = touched.keys(&world.model).cloned().collect();
        assert_eq!(touched.contains(&web.key()), !world.model.is_waiting(&web.key()), "told when it is done");
    }
    assert!(turns >= 9, "{turns}");
    assert_eq!(world.selected(&web.key(), at(0)).len(), 30);
    // A cluster that changes is asked about in the next turn, too.
    world.model.be_patient(0);
    world.apply(labelled("c03", "env", "prod"));
    assert!(world.model.is_waiting(&web.key()));
    assert!(world.model.go_on(TURN).keys(&world.model).any(|key| *key == web.key()));
    assert!(!world.model.is_waiting(&web.key()));
}

#[test]
fn what_is_cheap_does_not_wait_for_what_is_not() {
    let cheap = placement("ns", "zz-cheap").cel(&[r#"managedCluster.metadata.name != """#]);
    let mut world = fleet().clusters(named(30)).world();
    world.model.be_patient(0);
    for number in 0..20 {
        let dear = costly_placement(&format!("dear-{number}"), number + 1);
        world.apply(Delta::Placement(Box::new(dear.0)));
    }
    world.apply(Delta::Placement(Box::new(cheap.0.clone())));
    let mut turns = 0;
    while world.model.is_waiting(&cheap.key()) {
        let _ = world.model.go_on(200_000);
        turns += 1;
    }
    // Every other term has one evaluation before its turn comes, and none has two.
    assert!(turns <= 21, "{turns}");
    assert!(world.model.is_behind());
}

#[test]
fn a_question_that_costs_too_much_is_not_answered_and_leaves_nothing() {
    let (web, thought) = (costly_placement("web", 1), costly_placement("thought", 30));
    let mut world = fleet().clusters(named(20)).placement(&web).world();
    assert_eq!(world.selected(&web.key(), at(0)).len(), 20);
    world.model.be_patient(1_000_000);
    let before = world.model.expression_cost();
    let told = explain_as_if(&mut world.model, &thought.0, None, at(0));
    assert_eq!(told, Err(TooCostly));
    let cost = world.model.expression_cost() - before;
    assert!(cost <= 1_700_000, "{cost}");
    assert!(!world.model.is_behind(), "nobody needs the rest");
    assert!(!world.model.is_waiting(&web.key()), "what was known of it is known still");
    assert!(world.model.go_on(1_000_000).is_empty());
    assert_eq!(world.selected(&web.key(), at(0)).len(), 20);
    // As if it said something else: it stands aside and comes back without being asked again.
    let other = placement("ns", "web");
    let account = explain_as_if(&mut world.model, &other.0, None, at(0)).unwrap().unwrap();
    assert_eq!(account.selection.selected, 20);
    assert!(!world.model.is_waiting(&web.key()));
}

#[test]
fn what_a_change_would_move_is_told_as_far_as_the_cost_goes() {
    let (web, plain) = (costly_placement("web", 30), placement("ns", "plain").number(1));
    let mut world = fleet()
        .clusters(named(1))
        .placement(&web)
        .placement(&plain)
        .decided(&web.key(), &["c00"])
        .decided(&plain.key(), &["c00"])
        .world();
    assert_eq!(world.selected(&web.key(), at(0)), ["c00"]);
    let taint = |taints: serde_json::Value| {
        crate::world::delta(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c00"}, "spec": {"taints": taints},
        }))
    };
    let undo = Delta::Cluster(Box::new(world.clusters["c00"].clone()));
    let change = taint(json!([{"key": "k", "effect": "NoSelect"}]));
    world.model.be_patient(700_000);
    let told = impact(&mut world.model, &change, undo, at(0));
    assert!(told.is_partial, "{told:?}");
    assert_eq!(told.losses, [(plain.key(), 1)]);
    while world.model.is_behind() {
        let _ = world.model.go_on(1_000_000);
    }
    assert_eq!(world.selected(&web.key(), at(0)), ["c00"], "and nothing has changed");
}

/// Looks of decisions that everybody sees.
fn view(decision: &berth_engine::select::Decision) -> (Outcome, Vec<String>, Vec<String>) {
    let complaints = decision.complaints.iter().map(|complaint| complaint.path.clone()).collect();
    (decision.outcome.clone(), complaints, World::names(decision))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn whatever_was_put_off_comes_to_the_same_and_is_told(
        weights in prop::collection::vec(any_weight(), 4..8),
        steps in prop::collection::vec(
            (0..9_usize, prop::option::weighted(0.8, any_weight()), select(vec![0, 0, 1_000, 3_000_000])),
            1..12,
        ),
    ) {
        let one = by_weight().number(3);
        let two = placement("ns", "two").cel(&["managedCluster.metadata.labels['weight'] != 'x'"]);
        let both = [one.key(), two.key()];
        let mut world = fleet().world();
        world.model.be_patient(0);
        let (mut due, mut decided) = (BTreeSet::new(), BTreeMap::new());
        due.extend(world.apply(Delta::Placement(Box::new(one.0))));
        due.extend(world.apply(Delta::Placement(Box::new(two.0))));
        for (number, weight) in weights.into_iter().enumerate() {
            due.extend(world.apply(weighed(number, weight)));
        }
        let decide = |world: &mut World, due: &mut BTreeSet<PlacementKey>, decided: &mut BTreeMap<_, _>| {
            for key in std::mem::take(due) {
                // Whoever waits is told when the waiting is over.
                if !world.model.is_waiting(&key) {
                    decided.insert(key.clone(), view(&world.decide(&key, at(0)).unwrap()));
                }
            }
        };
        for (number, weight, units) in steps {
            decide(&mut world, &mut due, &mut decided);
            let touched = world.model.go_on(units);
            due.extend(touched.keys(&world.model).cloned());
            due.extend(world.apply(match weight {
                Some(weight) => weighed(number, weight),
                None => Delta::ClusterGone(format!("c{number}")),
            }));
        }
        while world.model.is_behind() {
            let touched = world.model.go_on(500_000);
            due.extend(touched.keys(&world.model).cloned());
            decide(&mut world, &mut due, &mut decided);
        }
        decide(&mut world, &mut due, &mut decided);
        let mut afresh = world.rebuilt();
        for key in both {
            prop_assert_eq!(&decided[&key], &view(&afresh.decide(&key, at(0)).unwrap()), "{}", key);
        }
    }
}
