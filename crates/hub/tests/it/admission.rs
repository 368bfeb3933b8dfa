//! Functions in this process that have a say in writes.

use std::sync::{Arc, Mutex};

use berth_hub::admission::{
    Admission, Operation, Request, Resource, ResourceTarget, Review, Status, User, field_error,
};
use berth_hub::{Hub, HubOptions};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};

const GROUP: &str = "toys.example.com";
const WIDGETS: &str = "/apis/toys.example.com/v1/namespaces/default/widgets";
const CONFIG_MAPS: Resource<'_> = Resource { group: "", version: "v1", resource: "configmaps" };

/// Stamps widgets, and has rules for their size.
#[derive(Debug, Default)]
struct Sizes {
    seen: Mutex<Vec<String>>,
}

impl Admission for Sizes {
    fn concerns(&self, request: &Request<'_>) -> bool {
        request.is_about(GROUP, "widgets")
    }

    fn mutate(&self, review: &mut Review<'_>, object: &mut Value) -> Result<(), Status> {
        if review.request.name == "broken" {
            object["spec"]["size"] = "broken by admission".into();
        }
        let stamped = review
            .request
            .old
            .map_or_else(|| review.request.now.to_string().into(), |old| old["spec"]["stamp"].clone());
        if object["spec"]["stamp"].is_null() {
            object["spec"]["stamp"] = stamped;
        }
        Ok(())
    }

    fn validate(&self, review: &mut Review<'_>, object: Option<&Value>) -> Result<(), Status> {
        let request = review.request;
        self.seen.lock().unwrap().push(format!(
            "{} {}/{} {} {}{}",
            request.operation.as_str(),
            request.kind.version,
            request.kind.kind,
            request.name,
            request.user.name,
            if request.dry_run { " dry" } else { "" },
        ));
        let Some(object) = object else {
            return if request.name == "kept" { Err(review.forbidden("it must stay")) } else { Ok(()) };
        };
        let size = object["spec"]["size"].as_i64().unwrap_or_default();
        if size > 10 {
            review.warn(format!("{size} is a lot"));
        }
        let largest = review
            .find(CONFIG_MAPS, "default", "limits")
            .and_then(|limits| limits["data"]["size"].as_str()?.parse().ok())
            .unwrap_or(i64::MAX);
        if size > largest {
            let detail = format!("must be at most {largest}");
            return Err(review.invalid(&[field_error::invalid_raw("spec.size", &size.to_string(), &detail)]));
        }
        let target = ResourceTarget {
            group: GROUP,
            resource: "widgets",
            subresource: "enlarge",
            namespace: request.namespace,
            name: request.name,
            ..ResourceTarget::default()
        };
        if size > 5 && !review.may("create", target) {
            return Err(review.forbidden("you may not enlarge it"));
        }
        Ok(())
    }
}

struct Answer {
    code: u16,
    warnings: Vec<String>,
    body: Value,
}

async fn send(hub: &Hub, user: &str, method: Method, path: &str, body: &Value) -> Answer {
    let groups: &[&str] = if user == "admin" { &["system:masters"] } else { &["system:authenticated"] };
    let client = hub.client_as(User::new(user, groups.iter().copied()));
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(kube::client::Body::from(serde_json::to_vec(body).unwrap()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let warnings = response
        .headers()
        .get_all(http::header::WARNING)
        .iter()
        .map(|value| value.to_str().unwrap().to_owned())
        .collect();
    let bytes = response.into_body().collect_bytes().await.unwrap();
    Answer { code, warnings, body: serde_json::from_slice(&bytes).unwrap() }
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "toys.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// A hub that serves widgets and asks [`Sizes`] about them.
async fn hub() -> (Hub, Arc<Sizes>) {
    let sizes = Arc::new(Sizes::default());
    let options = HubOptions { admission: vec![Arc::clone(&sizes) as _], ..HubOptions::default() };
    let hub = Hub::open(options).await.unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.toys.example.com"},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "default": 3}, "stamp": {"type": "string"},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "widgets"},
        "rules": [{"apiGroups": [GROUP], "resources": ["widgets"], "verbs": ["*"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "widgets"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "widgets"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    });
    for (path, object) in [
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding),
    ] {
        let made = send(&hub, "admin", Method::POST, path, object).await;
        assert_eq!(made.code, 201, "{}", made.body);
    }
    (hub, sizes)
}

#[tokio::test]
async fn a_function_changes_what_has_its_defaults_and_the_schema_judges_the_result() {
    let (hub, _) = hub().await;
    let made = send(&hub, "admin", Method::POST, WIDGETS, &widget("a", json!({}))).await;
    assert_eq!(made.code, 201, "{}", made.body);
    assert_eq!(made.body["spec"]["size"], 3);
    let stamp = made.body["spec"]["stamp"].clone();
    assert!(stamp.is_string(), "{stamp}");
    let path = format!("{WIDGETS}/a");
    let unstamped = json!({"spec": {"size": 4, "stamp": null}});
    let changed = send(&hub, "admin", Method::PATCH, &path, &unstamped).await;
    assert_eq!(changed.body["spec"], json!({"size": 4, "stamp": stamp}));
    let broken = send(&hub, "admin", Method::POST, WIDGETS, &widget("broken", json!({}))).await;
    assert_eq!(broken.code, 422, "{}", broken.body);
    assert_eq!(broken.body["details"]["causes"][0]["field"], "spec.size");
    hub.close().await;
}

#[tokio::test]
async fn a_refusal_names_the_field_and_keeps_the_warnings() {
    let (hub, _) = hub().await;
    let limits = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"}, "data": {"size": "20"}});
    send(&hub, "admin", Method::POST, "/api/v1/namespaces/default/configmaps", &limits).await;
    let refused = send(&hub, "admin", Method::POST, WIDGETS, &widget("a", json!({"size": 21}))).await;
    assert_eq!(refused.code, 422);
    assert_eq!(
        refused.body["message"],
        "Widget.toys.example.com \"a\" is invalid: spec.size: Invalid value: 21: must be at most 20"
    );
    assert_eq!(
        refused.body["details"]["causes"],
        json!([{"reason": "FieldValueInvalid", "message": "Invalid value: 21: must be at most 20", "field": "spec.size"}])
    );
    assert_eq!(refused.warnings, ["299 - \"21 is a lot\""]);
    let allowed = send(&hub, "admin", Method::POST, WIDGETS, &widget("a", json!({"size": 20}))).await;
    assert_eq!((allowed.code, allowed.warnings), (201, vec!["299 - \"20 is a lot\"".to_owned()]));
    hub.close().await;
}

#[tokio::test]
async fn a_function_asks_policy_about_the_writer() {
    let (hub, _) = hub().await;
    let large = widget("a", json!({"size": 6}));
    let refused = send(&hub, "alice", Method::POST, WIDGETS, &large).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.body["message"],
        "widgets.toys.example.com \"a\" is forbidden: you may not enlarge it"
    );
    let more = json!({"rules": [{"apiGroups": [GROUP], "resources": ["widgets", "widgets/enlarge"], "verbs": ["*"]}]});
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/widgets";
    assert_eq!(send(&hub, "admin", Method::PATCH, role, &more).await.code, 200);
    assert_eq!(send(&hub, "alice", Method::POST, WIDGETS, &large).await.code, 201);
    hub.close().await;
}

#[tokio::test]
async fn a_function_knows_who_does_what_and_whether_it_counts() {
    let (hub, sizes) = hub().await;
    let dry = format!("{WIDGETS}?dryRun=All");
    let path = format!("{WIDGETS}/kept");
    let kept = widget("kept", json!({}));
    let none = Value::Null;
    for (user, method, path, body, code) in [
        ("alice", Method::POST, &*dry, &kept, 201),
        ("admin", Method::POST, WIDGETS, &kept, 201),
        ("alice", Method::PATCH, &path, &json!({"spec": {"size": 4}}), 200),
        ("alice", Method::PATCH, &path, &json!({"spec": {"size": 4}}), 200),
        ("admin", Method::PATCH, &format!("{path}/status"), &json!({"status": {"ready": true}}), 200),
        ("alice", Method::DELETE, &path, &none, 403),
    ] {
        let answer = send(&hub, user, method.clone(), path, body).await;
        assert_eq!(answer.code, code, "{user} {method} {path}: {}", answer.body);
    }
    // Neither the patch that changes nothing nor the one of the status is any of its concern.
    assert_eq!(
        *sizes.seen.lock().unwrap(),
        [
            "CREATE v1/Widget kept alice dry",
            "CREATE v1/Widget kept admin",
            "UPDATE v1/Widget kept alice",
            "DELETE v1/Widget kept alice",
        ]
    );
    assert_eq!(send(&hub, "admin", Method::GET, &path, &none).await.code, 200);
    hub.close().await;
}

#[tokio::test]
async fn what_is_posted_to_a_subresource_is_asked_about_in_its_own_kind() {
    #[derive(Debug)]
    struct NoEvictions;
    impl Admission for NoEvictions {
        fn concerns(&self, request: &Request<'_>) -> bool {
            request.is_within("", "pods") && request.subresource == "eviction"
        }
        fn validate(&self, review: &mut Review<'_>, object: Option<&Value>) -> Result<(), Status> {
            let request = &review.request;
            assert_eq!((request.operation, request.kind.group), (Operation::Create, "policy"));
            assert_eq!(object.unwrap()["kind"], "Eviction");
            Err(review.forbidden("pods stay"))
        }
    }
    let options = HubOptions { admission: vec![Arc::new(NoEvictions)], ..HubOptions::default() };
    let hub = Hub::open(options).await.unwrap();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(send(&hub, "admin", Method::POST, pods, &pod).await.code, 201);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    let refused = send(&hub, "admin", Method::POST, &format!("{pods}/a/eviction"), &eviction).await;
    assert_eq!(refused.body["message"], "pods \"a\" is forbidden: pods stay", "{}", refused.body);
    hub.close().await;
}

#[tokio::test]
async fn advice_is_heard_in_time_or_not_at_all() {
    #[derive(Debug)]
    struct Adviser;
    impl Admission for Adviser {
        fn concerns(&self, request: &Request<'_>) -> bool {
            request.is_about("", "configmaps")
        }
        fn advise(
            &self,
            request: &Request<'_>,
            _: Option<&Value>,
        ) -> Option<BoxFuture<'static, Vec<String>>> {
            match request.name {
                "quick" => Some(async { vec!["mind the gap".to_owned()] }.boxed()),
                "never" => Some(std::future::pending().boxed()),
                _ => None,
            }
        }
    }
    let options = HubOptions { admission: vec![Arc::new(Adviser)], ..HubOptions::default() };
    let hub = Hub::open(options).await.unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let make = async |name: &str| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let answer = send(&hub, "admin", Method::POST, maps, &map).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
        answer.warnings
    };
    assert_eq!(make("quick").await, [r#"299 - "mind the gap""#]);
    assert!(make("never").await.is_empty(), "what is not known in time is not said, and the write is done");
    assert!(make("plain").await.is_empty());
    hub.close().await;
}
