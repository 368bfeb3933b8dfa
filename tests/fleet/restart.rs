//! A restart with nothing changed: nothing is written.

use std::collections::BTreeMap;

use berth_bed::Companion;
use berth_tests::{
    caller::{condition, text},
    waiting::until,
};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    cluster::{Cluster, taint},
    ground::{ALONE, Ground, QUIET, Turn, grounds},
    handle::{Fleet, GROUP, PATIENCE},
    metrics::Metrics,
};

/// Placements of the small fleet, which has something of everything.
const PLACEMENTS: usize = 20;

/// Every object of the fleet with its version, over the whole server.
async fn versions(fleet: &Fleet) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    let kinds = [
        "v1/managedclusters",
        "v1beta2/managedclustersets",
        "v1beta2/managedclustersetbindings",
        "v1beta1/placements",
        "v1beta1/placementdecisions",
        "v1alpha1/addonplacementscores",
    ];
    for kind in kinds {
        let list = fleet.caller.get(&format!("{GROUP}/{kind}")).await.ok();
        for object in list["items"].as_array().unwrap() {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let key = format!("{kind} {namespace}/{}", text(object, "/metadata/name"));
            versions.insert(key, text(object, "/metadata/resourceVersion").to_owned());
        }
    }
    versions
}

/// Waits until the controllers have decided everything there is.
async fn have_decided(controllers: &Companion, placements: usize) -> Metrics {
    until("everything decided", PATIENCE, async || {
        let metrics = Metrics::of(controllers).await;
        let decided = metrics.sum("berth_decisions_total", &["controller=\"placement-controller\""]);
        let waiting = metrics.sum("berth_waiting", &[]);
        if decided >= placements as u64 && waiting == 0 {
            Ok(metrics)
        } else {
            Err(format!("{decided} decided, {waiting} waiting"))
        }
    })
    .await
}

/// A fleet with something of everything.
async fn stage(fleet: &Fleet) {
    let now = Timestamp::now();
    fleet.bound_set("blue").await;
    fleet.set_by_label("red", "color", &fleet.namespace).await;
    fleet.bind("red").await;
    fleet.set("unbound").await;
    fleet.bind("missing").await;
    let add = async |number: usize| {
        let mut cluster =
            Cluster::named(&format!("c{number:03}")).of("blue").allocatable(1 + number as u32 % 9, 50);
        cluster = cluster.available(if number % 10 == 3 { "False" } else { "True" });
        if number.is_multiple_of(7) {
            cluster = cluster.label("color", &fleet.namespace);
        }
        if number == 5 {
            cluster = cluster.taint(&taint("later", "", "NoSelect", now));
        }
        fleet.add(cluster).await;
    };
    join_all((0..120).map(add)).await;
    fleet.score("c001", 50, None).await;
    fleet.score("c002", 60, Some(now + SignedDuration::from_hours(1))).await;
    let addon = json!({"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "demo"}});
    let kinds = [
        json!({}),
        json!({"numberOfClusters": 7}),
        json!({"numberOfClusters": 500}),
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "10%"}}}),
        json!({"tolerations": [{"key": "later", "operator": "Exists", "tolerationSeconds": 3600}]}),
        json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "wrong"}]}),
        json!({"numberOfClusters": 2, "prioritizerPolicy": {"mode": "Exact", "configurations": [{"scoreCoordinate": addon}]}}),
        json!({"clusterSets": ["nowhere"]}),
    ];
    let place = async |number: usize| {
        fleet.try_place(&format!("p{number:03}"), &kinds[number % kinds.len()]).await.ok();
    };
    join_all((0..PLACEMENTS).map(place)).await;
}

/// A large fleet: so many clusters, and as many placements of ten clusters each.
async fn crowd(fleet: &Fleet, count: usize) {
    fleet.bound_set("blue").await;
    let numbers: Vec<usize> = (0..count).collect();
    for chunk in numbers.chunks(50) {
        let add = |number: &usize| {
            let cluster = Cluster::named(&format!("c{number:04}")).of("blue").available("True");
            fleet.add(cluster.label("zone", &format!("z{}", number % 20)))
        };
        join_all(chunk.iter().map(add)).await;
    }
    for chunk in numbers.chunks(50) {
        let place = async |number: &usize| {
            let zone = json!({"labelSelector": {"matchLabels": {"zone": format!("z{}", number % 20)}}});
            let spec = json!({"numberOfClusters": 10, "predicates": [{"requiredClusterSelector": zone}]});
            fleet.try_place(&format!("p{number:04}"), &spec).await.ok();
        };
        join_all(chunk.iter().map(place)).await;
    }
}

/// Stops or kills the controllers and starts them again, three times: nothing is written.
pub(crate) async fn restarts_write_nothing(fleet: &Fleet, controllers: &mut Companion, placements: usize) {
    let mut before = versions(fleet).await;
    for is_clean in [true, false, true] {
        if is_clean {
            controllers.stop().await.unwrap();
        } else {
            controllers.kill();
        }
        if before != versions(fleet).await {
            // Writes of before were still under way.
            before = versions(fleet).await;
        }
        let revision = revision(fleet).await;
        controllers.start().await.unwrap();
        let metrics = have_decided(controllers, placements).await;
        assert_eq!(metrics.writes(), 0, "written: {metrics:?}");
        assert_eq!(metrics.sum("berth_events_total", &[]), 0, "recorded: {metrics:?}");
        let after = versions(fleet).await;
        let changed: Vec<_> =
            after.iter().filter(|(key, version)| before.get(*key) != Some(version)).collect();
        assert!(changed.is_empty() && after.len() == before.len(), "changed: {changed:?}");
        if fleet.ground == Ground::Hub {
            // Nobody else writes here: no revision has moved, of whatever object.
            assert_eq!(self::revision(fleet).await, revision);
        }
    }
}

/// How far the server has come.
async fn revision(fleet: &Fleet) -> String {
    let list = fleet.caller.get("/api/v1/namespaces?limit=1").await.ok();
    text(&list, "/metadata/resourceVersion").to_owned()
}

pub(crate) async fn placements_there(fleet: &Fleet) -> usize {
    let placements = fleet.caller.get(&format!("{GROUP}/v1beta1/placements")).await.ok();
    placements["items"].as_array().unwrap().len()
}

grounds! {
    /// Stopped or killed and started again over an unchanged fleet, the controllers write nothing.
    fresh async fn an_unchanged_fleet_is_not_written(turn: &mut Turn<'_>) {
        let Some(mut controllers) = berth_bed::or_skip(turn.run("restarted", ALONE).await) else { return };
        let fleet = &turn.fleet;
        stage(fleet).await;
        let placements = placements_there(fleet).await;
        assert!(placements >= PLACEMENTS);
        for number in 0..PLACEMENTS {
            let path = fleet.placement_path(&format!("p{number:03}"));
            fleet.until(&path, "is decided", |placement| placement["status"]["conditions"].is_array()).await;
        }
        have_decided(&controllers, placements).await;
        restarts_write_nothing(fleet, &mut controllers, placements).await;
    }

    /// The same with a thousand placements over a thousand clusters on the hub, and fewer elsewhere: on
    /// Kubernetes the stage `restart` of `./dev bench peers` counts the writes among a thousand.
    turn async fn an_unchanged_fleet_of_a_thousand_is_not_written(turn: &mut Turn<'_>) {
        let count = if turn.fleet.ground == Ground::Hub { 1000 } else { 150 };
        let Some(mut controllers) = berth_bed::or_skip(turn.run("thousand", QUIET).await) else { return };
        let fleet = &turn.fleet;
        crowd(fleet, count).await;
        let all = fleet.path("v1beta1", "placements");
        until("every placement being satisfied", PATIENCE * 3, async || {
            let list = fleet.caller.get(&all).await.ok();
            let items = list["items"].as_array().unwrap();
            let done = items.iter().filter(|placement| {
                condition(placement, "PlacementSatisfied")["status"].is_string()
            }).count();
            if done == count { Ok(()) } else { Err(format!("{done} of {count}")) }
        }).await;
        let placements = placements_there(fleet).await;
        have_decided(&controllers, placements).await;
        restarts_write_nothing(fleet, &mut controllers, placements).await;
    }
}
