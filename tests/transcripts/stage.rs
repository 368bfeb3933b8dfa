//! Where stories are played: a bed, a namespace and a folder of their own, and a shell with `kubectl`.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use berth_bed::{Bed, BedError, Kind, or_skip};
use tokio::sync::Mutex;

use crate::mask::mask;
use crate::story::{self, Step};

/// How long one step may take. kubectl itself waits up to half a minute for a server that does not answer.
const STEP: Duration = Duration::from_mins(1);

/// The part of a cluster's controllers that the hub has as well.
const CONTROLLERS: &str = "--controllers=clusterrole-aggregation-controller,disruption-controller,\
    garbage-collector-controller,namespace-controller,root-ca-certificate-publisher-controller,\
    serviceaccount-controller,serviceaccount-token-controller";

/// What the shell knows besides: `shows FILE TEXT` waits as a person at a second terminal does, `serves RESOURCE` until a
/// resource is described, as the real server publishes the schema of a definition some time after it, and `may VERB
/// RESOURCE USER` until somebody is allowed what has just been granted, which the real server learns a moment later.
const PRELUDE: &str = r#"
shows() { until grep -q -e "$2" "$1" 2>/dev/null; do sleep 0.05; done; }
serves() { until kubectl explain "$1" >/dev/null 2>&1; do sleep 0.1; done; }
may() { until kubectl auth can-i "$1" "$2" --as="$3" -q 2>/dev/null; do sleep 0.1; done; }
"#;

/// Plays a story to its transcript; nothing when a part of the stage is not on this machine.
pub(crate) fn play(name: &str, kind: Kind) -> Option<String> {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> =
        LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap());
    let bed = or_skip(RUNTIME.block_on(shared(kind)))?;
    play_on(&bed, name)
}

/// Plays a story on a hub that nobody else has used.
pub(crate) fn play_anew(name: &str) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let bed = or_skip(runtime.block_on(async { Bed::hub().await }))?;
    play_on(&bed, name)
}

fn play_on(bed: &Bed, name: &str) -> Option<String> {
    let stage = Stage::new(bed, name)?;
    let mut transcript = String::new();
    for step in story::read(name) {
        stage.act(&step, &mut transcript);
    }
    Some(transcript)
}

/// The bed of that kind that the stories of this process share, ended with the last of them.
async fn shared(kind: Kind) -> Result<Arc<Bed>, BedError> {
    static BEDS: [Mutex<Weak<Bed>>; 2] = [const { Mutex::const_new(Weak::new()) }; 2];
    let mut current = BEDS[usize::from(kind == Kind::Kubernetes)].lock().await;
    if let Some(bed) = current.upgrade() {
        return Ok(bed);
    }
    let started = match kind {
        Kind::Hub => Bed::hub().await?,
        Kind::Kubernetes => Bed::kubernetes().without_fsync().controller_manager(&[CONTROLLERS]).await?,
    };
    let bed = Arc::new(started);
    *current = Arc::downgrade(&bed);
    Ok(bed)
}

/// The `kubectl` of the bed, else one on the PATH that speaks as that one does.
fn kubectl(bed: &Bed) -> Option<PathBuf> {
    let theirs = match bed.kubectl() {
        Ok(command) => return Some(command.get_program().into()),
        Err(error) => error,
    };
    let version = Command::new("kubectl").args(["version", "--client"]).output().ok();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if version.contains("Client Version: v1.36.") {
        let path = std::env::var_os("PATH")?;
        return std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|path| path.is_file());
    }
    or_skip(Err(theirs))
}

struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new(bed: &Bed, name: &str) -> Option<Self> {
        let kubectl = kubectl(bed)?;
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        let bin = stage.path("bin");
        fs::create_dir(&bin).unwrap();
        symlink(kubectl, bin.join("kubectl")).unwrap();
        fs::copy(bed.kubeconfig(), stage.path("kubeconfig")).unwrap();
        for (folder, from) in [("crds", "../deploy/crds"), ("examples", "../examples")] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(from);
            symlink(from.canonicalize().unwrap(), stage.path(folder)).unwrap();
        }
        let namespace = name.replace('_', "-");
        for script in [
            &format!("kubectl create namespace {namespace}"),
            // What every namespace has comes a moment later.
            &format!("until kubectl get configmap kube-root-ca.crt -n {namespace}; do sleep 0.05; done"),
            &format!("kubectl config set-context --current --namespace={namespace}"),
        ] {
            stage.act(&Step { script: script.clone(), shown: false }, &mut String::new());
        }
        Some(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a step and writes down what was seen of it.
    fn act(&self, step: &Step, transcript: &mut String) {
        let (status, out, err) = self.run(&step.script);
        let folder = self.folder.path().to_str().unwrap();
        let (out, err) = (mask(&out, folder), mask(&err, folder));
        if !step.shown {
            assert!(status.success(), "% {}\n{out}{err}", step.script);
            return;
        }
        if !transcript.is_empty() {
            transcript.push('\n');
        }
        writeln!(transcript, "$ {}", step.script).unwrap();
        transcript.push_str(&out);
        if !out.is_empty() && !out.ends_with('\n') {
            transcript.push('\n');
        }
        for line in err.lines() {
            writeln!(transcript, "! {line}").unwrap();
        }
        if !status.success() {
            writeln!(
                transcript,
                "[{}]",
                status.code().map_or("killed".to_owned(), |code| format!("exit {code}"))
            )
            .unwrap();
        }
    }

    fn run(&self, script: &str) -> (ExitStatus, String, String) {
        let bin = self.path("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("{PRELUDE}{script}")])
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("KUBECONFIG", self.path("kubeconfig"))
            // Answers of discovery are kept by address, and another bed may have had this one's.
            .env("KUBECACHEDIR", self.path("cache"))
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (ended, wait) = std::sync::mpsc::channel::<()>();
        let group = child.id();
        // Whoever hangs is ended, with everything it started, and what it said until then is in the transcript.
        let guard = std::thread::spawn(move || {
            if wait.recv_timeout(STEP) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("/bin/sh").args(["-c", &format!("kill -s KILL -- -{group}")]).status();
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).unwrap();
            text
        });
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        let errors = errors.join().unwrap();
        let status = child.wait().unwrap();
        drop(ended);
        guard.join().unwrap();
        (status, text, errors)
    }
}
