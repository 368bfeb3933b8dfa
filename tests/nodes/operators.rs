//! Tolerations that compare numbers: `Gt` and `Lt`, behind a feature gate of Kubernetes' servers.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    ground::{Contestant, grounds},
    pod::Pod,
    scene::Scene,
    taint::{added, no_execute_of},
};

/// What is compared: a promise that the node's provider makes.
const KEY: &str = "example.org/sla";

fn compares(operator: &str, value: &str) -> Value {
    json!({"key": KEY, "operator": operator, "value": value, "effect": "NoExecute"})
}

fn on_n(name: &str, operator: &str, value: &str) -> Pod {
    Pod::named(name).on("n").tolerating([compares(operator, value)])
}

/// Whether there can be such pods at all: the hub is as a kube-apiserver whose gate is shut, and takes none.
async fn can_compare(scene: &Scene) -> bool {
    if scene.contestant == Contestant::Hub {
        for operator in ["Gt", "Lt"] {
            scene.try_pod(on_n("refused", operator, "950")).await.refused(422);
        }
    }
    scene.contestant != Contestant::Hub
}

grounds! {
    /// Who says from where on a number is good enough stays while it is; what is no number never is.
    ///
    /// Upstream: scheduler/taint/taint_test.go
    /// "TestTaintNodeByCondition: node with numeric taint - pods with Lt or Gt tolerations, and NoExecute effect".
    numbers async fn numbers_are_compared(scene: &Scene) {
        scene.node("n").await;
        if !can_compare(scene).await {
            return;
        }
        scene.node("odd").await;
        let unrated = |name: &str, operator: &str| {
            Pod::named(name).on("odd").tolerating([compares(operator, "0")])
        };
        scene.pods([
            on_n("above", "Gt", "950"), on_n("not-above", "Gt", "990"), on_n("far-from-above", "Gt", "1000"),
            on_n("below", "Lt", "1000"), on_n("not-below", "Lt", "990"), on_n("negative", "Gt", "-5"),
            on_n("equal", "Equal", "990"), unrated("odd-above", "Gt"), unrated("odd-below", "Lt"),
        ]).await;
        scene.taint("n", &[no_execute_of(KEY, "990")]).await;
        scene.taint("odd", &[no_execute_of(KEY, "unrated")]).await;
        scene.all_leave(&["not-above", "far-from-above", "not-below", "odd-above", "odd-below"]).await;
        scene.passes_on("n").await;
        scene.stay(&["above", "below", "negative", "equal"]);
    }

    /// A taint whose value changes is another one to those who compare: who could live with 990 may not live with 900, and
    /// who could not live with less is not called back by more.
    ///
    /// Upstream: not-upstream "a value that changes under `Gt` and `Lt`".
    numbers async fn a_value_that_changes_is_compared_again(scene: &Scene) {
        scene.node("n").await;
        if !can_compare(scene).await {
            return;
        }
        scene.pods([
            on_n("strict", "Gt", "950"), on_n("modest", "Gt", "850"), on_n("bounded", "Lt", "1000"),
        ]).await;
        scene.taint("n", &[no_execute_of(KEY, "990")]).await;
        scene.passes_on("n").await;
        scene.stay(&["strict", "modest", "bounded"]);
        scene.taint("n", &[no_execute_of(KEY, "900")]).await;
        scene.leaves("strict").await;
        scene.passes_on("n").await;
        scene.stay(&["modest", "bounded"]);
        scene.taint("n", &[no_execute_of(KEY, "1000")]).await;
        scene.leaves("bounded").await;
        scene.passes_on("n").await;
        scene.stay(&["modest"]);
    }

    /// Who tolerates a number for a while is given it from when the taint was added, and forgiven when the number is good again.
    numbers async fn a_number_is_tolerated_for_a_while(scene: &Scene) {
        scene.node("n").await;
        if !can_compare(scene).await {
            return;
        }
        let for_a_while = |name: &str, given: i64| {
            let mut poor = compares("Lt", "950");
            poor["tolerationSeconds"] = json!(given);
            on_n(name, "Gt", "949").tolerating([poor])
        };
        scene.pods([for_a_while("short", 2), for_a_while("long", 6)]).await;
        scene.taint("n", &[no_execute_of(KEY, "990")]).await;
        scene.passes_on("n").await;
        // Times are whole seconds, and the one before may have been given this one.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let mut worse = added(KEY, Timestamp::now());
        worse["value"] = json!("900");
        let clock = scene.taint_now("n", &[worse]).await;
        scene.leaves_after("short", clock, 2).await;
        scene.taint("n", &[no_execute_of(KEY, "990")]).await;
        scene.event("long", "TaintManagerEviction", "Cancelling deletion").await;
        scene.passes_on("n").await;
        scene.stay(&["long"]);
    }

    /// An operator of a day to come is nothing that a server lets in; what is done about one that came in all the same, the
    /// controller's own tests show.
    numbers async fn an_operator_that_nobody_knows_is_not_let_in(scene: &Scene) {
        scene.node("n").await;
        scene.try_pod(on_n("p", "Near", "950")).await.refused(422);
    }
}
