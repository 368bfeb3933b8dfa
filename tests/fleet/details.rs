//! What slices show beside the names of clusters: scores and availability, where the definitions have room for them.

use berth_bed::or_skip;
use berth_engine::select::DETAILS_ANNOTATION;
use berth_tests::caller::text;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    deadlines::punctual,
    ground::{QUIET, Turn, grounds},
    handle::Fleet,
    restart::{placements_there, restarts_write_nothing},
    slices::LABEL,
};

/// The window of the scenario's placement.
const LIMIT: SignedDuration = SignedDuration::from_secs(3);

/// The placement: all clusters by the score `demo`, best first.
fn shown(fleet: &Fleet) -> Value {
    let addon = json!({"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "demo"}});
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {
            "name": "p", "namespace": fleet.namespace, "annotations": {DETAILS_ANNOTATION: "score,available"},
        },
        "spec": {
            "sortBy": "Score", "scoreRateLimit": "3s",
            "prioritizerPolicy": {"mode": "Exact", "configurations": [{"scoreCoordinate": addon}]},
        },
    })
}

/// What the definitions on a server have room for.
struct Room {
    score: bool,
    available: bool,
    /// Whether placements can be asked to sort by score, and say when scores were written.
    order: bool,
}

impl Room {
    async fn on(fleet: &Fleet) -> Self {
        let schema = async |plural: &str| {
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let path = format!("{definitions}/{plural}.cluster.open-cluster-management.io");
            let definition = fleet.caller.get(&path).await.ok();
            let mut versions = definition["spec"]["versions"].as_array().unwrap().iter();
            let version = versions.find(|version| version["name"] == "v1beta1").unwrap();
            version["schema"]["openAPIV3Schema"]["properties"].clone()
        };
        let entry = "/status/properties/decisions/items/properties";
        let entry = schema("placementdecisions").await.pointer(entry).unwrap().clone();
        let has = |detail: &str| entry.get(detail).is_some();
        let order = schema("placements").await.pointer("/spec/properties/sortBy").is_some();
        Self { score: has("score"), available: has("available"), order }
    }

    /// The entries of a slice that shows these clusters with these scores, in this order if it can.
    fn entries(&self, fleet: &Fleet, scores: &[(&str, i64)]) -> Value {
        let mut scores = scores.to_vec();
        if !self.order {
            scores.sort_unstable();
        }
        let entry = |(name, score): &(&str, i64)| {
            let mut entry = json!({"clusterName": fleet.name(name), "reason": "AllFeasible"});
            if self.score {
                entry["score"] = json!(score);
            }
            if self.available {
                entry["available"] = json!(*name != "c2");
            }
            entry
        };
        scores.iter().map(entry).collect()
    }
}

grounds! {
    /// Scores that move nobody are written when their window ends; what has no room is left out; and a new process finds
    /// nothing to write, whatever the definitions pruned.
    turn async fn details_are_shown_where_there_is_room_and_in_their_time(turn: &mut Turn<'_>) {
        let Some(mut controllers) = or_skip(turn.run("details", QUIET).await) else { return };
        let fleet = &turn.fleet;
        let room = Room::on(fleet).await;
        assert!(!fleet.ground.is_ours() || (room.score && room.available && room.order));
        fleet.bound_set("blue").await;
        for (name, score, available) in [("c1", 10, "True"), ("c2", 20, "False"), ("c3", 30, "True")] {
            fleet.add(Cluster::named(name).of("blue").available(available)).await;
            fleet.score(name, score, None).await;
        }
        fleet.caller.post(&fleet.path("v1beta1", "placements"), &shown(fleet)).await.ok();
        let first = room.entries(fleet, &[("c3", 30), ("c2", 20), ("c1", 10)]);
        // Kinds are watched apart, so the first decision may come before the last score.
        fleet.until(&fleet.decision_path("p", 1), "shows what it can", |slice| slice["status"]["decisions"] == first).await;
        let slices = fleet.selects("p", &["c1", "c2", "c3"]).await;
        if room.score {
            punctual(async |number| Some(score_waits_for_its_window(fleet, &room, 30 + 10 * number as i32).await)).await;
        } else {
            fleet.score("c1", 40, None).await;
            fleet.sentinel().await.passes().await;
            assert_eq!(fleet.slices("p").await.versions(), slices.versions(), "there is nothing to show");
        }
        let placements = placements_there(fleet).await;
        restarts_write_nothing(fleet, &mut controllers, placements).await;
    }
}

/// A score that changes nothing else is written when the window is over that the last write of scores began; gives how late
/// that was.
async fn score_waits_for_its_window(fleet: &Fleet, room: &Room, score: i32) -> SignedDuration {
    let told = |placement: &Value| placement["status"]["lastScoreUpdateTime"].is_string();
    let placement = fleet.until(&fleet.placement_path("p"), "says when", told).await;
    let last: Timestamp = text(&placement, "/status/lastScoreUpdateTime").parse().unwrap();
    let slices = fleet.slices("p").await;
    let version = text(&slices.0[0], "/metadata/resourceVersion");
    let query = format!("placementdecisions?labelSelector={LABEL}%2Fplacement%3Dp&resourceVersion={version}");
    let mut watch = fleet.caller.watch(&fleet.path("v1beta1", &query)).await;
    fleet.score("c1", score, None).await;
    let said = Timestamp::now();
    let event = watch.next().await;
    let (seen, due) = (Timestamp::now(), last + LIMIT);
    let wanted = room.entries(fleet, &[("c1", score.into()), ("c3", 30), ("c2", 20)]);
    assert_eq!(event["object"]["status"]["decisions"], wanted);
    assert!(seen >= due, "written at {seen}, before {due}");
    fleet
        .until(&fleet.placement_path("p"), "says when", |placement| {
            text(placement, "/status/lastScoreUpdateTime").parse::<Timestamp>().unwrap() >= due
        })
        .await;
    seen.duration_since(due.max(said))
}
