//! Somebody who plays a node's kubelet: says that the node is well, and goes on saying that it lives.
//!
//! On a thread of its own: what it says must not wait for a scenario, nor end with the one that happened to start it.

use std::{
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use http::{Request, header};
use jiff::Timestamp;
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::{scene::Scene, taint::whole};

/// Where kubelets keep their leases.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// How often a lease is renewed: several times within the grace that scenarios give.
const PULSE: Duration = Duration::from_millis(500);

/// A kubelet that renews its lease until it falls silent.
pub(crate) struct Kubelet {
    /// Nothing is ever sent: that it is gone is the message.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Kubelet {
    /// Makes a node of the scenario's own zone, which is well.
    pub(crate) async fn start(scene: &Scene, node: &str) -> Self {
        Self::apart(scene, node, "zone").await
    }

    /// The same in another zone, whose name is the scenario's as well.
    pub(crate) async fn apart(scene: &Scene, node: &str, zone: &str) -> Self {
        scene.node_of(node, &in_zone(scene, zone), &[]).await;
        Self::take(scene, node).await
    }

    /// Lets a node that is there be well.
    pub(crate) async fn take(scene: &Scene, node: &str) -> Self {
        let kubelet = Self::mute(scene, node).await;
        says(scene, node, &[("Ready", "True")]).await;
        kubelet
    }

    /// Lets a node that is there live, without a word about how it is.
    pub(crate) async fn mute(scene: &Scene, node: &str) -> Self {
        let name = scene.name(node);
        lapses(scene, node).await;
        let (stop, stopped) = channel::<()>();
        let (config, path) = (scene.config.clone(), format!("{LEASES}/{name}"));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            while stopped.recv_timeout(PULSE) == Err(RecvTimeoutError::Timeout) {
                // Like a kubelet, it goes on trying where there is no API server.
                let _: Option<()> = runtime.block_on(renew(&config, &path));
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }

    /// From here on it says nothing.
    pub(crate) fn falls_silent(self) {
        drop(self);
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // One that failed has nobody to tell but the scenario, which sees its node go silent.
            let _ = thread.join();
        }
    }
}

/// Lets a node have a kubelet that counts as there for the whole scenario and does nothing. The hub ends pods itself where there
/// is none.
pub(crate) async fn hangs(scene: &Scene, node: &str) {
    lease(scene, node, 3_600).await;
}

/// Gives a node a lease that nobody renews.
pub(crate) async fn lapses(scene: &Scene, node: &str) {
    lease(scene, node, 40).await;
}

async fn lease(scene: &Scene, node: &str, seconds: u32) {
    let name = scene.name(node);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": seconds, "renewTime": now()},
    });
    scene.caller.apply_to(&format!("{LEASES}/{name}?fieldManager=kubelet&force=true"), &lease).await.ok();
}

/// By a connection of its own each time: the last one's may lead nowhere.
async fn renew(config: &Config, path: &str) -> Option<()> {
    let client = Client::try_from(config.clone()).ok()?;
    let request = Request::patch(path).header(header::CONTENT_TYPE, "application/merge-patch+json");
    let body = json!({"spec": {"renewTime": now()}}).to_string().into_bytes();
    client.request::<Value>(request.body(body).ok()?).await.ok().map(drop)
}

fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

/// The labels of a zone.
pub(crate) fn in_zone(scene: &Scene, zone: &str) -> Value {
    json!({"topology.kubernetes.io/region": "scenarios", "topology.kubernetes.io/zone": scene.name(zone)})
}

/// Posts conditions of a node, as its kubelet does; the ones not named stay.
pub(crate) async fn says(scene: &Scene, node: &str, conditions: &[(&str, &str)]) {
    let now = whole(Timestamp::now()).to_string();
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status)| {
            json!({
                "type": kind, "status": status, "reason": "Scenario", "message": "",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            })
        })
        .collect();
    let path = format!("{}/status", scene.node_path(node));
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    let body = json!({"status": {"conditions": conditions}}).to_string();
    scene.caller.send(http::Method::PATCH, &path, &headers, Some(body)).await.ok();
}
