//! How fast pods may leave, and when none may.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use berth_bed::or_skip;
use berth_tests::{definitions::install, waiting::until};
use jiff::{SignedDuration, Timestamp};

use crate::{
    countdown::reaches,
    ground::{Duty, Turn, acts, grounds},
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
    ours turn async fn a_rate_is_kept(turn: &mut Turn<'_>) {
        const PODS: usize = 200;
        const RATE: f64 = 20.0;
        // A second's worth may go at once; so what a busy machine was late with is made up for.
        const BURST: usize = 20;
        let Some(_controllers) = turn.run("rated", Duty::Eviction, &["--eviction-rate=20"]).await else { return };
        let scene = &turn.scene;
        scene.node("n").await;
        scene.pods((0..PODS).map(|number| Pod::named(&format!("p{number}")).on("n"))).await;
        scene.taint("n", &[no_execute("a")]).await;
        let times = scene.so_many_leave("p", PODS, PATIENCE).await;
        let kept = rate(&times[BURST..]);
        assert!((kept / RATE - 1.0).abs() < 0.02, "{kept} a second: {times:?}");
        // Never ahead of it either, but for the time in which the first ones were still being written.
        for (number, time) in times.iter().enumerate().skip(BURST) {
            let since = time.duration_since(times[0]).as_secs_f64();
            assert!(since + 0.75 >= (number - BURST) as f64 / RATE, "{number} after {since} s: {times:?}");
        }
    }

    /// Without a rate all leave at once.
    eviction async fn without_a_rate_all_leave_at_once(scene: &crate::scene::Scene) {
        scene.node("n").await;
        scene.pods((0..100).map(|number| Pod::named(&format!("p{number}")).on("n"))).await;
        scene.taint("n", &[no_execute("a")]).await;
        let begun = Timestamp::now();
        let times = scene.so_many_leave("p", 100, PATIENCE).await;
        let took = times[99].duration_since(begun);
        assert!(took < SignedDuration::from_secs(5), "{took:#}");
    }

    /// Who is not asked to evict does not: all other controllers run, and nothing happens to a pod that would have to go. The
    /// one that is asked to evicts it.
    ///
    /// Upstream: integration/node/lifecycle_test.go
    /// "TestEvictionForNoExecuteTaintAddedByUser: separate taint eviction controller enabled but not started",
    /// "TestEvictionForNoExecuteTaintAddedByUser: separate taint eviction controller enabled and started".
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

    /// A person says stop: nothing leaves from a second later on, over a crash as well, until it is said that it may.
    ///
    /// Upstream: node-defects "5".
    ours turn async fn a_stop_is_heard_at_once_and_outlives_a_crash(turn: &mut Turn<'_>) {
        const PODS: usize = 150;
        let home = format!("--leader-elect-resource-namespace={}", turn.scene.namespace);
        let flags = ["--eviction-rate=30", "--eviction-burst=1", &home];
        let Some(mut controllers) = turn.run("frozen", Duty::Eviction, &flags).await else { return };
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
        say(&["freeze", "evictions", "--reason", "the network is being worked on"]);
        tokio::time::sleep(HEARD).await;
        let left = scene.so_many_left("p");
        assert!(left < PODS, "too slow to stop anything");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(scene.so_many_left("p"), left, "some left that had been told to stay");
        controllers.kill();
        controllers.start().await.unwrap();
        scene.pod(Pod::named("latecomer").on("n")).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(scene.so_many_left("p"), left, "a crash made it forget");
        scene.stay(&["latecomer"]);
        let note = scene.caller.get(&berth_tests::caller::core(&scene.namespace, "configmaps/berth-freeze-evictions")).await.ok();
        assert_eq!(note["data"]["reason"], "the network is being worked on");
        say(&["unfreeze", "evictions"]);
        let begun = Instant::now();
        let more = until("evictions going on", PATIENCE, async || {
            let now = scene.so_many_left("p");
            if now > left { Ok(now) } else { Err(format!("{now}")) }
        }).await;
        assert!(begun.elapsed() < HEARD * 2, "heard after {:?}, {more}", begun.elapsed());
        scene.so_many_leave("p", PODS, PATIENCE).await;
    }

    /// When too many nodes of a zone drive their pods away at once, none does until it is better.
    ours turn async fn a_breaker_holds_a_zone(turn: &mut Turn<'_>) {
        let flags = ["--eviction-breaker-percent=50", "--eviction-breaker-min=2"];
        let Some(_controllers) = turn.run("breaking", Duty::Eviction, &flags).await else { return };
        let scene = &turn.scene;
        let zone = crate::kubelet::in_zone(scene, "z");
        for number in 0..4 {
            let node = format!("n{number}");
            scene.node_of(&node, &zone, &[]).await;
            scene.pod(Pod::named(&format!("p{number}")).on(&node)).await;
        }
        // One of four is nothing.
        scene.taint("n0", &[no_execute("a")]).await;
        scene.leaves("p0").await;
        // Three of them at once are.
        for number in 1..4 {
            scene.taint(&format!("n{number}"), &[no_execute("a")]).await;
        }
        // The second one's pods may have gone before the third was seen.
        scene.passes().await;
        let left = scene.so_many_left("p");
        assert!(left <= 2, "{left} left");
        reaches(Timestamp::now() + SignedDuration::from_secs(2)).await;
        assert_eq!(scene.so_many_left("p"), left);
        for number in 0..3 {
            scene.untaint(&format!("n{number}")).await;
        }
        scene.leaves("p3").await;
        acts(scene).await;
    }
}
