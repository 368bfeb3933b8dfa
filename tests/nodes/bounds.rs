//! How fast pods may leave, and when none may.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use berth_bed::{Companion, or_skip};
use berth_tests::{caller::core, definitions::install, waiting::until};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    countdown::reaches,
    ground::{Duty, Turn, acts, grounds},
    leaders::leads,
    metrics::Metrics,
    pod::Pod,
    scene::PATIENCE,
    taint::no_execute,
};

/// How soon a stop must be heard.
const HEARD: Duration = Duration::from_secs(1);

/// Pods a second, by the straight line that lies closest to the moments at which they left: a single one that was seen late
/// says little.
fn rate(times: &[Timestamp]) -> f64 {
    let count = times.len() as f64;
    let seconds = |time: &Timestamp| time.duration_since(times[0]).as_secs_f64();
    let mean_time = times.iter().map(seconds).sum::<f64>() / count;
    let mean_number = (count - 1.0) / 2.0;
    let (mut both, mut time) = (0.0, 0.0);
    for (number, moment) in times.iter().enumerate() {
        let off = seconds(moment) - mean_time;
        both += off * (number as f64 - mean_number);
        time += off * off;
    }
    both / time
}

/// How many pods leave a second at most, and how many may go at once after a rest: a second's worth, so that what a busy machine
/// was late with is made up for.
const RATE: f64 = 20.0;
const BURST: usize = 20;

/// Holds the moments at which pods left against the rate, over all but the first ones and from the first on.
fn kept_to(times: &[Timestamp], first: usize) {
    let kept = rate(&times[first..]);
    assert!((kept / RATE - 1.0).abs() < 0.02, "{kept} a second: {times:?}");
    // Never ahead of it either, but for the time in which the first ones were still being written.
    for (number, time) in times.iter().enumerate().skip(BURST) {
        let since = time.duration_since(times[0]).as_secs_f64();
        assert!(since + 0.75 >= (number - BURST) as f64 / RATE, "{number} after {since} s: {times:?}");
    }
}

/// Waits until a replica knows whether evictions are frozen.
async fn knows(replica: &Companion, is_frozen: bool) {
    let wanted = u64::from(is_frozen);
    until(&format!("a replica knowing: frozen {is_frozen}"), PATIENCE, async || {
        let told = Metrics::of(replica).await.sum("berth_evictions_frozen", &[]);
        if told == wanted { Ok(()) } else { Err(format!("{told}")) }
    })
    .await;
}

#[test]
fn a_rate_is_that_of_most() {
    let at = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
    let mut times: Vec<_> = (0..100).map(|number| at(number * 50)).collect();
    assert!((rate(&times) - 20.0).abs() < 1e-9);
    times[99] = at(99 * 50 + 60);
    assert!((rate(&times) - 20.0).abs() < 0.1);
}

grounds! {
    /// A rate is kept, over the whole and from the first pod on.
    ///
    /// Upstream: node-defects "5".
    ours quiet async fn a_rate_is_kept(turn: &mut Turn<'_>) {
        const PODS: usize = 200;
        let Some(_controllers) = turn.run("rated", Duty::Eviction, &["--eviction-rate=20"]).await else { return };
        let scene = &turn.scene;
        scene.node("n").await;
        scene.pods((0..PODS).map(|number| Pod::named(&format!("p{number}")).on("n"))).await;
        scene.taint("n", &[no_execute("a")]).await;
        kept_to(&scene.so_many_leave("p", PODS, PATIENCE).await, BURST);
    }

    /// A policy's own rate is kept the same way, and is nobody else's.
    ours quiet async fn a_policys_own_rate_is_kept(turn: &mut Turn<'_>) {
        const PODS: usize = 280;
        const FREE: usize = 50;
        turn.scene.serves_policies().await;
        let Some(_controllers) = turn.run("paced", Duty::Eviction, &[]).await else { return };
        let scene = &turn.scene;
        scene.policy("paced", "paced", json!({"way": "Delete", "pace": {"rate": RATE, "burst": BURST}})).await;
        scene.node("n").await;
        scene.pods((0..PODS).map(|number| Pod::named(&format!("p{number}")).on("n").labelled("app", "paced"))).await;
        scene.pods((0..FREE).map(|number| Pod::named(&format!("free{number}")).on("n"))).await;
        scene.taint("n", &[no_execute("a")]).await;
        let free = scene.so_many_leave("free", FREE, PATIENCE).await;
        let took = free[FREE - 1].duration_since(free[0]).as_secs_f64();
        assert!(took < FREE as f64 / RATE, "those without a policy took {took} s");
        assert!(scene.so_many_left("p") < PODS, "the policy's went with them");
        // The server has the others to delete as well at first, so that the first ones are late.
        kept_to(&scene.so_many_leave("p", PODS, PATIENCE).await, 3 * BURST);
    }

    /// Without a rate all leave at once.
    eviction async fn without_a_rate_all_leave_at_once(scene: &crate::scene::Scene) {
        scene.node("n").await;
        let begun = Timestamp::now();
        scene.pods((0..100).map(|number| Pod::named(&format!("p{number}")).on("n"))).await;
        // What this machine needs for so many writes just now.
        let needed = Timestamp::now().duration_since(begun);
        scene.taint("n", &[no_execute("a")]).await;
        let begun = Timestamp::now();
        let times = scene.so_many_leave("p", 100, PATIENCE).await;
        let took = times[99].duration_since(begun);
        assert!(took < SignedDuration::from_secs(5).max(needed * 5), "{took:#}, and {needed:#} to make them");
    }

    /// Who is told not to evict does not: all other controllers run, and nothing happens to a pod that would have to go. The
    /// one that is asked to evicts it.
    ///
    /// Upstream: integration/node/lifecycle_test.go
    /// "TestEvictionForNoExecuteTaintAddedByUser: separate taint eviction controller enabled but not started",
    /// "TestEvictionForNoExecuteTaintAddedByUser: separate taint eviction controller enabled and started".
    /// Upstream: app/controllermanager_test.go "TestTaintEvictionControllerGating".
    turn async fn nobody_is_evicted_by_who_is_not_asked_to(turn: &mut Turn<'_>) {
        if turn.scene.is_ours() {
            // All controllers want all kinds.
            install(turn.bed, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds")).await;
        }
        let Some(mut controllers) = turn.run("others", Duty::Neither, &[]).await else { return };
        let scene = &turn.scene;
        scene.node("n").await;
        scene.pod(Pod::named("p").on("n")).await;
        scene.taint("n", &[no_execute("a")]).await;
        reaches(Timestamp::now() + SignedDuration::from_secs(3)).await;
        scene.stay(&["p"]);
        assert!(controllers.ended().is_none());
        controllers.stop().await.unwrap();
        let Some(_controllers) = turn.run("evicting", Duty::Eviction, &[]).await else { return };
        scene.leaves("p").await;
    }

    /// A person says stop: nothing leaves from a second later on, whoever leads, over crashes as well, until it is said that it
    /// may.
    ///
    /// Upstream: node-defects "5".
    ours quiet async fn a_stop_is_heard_at_once_and_outlives_a_crash(turn: &mut Turn<'_>) {
        const PODS: usize = 240;
        let home = format!("--leader-elect-resource-namespace={}", turn.scene.namespace);
        let flags = [
            "--controllers=taint-eviction-controller", "--eviction-rate=30", "--eviction-burst=1",
            "--leader-elect=true", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
            "--leader-elect-retry-period=500ms", &home, "--leader-elect-resource-name=frozen",
            "--metrics-bind=127.0.0.1:0",
        ];
        let start = async |name: &'static str| or_skip(Companion::berth(turn.bed, name, "run", &flags).await);
        let Some(mut leader) = start("frozen").await else { return };
        leads(&leader).await;
        let Some(standby) = start("frozen-standby").await else { return };
        let scene = &turn.scene;
        let say = |arguments: &[&str]| {
            let mut command = or_skip(turn.bed.berth()).expect("the berth that runs");
            let said = command.args(arguments).args(["--namespace", &scene.namespace]).output().unwrap();
            assert!(said.status.success(), "{said:?}");
        };
        scene.node("n").await;
        scene.pods((0..PODS).map(|number| Pod::named(&format!("p{number}")).on("n"))).await;
        scene.taint("n", &[no_execute("a")]).await;
        scene.so_many_leave("p", PODS / 10, PATIENCE).await;

        // The object itself, so that the second begins when it is there, and not when somebody has told us of it.
        let maps = core(&scene.namespace, "configmaps");
        let note = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "berth-freeze-evictions"},
            "data": {"reason": "the network is being worked on"},
        });
        scene.caller.post(&maps, &note).await.ok();
        let said = Timestamp::now();
        tokio::join!(knows(&leader, true), knows(&standby, true));
        let heard = Timestamp::now().duration_since(said);
        assert!(heard < SignedDuration::try_from(HEARD).unwrap(), "both have heard of it after {heard:#}");
        reaches(said + SignedDuration::from_secs(3)).await;
        let times = scene.so_many_leave("p", 0, PATIENCE).await;
        let left = times.len();
        assert!(left < PODS, "too slow to stop anything");
        let last = times[left - 1].duration_since(said);
        assert!(last <= SignedDuration::try_from(HEARD).unwrap(), "somebody left {last:#} after it was said");

        // Another leads, and then the first one is there again.
        leader.kill();
        leads(&standby).await;
        scene.pod(Pod::named("latecomer").on("n")).await;
        leader.start().await.unwrap();
        knows(&leader, true).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(scene.so_many_left("p"), left, "a crash made it forget");
        scene.stay(&["latecomer"]);

        say(&["unfreeze", "evictions"]);
        let begun = Instant::now();
        let more = until("evictions going on", PATIENCE, async || {
            let now = scene.so_many_left("p");
            if now > left { Ok(now) } else { Err(format!("{now}")) }
        }).await;
        assert!(begun.elapsed() < HEARD * 2, "heard after {:?}, {more}", begun.elapsed());

        // By its command, which returns when a controller has confirmed it.
        say(&["freeze", "evictions", "--reason", "once more"]);
        let note = scene.caller.get(&format!("{maps}/berth-freeze-evictions")).await.ok();
        assert_eq!(note["data"]["reason"], "once more");
        // What was on its way when it was confirmed goes.
        tokio::time::sleep(HEARD).await;
        let left = scene.so_many_left("p");
        assert!(left < PODS, "too slow to stop anything");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(scene.so_many_left("p"), left, "some left that had been told to stay");
        say(&["unfreeze", "evictions"]);
        scene.so_many_leave("p", PODS, PATIENCE).await;
    }

    /// When too many nodes of a zone drive their pods away at once, none does until it is better. That it is so is told: as events,
    /// and in the status of the policy whose pods are held.
    ours turn async fn a_breaker_holds_a_zone(turn: &mut Turn<'_>) {
        turn.scene.serves_policies().await;
        let flags = ["--eviction-breaker-percent=50", "--eviction-breaker-min=2"];
        let Some(_controllers) = turn.run("breaking", Duty::Eviction, &flags).await else { return };
        let scene = &turn.scene;
        let zone = crate::kubelet::in_zone(scene, "z");
        scene.policy("p", "db", json!({"way": "Delete"})).await;
        for number in 0..4 {
            let node = format!("n{number}");
            scene.node_of(&node, &zone, &[]).await;
            scene.pod(Pod::named(&format!("p{number}")).on(&node).labelled("app", "db")).await;
        }
        // One of four is nothing.
        scene.taint("n0", &[no_execute("a")]).await;
        scene.leaves("p0").await;
        // Half of them are too many: from the second one on nobody goes.
        for number in 1..4 {
            scene.taint(&format!("n{number}"), &[no_execute("a")]).await;
        }
        scene.passes().await;
        scene.stay(&["p1", "p2", "p3"]);
        reaches(Timestamp::now() + SignedDuration::from_secs(2)).await;
        scene.stay(&["p1", "p2", "p3"]);
        scene.event(&scene.name("n0"), "EvictionBreakerOpened", "Evictions are held: ").await;
        let held = scene.policy_is("p", "held by the breaker", |policy| {
            let hold = &policy["status"]["holds"][0];
            let says = hold["message"].as_str().unwrap_or_default();
            hold["reason"] == "Breaker" && hold["count"] == 3 && says.starts_with("4 of 4 in zone ")
        });
        let held = held.await;
        let zone = &held["status"]["holds"][0]["zone"];
        assert_eq!(*zone, json!(format!("scenarios/{}", scene.name("z"))));
        for number in 0..3 {
            scene.untaint(&format!("n{number}")).await;
        }
        scene.leaves("p3").await;
        scene.event(&scene.name("n0"), "EvictionBreakerClosed", "Evictions in zone ").await;
        acts(scene).await;
        scene.stay(&["p1", "p2"]);
    }
}
