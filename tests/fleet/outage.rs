//! The API server gone and back: nothing is lost, and what fell due meanwhile is done once.

use berth_tests::caller::text;
use jiff::{SignedDuration, Timestamp};

use crate::{
    cluster::{Cluster, taint},
    ground::{QUIET, Turn, grounds},
    handle::Fleet,
    metrics::Metrics,
    passage::Passage,
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

/// Writes for the sentinel's own slice: made and filled, emptied, filled, made and filled again.
const SENTINELS: u64 = 6;

/// Slices written by these controllers.
async fn slices_written(controllers: &berth_bed::Companion) -> u64 {
    let metrics = Metrics::of(controllers).await;
    metrics.sum("berth_writes_total", &["PlacementDecision", "result=\"ok\""])
}

grounds! {
    /// A deadline that passes while the API server is down is acted on when it is back, once; nothing else is written.
    ///
    /// On a bed of its own: it is without a server for a minute, and others would wait for it.
    fresh async fn a_deadline_that_passed_meanwhile_is_acted_on_once(turn: &mut Turn<'_>) {
        let Some(mut controllers) = berth_bed::or_skip(turn.run("outage", QUIET).await) else { return };
        let deadline = stage(&turn.fleet, 40).await;
        let before = turn.fleet.slices("forever").await;
        let written = slices_written(&controllers).await;
        assert!(Timestamp::now() < deadline, "the machine is too slow for this scenario");
        turn.bed.kill();
        let lost = Timestamp::now();
        reaches(deadline + SignedDuration::from_millis(500)).await;
        // Every wait between attempts has grown to its longest by then.
        reaches(lost + SignedDuration::from_mins(1)).await;
        assert!(controllers.ended().is_none(), "a lost API server is waited for");
        turn.start_server().await;
        turn.fleet.selects("limited", &["c2"]).await;
        turn.fleet.sentinel().await.passes().await;
        let fleet = &turn.fleet;
        assert_eq!(fleet.slices("forever").await.versions(), before.versions(), "no decision is touched");
        fleet.selects("limited", &["c2"]).await;
        let done = slices_written(&controllers).await - written - SENTINELS;
        assert_eq!(done, 1, "acted so many times");
    }

    /// An API server that hangs while a deadline passes: the write that got stuck is not done twice.
    turn async fn a_server_that_hangs_gets_the_write_once(turn: &mut Turn<'_>) {
        let Some(_controllers) = berth_bed::or_skip(turn.run("hanging", QUIET).await) else { return };
        let deadline = stage(&turn.fleet, 20).await;
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

    /// The API server stands, and what it keeps its data in is gone while a deadline passes: nothing is lost, and what fell
    /// due is done once. The hub keeps its own data; what becomes of it then is told by the scenarios above.
    turn async fn a_store_that_crashes_costs_nothing(turn: &mut Turn<'_>) {
        let Some(mut controllers) = berth_bed::or_skip(turn.run("storeless", QUIET).await) else { return };
        let deadline = stage(&turn.fleet, 20).await;
        let before = turn.fleet.slices("forever").await;
        let written = slices_written(&controllers).await;
        assert!(Timestamp::now() < deadline, "the machine is too slow for this scenario");
        if !turn.bed.kill_store() {
            return;
        }
        reaches(deadline + SignedDuration::from_secs(2)).await;
        assert!(controllers.ended().is_none(), "a lost store is waited for");
        turn.bed.start_store().unwrap();
        turn.start_server().await;
        let fleet = &turn.fleet;
        fleet.selects("limited", &["c2"]).await;
        fleet.sentinel().await.passes().await;
        fleet.selects("limited", &["c2"]).await;
        assert_eq!(fleet.slices("forever").await.versions(), before.versions(), "no decision is touched");
        let done = slices_written(&controllers).await - written - SENTINELS;
        assert_eq!(done, 1, "acted so many times");
    }

    /// While there is no server it is looked for, less and less often, and nothing is given up.
    turn async fn a_lost_server_is_waited_for_with_patience(turn: &mut Turn<'_>) {
        let passage = Passage::open(turn.bed).await;
        let started = berth_bed::Companion::berth_with(turn.bed, passage.kubeconfig(), "patient", "run", QUIET).await;
        let Some(mut controllers) = berth_bed::or_skip(started) else { return };
        stage(&turn.fleet, 600).await;
        let before = turn.fleet.slices("forever").await;
        turn.bed.kill();
        let callers = passage.callers();
        let lost = Timestamp::now();
        reaches(lost + SignedDuration::from_secs(10)).await;
        let calls = passage.callers() - callers;
        // A watch for each of ten kinds that waits 50 ms at first and then ever longer comes seven times or so.
        assert!(calls > 0, "nobody looked for the server");
        assert!(calls < 300, "{calls} attempts in ten seconds");
        assert!(controllers.ended().is_none());
        turn.start_server().await;
        let fleet = &turn.fleet;
        fleet.add(Cluster::named("c3").of("blue")).await;
        fleet.selects("forever", &["c1", "c2", "c3"]).await;
        assert_eq!(before.0.len(), 1);
    }
}
