//! `berth up` and `berth run` as processes: ready, at work, failing over, stopped.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use berth_api::{ManagedCluster, Placement, PlacementDecision};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{Condition, await_condition};
use kube::{Client, Config, Resource};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;

/// How long anything may take before a test has failed: several times what the slowest machine needs.
const PATIENCE: Duration = Duration::from_mins(1);

fn berth() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.env_remove("BERTH_LOG").env_remove("KUBECONFIG");
    command
}

/// A command that keeps running, ended with the test.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn up(flags: &[&str], data: &Path) -> Self {
        let mut up =
            Self::start(berth().args(["up", "--listen=127.0.0.1:0", "--data"]).arg(data).args(flags));
        assert!(up.line().starts_with("hub ready at https://127.0.0.1:"));
        let ready = up.line();
        assert!(ready.starts_with("controllers ready: "), "{ready}");
        up
    }

    fn hub(data: &Path) -> Self {
        let mut hub = Self::start(berth().args(["hub", "--listen=127.0.0.1:0", "--data"]).arg(data));
        assert!(hub.line().starts_with("hub ready at "));
        hub
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    /// Reads the log until a line has this in it; gives all that was read.
    fn log_until(&mut self, wanted: &str) -> String {
        let mut log = String::new();
        let mut byte = [0];
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut bytes = Vec::new();
        while !(log.ends_with('\n') && log.contains(wanted)) {
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "the log ended without {wanted:?}: {log}");
            bytes.push(byte[0]);
            log = String::from_utf8_lossy(&bytes).into_owned();
        }
        log
    }

    /// Sends a signal, waits for the end, and gives the exit code and the rest of the log.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }

    fn ends_well(self) -> String {
        let (code, log) = self.end(Signal::TERM);
        assert_eq!(code, Some(0), "{log}");
        log
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Waits until an object is as it should be.
async fn until<K>(api: &Api<K>, name: &str, condition: impl Condition<K>) -> K
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + DeserializeOwned + 'static,
{
    let seen = tokio::time::timeout(PATIENCE, await_condition(api.clone(), name, condition)).await;
    let seen = seen.unwrap_or_else(|_| panic!("{name} is not as it should be after {PATIENCE:?}"));
    seen.unwrap().unwrap()
}

fn clusters(decision: &PlacementDecision) -> Vec<&str> {
    let decisions = decision.status.iter().flat_map(|status| status.decisions.iter());
    decisions.map(|decision| decision.cluster_name.as_str()).collect()
}

/// A decision for exactly these.
fn names(wanted: &'static [&'static str]) -> impl Condition<PlacementDecision> {
    move |decision: Option<&PlacementDecision>| decision.is_some_and(|decision| clusters(decision) == wanted)
}

fn is_available(cluster: Option<&ManagedCluster>) -> bool {
    cluster.is_some_and(|cluster| {
        cluster.taints().is_empty() && cluster.available().is_some_and(|condition| condition.status == "True")
    })
}

fn demo(what: &str, cluster: &str, kubeconfig: &Path) {
    let done = berth().args(["demo", what, "--kubeconfig"]).arg(kubeconfig).arg(cluster).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8(done.stdout).unwrap().starts_with(&format!("the agent of {cluster} is ")));
}

/// What the demo promises: who has no patience leaves a silent cluster at once, and who has some is still there when the
/// cluster recovers.
#[tokio::test]
async fn the_demo_fails_over_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let kubeconfig = data.join("kubeconfig");
    let up = Running::up(&["--demo"], &data);
    let client = client(&kubeconfig).await;
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), "demo");
    let fleet: Api<ManagedCluster> = Api::all(client);
    until(&decisions, "web-decision-1", names(&["fra-1", "iad-1", "nrt-1"])).await;
    let before = until(&decisions, "ledger-decision-1", names(&["fra-1", "iad-1"])).await;

    demo("fail", "fra-1", &kubeconfig);
    until(&decisions, "web-decision-1", names(&["iad-1", "nrt-1", "sto-1"])).await;
    let failed = fleet.get("fra-1").await.unwrap();
    assert_eq!(failed.taints().len(), 1);
    assert_eq!(failed.available().unwrap().status, "Unknown");

    demo("recover", "fra-1", &kubeconfig);
    until(&fleet, "fra-1", is_available).await;
    let after = decisions.get("ledger-decision-1").await.unwrap();
    assert_eq!(
        after.metadata.resource_version, before.metadata.resource_version,
        "20 s of patience were enough"
    );
    assert_eq!(clusters(&decisions.get("web-decision-1").await.unwrap()), ["iad-1", "nrt-1", "sto-1"]);
    let log = up.ends_well();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

/// Leases that ran out while nothing was there to renew them are nobody's failure.
#[tokio::test]
async fn a_demo_that_was_stopped_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut versions = Vec::new();
    for round in ["first", "second"] {
        let up = Running::up(&["--demo"], &data);
        let client = client(&data.join("kubeconfig")).await;
        let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), "demo");
        let web = until(&decisions, "web-decision-1", names(&["fra-1", "iad-1", "nrt-1"])).await;
        versions.push(web.metadata.resource_version.unwrap());
        // A Placement of our own, to know that the controllers have been through everything.
        let placements: Api<Placement> = Api::namespaced(client.clone(), "demo");
        placements.create(&PostParams::default(), &Placement::new(round)).await.unwrap();
        let decision = format!("{round}-decision-1");
        until(&decisions, &decision, |one: Option<&PlacementDecision>| {
            one.is_some_and(|decision| clusters(decision).len() == 8)
        })
        .await;
        let fleet: Api<ManagedCluster> = Api::all(client);
        for cluster in fleet.list(&ListParams::default()).await.unwrap() {
            assert!(is_available(Some(&cluster)), "{cluster:?}");
        }
        up.ends_well();
    }
    assert_eq!(versions[0], versions[1]);
}

#[tokio::test]
async fn who_starts_without_a_fleet_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut up =
        Running::up(&["--metrics-bind=127.0.0.1:0", "--controllers=placement-controller"], folder.path());
    let mut guide = String::new();
    while !guide.contains("More: ") {
        guide.push_str(&up.line());
    }
    let kubeconfig = folder.path().join("kubeconfig");
    assert!(guide.contains(&format!("export KUBECONFIG={}\n", kubeconfig.display())), "{guide}");
    assert!(guide.contains("berth up --demo"), "{guide}");
    let definitions: Api<CustomResourceDefinition> = Api::all(client(&kubeconfig).await);
    assert_eq!(definitions.list(&ListParams::default()).await.unwrap().items.len(), berth_api::crds().len());
    up.ends_well();
}

/// The hub says who asks its controllers, and what they may.
#[tokio::test]
async fn the_debugger_of_a_hub_answers_its_own_accounts() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut up = Running::start(
        berth()
            .args(["up", "--listen=127.0.0.1:0", "--debug-bind=127.0.0.1:0", "--demo", "--data"])
            .arg(&data),
    );
    let kubeconfig = up.line();
    assert!(kubeconfig.starts_with("hub ready at "), "{kubeconfig}");
    let ready = up.line();
    let (_, url) = ready.trim_end().split_once(", debugger ").unwrap_or_else(|| panic!("{ready}"));
    let client = client(&data.join("kubeconfig")).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "demo");
    let account = serde_json::from_value(serde_json::json!({"metadata": {"name": "viewer"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request = TokenRequest::default();
    let token = accounts.create_token_request("viewer", &PostParams::default(), &request).await;
    let token = token.unwrap().status.unwrap().token;
    let mut config = Config::new(url.trim_end_matches("/debug/placements/").parse().unwrap());
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(token.into());
    let asker = Client::try_from(config).unwrap();
    let ask = async || {
        let request =
            http::Request::get("/debug/placements/demo/web").body(kube::client::Body::empty()).unwrap();
        let answer = asker.send(request).await.unwrap();
        (answer.status().as_u16(), answer.into_body().collect_bytes().await.unwrap())
    };
    let (code, told) = ask().await;
    assert_eq!(code, 403, "{}", String::from_utf8_lossy(&told));
    let role = serde_json::json!({"metadata": {"name": "viewer"}, "rules": [
        {"nonResourceURLs": ["/debug/placements/*"], "verbs": ["get"]},
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["placements"], "verbs": ["get"]},
    ]});
    let binding = serde_json::json!({
        "metadata": {"name": "viewer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "viewer"},
        "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": "demo"}],
    });
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(client);
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    // A no is believed for ten seconds.
    let answer = tokio::time::timeout(PATIENCE, async {
        loop {
            match ask().await {
                (200, told) => break told,
                (403, _) => tokio::time::sleep(Duration::from_millis(100)).await,
                (code, told) => panic!("{code} {}", String::from_utf8_lossy(&told)),
            }
        }
    });
    let answer: serde_json::Value = serde_json::from_slice(&answer.await.unwrap()).unwrap();
    assert_eq!(answer["explanation"]["outcome"]["kind"], "Decided", "{answer}");
    assert_eq!(answer["aggregatedScores"].as_array().unwrap().len(), 6, "{answer}");
    up.ends_well();
}

#[test]
fn a_certificate_that_cannot_be_used_is_told_of_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tls.crt");
    std::fs::write(&file, "nothing").unwrap();
    let output = berth()
        .args(["up", "--listen=127.0.0.1:0", "--debug-bind=127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .arg("--debug-certificate")
        .arg(&file)
        .arg("--debug-key")
        .arg(&file)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("tls.crt: there is no certificate in it"), "{told}");
}

/// A server without definitions is waited for; a clean end lets go of the Lease.
/// Upstream: manager_test.go "TestPlacementManager".
#[tokio::test]
async fn controllers_wait_for_their_kinds_and_let_go_of_their_lease() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Running::hub(folder.path());
    let kubeconfig = folder.path().join("kubeconfig");
    let mut run = Running::start(
        berth()
            .args(["run", "--metrics-bind=127.0.0.1:0", "--log-format=json", "--kubeconfig"])
            .arg(&kubeconfig),
    );
    let log = run.log_until("berth crds");
    assert!(log.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{log}");
    let client = client(&kubeconfig).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in berth_api::crds() {
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
    let ready = run.line();
    assert!(ready.starts_with("controllers ready: 6 of 9 on https://127.0.0.1:"), "{ready}");
    assert!(ready.trim_end().ends_with("/metrics"), "{ready}");
    let leases: Api<Lease> = Api::namespaced(client, "berth-system");
    let holder =
        |lease: &Lease| lease.spec.as_ref()?.holder_identity.clone().filter(|holder| !holder.is_empty());
    until(&leases, "berth", |lease: Option<&Lease>| lease.and_then(holder).is_some()).await;
    let log = run.ends_well();
    assert!(!log.contains("berth crds"), "told once: {log}");
    assert_eq!(holder(&leases.get("berth").await.unwrap()), None);
    hub.ends_well();
}

#[test]
fn a_server_that_is_not_there_is_waited_for_and_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Running::hub(folder.path());
    let kubeconfig = folder.path().join("kubeconfig");
    hub.ends_well();
    let mut run = Running::start(
        berth()
            .args([
                "run",
                "--metrics-bind=0",
                "--leader-elect=false",
                "--log=debug,hyper_util=off",
                "--kubeconfig",
            ])
            .arg(&kubeconfig),
    );
    // Some attempts, each told where everything is told.
    let attempts: Vec<String> = (0..3).map(|_| run.log_until("not ready yet")).collect();
    let log = attempts.concat() + &run.ends_well();
    assert_eq!(log.matches("does not answer").count(), 1, "{log}");
    assert!(log.contains("stopped"), "{log}");
}
