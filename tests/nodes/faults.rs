//! Everything goes wrong while hundreds of pods must go: each goes once, and nobody else is touched.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use berth_tests::{
    caller::{core, text},
    random::{Random, seed},
};
use futures::future::join_all;
use http::Method;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    gate::{Gate, Outcome},
    ground::{Duty, Turn, grounds},
    pod::Pod,
    scene::Scene,
    taint::{added, forever, seconds},
};

/// Pods that must go, of which some are held, so that a second deletion would be seen.
const MANY: usize = 400;
const HELD: usize = 40;
const NODES: usize = 8;

/// Pods that must not.
const BYSTANDERS: usize = 40;

/// Of a hundred writes, so many go wrong.
const PERCENT: u64 = 25;

/// How long all of it may take, with servers that start twice.
const PATIENCE: Duration = Duration::from_mins(2);

fn node(number: usize) -> String {
    format!("n{}", number % NODES)
}

/// Who must go, by name, with their UIDs.
async fn stage(scene: &Scene) -> BTreeMap<String, String> {
    join_all((0..NODES).map(|number| async move { scene.node(&node(number)).await })).await;
    scene.node("clean").await;
    let leaving = (0..MANY).map(|number| {
        let pod = Pod::named(&format!("leaving{number}")).on(&node(number));
        let pod = if number < HELD { pod.held() } else { pod };
        if number % 2 == 0 { pod.tolerating([seconds("a", 1)]) } else { pod }
    });
    let made = join_all(leaving.map(|pod| scene.pod(pod))).await;
    let staying = (0..BYSTANDERS).map(|number| {
        let pod = Pod::named(&format!("staying{number}"));
        if number % 2 == 0 { pod.on("clean") } else { pod.on(&node(number)).tolerating([forever("a")]) }
    });
    scene.pods(staying).await;
    let named = |pod: &Value| (text(pod, "/metadata/name").to_owned(), text(pod, "/metadata/uid").to_owned());
    made.iter().map(named).collect()
}

/// The bystanders as they are: name and version.
async fn bystanders(scene: &Scene) -> BTreeSet<(String, String)> {
    let all = scene.caller.get(&core(&scene.namespace, "pods")).await.ok();
    let all = all["items"].as_array().unwrap().iter();
    let named = all.map(|pod| {
        (text(pod, "/metadata/name").to_owned(), text(pod, "/metadata/resourceVersion").to_owned())
    });
    named.filter(|(name, _)| name.starts_with("staying")).collect()
}

grounds! {
    /// Hundreds of evictions, during which the API server crashes, the controllers crash, and one write in four is refused, lost on
    /// its way to a plain 404, or done without an answer: every pod that had to go is gone, by its UID, deleted once; no other was touched.
    ///
    /// Upstream: node-defects "9".
    ours turn async fn every_pod_goes_once_whatever_fails(turn: &mut Turn<'_>) {
        let seed = seed();
        let random = Mutex::new(Random::new(seed));
        let gate = Gate::open(turn.bed, move |method, path| {
            let mut random = random.lock().unwrap();
            let is_write = *method == Method::DELETE || *method == Method::PATCH;
            if !is_write || !path.contains("/pods/") || !random.chance(PERCENT) {
                return Outcome::Pass;
            }
            // Nobody can know that what he has no answer to was done, so what shows a second deletion has none of that.
            let is_held = path.rsplit_once("/leaving").is_some_and(|(_, number)| {
                number.trim_end_matches("/status").parse::<usize>().is_ok_and(|number| number < HELD)
            });
            let outcomes = [
                Outcome::Refuse(409), Outcome::Refuse(429), Outcome::Refuse(500), Outcome::Stray, Outcome::Lose,
            ];
            *random.pick(if is_held { &outcomes[..4] } else { &outcomes })
        }).await;
        let contestant = turn.scene.contestant;
        // Slow enough for the crashes to fall into it.
        let flags = ["--eviction-rate=40", "--eviction-burst=1"];
        let controllers = contestant.start(turn.bed, gate.kubeconfig(), "faulty", Duty::Eviction, &flags).await;
        let Some(mut controllers) = controllers else { return };
        let leaving = stage(&turn.scene).await;
        let before = bystanders(&turn.scene).await;
        assert_eq!(before.len(), BYSTANDERS);
        let now = Timestamp::now();
        for number in 0..NODES {
            turn.scene.taint(&node(number), &[added("a", now)]).await;
        }
        turn.scene.so_many_leave("leaving", MANY / 4, PATIENCE).await;
        turn.bed.kill();
        turn.start_server().await;
        turn.scene.so_many_leave("leaving", MANY / 2, PATIENCE).await;
        controllers.kill();
        let scene = &turn.scene;
        let left = scene.so_many_left("leaving");
        assert!(left < MANY, "all were gone before the crash: it was none, with seed {seed}");
        controllers.start().await.unwrap();
        scene.so_many_leave("leaving", MANY, PATIENCE).await;
        scene.passes().await;

        let mut deleted: BTreeMap<String, usize> = BTreeMap::new();
        for deletion in gate.answered(&Method::DELETE) {
            let Some((_, name)) = deletion.path.split_once(&format!("/namespaces/{}/pods/", scene.namespace)) else {
                panic!("something else was deleted: {deletion:?}, with seed {seed}");
            };
            if name.starts_with("sentinel") {
                continue;
            }
            let uid = deletion.uid.clone().unwrap_or_else(|| panic!("{name} was deleted whoever it was"));
            assert_eq!(leaving.get(name), Some(&uid), "{name}, with seed {seed}");
            if deletion.code == 200 {
                *deleted.entry(uid).or_default() += 1;
            }
        }
        let twice: Vec<_> = deleted.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "deleted more than once: {twice:?}, with seed {seed}");
        assert_eq!(bystanders(scene).await, before, "with seed {seed}");
        for number in 0..HELD {
            let fate = scene.fate(&format!("leaving{number}")).unwrap();
            assert_eq!(fate.disruption()["reason"], "DeletionByTaintManager", "{fate:?}");
        }
    }
}
