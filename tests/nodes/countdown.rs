//! Countdowns across restarts, outages and refusals.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use berth_tests::waiting::until;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    ground::{Duty, Turn, acts, grounds},
    hook::{Hook, Verdict},
    metrics::Metrics,
    pod::Pod,
    scene::{Clock, PATIENCE, Scene},
    taint::{added, forever, no_execute, seconds, whole},
};

/// Waits for a time that was set for the scenario: here time itself is what is waited for.
pub(crate) async fn reaches(moment: Timestamp) {
    let left = moment.duration_since(Timestamp::now());
    tokio::time::sleep(left.try_into().unwrap_or_default()).await;
}

fn after(clock: Clock, seconds: i64) -> Timestamp {
    clock.from + SignedDuration::from_secs(seconds)
}

/// How often upstream tries to delete a pod before it forgets about it.
const UPSTREAM_ATTEMPTS: usize = 5;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Somebody who must agree to deletions of pods with a label, and does not for a while.
struct Objector {
    hook: Hook,
    agrees: Arc<AtomicBool>,
    path: String,
}

impl Objector {
    async fn call(scene: &Scene) -> Self {
        let agrees = Arc::new(AtomicBool::new(false));
        let decides = Arc::clone(&agrees);
        let hook = Hook::new(move |request| {
            let is_probe = request["name"].as_str().is_some_and(|name| name.starts_with("probe"));
            let allowed = is_probe || decides.load(Ordering::Relaxed);
            Verdict::Say(json!({"allowed": allowed, "status": {"message": "not now", "code": 403}}))
        })
        .await;
        let name = scene.name("objector");
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "objector.berth.dev", "clientConfig": hook.client_config(), "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 10,
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"],
                    "scope": "Namespaced",
                }],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
            }],
        });
        scene.caller.post(CONFIGURATIONS, &configuration).await.ok();
        let objector = Self { hook, agrees, path: format!("{CONFIGURATIONS}/{name}") };
        // A server takes a moment to know whom to ask.
        let mut number = 0;
        until("the objector being asked", PATIENCE, async || {
            number += 1;
            let probe = format!("probe{number}");
            scene.pod(Pod::named(&probe)).await;
            scene.caller.delete(&scene.pod_path(&probe)).await.ok();
            if objector.hook.asked().is_empty() { Err("nobody asks".to_owned()) } else { Ok(()) }
        })
        .await;
        objector
    }

    /// How often it was asked about a pod.
    fn asked(&self, pod: &str) -> usize {
        let about = |review: &&Value| review["request"]["name"] == pod;
        self.hook.asked().iter().filter(about).count()
    }

    fn agree(&self) {
        self.agrees.store(true, Ordering::Relaxed);
    }

    async fn dismiss(self, scene: &Scene) {
        scene.caller.delete(&self.path).await.ok();
    }
}

grounds! {
    /// Who is killed in the middle of a countdown, and started again, acts when the time is up, by ours. Upstream's countdown
    /// begins anew: that much too late it is.
    ///
    /// Upstream: node-defects "1".
    /// Upstream: not-upstream "restart mid-countdown keeps deadline".
    turn async fn a_restart_keeps_the_moment(turn: &mut Turn<'_>) {
        const GIVEN: i64 = 6;
        let Some(mut controllers) = turn.run("restarted", Duty::Eviction, &[]).await else { return };
        let scene = &turn.scene;
        acts(scene).await;
        for node in ["timed", "untimed"] {
            scene.node(node).await;
            scene.pod(Pod::named(&format!("on-{node}")).on(node).tolerating([seconds("a", GIVEN)])).await;
        }
        let timed = scene.taint_now("timed", &[added("a", Timestamp::now())]).await;
        let untimed = scene.taint_now("untimed", &[no_execute("a")]).await;
        reaches(after(timed, GIVEN / 2)).await;
        controllers.kill();
        let restarted = Timestamp::now();
        if turn.scene.is_ours() {
            controllers.start().await.unwrap();
            scene.leaves_after("on-timed", timed, GIVEN).await;
            scene.leaves_after("on-untimed", untimed, GIVEN).await;
        } else {
            controllers.launch_again().unwrap();
            for pod in ["on-timed", "on-untimed"] {
                let left = scene.leaves(pod).await;
                assert!(left >= restarted + SignedDuration::from_secs(GIVEN), "{pod} left at {left}, from {restarted}");
            }
        }
    }

    /// What fell due while nobody was there is done when somebody is.
    quiet async fn what_fell_due_meanwhile_is_done_at_once(turn: &mut Turn<'_>) {
        let Some(mut controllers) = turn.run("absent", Duty::Eviction, &[]).await else { return };
        let scene = &turn.scene;
        acts(scene).await;
        controllers.kill();
        scene.tainted_node("n", &[]).await;
        scene.pods([
            Pod::named("due").on("n").tolerating([seconds("a", 1)]),
            Pod::named("bare").on("n"),
            Pod::named("long").on("n").tolerating([seconds("a", 600)]),
            Pod::named("infinite").on("n").tolerating([forever("a")]),
        ]).await;
        let clock = scene.taint_now("n", &[added("a", Timestamp::now())]).await;
        reaches(after(clock, 2)).await;
        scene.stay(&["due", "bare", "long", "infinite"]);
        controllers.launch_again().unwrap();
        let bare = scene.leaves("bare").await;
        let due = scene.leaves("due").await;
        if scene.is_ours() {
            assert!(due.duration_since(bare).abs() < SignedDuration::from_millis(900), "{bare} {due}");
        } else {
            // It has all its time once more.
            assert!(due.duration_since(bare) > SignedDuration::from_millis(900), "{bare} {due}");
        }
        scene.passes_on("n").await;
        scene.stay(&["long", "infinite"]);
    }

    /// How late a pod left is told in seconds, counted from the moment that was due, also where nobody was there then. Upstream
    /// tells nanoseconds for seconds, so that its buckets are empty.
    ///
    /// Upstream: node-defects "10".
    ours quiet async fn how_late_a_pod_left_is_told_in_seconds(turn: &mut Turn<'_>) {
        const NAME: &str = "taint_eviction_controller_pod_deletion_duration_seconds";
        let scene = &turn.scene;
        scene.node("n").await;
        scene.pod(Pod::named("late").on("n").tolerating([seconds("a", 1)])).await;
        let clock = scene.taint_now("n", &[added("a", Timestamp::now())]).await;
        reaches(after(clock, 5)).await;
        let Some(controllers) = turn.run("late", Duty::Eviction, &[]).await else { return };
        let scene = &turn.scene;
        scene.leaves("late").await;
        scene.pod(Pod::named("in-time").on("n").tolerating([seconds("a", 1)])).await;
        scene.leaves("in-time").await;
        let told = until("both being told of", PATIENCE, async || {
            let told = Metrics::of(&controllers).await;
            let count = told.sum("taint_eviction_controller_pod_deletions_total", &[]);
            if count == 2 { Ok(told) } else { Err(format!("{count}")) }
        }).await;
        let within = |seconds: &str| told.sum(&format!("{NAME}_bucket"), &[&format!("le=\"{seconds}\"")]);
        assert_eq!((within("2.5"), within("240.0"), told.sum(&format!("{NAME}_count"), &[])), (1, 2, 2), "{told:?}");
        let sum = told.sum(&format!("{NAME}_sum"), &[]);
        assert!((3..60).contains(&sum), "4 seconds late, and not late: {sum} s together");
    }

    /// A deletion that somebody refuses is asked for until he agrees, by ours. Upstream asks five times within moments and
    /// never again.
    ///
    /// Upstream: node-defects "3".
    /// Upstream: not-upstream "delete denied by webhook then allowed".
    eviction async fn a_deletion_that_is_refused_is_asked_for_again(scene: &Scene) {
        let objector = Objector::call(scene).await;
        scene.node("n").await;
        scene.pod(Pod::named("p").on("n")).await;
        scene.taint("n", &[no_execute("a")]).await;
        until("several attempts", PATIENCE, async || {
            let asked = objector.asked("p");
            let enough = if scene.is_ours() { 3 } else { UPSTREAM_ATTEMPTS };
            if asked >= enough { Ok(()) } else { Err(format!("{asked} so far")) }
        }).await;
        assert!(scene.fate("p").unwrap().left.is_none());
        objector.agree();
        if scene.is_ours() {
            scene.leaves("p").await;
        } else {
            scene.passes_on("n").await;
            assert_eq!(objector.asked("p"), UPSTREAM_ATTEMPTS);
            assert!(scene.fate("p").unwrap().left.is_none(), "upstream remembers it after all");
        }
        objector.dismiss(scene).await;
    }

    /// A pod whose time is up while there is no API server leaves when there is one, by ours. Upstream forgets it.
    ///
    /// Upstream: node-defects "3".
    /// Upstream: not-upstream "apiserver down at fire time".
    turn async fn an_outage_at_the_moment_loses_nothing(turn: &mut Turn<'_>) {
        const GIVEN: i64 = 8;
        let Some(mut controllers) = turn.run("outage", Duty::Eviction, &[]).await else { return };
        let scene = &turn.scene;
        acts(scene).await;
        scene.node("n").await;
        scene.pods([
            Pod::named("p").on("n").tolerating([seconds("a", GIVEN)]),
            Pod::named("long").on("n").tolerating([seconds("a", 600)]),
        ]).await;
        let clock = scene.taint_now("n", &[added("a", Timestamp::now())]).await;
        scene.passes_on("n").await;
        assert!(Timestamp::now() < after(clock, GIVEN), "the machine is too slow for this scenario");
        turn.bed.kill();
        // Whoever counts from when he saw it is done by then, too.
        reaches(clock.to + SignedDuration::from_millis(GIVEN * 1000 + 500)).await;
        assert!(controllers.ended().is_none(), "a lost server is waited for");
        turn.start_server().await;
        let scene = &turn.scene;
        if scene.is_ours() {
            scene.leaves("p").await;
            scene.passes_on("n").await;
        } else {
            scene.passes_on("n").await;
            scene.stay(&["p"]);
        }
        scene.stay(&["long"]);
    }

    /// A time that was written down stays as it is over any number of restarts, and who comes to the node later counts by it.
    ours turn async fn a_time_that_was_given_is_kept(turn: &mut Turn<'_>) {
        let Some(mut controllers) = turn.run("kept", Duty::Eviction, &[]).await else { return };
        let scene = &turn.scene;
        scene.node("n").await;
        scene.pod(Pod::named("p").on("n").tolerating([seconds("a", 600)])).await;
        scene.taint("n", &[no_execute("a")]).await;
        let has_time = |node: &Value| node["spec"]["taints"][0]["timeAdded"].is_string();
        let node = scene.node_is("n", "having a time", has_time).await;
        for _ in 0..2 {
            controllers.kill();
            controllers.start().await.unwrap();
            scene.passes_on("n").await;
        }
        let after = scene.caller.get(&scene.node_path("n")).await.ok();
        assert_eq!(after["metadata"]["resourceVersion"], node["metadata"]["resourceVersion"], "{after}");
        // Removed and added again it is another one.
        scene.untaint("n").await;
        scene.event("p", "TaintManagerEviction", "Cancelling deletion").await;
        let before = whole(Timestamp::now());
        scene.taint("n", &[no_execute("a")]).await;
        let node = scene.node_is("n", "having a time", has_time).await;
        let given: Timestamp = node["spec"]["taints"][0]["timeAdded"].as_str().unwrap().parse().unwrap();
        assert!(given >= before, "{given} {before}");
        scene.stay(&["p"]);
    }
}
