//! The process around the controllers: which of them run, how it begins, how it ends.

use std::time::{Duration, Instant};

use berth_bed::or_skip;
use berth_tests::{
    caller::{condition, text},
    waiting::until,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    cluster::{Cluster, taint},
    edges::Stuck,
    ground::{ALONE, Ground, QUIET, Turn, fresh, grounds},
    handle::{Fleet, PATIENCE},
    health::{AVAILABLE, UNREACHABLE},
    metrics::Metrics,
    slices::{LABEL, clusters},
};

/// Placements that are written while the process is asked to end.
const PLACEMENTS: usize = 30;

/// How often a quick start is tried.
const STARTS: usize = 20;

/// Taints whose effect is waited for, for a median.
const REACTIONS: usize = 9;

/// What a median may be late by for no reason of ours.
const REACTION_SLACK: Duration = Duration::from_millis(30);

/// The usual flags with other controllers.
fn only(controllers: &'static str) -> Vec<&'static str> {
    ALONE.iter().copied().chain([controllers]).collect()
}

grounds! {
    /// Leases and taints are two controllers' business: without the one, the other does its part and no more.
    turn async fn leases_and_taints_are_separable(turn: &mut Turn<'_>) {
        let flags = only("--controllers=*,-cluster-taint-controller");
        let Some(mut controllers) = or_skip(turn.run("leases", &flags).await) else { return };
        let fleet = &turn.fleet;
        fleet.home("c1").await;
        fleet.add(Cluster::named("c1").accepted(1).available("True")).await;
        fleet.until(&fleet.lease_path("c1"), "is there", |lease| lease["spec"]["renewTime"].is_string()).await;
        fleet.renew("c1", Timestamp::now() - SignedDuration::from_mins(1)).await;
        fleet.is_unknown("c1").await;
        fleet.sentinel().await.passes().await;
        fleet.carries("c1", &[]).await;
        controllers.stop().await.unwrap();

        let flags = only("--controllers=*,-cluster-lease-controller");
        let Some(_controllers) = or_skip(turn.run("taints", &flags).await) else { return };
        fleet.carries("c1", &[UNREACHABLE]).await;
        // Nobody judges leases now.
        fleet.home("c2").await;
        fleet.add(Cluster::named("c2").accepted(1).available("True")).await;
        fleet.agent_says("c1", "True").await;
        fleet.carries("c1", &[]).await;
        assert_eq!(fleet.caller.get(&fleet.lease_path("c2")).await.code, 404, "nobody makes leases");
        let c1 = fleet.caller.get(&fleet.cluster_path("c1")).await.ok();
        assert_eq!(condition(&c1, AVAILABLE)["status"], "True");
    }

    /// Controllers that are not asked for do nothing, and the others do not miss them.
    turn async fn one_controller_alone_does_its_own_work(turn: &mut Turn<'_>) {
        let flags = only("--controllers=placement-controller");
        let Some(_controllers) = or_skip(turn.run("single", &flags).await) else { return };
        let fleet = &turn.fleet;
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 1).await;
        fleet.place("p", "{}").await;
        fleet.selects("p", &["blue1"]).await;
        let binding = fleet.caller.get(&fleet.binding_path("blue")).await.ok();
        assert!(binding["status"]["conditions"].is_null(), "{binding}");
        let set = fleet.caller.get(&fleet.set_path("blue")).await.ok();
        assert!(set["status"]["conditions"].is_null(), "{set}");
        fleet.carries("blue1", &[]).await;
    }

    /// Asked to end in the middle of its work, it finishes what it has begun: no placement is left half written, and the
    /// end is a good one.
    turn async fn asked_to_end_it_finishes_what_it_began(turn: &mut Turn<'_>) {
        let Some(mut controllers) = or_skip(turn.run("drained", QUIET).await) else { return };
        let fleet = &turn.fleet;
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 120).await;
        // Clusters and placements are told by different watches: only a placement made after this is decided on all.
        fleet.until(&fleet.set_path("blue"), "has been seen whole", |set| {
            condition(set, "ClusterSetEmpty")["message"] == "120 ManagedClusters selected"
        }).await;
        let names: Vec<String> = (0..PLACEMENTS).map(|number| format!("p{number:02}")).collect();
        futures::future::join_all(names.iter().map(|name| fleet.place(name, "{}"))).await;
        // In the middle, as far as one can tell from outside.
        fleet.until(&fleet.decision_path("p00", 1), "is there", |slice| slice["metadata"].is_object()).await;
        controllers.stop().await.unwrap();
        assert!(!controllers.log().contains("still under way"), "{}", controllers.log());
        let mut whole = 0;
        for name in &names {
            let slices = fleet.slices(name).await;
            let told = fleet.placement(name).await["status"]["numberOfSelectedClusters"].as_u64();
            match told {
                None => assert!(slices.0.is_empty(), "{name} was left half written: {slices:?}"),
                Some(told) => {
                    assert_eq!((told, slices.clusters().len()), (120, 120), "{name}");
                    whole += 1;
                }
            }
        }
        assert!(whole > 0, "nothing was begun");
        // What was not begun is done by the next.
        controllers.start().await.unwrap();
        for name in &names {
            fleet.holds(name, 120, 2).await;
        }
    }

    /// Placements that cannot work, be it that they are misunderstood, too costly, or may not be written, slow nobody: many
    /// of them are looked at once, and another's change is acted on as if they were not there.
    quiet async fn placements_that_cannot_work_slow_nobody(turn: &mut Turn<'_>) {
        let Some(controllers) = or_skip(turn.run("crowded", QUIET).await) else { return };
        let fleet = &turn.fleet;
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 19).await;
        fleet.add(Cluster::named("blue20").of("blue").label("dear", "yes")).await;
        fleet.place("works", "{}").await;
        fleet.holds("works", 20, 1).await;
        let undisturbed = reaction(fleet).await;
        let costly = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, \
            [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f > 0))))))";
        let broken = [
            json!({"numberOfClusters": -1}),
            json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["1 +"]}}}]}),
            // It costs what one cluster may cost, and is asked of clusters with these labels only. What is measured below is
            // how long others wait for its being there: a change of such a cluster waits until it has answered.
            json!({"predicates": [{"requiredClusterSelector": {
                "labelSelector": {"matchLabels": {"fleet": fleet.namespace, "dear": "yes"}},
                "celSelector": {"celExpressions": [costly]},
            }}]}),
            json!({"clusterSets": ["nowhere"]}),
        ];
        for number in 0..100 {
            let answer = fleet.try_place(&format!("broken{number}"), &broken[number % broken.len()]).await;
            assert!(matches!(answer.code, 201 | 422), "{answer:?}");
        }
        let stuck = Stuck::make(fleet, 20).await;
        until("writes that are refused", PATIENCE, async || {
            let metrics = Metrics::of(&controllers).await;
            let all = metrics.sum("berth_writes_total", &["PlacementDecision"]);
            let refused = all - metrics.sum("berth_writes_total", &["PlacementDecision", "result=\"ok\""]);
            if refused >= 20 { Ok(()) } else { Err(format!("{refused} so far")) }
        }).await;
        // A busy machine may need several tries to show that it was not us who kept it waiting.
        let mut disturbed = Duration::MAX;
        for _ in 0..3 {
            disturbed = disturbed.min(reaction(fleet).await);
            if disturbed <= undisturbed * 3 + REACTION_SLACK {
                break;
            }
        }
        assert!(disturbed <= undisturbed * 3 + REACTION_SLACK, "{disturbed:?} among them, {undisturbed:?} without");
        stuck.free(fleet).await;
        fleet.sentinel().await.passes().await;
        let before = Metrics::of(&controllers).await.sum("berth_decisions_total", &[]);
        fleet.remove("blue7").await;
        fleet.holds("works", 19, 1).await;
        let decisions = Metrics::of(&controllers).await.sum("berth_decisions_total", &[]) - before;
        // A cluster less concerns who has it, and its set; none of the hundred.
        assert!(decisions < 25, "{decisions} decisions");
    }
}

/// The median time from the answer to a taint until the placement `works` is without the cluster.
async fn reaction(fleet: &Fleet) -> Duration {
    let mut times = Vec::new();
    for _ in 0..REACTIONS {
        let slices = fleet.slices("works").await;
        let version = text(&slices.0[0], "/metadata/resourceVersion");
        let query =
            format!("placementdecisions?labelSelector={LABEL}%2Fplacement%3Dworks&resourceVersion={version}");
        let mut watch = fleet.caller.watch(&fleet.path("v1beta1", &query)).await;
        fleet.taint("blue3", &[taint("out", "", "NoSelect", Timestamp::now())]).await;
        let begun = Instant::now();
        let left = watch.next().await;
        times.push(begun.elapsed());
        assert_eq!(clusters(&left["object"]).len(), slices.clusters().len() - 1, "{left}");
        fleet.taint("blue3", &[]).await;
        fleet.holds("works", slices.clusters().len(), 1).await;
    }
    times.sort();
    times[times.len() / 2]
}

/// Without an election nobody is waited for: a start takes less than a second. A busy machine may need several tries to show
/// it.
#[test]
fn without_an_election_it_works_at_once() {
    fresh(Ground::Hub, async |turn: &mut Turn<'_>| {
        let Some(mut controllers) = or_skip(turn.run("quick", QUIET).await) else { return };
        let fleet = &turn.fleet;
        let mut best = Duration::MAX;
        for number in 1..=STARTS {
            controllers.stop().await.unwrap();
            let name = format!("p{number}");
            fleet.place(&name, "{}").await;
            let begun = Instant::now();
            controllers.start().await.unwrap();
            fleet.holds(&name, 0, 1).await;
            best = best.min(begun.elapsed());
            if best < Duration::from_secs(1) {
                return;
            }
        }
        panic!("the quickest of {STARTS} starts took {best:?}");
    });
}
