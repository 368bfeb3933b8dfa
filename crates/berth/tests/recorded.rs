//! Fleets whose decisions by the reference implementation were recorded come to the same objects here.
//!
//! The records lie beside the project and are not part of it; without them there is nothing to check.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod common;

use std::path::{Path, PathBuf};

use common::{plan_objects, text};
use serde_json::{Value, json};

const GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
const GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";

fn records() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/ocm-golden");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    assert!(files.len() >= 140, "{} of at least 140 recordings found", files.len());
    files
}

/// The conditions without their times, in the order of their types.
fn conditions(status: &Value) -> Vec<Value> {
    let mut conditions: Vec<Value> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| json!([c["type"], c["status"], c["reason"], c["message"]]))
        .collect();
    conditions.sort_by_key(ToString::to_string);
    conditions
}

/// Every way in which a plan is not what was recorded.
fn differences(objects: &[Value], existed: bool, want: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, is: &Value, wanted: &Value| {
        if is != wanted {
            found.push(format!("{what}\n    is     {is}\n    wanted {wanted}"));
        }
    };
    let placement = objects.iter().find(|object| object["kind"] == "Placement").unwrap();
    let status = &placement["status"];
    compare("conditions", &json!(conditions(status)), &json!(conditions(want)));
    if want.get("error").is_some() {
        // There the recorded program empties or keeps decisions as it happens to; here they are kept.
        return found;
    }
    for field in ["numberOfSelectedClusters", "decisionGroups"] {
        compare(field, &status[field], &want[field]);
    }
    let slices = objects.iter().filter(|object| object["kind"] == "PlacementDecision");
    let mut is: Vec<Value> = slices
        .map(|slice| {
            let decisions = slice["status"]["decisions"].as_array().unwrap();
            let clusters: Vec<&str> =
                decisions.iter().map(|decision| text(decision, "/clusterName")).collect();
            let labels = &slice["metadata"]["labels"];
            slice_form(
                &slice["metadata"]["name"],
                &json!(clusters),
                &labels[GROUP_NAME],
                &labels[GROUP_INDEX],
                existed,
            )
        })
        .collect();
    let wanted = want["decisions"].as_array().unwrap().iter();
    let mut wanted: Vec<Value> = wanted
        .map(|slice| {
            slice_form(&slice["name"], &slice["clusters"], &slice["group"], &slice["index"], existed)
        })
        .collect();
    // The record lists them by name as text, so that slice 10 comes before slice 2.
    for slices in [&mut is, &mut wanted] {
        slices.sort_by_key(|slice| slice[0].to_string());
    }
    compare("decisions", &json!(is), &json!(wanted));
    found
}

/// A slice as it is compared: the recorded program writes the labels of a slice that existed only on its next pass.
fn slice_form(name: &Value, clusters: &Value, group: &Value, index: &Value, existed: bool) -> Value {
    if existed && name == "web-decision-1" {
        json!([name, clusters])
    } else {
        json!([name, clusters, group, index])
    }
}

#[test]
fn every_recorded_fleet_is_decided_as_it_was() {
    let mut failures = Vec::new();
    let files = records();
    if files.is_empty() {
        eprintln!("skipped: the recorded decisions are not beside this project");
    }
    for file in &files {
        let manifests = std::fs::read_to_string(file).unwrap();
        let at = manifests.lines().next().unwrap().strip_prefix("# at: ").unwrap().to_owned();
        let want: Value =
            serde_json::from_slice(&std::fs::read(file.with_extension("want.json")).unwrap()).unwrap();
        let objects = plan_objects(&["--at".into(), at, "-f".into(), file.display().to_string()]);
        let existed = manifests.contains("name: web-decision-1\n");
        let name = file.file_name().unwrap().to_string_lossy();
        failures.extend(
            differences(&objects, existed, &want)
                .into_iter()
                .map(|difference| format!("{name}: {difference}")),
        );
    }
    assert!(
        failures.is_empty(),
        "{} differences in {} fleets\n{}",
        failures.len(),
        files.len(),
        failures.join("\n")
    );
}
