//! The webhook in front of the API server, with no trust in the controllers: what it asks about them is seen.
//!
//! So it is where kustomize has put everything into another namespace: the configurations name an account that is not theirs.

use berth_tests::{
    caller::{documents, text},
    waiting::eventually,
};
use serde_json::{Value, json};

use crate::{
    ground::{GROUP, Ground},
    pod::Pod,
    proof::none_refused,
    rules::granted,
    team::as_list,
};

const CONFIGURATIONS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
/// The condition by which the controllers' own writes are not asked about.
const TRUST: &str = "not-the-controllers";

/// A webhook that is asked about everybody.
pub(crate) struct Guard {
    pod: Pod,
    /// What was installed for it, and for the controller.
    pub(crate) objects: Vec<Value>,
}

impl Guard {
    /// Installs a controller with the webhook and waits until it is asked; nothing where pods cannot run.
    pub(crate) async fn post(ground: &Ground, namespace: &str, controller: &str) -> Option<Self> {
        let flags = ["install", "--namespace", namespace, "--controllers", controller];
        let mut objects = documents(&ground.print(&flags));
        for configuration in objects.iter_mut().filter(|object| is_configuration(object)) {
            for webhook in configuration["webhooks"].as_array_mut().unwrap() {
                let conditions = webhook["matchConditions"].as_array_mut().unwrap();
                let before = conditions.len();
                conditions.retain(|condition| condition["name"] != TRUST);
                assert_eq!(conditions.len() + 1, before, "every webhook trusts the controllers: {webhook}");
            }
        }
        ground.kubectl(&["apply", "--server-side", "--validate=strict", "-f", "-"], &as_list(&objects));
        let is_it =
            |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["name"] == "berth-webhook";
        let pod = Pod::start(ground, "guard", objects.iter().find(is_it).unwrap()).await?;
        pod.serve(ground, "berth-webhook", 443).await;
        asked(ground).await;
        Some(Self { pod, objects })
    }

    /// Has nobody asked any more.
    pub(crate) async fn leave(mut self, ground: &Ground) {
        for configuration in self.objects.iter().filter(|object| is_configuration(object)) {
            let plural = format!("{}s", text(configuration, "/kind").to_lowercase());
            let name = text(configuration, "/metadata/name");
            ground
                .caller
                .delete(&format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}"))
                .await
                .ok();
        }
        let good = cluster("probe-of-the-rules");
        let target = format!("{GROUP}/v1/managedclusters?dryRun=All");
        eventually("the rules not being asked", async || {
            let made = ground.caller.post(&target, &good).await;
            (made.code == 201 && !is_dated(&made.body)).then_some(())
        })
        .await;
        self.pod.process.stop().await.unwrap();
        none_refused(ground, &granted(&self.objects, "berth-webhook"), &self.pod.user);
    }
}

fn is_configuration(object: &Value) -> bool {
    CONFIGURATIONS.iter().any(|kind| object["kind"] == *kind)
}

/// Waits until the API server has heard of both configurations and finds the webhook, by dry runs.
async fn asked(ground: &Ground) {
    let (bad, good) = (cluster("probe.of.the.rules"), cluster("probe-of-the-rules"));
    let target = format!("{GROUP}/v1/managedclusters?dryRun=All");
    eventually("the rules being asked", async || {
        let is_refused = ground.caller.post(&target, &bad).await.code == 400;
        (is_refused && is_dated(&ground.caller.post(&target, &good).await.body)).then_some(())
    })
    .await;
}

/// Whether somebody has written down since when it is tainted, as the mutating rules do.
fn is_dated(cluster: &Value) -> bool {
    cluster["spec"]["taints"][0]["timeAdded"].is_string()
}

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name}, "spec": {"taints": [{"key": "a", "effect": "NoSelect"}]},
    })
}
