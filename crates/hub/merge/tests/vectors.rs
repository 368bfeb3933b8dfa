//! Every generated patch and apply has the outcome that was observed in Kubernetes' own libraries.
//!
//! The vectors are written by `tests/oracle`, where Go is present: `go run . -seed 1 -out ../vectors` in that folder. The same
//! seed gives the same files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "replay/report.rs"]
mod report;
#[path = "replay/steps.rs"]
mod steps;
#[path = "replay/thing.rs"]
mod thing;

use berth_hub_kinds::conform::conform;
use berth_hub_kinds::{Builtin, Builtins};
use berth_hub_merge::{ObjectType, json_patch, merge_patch, strategic_merge};
use report::{Report, vectors};
use serde_json::{Value, json};
use steps::Replay;

fn outcome(vector: &Value) -> Value {
    vector.get("e").map_or_else(|| json!({"result": vector["r"]}), |error| json!({"error": error}))
}

#[test]
fn json_patches_do_what_was_observed() {
    let mut report = Report::new("json patch");
    for (line, vector) in vectors(include_bytes!("vectors/json_patch.jsonl.gz")).iter().enumerate() {
        let ours = match json_patch(&vector["t"], &vector["p"]) {
            Ok(result) => json!({"result": result}),
            Err(error) => json!({"error": error.to_string()}),
        };
        report.compare(line, vector, &ours, &outcome(vector));
    }
    report.finish(700);
}

#[test]
fn merge_patches_do_what_was_observed() {
    let mut report = Report::new("merge patch");
    for (line, vector) in vectors(include_bytes!("vectors/merge_patch.jsonl.gz")).iter().enumerate() {
        let mut result = vector["t"].clone();
        merge_patch(&mut result, &vector["p"]);
        report.compare(line, vector, &json!({"result": result}), &outcome(vector));
    }
    report.finish(250);
}

#[test]
fn applies_and_updates_of_a_custom_resource_do_what_was_observed() {
    let (arena, root) = thing::thing();
    let schema = arena.schema(root);
    let versions = [("berth.test/v1", schema), ("berth.test/v1beta1", schema)];
    let mut report = Report::new("custom resource");
    let mut replay = Replay::default();
    for (line, step) in vectors(include_bytes!("vectors/custom.jsonl.gz")).iter().enumerate() {
        let of = ObjectType::custom(schema).with_versions(&versions);
        replay.step(line, step, of, |object| object, &mut report);
    }
    report.finish(1_800);
}

/// A built-in kind by `apiVersion/kind`.
fn builtin(name: &str) -> &'static Builtin {
    let (version, kind) = name.rsplit_once('/').unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Builtins::load().kind(group, version, kind).unwrap()
}

/// A schema does not know what Go calls the type it describes; one message names it.
fn unnamed(mut outcome: Value) -> Value {
    if let Some(Value::String(error)) = outcome.get_mut("error")
        && let Some((before, after)) = error.split_once("api field in struct ")
        && let Some((_, after)) = after.split_once(' ')
    {
        *error = format!("{before}api field in struct {after}");
    }
    outcome
}

#[test]
fn strategic_merge_patches_do_what_was_observed() {
    let mut report = Report::new("strategic merge patch");
    for (line, vector) in vectors(include_bytes!("vectors/strategic.jsonl.gz")).iter().enumerate() {
        let schema = Builtins::load().schema_of(builtin(vector["k"].as_str().unwrap()));
        let ours = match strategic_merge(&vector["t"], &vector["p"], schema) {
            Ok(result) => json!({"result": result}),
            Err(error) => json!({"error": error.to_string()}),
        };
        report.compare(line, vector, &ours, &unnamed(outcome(vector)));
    }
    report.finish(1_000);
}

#[test]
fn applies_and_updates_of_built_in_kinds_do_what_was_observed() {
    let mut report = Report::new("built-in kinds");
    let mut replay = Replay::default();
    for (line, step) in vectors(include_bytes!("vectors/builtin.jsonl.gz")).iter().enumerate() {
        let kind = builtin(step["k"].as_str().unwrap());
        let id = Builtins::load().body(&kind.gvk()).unwrap();
        let conform = |object: Value| conform(id, object).unwrap().value;
        let zero = conform(json!({}));
        let of = ObjectType::builtin(Builtins::load().schema_of(kind), &zero);
        replay.step(line, step, of, conform, &mut report);
    }
    report.finish(700);
}
