//! Admission webhooks asked over real HTTPS, on loopback, by a server that behaves well and badly.

#![expect(clippy::unwrap_used, reason = "helpers of tests, not only tests, may fail loudly")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use berth_hub_guard::webhook::{Around, Kind, NoServices, Operation, Resource, ServiceMap, ServiceResolver};
use berth_hub_guard::{
    Admission, Authority, ObjectLookup, Refusal, Serving, User, WebhookClient, WebhookKind, WebhookSet,
};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

#[derive(Debug)]
struct Fixed;
impl TimeProvider for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(now().as_second()).unwrap();
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds)))
    }
}

struct Namespaces;
impl ObjectLookup for Namespaces {
    fn find(&self, resource: &str, _: &str, name: &str) -> Option<Value> {
        let team = match (resource, name) {
            ("namespaces", "apps") => "a",
            ("namespaces", "ops") => "o",
            _ => return None,
        };
        Some(json!({"metadata": {"name": name, "labels": {"team": team}}}))
    }
}

/// `add` operations on members of objects are all these tests need.
fn patch(object: &Value, operations: &Value) -> Result<Value, String> {
    let mut out = object.clone();
    for operation in operations.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = out.pointer_mut(parent).ok_or_else(|| format!("no {path}"))?;
        parent[key] = operation["value"].clone();
    }
    Ok(out)
}

fn around() -> Around<'static> {
    Around { lookup: &Namespaces, patch: &patch }
}

/// A webhook server: what it was asked, in order, and the CA that vouches for it.
struct Server {
    address: SocketAddr,
    ca_bundle: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    async fn start() -> Self {
        let authority = Authority::in_memory(now()).unwrap();
        let serving = Serving::new(&authority, &["hook.ops.svc".to_owned()], now()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(serving.config());
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(tcp).await else { return };
                    let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
                    // A client that hangs up early is part of the tests.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(tls), service)
                        .await;
                });
            }
        });
        Self { address, ca_bundle: STANDARD.encode(authority.ca_pem()), asked }
    }

    fn hook(&self, name: &str, path: &str) -> Value {
        json!({
            "name": name,
            "clientConfig": {"url": format!("https://{}{path}", self.address), "caBundle": self.ca_bundle},
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*", "*"]}],
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 5,
            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        })
    }

    fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }

    fn last(&self) -> Value {
        self.asked.lock().unwrap().last().unwrap().1.clone()
    }
}

fn respond(status: u16, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    Response::builder().status(status).body(Full::new(body.into())).unwrap()
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    seen.lock().unwrap().push((path.clone(), review.clone()));
    let review_with = |mut response: Value| {
        if response.get("uid").is_none() {
            response["uid"] = review["request"]["uid"].clone();
        }
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        respond(200, review.to_string())
    };
    let patched = |path: &str, value: &Value| {
        let operations = json!([{"op": "add", "path": path, "value": value}]).to_string();
        review_with(json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations)}))
    };
    Ok(match path.as_str() {
        "/good" => review_with(json!({"allowed": true, "warnings": ["mind the gap"]})),
        "/deny" => review_with(
            json!({"allowed": false, "warnings": ["told you"], "status": {"message": "not today", "code": 403}}),
        ),
        "/slow" => std::future::pending().await,
        "/wrong-uid" => review_with(json!({"allowed": true, "uid": "another"})),
        "/500" => respond(500, "boom\n"),
        "/404" => respond(404, ""),
        "/huge" => respond(200, vec![b' '; (3 << 20) + 1]),
        "/garbage" => respond(200, "<html>"),
        "/label" => patched("/metadata/labels", &json!({"by": "label"})),
        // Writes down what the object looked like, so it changes only when something before it did.
        "/mirror" => {
            let labels = review["request"]["object"]["metadata"]["labels"].clone();
            patched("/metadata/mirror", &labels)
        }
        _ => review_with(json!({"allowed": true})),
    })
}

fn set(kind: WebhookKind, hooks: &[Value]) -> WebhookSet {
    let mut set = WebhookSet::new();
    set.apply(kind, "c", Some(&json!({"webhooks": hooks})));
    set
}

fn client() -> WebhookClient {
    client_with(Arc::new(NoServices))
}

fn client_with(resolver: Arc<dyn ServiceResolver>) -> WebhookClient {
    WebhookClient::with_time(resolver, Arc::new(Fixed))
}

const GROUP: &str = "cluster.open-cluster-management.io";
const KIND: Kind<'static> = Kind { group: GROUP, version: "v1beta1", kind: "Placement" };
const RESOURCE: Resource<'static> = Resource { group: GROUP, version: "v1beta1", resource: "placements" };

fn admission(user: &User) -> Admission<'_> {
    Admission {
        operation: Operation::Create,
        kind: KIND,
        resource: RESOURCE,
        subresource: "",
        equivalents: &[],
        name: "p",
        namespace: "apps",
        user,
        dry_run: false,
        object: Some(
            json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement", "metadata": {"name": "p", "labels": {"x": "y"}}}),
        ),
        old_object: None,
        options: None,
    }
}

async fn validate(hooks: &[Value]) -> (Result<(), Refusal>, Vec<String>) {
    let user = User::new("al", ["dev"]);
    let mut warnings = Vec::new();
    let result = client()
        .validate(&set(WebhookKind::Validating, hooks), &admission(&user), around(), &mut warnings)
        .await;
    (result, warnings)
}

async fn failure(hook: Value) -> String {
    // Ignoring failures must let exactly these through.
    let mut lenient = hook.clone();
    lenient["failurePolicy"] = json!("Ignore");
    assert_eq!(validate(&[lenient]).await.0, Ok(()));
    let refusal = validate(&[hook]).await.0.unwrap_err();
    assert_eq!((refusal.code(), refusal.reason()), (500, "InternalError"));
    refusal.message()
}

#[tokio::test]
async fn a_webhook_that_agrees_lets_the_request_pass_with_its_warnings() {
    let server = Server::start().await;
    let (result, warnings) = validate(&[server.hook("h.example.com", "/good")]).await;
    assert_eq!((result, warnings), (Ok(()), vec!["mind the gap".to_owned()]));
    let request = &server.last()["request"];
    assert_eq!(server.last()["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["kind"], json!({"group": GROUP, "version": "v1beta1", "kind": "Placement"}));
    assert_eq!(
        request["requestResource"],
        json!({"group": GROUP, "version": "v1beta1", "resource": "placements"})
    );
    assert_eq!(request["userInfo"], json!({"username": "al", "groups": ["dev"]}));
    assert_eq!((&request["dryRun"], &request["oldObject"]), (&json!(false), &Value::Null));
    assert_eq!(request["object"]["metadata"]["name"], "p");
}

#[tokio::test]
async fn a_denial_wins_over_failures_ignored_and_keeps_its_warnings() {
    let server = Server::start().await;
    let mut broken = server.hook("a.example.com", "/500");
    broken["failurePolicy"] = json!("Ignore");
    let (result, warnings) =
        validate(&[broken, server.hook("b.example.com", "/good"), server.hook("c.example.com", "/deny")])
            .await;
    let refusal = result.unwrap_err();
    assert_eq!(refusal.code(), 403);
    assert_eq!(refusal.message(), "admission webhook \"c.example.com\" denied the request: not today");
    assert_eq!(warnings, ["mind the gap", "told you"]);
    assert_eq!(server.paths().len(), 3);
}

#[tokio::test]
async fn answers_that_cannot_be_used_are_failures_with_a_reason() {
    let server = Server::start().await;
    for (path, says) in [
        (
            "/500",
            "failed to call webhook: an error on the server (\"boom\") has prevented the request from succeeding",
        ),
        ("/404", "failed to call webhook: the server could not find the requested resource"),
        ("/garbage", "failed to call webhook: the answer is not JSON"),
        ("/huge", "the answer is larger than 3145728 bytes"),
        ("/wrong-uid", "received invalid webhook response: expected response.uid="),
    ] {
        let message = failure(server.hook("h.example.com", path)).await;
        assert!(
            message.starts_with("Internal error occurred: failed calling webhook \"h.example.com\": "),
            "{message}"
        );
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn servers_that_cannot_be_trusted_or_reached_are_failures() {
    let (server, other) = (Server::start().await, Server::start().await);
    let mut untrusted = server.hook("h", "/good");
    untrusted["clientConfig"]["caBundle"] = json!(other.ca_bundle);
    let message = failure(untrusted).await;
    assert!(message.contains("certificate signed by unknown authority"), "{message}");
    let mut nothing = server.hook("h", "/good");
    nothing["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    assert!(failure(nothing).await.contains("caBundle holds no certificate"));
    // A port nobody listens on: bound once, and given back.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut absent = server.hook("h", "/good");
    absent["clientConfig"]["url"] = json!(format!("https://{free}/x"));
    let message = failure(absent).await;
    assert!(
        message.contains(&format!(
            "failed to call webhook: Post \"https://{free}/x?timeout=5s\": dial tcp {free}"
        )),
        "{message}"
    );
    let mut plain = server.hook("h", "/good");
    plain["clientConfig"]["url"] = json!("http://127.0.0.1/x");
    assert!(failure(plain).await.contains("must start with https://"));
    assert_eq!(server.paths(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_slow_webhook_is_given_up_after_its_timeout() {
    let server = Server::start().await;
    let mut slow = server.hook("h", "/slow");
    slow["timeoutSeconds"] = json!(1);
    let message = failure(slow).await;
    let url = format!("https://{}/slow?timeout=1s", server.address);
    assert_eq!(
        message,
        format!(
            "Internal error occurred: failed calling webhook \"h\": failed to call webhook: Post \"{url}\": context deadline exceeded"
        )
    );
}

#[tokio::test]
async fn services_are_found_through_the_resolver_and_checked_by_their_name() {
    let server = Server::start().await;
    let mut hook = server.hook("h", "");
    hook["clientConfig"] = json!({"caBundle": server.ca_bundle, "service": {"namespace": "ops", "name": "hook", "path": "/good"}});
    let message = failure(hook.clone()).await;
    assert!(message.contains("there is no cluster network to reach service ops/hook"), "{message}");
    let map = ServiceMap(HashMap::from([
        ("ops/hook".to_owned(), server.address.to_string()),
        ("ops/other".to_owned(), server.address.to_string()),
    ]));
    let client = client_with(Arc::new(map));
    let user = User::new("al", ["dev"]);
    let ask = async |hook: &Value| {
        let set = set(WebhookKind::Validating, std::slice::from_ref(hook));
        client.validate(&set, &admission(&user), around(), &mut Vec::new()).await
    };
    assert_eq!(ask(&hook).await, Ok(()));
    hook["clientConfig"]["service"]["name"] = json!("other");
    let message = ask(&hook).await.unwrap_err().message();
    assert!(message.contains("not valid for the name"), "{message}");
}

#[tokio::test]
async fn only_requests_that_match_are_sent() {
    let server = Server::start().await;
    let cases = [
        (
            "/r1",
            json!({"rules": [{"operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]}),
            false,
        ),
        (
            "/r2",
            json!({"rules": [{"operations": ["CREATE"], "apiGroups": [GROUP], "apiVersions": ["v1beta1"], "resources": ["placements"]}]}),
            true,
        ),
        (
            "/r3",
            json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["placements/status"]}]}),
            false,
        ),
        (
            "/r4",
            json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "Cluster"}]}),
            false,
        ),
        ("/r5", json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), true),
        ("/r6", json!({"namespaceSelector": {"matchLabels": {"team": "o"}}}), false),
        ("/r7", json!({"objectSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}), true),
        ("/r8", json!({"objectSelector": {"matchLabels": {"x": "z"}}}), false),
        (
            "/r9",
            json!({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'p' && request.userInfo.username == 'al'"}]}),
            true,
        ),
        ("/r10", json!({"matchConditions": [{"name": "c", "expression": "oldObject != null"}]}), false),
    ];
    let hooks: Vec<Value> = cases
        .iter()
        .map(|(path, change, _)| {
            let mut hook = server.hook("h", path);
            hook.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            hook
        })
        .collect();
    assert_eq!(validate(&hooks).await.0, Ok(()));
    let mut expected: Vec<&str> = cases.iter().filter(|(_, _, sent)| *sent).map(|(path, ..)| *path).collect();
    let mut got = server.paths();
    expected.sort_unstable();
    got.sort_unstable();
    assert_eq!(got, expected);
}

#[tokio::test]
async fn a_condition_that_fails_stops_the_request_unless_failures_are_ignored() {
    let server = Server::start().await;
    let mut hook = server.hook("h", "/good");
    hook["matchConditions"] = json!([{"name": "c", "expression": "object.spec.missing == 1"}]);
    let refusal = validate(&[hook.clone()]).await.0.unwrap_err();
    assert_eq!(refusal.code(), 403);
    assert_eq!(
        refusal.message(),
        "placements.cluster.open-cluster-management.io \"p\" is forbidden: expression 'object.spec.missing == 1' resulted in \
         error: no such key: spec"
    );
    hook["failurePolicy"] = json!("Ignore");
    assert_eq!(validate(&[hook.clone()]).await.0, Ok(()));
    // One that is false decides, whatever the others say.
    hook["failurePolicy"] = json!("Fail");
    hook["matchConditions"] = json!([{"name": "c", "expression": "object.spec.missing == 1"}, {"name": "d", "expression": "false"}]);
    assert_eq!(validate(&[hook]).await.0, Ok(()));
    assert_eq!(server.paths(), Vec::<String>::new());
}

#[test]
fn conditions_are_checked_when_a_configuration_is_stored() {
    let configuration = |expression: &str| json!({"webhooks": [{"name": "h", "matchConditions": [{"name": "c", "expression": expression}]}]});
    assert_eq!(WebhookSet::check(&configuration("has(object.spec)")), []);
    for (expression, says) in [
        ("authorizer.group('').resource('pods').check('get').allowed()", "the authorizer is not available"),
        ("1 +", "compilation failed"),
        ("'text'", "must evaluate to bool"),
        ("", "Required value"),
    ] {
        let problems = WebhookSet::check(&configuration(expression));
        assert_eq!(problems.len(), 1, "{expression}");
        assert_eq!(problems[0].field, "webhooks[0].matchConditions[0].expression");
        assert!(problems[0].message.contains(says), "{}", problems[0].message);
    }
}

#[tokio::test]
async fn dry_runs_are_shown_only_to_webhooks_without_side_effects() {
    let server = Server::start().await;
    let user = User::new("al", ["dev"]);
    let request = Admission { dry_run: true, ..admission(&user) };
    let mut hook = server.hook("h", "/good");
    let client = client();
    let ask = async |hook: &Value| {
        let set = set(WebhookKind::Validating, std::slice::from_ref(hook));
        client.validate(&set, &request, around(), &mut Vec::new()).await
    };
    assert_eq!(ask(&hook).await, Ok(()));
    assert_eq!(server.last()["request"]["dryRun"], true);
    hook["sideEffects"] = json!("Some");
    hook["failurePolicy"] = json!("Ignore");
    let refusal = ask(&hook).await.unwrap_err();
    assert_eq!(refusal, Refusal::BadRequest("admission webhook \"h\" does not support dry run".to_owned()));
}

#[tokio::test]
async fn a_mutating_webhook_changes_the_object_and_the_next_one_sees_it() {
    let server = Server::start().await;
    let user = User::new("al", ["dev"]);
    let mut request = admission(&user);
    let hooks = set(WebhookKind::Mutating, &[server.hook("a", "/label"), server.hook("b", "/mirror")]);
    client().mutate(&hooks, &mut request, around(), &mut Vec::new()).await.unwrap();
    assert_eq!(
        request.object.unwrap()["metadata"],
        json!({"name": "p", "labels": {"by": "label"}, "mirror": {"by": "label"}})
    );
    assert_eq!(server.paths(), ["/label", "/mirror"]);
}

#[tokio::test]
async fn an_earlier_webhook_that_wants_it_is_asked_once_more_after_a_later_change() {
    let server = Server::start().await;
    let user = User::new("al", ["dev"]);
    let mut request = admission(&user);
    let mut mirror = server.hook("a", "/mirror");
    mirror["reinvocationPolicy"] = json!("IfNeeded");
    let mut never = server.hook("b", "/other");
    never["reinvocationPolicy"] = json!("Never");
    let hooks = set(WebhookKind::Mutating, &[mirror, never, server.hook("c", "/label")]);
    client().mutate(&hooks, &mut request, around(), &mut Vec::new()).await.unwrap();
    assert_eq!(server.paths(), ["/mirror", "/other", "/label", "/mirror"]);
    assert_eq!(request.object.unwrap()["metadata"]["mirror"], json!({"by": "label"}));
}

#[tokio::test]
async fn a_patch_without_an_object_and_a_patch_that_does_not_apply_are_errors() {
    let server = Server::start().await;
    let user = User::new("al", ["dev"]);
    let old = json!({"metadata": {"name": "p"}});
    let hooks = set(WebhookKind::Mutating, &[server.hook("h", "/label")]);
    let mut delete =
        Admission { operation: Operation::Delete, object: None, old_object: Some(&old), ..admission(&user) };
    let refusal = client().mutate(&hooks, &mut delete, around(), &mut Vec::new()).await.unwrap_err();
    assert_eq!(
        refusal.message(),
        "Internal error occurred: admission webhook \"h\" attempted to modify the object, which is not supported for this operation"
    );
    let mut bare = Admission { object: Some(json!({})), ..admission(&user) };
    let refusal = client().mutate(&hooks, &mut bare, around(), &mut Vec::new()).await.unwrap_err();
    assert!(refusal.message().starts_with("Internal error occurred: no /metadata/labels"), "{refusal}");
}

#[tokio::test]
async fn a_webhook_for_another_version_sees_the_object_in_that_version() {
    let server = Server::start().await;
    let user = User::new("al", ["dev"]);
    let other = (Resource { version: "v1alpha1", ..RESOURCE }, Kind { version: "v1alpha1", ..KIND });
    let equivalents = [other];
    let mut request = Admission { equivalents: &equivalents, ..admission(&user) };
    let mut hook = server.hook("h", "/label");
    hook["rules"] = json!([{"operations": ["*"], "apiGroups": [GROUP], "apiVersions": ["v1alpha1"], "resources": ["placements"]}]);
    let hooks = set(WebhookKind::Mutating, &[hook.clone()]);
    client().mutate(&hooks, &mut request, around(), &mut Vec::new()).await.unwrap();
    let seen = &server.last()["request"];
    assert_eq!(seen["kind"]["version"], "v1alpha1");
    assert_eq!(seen["requestKind"]["version"], "v1beta1");
    assert_eq!(seen["object"]["apiVersion"], format!("{GROUP}/v1alpha1"));
    let object = request.object.clone().unwrap();
    assert_eq!(
        (&object["apiVersion"], &object["metadata"]["labels"]),
        (&json!(format!("{GROUP}/v1beta1")), &json!({"by": "label"}))
    );
    hook["matchPolicy"] = json!("Exact");
    client()
        .mutate(&set(WebhookKind::Mutating, &[hook]), &mut request, around(), &mut Vec::new())
        .await
        .unwrap();
    assert_eq!(server.paths().len(), 1);
}

#[tokio::test]
async fn webhooks_never_hear_of_their_own_configurations() {
    let server = Server::start().await;
    let user = User::new("al", ["dev"]);
    let group = "admissionregistration.k8s.io";
    let request = Admission {
        kind: Kind { group, version: "v1", kind: "ValidatingWebhookConfiguration" },
        resource: Resource { group, version: "v1", resource: "validatingwebhookconfigurations" },
        namespace: "",
        ..admission(&user)
    };
    let hooks = set(WebhookKind::Validating, &[server.hook("h", "/deny")]);
    assert_eq!(client().validate(&hooks, &request, around(), &mut Vec::new()).await, Ok(()));
}

#[tokio::test]
async fn a_namespace_being_written_is_judged_by_its_new_labels_and_a_missing_one_is_not_found() {
    let server = Server::start().await;
    let user = User::new("al", ["dev"]);
    let mut hook = server.hook("h", "/deny");
    hook["namespaceSelector"] = json!({"matchLabels": {"guarded": "yes"}});
    let hooks = set(WebhookKind::Validating, &[hook]);
    let namespace = Admission {
        kind: Kind { group: "", version: "v1", kind: "Namespace" },
        resource: Resource { group: "", version: "v1", resource: "namespaces" },
        name: "new",
        namespace: "new",
        object: Some(json!({"metadata": {"name": "new", "labels": {"guarded": "yes"}}})),
        ..admission(&user)
    };
    assert!(client().validate(&hooks, &namespace, around(), &mut Vec::new()).await.is_err());
    let lost = Admission { namespace: "lost", ..admission(&user) };
    let refusal = client().validate(&hooks, &lost, around(), &mut Vec::new()).await.unwrap_err();
    assert_eq!(refusal.message(), "namespaces \"lost\" not found");
}

#[test]
fn asking_webhooks_can_be_part_of_a_request_that_moves_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let (client, hooks, user) = (client(), WebhookSet::new(), User::default());
    let mut request = admission(&user);
    let mut warnings = Vec::new();
    is_send(&client.mutate(&hooks, &mut request, around(), &mut warnings));
    let request = admission(&user);
    is_send(&client.validate(&hooks, &request, around(), &mut warnings));
}
