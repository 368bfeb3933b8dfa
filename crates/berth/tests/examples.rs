//! Every folder of examples that says what is expected of it is planned, as its reader would do it.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{plan_objects, text};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    at: String,
    placements: BTreeMap<String, Wanted>,
    #[serde(default)]
    changes: Vec<Change>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    args: Vec<String>,
    at: String,
    placements: BTreeMap<String, Wanted>,
}

/// What is not mentioned is not checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    selected: Option<Vec<String>>,
    satisfied: Option<bool>,
    misconfigured: Option<bool>,
    #[serde(default)]
    next: Next,
}

/// When a change is expected; null means that none is.
#[derive(Debug, Default)]
enum Next {
    #[default]
    Unchecked,
    At(Option<String>),
}

impl<'de> Deserialize<'de> for Next {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::At)
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The folders with an expectation.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(examples().join("stories"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .chain([examples().join("fleet")])
        .filter(|folder| folder.join(".expected").is_file())
        .collect();
    folders.sort();
    folders
}

/// Plans a folder; file names among the arguments are relative to it.
fn plan(folder: &Path, at: &str, args: &[String]) -> Vec<Value> {
    let mut line = ["--at", at, "-f"].map(str::to_owned).to_vec();
    line.push(folder.display().to_string());
    let mut path_follows = false;
    for arg in args {
        line.push(if path_follows { folder.join(arg).display().to_string() } else { arg.clone() });
        path_follows = arg == "--with";
    }
    plan_objects(&line)
}

fn condition(placement: &Value, kind: &str) -> Option<bool> {
    let conditions = placement.pointer("/status/conditions")?.as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some(condition["status"] == "True")
}

/// The clusters in all PlacementDecisions of a placement.
fn selected(objects: &[Value], namespace: &str, name: &str) -> Vec<String> {
    let mut selected: Vec<String> = objects
        .iter()
        .filter(|object| {
            object["kind"] == "PlacementDecision" && text(object, "/metadata/namespace") == namespace
        })
        .filter(|object| object["metadata"]["labels"]["cluster.open-cluster-management.io/placement"] == name)
        .flat_map(|object| object["status"]["decisions"].as_array().unwrap())
        .map(|decision| text(decision, "/clusterName").to_owned())
        .collect();
    selected.sort();
    selected
}

/// Every way in which the objects are not what was wanted.
fn differences(objects: &[Value], wanted: &BTreeMap<String, Wanted>) -> Vec<String> {
    let mut found = Vec::new();
    for (key, wanted) in wanted {
        let (namespace, name) = key.split_once('/').unwrap();
        let placement = objects.iter().find(|object| {
            object["kind"] == "Placement"
                && text(object, "/metadata/namespace") == namespace
                && text(object, "/metadata/name") == name
        });
        let Some(placement) = placement else {
            found.push(format!("{key}: not in the plan"));
            continue;
        };
        let mut compare = |what: &str, is: String, wanted: Option<String>| {
            if let Some(wanted) = wanted.filter(|wanted| *wanted != is) {
                found.push(format!("{key}: {what}\n    is     {is}\n    wanted {wanted}"));
            }
        };
        let list = |clusters: &Vec<String>| clusters.join(" ");
        compare("selected", list(&selected(objects, namespace, name)), wanted.selected.as_ref().map(list));
        for (what, kind, wanted) in [
            ("satisfied", "PlacementSatisfied", wanted.satisfied),
            ("misconfigured", "PlacementMisconfigured", wanted.misconfigured),
        ] {
            compare(
                what,
                format!("{:?}", condition(placement, kind)),
                wanted.map(|wanted| format!("{:?}", Some(wanted))),
            );
        }
        let next =
            placement.pointer("/status/nextTransition/time").and_then(Value::as_str).map(str::to_owned);
        if let Next::At(wanted) = &wanted.next {
            compare("next", format!("{next:?}"), Some(format!("{wanted:?}")));
        }
    }
    found
}

#[test]
fn every_example_comes_to_what_it_says() {
    let mut failures = Vec::new();
    let mut plans = 0;
    for folder in folders() {
        let expected = std::fs::read(folder.join(".expected")).unwrap();
        let expected: Expected = serde_json::from_slice(&expected).unwrap();
        let first = Change { args: Vec::new(), at: expected.at, placements: expected.placements };
        for change in std::iter::once(first).chain(expected.changes) {
            let objects = plan(&folder, &change.at, &change.args);
            plans += 1;
            let name = folder.file_name().unwrap().to_string_lossy();
            failures.extend(
                differences(&objects, &change.placements)
                    .into_iter()
                    .map(|difference| format!("{name} {:?} at {}: {difference}", change.args, change.at)),
            );
        }
    }
    assert!(plans >= 60, "only {plans} plans were found");
    assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures.join("\n"));
}
