//! The controller is killed, again and again: what was begun is finished, once.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use berth_bed::Companion;
use berth_tests::caller::text;
use http::Method;
use serde_json::{Value, json};

use crate::{
    gate::{Gate, Outcome},
    ground::{Turn, controller, grounds},
    scene::{by_hand, member, no_schedule, taints, with},
    set::Set,
};

const PODS: [&str; 3] = ["db-0", "db-1", "db-2"];

/// Ends it as a crash does, and begins anew.
async fn restart(controller: &mut Companion) {
    controller.kill();
    controller.start().await.unwrap();
}

/// Each phase comes in its turn, and none comes twice.
fn in_order(phases: &[String]) {
    let mut way =
        ["Gating", "Draining", "RemovingVolumes", "RemovingPod", "AwaitingSuccessor", "Verifying", "Done"]
            .iter();
    assert!(phases.iter().all(|phase| way.any(|next| next == phase)), "{phases:?}");
    assert_eq!(phases.last().map(String::as_str), Some("Done"), "{phases:?}");
}

grounds! {
    /// In each state that a member can be in, the controller dies. Clocks go on from where they were, the replacement keeps its
    /// beginning, nothing is done twice and nothing is left undone.
    turn async fn it_goes_on_from_every_state(turn: &mut Turn<'_>) {
        let scene = &turn.scene;
        let is_stuck = Arc::new(AtomicBool::new(true));
        let stuck = Arc::clone(&is_stuck);
        // Claims cannot be deleted for a while: that is how it stays where volumes are removed.
        let way = Gate::open(turn.bed, move |method, path| {
            let is_claim = *method == Method::DELETE && path.contains("/persistentvolumeclaims/");
            if is_claim && stuck.load(Ordering::SeqCst) { Outcome::Refuse(500) } else { Outcome::Pass }
        })
        .await;
        let Some(mut controller) = controller(turn.bed, way.kubeconfig(), "mortal").await else { return };
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("db", 3).with_volumes()).await;
        let spec = with(
            taints(&[("*", 3)], 3),
            json!({
                "pauseRequests": ["not yet"], "gates": by_hand(),
                "strategy": {"volumes": {"policy": "DeleteNodeLocal"}, "ready": {"minReadySeconds": 4}},
            }),
        );
        scene.policy("p", spec.clone()).await;
        let before = scene.uids(&PODS).await;
        let claim = scene.claim("db-1").await;
        let home = scene.home("db-1").await;
        scene.taint(&home, &[no_schedule("example.org/broken")]).await;

        // Detected, marked, queued: nobody wrote the taint's time down but the controller.
        let since = |policy: &Value| member(policy, "db-1")["causes"][0]["since"].clone();
        let seen = scene.policy_is("p", "having seen it", |policy| since(policy).is_string()).await;
        restart(&mut controller).await;
        let marked = scene.policy_is("p", "marking it", |policy| policy["status"]["counts"]["replacing"] == 1).await;
        assert_eq!(since(&marked), since(&seen), "the clock went on");
        restart(&mut controller).await;
        scene.held("p", "db-1", "paused: not yet").await;
        restart(&mut controller).await;
        let queued = scene.held("p", "db-1", "paused: not yet").await;
        assert_eq!(queued["causes"][0]["since"], since(&seen), "the clock went on");
        assert!(scene.replacements("db-1").await.is_empty());

        // Gating: the gate is shut.
        let spec = with(spec, json!({"pauseRequests": []}));
        scene.policy("p", spec.clone()).await;
        let begun = scene.replacement_is("db-1", "shut out", |last| last["status"]["reason"] == "GateShut").await;
        restart(&mut controller).await;
        scene.stays("db-1", &before["db-1"]).await;

        // Draining: another gate, which waits for an answer.
        let gates = json!([{"name": "drained", "annotation": {"key": "example.org/drained"}}]);
        scene.policy("p", with(spec, json!({"gates": gates}))).await;
        scene.reaches("db-1", "Draining").await;
        restart(&mut controller).await;
        let told = |pod: &Value| pod["metadata"]["annotations"]["berth.dev/replacing"] == "true";
        scene.caller.until(&scene.pod_path("db-1"), "is told", told).await;
        scene.stays("db-1", &before["db-1"]).await;

        // RemovingVolumes: the claim cannot be deleted yet.
        scene.annotate("db-1", "example.org/drained", Some("yes")).await;
        scene.reaches("db-1", "RemovingVolumes").await;
        restart(&mut controller).await;
        scene.stays("db-1", &before["db-1"]).await;
        assert_eq!(scene.claim("db-1").await, claim);

        // RemovingPod: the pod does not end. Its successor will not be ready.
        scene.hands.order(|orders| _ = orders.lingering.insert("db-1".to_owned()));
        is_stuck.store(false, Ordering::SeqCst);
        scene.reaches("db-1", "RemovingPod").await;
        restart(&mut controller).await;
        // On the hub nobody has to wait for a kubelet that is not there.
        scene.hands.order(|orders| {
            orders.unready.insert("db-1".to_owned());
            orders.lingering.clear();
        });

        // AwaitingSuccessor, and then Verifying: it has to stay ready for a while.
        scene.reaches("db-1", "AwaitingSuccessor").await;
        restart(&mut controller).await;
        scene.hands.order(|orders| orders.unready.clear());
        scene.reaches("db-1", "Verifying").await;
        restart(&mut controller).await;
        scene.is_replaced("db-1", &before["db-1"]).await;
        restart(&mut controller).await;

        // Done, and nothing comes after it.
        scene.policy_is("p", "at rest", |policy| policy["status"]["counts"]["inFlight"] == 0).await;
        let all = scene.replacements("db-1").await;
        assert_eq!(all.len(), 1, "{all:#?}");
        assert_eq!(all[0]["status"]["startedAt"], begun["status"]["startedAt"], "it is the one that was begun");
        assert_eq!(text(&all[0], "/metadata/uid"), text(&begun, "/metadata/uid"));
        scene.caught_up().await;
        in_order(&scene.chronicle.phases("db-1"));
        assert_eq!(scene.chronicle.incarnations("db-1").len(), 2, "it went once");
        assert_eq!(scene.chronicle.claims_lost().len(), 1, "and so did its claim");
        scene.chronicle.claims_went_alone(&PODS);
        for pod in ["db-0", "db-2"] {
            scene.stays(pod, &before[pod]).await;
        }
    }

    /// The first answer to every write is lost: the controller does not know what it has done, and does it once all the same.
    turn async fn answers_that_are_lost_do_nothing_twice(turn: &mut Turn<'_>) {
        let scene = &turn.scene;
        let lost = Arc::new(Mutex::new(BTreeSet::new()));
        let known = Arc::clone(&lost);
        let way = Gate::open(turn.bed, move |method, path| {
            let is_theirs = ["/replacements", "/persistentvolumeclaims/", "/pods/"].iter().any(|kind| path.contains(kind));
            let is_write = [Method::POST, Method::PATCH, Method::PUT, Method::DELETE].contains(method);
            let is_first = || known.lock().unwrap().insert((method.to_string(), path.to_owned()));
            if is_theirs && is_write && is_first() { Outcome::Lose } else { Outcome::Pass }
        })
        .await;
        let Some(_controller) = controller(turn.bed, way.kubeconfig(), "forgetful").await else { return };
        scene.nodes(&["a", "b", "c", "d", "e"]).await;
        scene.set(Set::of("db", 3).with_volumes()).await;
        let spec = json!({
            "replacements": {"maxFaultDomainsWithTaintedProcessGroups": "100%"},
            "strategy": {"volumes": {"policy": "DeleteNodeLocal"}},
        });
        scene.policy("p", with(taints(&[("*", 0)], 0), spec)).await;
        let before = scene.uids(&PODS).await;
        for pod in ["db-0", "db-1"] {
            scene.taint(&scene.home(pod).await, &[no_schedule("example.org/broken")]).await;
        }
        for pod in ["db-0", "db-1"] {
            scene.is_replaced(pod, &before[pod]).await;
        }
        scene.caught_up().await;
        scene.chronicle.at_most_at_once(1);
        scene.chronicle.claims_went_alone(&PODS);
        assert_eq!(scene.chronicle.claims_lost().len(), 2);
        for (pod, lives) in [("db-0", 2), ("db-1", 2), ("db-2", 1)] {
            assert_eq!(scene.chronicle.incarnations(pod).len(), lives, "{pod}");
        }
        assert!(lost.lock().unwrap().len() > 4, "{lost:?}");
    }
}
