//! Deadlines: what time alone changes is changed when the time comes.

use berth_tests::caller::text;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    cluster::{Cluster, taint, whole},
    ground::grounds,
    handle::Fleet,
    slices::{LABEL, Slices, clusters},
};

/// How late a deadline may be met. It is met within milliseconds; a machine that compiles beside it takes more.
const LATE: SignedDuration = SignedDuration::from_secs(1);

/// How often a busy machine may try.
const TRIES: usize = 6;

/// How often it has to be in time: who only looks every few seconds is so by chance now and then.
const IN_TIME: usize = 2;

/// Waits for deadlines until enough are met in time: a busy machine may need several tries to show that it was not us who were late.
/// A try is given its number, from 1, and gives by how much it was late; nothing where time went by before it had begun.
pub(crate) async fn punctual(mut attempt: impl AsyncFnMut(usize) -> Option<SignedDuration>) {
    let mut tries = Vec::new();
    for number in 1..=TRIES {
        let late = attempt(number).await;
        tries.push(late);
        if tries.iter().flatten().filter(|late| **late < LATE).count() == IN_TIME {
            return;
        }
    }
    panic!("late by {tries:?}");
}

/// Awaits what has to be seen before a moment; nothing where it is not.
pub(crate) async fn before<T>(moment: Timestamp, awaited: impl Future<Output = T>) -> Option<T> {
    let left = moment.duration_since(Timestamp::now());
    tokio::time::timeout(left.try_into().unwrap_or_default(), awaited).await.ok()
}

fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap()
}

grounds! {
    /// Not before its time, and as soon as it has come; and the placement says beforehand when that will be.
    /// Upstream: triggers "the end of a toleration".
    calm async fn a_toleration_ends_at_its_moment(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add(Cluster::named("c2").of("blue")).await;
        fleet.add(Cluster::named("c1").of("blue")).await;
        punctual(async |number| {
            let name = format!("p{number}");
            let added = whole_second(Timestamp::now());
            fleet.taint("c1", &[taint("gone", "", "NoSelect", added)]).await;
            fleet.place(&name, "{numberOfClusters: 1, tolerations: [{key: gone, operator: Exists, tolerationSeconds: 8}]}").await;
            let deadline = added + SignedDuration::from_secs(8);
            let slices = before(deadline, fleet.selects(&name, &["c1"])).await?;
            if fleet.ground.is_ours() {
                let told = |placement: &Value| placement["status"]["nextTransition"]["time"] == whole(deadline);
                let path = fleet.placement_path(&name);
                let placement = before(deadline, fleet.until(&path, "says when", told)).await?;
                let next = &placement["status"]["nextTransition"];
                assert!(text(next, "/reason").contains(&fleet.name("c1")), "{next}");
            }
            let seen = moved(fleet, &name, &slices, &["c2"]).await;
            assert!(seen >= deadline, "left at {seen}, before {deadline}");
            fleet.selects(&name, &["c2"]).await;
            Some(seen.duration_since(deadline))
        }).await;
    }

    /// A deadline that was put off does not count any more.
    calm async fn a_toleration_that_is_prolonged_ends_later(fleet: &Fleet) {
        let tolerant = |seconds: u32| format!("tolerations: [{{key: gone, operator: Exists, tolerationSeconds: {seconds}}}]");
        fleet.bound_set("blue").await;
        let now = Timestamp::now();
        fleet.add(Cluster::named("c1").of("blue").taint(&taint("gone", "", "NoSelect", now))).await;
        fleet.place("stays", &tolerant(19)).await;
        fleet.place("marks", &tolerant(20)).await;
        fleet.edit("stays", &tolerant(600)).await;
        let before = fleet.selects("stays", &["c1"]).await;
        // By the time this one has lost the cluster, the other would have, too.
        fleet.selects("marks", &["c1"]).await;
        fleet.selects("marks", &[]).await;
        fleet.sentinel().await.passes().await;
        assert_eq!(fleet.slices("stays").await.versions(), before.versions());
    }

    /// A taint from before the toleration counts from when it was added, not from when it was first seen.
    calm async fn a_toleration_that_is_over_already_never_counts(fleet: &Fleet) {
        let long_ago = Timestamp::now() - SignedDuration::from_mins(10);
        fleet.bound_set("blue").await;
        fleet.add(Cluster::named("c1").of("blue").taint(&taint("gone", "", "NoSelect", long_ago))).await;
        fleet.add(Cluster::named("c2").of("blue")).await;
        fleet.place("p", "tolerations: [{key: gone, operator: Exists, tolerationSeconds: 599}]").await;
        fleet.selects("p", &["c2"]).await;
        fleet.edit("p", "tolerations: [{key: gone, operator: Exists, tolerationSeconds: 6000}]").await;
        fleet.selects("p", &["c1", "c2"]).await;
    }

    /// A score counts until its end, and a placement that ranks by it moves then, not at the next occasion.
    /// Upstream: defects "8".
    /// Upstream: triggers "the end of a score".
    calm async fn a_score_ends_at_its_moment(fleet: &Fleet) {
        ends_with_its_score(fleet, "
            numberOfClusters: 1
            prioritizerPolicy:
              mode: Exact
              configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: demo, scoreName: demo}}}]
        ", &["c1"]).await;
    }

    /// The same where only an expression looks at the score.
    /// Upstream: defects "7", "8".
    /// Upstream: triggers "the end of a score".
    calm async fn a_score_in_an_expression_ends_at_its_moment(fleet: &Fleet) {
        ends_with_its_score(fleet, r#"
            predicates:
            - requiredClusterSelector:
                celSelector:
                  celExpressions: ['managedCluster.scores("demo").filter(s, s.name == "demo").exists(e, e.value > 80)']
        "#, &[]).await;
    }
}

/// A placement of `c2`, which is best by its score, until that ends; and what it selects then.
async fn ends_with_its_score(fleet: &Fleet, spec: &str, then: &[&str]) {
    fleet.bound_set("blue").await;
    fleet.add(Cluster::named("c1").of("blue")).await;
    fleet.add(Cluster::named("c2").of("blue")).await;
    punctual(async |number| {
        let name = format!("p{number}");
        let end = whole_second(Timestamp::now()) + SignedDuration::from_secs(10);
        fleet.score("c2", 90, Some(end)).await;
        fleet.place(&name, spec).await;
        let slices = before(end, fleet.selects(&name, &["c2"])).await?;
        let seen = moved(fleet, &name, &slices, then).await;
        assert!(seen >= end, "left at {seen}, before {end}");
        fleet.selects(&name, then).await;
        Some(seen.duration_since(end))
    })
    .await;
}

/// When a placement was seen to select others than in these slices, which must be `then`.
async fn moved(fleet: &Fleet, placement: &str, slices: &Slices, then: &[&str]) -> Timestamp {
    let version = text(&slices.0[0], "/metadata/resourceVersion");
    let query = format!(
        "placementdecisions?labelSelector={LABEL}%2Fplacement%3D{placement}&resourceVersion={version}"
    );
    let mut watch = fleet.caller.watch(&fleet.path("v1beta1", &query)).await;
    let event = watch.next().await;
    let seen = Timestamp::now();
    let wanted: Vec<String> = then.iter().map(|name| fleet.name(name)).collect();
    assert_eq!(clusters(&event["object"]), wanted, "{event}");
    seen
}
