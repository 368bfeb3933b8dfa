//! Conditions: types, reasons and wording as upstream's consumers know them, and what ours adds.

use berth_api::PlacementDecision;
use berth_api::names::condition;
use berth_engine::Delta;
use berth_engine::select::Published;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::json;

use crate::fixtures::{Fleet, Request, at, bare, fleet, placement, time, web};
use crate::world::World;

fn condition<'p>(published: &'p Published, kind: &str) -> &'p Condition {
    let mut conditions = published.status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind).expect("both conditions are always written")
}

fn words(published: &Published, kind: &str) -> (String, String, String) {
    let Condition { status, reason, message, .. } = condition(published, kind).clone();
    (status, reason, message)
}

fn settle(fleet: Fleet, request: &Request) -> (World, Published) {
    let mut world = fleet.placement(request).world();
    let published = world.settle(&request.key(), at(0)).unwrap();
    (world, published)
}

/// Upstream: scheduling_controller_test.go "TestNewSatisfiedCondition", "TestNewMisconfiguredCondition: Misconfigured
/// is false when status is success", "TestSchedulingController_sync: placement satisfied",
/// "TestSchedulingController_sync: placement unsatisfied", "TestSchedulingController_sync: placement missing
/// managedclustersetbindings", "TestSchedulingController_sync: placement all managedclustersets empty",
/// "TestSchedulingController_sync: placement no cluster matches".
#[test]
fn every_case_of_satisfaction() {
    let some = || fleet().clusters(["a", "b", "c"]);
    let none = "No ManagedCluster matches any of the cluster predicate";
    let cases: Vec<(Fleet, Request, &str, &str, &str)> = vec![
        (
            bare().cluster("a"),
            web(),
            "False",
            "NoManagedClusterSetBindings",
            "No valid ManagedClusterSetBindings found in placement namespace",
        ),
        (
            some(),
            web().sets(&["y", "x"]),
            "False",
            "NoIntersection",
            "None of ManagedClusterSets [y,x] is bound to placement namespace",
        ),
        (
            bare().set("one").bind("one", "ns").set("another").bind("another", "ns"),
            web(),
            "False",
            "AllManagedClusterSetsEmpty",
            "All ManagedClusterSets [another,one] have no member ManagedCluster",
        ),
        (some(), web().labelled("no", "body"), "False", "NoManagedClusterMatched", none),
        (fleet().cluster("a").taint("down:NoSelect", 0), web(), "False", "NoManagedClusterMatched", none),
        (some(), web().number(0), "False", "NoManagedClusterMatched", none),
        (some(), web(), "True", "AllDecisionsScheduled", "All cluster decisions scheduled"),
        (some(), web().number(3), "True", "AllDecisionsScheduled", "All cluster decisions scheduled"),
        (some(), web().number(5), "False", "NotAllDecisionsScheduled", "2 cluster decisions unscheduled"),
    ];
    for (fleet, request, status, reason, message) in cases {
        let (_, published) = settle(fleet, &request);
        let wanted = (status.to_owned(), reason.to_owned(), message.to_owned());
        assert_eq!(words(&published, condition::PLACEMENT_SATISFIED), wanted);
        let fine = (
            "False".to_owned(),
            "Succeedconfigured".to_owned(),
            "Placement configurations check pass".to_owned(),
        );
        assert_eq!(words(&published, condition::PLACEMENT_MISCONFIGURED), fine, "for {reason}");
        assert_eq!(published.decisions.len(), 1, "there is always a slice, if need be an empty one");
    }
}

/// Upstream: scheduling_controller_test.go "TestNewMisconfiguredCondition: Misconfigured is true".
/// Upstream: integration/placement/placement_test.go "Should schedule successfully once MisConfigured is fixed".
#[test]
fn a_mistake_at_first_selects_nobody_and_is_mended() {
    let wrong = web().number(1).tolerate("key1", "Exists", "value1");
    let (mut world, published) = settle(fleet().clusters(["a", "b"]), &wrong);
    let (status, reason, message) = words(&published, condition::PLACEMENT_MISCONFIGURED);
    assert_eq!((&*status, &*reason), ("True", "Misconfigured"));
    assert_eq!(message, "TaintToleration:If the operator is Exists, the value should be empty.");
    let (status, reason, _) = words(&published, condition::PLACEMENT_SATISFIED);
    assert_eq!((&*status, &*reason), ("False", "NoManagedClusterMatched"));
    assert!(published.decisions[0].decisions().is_empty());
    world.apply(Delta::Placement(Box::new(web().number(1).exists("key1").0)));
    let published = world.settle(&web().key(), at(1)).unwrap();
    assert_eq!(words(&published, condition::PLACEMENT_MISCONFIGURED).1, "Succeedconfigured");
    assert_eq!(words(&published, condition::PLACEMENT_SATISFIED).1, "AllDecisionsScheduled");
    assert_eq!(published.decisions[0].decisions().len(), 1);
}

/// Others empty the decisions of a placement that can no longer be understood; ours keeps them.
/// Upstream: defects "3".
#[test]
fn a_mistake_made_later_keeps_what_was_selected_and_every_mistake_is_told() {
    let good = web().number(2).label_group("canary", "stage", "canary");
    let fleet = fleet().cluster("a").label("stage", "canary").clusters(["b", "c"]);
    let (mut world, before) = settle(fleet, &good);
    let wrong = good.number(-3).cel(&["managedCluster."]).tolerate("", "Equal", "").percent("many");
    world.apply(Delta::Placement(Box::new({
        let mut object = wrong.0.clone();
        object.status = Some(before.status.clone());
        object
    })));
    let after = world.settle(&web().key(), at(5)).unwrap();
    assert_eq!(after.decisions, before.decisions);
    assert_eq!(after.status.decision_groups, before.status.decision_groups);
    let (status, _, message) = words(&after, condition::PLACEMENT_MISCONFIGURED);
    assert_eq!(status, "True");
    assert!(message.starts_with("Predicate:compilation failed: "), "{message}");
    for part in ["spec.tolerations[0].operator", "clustersPerDecisionGroup", "spec.numberOfClusters"] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    let (status, reason, message) = words(&after, condition::PLACEMENT_SATISFIED);
    assert_eq!((&*status, &*reason), ("False", "NotAllDecisionsScheduled"));
    assert!(message.contains("kept"), "{message}");
    // A grant that is withdrawn is withdrawn all the same.
    world.apply(bare().set_of("all", json!({"matchLabels": {"stage": "canary"}})).objects[0].clone());
    let left = world.settle(&web().key(), at(6)).unwrap();
    let clusters: Vec<_> =
        left.decisions.iter().flat_map(PlacementDecision::decisions).map(|one| &*one.cluster_name).collect();
    assert_eq!(clusters, ["a"]);
}

#[test]
fn a_condition_keeps_its_time_until_its_status_turns() {
    let (mut world, first) = settle(fleet().clusters(["a"]), &web().number(2));
    assert_eq!(condition(&first, condition::PLACEMENT_SATISFIED).last_transition_time, time(0));
    world.apply(fleet().cluster("b").taint("down:NoSelect", 0).objects.pop().unwrap());
    let same = world.settle(&web().key(), at(10)).unwrap();
    assert_eq!(condition(&same, condition::PLACEMENT_SATISFIED).last_transition_time, time(0));
    world.apply(fleet().cluster("b").objects.pop().unwrap());
    let turned = world.settle(&web().key(), at(20)).unwrap();
    assert_eq!(condition(&turned, condition::PLACEMENT_SATISFIED).last_transition_time, time(20));
    assert_eq!(condition(&turned, condition::PLACEMENT_MISCONFIGURED).last_transition_time, time(0));
}

#[test]
fn conditions_of_others_stay_and_ours_say_which_generation_they_speak_of() {
    let mut request = web();
    request.0.metadata.generation = Some(7);
    let foreign = Condition { type_: "Foreign".into(), ..unknown() };
    request.0.status.get_or_insert_default().conditions = Some(vec![foreign.clone()]);
    let (_, published) = settle(fleet().cluster("a"), &request);
    let conditions = published.status.conditions.unwrap();
    assert_eq!(conditions[0], foreign);
    assert!(conditions[1..].iter().all(|condition| condition.observed_generation == Some(7)));
}

fn unknown() -> Condition {
    Condition {
        type_: String::new(),
        status: "Unknown".into(),
        reason: "Because".into(),
        message: String::new(),
        last_transition_time: time(-100),
        observed_generation: None,
    }
}

#[test]
fn the_next_change_is_in_the_status_with_its_reason() {
    let request = web().exists("down").seconds(90);
    let (_, published) = settle(fleet().cluster("a").taint("down:NoSelect", 0), &request);
    let next = published.status.next_transition.unwrap();
    assert_eq!(next.time, time(90));
    assert!(next.reason.as_ref().unwrap().contains("down:NoSelect"), "{next:?}");
    let (_, published) = settle(fleet().cluster("a"), &request);
    assert_eq!(published.status.next_transition, None);
}

#[test]
fn numbers_in_the_status_are_those_of_the_decision() {
    let (_, published) = settle(fleet().clusters(["a", "b", "c"]), &web().number(2).per_group(1));
    assert_eq!(published.status.number_of_selected_clusters, Some(2));
    let counts: Vec<_> =
        published.status.decision_groups.unwrap().iter().map(|group| group.cluster_count).collect();
    assert_eq!(counts, [Some(1), Some(1)]);
}

#[test]
fn a_successor_of_the_same_name_and_a_new_generation_are_written_again() {
    let (mut world, _) = settle(fleet().clusters(["a"]), &web());
    let mut successor = web().0;
    successor.metadata.uid = Some("another".into());
    assert_eq!(world.apply(Delta::Placement(Box::new(successor.clone()))), [web().key()]);
    let published = world.settle(&web().key(), at(1)).unwrap();
    let owner = &published.decisions[0].metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(owner.uid, "another");
    successor.metadata.generation = Some(9);
    assert_eq!(world.apply(Delta::Placement(Box::new(successor.clone()))), [web().key()]);
    let published = world.settle(&web().key(), at(2)).unwrap();
    assert_eq!(condition(&published, condition::PLACEMENT_SATISFIED).observed_generation, Some(9));
    successor.status = Some(published.status);
    assert_eq!(world.apply(Delta::Placement(Box::new(successor))), [], "a new status is our own");
}

#[test]
fn a_written_score_is_looked_at_again_because_holding_the_cluster_changes_it() {
    let plain = web().number(1);
    let (mut world, published) = settle(fleet().clusters(["a", "b"]), &plain);
    let slice = || Delta::Decision(Box::new(published.decisions[0].clone()));
    assert_eq!(world.apply(slice()), [], "our own write coming back says nothing new");

    let shown = web().number(1).annotate("berth.dev/decision-details", "score");
    let mut world = fleet().clusters(["a", "b"]).placement(&shown).world();
    let first = world.decide(&shown.key(), at(0)).unwrap();
    let written = world.publish(&shown.key(), &first, at(0));
    assert_eq!(world.apply(Delta::Decision(Box::new(written.decisions[0].clone()))), [shown.key()]);
    let second = world.decide(&shown.key(), at(0)).unwrap();
    assert_eq!((first.picks[0].score, second.picks[0].score), (100, 200));
}

#[test]
fn a_score_limit_holds_back_scores_and_nothing_else() {
    let request = web().number(1).annotate("berth.dev/decision-details", "score,available");
    let (mut world, _) = settle(fleet().cluster("a").available("True"), &request);
    // Steady makes another score of it, which has to wait for a minute from the first.
    let waiting = world.settle(&request.key(), at(10)).unwrap();
    assert_eq!(waiting.decisions[0].decisions()[0].score, Some(100));
    assert_eq!(waiting.scores_due, Some(at(60)));
    world.apply(fleet().cluster("a").available("False").objects.pop().unwrap());
    let told = world.settle(&request.key(), at(20)).unwrap();
    assert_eq!(told.decisions[0].decisions()[0].available, Some(false), "that does not wait");
}

/// Upstream: defects "12".
#[test]
fn a_name_that_no_label_can_hold_is_told_without_a_slice_to_carry_it() {
    for (chars, slices, status) in [(63, 1, "False"), (64, 0, "True")] {
        let request = placement("ns", &"p".repeat(chars));
        let mut world = fleet().cluster("a").placement(&request).world();
        let decision = world.decide(&request.key(), at(0)).unwrap();
        let published = world.publish(&request.key(), &decision, at(0));
        assert_eq!(published.decisions.len(), slices, "{chars}");
        assert_eq!(condition(&published, condition::PLACEMENT_MISCONFIGURED).status, status, "{chars}");
    }
}
