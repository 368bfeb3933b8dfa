//! Decision groups and slices: upstream's cases by name.

use berth_api::placement_decision::DECISIONS_PER_SLICE_MAX;
use berth_engine::select::Published;
use serde_json::json;

use crate::fixtures::{Fleet, Request, at, decision, fleet, web};
use berth_engine::Delta;

/// The groups of a publication: name, clusters of each slice.
fn groups(published: &Published) -> Vec<(String, Vec<Vec<String>>)> {
    let slice = |name: &String| {
        let object =
            published.decisions.iter().find(|object| object.metadata.name.as_ref() == Some(name)).unwrap();
        object.decisions().iter().map(|entry| entry.cluster_name.clone()).collect()
    };
    let groups = published.status.decision_groups.iter().flatten();
    let group = |group: &berth_api::DecisionGroupStatus| {
        let slices = group.decisions.iter().flatten().map(slice).collect();
        (group.decision_group_name.clone().unwrap(), slices)
    };
    groups.map(group).collect()
}

fn published(fleet: Fleet, request: &Request) -> Published {
    fleet.placement(request).world().settle(&request.key(), at(0)).unwrap()
}

fn listed(groups: &[(String, Vec<Vec<String>>)]) -> Vec<(&str, Vec<&str>)> {
    groups
        .iter()
        .map(|(name, slices)| (&**name, slices.iter().flatten().map(String::as_str).collect()))
        .collect()
}

fn staged() -> Fleet {
    fleet()
        .cluster("c1")
        .label("stage", "canary")
        .cluster("c2")
        .label("stage", "canary")
        .cluster("c3")
        .label("stage", "second")
        .cluster("c4")
        .claim("stage", "third")
        .cluster("c5")
}

type Wanted = &'static [(&'static str, &'static [&'static str])];

/// Upstream: scheduling_controller_test.go "TestBind: create single placementdecision", "TestBind: create empty
/// placementdecision", "TestBind: create placementdecision with canary group strategy", "TestBind: create
/// placementdecision when no cluster selected by canary group strategy", "TestBind: create placementdecision with
/// multiple group strategy", "TestBind: create placementdecision with only cluster per decision group",
/// "TestSchedulingController_sync: placement with canary group strategy", "TestSchedulingController_sync: placement
/// with multiple group strategy", "TestSchedulingController_sync: placement with only cluster per decision group".
#[test]
fn every_case_of_groups() {
    let cases: Vec<(&str, Fleet, Request, Wanted)> = vec![
        ("create single placementdecision", staged(), web(), &[("", &["c1", "c2", "c3", "c4", "c5"])]),
        ("create empty placementdecision", fleet(), web(), &[("", &[])]),
        (
            "create placementdecision with canary group strategy",
            staged(),
            web().label_group("canary", "stage", "canary"),
            &[("canary", &["c1", "c2"]), ("", &["c3", "c4", "c5"])],
        ),
        (
            "create placementdecision when no cluster selected by canary group strategy",
            staged(),
            web().label_group("canary", "stage", "nowhere"),
            &[("", &["c1", "c2", "c3", "c4", "c5"])],
        ),
        (
            "create placementdecision with multiple group strategy",
            staged(),
            web()
                .label_group("group1", "stage", "canary")
                .label_group("group2", "stage", "second")
                .group("group3", json!({"claimSelector": {"matchExpressions": [{"key": "stage", "operator": "In", "values": ["third"]}]}})),
            &[("group1", &["c1", "c2"]), ("group2", &["c3"]), ("group3", &["c4"]), ("", &["c5"])],
        ),
        (
            "create placementdecision with only cluster per decision group",
            staged(),
            web().per_group(2),
            &[("", &["c1", "c2"]), ("", &["c3", "c4"]), ("", &["c5"])],
        ),
        (
            "placement with canary group strategy, 25% of 5 is 2",
            staged(),
            web().percent("25%").label_group("canary", "stage", "canary"),
            &[("canary", &["c1", "c2"]), ("", &["c3", "c4"]), ("", &["c5"])],
        ),
        (
            "placement with only cluster per decision group: 25% of 3 is one each",
            fleet().clusters(["a", "b", "c"]),
            web().percent("25%"),
            &[("", &["a"]), ("", &["b"]), ("", &["c"])],
        ),
        (
            "the first group that matches has the cluster",
            staged(),
            web().label_group("one", "stage", "canary").group("all", json!({})),
            &[("one", &["c1", "c2"]), ("all", &["c3", "c4", "c5"])],
        ),
        (
            "a named group is cut too",
            staged(),
            web().per_group(1).label_group("canary", "stage", "canary").number(3),
            &[("canary", &["c1"]), ("canary", &["c2"]), ("", &["c3"])],
        ),
        ("more than there are is one group", staged(), web().per_group(100), &[("", &["c1", "c2", "c3", "c4", "c5"])]),
        (
            "the size is a part of what is selected, not of what could be",
            staged(),
            web().number(2).percent("50%"),
            &[("", &["c1"]), ("", &["c2"])],
        ),
    ];
    for (upstream, fleet, request, wanted) in cases {
        let groups = groups(&published(fleet, &request));
        let got = listed(&groups);
        assert_eq!(
            got.iter().map(|(name, clusters)| (*name, &clusters[..])).collect::<Vec<_>>(),
            wanted,
            "{upstream}"
        );
    }
}

/// Upstream: defects "13".
#[test]
fn a_text_that_is_no_percentage_is_a_mistake() {
    for text in ["50", "x%", "%", "", "5 %"] {
        let request = web().percent(text);
        let decision = staged().placement(&request).world().decide(&request.key(), at(0)).unwrap();
        let told = decision.complaints[0].condition_message();
        assert!(
            told.starts_with(':') && told.contains("invalid type: string is not a percentage"),
            "{text}: {told}"
        );
    }
}

#[test]
fn a_group_selector_that_cannot_be_understood_is_a_mistake() {
    let selector = json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}});
    let request = web().group("canary", selector);
    let decision = staged().placement(&request).world().decide(&request.key(), at(0)).unwrap();
    assert!(decision.complaints[0].path.contains("decisionGroups[0].groupClusterSelector"));
}

/// Upstream: integration/placement/placement_test.go "Should create multiple placementdecisions once scheduled".
/// Upstream: scheduling_controller_test.go "TestBind: create multiple placementdecisions".
#[test]
fn a_hundred_and_one_clusters_take_two_slices_of_one_group() {
    let names: Vec<String> = (0..=DECISIONS_PER_SLICE_MAX).map(|number| format!("c{number:03}")).collect();
    let published = published(fleet().clusters(&names), &web());
    let [(name, slices)] = &groups(&published)[..] else { panic!("one group") };
    assert_eq!(name, "");
    assert_eq!(slices.iter().map(Vec::len).collect::<Vec<_>>(), [100, 1]);
    assert_eq!(slices.concat(), names);
    let status = &published.status.decision_groups.as_ref().unwrap()[0];
    assert_eq!(status.decisions.as_ref().unwrap(), &["web-decision-1", "web-decision-2"]);
    assert_eq!((status.decision_group_index, status.cluster_count), (Some(0), Some(101)));
    let index = |object: &berth_api::PlacementDecision| {
        object.metadata.labels.as_ref().unwrap()[berth_api::names::label::DECISION_GROUP_INDEX].clone()
    };
    assert!(published.decisions.iter().all(|object| index(object) == "0"));
}

#[test]
fn exactly_a_hundred_clusters_take_one_slice_and_slices_are_numbered_across_groups() {
    let names: Vec<String> = (0..200).map(|number| format!("c{number:03}")).collect();
    let request = web().per_group(100);
    let published = published(fleet().clusters(&names), &request);
    assert_eq!(groups(&published).iter().map(|(_, slices)| slices.len()).collect::<Vec<_>>(), [1, 1]);
    let names: Vec<_> =
        published.decisions.iter().map(|object| object.metadata.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["web-decision-1", "web-decision-2"]);
}

#[test]
fn a_slice_says_whose_it_is() {
    let published = published(staged(), &web());
    let object = &published.decisions[0];
    let [owner] = &object.metadata.owner_references.as_ref().unwrap()[..] else { panic!("one owner") };
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
    assert_eq!((&*owner.kind, &*owner.name, &*owner.uid), ("Placement", "web", "uid-of-web"));
    assert_eq!(owner.api_version, "cluster.open-cluster-management.io/v1beta1");
    let labels: Vec<_> =
        object.metadata.labels.as_ref().unwrap().iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(
        labels,
        [
            ("cluster.open-cluster-management.io/decision-group-index", "0"),
            ("cluster.open-cluster-management.io/decision-group-name", ""),
            ("cluster.open-cluster-management.io/placement", "web"),
        ]
    );
}

/// Upstream: scheduling_controller_test.go "TestBind: no change".
#[test]
fn what_is_written_already_is_published_as_it_is() {
    let request = web().label_group("canary", "stage", "canary");
    let mut world = staged().placement(&request).world();
    let first = world.settle(&request.key(), at(0)).unwrap();
    let again = world.settle(&request.key(), at(500)).unwrap();
    assert_eq!(first.decisions, again.decisions);
    assert_eq!(first.status, again.status, "not even the times of conditions move");
}

/// Upstream: scheduling_controller_test.go "TestBind: delete redundant placementdecisions", "TestBind: delete all
/// placementdecisions and leave one empty placementdecision", "TestBind: update one of placementdecisions".
#[test]
fn slices_that_are_no_longer_needed_are_left_out() {
    let names: Vec<String> = (0..250).map(|number| format!("c{number:03}")).collect();
    let mut world = fleet().clusters(&names).placement(&web()).world();
    assert_eq!(world.settle(&web().key(), at(0)).unwrap().decisions.len(), 3);
    world.apply(Delta::Placement(Box::new(web().number(101).0)));
    let published = world.settle(&web().key(), at(0)).unwrap();
    assert_eq!(groups(&published)[0].1.iter().map(Vec::len).collect::<Vec<_>>(), [100, 1]);
    world.apply(Delta::Placement(Box::new(web().labelled("no", "body").0)));
    let published = world.settle(&web().key(), at(0)).unwrap();
    assert_eq!(groups(&published), [(String::new(), vec![Vec::new()])]);
    assert_eq!(world.decisions.len(), 1);
}

/// Upstream: integration/placement/placement_test.go "Should update the decision group once clusters added/deleted".
#[test]
fn groups_follow_the_clusters_that_come_and_go_without_gaps() {
    let request = web().per_group(2).label_group("canary", "stage", "canary");
    let canary = |name: &str| fleet().cluster(name).label("stage", "canary").objects.pop().unwrap();
    let plain = |name: &str| fleet().cluster(name).objects.pop().unwrap();
    let mut world = fleet().placement(&request).world();
    let now = |world: &mut crate::world::World| groups(&world.settle(&request.key(), at(0)).unwrap());
    assert_eq!(listed(&now(&mut world)), [("", vec![])]);
    for delta in [canary("k1"), canary("k2"), plain("p1"), plain("p2"), plain("p3")] {
        world.apply(delta);
    }
    let three = now(&mut world);
    assert_eq!(listed(&three), [("canary", vec!["k1", "k2"]), ("", vec!["p1", "p2"]), ("", vec!["p3"])]);
    world.apply(Delta::ClusterGone("p1".into()));
    let two = now(&mut world);
    assert_eq!(listed(&two), [("canary", vec!["k1", "k2"]), ("", vec!["p2", "p3"])]);
    assert_eq!(world.decisions.len(), 2, "slice 3 is gone");
    for name in ["k1", "k2", "p2", "p3"] {
        world.apply(Delta::ClusterGone(name.into()));
    }
    assert_eq!(listed(&now(&mut world)), [("", vec![])]);
}

/// Upstream: integration/placement/placement_test.go "Should re-create placementdecisions successfully once
/// placementdecisions are deleted".
#[test]
fn a_slice_that_somebody_deletes_is_decided_again() {
    let mut world = staged().placement(&web()).world();
    let before = world.settle(&web().key(), at(0)).unwrap();
    let gone = crate::world::key(&before.decisions[0].metadata);
    assert_eq!(world.apply(Delta::DecisionGone(gone)), [web().key()]);
    let after = world.settle(&web().key(), at(0)).unwrap();
    assert_eq!(before.decisions, after.decisions);
    let meddled = decision(&web().key(), 1, &["c5"]);
    assert_eq!(world.apply(Delta::Decision(Box::new(meddled))), [web().key()], "and one that somebody edits");
}

#[test]
fn sorted_by_score_the_best_comes_first_in_each_group() {
    let request = web()
        .exact(&[("AddOn/demo/cpu", 1)])
        .sort_by("Score")
        .label_group("canary", "stage", "canary")
        .annotate(berth_engine::select::DETAILS_ANNOTATION, "score");
    let fleet = ["c1", "c2", "c3", "c4", "c5"].iter().zip([1, 20, 3, 40, 3]);
    let fleet = fleet.fold(staged(), |fleet, (name, value)| fleet.score(name, "demo", "cpu", value, None));
    let published = published(fleet, &request);
    let groups = groups(&published);
    assert_eq!(listed(&groups), [("canary", vec!["c2", "c1"]), ("", vec!["c4", "c3", "c5"])]);
    let scores: Vec<_> = published.decisions[1].decisions().iter().map(|entry| entry.score).collect();
    assert_eq!(scores, [Some(40), Some(3), Some(3)]);
    assert!(published.status.last_score_update_time.is_some());
}

#[test]
fn scores_alone_are_written_again_only_after_the_rate_limit() {
    let mut request =
        web().exact(&[("AddOn/demo/cpu", 1)]).annotate(berth_engine::select::DETAILS_ANNOTATION, "score");
    request.0.spec.score_rate_limit = Some("30s".into());
    let mut world =
        fleet().clusters(["a", "b"]).score("a", "demo", "cpu", 1, None).placement(&request).world();
    let scores = |published: &Published| -> Vec<Option<i64>> {
        published.decisions[0].decisions().iter().map(|entry| entry.score).collect()
    };
    assert_eq!(scores(&world.settle(&request.key(), at(0)).unwrap()), [Some(1), Some(0)]);
    world.apply(fleet().score("a", "demo", "cpu", 2, None).objects.pop().unwrap());
    let held_back = world.settle(&request.key(), at(10)).unwrap();
    assert_eq!((scores(&held_back), held_back.scores_due), (vec![Some(1), Some(0)], Some(at(30))));
    let written = world.settle(&request.key(), at(30)).unwrap();
    assert_eq!((scores(&written), written.scores_due), (vec![Some(2), Some(0)], None));
    // A change of who is selected is written at once, scores and all.
    world.apply(fleet().score("a", "demo", "cpu", 3, None).objects.pop().unwrap());
    world.apply(fleet().cluster("c").objects.pop().unwrap());
    assert_eq!(scores(&world.settle(&request.key(), at(31)).unwrap()), [Some(3), Some(0), Some(0)]);
}
