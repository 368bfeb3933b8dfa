//! What a webhook says where it cannot do what it was started for, and what it leaves behind.

use berth_bed::{Bed, Companion, berth, or_skip};
use berth_tests::{caller::Caller, waiting::eventually};
use serde_json::{Value, json};

use crate::ground::{BESIDE, Ground, alone, until_asked};

const CONFIGURATIONS: [(&str, &str); 2] = [
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
];

fn path(plural: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{plural}/berth-admission")
}

/// Starts a webhook that will not announce itself yet.
fn launch(bed: &Bed, name: &'static str, flags: &[&str]) -> Option<Companion> {
    let arguments = ["webhook".to_owned(), format!("--kubeconfig={}", bed.kubeconfig().display())];
    let arguments = arguments.into_iter().chain(flags.iter().map(ToString::to_string));
    or_skip(berth().and_then(|program| Companion::launch(bed, name, program, arguments.collect())))
}

async fn says(webhook: &Companion, words: &str) {
    eventually(words, async || webhook.log().contains(words).then_some(())).await;
}

/// Configurations of somebody else that lead to a Service.
async fn installed(admin: &Caller) {
    for (kind, plural) in CONFIGURATIONS {
        let webhook = json!({
            "name": "managedclusters.admission.berth.dev", "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "failurePolicy": "Ignore",
            "clientConfig": {"service": {"namespace": "default", "name": "berth-webhook"}},
            "rules": [{"apiGroups": ["none.example"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["things"]}],
        });
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "berth-admission"}, "webhooks": [webhook],
        });
        let collection = path(plural).replace("/berth-admission", "?fieldManager=installer");
        admin.post(&collection, &configuration).await.ok();
    }
}

async fn another_door(bed: &mut Bed) {
    let admin = Caller::admin(bed);
    installed(&admin).await;
    let Some(mut webhook) = launch(bed, "outside", BESIDE) else { return };
    says(
        &webhook,
        "are installer's and have the API server come by a Service: choose another --configuration",
    )
    .await;
    for (_, plural) in CONFIGURATIONS {
        let found = admin.get(&path(plural)).await.ok();
        assert_eq!(found["webhooks"][0]["clientConfig"]["url"], Value::Null, "nothing was merged into it");
        admin.delete(&path(plural)).await.ok();
    }
    until_asked(&admin).await;
    webhook.stop().await.unwrap();
    let log = webhook.log();
    assert!(
        log.contains("still registered") && log.contains("kubectl delete mutatingwebhookconfigurations"),
        "{log}"
    );
}

async fn no_namespace(bed: &mut Bed) {
    let admin = Caller::admin(bed);
    // No configurations either: nobody asks it.
    let flags: Vec<&str> = BESIDE
        .iter()
        .copied()
        .filter(|flag| !flag.starts_with("--url") && !flag.starts_with("--namespace"))
        .chain(["--namespace=harbour"])
        .collect();
    let Some(mut webhook) = launch(bed, "homeless", &flags) else { return };
    says(&webhook, "make it with kubectl create namespace harbour").await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harbour"}});
    admin.post("/api/v1/namespaces", &namespace).await.ok();
    says(&webhook, "nobody asks here: the webhook configurations berth-admission are missing").await;
    installed(&admin).await;
    says(&webhook, "both webhook configurations berth-admission are there").await;
    webhook.stop().await.unwrap();
    assert!(!webhook.log().contains("still registered"), "they are somebody else's");
}

#[test]
fn configurations_that_lead_another_way_stay_as_they_are_on_the_hub() {
    alone(Ground::Hub, another_door);
}

#[test]
fn configurations_that_lead_another_way_stay_as_they_are_on_kubernetes() {
    alone(Ground::Kubernetes, another_door);
}

#[test]
fn what_is_missing_is_told_with_what_to_do_on_the_hub() {
    alone(Ground::Hub, no_namespace);
}

#[test]
fn what_is_missing_is_told_with_what_to_do_on_kubernetes() {
    alone(Ground::Kubernetes, no_namespace);
}
