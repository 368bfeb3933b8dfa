//! A hub in memory and a client without a socket.

use berth_hub::{Hub, HubOptions};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use futures::{StreamExt as _, TryStreamExt as _};

async fn hub() -> Hub {
    Hub::open(HubOptions::default()).await.unwrap()
}

fn api(hub: &Hub, version: &str, kind: &str, plural: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(hub.client(), namespace, &resource),
        None => Api::all_with(hub.client(), &resource),
    }
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_new_hub_has_the_four_namespaces_and_an_account_in_each() {
    let hub = hub().await;
    let namespaces = api(&hub, "v1", "Namespace", "namespaces", None);
    let names: Vec<String> = namespaces
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|n| n.metadata.name)
        .collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    hub.close().await;
}

#[tokio::test]
async fn an_object_is_made_changed_watched_and_deleted() {
    let hub = hub().await;
    let maps = api(&hub, "v1", "ConfigMap", "configmaps", Some("default"));
    let made = maps.create(&PostParams::default(), &object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}))).await.unwrap();
    assert!(made.metadata.uid.is_some());
    let version = made.metadata.resource_version.clone().unwrap();
    // The hub puts one of its own beside it.
    let this_one = WatchParams::default().fields("metadata.name=a");
    let mut events = maps.watch(&this_one, &version).await.unwrap().boxed();
    let patched =
        maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "w"}}))).await.unwrap();
    assert_ne!(patched.metadata.resource_version, Some(version));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let first = events.try_next().await.unwrap().unwrap();
    assert!(matches!(&first, WatchEvent::Modified(object) if object.data["data"]["k"] == "w"), "{first:?}");
    let second = events.try_next().await.unwrap().unwrap();
    assert!(matches!(second, WatchEvent::Deleted(_)), "{second:?}");
    assert!(maps.get("a").await.unwrap_err().to_string().contains("not found"));
    hub.close().await;
}

#[tokio::test]
async fn a_definition_is_served_by_the_time_it_is_made() {
    let hub = hub().await;
    let definitions =
        api(&hub, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", None);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}}}}}]}});
    definitions.create(&PostParams::default(), &object(definition)).await.unwrap();
    let widgets = api(&hub, "example.com/v1", "Widget", "widgets", Some("default"));
    let widget = object(
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}),
    );
    let made = widgets.create(&PostParams::default(), &widget).await.unwrap();
    assert_eq!(made.data["spec"]["size"], 3);
    let refused = widgets.create(&PostParams::default(), &object(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": {"size": "big"}}))).await;
    assert!(refused.unwrap_err().to_string().contains("must be of type integer"));
    definitions.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
    while definitions.get_opt("widgets.example.com").await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    // What follows from the log comes a moment after the log: to whoever polls, not to whoever waits for an answer.
    while widgets.list(&ListParams::default()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    hub.close().await;
}

#[tokio::test]
async fn a_namespace_goes_with_everything_in_it() {
    let hub = hub().await;
    let namespaces = api(&hub, "v1", "Namespace", "namespaces", None);
    namespaces
        .create(
            &PostParams::default(),
            &object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})),
        )
        .await
        .unwrap();
    let maps = api(&hub, "v1", "ConfigMap", "configmaps", Some("gone"));
    maps.create(
        &PostParams::default(),
        &object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})),
    )
    .await
    .unwrap();
    namespaces.delete("gone", &DeleteParams::default()).await.unwrap();
    while namespaces.get_opt("gone").await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    assert!(maps.get_opt("a").await.unwrap().is_none());
    hub.close().await;
}

#[tokio::test]
async fn a_namespace_is_not_reached_through_another() {
    let hub = hub().await;
    let client = hub.client();
    let get = |path: &'static str| client.request_text(http::Request::get(path).body(Vec::new()).unwrap());
    assert!(get("/api/v1/namespaces/default").await.is_ok());
    for path in ["/api/v1/namespaces/default/namespaces/kube-system", "/api/v1/namespaces/default/namespaces"]
    {
        let refused = get(path).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 404), "{path}: {refused}");
    }
    hub.close().await;
}

#[tokio::test]
async fn what_follows_a_subresource_of_a_custom_resource_is_not_looked_at() {
    let hub = hub().await;
    let definitions =
        api(&hub, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", None);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.toys.example.com"},
        "spec": {"group": "toys.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    definitions.create(&PostParams::default(), &object(definition)).await.unwrap();
    let widgets = "/apis/toys.example.com/v1/namespaces/default/widgets";
    let send = async |method: &str, path: &str, body: Value| {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{widgets}{path}"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(kube::client::Body::from(serde_json::to_vec(&body).unwrap()))
            .unwrap();
        let response = hub.client().send(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        (code, serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text)))
    };
    let mut widget = json!({"apiVersion": "toys.example.com/v1", "metadata": {"name": "a"}});
    // Without a kind it is refused in other words where nobody asks for strictness.
    let (code, refused) = send("POST", "?fieldValidation=Ignore", widget.clone()).await;
    assert_eq!(code, 400);
    let begin = "Widget in version \"v1\" cannot be handled as a Widget: Object 'Kind' is missing in '{";
    assert!(refused["message"].as_str().unwrap().starts_with(begin), "{refused}");
    let (_, refused) = send("POST", "", widget.clone()).await;
    let begin =
        "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{";
    assert!(refused["message"].as_str().unwrap().starts_with(begin), "{refused}");

    widget["kind"] = "Widget".into();
    assert_eq!(send("POST", "", widget).await.0, 201);
    let (code, found) = send("GET", "/a/status/nothing/at/all", Value::Null).await;
    assert_eq!((code, &found["metadata"]["name"]), (200, &json!("a")), "{found}");
    let (code, none) = send("GET", "/a/other/nothing", Value::Null).await;
    assert_eq!((code, &none["reason"]), (404, &json!("NotFound")), "{none}");
    hub.close().await;
}
