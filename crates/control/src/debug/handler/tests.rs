//! The debugger against an API server small enough to hold in the hand, and a loop that only answers.

use std::sync::Mutex;

use axum::body::Bytes;
use berth_engine::Moment;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use tower::{ServiceExt as _, service_fn};

use super::*;
use crate::controllers::stage::Stage;
use crate::controllers::{Controller, PlacementController};
use crate::dialect::Dialect;
use crate::inquiry::{Inquiries, Sight, inquiries};
use crate::world::Kind;

/// What the API server says of tokens and users.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// Everybody with a token may do everything.
    Open,
    /// Tokens are good, and nobody may use a path.
    NoPaths,
    /// Tokens are good, and nobody may touch Placements.
    NoPlacements,
    /// Tokens are not good.
    Strangers,
    /// Reviews of tokens fail.
    Speechless,
    /// Reviews of access fail.
    Lawless,
}

/// The reviews that were asked for.
type Asked = Arc<Mutex<Vec<Value>>>;

fn api_server(policy: Policy) -> (Client, Asked) {
    let asked = Asked::default();
    let heard = Arc::clone(&asked);
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let heard = Arc::clone(&heard);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            heard.lock().unwrap().push(review.clone());
            let is_token = review["kind"] == "TokenReview";
            if (is_token && policy == Policy::Speechless) || (!is_token && policy == Policy::Lawless) {
                return Ok::<_, Infallible>(Response::builder().status(503).body(Body::empty()).unwrap());
            }
            review["status"] = if is_token && policy == Policy::Strangers {
                json!({"authenticated": false, "error": "no such token"})
            } else if is_token {
                json!({"authenticated": true, "user": {
                    "username": "system:serviceaccount:apps:viewer", "uid": "u-1",
                    "groups": ["system:serviceaccounts", "system:authenticated"],
                    "extra": {"example.org/scope": ["a", "b"]},
                }})
            } else {
                let is_path = review["spec"]["nonResourceAttributes"].is_object();
                let refused =
                    (is_path && policy == Policy::NoPaths) || (!is_path && policy == Policy::NoPlacements);
                json!({"allowed": !refused, "reason": if refused { "RBAC: nothing says so" } else { "" }})
            };
            Ok(Response::builder().status(201).body(Body::from(review.to_string())).unwrap())
        }
    });
    (Client::new(service, "default"), asked)
}

/// Answers questions as the loop does.
async fn answer_from(mut stage: Stage<PlacementController>, mut inquiries: Inquiries) {
    loop {
        let question = inquiries.next().await;
        let model = Controller::model(&mut stage.controller).unwrap();
        question(Ok(Sight::new(&stage.world, model, stage.now)));
    }
}

/// Three clusters in the set `blue`, one of them tainted; one in `red`. `blue` is bound to `apps`.
fn fleet() -> Stage<PlacementController> {
    let mut stage = Stage::new(PlacementController::new(Dialect::OURS));
    for (name, set, taints) in [
        ("b1", "blue", json!([])),
        ("b2", "blue", json!([])),
        ("b3", "blue", json!([{"key": "gpu", "effect": "NoSelect", "timeAdded": "2023-11-14T22:00:00Z"}])),
        ("r1", "red", json!([])),
    ] {
        let labels = json!({"cluster.open-cluster-management.io/clusterset": set, "number": name});
        let object = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"hubAcceptsClient": true, "taints": taints},
        });
        stage.put(Kind::Cluster, object);
    }
    for set in ["blue", "red"] {
        stage.put(Kind::Set, json!({"metadata": {"name": set}, "spec": {}}));
    }
    let binding = json!({"metadata": {"namespace": "apps", "name": "blue"}, "spec": {"clusterSet": "blue"}});
    stage.put(Kind::Binding, binding);
    let spec = json!({"numberOfClusters": 1});
    let metadata = json!({"namespace": "apps", "name": "web", "labels": {"a": "b"}, "generation": 3});
    stage.put(Kind::Placement, json!({"metadata": metadata, "spec": spec}));
    stage.settle();
    stage
}

struct Scene {
    router: Router,
    asked: Asked,
    _loop: AbortOnDropHandle<()>,
}

fn scene_of(stage: Stage<PlacementController>, policy: Policy) -> Scene {
    let (client, asked) = api_server(policy);
    let (inquirer, inquiries) = inquiries();
    let answering = AbortOnDropHandle::new(tokio::spawn(answer_from(stage, inquiries)));
    Scene { router: router(client, inquirer), asked, _loop: answering }
}

fn scene(policy: Policy) -> Scene {
    scene_of(fleet(), policy)
}

impl Scene {
    async fn send(&self, request: http::request::Builder, body: impl Into<Bytes>) -> (u16, Value) {
        let request = request.body(Body::from(body.into())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        assert_eq!(head.headers[header::CONTENT_TYPE], JSON);
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), serde_json::from_slice(&body).unwrap())
    }

    async fn call(&self, method: &str, path: &str, body: impl Into<Bytes>) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("authorization", "Bearer t0ken");
        self.send(request, body).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, "").await
    }

    /// The answer to a placement that is sent.
    async fn post(&self, placement: &Value) -> Value {
        let (code, answer) = self.call("POST", PATH, placement.to_string()).await;
        assert_eq!(code, 200, "{answer}");
        answer
    }

    fn reviews(&self, kind: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|review| review["kind"] == kind).map(|review| review["spec"].clone()).collect()
    }
}

fn sent(spec: &Value) -> Value {
    json!({"metadata": {"namespace": "apps", "name": "thought"}, "spec": spec})
}

/// Upstream: debugger/debugger_test.go "TestReportErr".
#[tokio::test]
async fn an_error_is_json_with_one_key() {
    let response = Fault::new(StatusCode::BAD_REQUEST, "what is \"wrong\"").into_response();
    assert_eq!(
        (response.status().as_u16(), &response.headers()[header::CONTENT_TYPE]),
        (400, &JSON.parse().unwrap())
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, r#"{"error":"what is \"wrong\""}"#);
}

/// Upstream: debugger/debugger_test.go "TestReportPermissionErr: missing user", "TestReportPermissionErr: forbidden
/// create", "TestReportPermissionErr: forbidden get", "TestReportPermissionErr: unsupported method",
/// "TestReportPermissionErr: internal".
#[tokio::test]
async fn each_refusal_has_its_code() {
    let of = |refusal| Fault::from(refusal).status.as_u16();
    assert_eq!(of(Refusal::Unknown(String::new())), 401);
    assert_eq!(of(Refusal::Forbidden("create".into())), 403);
    assert_eq!(of(Refusal::Forbidden("get".into())), 403);
    assert_eq!(of(Refusal::Unanswered(String::new())), 500);
    let response = Fault::new(StatusCode::METHOD_NOT_ALLOWED, "").into_response();
    assert_eq!(response.headers()[header::ALLOW], "GET, POST");
}

/// Upstream: debugger/debugger_test.go "TestDebuggerHandlerReportErr: POST invalid JSON",
/// "TestDebuggerHandlerReportErr: GET incomplete path", "TestDebuggerHandlerReportErr: GET placement not found",
/// "TestDebuggerHandlerReportErr: DELETE method not allowed", "TestDebuggerHandlerReportErr: PUT method not allowed",
/// "TestDebuggerHandlerReportErr: PATCH method not allowed".
#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let scene = scene(Policy::Open);
    for (method, path, body, code, told) in [
        ("POST", PATH, "{not json", 400, "failed to unmarshal placement JSON: key must be a string"),
        ("POST", PATH, "[]", 400, "failed to unmarshal placement JSON: expected an object"),
        ("POST", PATH, r#"{"kind": "Pod"}"#, 400, "kind: expected Placement, not \"Pod\""),
        ("POST", PATH, r#"{"metadata": {"name": "x"}}"#, 400, "metadata.namespace: required"),
        (
            "POST",
            PATH,
            r#"{"metadata": {"namespace": "a"}, "spec": {"numberOfClusters": "x"}}"#,
            400,
            "spec.numberOfClusters: ",
        ),
        ("GET", "/debug/placements/web", "", 400, "invalid debug path: namespace and name required"),
        ("GET", "/debug/placements/apps/", "", 400, "invalid debug path: namespace and name required"),
        ("GET", "/debug/placements/", "", 400, "invalid debug path: namespace and name required"),
        ("GET", "/debug/placements/apps/web/x", "", 400, "unexpected key format: \"apps/web/x\""),
        ("GET", "/debug/placements/apps/none", "", 404, "placement 'none' not found"),
        ("GET", "/debug/other", "", 404, "nothing is here; ask /debug/placements/NAMESPACE/NAME"),
        ("GET", "/", "", 404, "nothing is here"),
        ("DELETE", "/debug/placements/apps/web", "", 405, "method DELETE is not allowed; use GET or POST"),
        ("PUT", "/debug/placements/apps/web", "", 405, "method PUT is not allowed"),
        ("PATCH", "/debug/placements/apps/web", "", 405, "method PATCH is not allowed"),
    ] {
        let (status, answer) = scene.call(method, path, body).await;
        let error = answer["error"].as_str().unwrap();
        assert!(status == code && error.contains(told), "{method} {path} {body}: {status} {error}");
        assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
    }
    let long = "x".repeat(BODY_BYTES_MAX + 1);
    let (status, answer) = scene.call("POST", PATH, long).await;
    assert_eq!(
        (status, answer["error"].as_str().unwrap()),
        (400, "request body too large: exceeds maximum of 1048576 bytes")
    );
}

/// Upstream: debugger/debugger_test.go "TestDebuggerHandlerReportErr: GET placement lister failure",
/// "TestDebuggerHandlerReportErr: GET clusterset binding list failure", "TestDebuggerHandlerReportErr: GET managed
/// cluster list failure".
/// Here all of it is seen or nothing is.
#[tokio::test]
async fn a_fleet_that_cannot_be_seen_is_not_answered_about() {
    let of = |why| Fault::from(Unexplained::Unanswered(why));
    assert_eq!(of(Unanswered::Broken).status, 500);
    for (why, told) in [
        (Unanswered::NotSeen, "the fleet has not been seen yet"),
        (Unanswered::Busy, "too busy to answer in time"),
        (Unanswered::Stopped, "the controllers have stopped"),
    ] {
        assert_eq!(of(why), Fault::new(StatusCode::SERVICE_UNAVAILABLE, told));
    }
    let (client, _) = api_server(Policy::Open);
    let (inquirer, inquiries) = inquiries();
    drop(inquiries);
    let (_, unused) = crate::inquiry::inquiries();
    let scene = Scene {
        router: router(client, inquirer),
        asked: Asked::default(),
        _loop: AbortOnDropHandle::new(tokio::spawn(answer_from(fleet(), unused))),
    };
    assert_eq!(scene.get("/debug/placements/apps/web").await.0, 503);
}

/// Upstream: debugger/debugger_test.go "TestDebuggerGETMethod: A valid placement".
#[tokio::test]
async fn a_placement_that_exists_is_explained() {
    let scene = scene(Policy::Open);
    let (code, answer) = scene.get("/debug/placements/apps/web").await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(
        answer["placement"]["metadata"],
        json!({"namespace": "apps", "name": "web", "labels": {"a": "b"}})
    );
    assert_eq!(answer["placement"]["spec"]["numberOfClusters"], 1);
    assert_eq!(answer["placement"]["status"], Value::Null);
    assert_eq!(
        answer["filteredPipelineResults"],
        json!([
            {"name": "Predicate", "filteredClusters": ["b1", "b2", "b3"]},
            {"name": "Predicate,TaintToleration", "filteredClusters": ["b1", "b2"]},
        ])
    );
    assert_eq!(
        answer["prioritizeResults"],
        json!([
            {"name": "Balance", "weight": 1, "scores": {"b1": 100, "b2": 100}},
            {"name": "Steady", "weight": 1, "scores": {"b1": 100, "b2": 0}},
        ])
    );
    assert_eq!(
        answer["aggregatedScores"],
        json!([{"clusterName": "b1", "score": 200}, {"clusterName": "b2", "score": 100}])
    );
    assert_eq!(answer["simulated"], false);
    let explanation = &answer["explanation"];
    assert_eq!(explanation["outcome"], json!({"kind": "Decided"}));
    let told: Vec<(&str, &str)> = explanation["clusters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cluster| (cluster["cluster"].as_str().unwrap(), cluster["why"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("b1", "is selected, as before"),
            ("b2", "fits, but the 1 selected clusters rank higher"),
            ("b3", "has a taint that is not tolerated (gpu:NoSelect)"),
        ],
        "clusters of sets that are not bound are not told of"
    );
}

/// Upstream: debugger/debugger_test.go "TestDebuggerPOSTMethod".
#[tokio::test]
async fn a_placement_that_is_sent_is_explained_and_not_made() {
    let scene = scene(Policy::Open);
    let tolerant = json!({"tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 86400}]});
    let answer = scene.post(&sent(&tolerant)).await;
    assert_eq!(answer["simulated"], true);
    assert_eq!(answer["filteredPipelineResults"][1]["filteredClusters"], json!(["b2", "b3", "b1"]));
    assert_eq!(answer["explanation"]["next"]["cluster"], "b3", "{answer}");
    assert_eq!(scene.get("/debug/placements/apps/thought").await.0, 404);
    // What Go sends: fields of a server, empty ones, and a status.
    let answer = scene
        .post(&json!({
            "kind": "Placement", "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "metadata": {"namespace": "apps", "name": "thought", "creationTimestamp": null, "uid": "x", "resourceVersion": "7"},
            "spec": {"prioritizerPolicy": {}, "spreadPolicy": {}, "decisionStrategy": {"groupStrategy": {}}},
            "status": {"numberOfSelectedClusters": 0, "decisionGroups": null, "conditions": null},
        }))
        .await;
    assert_eq!(answer["placement"]["metadata"], json!({"namespace": "apps", "name": "thought"}));
    assert_eq!(answer["invalid"], Value::Null, "{answer}");
    assert_eq!(answer["explanation"]["selection"]["selected"], 2);
}

#[tokio::test]
async fn a_placement_is_explained_as_if_it_said_something_else() {
    let scene = scene(Policy::Open);
    let before = scene.get("/debug/placements/apps/web").await;
    let two = json!({"metadata": {"namespace": "apps", "name": "web"}, "spec": {"numberOfClusters": 2}});
    let answer = scene.post(&two).await;
    assert_eq!(
        answer["aggregatedScores"][0],
        json!({"clusterName": "b1", "score": 200}),
        "it holds b1 already"
    );
    assert_eq!(answer["explanation"]["selection"]["selected"], 2);
    assert_eq!(scene.get("/debug/placements/apps/web").await, before);
}

/// Upstream: debugger/debugger_test.go "TestDebuggerWithClusterSetValidation: No ClusterSetBinding - should return
/// empty clusters".
#[tokio::test]
async fn without_a_binding_there_are_no_clusters() {
    let scene = scene(Policy::Open);
    let answer = scene.post(&json!({"metadata": {"namespace": "elsewhere"}, "spec": {}})).await;
    assert_eq!(
        answer["filteredPipelineResults"],
        json!([
            {"name": "Predicate", "filteredClusters": []},
            {"name": "Predicate,TaintToleration", "filteredClusters": []},
        ])
    );
    assert_eq!(answer["aggregatedScores"], Value::Null);
    assert_eq!(answer["explanation"]["outcome"]["kind"], "NoBindings");
    assert_eq!(
        answer["explanation"]["clusters"],
        json!([]),
        "nothing is told of clusters that are not theirs"
    );
    assert!(
        answer["summary"][0].as_str().unwrap().contains("create a ManagedClusterSetBinding there"),
        "{answer}"
    );
}

/// Upstream: debugger/debugger_test.go "TestDebuggerWithClusterSetValidation: Placement specifies ClusterSets - should
/// filter clusters".
#[tokio::test]
async fn naming_sets_narrows_the_choice() {
    let mut stage = fleet();
    let binding = json!({"metadata": {"namespace": "apps", "name": "red"}, "spec": {"clusterSet": "red"}});
    stage.put(Kind::Binding, binding);
    let scene = scene_of(stage, Policy::Open);
    let all = scene.post(&sent(&json!({}))).await;
    assert_eq!(all["filteredPipelineResults"][0]["filteredClusters"], json!(["b1", "b2", "b3", "r1"]));
    let red = scene.post(&sent(&json!({"clusterSets": ["red"]}))).await;
    assert_eq!(red["filteredPipelineResults"][0]["filteredClusters"], json!(["r1"]));
    assert_eq!(red["explanation"]["clusters"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_misconfigured_is_told() {
    let scene = scene(Policy::Open);
    let wrong = json!({"tolerations": [{"key": "gpu", "operator": "Exists", "value": "a"}]});
    let answer = scene.post(&sent(&wrong)).await;
    assert_eq!(answer["filteredPipelineResults"], Value::Null);
    assert_eq!(answer["explanation"]["outcome"]["kind"], "Kept");
    assert_eq!(answer["explanation"]["complaints"][0]["path"], "spec.tolerations[0].value", "{answer}");
    let answer = scene.post(&sent(&json!({"sortBy": "Colour"}))).await;
    let invalid = answer["invalid"][0].as_str().unwrap();
    assert!(invalid.starts_with("spec.sortBy: "), "an API server would not take it: {invalid}");
}

#[tokio::test]
async fn a_field_that_nobody_knows_is_told_with_its_path() {
    let scene = scene(Policy::Open);
    let spec = json!({"numberOfCluster": 1, "tolerations": [{"keys": "gpu", "operator": "Exists"}]});
    let mut misspelt = sent(&spec);
    misspelt["metadata"]["lables"] = json!({});
    misspelt["specs"] = json!({});
    let answer = scene.post(&misspelt).await;
    let told = ["metadata.lables", "spec.numberOfCluster", "spec.tolerations[0].keys", "specs"]
        .map(|path| format!("{path}: there is no such field; it is ignored"));
    assert_eq!(answer["invalid"], json!(told));
    assert_eq!(answer["explanation"]["selection"]["selected"], 3, "as if it had not been there");
}

#[tokio::test]
async fn a_placement_that_nobody_decides_is_explained_as_it_would_be() {
    let mut stage = fleet();
    let annotations = json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
    let metadata = json!({"namespace": "apps", "name": "off", "annotations": annotations});
    stage.put(Kind::Placement, json!({"metadata": metadata, "spec": {}}));
    let scene = scene_of(stage, Policy::Open);
    let (code, answer) = scene.get("/debug/placements/apps/off").await;
    assert_eq!((code, answer["explanation"]["selection"]["selected"].as_i64()), (200, Some(2)), "{answer}");
    assert!(answer["idle"].as_str().unwrap().contains("experimental-scheduling-disable"));
    assert_eq!(answer["placement"]["metadata"]["annotations"], annotations);
}

#[tokio::test(start_paused = true)]
async fn one_question_follows_another_only_after_a_rest() {
    let (inquirer, mut inquiries) = inquiries();
    let asker = Arc::new(Asker::new(inquirer));
    let ask = |name: &'static str| {
        let asker = Arc::clone(&asker);
        tokio::spawn(async move { asker.ask(Question::Existing(ObjectKey::new("apps", name))).await })
    };
    // Whoever leaves without having waited for the answer leaves the next to wait all the same.
    let gone = ask("web");
    let question = inquiries.next().await;
    gone.abort();
    let next = ask("web");
    tokio::task::yield_now().await;
    assert!(futures::poll!(std::pin::pin!(inquiries.next())).is_pending(), "the first is still asked");
    question(Err(Unanswered::NotSeen));
    let question = inquiries.next().await;
    let mut stage = fleet();
    let model = Controller::model(&mut stage.controller).unwrap();
    question(Ok(Sight::new(&stage.world, model, stage.now)));
    assert!(next.await.unwrap().is_ok());
}

#[tokio::test]
async fn what_would_keep_the_loop_busy_is_not_asked() {
    let scene = scene(Policy::Open);
    let predicate =
        json!({"requiredClusterSelector": {"celSelector": {"celExpressions": vec!["1"; 70_000]}}});
    let dear = sent(&json!({"predicates": [predicate]})).to_string();
    let (code, answer) = scene.call("POST", PATH, dear).await;
    assert_eq!(code, 400, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("asks too much about the clusters"), "{answer}");
    // Few checks, of which each costs six hundred thousand units.
    let costly = format!("!'{}'.contains('{}')", "y".repeat(8_000), "x".repeat(7_500));
    let predicate = json!({"requiredClusterSelector": {"celSelector": {"celExpressions": vec![costly; 12]}}});
    let (code, answer) =
        scene.call("POST", PATH, sent(&json!({"predicates": [predicate]})).to_string()).await;
    assert_eq!(code, 400, "{answer}");
    assert!(
        answer["error"].as_str().unwrap().contains("expressions cost more than a question may"),
        "{answer}"
    );
    assert_eq!(scene.get("/debug/placements/apps/web").await.0, 200, "nobody else is kept waiting");
}

/// Upstream: debugger/debugger_test.go "TestDebuggerPermissionCheck: No user in context - should reject".
#[tokio::test]
async fn who_shows_no_token_or_a_wrong_one_is_nobody() {
    let open = scene(Policy::Open);
    for request in [
        Request::builder().uri("/debug/placements/apps/web"),
        Request::builder().uri("/debug/placements/apps/web").header("authorization", "Basic YTpi"),
    ] {
        let (code, answer) = open.send(request, "").await;
        assert_eq!(code, 401);
        assert!(answer["error"].as_str().unwrap().starts_with("user information not found"), "{answer}");
    }
    assert!(open.asked.lock().unwrap().is_empty(), "the API server was not troubled");
    let strangers = scene(Policy::Strangers);
    assert_eq!(strangers.get("/debug/placements/apps/web").await.0, 401);
    assert_eq!(strangers.get("/debug/placements/apps/web").await.0, 401);
    assert_eq!(strangers.reviews("TokenReview").len(), 2, "a no to a token is not kept");
}

/// Upstream: debugger/debugger_test.go "TestDebuggerPermissionCheck: User with permission - should allow",
/// "TestDebuggerPermissionCheck: User with Extra fields - should pass all fields to SAR".
#[tokio::test]
async fn reviews_carry_everything_of_the_user_and_are_asked_once() {
    let scene = scene(Policy::Open);
    for _ in 0..3 {
        assert_eq!(scene.get("/debug/placements/apps/web").await.0, 200);
    }
    let tokens = scene.reviews("TokenReview");
    assert_eq!(tokens, [json!({"token": "t0ken"})]);
    let user = json!({
        "user": "system:serviceaccount:apps:viewer", "uid": "u-1",
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "extra": {"example.org/scope": ["a", "b"]},
    });
    let mut path = user.clone();
    path["nonResourceAttributes"] = json!({"path": "/debug/placements/apps/web", "verb": "get"});
    let mut resource = user;
    resource["resourceAttributes"] = json!({
        "group": "cluster.open-cluster-management.io", "version": "v1beta1", "resource": "placements",
        "namespace": "apps", "verb": "get",
    });
    assert_eq!(scene.reviews("SubjectAccessReview"), [path, resource]);
}

/// Upstream: debugger/debugger_test.go "TestDebuggerPermissionCheck: GET user without permission - should reject with
/// get verb", "TestDebuggerPermissionCheck: POST user without permission - should reject with create verb".
#[tokio::test]
async fn who_may_not_is_told_what() {
    let scene_of = scene;
    let scene = scene_of(Policy::NoPlacements);
    let (code, answer) = scene.get("/debug/placements/apps/none").await;
    assert_eq!(code, 403, "not even whether it exists");
    assert_eq!(
        answer["error"],
        "user does not have permission to get placements in namespace apps: RBAC: nothing says so"
    );
    let (code, answer) = scene.call("POST", PATH, sent(&json!({})).to_string()).await;
    assert_eq!(code, 403);
    assert!(answer["error"].as_str().unwrap().contains("permission to create placements in namespace apps"));
    let reviews = scene.reviews("SubjectAccessReview").len();
    scene.get("/debug/placements/apps/web").await;
    assert_eq!(scene.reviews("SubjectAccessReview").len(), reviews + 1, "only the path is new");
    let scene = scene_of(Policy::NoPaths);
    let (code, answer) = scene.call("POST", PATH, "{not json").await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["error"],
        "forbidden: User \"system:serviceaccount:apps:viewer\" cannot post path \"/debug/placements/\": RBAC: nothing says so"
    );
}

/// Upstream: debugger/debugger_test.go "TestDebuggerPermissionCheck: SAR API call fails".
#[tokio::test]
async fn a_review_that_fails_is_an_error_and_is_asked_again() {
    for (policy, kind, told) in [
        (Policy::Lawless, "SubjectAccessReview", "failed to check permissions"),
        (Policy::Speechless, "TokenReview", "failed to check the token"),
    ] {
        let scene = scene(policy);
        for _ in 0..2 {
            let (code, answer) = scene.get("/debug/placements/apps/web").await;
            assert_eq!(code, 500);
            assert!(answer["error"].as_str().unwrap().starts_with(told), "{answer}");
        }
        assert!(scene.reviews(kind).len() >= 2);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_allowed_is_asked_for_again_after_a_while() {
    let scene = scene(Policy::Open);
    scene.get("/debug/placements/apps/web").await;
    tokio::time::advance(super::super::cache::HOLDS_FOR).await;
    scene.get("/debug/placements/apps/web").await;
    assert_eq!(scene.reviews("TokenReview").len(), 2);
    assert_eq!(scene.reviews("SubjectAccessReview").len(), 4);
}

#[tokio::test]
async fn questions_leave_the_model_to_the_controllers_as_it_was() {
    let (mut asked, mut other) = (fleet(), fleet());
    let now = Moment::from_second(1_700_000_000);
    for spec in [json!({}), json!({"numberOfClusters": 2}), json!({"tolerations": [{"operator": "Equal"}]})] {
        for name in ["web", "thought"] {
            let object = json!({"metadata": {"namespace": "apps", "name": name}, "spec": spec});
            let sent = read(object.to_string().as_bytes()).unwrap();
            let model = Controller::model(&mut asked.controller).unwrap();
            berth_engine::explain::explain_as_if(model, &sent.placement, None, now).unwrap().unwrap();
        }
    }
    for stage in [&mut asked, &mut other] {
        stage.remove(Kind::Cluster, &ObjectKey::new("", "b1"));
    }
    let (one, two) = (asked.settle(), other.settle());
    assert_eq!(one, two);
    assert!(!one.is_empty());
    assert_eq!(asked.objects(), other.objects());
}
