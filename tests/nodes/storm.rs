//! Much at once: thousands that are due in one moment, leaders that change again and again, zones that fail while countdowns run,
//! nodes that come and go.

use std::time::Duration;

use berth_bed::{Companion, or_skip};
use futures::{StreamExt as _, future::join_all, stream};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    countdown::reaches,
    gate::{Gate, Outcome, taken_again},
    ground::{BRISK, Duty, Turn, acts, grounds},
    health::{NOT_READY, SILENT, UNREACHABLE, UNWELL, since},
    kubelet::{Kubelet, hangs, says},
    leaders::leads,
    metrics::Metrics,
    pod::Pod,
    scene::{Scene, taints_of},
    taint::{added, forever, no_execute, seconds},
    zones::zone,
};

/// How many pods are made at once.
const AT_ONCE: usize = 50;

/// How long a storm may take.
const PATIENCE: Duration = Duration::from_mins(2);

async fn make(scene: &Scene, pods: impl IntoIterator<Item = Pod>) {
    stream::iter(pods.into_iter().map(|pod| scene.pod(pod)))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
}

/// What a node carries that is kept from new pods for having fallen too often.
const DAMPED: [&str; 1] = ["node.kubernetes.io/not-ready:NoSchedule"];

grounds! {
    /// Two thousand pods whose time is up in the same moment all leave, none of them early and nobody else. With a rate they
    /// leave one after the other; upstream, which has none, sends them all at once.
    ///
    /// Upstream: not-upstream "10k pods same deadline (smoothing)".
    /// Upstream: integration/dra/device_taints.go "EvictClusterWithSlices".
    turn async fn many_with_one_deadline_leave_as_fast_as_they_may(turn: &mut Turn<'_>) {
        const PODS: usize = 2_000;
        const NODES: usize = 20;
        const GIVEN: i64 = 5;
        const RATE: usize = 200;
        let rate = format!("--eviction-rate={RATE}");
        let flags: &[&str] = if turn.scene.is_ours() { &[&rate, "--eviction-burst=1"] } else { &[] };
        let Some(_controllers) = turn.run("crowded", Duty::Eviction, flags).await else { return };
        let scene = &turn.scene;
        acts(scene).await;
        let node = |number: usize| format!("n{}", number % NODES);
        join_all((0..NODES).map(|number| async move { scene.node(&node(number)).await })).await;
        make(scene, (0..PODS).map(|number| {
            Pod::named(&format!("due{number}")).on(&node(number)).tolerating([seconds("a", GIVEN)])
        })).await;
        make(scene, (0..NODES).map(|number| {
            Pod::named(&format!("stays{number}")).on(&node(number)).tolerating([forever("a")])
        })).await;
        // Whoever counts from when he saw a taint counts from here at the earliest.
        let now = Timestamp::now();
        join_all((0..NODES).map(|number| async move { scene.taint(&node(number), &[added("a", now)]).await })).await;
        let times = scene.so_many_leave("due", PODS, PATIENCE).await;
        // The taint says its time in whole seconds.
        let due = Timestamp::from_second(now.as_second() + GIVEN).unwrap();
        assert!(times[0] >= due, "the first left {:#} early", due.duration_since(times[0]));
        if scene.is_ours() {
            let took = times[PODS - 1].duration_since(times[0]).as_secs_f64();
            let least = (PODS - 1) as f64 / RATE as f64;
            assert!(took >= least * 0.95, "all within {took} s, which is faster than they may");
        }
        scene.passes().await;
        for number in 0..NODES {
            scene.stay(&[&format!("stays{number}")]);
        }
    }

    /// While hundreds of pods leave, the leader is killed or stopped in its tracks again and again, and comes back each time
    /// when another leads. Everybody leaves, nobody is deleted twice, nobody else is touched.
    ///
    /// Upstream: not-upstream "leader failover storm".
    ours turn async fn leaders_that_change_again_and_again_lose_nobody(turn: &mut Turn<'_>) {
        const PODS: usize = 600;
        const NODES: usize = 10;
        const CHANGES: usize = 6;
        let scene = &turn.scene;
        let home = format!("--leader-elect-resource-namespace={}", scene.namespace);
        let flags = [
            "--controllers=taint-eviction-controller", "--eviction-rate=40", "--eviction-burst=1",
            "--leader-elect=true", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
            "--leader-elect-retry-period=500ms", &home, "--leader-elect-resource-name=storm",
            "--metrics-bind=127.0.0.1:0",
        ];
        let gates = [Gate::open(turn.bed, |_, _| Outcome::Pass).await, Gate::open(turn.bed, |_, _| Outcome::Pass).await];
        let start = async |gate: &Gate, name: &'static str| {
            or_skip(Companion::berth_with(turn.bed, gate.kubeconfig(), name, "run", &flags).await)
        };
        let Some(first) = start(&gates[0], "storm-0").await else { return };
        leads(&first).await;
        let Some(second) = start(&gates[1], "storm-1").await else { return };
        let mut replicas = [first, second];

        let node = |number: usize| format!("n{}", number % NODES);
        for number in 0..NODES {
            scene.node(&node(number)).await;
            hangs(scene, &node(number)).await;
        }
        // They take their time to end, so that a second deletion would be answered like the first.
        make(scene, (0..PODS).map(|number| {
            let pod = Pod::named(&format!("p{number}")).on(&node(number)).grace(600);
            if number % 2 == 0 { pod.tolerating([seconds("a", 3)]) } else { pod }
        })).await;
        make(scene, (0..NODES).map(|number| {
            Pod::named(&format!("stays{number}")).on(&node(number)).tolerating([forever("a")])
        })).await;
        join_all((0..NODES).map(|number| async move { scene.taint(&node(number), &[no_execute("a")]).await })).await;

        let mut leader = 0;
        for change in 0..CHANGES {
            let left = scene.so_many_left("p");
            scene.so_many_leave("p", (left + PODS / (2 * CHANGES)).min(PODS - CHANGES), PATIENCE).await;
            assert!(scene.so_many_left("p") < PODS, "all were gone before change {change}");
            let other = 1 - leader;
            if change % 2 == 0 {
                replicas[leader].kill();
                leads(&replicas[other]).await;
            } else {
                // It does not know that it leads no more when it wakes.
                replicas[leader].pause().unwrap();
                leads(&replicas[other]).await;
                replicas[leader].resume().unwrap();
                if replicas[leader].ended().is_some() {
                    replicas[leader].kill();
                }
            }
            replicas[leader].start().await.unwrap();
            leader = other;
        }
        scene.so_many_leave("p", PODS, PATIENCE).await;
        scene.passes().await;
        let again = taken_again(&gates);
        assert!(again.is_empty(), "deleted more than once: {again:#?}");
        assert!(gates.iter().all(|gate| gate.answered(&Method::DELETE).len() > CHANGES), "both had a part in it");
        for number in 0..NODES {
            scene.stay(&[&format!("stays{number}")]);
        }
        let leading = [Metrics::of(&replicas[0]).await.leads(), Metrics::of(&replicas[1]).await.leads()];
        assert_eq!(leading.iter().filter(|leads| **leads).count(), 1, "one leads: {leading:?}");
    }

    /// When most of a small zone falls silent nobody else of it is given up; what was armed before goes on, and its pods leave
    /// when their time is up.
    ///
    /// Upstream: not-upstream "partial disruption with armed timers".
    lifecycle async fn what_is_armed_goes_on_while_a_zone_fails_in_part(scene: &Scene) {
        const GIVEN: i64 = 14;
        let mut kubelets = zone(scene, "z", 4).await;
        let pod = |name: &str, node: &str, given: i64| {
            Pod::named(name).on(node).tolerating([NOT_READY, UNREACHABLE].map(|key| seconds(key, given)))
        };
        scene.pods([
            pod("armed", "z0", GIVEN), pod("patient", "z0", 600), pod("second", "z1", 0), pod("third", "z2", 0),
        ]).await;
        kubelets.remove(0).falls_silent();
        let armed = since(&scene.carries("z0", &SILENT).await);
        for silent in kubelets.drain(..2) {
            silent.falls_silent();
        }
        for node in ["z1", "z2"] {
            let is_barred = |node: &Value| taints_of(node).contains(&SILENT[1].to_owned());
            scene.node_is(node, "being barred", is_barred).await;
        }
        // One of them may have been on its way before the third was known to be silent.
        reaches(Timestamp::now() + SignedDuration::from_secs(1)).await;
        let others = scene.so_many_left("second") + scene.so_many_left("third");
        assert!(others <= 1, "{others} were given up");
        assert!(Timestamp::now() < armed + SignedDuration::from_secs(GIVEN), "the machine is too slow for this scenario");
        let left = scene.leaves("armed").await;
        assert!(left >= armed + SignedDuration::from_secs(GIVEN), "{left}, armed at {armed}");
        assert_eq!(scene.so_many_left("second") + scene.so_many_left("third"), others);
        scene.stay(&["patient"]);
    }

    /// A node that falls again and again is kept from new pods for a while when it is ready again; what makes pods leave goes
    /// at once all the same, and who waits out its falls stays.
    ///
    /// Upstream: not-upstream "a flapping node".
    ours turn async fn a_node_that_comes_and_goes_is_kept_from_new_pods(turn: &mut Turn<'_>) {
        const HOLD: i64 = 6;
        let hold = format!("--node-flap-hold={HOLD}s");
        let flapping = ["--node-flap-threshold=2", "--node-flap-window=5m", &hold];
        let flags: Vec<&str> = BRISK.iter().copied().chain(flapping).collect();
        let Some(_controllers) = turn.run("flapping", Duty::Lifecycle, &flags).await else { return };
        let scene = &turn.scene;
        let _living = zone(scene, "alive", 1).await;
        let _kubelet = Kubelet::apart(scene, "n", "z").await;
        scene.carries("n", &[]).await;
        scene.pod(Pod::named("p").on("n").tolerating([seconds(NOT_READY, 600)])).await;
        for _ in 0..2 {
            says(scene, "n", &[("Ready", "False")]).await;
            scene.carries("n", &UNWELL).await;
            let risen = Timestamp::now();
            says(scene, "n", &[("Ready", "True")]).await;
            scene.carries("n", &[]).await;
            let took = Timestamp::now().duration_since(risen);
            assert!(took < SignedDuration::from_secs(HOLD), "welcome after {took:#}: it has not fallen often");
        }
        says(scene, "n", &[("Ready", "False")]).await;
        scene.carries("n", &UNWELL).await;
        let risen = Timestamp::now();
        says(scene, "n", &[("Ready", "True")]).await;
        scene.carries("n", &DAMPED).await;
        scene.carries("n", &[]).await;
        let took = Timestamp::now().duration_since(risen);
        assert!(took >= SignedDuration::from_secs(HOLD - 1), "welcome after {took:#}");
        scene.stay(&["p"]);
    }
}
