//! Everything goes wrong while thousands of pods must go: each goes once, and nobody else is touched.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use berth_bed::{Bed, Companion, or_skip};
use berth_tests::{
    caller::{core, text},
    random::{Random, seed},
};
use futures::{StreamExt as _, future::join_all, stream};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    gate::{Gate, Outcome, taken_again},
    ground::{Turn, grounds},
    hook::{Hook, Verdict},
    kubelet::hangs,
    leaders::leads,
    pod::Pod,
    scene::Scene,
    taint::{added, forever, no_execute, seconds},
};

/// Pods that must go. All of them take their time to end, and some are held besides, so that a second deletion would be answered
/// like the first.
const MANY: usize = 2_000;
const HELD: usize = 40;
const GRACE: i64 = 600;
const NODES: usize = 50;

/// Pods that must not.
const BYSTANDERS: usize = 100;

/// How many are made at once.
const AT_ONCE: usize = 50;

/// How many of the watches that are begun after a gap have to list again: more than a replica has.
const FORGOTTEN: usize = 6;

/// Of a hundred writes, so many go wrong.
const PERCENT: u64 = 25;

/// How long all of it may take, with servers that start twice.
const PATIENCE: Duration = Duration::from_mins(2);

fn node(number: usize) -> String {
    format!("n{}", number % NODES)
}

/// Nodes whose kubelets do nothing: who is deleted there is on its way out for as long as the scenario lasts.
async fn nodes(scene: &Scene, count: usize) {
    let make = async |number: usize| {
        scene.node(&node(number)).await;
        hangs(scene, &node(number)).await;
    };
    join_all((0..count).map(make)).await;
}

/// Who must go, by name, with their UIDs.
async fn stage(scene: &Scene) -> BTreeMap<String, String> {
    nodes(scene, NODES).await;
    scene.node("clean").await;
    let leaving = (0..MANY).map(|number| {
        let pod = Pod::named(&format!("leaving{number}")).on(&node(number)).grace(GRACE);
        let pod = if number < HELD { pod.held() } else { pod };
        if number % 2 == 0 { pod.tolerating([seconds("a", 1)]) } else { pod }
    });
    let made: Vec<Value> =
        stream::iter(leaving.map(|pod| scene.pod(pod))).buffer_unordered(AT_ONCE).collect().await;
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

/// What becomes of a request: of a hundred writes to pods, so many go wrong.
fn fault(random: &mut Random, method: &Method, path: &str) -> Outcome {
    let is_write = *method == Method::DELETE || *method == Method::PATCH || *method == Method::POST;
    if !is_write || !path.contains("/pods/") || !random.chance(PERCENT) {
        return Outcome::Pass;
    }
    let outcomes =
        [Outcome::Refuse(409), Outcome::Refuse(429), Outcome::Refuse(500), Outcome::Stray, Outcome::Lose];
    *random.pick(&outcomes)
}

/// A way to the server on which things go wrong, by lots of its own.
async fn faulty(bed: &Bed, random: Random) -> Gate {
    let random = Mutex::new(random);
    Gate::open(bed, move |method, path| fault(&mut random.lock().unwrap(), method, path)).await
}

/// How replicas are run of which one leads. Slow enough for crashes to fall into it.
fn flags<'f>(home: &'f str, rate: &'f str) -> [&'f str; 10] {
    [
        "--controllers=taint-eviction-controller",
        rate,
        "--eviction-burst=1",
        "--leader-elect=true",
        "--leader-elect-lease-duration=4s",
        "--leader-elect-renew-deadline=3s",
        "--leader-elect-retry-period=500ms",
        home,
        "--leader-elect-resource-name=faulty",
        "--metrics-bind=127.0.0.1:0",
    ]
}

/// Who was taken away was one of these, by its UID, and that once.
fn are_taken_once(scene: &Scene, gates: &[Gate], leaving: &BTreeMap<String, String>, seed: u64) {
    let asked = gates.iter().flat_map(|gate| {
        let deleted = gate.answered(&Method::DELETE);
        deleted
            .into_iter()
            .chain(gate.answered(&Method::POST).into_iter().filter(|asked| asked.taken().is_some()))
    });
    for asked in asked {
        let is_here = asked.path.contains(&format!("/namespaces/{}/pods/", scene.namespace));
        let name = asked.taken().filter(|_| is_here);
        let name = name.unwrap_or_else(|| panic!("something else was deleted: {asked:?}, with seed {seed}"));
        if name.starts_with("sentinel") {
            continue;
        }
        assert!(asked.uid.is_some(), "{name} was deleted whoever it was");
        assert_eq!(leaving.get(name), asked.uid.as_ref(), "{name}, with seed {seed}");
    }
    let again = taken_again(gates);
    assert!(again.is_empty(), "taken away more than once: {again:#?}, with seed {seed}");
}

grounds! {
    /// Thousands of evictions, during which the API server crashes, the leader crashes and another takes over, watches end and
    /// what they missed is forgotten, and one write in four is refused, lost on its way to a plain 404, or done without an answer:
    /// every pod that had to go is gone, by its UID, deleted once; no other was touched.
    ///
    /// Upstream: node-defects "9".
    /// Upstream: not-upstream "many evictions with faults, by every way to leave".
    ours turn async fn every_pod_goes_once_whatever_fails(turn: &mut Turn<'_>) {
        let seed = seed();
        let random = Random::new(seed);
        let gates = [faulty(turn.bed, random.fork(0)).await, faulty(turn.bed, random.fork(1)).await];
        let home = format!("--leader-elect-resource-namespace={}", turn.scene.namespace);
        let flags = flags(&home, "--eviction-rate=120");
        let start = async |gate: &Gate, bed: &Bed, name: &'static str| {
            or_skip(Companion::berth_with(bed, gate.kubeconfig(), name, "run", &flags).await)
        };
        let Some(mut leader) = start(&gates[0], turn.bed, "faulty").await else { return };
        leads(&leader).await;
        let Some(_standby) = start(&gates[1], turn.bed, "faulty-standby").await else { return };
        let leaving = stage(&turn.scene).await;
        assert_eq!(leaving.len(), MANY);
        let before = bystanders(&turn.scene).await;
        assert_eq!(before.len(), BYSTANDERS);
        let now = Timestamp::now();
        let scene = &turn.scene;
        join_all((0..NODES).map(|number| async move { scene.taint(&node(number), &[added("a", now)]).await })).await;
        scene.so_many_leave("leaving", MANY / 8, PATIENCE).await;
        gates[0].forget_watches(FORGOTTEN);
        scene.so_many_leave("leaving", MANY / 4, PATIENCE).await;
        leader.kill();
        let left = scene.so_many_left("leaving");
        scene.so_many_leave("leaving", left + MANY / 8, PATIENCE).await;
        gates[1].forget_watches(FORGOTTEN);
        scene.so_many_leave("leaving", left + MANY / 4, PATIENCE).await;
        turn.bed.kill();
        let left = turn.scene.so_many_left("leaving");
        assert!(left < MANY, "all were gone before the crash: it was none, with seed {seed}");
        turn.start_server().await;
        let scene = &turn.scene;
        scene.so_many_leave("leaving", MANY, PATIENCE).await;
        scene.passes().await;

        are_taken_once(scene, &gates, &leaving, seed);
        assert!(gates.iter().all(|gate| gate.answered(&Method::DELETE).len() > MANY / 20), "both had a part in it");
        assert_eq!(bystanders(scene).await, before, "with seed {seed}");
        for number in 0..HELD {
            let fate = scene.fate(&format!("leaving{number}")).unwrap();
            assert_eq!(fate.disruption()["reason"], "DeletionByTaintManager", "{fate:?}");
        }
    }

    /// The same with policies: pods that are evicted, that have a gate which an annotation opens, and that somebody outside is
    /// asked about. Whatever fails, who may go goes once, and who may not stays as it was.
    ///
    /// Upstream: integration/evictions/evictions_test.go "TestEvictionWithFinalizers: running pod",
    /// "TestEvictionWithPrecondition: eviction enforcing UID".
    /// Upstream: not-upstream "many evictions with faults, by every way to leave".
    ours turn async fn policies_are_kept_whatever_fails(turn: &mut Turn<'_>) {
        const EACH: usize = 120;
        let seed = seed();
        let random = Random::new(seed);
        turn.scene.serves_policies().await;
        let gates = [faulty(turn.bed, random.fork(0)).await, faulty(turn.bed, random.fork(1)).await];
        let home = format!("--leader-elect-resource-namespace={}", turn.scene.namespace);
        let flags = flags(&home, "--eviction-rate=40");
        let start = async |gate: &Gate, bed: &Bed, name: &'static str| {
            or_skip(Companion::berth_with(bed, gate.kubeconfig(), name, "run", &flags).await)
        };
        let Some(mut leader) = start(&gates[0], turn.bed, "governed").await else { return };
        leads(&leader).await;
        let Some(standby) = start(&gates[1], turn.bed, "governed-standby").await else { return };
        let scene = &turn.scene;
        // One in three is spoken for.
        let may_go = |number: usize| !number.is_multiple_of(3);
        let hook = Hook::new(|request| {
            let name = request["pod"]["name"].as_str().unwrap_or_default();
            let number: usize = name.trim_start_matches("asked").parse().unwrap_or_default();
            Verdict::Say(json!({"allowed": !number.is_multiple_of(3), "retryAfterSeconds": 1, "message": "it is spoken for"}))
        })
        .await;
        let annotated = json!([{"name": "released", "annotation": {"key": "example.org/released", "value": "yes"}}]);
        let reviewed = json!([{"name": "asked", "review": hook.client_config()}]);
        for (app, spec) in [
            ("evicted", json!({"way": "Evict"})),
            ("gated", json!({"way": "Delete", "gates": annotated})),
            ("asked", json!({"way": "Delete", "gates": reviewed})),
        ] {
            scene.policy(app, app, spec).await;
        }
        nodes(scene, NODES).await;
        let all: Vec<(&str, usize)> =
            ["evicted", "gated", "asked"].iter().flat_map(|app| (0..EACH).map(move |number| (*app, number))).collect();
        let made: Vec<Value> = stream::iter(all.iter().map(|(app, number)| {
            let pod = Pod::named(&format!("{app}{number}")).on(&node(*number)).labelled("app", app).grace(GRACE);
            let pod = if *number < 3 { pod.held() } else { pod };
            scene.pod(if may_go(*number) { pod.annotated("example.org/released", "yes") } else { pod })
        }))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
        let leaving: BTreeMap<String, String> = made
            .iter()
            .map(|pod| (text(pod, "/metadata/name").to_owned(), text(pod, "/metadata/uid").to_owned()))
            .collect();
        join_all((0..NODES).map(|number| async move { scene.taint(&node(number), &[no_execute("a")]).await })).await;

        scene.so_many_leave("evicted", EACH / 4, PATIENCE).await;
        gates[0].forget_watches(FORGOTTEN);
        scene.so_many_leave("evicted", EACH / 2, PATIENCE).await;
        leader.kill();
        leads(&standby).await;
        gates[1].forget_watches(FORGOTTEN);
        let goes = (0..EACH).filter(|number| may_go(*number)).count();
        for (app, count) in [("evicted", EACH), ("gated", goes), ("asked", goes)] {
            scene.so_many_leave(app, count, PATIENCE).await;
        }
        scene.passes().await;
        are_taken_once(scene, &gates, &leaving, seed);
        for (app, number) in all {
            let name = format!("{app}{number}");
            if app == "evicted" {
                assert_eq!(scene.fate(&name).unwrap().disruption()["reason"], "EvictionByEvictionAPI", "{name}");
            } else if may_go(number) {
                assert_eq!(scene.fate(&name).unwrap().disruption()["reason"], "DeletionByTaintManager", "{name}");
            } else {
                scene.stay(&[&name]);
            }
        }
    }
}
