//! Prioritizers: which of the feasible clusters are best.

use serde_json::json;

use crate::{cluster::Cluster, ground::grounds, handle::Fleet, slices::LABEL};

/// Three clusters whose processors and memory order them differently.
async fn three_of_means(fleet: &Fleet) {
    fleet.bound_set("blue").await;
    for (name, cpu, memory) in [("c1", 10, 50), ("c2", 7, 90), ("c3", 9, 80)] {
        fleet.add(Cluster::named(name).of("blue").allocatable(cpu, memory)).await;
    }
}

/// A policy of built-in prioritizers with their weights.
fn policy(mode: &str, weights: &[(&str, i32)]) -> String {
    let configurations = weights.iter().map(
        |(name, weight)| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight}),
    );
    let policy = json!({"mode": mode, "configurations": configurations.collect::<Vec<_>>()});
    json!({"numberOfClusters": 2, "prioritizerPolicy": policy}).to_string()
}

/// The policy that asks the score `demo` only.
fn by_score(count: u32) -> String {
    let addon = json!({"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "demo"}});
    let policy = json!({"mode": "Exact", "configurations": [{"scoreCoordinate": addon, "weight": 1}]});
    json!({"numberOfClusters": count, "prioritizerPolicy": policy}).to_string()
}

/// A decision of another scheduler's.
async fn foreign_decision(fleet: &Fleet, name: &str, cluster: &str) {
    let path = fleet.path("v1beta1", "placementdecisions");
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": name, "labels": {format!("{LABEL}/placement"): name}},
    });
    fleet.caller.post(&path, &object).await.ok();
    let status = json!({"status": {"decisions": [{"clusterName": fleet.name(cluster), "reason": ""}]}});
    fleet.caller.merge(&format!("{path}/{name}/status"), &status).await.ok();
}

grounds! {
    /// Upstream: integration/placement/prioritizer_test.go "Should schedule successfully with default SchedulePolicy".
    calm async fn by_default_equals_are_taken_in_the_order_of_names(fleet: &Fleet) {
        three_of_means(fleet).await;
        fleet.place("p", "numberOfClusters: 2").await;
        fleet.selects("p", &["c1", "c2"]).await;
    }

    /// Upstream: integration/placement/prioritizer_test.go "Should schedule successfully based on SchedulePolicy
    /// ResourceAllocatableCPU & ResourceAllocatableMemory".
    calm async fn means_that_can_be_had_decide(fleet: &Fleet) {
        three_of_means(fleet).await;
        fleet.place("p", &policy("Exact", &[("ResourceAllocatableCPU", 1), ("ResourceAllocatableMemory", 1)])).await;
        fleet.selects("p", &["c1", "c3"]).await;
        // 100 - 100, -100 + 100, 33 + 50.
        let [one, two, three] = ["c1", "c2", "c3"].map(|name| fleet.name(name));
        fleet.event("p", "ScoreUpdate", &format!("{one}:0 {two}:0 {three}:83 ")).await;
    }

    /// Upstream: integration/placement/prioritizer_test.go "Should keep steady successfully even placementdecisions'
    /// balance and cluster situation changes".
    calm async fn what_was_decided_stays_where_steadiness_weighs_most(fleet: &Fleet) {
        three_of_means(fleet).await;
        let weights = [("Steady", 3), ("ResourceAllocatableCPU", 1), ("ResourceAllocatableMemory", 1)];
        fleet.place("p", &policy("Additive", &weights)).await;
        let before = fleet.selects("p", &["c1", "c3"]).await;
        let sentinel = fleet.sentinel().await;
        foreign_decision(fleet, "foreign-1", "c2").await;
        fleet.add(Cluster::named("c4").of("blue").allocatable(10, 100)).await;
        sentinel.passes().await;
        assert_eq!(fleet.slices("p").await.versions(), before.versions());
        // What is another's stays as it is.
        let foreign = fleet.caller.get(&fleet.path("v1beta1", "placementdecisions/foreign-1")).await.ok();
        assert_eq!(foreign["status"]["decisions"][0]["clusterName"], fleet.name("c2"));
    }

    /// Upstream: integration/placement/prioritizer_test.go "Should schedule successfully based on SchedulePolicy
    /// balance".
    calm async fn clusters_that_others_use_are_avoided(fleet: &Fleet) {
        three_of_means(fleet).await;
        foreign_decision(fleet, "foreign-1", "c1").await;
        // Other scenarios make the busiest cluster of the hub busier than ours; once does not weigh enough then.
        for number in 2..=8 {
            foreign_decision(fleet, &format!("foreign-{number}"), "c1").await;
        }
        fleet.place("p", &policy("Exact", &[("Balance", 2), ("ResourceAllocatableCPU", 1)])).await;
        fleet.selects("p", &["c2", "c3"]).await;
    }

    /// Upstream: integration/placement/prioritizer_test.go "Should re-schedule successfully once a new cluster with
    /// resources added/deleted".
    calm async fn a_better_cluster_takes_the_place_of_another(fleet: &Fleet) {
        three_of_means(fleet).await;
        fleet.place("p", &policy("Exact", &[("ResourceAllocatableCPU", 1), ("ResourceAllocatableMemory", 1)])).await;
        fleet.selects("p", &["c1", "c3"]).await;
        fleet.add(Cluster::named("c4").of("blue").allocatable(10, 100)).await;
        fleet.selects("p", &["c3", "c4"]).await;
        fleet.remove("c4").await;
        fleet.selects("p", &["c1", "c3"]).await;
    }

    /// What a cluster's agent reports of its means is enough to move a placement: nothing else has changed.
    /// Upstream: triggers "ManagedCluster".
    calm async fn means_that_change_move_a_placement(fleet: &Fleet) {
        three_of_means(fleet).await;
        fleet.place("p", &policy("Exact", &[("ResourceAllocatableCPU", 1)])).await;
        fleet.selects("p", &["c1", "c3"]).await;
        fleet.report("c3", &json!({"allocatable": {"cpu": "1"}})).await;
        fleet.selects("p", &["c1", "c2"]).await;
        fleet.report("c3", &json!({"allocatable": {"cpu": "8"}})).await;
        fleet.selects("p", &["c1", "c3"]).await;
    }

    /// Upstream: integration/placement/prioritizer_test.go "Should schedule successfully based on AddOnPlacementScore".
    calm async fn scores_decide(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        for (name, score) in [("blue1", 80), ("blue2", 90), ("blue3", 100)] {
            fleet.score(name, score, None).await;
        }
        fleet.place("p", &by_score(2)).await;
        fleet.selects("p", &["blue2", "blue3"]).await;
    }

    /// Upstream: integration/placement/prioritizer_test.go "Should reschedule every ResyncInterval and update desicion
    /// when AddOnPlacementScore changes".
    /// Upstream: triggers "AddOnPlacementScore of a prioritizer".
    calm async fn scores_that_appear_and_change_move_a_placement(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.place("p", &by_score(2)).await;
        fleet.selects("p", &["blue1", "blue2"]).await;
        for (name, score) in [("blue1", 80), ("blue2", 90), ("blue3", 100)] {
            fleet.score(name, score, None).await;
        }
        fleet.selects("p", &["blue2", "blue3"]).await;
        fleet.score("blue1", 100, None).await;
        fleet.selects("p", &["blue1", "blue3"]).await;
    }

    /// A score counts until its time is over, and its end is acted on when it comes.
    /// Upstream: defects "8".
    /// Upstream: triggers "the end of a score".
    calm async fn a_score_that_expires_counts_no_more(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.score("blue1", 20, None).await;
        fleet.score("blue2", 90, None).await;
        fleet.place("p", &by_score(1)).await;
        fleet.selects("p", &["blue2"]).await;
        let end = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(10);
        fleet.score("blue2", 90, Some(end)).await;
        if fleet.ground.is_ours() {
            fleet.until(&fleet.placement_path("p"), "says when it will change", |placement| {
                placement["status"]["nextTransition"]["time"] == crate::cluster::whole(end)
            }).await;
        }
        fleet.selects("p", &["blue1"]).await;
        assert!(jiff::Timestamp::now() >= jiff::Timestamp::from_second(end.as_second()).unwrap());
    }
}
