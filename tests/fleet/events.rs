//! What is told about a placement while it is decided.

use serde_json::json;

use crate::{ground::grounds, handle::Fleet, slices::LABEL};

/// How many events of a reason there are about a placement; those that repeat count as often as they did.
async fn told(fleet: &Fleet, reason: &str) -> u64 {
    let events = fleet.events("p").await;
    let of_reason = events.iter().filter(|event| event["reason"] == reason);
    of_reason.map(|event| event["series"]["count"].as_u64().unwrap_or(1)).sum()
}

grounds! {
    /// A slice that comes and one that changes are told; labels that are put right, and decisions that stay, are not.
    /// Upstream: scheduling_controller_event_test.go "TestCreateOrUpdatePlacementDecision_EventRecording: new placement
    /// decision created", "TestCreateOrUpdatePlacementDecision_EventRecording: decisions changed",
    /// "TestCreateOrUpdatePlacementDecision_EventRecording: labels changed only",
    /// "TestCreateOrUpdatePlacementDecision_EventRecording: no changes".
    calm async fn decisions_that_change_are_told_and_nothing_else(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        // Kinds are watched apart: once this one has both clusters, they are known to be there.
        fleet.place("first", "{}").await;
        fleet.selects("first", &["blue1", "blue2"]).await;
        fleet.place("p", "{}").await;
        fleet.selects("p", &["blue1", "blue2"]).await;
        fleet.event("p", "DecisionCreate", "p-decision-1").await;
        fleet.event("p", "ScoreUpdate", "blue1").await;
        let (created, updated) = (told(fleet, "DecisionCreate").await, told(fleet, "DecisionUpdate").await);
        assert_eq!((created, updated), (1, 0), "made and filled is one thing to tell");

        let label = format!("{LABEL}/decision-group-index");
        let wrong = json!({"metadata": {"labels": {&label: "7"}}});
        fleet.caller.merge(&fleet.decision_path("p", 1), &wrong).await.ok();
        fleet.until(&fleet.decision_path("p", 1), "is put right", |slice| slice["metadata"]["labels"][&label] == "0").await;
        fleet.change("blue1", &json!({"metadata": {"labels": {"idle": "talk"}}})).await;
        fleet.add_many("green", 1).await;

        // Told after those, had they been told at all.
        fleet.remove("blue2").await;
        fleet.selects("p", &["blue1"]).await;
        counts(fleet, "DecisionUpdate", updated + 1).await;
        assert_eq!(told(fleet, "DecisionCreate").await, created);
    }

    /// A score that is out of date is told as a warning, with whose it is.
    /// Upstream: scheduling_controller_event_test.go "TestCreateOrUpdatePlacementDecision_EventRecording: warning status
    /// event".
    calm async fn a_score_that_is_out_of_date_is_warned_of(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        let over = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(1);
        fleet.score("blue1", 20, Some(over)).await;
        fleet.clusters_and_scores_are_known().await;
        let set = fleet.name("blue");
        fleet.place("p", &format!("
            clusterSets: [{set}]
            numberOfClusters: 1
            prioritizerPolicy:
              mode: Exact
              configurations: [{{scoreCoordinate: {{type: AddOn, addOn: {{resourceName: demo, scoreName: demo}}}}}}]
        ")).await;
        fleet.selects("p", &["blue1"]).await;
        // With the first decision, before anything has changed.
        let warning = fleet.warning("p").await;
        let (namespace, name) = (&fleet.namespace, fleet.name("blue1"));
        let wanted = format!(
            "Decision p-decision-1 is updated with placement p in namespace {namespace}: AddOnPlacementScores {name}/demo \
             expired in plugin AddOn"
        );
        assert_eq!(warning["note"], wanted);
        assert_eq!(told(fleet, "DecisionUpdate").await, 1);
        // And again with the next.
        fleet.score("blue2", 90, None).await;
        fleet.selects("p", &["blue2"]).await;
        counts(fleet, "DecisionUpdate", 2).await;
        assert!(fleet.events("p").await.iter().all(|event| (event["type"] == "Warning") == (event["reason"] == "DecisionUpdate")));
    }
}

/// Waits until so many events of a reason were told, and fails if there are more.
async fn counts(fleet: &Fleet, reason: &str, wanted: u64) {
    let there = berth_tests::waiting::until(
        &format!("{wanted} events {reason}"),
        crate::handle::PATIENCE,
        async || {
            let there = told(fleet, reason).await;
            if there >= wanted { Ok(there) } else { Err(there.to_string()) }
        },
    )
    .await;
    assert_eq!(there, wanted, "events {reason}");
}

impl Fleet {
    /// Waits for a warning about a placement.
    async fn warning(&self, placement: &str) -> serde_json::Value {
        berth_tests::waiting::until(
            &format!("a warning about {placement}"),
            crate::handle::PATIENCE,
            async || {
                let events = self.events(placement).await;
                let found = events.iter().find(|event| event["type"] == "Warning").cloned();
                found.ok_or_else(|| format!("{} others", events.len()))
            },
        )
        .await
    }
}
