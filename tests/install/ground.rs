//! An API server that writes down who asked for what, and `berth` and `kubectl` beside it.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use berth_bed::{Bed, or_skip};
use berth_tests::caller::Caller;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{ledger::Ledger, network::Network};

/// What is written down: every request of a service account, and of reviews who is asked about.
const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  userGroups: ["system:serviceaccounts"]
  resources: [{group: authorization.k8s.io, resources: [subjectaccessreviews]}]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
"#;

pub(crate) struct Ground {
    pub(crate) bed: Bed,
    pub(crate) caller: Caller,
    pub(crate) network: Network,
    pub(crate) folder: TempDir,
}

impl Ground {
    /// A kube-apiserver on which garbage is collected and namespaces end; nothing where that cannot be had.
    pub(crate) async fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
        std::fs::write(&policy, POLICY).unwrap();
        let (network, egress) = Network::begin(folder.path());
        let flags = [
            &*format!("--egress-selector-config-file={}", egress.display()),
            &*format!("--audit-policy-file={}", policy.display()),
            &*format!("--audit-log-path={}", log.display()),
            // As on clusters where owners are protected from their dependents.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        ];
        let controllers = "--controllers=garbage-collector-controller,namespace-controller";
        let bed =
            Bed::kubernetes().without_fsync().api_server(&flags).controller_manager(&[controllers]).await;
        let bed = or_skip(bed)?;
        let caller = Caller::admin(&bed);
        Some(Self { bed, caller, network, folder })
    }

    /// What was asked of the server.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::read(&self.folder.path().join("audit.log"))
    }

    /// What `berth` prints.
    pub(crate) fn berth(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(berth_bed::berth().unwrap());
        command.args(arguments).env("KUBECONFIG", self.bed.kubeconfig()).output().unwrap()
    }

    /// What `berth` prints when all goes well.
    pub(crate) fn print(&self, arguments: &[&str]) -> String {
        let output = self.berth(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// `kubectl ARGUMENTS`, with something to read.
    pub(crate) fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let output = self.try_kubectl(arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap() + &errors
    }

    pub(crate) fn try_kubectl(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.bed.kubectl().unwrap();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Applies what `berth install` with these flags prints, and gives it back.
    pub(crate) async fn install(&self, flags: &[&str]) -> Vec<Value> {
        let printed = self.print(&[&["install"], flags].concat());
        self.kubectl(&["apply", "--server-side", "--validate=strict", "-f", "-"], &printed);
        self.served().await;
        for kind in ["evictionpolicies", "replacementpolicies", "replacements"] {
            let path = format!("{POLICIES}/{kind}?limit=1");
            self.caller.until(&path, "is served", |list| list["items"].is_array()).await;
        }
        berth_tests::caller::documents(&printed)
    }

    /// Waits until our kinds are served.
    pub(crate) async fn served(&self) {
        for kind in [
            "v1/managedclusters",
            "v1beta2/managedclustersets",
            "v1beta2/managedclustersetbindings",
            "v1beta1/placements",
            "v1beta1/placementdecisions",
            "v1alpha1/addonplacementscores",
        ] {
            let path = format!("{GROUP}/{kind}?limit=1");
            self.caller.until(&path, "is served", |list| list["items"].is_array()).await;
        }
    }

    /// Makes a namespace of that name.
    pub(crate) async fn namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.caller.post("/api/v1/namespaces", &namespace).await.ok();
    }

    /// Makes an object of our group.
    pub(crate) async fn make(
        &self,
        version: &str,
        namespace: Option<&str>,
        kind: &str,
        name: &str,
        spec: Value,
    ) {
        let place = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
        let path = format!("{GROUP}/{version}{place}/{}s", kind.to_lowercase());
        let object = json!({
            "apiVersion": format!("cluster.open-cluster-management.io/{version}"), "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        self.caller.post(&path, &object).await.ok();
    }
}

pub(crate) const GROUP: &str = "/apis/cluster.open-cluster-management.io";
/// Where policies are.
pub(crate) const POLICIES: &str = "/apis/berth.dev/v1alpha1";

/// The folder of the project.
pub(crate) fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Runs a scenario.
pub(crate) fn run(scenario: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(scenario);
}
