//! The debugger of placements, asked over HTTPS by service accounts.

use berth_bed::{Companion, or_skip};
use berth_tests::{
    caller::{Caller, text},
    waiting::until,
};
use kube::Config;
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, taint},
    ground::{QUIET, Turn, grounds},
    handle::{Fleet, GROUP, PATIENCE},
};

const PATH: &str = "/debug/placements/";

/// Controllers that can be asked.
struct Debugger {
    url: String,
    _controllers: Companion,
}

impl Debugger {
    async fn start(turn: &Turn<'_>) -> Option<Self> {
        let flags: Vec<&str> = QUIET.iter().copied().chain(["--debug-bind=127.0.0.1:0"]).collect();
        let controllers = or_skip(turn.run("controllers", &flags).await)?;
        let said = controllers.announcement();
        let (_, url) = said.split_once("debugger ").unwrap_or_else(|| panic!("no debugger: {said}"));
        let url = url.split(PATH).next().unwrap().to_owned();
        assert!(url.starts_with("https://127.0.0.1:"), "{said}");
        Some(Self { url, _controllers: controllers })
    }

    /// Somebody who asks it.
    fn asked_with(&self, token: Option<&str>) -> Caller {
        let mut config = Config::new(self.url.parse().unwrap());
        // Its certificate is its own.
        config.accept_invalid_certs = true;
        config.auth_info.token = token.map(|token| token.to_owned().into());
        Caller::of(config)
    }
}

/// Lets a service account ask at the debugger's paths, and do this to Placements of its namespace.
async fn grant(fleet: &Fleet, account: &str, verbs: &[&str]) {
    let namespace = &fleet.namespace;
    let role = fleet.name(account);
    let rbac = "rbac.authorization.k8s.io";
    let subjects = format!("[{{kind: ServiceAccount, name: {account}, namespace: {namespace}}}]");
    let path_rights = format!(
        "apiVersion: {rbac}/v1
kind: ClusterRole
metadata: {{name: {role}}}
rules: [{{nonResourceURLs: [/debug/placements/*], verbs: [get, post]}}]
---
apiVersion: {rbac}/v1
kind: ClusterRoleBinding
metadata: {{name: {role}}}
roleRef: {{apiGroup: {rbac}, kind: ClusterRole, name: {role}}}
subjects: {subjects}
"
    );
    fleet.caller.apply(&path_rights).await;
    if !verbs.is_empty() {
        let rights = format!(
            "apiVersion: {rbac}/v1
kind: Role
metadata: {{name: {account}, namespace: {namespace}}}
rules: [{{apiGroups: [cluster.open-cluster-management.io], resources: [placements], verbs: [{}]}}]
---
apiVersion: {rbac}/v1
kind: RoleBinding
metadata: {{name: {account}, namespace: {namespace}}}
roleRef: {{apiGroup: {rbac}, kind: Role, name: {account}}}
subjects: {subjects}
",
            verbs.join(", ")
        );
        fleet.caller.apply(&rights).await;
    }
}

/// Asks until the answer has that code: the authorizer of Kubernetes learns of grants a moment later, and a no is believed
/// for ten seconds.
async fn until_answered(caller: &Caller, path: &str, body: Option<&Value>, code: u16) -> Value {
    until(&format!("{path} answering {code}"), PATIENCE, async || {
        let answer = match body {
            Some(body) => caller.post(path, body).await,
            None => caller.get(path).await,
        };
        if answer.code == code { Ok(answer.body) } else { Err(format!("{} {}", answer.code, answer.body)) }
    })
    .await
}

/// Every cluster, placement and decision, as name and version.
async fn everything(fleet: &Fleet) -> Vec<String> {
    let mut seen = Vec::new();
    for kind in ["v1/managedclusters", "v1beta1/placements", "v1beta1/placementdecisions"] {
        let list = fleet.caller.get(&format!("{GROUP}/{kind}")).await.ok();
        let items = list["items"].as_array().unwrap().iter();
        seen.extend(items.map(|item| {
            format!("{kind} {} {}", text(item, "/metadata/name"), text(item, "/metadata/resourceVersion"))
        }));
    }
    seen
}

/// How far the server has come: every write, of anything by anybody, moves it on.
async fn revision(fleet: &Fleet) -> String {
    let list = fleet.caller.get(&format!("{GROUP}/v1beta1/placements?limit=1")).await.ok();
    text(&list, "/metadata/resourceVersion").to_owned()
}

/// The names of clusters in a list of an answer, as the scenario knows them.
fn short(fleet: &Fleet, names: &Value) -> Vec<String> {
    let names = names.as_array().unwrap_or_else(|| panic!("no list: {names}"));
    let prefix = format!("{}-", fleet.namespace);
    names.iter().map(|name| name.as_str().unwrap().trim_start_matches(&prefix).to_owned()).collect()
}

async fn three_clusters(fleet: &Fleet) {
    fleet.bound_set("blue").await;
    fleet.add(Cluster::named("c1").of("blue")).await;
    fleet.add(Cluster::named("c2").of("blue")).await;
    fleet
        .add(Cluster::named("c3").of("blue").taint(&taint("gpu", "", "NoSelect", jiff::Timestamp::now())))
        .await;
    fleet.set("red").await;
    fleet.add(Cluster::named("r1").of("red")).await;
    fleet.place("p", "numberOfClusters: 1").await;
    fleet.selects("p", &["c1"]).await;
}

grounds! {
    /// Upstream: integration/placement/debugger_test.go "Should allow request with valid ServiceAccount token and proper
    /// RBAC". Upstream: placement_debugger_test.go "Should debug placement with GET method using curl pod".
    turn async fn a_service_account_with_rights_is_told_why(turn: &mut Turn<'_>) {
        let Some(debugger) = Debugger::start(turn).await else { return };
        let fleet = &turn.fleet;
        three_clusters(fleet).await;
        let caller = debugger.asked_with(Some(&fleet.token("viewer").await));
        grant(fleet, "viewer", &["get"]).await;
        let path = format!("{PATH}{}/p", fleet.namespace);
        let answer = until_answered(&caller, &path, None, 200).await;
        assert_eq!(answer["placement"]["metadata"]["name"], "p");
        let stage = |number: usize| short(fleet, &answer["filteredPipelineResults"][number]["filteredClusters"]);
        assert_eq!(stage(0), ["c1", "c2", "c3"]);
        assert_eq!(stage(1), ["c1", "c2"]);
        let scores: Vec<i64> = answer["aggregatedScores"].as_array().unwrap().iter()
            .map(|score| score["score"].as_i64().unwrap()).collect();
        assert_eq!(scores.len(), 2);
        assert!(scores[0] > scores[1], "{scores:?}");
        let clusters = answer["explanation"]["clusters"].as_array().unwrap();
        let why = |short: &str| {
            let found = clusters.iter().find(|cluster| cluster["cluster"] == *fleet.name(short));
            text(found.unwrap_or_else(|| panic!("{short} is not in {answer}")), "/why").to_owned()
        };
        assert_eq!(why("c1"), "is selected, as before");
        assert_eq!(why("c3"), "has a taint that is not tolerated (gpu:NoSelect)");
        assert_eq!(clusters.len(), 3, "nothing is told of clusters that no set of the namespace contains");
        // A right to read is none to try.
        let sent = json!({"metadata": {"namespace": fleet.namespace, "name": "x"}, "spec": {}});
        let refused = until_answered(&caller, PATH, Some(&sent), 403).await;
        let told = format!("user does not have permission to create placements in namespace {}", fleet.namespace);
        assert!(text(&refused, "/error").starts_with(&told), "{refused}");
    }

    /// Upstream: integration/placement/debugger_test.go "Should reject request when ServiceAccount lacks RBAC permission".
    turn async fn a_service_account_without_rights_is_told_what_it_lacks(turn: &mut Turn<'_>) {
        let Some(debugger) = Debugger::start(turn).await else { return };
        let fleet = &turn.fleet;
        let nobody = debugger.asked_with(None);
        let path = format!("{PATH}{}/p", fleet.namespace);
        assert!(text(&nobody.get(&path).await.refused(401).0, "/error").contains("Authorization: Bearer"));
        debugger.asked_with(Some("not-a-token")).get(&path).await.refused(401);
        let stranger = debugger.asked_with(Some(&fleet.token("stranger").await));
        let refused = stranger.get(&path).await.refused(403).0;
        let user = format!("system:serviceaccount:{}:stranger", fleet.namespace);
        assert!(text(&refused, "/error").starts_with(&format!("forbidden: User {user:?} cannot get path {path:?}")), "{refused}");
        // The path alone is not enough.
        let passer = debugger.asked_with(Some(&fleet.token("passer").await));
        grant(fleet, "passer", &[]).await;
        let refused = until(&format!("{path} open to passer"), PATIENCE, async || {
            let answer = passer.get(&path).await;
            let told = answer.refused(403).0;
            if text(&told, "/error").starts_with("forbidden") { Err(told.to_string()) } else { Ok(told) }
        }).await;
        let told = format!("user does not have permission to get placements in namespace {}", fleet.namespace);
        assert!(text(&refused, "/error").starts_with(&told), "{refused}");
    }

    /// Upstream: integration/placement/debugger_test.go "Should accept POST request with placement JSON and valid token".
    /// Upstream: placement_debugger_test.go "Should debug placement with POST method using curl pod".
    /// Upstream: defects "15".
    turn async fn a_placement_that_is_sent_is_tried_and_nothing_is_written(turn: &mut Turn<'_>) {
        let Some(debugger) = Debugger::start(turn).await else { return };
        let fleet = &turn.fleet;
        three_clusters(fleet).await;
        let caller = debugger.asked_with(Some(&fleet.token("planner").await));
        grant(fleet, "planner", &["get", "create"]).await;
        let sent = |name: &str, spec: Value| json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"namespace": fleet.namespace, "name": name}, "spec": spec,
        });
        until_answered(&caller, PATH, Some(&sent("warm-up", json!({}))), 200).await;
        let before = everything(fleet).await;
        let tolerant = json!({"tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 3600}]});
        let answer = caller.post(PATH, &sent("thought", tolerant)).await.ok();
        assert_eq!(answer["simulated"], true);
        let mut feasible = short(fleet, &answer["filteredPipelineResults"][1]["filteredClusters"]);
        feasible.sort();
        assert_eq!(feasible, ["c1", "c2", "c3"]);
        assert_eq!(answer["explanation"]["next"]["cluster"], *fleet.name("c3"), "it would leave by itself: {answer}");
        // As if the one that exists said something else.
        let two = caller.post(PATH, &sent("p", json!({"numberOfClusters": 2}))).await.ok();
        assert_eq!(two["explanation"]["selection"]["selected"], 2, "{two}");
        let wrong = json!({"tolerations": [{"key": "gpu", "operator": "Exists", "value": "a"}]});
        let wrong = caller.post(PATH, &sent("wrong", wrong)).await.ok();
        assert_eq!(wrong["filteredPipelineResults"], Value::Null);
        let complaint = &wrong["explanation"]["complaints"][0];
        assert_eq!(complaint["path"], "spec.tolerations[0].value", "what is misconfigured is told: {wrong}");
        let path = format!("{PATH}{}/thought", fleet.namespace);
        caller.get(&path).await.refused(404);
        let one = caller.get(&format!("{PATH}{}/p", fleet.namespace)).await.ok();
        assert_eq!(one["explanation"]["selection"]["selected"], 1);
        assert_eq!(everything(fleet).await, before);
        // Others write now and then; a question that wrote would do so every time.
        until("a question that leaves the server's revision as it is", PATIENCE, async || {
            let before = revision(fleet).await;
            caller.post(PATH, &sent("thought", json!({}))).await.ok();
            let after = revision(fleet).await;
            if before == after { Ok(()) } else { Err(format!("from {before} to {after}")) }
        }).await;
        // And the controllers go on as if nobody had asked.
        fleet.remove("c1").await;
        fleet.selects("p", &["c2"]).await;
    }
}
