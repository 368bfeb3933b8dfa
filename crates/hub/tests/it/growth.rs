//! What a small request may grow into: values, defaults, and the size of what is kept.

use berth_hub::{Hub, HubOptions, Limits};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const JSON: &str = "application/json";
const TOO_LARGE: (u16, &str) = (413, "RequestEntityTooLarge");

struct Answer {
    code: u16,
    body: Value,
}

impl Answer {
    fn refused(&self) -> (u16, &str) {
        (self.code, self.body["reason"].as_str().unwrap_or_default())
    }

    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

async fn ask(hub: &Hub, method: Method, target: &str, body: Option<(&str, String)>) -> Answer {
    let mut request = Request::builder().method(method).uri(target);
    let mut text = String::new();
    if let Some((kind, sent)) = body {
        request = request.header("content-type", kind);
        text = sent;
    }
    let request = request.body(kube::client::Body::from(text.into_bytes())).unwrap();
    let (head, body) = hub.client().send(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer { code: head.status.as_u16(), body: serde_json::from_slice(&bytes).unwrap() }
}

async fn post(hub: &Hub, target: &str, body: String) -> Answer {
    ask(hub, Method::POST, target, Some((JSON, body))).await
}

fn definition(items: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"l": {"type": "array", "items": items}},
            }}}],
        },
    })
}

/// A hub that serves widgets: each has a list `l` of such items.
async fn serving(limits: Limits, items: Value) -> Hub {
    let hub = Hub::open(HubOptions { limits, ..HubOptions::default() }).await.unwrap();
    let made = post(&hub, DEFINITIONS, definition(items).to_string()).await;
    assert_eq!(made.code, 201, "{}", made.message());
    hub
}

fn widget(name: &str, items: usize) -> String {
    let list = vec!["{}"; items].join(",");
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}},"l":[{list}]}}"#
    )
}

fn filled(text: &str) -> Value {
    json!({"type": "object", "properties": {"field": {"type": "string", "default": text}}})
}

#[tokio::test]
async fn a_custom_resource_holds_no_more_values_than_a_built_in_kind() {
    let hub = serving(Limits::default(), json!({"type": "object"})).await;
    assert_eq!(post(&hub, WIDGETS, widget("few", 390_000)).await.code, 201);
    let refused = post(&hub, WIDGETS, widget("many", 400_000)).await;
    assert_eq!(refused.refused(), (400, "BadRequest"));
    assert_eq!(
        refused.message(),
        "Widget in version \"v1\" cannot be handled as a Widget: the object holds more than 400000 values"
    );
    let target = format!("{WIDGETS}/many?fieldManager=m");
    let applied =
        ask(&hub, Method::PATCH, &target, Some(("application/apply-patch+yaml", widget("many", 400_000))))
            .await;
    assert_eq!((applied.code, applied.message()), (400, refused.message()));
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"spec":{{"containers":[{}]}}}}"#,
        vec!["{}"; 400_000].join(",")
    );
    let pod = post(&hub, "/api/v1/namespaces/default/pods", pod).await;
    assert_eq!(pod.refused(), refused.refused());
    assert!(pod.message().ends_with("the object holds more than 400000 values"), "{}", pod.message());
    hub.close().await;
}

#[tokio::test]
async fn defaults_that_would_fill_the_memory_are_refused() {
    let hub = serving(Limits::default(), filled(&"x".repeat(100_000))).await;
    assert_eq!(post(&hub, WIDGETS, widget("few", 10)).await.code, 201);
    for target in [WIDGETS.to_owned(), format!("{WIDGETS}?dryRun=All")] {
        let refused = post(&hub, &target, widget("many", 5_000)).await;
        assert_eq!(refused.refused(), TOO_LARGE, "{}", refused.message());
        assert_eq!(
            refused.message(),
            "Request entity too large: the defaults of its schema add more than 3145728 bytes to the object"
        );
    }
    let target = format!("{WIDGETS}/many?fieldManager=m");
    let config = Some(("application/apply-patch+yaml", widget("many", 5_000)));
    assert_eq!(ask(&hub, Method::PATCH, &target, config).await.refused(), TOO_LARGE);
    let list = vec![json!({}); 5_000];
    let patch = Some(("application/merge-patch+json", json!({"l": list}).to_string()));
    let patched = ask(&hub, Method::PATCH, &format!("{WIDGETS}/few"), patch).await;
    assert_eq!(patched.refused(), TOO_LARGE);
    hub.close().await;
}

#[tokio::test]
async fn defaults_count_as_values() {
    let hub = serving(Limits::default(), filled("")).await;
    let refused = post(&hub, WIDGETS, widget("many", 210_000)).await;
    assert_eq!(refused.refused(), TOO_LARGE);
    assert_eq!(
        refused.message(),
        "Request entity too large: the object holds more than 400000 values once the defaults of its schema are filled in"
    );
    hub.close().await;
}

#[tokio::test]
async fn an_object_that_outgrows_its_schema_is_shown_as_far_as_it_fits_and_can_be_mended_and_deleted() {
    let hub = serving(Limits::default(), json!({"type": "object"})).await;
    let target = format!("{WIDGETS}/w");
    assert_eq!(post(&hub, WIDGETS, widget("w", 5_000)).await.code, 201);
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/l/items",
        "value": filled(&"x".repeat(100_000))}]);
    let newer = format!("{DEFINITIONS}/widgets.example.com");
    let changed =
        ask(&hub, Method::PATCH, &newer, Some(("application/json-patch+json", patch.to_string()))).await;
    assert_eq!(changed.code, 200, "{}", changed.message());
    let shown = ask(&hub, Method::GET, &target, None).await;
    let has = |item: &&Value| item.get("field").is_some();
    let items = shown.body["l"].as_array().unwrap();
    assert_eq!((items.len(), items.iter().filter(has).count()), (5_000, 31));
    assert!(items.iter().take(31).all(|item| has(&item)), "from the first on");
    let listed = ask(&hub, Method::GET, WIDGETS, None).await;
    assert_eq!(listed.body["items"][0]["l"].as_array().unwrap().len(), 5_000);
    let mended = Some(("application/merge-patch+json", json!({"l": [{}]}).to_string()));
    let mended = ask(&hub, Method::PATCH, &target, mended).await;
    assert_eq!(mended.code, 200, "{}", mended.message());
    assert!(mended.body["l"][0].get("field").is_some());
    assert_eq!(ask(&hub, Method::DELETE, &target, None).await.code, 200);
    hub.close().await;
}

#[tokio::test]
async fn a_dry_run_refuses_what_is_too_large_to_be_kept() {
    let limits = Limits { object: 40_000, ..Limits::default() };
    let hub = serving(limits, filled(&"x".repeat(15_000))).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = |bytes: usize| {
        let data = json!({"fill": "x".repeat(bytes)});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}).to_string()
    };
    for dry in ["?dryRun=All", ""] {
        for (target, body) in [(maps, map(40_000)), (WIDGETS, widget("w", 3))] {
            let refused = post(&hub, &format!("{target}{dry}"), body).await;
            assert_eq!(refused.refused(), TOO_LARGE, "{target}{dry}: {}", refused.message());
        }
    }
    for dry in ["?dryRun=All", ""] {
        assert_eq!(post(&hub, &format!("{maps}{dry}"), map(10_000)).await.code, 201);
    }
    for dry in ["?dryRun=All", ""] {
        let patch =
            Some(("application/merge-patch+json", json!({"data": {"b": "y".repeat(35_000)}}).to_string()));
        let grown = ask(&hub, Method::PATCH, &format!("{maps}/m{dry}"), patch).await;
        assert_eq!(grown.refused(), TOO_LARGE);
    }
    hub.close().await;
}
