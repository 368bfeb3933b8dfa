//! Writes that the server refuses: they are tried again, told of only when done, and nothing else is tried in vain.

use std::time::Duration;

use berth_bed::Companion;
use berth_tests::{
    caller::condition,
    waiting::{eventually, until},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, taint},
    ground::{QUIET, Turn, grounds},
    handle::PATIENCE,
    metrics::Metrics,
    witness::named_kubeconfig,
};

/// Decisions of placements so far.
async fn decided(controllers: &Companion) -> u64 {
    Metrics::of(controllers).await.sum("berth_decisions_total", &["controller=\"placement-controller\""])
}

grounds! {
    /// A slice that may not be written is tried again until it may; until then nobody is told that it was, neither by the
    /// placement's status nor by an event.
    /// Upstream: defects "1".
    /// Upstream: triggers "a write that failed".
    turn async fn a_write_that_is_refused_is_tried_again(turn: &mut Turn<'_>) {
        let user = turn.fleet.name("controllers");
        let fleet = &turn.fleet;
        let group = "cluster.open-cluster-management.io";
        let subject = json!({"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"});
        fleet.allow(&subject, &fleet.name("most"), &json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [group], "verbs": ["*"], "resources": [
                "managedclustersets", "managedclustersets/status", "managedclustersetbindings",
                "managedclustersetbindings/status", "placements", "placements/status",
            ]},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["*"]},
        ])).await;
        let kubeconfig = named_kubeconfig(turn.bed, turn.bed.kubeconfig(), &user, &[]);
        let started = Companion::berth_with(turn.bed, &kubeconfig, "refused", "run", QUIET).await;
        let Some(controllers) = berth_bed::or_skip(started) else { return };
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.place("p", "{}").await;
        until("several attempts", PATIENCE, async || {
            let metrics = Metrics::of(&controllers).await;
            let (all, done) = (
                metrics.sum("berth_writes_total", &["PlacementDecision"]),
                metrics.sum("berth_writes_total", &["PlacementDecision", "result=\"ok\""]),
            );
            assert_eq!(done, 0);
            if all >= 3 { Ok(()) } else { Err(format!("{all} so far")) }
        }).await;
        let placement = fleet.placement("p").await;
        assert!(condition(&placement, "PlacementSatisfied").is_null(), "told before it was done: {placement}");
        assert_eq!(fleet.events("p").await, Vec::<Value>::new());
        assert!(fleet.slices("p").await.0.is_empty());

        fleet.allow(&subject, &fleet.name("rest"), &json!([
            {"apiGroups": [group], "verbs": ["*"], "resources": ["placementdecisions", "placementdecisions/status"]},
        ])).await;
        fleet.selects("p", &["blue1", "blue2"]).await;
        fleet.is_satisfied("p").await;
        fleet.event("p", "DecisionCreate", "p-decision-1").await;
    }

    /// Neither a placement that cannot be understood nor one with a score that is out of date is decided again before
    /// something changes.
    /// Upstream: defects "5".
    fresh async fn what_nothing_changes_for_is_not_decided_again(turn: &mut Turn<'_>) {
        let Some(controllers) = berth_bed::or_skip(turn.run("vain", QUIET).await) else { return };
        let fleet = &turn.fleet;
        fleet.bound_set("blue").await;
        fleet.add(Cluster::named("c1").of("blue")).await;
        fleet.score("c1", 50, Some(Timestamp::now() - SignedDuration::from_mins(1))).await;
        for number in 0..5 {
            fleet.place(&format!("wrong{number}"), "tolerations: [{key: a, operator: Exists, value: b}]").await;
            fleet.place(&format!("late{number}"), "
                prioritizerPolicy:
                  mode: Exact
                  configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: demo, scoreName: demo}}}]
            ").await;
        }
        for number in 0..5 {
            fleet.says(&format!("wrong{number}"), "PlacementMisconfigured", "True", "Misconfigured").await;
            fleet.selects(&format!("late{number}"), &["c1"]).await;
        }
        // Whoever is tried again and again never comes to rest.
        let at_rest = async || {
            let before = decided(&controllers).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            (decided(&controllers).await == before).then_some(before)
        };
        let before = eventually("no more decisions", at_rest).await;
        // Time passes until this one loses its cluster: enough for many attempts, were there any.
        let added = Timestamp::now();
        fleet.add(Cluster::named("clock").of("blue").label("clock", "yes").taint(&taint("gone", "", "NoSelect", added))).await;
        fleet.place("clock", "
            predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {clock: 'yes'}}}}]
            tolerations: [{key: gone, operator: Exists, tolerationSeconds: 10}]
        ").await;
        fleet.selects("clock", &["clock"]).await;
        fleet.selects("clock", &[]).await;
        let decisions = decided(&controllers).await - before;
        // Ten that are tried again and again would make it a hundred.
        assert!((1..20).contains(&decisions), "{decisions} decisions for the one that changed");
    }
}
