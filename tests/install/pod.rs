//! A pod without a kubelet: the binary with a Deployment's arguments, and the files of its service account where they belong.
//!
//! The files appear in a mount namespace of the process alone, by way of `unshare`: so the binary finds the API server as it
//! does in a cluster, by the environment and the files, and the machine's own folders stay as they are. It runs as the user that
//! the Deployment names, without capabilities and without a way to gain any, and the namespace has a say in its template.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use berth_bed::{BedError, Companion, or_skip};
use berth_tests::caller::{Caller, text};
use kube::Config;
use serde_json::{Value, json};

use crate::ground::Ground;

/// Puts the folder of the account where a kubelet would, the program beside it, where everybody may go, and becomes the program
/// with nothing else in its environment, confined as the template says.
const ENTER: &str = r#"mount -t tmpfs -o mode=755 none /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
mount --bind "$1" /run/secrets/kubernetes.io/serviceaccount
export KUBERNETES_SERVICE_HOST="$2" KUBERNETES_SERVICE_PORT="$3"
user=$4 group=$5
touch /run/berth
mount --bind "$6" /run/berth
shift 6
exec setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
  env -u KUBECONFIG -u HOME -u XDG_DATA_HOME /run/berth "$@""#;

pub(crate) struct Pod {
    pub(crate) process: Companion,
    pub(crate) user: String,
    /// The files of its account.
    folder: PathBuf,
    /// The namespace and the name of its account.
    account: (String, String),
}

impl Pod {
    /// Starts one pod of a Deployment; nothing where processes cannot have mounts of their own. `name` is that of its log.
    pub(crate) async fn start(ground: &Ground, name: &'static str, deployment: &Value) -> Option<Self> {
        or_skip(can_unshare())?;
        let namespace = text(deployment, "/metadata/namespace");
        let spec = &deployment["spec"]["template"]["spec"];
        let account = text(spec, "/serviceAccountName");
        permitted(ground, namespace, name, &deployment["spec"]["template"]).await;
        let folder = ground.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.join("ca.crt"), &ground.bed.admin_identity().authority).unwrap();
        fs::write(folder.join("namespace"), namespace).unwrap();
        fs::write(folder.join("token"), token(ground, namespace, account).await).unwrap();
        let (host, port) = ground.bed.url().strip_prefix("https://").unwrap().split_once(':').unwrap();
        let berth = or_skip(berth_bed::berth())?;
        let mut line: Vec<String> =
            ["--mount", "--propagation=private", "sh", "-e", "-c", ENTER, "pod"].map(str::to_owned).into();
        let [user, group] = ["runAsUser", "runAsGroup"].map(|key| spec["securityContext"][key].to_string());
        line.extend([folder.display().to_string(), host.to_owned(), port.to_owned(), user, group]);
        line.push(berth.display().to_string());
        let container = &spec["containers"][0];
        line.extend(
            container["args"].as_array().unwrap().iter().map(|arg| on_loopback(arg.as_str().unwrap())),
        );
        let process = Companion::announced(&ground.bed, name, "unshare".into(), line).await.unwrap();
        confined(&process);
        probed(&process, container).await;
        let user = format!("system:serviceaccount:{namespace}:{account}");
        Some(Self { process, user, folder, account: (namespace.to_owned(), account.to_owned()) })
    }

    /// Lets a Service of its namespace lead here, on a port of the Service.
    pub(crate) async fn serve(&self, ground: &Ground, service: &str, port: u16) {
        let path = format!("/api/v1/namespaces/{}/services/{service}", self.account.0);
        let found = ground.caller.get(&path).await.ok();
        let line = self.process.announcement();
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("https://")).unwrap();
        ground.network.lead(format!("{}:{port}", text(&found, "/spec/clusterIP")), address.parse().unwrap());
    }

    /// Puts another token in the place of the first, as a kubelet does before one runs out.
    pub(crate) async fn renew_token(&self, ground: &Ground) {
        let (namespace, account) = &self.account;
        let fresh = self.folder.join("token.fresh");
        fs::write(&fresh, token(ground, namespace, account).await).unwrap();
        fs::rename(fresh, self.folder.join("token")).unwrap();
    }
}

/// A pod has an address of its own, and its ports are free. Here every server is on loopback, on any port.
fn on_loopback(argument: &str) -> String {
    match argument.split_once("=0.0.0.0:") {
        Some((flag, _)) => format!("{flag}=127.0.0.1:0"),
        None => argument.to_owned(),
    }
}

/// The API server lets a pod of the template in, and so does the standard that the namespace is held to.
async fn permitted(ground: &Ground, namespace: &str, name: &str, template: &Value) {
    let mut pod = template.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    let made = ground.caller.post(&format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"), &pod).await;
    // Of what the standard would have otherwise, one hears in warnings.
    assert!(made.code == 201 && made.warnings.is_empty(), "{made:?}");
    let namespace = ground.caller.get(&format!("/api/v1/namespaces/{namespace}")).await.ok();
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
}

/// What runs has no power over the machine, and no way to any.
fn confined(process: &Companion) {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid().unwrap())).unwrap();
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim();
    assert!(!value("Uid:").split_whitespace().any(|user| user == "0"), "{status}");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(value(set), "0000000000000000", "{set}");
    }
    assert_eq!(value("NoNewPrivs:"), "1");
}

/// Answers as a kubelet wants it: who says that it works is ready.
async fn probed(process: &Companion, container: &Value) {
    let line = process.announcement();
    let (_, rest) = line.split_once(", metrics http://").unwrap_or_else(|| panic!("no metrics in {line:?}"));
    let address = rest.split('/').next().unwrap();
    let asked = Caller::of(Config::new(format!("http://{address}").parse().unwrap()));
    for probe in ["livenessProbe", "readinessProbe"] {
        asked.get(text(container, &format!("/{probe}/httpGet/path"))).await.ok();
    }
}

/// A token of an account, as a kubelet asks for it.
pub(crate) async fn token(ground: &Ground, namespace: &str, account: &str) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    text(&ground.caller.post(&path, &request).await.ok(), "/status/token").to_owned()
}

fn can_unshare() -> Result<(), BedError> {
    let mut tried = Command::new("unshare");
    tried.args(["--mount", "setpriv", "--no-new-privs", "mount", "-t", "tmpfs", "none", "/run"]);
    let tried = tried.output();
    if tried.is_ok_and(|output| output.status.success()) && Path::new("/var/run/.").exists() {
        return Ok(());
    }
    Err(BedError::Absent {
        what: "a mount namespace for a pod".to_owned(),
        remedy: "run as root, with unshare and setpriv of util-linux",
    })
}
