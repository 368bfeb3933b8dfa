//! A restart with nothing changed: nothing is written.

use std::collections::BTreeMap;

use berth_bed::Companion;
use berth_tests::{caller::text, waiting::until};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    cluster::{Cluster, taint},
    ground::{ALONE, Turn, grounds},
    handle::{Fleet, GROUP, PATIENCE},
    metrics::Metrics,
};

/// Placements of each kind.
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

grounds! {
    /// Stopped or killed and started again over an unchanged fleet, the controllers write nothing.
    turn async fn an_unchanged_fleet_is_not_written(turn: &mut Turn<'_>) {
        let Some(mut controllers) = berth_bed::or_skip(turn.run("restarted", ALONE).await) else { return };
        let fleet = &turn.fleet;
        stage(fleet).await;
        let placements = fleet.caller.get(&format!("{GROUP}/v1beta1/placements")).await.ok();
        let placements = placements["items"].as_array().unwrap().len();
        assert!(placements >= PLACEMENTS);
        for number in 0..PLACEMENTS {
            let path = fleet.placement_path(&format!("p{number:03}"));
            fleet.until(&path, "is decided", |placement| placement["status"]["conditions"].is_array()).await;
        }
        have_decided(&controllers, placements).await;

        let mut before = versions(fleet).await;
        for is_clean in [true, false, true] {
            if is_clean { controllers.stop().await.unwrap() } else { controllers.kill() }
            if before != versions(fleet).await {
                // Writes of before were still under way.
                before = versions(fleet).await;
            }
            controllers.start().await.unwrap();
            let metrics = have_decided(&controllers, placements).await;
            assert_eq!(metrics.writes(), 0, "written: {metrics:?}");
            assert_eq!(metrics.sum("berth_events_total", &[]), 0, "recorded: {metrics:?}");
            let after = versions(fleet).await;
            let changed: Vec<_> = after.iter().filter(|(key, version)| before.get(*key) != Some(version)).collect();
            assert!(changed.is_empty() && after.len() == before.len(), "changed: {changed:?}");
        }
    }
}
