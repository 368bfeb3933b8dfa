//! What a bed makes of a hub that does not keep to the contract. A hub that does is what the scenarios run on.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use berth_bed::{Bed, BedError};

/// A program in place of `berth` that knows of `hub --help` and otherwise does what `script` says.
fn berth(folder: &Path, script: &str) -> PathBuf {
    written(folder, &format!("#!/bin/sh\n[ \"$2\" = --help ] && exit 0\n{script}\n"))
}

/// Written by another process: a file that this one has just had open for writing cannot be run while a child that
/// another test has begun to start still holds it open.
fn written(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("berth");
    let write = r#"printf '%s' "$1" > "$0" && chmod 755 "$0""#;
    let written = Command::new("/bin/sh").args(["-c", write]).arg(&path).arg(text).status();
    assert!(written.unwrap().success());
    path
}

async fn refusal(script: &str) -> BedError {
    let folder = tempfile::tempdir().unwrap();
    Bed::hub().program(berth(folder.path(), script)).await.unwrap_err()
}

/// The folders of beds that did not start are kept; these tests have read what they wanted.
fn discard(folder: Option<&Path>) {
    fs::remove_dir_all(folder.expect("a file in the bed's folder")).unwrap();
}

#[tokio::test]
async fn a_berth_without_a_hub_is_an_absent_bed() {
    let folder = tempfile::tempdir().unwrap();
    let absent = Bed::hub().program(written(folder.path(), "#!/bin/sh\nexit 2\n")).await.unwrap_err();
    assert!(absent.to_string().contains("has no `hub` command"), "{absent}");
    assert!(matches!(absent, BedError::Absent { .. }));
}

#[tokio::test]
async fn a_hub_that_ends_is_shown_with_its_last_words() {
    let error = refusal("echo cannot open the data >&2; exit 3").await;
    let BedError::Ended { server: "hub", status, log, tail } = &error else { panic!("{error}") };
    assert_eq!((status.code(), tail.as_str()), (Some(3), "cannot open the data\n"));
    discard(log.parent());
}

#[tokio::test]
async fn a_hub_that_announces_no_address_is_told_so() {
    let error = refusal("echo here I am; exec sleep 1000").await;
    let BedError::Announcement { server: "hub", line, log } = &error else { panic!("{error}") };
    assert_eq!(line, "here I am");
    discard(log.parent());
}

#[tokio::test]
async fn a_hub_that_writes_no_kubeconfig_is_told_so() {
    let error = refusal("echo ready at https://127.0.0.1:1; exec sleep 1000").await;
    let BedError::Kubeconfig { path, .. } = &error else { panic!("{error}") };
    assert_eq!(path.file_name().unwrap(), "kubeconfig");
    discard(path.parent());
}
