//! Two replicas: one evicts, the other stands by and takes over with every countdown as it was.

use berth_bed::{Companion, or_skip};
use berth_tests::waiting::until;
use http::Method;
use jiff::{SignedDuration, Timestamp};

use crate::{
    countdown::reaches,
    gate::{Gate, Outcome},
    ground::{Turn, grounds},
    metrics::Metrics,
    pod::Pod,
    scene::{Clock, PATIENCE},
    taint::{added, no_execute, seconds},
};

/// How long others wait for a leader that is silent, in seconds.
const LEASE: i64 = 3;

/// When the pods of the scenario must go, in seconds: after another has taken over, and while nobody leads.
const AFTER: i64 = 8;
const BETWEEN: i64 = 3;

/// Waits until a replica leads.
pub(crate) async fn leads(replica: &Companion) {
    until("a replica leading", PATIENCE, async || {
        if Metrics::of(replica).await.leads() { Ok(()) } else { Err("it does not".to_owned()) }
    })
    .await;
}

grounds! {
    /// A leader that is killed in the middle of many countdowns is followed by one that acts at the same moments; what fell
    /// due in between is done as soon as somebody leads. Nobody is deleted twice.
    ours turn async fn a_successor_keeps_every_moment(turn: &mut Turn<'_>) {
        const PODS: usize = 20;
        let scene = &turn.scene;
        let home = format!("--leader-elect-resource-namespace={}", scene.namespace);
        let duration = format!("--leader-elect-lease-duration={LEASE}s");
        let flags = [
            "--controllers=taint-eviction-controller", "--leader-elect=true", &duration,
            "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
            &home, "--leader-elect-resource-name=evictions", "--metrics-bind=127.0.0.1:0",
        ];
        let gates = [Gate::open(turn.bed, |_, _| Outcome::Pass).await, Gate::open(turn.bed, |_, _| Outcome::Pass).await];
        let start = async |gate: &Gate, name: &'static str| {
            or_skip(Companion::berth_with(turn.bed, gate.kubeconfig(), name, "run", &flags).await)
        };
        let Some(mut leader) = start(&gates[0], "leader").await else { return };
        leads(&leader).await;
        let Some(standby) = start(&gates[1], "standby").await else { return };
        assert!(!Metrics::of(&standby).await.leads());

        for node in ["timed", "untimed"] {
            scene.node(node).await;
        }
        let pods = (0..PODS).map(|number| {
            let pod = Pod::named(&format!("p{number}")).on(if number % 2 == 0 { "timed" } else { "untimed" });
            pod.tolerating([seconds("a", if number < PODS / 2 { BETWEEN } else { AFTER })])
        });
        scene.pods(pods).await;
        let timed = scene.taint_now("timed", &[added("a", Timestamp::now())]).await;
        let untimed = scene.taint_now("untimed", &[no_execute("a")]).await;
        scene.passes_on("untimed").await;
        // Nobody may lead when the first are due.
        reaches(timed.from + SignedDuration::from_millis(BETWEEN * 1000 - 500)).await;
        leader.kill();
        assert_eq!(scene.so_many_left("p"), 0);
        leads(&standby).await;
        let took_over = Timestamp::now();
        for number in 0..PODS {
            let pod = format!("p{number}");
            let clock = if number % 2 == 0 { timed } else { untimed };
            let given = if number < PODS / 2 { BETWEEN } else { AFTER };
            let due = clock.from + SignedDuration::from_secs(given);
            // No earlier than it must, no later than that or than somebody leads.
            let late = Clock { to: clock.to.max(took_over - SignedDuration::from_secs(given)), ..clock };
            scene.leaves_after(&pod, late, given).await;
            assert!(due <= Timestamp::now());
        }
        let mut deleted: Vec<String> =
            gates.iter().flat_map(|gate| gate.answered(&Method::DELETE)).map(|deletion| deletion.path).collect();
        let all = deleted.len();
        deleted.sort();
        deleted.dedup();
        assert_eq!(deleted.len(), all, "somebody was deleted twice");
        assert!(gates[0].answered(&Method::DELETE).iter().all(|deletion| deletion.path.contains("sentinel")));
    }
}
