//! `berth hub` as a process: ready, stopped, backed up, restored.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rustix::process::{Pid, Signal, kill_process};

fn berth() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.env_remove("BERTH_LOG");
    command
}

/// A running hub, ended with the test.
struct Hub {
    child: Child,
    ready: String,
}

impl Hub {
    fn start(flags: &[&str]) -> Self {
        let mut child = berth()
            .args(["hub", "--listen=127.0.0.1:0"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        Self { child, ready }
    }

    fn on(data: &Path) -> Self {
        Self::start(&["--data", data.to_str().unwrap()])
    }

    /// Sends a signal, waits for the end, and gives the exit code and the log.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_hub_says_where_it_is_and_ends_well_when_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let hub = Hub::on(&folder.path().join("data"));
        let kubeconfig = folder.path().join("data/kubeconfig");
        let (address, file) = hub.ready.trim_end().split_once(", kubeconfig ").unwrap();
        let port = address.strip_prefix("hub ready at https://127.0.0.1:").unwrap();
        assert_ne!(port.parse::<u16>().unwrap(), 0);
        assert_eq!(Path::new(file), kubeconfig);
        assert!(fs::read_to_string(&kubeconfig).unwrap().contains(&format!("https://127.0.0.1:{port}")));
        assert_eq!(fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
        let (code, log) = hub.end(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains('\u{1b}'), "no colour where there is no terminal: {log}");
    }
}

/// A watch never ends by itself: whoever stops a hub must not wait for one, and whoever watches must see a clean end.
#[test]
fn a_watch_ends_cleanly_when_the_hub_does() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::on(&folder.path().join("data"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (code, log) = runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(folder.path().join("data/kubeconfig")).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let request = http::Request::get("/api/v1/namespaces?watch=true").body(Body::empty()).unwrap();
        let mut events = client.send(request).await.unwrap().into_body();
        assert!(events.frame().await.unwrap().is_ok());
        let ended = tokio::task::spawn_blocking(move || hub.end(Signal::TERM));
        while let Some(frame) = events.frame().await {
            assert!(frame.is_ok(), "{frame:?}");
        }
        ended.await.unwrap()
    });
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("still open"), "{log}");
}

#[test]
fn a_hub_in_memory_leaves_nothing_but_its_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("k/config");
    let hub = Hub::start(&["--in-memory", "--kubeconfig", kubeconfig.to_str().unwrap(), "--log=debug"]);
    assert!(kubeconfig.is_file());
    let (code, log) = hub.end(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["k"]);
}

#[test]
fn two_hubs_share_neither_data_nor_address() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let hub = Hub::on(&data);
    let second = berth().args(["hub", "--listen=127.0.0.1:0", "--data"]).arg(&data).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(told(&second).contains("in use by another process"), "{}", told(&second));
    assert!(second.stdout.is_empty());

    let address = hub.ready.split_once("https://").unwrap().1.split_once(',').unwrap().0.to_owned();
    let listen = format!("--listen={address}");
    let second = berth().args(["hub", &listen, "--data"]).arg(folder.path().join("other")).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(told(&second).contains(&format!("cannot listen on {address}")), "{}", told(&second));
    assert!(!folder.path().join("other").exists(), "an address that is taken costs nothing");
}

#[test]
fn an_address_that_others_reach_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut child = berth()
        .args(["hub", "--listen=0.0.0.0:0", "--data"])
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    let (_, log) = Hub { child, ready: ready.clone() }.end(Signal::TERM);
    assert!(ready.starts_with("hub ready at https://127.0.0.1:"), "{ready}");
    assert!(log.contains("warning: the hub listens on 0.0.0.0:"), "{log}");
}

#[test]
fn a_hub_is_backed_up_while_it_runs_and_restored_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let backup = folder.path().join("monday.backup");
    let kubeconfig = data.join("kubeconfig");
    let save = |to: &Path| {
        berth().args(["hub", "backup", "--kubeconfig"]).arg(&kubeconfig).arg(to).output().unwrap()
    };
    let restore = |flags: &[&str], to: &Path| {
        berth().args(["hub", "restore", "--data"]).arg(to).args(flags).arg(&backup).output().unwrap()
    };

    let hub = Hub::on(&data);
    let saved = save(&backup);
    assert!(saved.status.success(), "{}", told(&saved));
    let said = String::from_utf8(saved.stdout).unwrap();
    let objects: u32 = said.split_once(" objects at revision ").unwrap().0.parse().unwrap();
    assert!(objects > 20, "namespaces and roles at least: {said}");
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    let whole = fs::read(&backup).unwrap();
    let again = save(&backup);
    assert_eq!(again.status.code(), Some(1));
    assert!(told(&again).contains("exists already"), "{}", told(&again));
    assert!(fs::read(&backup).unwrap() == whole);

    let busy = restore(&["--replace"], &data);
    assert_eq!(busy.status.code(), Some(1));
    assert!(told(&busy).contains("a hub runs on this data"), "{}", told(&busy));
    let (code, log) = hub.end(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");

    let gone = save(&folder.path().join("tuesday.backup"));
    assert_eq!(gone.status.code(), Some(1));
    assert!(told(&gone).contains("does not answer"), "{}", told(&gone));

    let full = restore(&[], &data);
    assert_eq!(full.status.code(), Some(1));
    assert!(told(&full).contains("has a store already"), "{}", told(&full));
    let replaced = restore(&["--replace"], &data);
    assert!(replaced.status.success(), "{}", told(&replaced));
    assert!(data.join("hub.redb.replaced-1").is_file());
    let fresh = restore(&[], &copy);
    assert!(fresh.status.success(), "{}", told(&fresh));
    for data in [&data, &copy] {
        let (code, log) = Hub::on(data).end(Signal::TERM);
        assert_eq!(code, Some(0), "{log}");
    }

    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "nothing half done is left behind: {names:?}");
}

#[test]
fn a_folder_of_something_else_is_not_restored_into() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    fs::write(folder.path().join("backup"), "not a backup").unwrap();
    let restore = |data: &Path| {
        berth()
            .args(["hub", "restore", "--data"])
            .arg(data)
            .arg(folder.path().join("backup"))
            .output()
            .unwrap()
    };
    let refused = restore(folder.path());
    assert_eq!(refused.status.code(), Some(1));
    assert!(told(&refused).contains("files that are not a hub's"), "{}", told(&refused));
    let broken = restore(&folder.path().join("new"));
    assert_eq!(broken.status.code(), Some(1));
    assert!(told(&broken).starts_with("berth: nothing was restored: "), "{}", told(&broken));
}
