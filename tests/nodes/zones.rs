//! How fast nodes are given up, and when none is: zones, their rates, and everything failing at once.

use std::time::{Duration, Instant};

use berth_tests::{caller::condition, waiting::eventually};
use futures::future::join_all;
use jiff::SignedDuration;
use serde_json::Value;

use crate::{
    countdown::reaches,
    ground::{BRISK, Duty, Turn, grounds},
    health::{SILENT, UNREACHABLE, since},
    kubelet::{Kubelet, in_zone},
    pod::Pod,
    scene::{Scene, taints_of},
    taint::seconds,
};

/// For how long nothing must happen to be believed: several times what it takes to give up a node.
const LONG_ENOUGH: Duration = Duration::from_secs(3);

/// Nodes of one zone, well.
pub(crate) async fn zone(scene: &Scene, zone: &str, count: usize) -> Vec<Kubelet> {
    let names: Vec<String> = (0..count).map(|number| format!("{zone}{number}")).collect();
    let kubelets = join_all(names.iter().map(|name| Kubelet::apart(scene, name, zone))).await;
    for name in &names {
        scene.carries(name, &[]).await;
    }
    kubelets
}

/// How many of a zone's nodes drive their pods away.
async fn given_up(scene: &Scene, zone: &str, count: usize) -> usize {
    let looks = (0..count).map(|number| async move {
        scene.taints(&format!("{zone}{number}")).await.iter().any(|taint| taint.ends_with(":NoExecute"))
    });
    join_all(looks).await.into_iter().filter(|is_given_up| *is_given_up).count()
}

/// Waits until a number is as it should be and has stayed the same for [`LONG_ENOUGH`].
async fn stays(look: impl AsyncFn() -> usize, is_good: impl Fn(usize) -> bool) -> usize {
    let mut steady: Option<(usize, Instant)> = None;
    eventually("a number that is good, and stays", async || {
        let count = look().await;
        let (before, since) = *steady.get_or_insert_with(|| (count, Instant::now()));
        if before != count {
            steady = None;
            return None;
        }
        (is_good(count) && since.elapsed() >= LONG_ENOUGH).then_some(count)
    })
    .await
}

/// Waits until these nodes of a zone are known to be silent: none may be scheduled to.
async fn are_silent(scene: &Scene, zone: &str, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let is_barred = |node: &Value| taints_of(node).contains(&SILENT[1].to_owned());
        scene.node_is(&format!("{zone}{number}"), "being barred", is_barred).await;
    }
}

grounds! {
    /// Nodes of a zone are given up one after the other, no faster than they may be.
    lifecycle async fn nodes_are_given_up_one_after_the_other(scene: &Scene) {
        let mut kubelets = zone(scene, "z", 9).await;
        // Fewer than those that are well: nothing is wrong with the zone.
        for silent in kubelets.drain(..4) {
            silent.falls_silent();
        }
        let mut times = Vec::new();
        for number in 0..4 {
            let node = format!("z{number}");
            times.push(since(&scene.carries(&node, &SILENT).await));
        }
        times.sort();
        // Two a second, told in whole seconds: the fourth is a second and a half after the first.
        let took = times[3].duration_since(times[0]);
        assert!(took >= SignedDuration::from_secs(1), "{times:?}");
        assert_eq!(given_up(scene, "z", 9).await, 4);
    }

    /// When most of a small zone fails at once, nobody is given up until it is better; whoever fails is barred all the same.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealth: Partial Disruption: one Node
    /// failed leading to the number of healthy Nodes to exceed the configured threshold".
    lifecycle async fn a_zone_that_fails_in_part_gives_nobody_up(scene: &Scene) {
        let mut kubelets = zone(scene, "z", 4).await;
        for silent in kubelets.drain(..3) {
            silent.falls_silent();
        }
        are_silent(scene, "z", 0..3).await;
        // The first may have been on its way before the zone was counted, and may still be after all three are barred.
        let first = stays(async || given_up(scene, "z", 4).await, |_| true).await;
        assert!(first <= 1, "{first} were given up");
        // Two of them silent are no disruption.
        let _back = Kubelet::take(scene, "z0").await;
        for node in ["z1", "z2"] {
            scene.carries(node, &SILENT).await;
        }
        scene.carries("z0", &[]).await;
    }

    /// A zone that is lost while another lives is given up: its work is to move.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealth: Full Disruption: all the Nodes
    /// in one zone are down".
    lifecycle async fn a_zone_that_is_lost_is_given_up(scene: &Scene) {
        let _living = zone(scene, "alive", 1).await;
        for silent in zone(scene, "lost", 3).await {
            silent.falls_silent();
        }
        for node in ["lost0", "lost1", "lost2"] {
            scene.carries(node, &SILENT).await;
        }
        assert_eq!(given_up(scene, "alive", 1).await, 0);
    }

    /// Nodes that ask not to be counted are not: without them the zone is lost as a whole.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealth: Full Disruption: the only
    /// available Node has the node.kubernetes.io/exclude-disruption label".
    lifecycle async fn nodes_that_ask_not_to_be_counted_are_not(scene: &Scene) {
        let mut labels = in_zone(scene, "z");
        labels["node.kubernetes.io/exclude-disruption"] = "".into();
        scene.node_of("uncounted", &labels, &[]).await;
        let _uncounted = Kubelet::take(scene, "uncounted").await;
        // Three of four would be a disruption in part, in which nobody is given up; three of three are a zone that is lost.
        for silent in zone(scene, "z", 3).await {
            silent.falls_silent();
        }
        for node in ["z0", "z1", "z2"] {
            scene.carries(node, &SILENT).await;
        }
    }

    /// When every node of every zone falls silent it is more likely us than them: nobody is given up until somebody is back.
    ///
    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealth: Full Disruption: all the Nodes
    /// in both the zones are down", "TestMonitorNodeHealth: No Disruption: Initially both zones down, one comes back".
    turn async fn when_all_are_silent_nobody_is_given_up(turn: &mut Turn<'_>) {
        let Some(_controllers) = turn.run("judging", Duty::Lifecycle, BRISK).await else { return };
        let scene = &turn.scene;
        let kubelets = [zone(scene, "a", 2).await, zone(scene, "b", 2).await];
        for silent in kubelets.into_iter().flatten() {
            silent.falls_silent();
        }
        are_silent(scene, "a", 0..2).await;
        are_silent(scene, "b", 0..2).await;
        // What was on its way before all were known to be silent is taken back; on a busy machine it may yet have to come.
        let given_up = async || given_up(scene, "a", 2).await + given_up(scene, "b", 2).await;
        stays(given_up, |count| count == 0).await;
        let _back = Kubelet::take(scene, "a0").await;
        for node in ["a1", "b0", "b1"] {
            scene.carries(node, &SILENT).await;
        }
        scene.carries("a0", &[]).await;
    }

    /// Who judges nodes is started again: what was said of a node that is still silent stands, with its time, by ours.
    /// Upstream takes it back and says it again later, so that every countdown begins anew.
    ///
    /// Upstream: node-defects "13".
    turn async fn a_restart_takes_nothing_back(turn: &mut Turn<'_>) {
        let Some(mut controllers) = turn.run("rejudging", Duty::Lifecycle, BRISK).await else { return };
        let scene = &turn.scene;
        let _living = zone(scene, "alive", 1).await;
        for silent in zone(scene, "z", 1).await {
            silent.falls_silent();
        }
        let before = scene.carries("z0", &SILENT).await;
        controllers.kill();
        // Times are whole seconds.
        reaches(since(&before) + SignedDuration::from_millis(1_100)).await;
        controllers.launch_again().unwrap();
        if scene.is_ours() {
            // Longer than its grace: it is judged again, and found as it was.
            tokio::time::sleep(Duration::from_secs(6)).await;
            let after = scene.caller.get(&scene.node_path("z0")).await.ok();
            assert_eq!(after["spec"]["taints"], before["spec"]["taints"]);
        } else {
            let is_anew = |node: &Value| taints_of(node) == SILENT && since(node) > since(&before);
            scene.node_is("z0", "given up anew", is_anew).await;
        }
    }

    /// Everything falls silent at once, and armed evictions are to be held then: nobody leaves, though its time has come,
    /// until somebody is back; then who still has to go goes.
    ours turn async fn armed_evictions_are_held_while_everything_is_down(turn: &mut Turn<'_>) {
        let flags: Vec<&str> = BRISK.iter().copied().chain(["--when-all-zones-down=hold"]).collect();
        let Some(_controllers) = turn.run("held", Duty::Lifecycle, &flags).await else { return };
        let scene = &turn.scene;
        let mut kubelets = zone(scene, "z", 2).await;
        // Armed for longer than it takes to notice that the rest is gone.
        scene.pod(Pod::named("p").on("z0").tolerating([seconds(UNREACHABLE, 12)])).await;
        kubelets.remove(0).falls_silent();
        let gone = since(&scene.carries("z0", &SILENT).await);
        kubelets.remove(0).falls_silent();
        scene.node_is("z1", "being unknown", |node| condition(node, "Ready")["status"] == "Unknown").await;
        reaches(gone + SignedDuration::from_secs(16)).await;
        scene.stay(&["p"]);
        let _back = Kubelet::take(scene, "z1").await;
        scene.leaves("p").await;
    }
}
