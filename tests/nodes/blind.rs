//! Who can write and cannot see: a taint that has gone meanwhile makes nobody leave.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Method;
use jiff::{SignedDuration, Timestamp};

use crate::{
    countdown::reaches,
    gate::{Gate, Outcome},
    ground::{Duty, Turn, grounds},
    pod::Pod,
    taint::{added, seconds},
};

/// For how long pods bear the taint: long enough for the sight to be lost before.
const BORNE: i64 = 15;

grounds! {
    /// Nodes are neither listed nor watched any more while pods are armed, and everything else goes on: nobody leaves by what was
    /// known before. When nodes are seen again, whose taint has gone stays, and whose taint has not leaves.
    ours turn async fn nobody_leaves_by_what_cannot_be_seen_any_more(turn: &mut Turn<'_>) {
        let is_blind = Arc::new(AtomicBool::new(false));
        let judge = Arc::clone(&is_blind);
        let gate = Gate::open(turn.bed, move |method, path| {
            let is_refused = *method == Method::GET && path == "/api/v1/nodes" && judge.load(Ordering::SeqCst);
            if is_refused { Outcome::Refuse(403) } else { Outcome::Pass }
        }).await;
        let contestant = turn.scene.contestant;
        let started = contestant.start(turn.bed, gate.kubeconfig(), "blind", Duty::Eviction, &[]).await;
        let Some(_controllers) = started else { return };
        let scene = &turn.scene;
        for node in ["cured", "ill"] {
            scene.node(node).await;
            scene.pod(Pod::named(&format!("on-{node}")).on(node).tolerating([seconds("a", BORNE)])).await;
        }
        let now = Timestamp::now();
        for node in ["cured", "ill"] {
            scene.taint(node, &[added("a", now)]).await;
        }
        // It is known, and the sight is lost after that.
        scene.passes().await;
        is_blind.store(true, Ordering::SeqCst);
        gate.forget_watches(0);
        tokio::time::sleep(Duration::from_secs(1)).await;
        scene.untaint("cured").await;
        reaches(now + SignedDuration::from_secs(BORNE + 3)).await;
        scene.stay(&["on-cured", "on-ill"]);
        assert!(gate.answered(&Method::DELETE).iter().all(|deletion| !deletion.path.contains("/on-")));
        is_blind.store(false, Ordering::SeqCst);
        scene.leaves("on-ill").await;
        scene.stay(&["on-cured"]);
    }
}
