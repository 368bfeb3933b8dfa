//! Trouble that is not the nodes': who judges them sleeps, the API server is gone, writes are refused.

use std::{sync::Mutex, time::Duration};

use berth_tests::{
    caller::{condition, text},
    random::{Random, seed},
};
use http::Method;
use jiff::{SignedDuration, Timestamp};

use crate::{
    countdown::reaches,
    gate::{Gate, Outcome},
    ground::{BRISK, Duty, Turn, grounds},
    health::{NOT_READY, SILENT, UNREACHABLE},
    kubelet::Kubelet,
    pod::Pod,
    scene::Scene,
    taint::seconds,
    zones::zone,
};

/// Longer than any grace of these scenarios.
const LONG: Duration = Duration::from_secs(7);

/// Two zones of two nodes, each with a pod that puts up with trouble of its node for so many seconds.
async fn stage(scene: &Scene, given: i64) -> Vec<Kubelet> {
    let mut kubelets = zone(scene, "a", 2).await;
    kubelets.extend(zone(scene, "b", 2).await);
    for node in NODES {
        let tolerations = [NOT_READY, UNREACHABLE].map(|key| seconds(key, given));
        scene.pod(Pod::named(&format!("on-{node}")).on(node).tolerating(tolerations)).await;
    }
    kubelets
}

/// A node of a zone of its own is given up when it says nothing any more.
async fn falls_silent(scene: &Scene) {
    let silent = Kubelet::apart(scene, "silent", "c").await;
    scene.carries("silent", &[]).await;
    silent.falls_silent();
    scene.carries("silent", &SILENT).await;
}

/// The nodes of the stage, and their pods.
const NODES: [&str; 4] = ["a0", "a1", "b0", "b1"];
const PODS: [&str; 4] = ["on-a0", "on-a1", "on-b0", "on-b1"];

async fn versions(scene: &Scene) -> Vec<String> {
    let mut versions = Vec::new();
    for node in NODES {
        let node = scene.caller.get(&scene.node_path(node)).await.ok();
        versions.push(text(&node, "/metadata/resourceVersion").to_owned());
    }
    versions
}

grounds! {
    /// Who judges nodes was stopped for longer than their grace, and finds, when he wakes, that they went on living: he says
    /// nothing about them. What upstream does depends on which of its tasks wakes first.
    ours turn async fn a_judge_that_slept_marks_nobody(turn: &mut Turn<'_>) {
        let Some(controllers) = turn.run("slept", Duty::Lifecycle, BRISK).await else { return };
        let scene = &turn.scene;
        let _kubelets = stage(scene, 0).await;
        let before = versions(scene).await;
        controllers.pause().unwrap();
        tokio::time::sleep(LONG).await;
        controllers.resume().unwrap();
        reaches(Timestamp::now() + SignedDuration::from_secs(3)).await;
        assert_eq!(versions(scene).await, before, "something was said of a node that lived");
        scene.stay(&PODS);
        // It judges still.
        falls_silent(scene).await;
    }

    /// The API server is gone for longer than the nodes' grace, and no kubelet can say that it lives. When it is back, so are
    /// they: nobody has turned a node, which nobody here would turn back.
    ours turn async fn an_outage_of_the_api_server_is_no_silence_of_its_nodes(turn: &mut Turn<'_>) {
        let Some(mut controllers) = turn.run("cut-off", Duty::Lifecycle, BRISK).await else { return };
        let _kubelets = stage(&turn.scene, 0).await;
        turn.bed.kill();
        tokio::time::sleep(LONG).await;
        assert!(controllers.ended().is_none(), "a lost server is waited for");
        turn.start_server().await;
        let scene = &turn.scene;
        reaches(Timestamp::now() + SignedDuration::try_from(LONG).unwrap()).await;
        for node in NODES {
            let node = scene.carries(node, &[]).await;
            assert_eq!(condition(&node, "Ready")["status"], "True", "{node}");
        }
        scene.stay(&PODS);
        // It judges still.
        falls_silent(scene).await;
    }

    /// One write in three is refused, or done without an answer: what is to be said of a node is said in the end, and taken
    /// back in the end.
    ours turn async fn what_is_refused_is_said_in_the_end(turn: &mut Turn<'_>) {
        let random = Mutex::new(Random::new(seed()));
        let gate = Gate::open(turn.bed, move |method, path| {
            let mut random = random.lock().unwrap();
            if *method != Method::PATCH || !path.contains("/nodes/") || !random.chance(33) {
                return Outcome::Pass;
            }
            *random.pick(&[Outcome::Refuse(409), Outcome::Refuse(429), Outcome::Refuse(500), Outcome::Lose])
        }).await;
        let contestant = turn.scene.contestant;
        let started = contestant.start(turn.bed, gate.kubeconfig(), "refused", Duty::Lifecycle, BRISK).await;
        let Some(_controllers) = started else { return };
        let scene = &turn.scene;
        let _living = zone(scene, "alive", 1).await;
        for silent in zone(scene, "z", 3).await {
            silent.falls_silent();
        }
        for node in ["z0", "z1", "z2"] {
            scene.carries(node, &SILENT).await;
        }
        let mut back = Vec::new();
        for node in ["z0", "z1", "z2"] {
            back.push(Kubelet::take(scene, node).await);
        }
        for node in ["z0", "z1", "z2", "alive0"] {
            scene.carries(node, &[]).await;
        }
    }
}
