//! What a run is: the command that began it, what it measured, of what and on what.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, ensure};
use berth_bed::tool;
use serde_json::{Value, json};

use super::contender::{Contender, Scale};
use super::evict::Crowd;
use super::silence::Silence;
use super::{API_SERVER, Effort, STEADY_PLACEMENTS};
use crate::figure::grouped;

/// The command that began this run, as it is typed in the checkout.
pub(super) fn command() -> anyhow::Result<String> {
    let here = env::current_dir().context("the current folder is unknown")?;
    Ok(typed(env::args().skip(1), &here))
}

/// `./dev` makes the paths of files absolute, of which only what is in the checkout is anybody's business.
fn typed(arguments: impl Iterator<Item = String>, here: &Path) -> String {
    let mut text = String::from("./dev bench");
    for argument in arguments {
        let within = Path::new(&argument).strip_prefix(here).ok().and_then(Path::to_str);
        let argument = within.unwrap_or(&argument);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,=:+".contains(letter);
        text.push(' ');
        if !argument.is_empty() && argument.chars().all(is_plain) {
            text.push_str(argument);
        } else {
            let _ = write!(text, "'{}'", argument.replace('\'', r"'\''"));
        }
    }
    text
}

/// What was measured, of what, on what.
pub(super) fn about(
    effort: &Effort,
    programs: &BTreeMap<Contender, PathBuf>,
    definitions: &str,
    command: &str,
) -> anyhow::Result<Value> {
    let berth = match programs.iter().find(|(contender, _)| !contender.is_peer()) {
        Some((_, berth)) => {
            let said = Command::new(berth).arg("--version").output().context("cannot run berth")?;
            ensure!(said.status.success(), "berth does not tell its version");
            Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
        }
        None => None,
    };
    let commit = commit(Path::new("."));
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    Ok(json!({
        "command": command,
        "clusters": effort.clusters,
        "placements": effort.placements,
        "placements_when_steady": effort.placements.min(STEADY_PLACEMENTS),
        "reactions": effort.reactions,
        "churn_seconds": effort.churn.as_secs(),
        "rounds": effort.rounds,
        "nodes": effort.crowd.nodes,
        "pods_on_each": effort.crowd.pods,
        "silence": {
            "nodes": effort.silence.crowd.nodes,
            "round_seconds": effort.silence.pace.round.as_secs(),
            "grace_seconds": effort.silence.pace.grace.as_secs(),
        },
        "seed": effort.seed,
        "etcd_fsync": effort.fsync,
        "definitions": definitions,
        "api_server_flags": API_SERVER,
        "berth": berth,
        "commit": commit,
        "kubernetes": version("kube-apiserver"),
        "etcd": version("etcd"),
        "ocm": version("ocm-placement"),
        "processors": processors,
        "processor": line("/proc/cpuinfo", "model name"),
        "memory": line("/proc/meminfo", "MemTotal"),
    }))
}

/// The commit that a folder is a checkout of, where git is there to tell.
fn commit(folder: &Path) -> Option<String> {
    let said =
        Command::new("git").arg("-C").arg(folder).args(["rev-parse", "--short", "HEAD"]).output().ok()?;
    let name = String::from_utf8(said.stdout).ok()?;
    (said.status.success() && !name.trim().is_empty()).then(|| name.trim().to_owned())
}

/// What was measured of ours, as the beginning of a list: nothing where only others were.
fn ours(about: &Value) -> String {
    match (about["berth"].as_str(), about["commit"].as_str()) {
        (Some(berth), Some(commit)) => format!("{berth} (commit {commit}), "),
        (Some(berth), None) => format!("{berth}, "),
        (None, _) => String::new(),
    }
}

/// The version of an upstream tool, from where it is kept.
fn version(name: &str) -> Option<String> {
    let path = tool(name).ok()?;
    let folder = path.parent()?.parent()?.file_name()?.to_str()?;
    folder.split_once('-').map(|(_, version)| version.to_owned())
}

/// What a file of the system says under a key.
fn line(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.split_once(':'));
    value.map(|(_, value)| value.trim().to_owned())
}

/// What a table is about, in a few sentences before it.
pub(super) fn preface(effort: &Effort, scale: Scale, about: &Value) -> String {
    let text = |key: &str| about[key].as_str().unwrap_or("?").to_owned();
    let crowded = |crowd: &Crowd| {
        let [nodes, pods] = [crowd.nodes, crowd.pods].map(|count| grouped(count as i64));
        format!("{nodes} nodes with {pods} pods each, ")
    };
    let (load, limits) = match scale {
        Scale::Fleet => (
            format!(
                "{} clusters, {} placements ({} in \"one taint\" and \"churn\"), seed {}, ",
                grouped(effort.clusters as i64),
                grouped(effort.placements as i64),
                effort.placements.min(STEADY_PLACEMENTS),
                effort.seed,
            ),
            format!("OCM {}, {} definitions, ", text("ocm"), text("definitions")),
        ),
        Scale::Nodes => (crowded(&effort.crowd), String::new()),
        Scale::Silence => {
            let Silence { crowd, pace } = &effort.silence;
            let (round, grace) = (pace.round.as_secs(), pace.grace.as_secs());
            let times = format!("leases renewed every {round} s, a grace period of {grace} s, ");
            (crowded(crowd) + &times, String::new())
        }
    };
    let whose = match scale {
        Scale::Fleet => "OCM's",
        Scale::Nodes | Scale::Silence => "kube-controller-manager's",
    };
    format!(
        "`{}`\n\n{load}{} round{}; {}{limits}Kubernetes {}, etcd {} ({} fsync); {} × {}, {}. Everybody runs without leader election; \
         {whose} client limits are 5,000 requests a second (burst 10,000) unless it says default. (×N) is N times Berth's \
         figure, or behind Berth's N times the bare client's.",
        text("command"),
        effort.rounds,
        if effort.rounds == 1 { "" } else { "s" },
        ours(about),
        text("kubernetes"),
        text("etcd"),
        if effort.fsync { "with" } else { "without" },
        about["processors"],
        text("processor"),
        text("memory"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn a_table_names_the_berth_that_was_measured_and_its_commit_where_that_is_known() {
        let told = |berth: Value, commit: Value| {
            let about =
                json!({"command": "./dev bench peers", "berth": berth, "commit": commit, "kubernetes": "v1"});
            let effort = Effort::of(&Options::default(), true);
            preface(&effort, Scale::Nodes, &about)
        };
        assert!(
            told(json!("berth 0.1.0"), json!("abc1234"))
                .contains("1 round; berth 0.1.0 (commit abc1234), Kubernetes v1")
        );
        assert!(told(json!("berth 0.1.0"), Value::Null).contains("1 round; berth 0.1.0, Kubernetes v1"));
        assert!(told(Value::Null, json!("abc1234")).contains("1 round; Kubernetes v1"));
    }

    #[test]
    fn a_folder_that_is_no_checkout_has_no_commit() {
        assert_eq!(commit(&env::temp_dir().join("no such folder")), None);
    }

    #[test]
    fn a_command_is_told_as_it_was_typed_without_where_the_checkout_is() {
        let arguments =
            ["peers", "--write", "/home/me/berth/docs/x.md", "--json", "/tmp/a b.json", "--nodes=120"];
        let told = typed(arguments.map(str::to_owned).into_iter(), Path::new("/home/me/berth"));
        assert_eq!(told, "./dev bench peers --write docs/x.md --json '/tmp/a b.json' --nodes=120");
    }
}
