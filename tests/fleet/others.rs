//! What others do to decisions and placements, and what becomes of it.

use serde_json::json;

use crate::{ground::grounds, handle::Fleet, slices::LABEL};

const DISABLED: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

grounds! {
    /// Decisions that somebody edits are put right: clusters, labels, and whose they are.
    /// Upstream: triggers "PlacementDecision".
    calm async fn decisions_that_others_edit_are_put_right(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.place("p", "{}").await;
        let wanted = ["blue1", "blue2", "blue3"];
        fleet.selects("p", &wanted).await;
        let slice = fleet.decision_path("p", 1);
        let status = format!("{slice}/status");

        let strangers = json!({"status": {"decisions": [{"clusterName": "stranger", "reason": ""}]}});
        fleet.caller.merge(&status, &strangers).await.ok();
        fleet.selects("p", &wanted).await;
        fleet.caller.merge(&status, &json!({"status": {"decisions": []}})).await.ok();
        fleet.selects("p", &wanted).await;

        let labels = json!({"metadata": {"labels": {
            format!("{LABEL}/decision-group-index"): "7", format!("{LABEL}/decision-group-name"): "other", "note": "mine",
        }}});
        fleet.caller.merge(&slice, &labels).await.ok();
        let right = json!({
            format!("{LABEL}/placement"): "p",
            format!("{LABEL}/decision-group-index"): "0",
            format!("{LABEL}/decision-group-name"): "",
        });
        fleet.until(&slice, "has its labels", |slice| slice["metadata"]["labels"] == right).await;

        // Without its label no consumer finds it.
        let unlabelled = json!({"metadata": {"labels": {format!("{LABEL}/placement"): null}}});
        fleet.caller.merge(&slice, &unlabelled).await.ok();
        fleet.selects("p", &wanted).await;

        fleet.caller.merge(&slice, &json!({"metadata": {"ownerReferences": null}})).await.ok();
        fleet.until(&slice, "has its owner", |slice| slice["metadata"]["ownerReferences"].is_array()).await;
        fleet.selects("p", &wanted).await;
    }

    /// A slice that claims to be a placement's and is not goes.
    calm async fn slices_that_others_add_go(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 1).await;
        fleet.place("p", "{}").await;
        fleet.selects("p", &["blue1"]).await;
        let slice = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
            "metadata": {"name": "p-decision-9", "labels": {format!("{LABEL}/placement"): "p"}},
        });
        fleet.caller.post(&fleet.path("v1beta1", "placementdecisions"), &slice).await.ok();
        fleet.caller.until_gone(&fleet.decision_path("p", 9)).await;
        fleet.selects("p", &["blue1"]).await;
    }

    /// A status that somebody edits is put right.
    calm async fn a_status_that_others_edit_is_put_right(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.place("p", "{}").await;
        fleet.holds("p", 2, 1).await;
        fleet.is_satisfied("p").await;
        let path = format!("{}/status", fleet.placement_path("p"));
        fleet.caller.merge(&path, &json!({"status": {"numberOfSelectedClusters": 77, "decisionGroups": null}})).await.ok();
        fleet.holds("p", 2, 1).await;
        fleet.groups("p", &[("", 2)]).await;
        fleet.caller.merge(&path, &json!({"status": null})).await.ok();
        fleet.holds("p", 2, 1).await;
        fleet.is_satisfied("p").await;
    }

    /// A placement that another scheduler takes care of is not touched, whatever happens; without the mark it is ours.
    calm async fn a_placement_of_another_scheduler_is_left_alone(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.place("p", "{}").await;
        fleet.holds("p", 2, 1).await;
        let sentinel = fleet.sentinel().await;
        fleet.caller.merge(&fleet.placement_path("p"), &json!({"metadata": {"annotations": {DISABLED: "true"}}})).await.ok();
        sentinel.passes().await;

        let theirs = json!({"status": {"decisions": [{"clusterName": "theirs", "reason": "because"}]}});
        fleet.caller.merge(&format!("{}/status", fleet.decision_path("p", 1)), &theirs).await.ok();
        fleet.remove("blue1").await;
        fleet.edit("p", "numberOfClusters: 7").await;
        let versions = async || {
            let placement = fleet.placement("p").await;
            (fleet.slices("p").await.versions(), placement["metadata"]["resourceVersion"].clone())
        };
        let before = versions().await;
        sentinel.passes().await;
        assert_eq!(versions().await, before);
        fleet.caller.delete(&fleet.decision_path("p", 1)).await.ok();
        sentinel.passes().await;
        assert!(fleet.slices("p").await.0.is_empty());

        fleet.caller.merge(&fleet.placement_path("p"), &json!({"metadata": {"annotations": {DISABLED: null}}})).await.ok();
        fleet.selects("p", &["blue2"]).await;
        fleet.misses("p", 6).await;
    }

    /// A placement that is made again under the same name has slices of its own, not its predecessor's.
    calm async fn a_successor_of_the_same_name_has_slices_of_its_own(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.place("p", "{}").await;
        fleet.holds("p", 2, 1).await;
        for count in [1, 2, 1] {
            fleet.caller.delete(&fleet.placement_path("p")).await.ok();
            fleet.place("p", &format!("numberOfClusters: {count}")).await;
            // Looks at the owner of each slice, too.
            fleet.successor_holds("p", count).await;
        }
    }
}

impl Fleet {
    /// Waits until a placement that replaced another has its decisions, and no slice is its predecessor's.
    async fn successor_holds(&self, placement: &str, count: usize) {
        let uid = self.placement(placement).await["metadata"]["uid"].clone();
        let what = format!("slices of the new {placement}");
        berth_tests::waiting::until(&what, crate::handle::PATIENCE, async || {
            let slices = self.slices(placement).await;
            let owners: Vec<_> =
                slices.0.iter().map(|slice| &slice["metadata"]["ownerReferences"][0]["uid"]).collect();
            if owners == [&uid] { Ok(()) } else { Err(format!("owners {owners:?}, wanted {uid}")) }
        })
        .await;
        self.holds(placement, count, 1).await;
    }
}
