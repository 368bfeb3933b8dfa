//! The command line from outside: transcripts, pipes, generated pages.

use std::io::Read as _;
use std::process::{Command, Stdio};

fn berth() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    command
}

#[test]
fn transcripts_hold() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

/// A reader that stops early must not make the writer fail or complain.
#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("many.yaml");
    // Far more than a pipe holds, so that the command is still writing when the reader is gone.
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\n";
    std::fs::write(&file, object.repeat(20_000)).unwrap();
    let mut child = berth()
        .args(["convert", "-f"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = [0_u8; 16];
    out.read_exact(&mut first).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn manual_pages_and_completions_are_generated_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    assert!(berth().args(["man", "--dir"]).arg(dir.path()).status().unwrap().success());
    let convert = std::fs::read_to_string(dir.path().join("berth-convert.1")).unwrap();
    assert!(convert.contains(".TH"), "{convert}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = berth().args(["completions", shell]).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("convert"), "{shell}");
    }
}

/// What a plan prints can be stored and planned again, and then stands.
#[test]
fn the_objects_of_a_plan_are_a_plan_that_stands() {
    let fleet = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd/plan.in/fleet");
    let plan = |folder: &std::path::Path, output: &str| {
        let output = berth()
            .args(["plan", "--at", "2026-05-01T12:02:00Z", "-o", output, "-f"])
            .arg(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    for format in ["yaml", "json"] {
        let dir = tempfile::tempdir().unwrap();
        for file in ["clusters.yaml", "sets.yaml"] {
            std::fs::copy(fleet.join(file), dir.path().join(file)).unwrap();
        }
        let objects = plan(&fleet, format);
        std::fs::write(dir.path().join("planned").with_extension(format), &objects).unwrap();
        let shown = String::from_utf8(plan(dir.path(), "table")).unwrap();
        assert!(shown.contains("No changes: the decisions in the input stand."), "{shown}");
        assert_eq!(plan(dir.path(), format), objects, "and comes to the same objects");
    }
}

/// A group that vanishes shifts all groups after it, which must not fill the screen.
#[test]
fn many_clusters_in_another_group_are_counted_beyond_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let rollout = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd/plan.in/rollout");
    let cluster = |n| {
        format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: c{n}}}\n"
        )
    };
    let more: Vec<String> = (10..40).map(cluster).collect();
    let file = dir.path().join("more.yaml");
    std::fs::write(&file, more.concat()).unwrap();
    let plan = |output: &str| {
        let mut command = berth();
        command.args(["plan", "--at", "2026-05-01T12:00:00Z", "--without", "c1", "-o", output, "-f"]);
        let output = command.arg(&rollout).arg("-f").arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let short = plan("table");
    assert_eq!(short.matches("group 1 -> 0\n").count(), 20, "{short}");
    assert!(short.contains("\n  and 13 more in another group, all shown with -o wide\n"), "{short}");
    assert_eq!(plan("wide").matches("group 1 -> 0\n").count(), 33);
}

#[test]
fn a_missing_folder_for_manual_pages_is_named() {
    let output = berth().args(["man", "--dir", "/nonexistent/pages"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("berth: /nonexistent/pages: the manual pages cannot be written"), "{told}");
}
