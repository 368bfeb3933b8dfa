//! The webhook's account, held against the audit log as the controllers' is.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use berth_tests::caller::{Caller, text};
use kube::Config;
use serde_json::{Value, json};

use crate::{
    ground::{Ground, run},
    pod::Pod,
    proof::{all_used, none_refused},
    rules::granted,
};

const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/berth-admission";

/// What the API server would ask about a new object of somebody.
fn review(resource: &str, kind: &str, object: &Value) -> Value {
    let version = if kind == "ManagedCluster" { "v1" } else { "v1beta2" };
    let group = "cluster.open-cluster-management.io";
    let mut object = object.clone();
    object["apiVersion"] = json!(format!("{group}/{version}"));
    object["kind"] = json!(kind);
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "dryRun": false,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": resource},
            "requestKind": {"group": group, "version": version, "kind": kind},
            "requestResource": {"group": group, "version": version, "resource": resource},
            "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
            "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
            "object": object, "oldObject": null,
        },
    })
}

/// A client that trusts whom the configuration says, and expects the Service's name there, as the API server does.
async fn as_the_api_server(ground: &Ground, address: &str) -> Caller {
    let filled = |configuration: &Value| configuration["webhooks"][0]["clientConfig"]["caBundle"].is_string();
    let configuration = ground.caller.until(CONFIGURATION, "says whom to trust", filled).await;
    let bundle = BASE64_STANDARD.decode(text(&configuration, "/webhooks/0/clientConfig/caBundle")).unwrap();
    let pem = String::from_utf8(bundle).unwrap();
    let body: String =
        pem.lines().take_while(|line| !line.contains("END")).filter(|line| !line.contains("BEGIN")).collect();
    let mut config = Config::new(address.parse().unwrap());
    config.root_cert = Some(vec![BASE64_STANDARD.decode(body).unwrap()]);
    config.tls_server_name = Some("berth-webhook.berth-system.svc".to_owned());
    Caller::of(config)
}

#[test]
fn the_webhook_does_its_work_with_exactly_the_rights_it_is_given() {
    run(async {
        let Some(ground) = Ground::new().await else { return };
        let objects = ground.install(&[]).await;
        let is_webhook =
            |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["name"] == "berth-webhook";
        let deployment = objects.iter().find(is_webhook).unwrap();
        let Some(mut pod) = Pod::start(&ground, "webhook", deployment).await else { return };
        let line = pod.process.announcement().to_owned();
        let address = line.split_whitespace().find(|word| word.starts_with("https://")).unwrap();
        let server = as_the_api_server(&ground, address).await;
        // Who may bind? Not somebody.
        let binding =
            json!({"metadata": {"name": "blue", "namespace": "team"}, "spec": {"clusterSet": "blue"}});
        let asked = review("managedclustersetbindings", "ManagedClusterSetBinding", &binding);
        let answer = server.post("/validate?timeout=10s", &asked).await.ok();
        assert_eq!(answer["response"]["allowed"], false, "{answer}");
        // Who may accept a cluster? Who may, must not accept one whose namespace is going.
        ground.caller.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &json!({
            "metadata": {"name": "acceptor"},
            "rules": [
                {"apiGroups": ["register.open-cluster-management.io"], "resources": ["managedclusters/accept"], "verbs": ["update"]},
                {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclustersets/join"], "verbs": ["create"]},
            ],
        })).await.ok();
        ground.caller.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &json!({
            "metadata": {"name": "somebody-accepts"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "acceptor"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "somebody"}],
        })).await.ok();
        let cluster = json!({"metadata": {"name": "default"}, "spec": {"hubAcceptsClient": true}});
        let asked = review("managedclusters", "ManagedCluster", &cluster);
        berth_tests::waiting::eventually("the cluster being let in", async || {
            let answer = server.post("/validate?timeout=10s", &asked).await.ok();
            (answer["response"]["allowed"] == true).then_some(())
        })
        .await;
        let rules = granted(&objects, "berth-webhook");
        all_used(&ground, &rules, &pod.user).await;
        pod.process.stop().await.unwrap();
        none_refused(&ground, &rules, &pod.user);
    });
}
