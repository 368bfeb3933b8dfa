//! What `berth hub` makes of the files it finds: its own, damaged ones, and those of somebody else.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Ended after a while, whatever happens: a hub that starts where it should not would run for ever.
fn berth() -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_berth")]).env_remove("BERTH_LOG").env_remove("KUBECONFIG");
    command
}

/// Starts a hub, ends it once it is ready, and gives what it said on standard error.
fn starts(data: &Path) -> String {
    let mut child = berth()
        .args(["hub", "--listen=127.0.0.1:0", "--data"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    // One that ended by itself has nobody to tell.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    let told = told(&child.wait_with_output().unwrap());
    assert!(ready.starts_with("hub ready at "), "{told}");
    told
}

/// Starts a hub and kills it once it is ready, without a chance to close anything.
fn killed(data: &Path) {
    // Not under `timeout`, which would be killed in its place.
    let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["hub", "--listen=127.0.0.1:0", "--data"])
        .arg(data)
        .env_remove("BERTH_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready.starts_with("hub ready at "), "{ready}");
}

/// A hub that must not start: nothing on standard output, and an error.
fn refuses(data: &Path) -> String {
    let output = berth().args(["hub", "--listen=127.0.0.1:0", "--data"]).arg(data).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    told(&output)
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_emptied_store_is_not_taken_for_a_new_hub() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    starts(&data);
    fs::write(data.join("hub.redb"), b"").unwrap();
    let said = refuses(&data);
    assert!(
        said.contains(
            "hub.redb is damaged: it is empty; restore a backup with `berth hub restore --replace`"
        ),
        "{said}"
    );
    assert_eq!(fs::metadata(data.join("hub.redb")).unwrap().len(), 0);
}

#[test]
fn a_killed_hub_whose_journal_is_lost_does_not_start_until_a_backup_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup"));
    starts(&data);
    fs::copy(data.join("hub.redb"), &backup).unwrap();
    fs::remove_file(data.join("hub.log")).unwrap();
    // After a clean stop it is not needed.
    killed(&data);
    fs::remove_file(data.join("hub.log")).unwrap();
    let said = refuses(&data);
    assert!(said.contains("hub.log is missing"), "{said}");
    assert!(said.contains("may be lost; put the journal back as it was, or restore a backup"), "{said}");
    let restored =
        berth().args(["hub", "restore", "--replace", "--data"]).arg(&data).arg(&backup).output().unwrap();
    assert!(restored.status.success(), "{}", told(&restored));
    starts(&data);
}

#[test]
fn a_backup_restored_where_the_store_is_lost_does_not_meet_the_old_journal() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup"));
    starts(&data);
    fs::copy(data.join("hub.redb"), &backup).unwrap();
    for round in 1..4 {
        killed(&data);
        fs::remove_file(data.join("hub.redb")).unwrap();
        let restored = berth().args(["hub", "restore", "--data"]).arg(&data).arg(&backup).output().unwrap();
        assert!(restored.status.success(), "{}", told(&restored));
        assert!(data.join(format!("hub.redb.replaced-{round}.log")).is_file());
        assert!(!data.join("hub.log").exists());
    }
    starts(&data);
}

#[test]
fn a_missing_store_beside_keys_is_not_taken_for_a_new_hub() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    starts(&data);
    fs::rename(data.join("hub.redb"), folder.path().join("elsewhere")).unwrap();
    let said = refuses(&data);
    let expected = format!(
        "{0}/hub.redb is missing, but {0}/pki is there, so this hub had one; put it back, restore a backup with `berth \
         hub restore --data {0} BACKUP`, or move {0} away to begin with an empty hub",
        data.display()
    );
    assert!(said.contains(&expected), "{said}");
    assert!(!data.join("hub.redb").exists());
    fs::rename(folder.path().join("elsewhere"), data.join("hub.redb")).unwrap();
    starts(&data);
}

/// Whatever a stop in the middle of the very first start leaves behind, the next start goes on from there.
#[test]
fn a_first_start_that_was_cut_short_does_not_stand_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    starts(&whole);
    // What a start makes, in the order in which it makes it.
    let steps =
        [".gitignore", "hub.lock", "hub.redb.partial", "hub.redb", "pki", "pki/ca.pem", "pki/serving.pem"];
    for made in 0..=steps.len() {
        let data = folder.path().join(format!("cut-{made}"));
        fs::create_dir(&data).unwrap();
        for step in &steps[..made] {
            match *step {
                "pki" => fs::create_dir(data.join(step)).unwrap(),
                "hub.redb.partial" => fs::write(data.join(step), b"half a file").unwrap(),
                _ => drop(fs::copy(whole.join(step), data.join(step)).unwrap()),
            }
        }
        starts(&data);
    }
}

#[test]
fn a_folder_of_something_else_is_not_a_hubs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let said = refuses(folder.path());
    assert!(said.contains("holds files that are not a hub's"), "{said}");
    assert_eq!(names(folder.path()), ["thesis.txt"]);
}

#[test]
fn a_hub_whose_serving_key_is_broken_never_says_that_it_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    starts(&data);
    fs::write(data.join("pki/serving.pem"), "not a key").unwrap();
    let said = refuses(&data);
    assert!(said.contains("serving.pem is broken"), "{said}");
}

#[test]
fn a_damaged_store_is_told_in_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    starts(&data);
    let path = data.join("hub.redb");
    let whole = fs::read(&path).unwrap();
    let mut told = 0;
    for tenth in 1..10 {
        let mut bytes = whole.clone();
        let from = bytes.len() * tenth / 10;
        bytes[from..].fill(0xff);
        fs::write(&path, &bytes).unwrap();
        let output =
            berth().args(["hub", "restore", "--data"]).arg(folder.path().join("to")).arg(&path).output();
        let said = self::told(&output.unwrap());
        assert!(!said.contains("panicked"), "{said}");
        told += usize::from(said.contains("damaged"));
        let _ = fs::remove_dir_all(folder.path().join("to"));
    }
    assert!(told > 0, "no damage was met");
}

#[test]
fn what_never_ends_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for source in [Path::new("/dev/zero"), &pipe, folder.path()] {
        let output = berth().args(["hub", "restore", "--data"]).arg(&data).arg(source).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = told(&output);
        assert!(
            said.contains(&format!("{} is no backup: it is not a regular file", source.display())),
            "{said}"
        );
        assert!(!data.exists(), "nothing is made for a slip");
    }
}

/// A disk that takes no more is played by a limit on the size of files.
#[test]
fn a_restoration_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    starts(&from);
    starts(&to);
    let backup = folder.path().join("backup");
    fs::copy(from.join("hub.redb"), &backup).unwrap();
    let before = (names(&to), fs::read(to.join("hub.redb")).unwrap());
    let restore = |data: &Path| {
        let script = format!(
            "trap '' XFSZ; ulimit -f 64; exec {} hub restore --replace --data {} {}",
            env!("CARGO_BIN_EXE_berth"),
            data.display(),
            backup.display()
        );
        Command::new("/bin/sh").args(["-c", &script]).output().unwrap()
    };
    let failed = restore(&to);
    assert_eq!(failed.status.code(), Some(1), "{}", told(&failed));
    assert!(told(&failed).contains("nothing was restored"), "{}", told(&failed));
    assert_eq!(told(&failed).matches("File too large").count(), 1, "{}", told(&failed));
    assert!((names(&to), fs::read(to.join("hub.redb")).unwrap()) == before, "{:?}", names(&to));
    let new = folder.path().join("new");
    assert_eq!(restore(&new).status.code(), Some(1));
    assert!(!new.exists(), "a directory made for nothing goes again");
}

#[test]
fn keys_that_others_can_read_are_closed_to_them_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    starts(&data);
    let mode = |name: &str| fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    let open =
        |name: &str, mode| fs::set_permissions(data.join(name), fs::Permissions::from_mode(mode)).unwrap();
    open("pki", 0o755);
    for (name, mode) in [("ca.pem", 0o644), ("serving.pem", 0o660), ("service-accounts.pem", 0o604)] {
        open(&format!("pki/{name}"), mode);
    }
    let said = starts(&data);
    for name in ["ca.pem", "serving.pem", "service-accounts.pem"] {
        assert_eq!(mode(&format!("pki/{name}")), 0o600, "{name}");
        assert!(said.contains(&format!("pki/{name}")), "{said}");
    }
    assert_eq!(mode("pki"), 0o700);
    assert!(said.contains("could be read by others"), "{said}");
    assert!(!starts(&data).contains("could be read by others"), "only once");
}

#[test]
fn what_the_system_says_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let absent = folder.path().join("absent");
    let (file, absent) = (file.to_str().unwrap(), absent.to_str().unwrap());
    let under = format!("{file}/data");
    for flags in [
        &["hub", "--data", &under][..],
        &["hub", "--in-memory", "--kubeconfig", absent, "--token-auth-file", absent],
        &["hub", "--in-memory", "--kubeconfig", &under],
        &["hub", "--in-memory", "--kubeconfig", absent, "--listen", "192.0.2.1:6443"],
        &["hub", "restore", "--data", absent, absent],
        &["hub", "restore", "--data", &under, file],
        &["hub", "backup", "--kubeconfig", absent, &under],
        &["hub", "backup", "--kubeconfig", absent, &format!("{absent}2")],
    ] {
        let mut command = berth();
        command.args(flags);
        if !flags.contains(&"--listen") && flags[1].starts_with("--") {
            command.arg("--listen=127.0.0.1:0");
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {}", told(&output));
        let said = told(&output);
        assert!(said.matches("(os error ").count() <= 1, "{flags:?}: {said}");
    }
}

#[test]
fn a_level_that_does_not_exist_is_refused_with_those_that_do() {
    for wrong in ["inof", "", "berth_hub=loud", "info,dbeug", "info,,debug"] {
        let output =
            berth().args(["hub", "--in-memory", "--kubeconfig=/nowhere/k", "--log", wrong]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", told(&output));
        assert!(
            told(&output).contains("off, error, warn, info, debug or trace"),
            "{wrong:?}: {}",
            told(&output)
        );
    }
}

#[test]
fn a_backup_is_asked_of_the_hub_that_the_environment_names() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut hub = berth()
        .args(["hub", "--listen=127.0.0.1:0", "--data"])
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    BufReader::new(hub.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    let save = |name: &str, kubeconfig: &str| {
        let mut command = berth();
        command.env("KUBECONFIG", kubeconfig).env("XDG_DATA_HOME", folder.path().join("nothing"));
        command.args(["hub", "backup"]).arg(folder.path().join(name)).output().unwrap()
    };
    let (kubeconfig, absent) = (data.join("kubeconfig"), folder.path().join("absent"));
    let one = save("one", kubeconfig.to_str().unwrap());
    let unnamed = save("two", "");
    let wrong = save("three", absent.to_str().unwrap());
    // Asked to end: `timeout` passes that on, and would leave the hub behind if it were killed itself.
    let pid = rustix::process::Pid::from_child(&hub);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    hub.wait().unwrap();
    assert!(one.status.success(), "{}", told(&one));
    assert!(folder.path().join("one").is_file());
    assert!(
        told(&unnamed).contains("nothing/berth/kubeconfig: this kubeconfig cannot be used"),
        "{}",
        told(&unnamed)
    );
    assert!(told(&wrong).contains("$KUBECONFIG"), "{}", told(&wrong));
    assert!(!folder.path().join("two").exists() && !folder.path().join("three").exists());
}
