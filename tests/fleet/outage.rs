//! The API server gone and back: nothing is lost, and what fell due meanwhile is done once.

use berth_tests::caller::text;
use jiff::{SignedDuration, Timestamp};

use crate::{
    cluster::{Cluster, taint},
    ground::{QUIET, Turn, grounds},
    handle::Fleet,
    metrics::Metrics,
    slices::{LABEL, clusters},
};

/// Two placements: one whose cluster must leave at a time to come, and one that nothing happens to.
async fn stage(fleet: &Fleet, seconds: i64) -> Timestamp {
    fleet.bound_set("blue").await;
    let added = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    fleet.add(Cluster::named("c1").of("blue").taint(&taint("gone", "", "NoSelect", added))).await;
    fleet.add(Cluster::named("c2").of("blue")).await;
    let limited = format!(
        "numberOfClusters: 1\ntolerations: [{{key: gone, operator: Exists, tolerationSeconds: {seconds}}}]"
    );
    fleet.place("limited", &limited).await;
    fleet.place("forever", "tolerations: [{key: gone, operator: Exists}]").await;
    fleet.selects("limited", &["c1"]).await;
    fleet.selects("forever", &["c1", "c2"]).await;
    added + SignedDuration::from_secs(seconds)
}

/// Waits for a time that was set for the scenario: here time itself is what is waited for.
async fn reaches(deadline: Timestamp) {
    let left = deadline.duration_since(Timestamp::now());
    tokio::time::sleep(left.try_into().unwrap_or_default()).await;
}

/// Slices written by these controllers.
async fn slices_written(controllers: &berth_bed::Companion) -> u64 {
    let metrics = Metrics::of(controllers).await;
    metrics.sum("berth_writes_total", &["PlacementDecision", "result=\"ok\""])
}

grounds! {
    /// A deadline that passes while the API server is down is acted on when it is back, once; nothing else is written.
    turn async fn a_deadline_that_passed_meanwhile_is_acted_on_once(turn: &mut Turn<'_>) {
        let Some(mut controllers) = berth_bed::or_skip(turn.run("outage", QUIET).await) else { return };
        let deadline = stage(&turn.fleet, 5).await;
        let before = turn.fleet.slices("forever").await;
        let written = slices_written(&controllers).await;
        assert!(Timestamp::now() < deadline, "the machine is too slow for this scenario");
        turn.bed.kill();
        reaches(deadline + SignedDuration::from_millis(500)).await;
        assert!(controllers.ended().is_none(), "a lost API server is waited for");
        turn.start_server().await;
        turn.fleet.selects("limited", &["c2"]).await;
        turn.fleet.sentinel().await.passes().await;
        let fleet = &turn.fleet;
        assert_eq!(fleet.slices("forever").await.versions(), before.versions(), "no decision is touched");
        fleet.selects("limited", &["c2"]).await;
        // The sentinel's own slice: made and filled, emptied, filled, made and filled again.
        let sentinels = 6;
        let done = slices_written(&controllers).await - written - sentinels;
        assert_eq!(done, 1, "acted so many times");
    }

    /// An API server that hangs while a deadline passes: the write that got stuck is not done twice.
    turn async fn a_server_that_hangs_gets_the_write_once(turn: &mut Turn<'_>) {
        let Some(_controllers) = berth_bed::or_skip(turn.run("hanging", QUIET).await) else { return };
        let deadline = stage(&turn.fleet, 4).await;
        let slices = turn.fleet.slices("limited").await;
        let version = text(&slices.0[0], "/metadata/resourceVersion");
        let query = format!("placementdecisions?labelSelector={LABEL}%2Fplacement%3Dlimited&resourceVersion={version}");
        let mut watch = turn.fleet.caller.watch(&turn.fleet.path("v1beta1", &query)).await;
        assert!(Timestamp::now() < deadline, "the machine is too slow for this scenario");
        turn.bed.pause().unwrap();
        reaches(deadline + SignedDuration::from_secs(3)).await;
        turn.bed.resume().unwrap();
        let event = watch.next().await;
        assert_eq!(clusters(&event["object"]), [turn.fleet.name("c2")], "{event}");
        turn.fleet.selects("limited", &["c2"]).await;
        turn.fleet.sentinel().await.passes().await;
        let after = turn.fleet.selects("limited", &["c2"]).await;
        let last = &event["object"]["metadata"]["resourceVersion"];
        assert_eq!(after.0[0]["metadata"]["resourceVersion"], *last, "written again");
    }
}
