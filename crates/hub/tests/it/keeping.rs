//! What the hub keeps in order by itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use berth_hub::{Hub, HubOptions};
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

fn api(hub: &Hub, group: &str, kind: &str, plural: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(hub.client(), namespace, &resource),
        None => Api::all_with(hub.client(), &resource),
    }
}

async fn make(api: &Api<DynamicObject>, object: Value) {
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

async fn gone(api: &Api<DynamicObject>, name: &str) {
    while api.get_opt(name).await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_nothing_but_what_asks_it() {
    let hub = Hub::open(HubOptions::default()).await.unwrap();
    let namespaces = api(&hub, "", "Namespace", "namespaces", None);
    for name in ["slow", "quick"] {
        make(&namespaces, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
        let maps = api(&hub, "", "ConfigMap", "configmaps", Some(name));
        make(&maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})).await;
    }
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let hooks = api(
        &hub,
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        None,
    );
    let rule = json!({"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
    let hook = json!({
        "name": "silent.example.com", "clientConfig": {"url": url, "caBundle": STANDARD.encode(hub.ca_pem())}, "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 30, "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "slow"}},
    });
    make(
        &hooks,
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "silent"}, "webhooks": [hook]}),
    )
    .await;
    namespaces.delete("slow", &DeleteParams::default()).await.unwrap();
    // Held open and never answered.
    let _asked = silent.accept().await.unwrap();
    namespaces.delete("quick", &DeleteParams::default()).await.unwrap();
    gone(&namespaces, "quick").await;
    assert!(namespaces.get_opt("slow").await.unwrap().is_some());
    hub.close().await;
}

#[tokio::test]
async fn a_namespace_of_many_objects_ends_and_so_do_their_dependents() {
    let hub = Hub::open(HubOptions::default()).await.unwrap();
    let namespaces = api(&hub, "", "Namespace", "namespaces", None);
    make(&namespaces, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}})).await;
    let maps = api(&hub, "", "ConfigMap", "configmaps", Some("many"));
    for index in 0..100 {
        let name = format!("m{index}");
        make(&maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})).await;
    }
    let owner = maps.get("m0").await.unwrap().metadata.uid.unwrap();
    let secrets = api(&hub, "", "Secret", "secrets", Some("many"));
    for index in 0..10 {
        let references = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "m0", "uid": owner}]);
        make(
            &secrets,
            json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": format!("s{index}"), "ownerReferences": references}}),
        )
        .await;
    }
    maps.delete("m0", &DeleteParams::default()).await.unwrap();
    for index in 0..10 {
        gone(&secrets, &format!("s{index}")).await;
    }
    namespaces.delete("many", &DeleteParams::default()).await.unwrap();
    gone(&namespaces, "many").await;
    assert!(maps.get_opt("m1").await.unwrap().is_none());
    hub.close().await;
}
