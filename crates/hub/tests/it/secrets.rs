//! Tokens in Secrets, and the authority's certificate in every namespace.

use berth_hub::{Hub, HubOptions};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const NAMESPACE: &str = "default";

fn api<K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(hub: &Hub) -> Api<K> {
    Api::namespaced(hub.client(), NAMESPACE)
}

/// The object, once it is as it should be.
async fn until<K>(api: &Api<K>, name: &str, is: impl Fn(Option<&K>) -> bool) -> Option<K>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    loop {
        let found = api.get_opt(name).await.unwrap();
        if is(found.as_ref()) {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

fn token_secret(name: &str) -> Secret {
    let annotations = json!({"kubernetes.io/service-account.name": "robot"});
    serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": annotations}, "type": "kubernetes.io/service-account-token",
    }))
    .unwrap()
}

fn robot() -> ServiceAccount {
    serde_json::from_value(json!({"metadata": {"name": "robot"}})).unwrap()
}

/// Whom a token stands for.
async fn review(hub: &Hub, token: &str) -> Value {
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let request = http::Request::post("/apis/authentication.k8s.io/v1/tokenreviews")
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .unwrap();
    hub.client().request::<Value>(request).await.unwrap()["status"].clone()
}

fn field(secret: &Secret, key: &str) -> String {
    let held = secret.data.as_ref().and_then(|data| data.get(key));
    held.map(|bytes| String::from_utf8(bytes.0.clone()).unwrap()).unwrap_or_default()
}

#[tokio::test]
async fn a_secret_for_a_service_account_is_filled_and_goes_with_the_account() {
    let hub = Hub::open(HubOptions::default()).await.unwrap();
    let (secrets, accounts) = (api::<Secret>(&hub), api::<ServiceAccount>(&hub));
    accounts.create(&PostParams::default(), &robot()).await.unwrap();
    secrets.create(&PostParams::default(), &token_secret("kept")).await.unwrap();
    let secret =
        until(&secrets, "kept", |secret| secret.is_some_and(|secret| secret.data.is_some())).await.unwrap();
    assert_eq!(field(&secret, "ca.crt"), hub.ca_pem());
    assert_eq!(field(&secret, "namespace"), NAMESPACE);
    let token = field(&secret, "token");
    let status = review(&hub, &token).await;
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:robot", "{status}");

    // A token that is replaced is no longer good; one that is taken out is made anew.
    let patch = json!({"data": {"token": null}});
    secrets.patch("kept", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let renewed =
        until(&secrets, "kept", |secret| secret.is_some_and(|secret| !field(secret, "token").is_empty()))
            .await;
    assert_ne!(field(&renewed.unwrap(), "token"), token);
    assert_ne!(review(&hub, &token).await["authenticated"], true);

    accounts.delete("robot", &DeleteParams::default()).await.unwrap();
    until(&secrets, "kept", |secret| secret.is_none()).await;
    hub.close().await;
}

#[tokio::test]
async fn a_secret_for_nobody_goes_and_others_are_left_alone() {
    let hub = Hub::open(HubOptions::default()).await.unwrap();
    let secrets = api::<Secret>(&hub);
    let plain: Secret = serde_json::from_value(json!({"metadata": {"name": "plain"}})).unwrap();
    secrets.create(&PostParams::default(), &plain).await.unwrap();
    secrets.create(&PostParams::default(), &token_secret("orphan")).await.unwrap();
    until(&secrets, "orphan", |secret| secret.is_none()).await;
    assert_eq!(secrets.get("plain").await.unwrap().data, None);
    hub.close().await;
}

#[tokio::test]
async fn every_namespace_has_the_certificate_of_the_authority() {
    let hub = Hub::open(HubOptions::default()).await.unwrap();
    let right = |map: Option<&ConfigMap>| {
        let held = map.and_then(|map| map.data.as_ref()?.get("ca.crt").cloned());
        held.is_some_and(|held| held == hub.ca_pem())
    };
    let namespaces: Api<Namespace> = Api::all(hub.client());
    let new: Namespace = serde_json::from_value(json!({"metadata": {"name": "new"}})).unwrap();
    namespaces.create(&PostParams::default(), &new).await.unwrap();
    for name in ["default", "kube-system", "new"] {
        until(&Api::namespaced(hub.client(), name), "kube-root-ca.crt", right).await;
    }
    let maps: Api<ConfigMap> = Api::namespaced(hub.client(), "new");
    maps.delete("kube-root-ca.crt", &DeleteParams::default()).await.unwrap();
    until(&maps, "kube-root-ca.crt", right).await;
    let patch = json!({"data": {"ca.crt": "forged"}});
    maps.patch("kube-root-ca.crt", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    until(&maps, "kube-root-ca.crt", right).await;
    namespaces.delete("new", &DeleteParams::default()).await.unwrap();
    until(&namespaces, "new", |namespace| namespace.is_none()).await;
    hub.close().await;
}
