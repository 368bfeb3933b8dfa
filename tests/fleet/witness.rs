//! Who wrote what, in which order, as the API server saw it.
//!
//! A webhook that is asked about every write to the fleet's kinds in a namespace, and lets everything pass. Replicas go by names of
//! their own, so what it was asked tells who acted when; what was refused later, as by a conflict, is in it as well.

use std::{
    fs,
    path::{Path, PathBuf},
};

use berth_bed::Bed;
use berth_tests::caller::documents;
use serde_json::json;

use crate::{
    handle::{Fleet, GROUP},
    hook::{Hook, Verdict},
};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Writes until which a server must have learned of the witness.
const PROBES_MAX: usize = 1000;

/// Somebody who sees every write in a namespace.
pub(crate) struct Witness {
    hook: Hook,
    path: String,
}

impl Witness {
    pub(crate) async fn call(fleet: &Fleet) -> Self {
        let hook = Hook::new(|_| Verdict::Say(json!({"allowed": true}))).await;
        let name = fleet.name("witness");
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "witness.berth.dev", "clientConfig": hook.client_config(), "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 30,
                "rules": [{
                    "apiGroups": [GROUP.trim_start_matches("/apis/")], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["*/*"], "scope": "Namespaced",
                }],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": fleet.namespace}},
            }],
        });
        fleet.caller.post(CONFIGURATIONS, &configuration).await.ok();
        let witness = Self { hook, path: format!("{CONFIGURATIONS}/{name}") };
        // A server takes a moment to know whom to ask.
        let scores = fleet.path("v1alpha1", "addonplacementscores");
        let mut number = 0;
        while witness.hook.asked().is_empty() {
            number += 1;
            assert!(number < PROBES_MAX, "the witness was never asked");
            let probe = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore",
                "metadata": {"name": format!("probe{number}")},
            });
            fleet.caller.post(&scores, &probe).await.ok();
        }
        witness
    }

    /// Who wrote to objects of the scenario's namespace so far, one for each write.
    pub(crate) fn writers(&self, fleet: &Fleet) -> Vec<String> {
        let asked = self.hook.asked();
        let ours = asked.iter().map(|review| &review["request"]);
        let ours = ours.filter(|request| request["namespace"] == *fleet.namespace);
        ours.map(|request| request["userInfo"]["username"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The server asks no more. It may be behind for a moment, which concerns nobody: it asks about one namespace only.
    pub(crate) async fn dismiss(self, fleet: &Fleet) {
        fleet.caller.delete(&self.path).await.ok();
    }
}

/// A kubeconfig like another, by which the administrator acts as somebody else.
pub(crate) fn named_kubeconfig(bed: &Bed, like: &Path, user: &str, groups: &[&str]) -> PathBuf {
    let text = fs::read_to_string(like).unwrap();
    let mut config = documents(&text).pop().unwrap();
    let identity = &mut config["users"][0]["user"];
    identity["as"] = json!(user);
    identity["as-groups"] = json!(groups);
    let path = bed.folder().join(format!("kubeconfig-{user}"));
    fs::write(&path, config.to_string()).unwrap();
    path
}
