//! What others have to say before a member goes, up to the last moment.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use berth_tests::caller::{Caller, text};
use http::Method;
use serde_json::{Value, json};
use tokio::{runtime::Handle, task::block_in_place};

use crate::{
    gate::{Gate, Outcome},
    ground::{Turn, controller, grounds},
    hook::{Hook, Verdict},
    scene::{Scene, by_hand, no_schedule, taints, with},
    set::Set,
};

/// Where the controllers look for a freeze.
const HOME: &str = "/api/v1/namespaces/berth-system/configmaps";

grounds! {
    /// The gate is open when it is looked at, and shut at the very moment the eviction is sent: the eviction is bound to the pod
    /// that was looked at, so nothing happens. Open again, the member goes.
    turn async fn a_gate_that_shuts_between_the_look_and_the_act_is_heard(turn: &mut Turn<'_>) {
        let scene = &turn.scene;
        let evictions = Arc::new(AtomicUsize::new(0));
        let (sent, caller, pod) = (Arc::clone(&evictions), Caller::admin(turn.bed), scene.pod_path("db-0"));
        let way = Gate::open(turn.bed, move |method, path| {
            if *method == Method::POST && path.ends_with("/pods/db-0/eviction") && sent.fetch_add(1, Ordering::SeqCst) == 0 {
                let back = json!({"metadata": {"annotations": {"example.org/released": null}}});
                block_in_place(|| Handle::current().block_on(caller.merge(&pod, &back))).ok();
            }
            Outcome::Pass
        })
        .await;
        let Some(_controller) = controller(turn.bed, way.kubeconfig(), "flipped").await else { return };
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2).annotated("example.org/released", "yes")).await;
        scene.policy("p", with(taints(&[("*", 0)], 0), json!({"gates": by_hand()}))).await;
        let before = scene.uids(&["db-0"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        scene.replacement_is("db-0", "shut out", |last| last["status"]["reason"] == "GateShut").await;
        assert_eq!(evictions.load(Ordering::SeqCst), 1, "it was sent, and refused");
        scene.stays("db-0", &before["db-0"]).await;
        let denied = way.answered(&Method::POST).into_iter().find(|it| it.path.ends_with("/eviction")).unwrap();
        assert_eq!(denied.code, 409, "{denied:?}");
        scene.release("db-0").await;
        scene.is_replaced("db-0", &before["db-0"]).await;
    }

    /// A service that agrees to the first question and to none after it: the last answer before the act counts.
    beside async fn a_service_that_changes_its_mind_is_heard(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        let (asked, agrees) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, does_agree) = (Arc::clone(&asked), Arc::clone(&agrees));
        let careful = Hook::new(move |_| {
            let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
            Verdict::Say(if is_first || does_agree.load(Ordering::SeqCst) {
                json!({"allowed": true})
            } else {
                json!({"allowed": false, "retryAfterSeconds": 1, "message": "the backup runs"})
            })
        })
        .await;
        let gates = json!([{"name": "backup", "http": careful.client_config()}]);
        scene.policy("p", with(taints(&[("*", 0)], 0), json!({"gates": gates}))).await;
        let before = scene.uids(&["db-0"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        scene.replacement_is("db-0", "shut out", |last| last["status"]["reason"] == "GateShut").await;
        let held = scene
            .replacement_is("db-0", "telling what the gate says", |last| {
                ["Deny", "InProgress"].iter().any(|verdict| last["status"]["gates"][0]["verdict"] == *verdict)
            })
            .await;
        assert_eq!(held["status"]["gates"][0]["name"], "backup", "{held}");
        assert!(asked.load(Ordering::SeqCst) >= 2, "{held}");
        scene.stays("db-0", &before["db-0"]).await;
        let review = careful.asked().remove(0);
        assert_eq!(review["kind"], "ReplacementReview", "{review}");
        assert!(review["request"]["uid"].is_string(), "{review}");
        agrees.store(true, Ordering::SeqCst);
        scene.is_replaced("db-0", &before["db-0"]).await;
    }

    /// An operator is told by an annotation that its member is to go, and answers by one of its own when the data is safe.
    beside async fn an_operator_answers_before_its_member_goes(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        let gates = json!([{"name": "drained", "annotation": {"key": "example.org/drained", "value": "yes"}}]);
        scene.policy("p", with(taints(&[("*", 0)], 0), json!({"gates": gates}))).await;
        let before = scene.uids(&["db-0"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        scene.reaches("db-0", "Draining").await;
        let told = |pod: &Value| pod["metadata"]["annotations"]["berth.dev/replacing"] == "true";
        scene.caller.until(&scene.pod_path("db-0"), "is told", told).await;
        scene.stays("db-0", &before["db-0"]).await;
        scene.annotate("db-0", "example.org/drained", Some("yes")).await;
        scene.is_replaced("db-0", &before["db-0"]).await;
    }

    /// While evictions are frozen nobody is replaced, whatever is due; afterwards it goes on.
    turn async fn frozen_evictions_hold_replacements(turn: &mut Turn<'_>) {
        let scene = &turn.scene;
        let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "berth-system"}});
        scene.caller.post("/api/v1/namespaces", &home).await;
        let freeze = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "berth-freeze-evictions"},
            "data": {"reason": "the network is being mended"},
        });
        let Some(_controller) = turn.controller("frozen").await else { return };
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        scene.policy("p", with(taints(&[("*", 0)], 0), json!({"gates": by_hand()}))).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        scene.replacement_is("db-0", "shut out", |last| last["status"]["reason"] == "GateShut").await;
        let before = scene.uids(&["db-0"]).await;
        scene.caller.post(HOME, &freeze).await.ok();
        scene.release("db-0").await;
        let held = scene.replacement_is("db-0", "frozen", |last| last["status"]["reason"] == "Frozen").await;
        assert!(text(&held, "/status/message").contains("the network is being mended"), "{held}");
        assert_eq!(scene.policy_says("p", "Paused", "True").await["reason"], "Frozen");
        scene.stays("db-0", &before["db-0"]).await;
        scene.caller.delete(&format!("{HOME}/berth-freeze-evictions")).await.ok();
        scene.is_replaced("db-0", &before["db-0"]).await;
    }
}
