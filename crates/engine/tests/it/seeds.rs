//! The documents the project began with: their examples as written, and their user stories in our own words.

use berth_api::PlacementDecision;
use berth_api::names::GROUP;
use berth_engine::model::ObjectKey;
use berth_engine::{Delta, Moment, PlacementKey};
use serde_json::{Value, json};

use crate::fixtures::{Fleet, Request, at, bare, fleet, placement, web};
use crate::shared;
use crate::world::{World, delta};

/// The fenced YAML blocks of a document, with the indentation of their fence removed.
fn yaml_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match &mut open {
            None if line.trim() == "```yaml" => open = Some((indent, String::new())),
            Some(_) if line.trim() == "```" => blocks.extend(open.take().map(|(_, block)| block)),
            Some((indent, block)) => {
                block.push_str(line.get(*indent..).unwrap_or_default());
                block.push('\n');
            }
            None => {}
        }
    }
    blocks
}

/// The documents of our group in a seed, in order; `None` when the seed is not at hand. One is left out: it has a
/// placeholder where a namespace belongs.
fn examples(seed: &str) -> Option<Vec<Delta>> {
    let (_, text) = shared::files("seeds", ".md").into_iter().find(|(name, _)| name == seed)?;
    let documents = yaml_blocks(&text).into_iter().flat_map(|block| shared::yaml(&block));
    let ours = |document: &Value| {
        document["apiVersion"].as_str().unwrap_or_default().starts_with(&format!("{GROUP}/"))
    };
    let written = |document: &Value| !document["metadata"]["namespace"].is_object();
    Some(documents.filter(|document| ours(document) && written(document)).map(delta).collect())
}

fn moment(text: &str) -> Moment {
    Moment::from_timestamp(text.parse().unwrap())
}

const PLACEMENT1: (&str, &str) = ("default", "placement1");

/// A world with an example's cluster and placement, and a healthy cluster beside.
fn tainted(pair: &[Delta]) -> (World, PlacementKey) {
    let ground = bare().set("clusterset1").bind("clusterset1", PLACEMENT1.0);
    let ground = ground.cluster("spare").in_set("clusterset1");
    let mut world = World::of(ground.objects);
    for delta in pair {
        world.apply(delta.clone());
    }
    (world, PlacementKey::new(PLACEMENT1.0, PLACEMENT1.1))
}

#[test]
fn the_examples_of_taints_come_out_as_described() {
    let Some(examples) = examples("taint-toleration.md") else { return };
    let [maintaining, certain, immediate, after] = &examples.chunks(2).collect::<Vec<_>>()[..] else {
        panic!("four examples of a cluster and a placement, not {} documents", examples.len())
    };
    let added = moment("2021-07-06T15:00:00+08:00");

    let (mut world, key) = tainted(maintaining);
    assert_eq!(world.selected(&key, added), ["spare"], "1: a cluster under maintenance is not selected");

    let (mut world, key) = tainted(certain);
    assert_eq!(world.selected(&key, added), ["cluster1", "spare"], "2: who tolerates gpu may use it");
    let (mut stranger, _) = tainted(&certain[..1]);
    stranger.apply(Delta::Placement(Box::new(placement(PLACEMENT1.0, PLACEMENT1.1).0)));
    assert_eq!(stranger.selected(&key, added), ["spare"], "2: others may not");

    let (mut world, key) = tainted(immediate);
    assert_eq!(world.selected(&key, added), ["spare"], "3.1: an unhealthy cluster is left at once");

    let (mut world, key) = tainted(after);
    let deadline = moment("2021-07-06T07:01:30Z");
    assert_eq!(deadline, added.plus_seconds(90));
    let decision = world.decide(&key, added).unwrap();
    assert_eq!(
        crate::world::World::names(&decision),
        ["cluster1", "spare"],
        "3.2: tolerated for ninety seconds"
    );
    assert_eq!(decision.next.as_ref().map(|next| next.at), Some(deadline), "3.2: and the end is known");
    assert_eq!(world.selected(&key, added.plus_seconds(89)), ["cluster1", "spare"]);
    assert_eq!(world.selected(&key, deadline), ["spare"], "3.2: then gone, to the second");
}

#[test]
fn the_examples_of_scores_come_out_as_described() {
    let Some(examples) = examples("extensible-scheduling.md") else { return };
    let [score, steady, most, least, primary, backup, recovery] = &examples[..] else {
        panic!("seven documents, not {}", examples.len())
    };
    let key = PlacementKey::new("ns1", "placement");
    let ground = |clusters: &[&str]| {
        World::of(
            bare().set_of("all", json!({})).bind("all", "ns1").clusters(clusters.iter().copied()).objects,
        )
    };
    let valid = moment("2021-10-29T18:31:39Z");
    let expired = valid.plus_seconds(1);

    // cluster1 has the score of the example, others more, less and none.
    let mut world = ground(&["cluster1", "cluster2", "cluster3", "cluster4", "cluster5"]);
    world.apply(score.clone());
    for (cluster, ratio) in [("cluster2", 90), ("cluster3", 10), ("cluster4", -20)] {
        world.apply(bare().score(cluster, "default", "cpuratio", ratio, None).objects[0].clone());
    }
    world.apply(most.clone());
    assert_eq!(world.selected(&key, valid), ["cluster1", "cluster2", "cluster3"], "the three with the most");
    // Expired it counts as 0, which is still more than -20, and cluster1 comes before cluster5.
    assert_eq!(world.selected(&key, expired), ["cluster1", "cluster2", "cluster3"]);
    assert_eq!(world.decide(&key, expired).unwrap().expired, [("cluster1".into(), "default".into())]);
    world.apply(least.clone());
    assert_eq!(world.selected(&key, valid), ["cluster4"], "a weight of -1 selects the last");

    // Steady with weight 3 keeps cluster5, which has no score, against those that have.
    world.apply(steady.clone());
    world.apply(bare().decided(&key, &["cluster5"]).objects[0].clone());
    assert_eq!(world.selected(&key, valid), ["cluster1", "cluster2", "cluster5"]);

    let mut world = ground(&["primary", "backup"]);
    for delta in [primary, backup, recovery] {
        world.apply(delta.clone());
    }
    assert_eq!(world.selected(&key, valid), ["primary"]);
    world.settle(&key, valid);
    let down = bare().cluster("primary").taint("down:NoSelect", 0).objects[0].clone();
    assert_eq!(world.apply(down), std::slice::from_ref(&key));
    assert_eq!(world.selected(&key, valid), ["backup"], "the workload moves by itself");
}

#[test]
fn the_example_of_a_binding_lets_the_namespace_select() {
    let Some(examples) = examples("placement-apis.md") else { return };
    let [binding] = &examples[..] else { panic!("one document, not {}", examples.len()) };
    let request = placement("ns1", "placement1")
        .flat_predicate(json!({"labelSelector": {"matchLabels": {"vendor": "OpenShift"}}}));
    let ground =
        bare().set("clusterset1").cluster("cluster1").in_set("clusterset1").label("vendor", "OpenShift");
    let ground = ground.cluster("cluster2").in_set("clusterset1").label("vendor", "Other");
    let mut world = ground.placement(&request).world();
    assert!(world.selected(&request.key(), at(0)).is_empty());
    assert_eq!(world.apply(binding.clone()), [request.key()]);
    assert_eq!(world.selected(&request.key(), at(0)), ["cluster1"]);
}

// New Placement APIs: the stories.

/// Two sets, clusters of several kinds.
fn estate() -> Fleet {
    let cluster = |fleet: Fleet, name: &str, set: &str, vendor: &str, cloud: &str, version: &str| {
        fleet
            .cluster(name)
            .in_set(set)
            .label("vendor", vendor)
            .claim("platform", cloud)
            .claim("version", version)
    };
    let fleet = bare().set("east").set("west");
    let fleet =
        cluster(fleet, "e1", "east", "OpenShift", "AWS", "4.5.8").label("env", "prod").label("region", "us");
    let fleet = cluster(fleet, "e2", "east", "OpenShift", "GCP", "4.6.1").label("region", "us");
    let fleet =
        cluster(fleet, "e3", "east", "AKS", "Azure", "1.30").label("env", "prod").label("region", "eu");
    let fleet = cluster(fleet, "w1", "west", "OpenShift", "VSphere", "4.5.8").label("region", "eu");
    cluster(fleet, "w2", "west", "EKS", "AWS", "1.31").label("env", "prod").label("region", "asia")
}

#[test]
fn placement_story_1_an_administrator_reaches_every_cluster_of_every_set_and_any_of_them() {
    let bound = || estate().bind("east", "admin").bind("west", "admin");
    let all = placement("admin", "policy");
    assert_eq!(bound().selected(&all, 0), ["e1", "e2", "e3", "w1", "w2"]);
    let some = placement("admin", "policy").predicate(json!({"clusterNames": ["e3", "w1"]}));
    assert_eq!(bound().selected(&some, 0), ["e3", "w1"]);
}

#[test]
fn placement_story_2_a_user_reaches_only_the_sets_bound_to_the_namespace() {
    let fleet = || estate().bind("east", "team");
    assert_eq!(fleet().selected(&placement("team", "p"), 0), ["e1", "e2", "e3"]);
    assert!(fleet().selected(&placement("team", "p").sets(&["west"]), 0).is_empty());
    assert!(fleet().selected(&placement("strangers", "p"), 0).is_empty());
}

#[test]
fn placement_story_3_predicates_tell_vendor_cloud_version_and_label() {
    let claim = |operator: &str, key: &str, values: &[&str]| json!({"claimSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}});
    let cases: [(&str, Request, &[&str]); 6] = [
        ("openshift only", ns().labelled("vendor", "OpenShift"), &["e1", "e2", "w1"]),
        ("in aws and gcp", ns().predicate(claim("In", "platform", &["AWS", "GCP"])), &["e1", "e2", "w2"]),
        ("not in vsphere", ns().predicate(claim("NotIn", "platform", &["VSphere"])), &["e1", "e2", "e3", "w2"]),
        (
            "openshift of one version",
            ns().predicate(json!({
                "labelSelector": {"matchLabels": {"vendor": "OpenShift"}},
                "claimSelector": {"matchExpressions": [{"key": "version", "operator": "In", "values": ["4.5.8"]}]},
            })),
            &["e1", "w1"],
        ),
        ("labelled prod", ns().labelled("env", "prod"), &["e1", "e3", "w2"]),
        ("either of two", ns().labelled("vendor", "AKS").labelled("vendor", "EKS"), &["e3", "w2"]),
    ];
    for (story, request, selected) in cases {
        assert_eq!(estate().bind("east", "ns").bind("west", "ns").selected(&request, 0), selected, "{story}");
    }
}

fn ns() -> Request {
    web()
}

#[test]
fn placement_story_4_a_number_of_clusters_that_fit() {
    let bound = || estate().bind("east", "ns").bind("west", "ns");
    assert_eq!(bound().selected(&ns().number(2).labelled("vendor", "OpenShift"), 0), ["e1", "e2"]);
    let request = ns().number(5).predicate(
        json!({"claimSelector": {"matchExpressions": [{"key": "platform", "operator": "In", "values": ["AWS"]}]}}),
    );
    let mut world = bound().placement(&request).world();
    let decision = world.decide(&request.key(), at(0)).unwrap();
    assert_eq!(
        (crate::world::World::names(&decision).len(), decision.unscheduled),
        (2, 3),
        "and it is said how many are missing"
    );
}

#[test]
fn placement_story_5_hundreds_out_of_thousands() {
    let names: Vec<String> = (0..3000).map(|number| format!("c{number:04}")).collect();
    let request = web().number(450);
    let mut world = fleet().clusters(&names).placement(&request).world();
    let published = world.settle(&request.key(), at(0)).unwrap();
    let sizes: Vec<usize> = published.decisions.iter().map(|object| object.decisions().len()).collect();
    assert_eq!(sizes, [100, 100, 100, 100, 50]);
}

#[test]
fn placement_story_6_clusters_of_different_regions() {
    let bound = || estate().bind("east", "ns").bind("west", "ns");
    let apart = ns().apart("region", "Label");
    let regions: Vec<String> = bound().selected(&apart, 0);
    assert_eq!(regions, ["e1", "e3", "w2"], "one of each region, the first by name");
    let spread = ns().number(4).spread("region", "Label", 1, "DoNotSchedule");
    assert_eq!(
        bound().selected(&spread, 0),
        ["e1", "e2", "e3", "w2"],
        "asia has but one, so no region has three"
    );
}

#[test]
fn placement_story_7_a_controller_reads_the_decision_by_its_label() {
    let mut world = estate().bind("east", "ns").placement(&web()).world();
    let published = world.settle(&web().key(), at(0)).unwrap();
    let found: Vec<_> = published
        .decisions
        .iter()
        .filter(|object| object.placement_name() == Some("web"))
        .flat_map(PlacementDecision::decisions)
        .map(|entry| &*entry.cluster_name)
        .collect();
    assert_eq!(found, ["e1", "e2", "e3"]);
}

#[test]
fn placement_story_8_and_taint_story_1_tolerations_reach_clusters_set_apart() {
    let fleet = || fleet().cluster("plain").cluster("gpu").taint("gpu=true:NoSelect", 0);
    assert_eq!(fleet().selected(&web(), 0), ["plain"]);
    assert_eq!(fleet().selected(&web().tolerate("gpu", "Equal", "true"), 0), ["gpu", "plain"]);
    let only = web().tolerate("gpu", "Equal", "true").predicate(json!({"clusterNames": ["gpu"]}));
    assert_eq!(fleet().selected(&only, 0), ["gpu"]);
}

#[test]
fn placement_story_9_it_can_be_told_how_a_decision_was_made() {
    let request = web().number(1).labelled("env", "prod");
    let mut world = estate().bind("east", "ns").bind("west", "ns").placement(&request).world();
    let account = world.explain(&request.key(), at(0));
    assert_eq!(
        (account.selection.members, account.selection.candidates, account.selection.selected),
        (5, 3, 1)
    );
    let words = berth_engine::explain::sentences(&account);
    assert!(words.iter().any(|sentence| sentence.contains("3 feasible")), "{words:?}");
}

#[test]
fn placement_story_10_availability_is_a_taint_an_expression_or_a_field() {
    let ground = || fleet().cluster("up").available("True").cluster("down").available("False");
    let expression = r#"managedCluster.status.conditions.exists(c, c.type == "ManagedClusterConditionAvailable" && c.status == "True")"#;
    assert_eq!(ground().selected(&web().cel(&[expression]), 0), ["up"]);
    let request = web().annotate(berth_engine::select::DETAILS_ANNOTATION, "available");
    let mut world = ground().placement(&request).world();
    let told: Vec<_> = world.settle(&request.key(), at(0)).unwrap().decisions[0]
        .decisions()
        .iter()
        .map(|entry| (entry.cluster_name.clone(), entry.available))
        .collect();
    assert_eq!(told, [("down".to_owned(), Some(false)), ("up".to_owned(), Some(true))]);
}

// Taints and tolerations: the stories.

/// One replica somewhere, on a cluster that then gets a taint.
fn moving(request: &Request, taint: &str) -> World {
    let mut world = fleet().clusters(["first", "second"]).placement(request).world();
    world.settle(&request.key(), at(0)).unwrap();
    assert_eq!(world.selected(&request.key(), at(0)), ["first"]);
    world.apply(fleet().cluster("first").taint(taint, 100).objects.pop().unwrap());
    world
}

#[test]
fn taint_story_2_who_goes_offline_is_replaced_at_once() {
    let request = web().number(1);
    let taint = format!("{}:NoSelect", berth_api::names::system_taint::UNREACHABLE);
    assert_eq!(moving(&request, &taint).selected(&request.key(), at(100)), ["second"]);
}

#[test]
fn taint_story_3_maintenance_evicts_workloads_and_leaves_security_policies() {
    let workload = web().number(1);
    assert_eq!(moving(&workload, "maintenance:NoSelect").selected(&workload.key(), at(100)), ["second"]);
    let security = placement("ns", "security").exists("maintenance");
    let fleet = fleet().clusters(["first", "second"]).cluster("first").taint("maintenance:NoSelect", 0);
    assert_eq!(fleet.selected(&security, 0), ["first", "second"]);
}

#[test]
fn taint_story_4_who_goes_offline_is_replaced_after_the_tolerated_time() {
    let request = web().number(1).exists(berth_api::names::system_taint::UNREACHABLE).seconds(300);
    let taint = format!("{}:NoSelect", berth_api::names::system_taint::UNREACHABLE);
    let mut world = moving(&request, &taint);
    assert_eq!(world.selected(&request.key(), at(399)), ["first"]);
    assert_eq!(world.decide(&request.key(), at(100)).unwrap().next.unwrap().at, at(400));
    assert_eq!(world.selected(&request.key(), at(400)), ["second"]);
    // Back before the time is up, nothing moves.
    let mut world = moving(&request, &taint);
    world.apply(fleet().cluster("first").objects.pop().unwrap());
    assert_eq!(world.selected(&request.key(), at(400)), ["first"]);
    assert_eq!(world.decide(&request.key(), at(200)).unwrap().next, None);
}

// Extensible scheduling: the stories.

#[test]
fn scheduling_stories_1_2_and_4_whoever_publishes_scores_decides_the_order() {
    let request = web().number(2).exact(&[("AddOn/usage/cpu", 3), ("AddOn/sla/latency", 1)]);
    let ground = || {
        fleet()
            .clusters(["a", "b", "c"])
            .score("a", "usage", "cpu", 10, None)
            .score("b", "usage", "cpu", 50, None)
            .score("c", "usage", "cpu", 40, None)
            .score("a", "sla", "latency", 100, None)
    };
    // 130, 150, 120
    assert_eq!(ground().selected(&request, 0), ["a", "b"]);
    let mut world = ground().placement(&request).world();
    world.settle(&request.key(), at(0)).unwrap();
    let pushed = fleet().score("a", "usage", "cpu", -50, None).objects.pop().unwrap();
    assert_eq!(world.apply(pushed), [request.key()], "a new score is looked at when it comes");
    assert_eq!(world.selected(&request.key(), at(0)), ["b", "c"]);
    let gone = Delta::ScoreGone(ObjectKey::new("b", "usage"));
    assert_eq!(world.apply(gone), [request.key()]);
    assert_eq!(world.selected(&request.key(), at(0)), ["b", "c"], "0 is still more than -50");
}

#[test]
fn scheduling_story_3_recovery_moves_to_the_backup_and_home_again() {
    let request = web().number(1).exact(&[("AddOn/disasterrecovery/workload", 1)]);
    let mut world = fleet()
        .clusters(["backup", "primary"])
        .score("primary", "disasterrecovery", "workload", 100, None)
        .score("backup", "disasterrecovery", "workload", 0, None)
        .placement(&request)
        .world();
    let settled = |world: &mut World| {
        world.settle(&request.key(), at(0)).unwrap();
        world.selected(&request.key(), at(0))
    };
    assert_eq!(settled(&mut world), ["primary"]);
    world.apply(fleet().cluster("primary").taint("down:NoSelect", 0).objects.pop().unwrap());
    assert_eq!(settled(&mut world), ["backup"]);
    world.apply(fleet().cluster("primary").objects.pop().unwrap());
    assert_eq!(settled(&mut world), ["primary"]);
}
