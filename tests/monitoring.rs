//! The dashboard and the alert rules in `deploy/monitoring`: whole, and about metrics that somebody exports.
//!
//! That each metric they name is told under exactly that name is shown where it is told: `crates/control/src/serve/metrics.rs`
//! and `crates/hub/src/metrics.rs`. Here is what neither of them can see.

#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

use std::{collections::BTreeSet, fs, path::Path};

use berth_tests::caller::{documents, text};
use serde_json::Value;

/// What our metrics begin with: those of the controllers and the webhook, of evictions, of nodes, of the hub.
const OURS: [&str; 4] = ["berth_", "taint_eviction_controller_", "node_collector_", "apiserver_"];
/// Words of PromQL and of Grafana with an underscore in them that are no metrics.
const FUNCTIONS: [&str; 4] = ["histogram_quantile", "min_over_time", "__rate_interval", "group_left"];

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy/monitoring");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The rules, with the names of their groups.
fn rules() -> Vec<Value> {
    let all = documents(&read("alerts.yaml")).remove(0);
    assert_eq!(text(&all, "/kind"), "PrometheusRule");
    let groups = all["spec"]["groups"].as_array().unwrap().clone();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// The panels, rows left out.
fn panels() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().clone();
    panels.into_iter().filter(|panel| panel["type"] != "row").collect()
}

/// Every expression of both.
fn expressions() -> Vec<String> {
    let of_panels = panels().into_iter().flat_map(|panel| panel["targets"].as_array().unwrap().clone());
    let all = of_panels.chain(rules());
    all.map(|one| text(&one, "/expr").to_owned()).collect()
}

/// The words of an expression that could be metrics: not between braces, where labels are, nor in quotes.
fn words(expression: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let outside: String = expression
        .chars()
        .map(|one| {
            depth = match one {
                '{' => depth + 1,
                '}' => depth - 1,
                _ => depth,
            };
            if depth == 0 { one } else { ' ' }
        })
        .collect();
    let words = outside.split(|one: char| !(one.is_ascii_alphanumeric() || one == '_'));
    words.filter(|word| word.contains('_')).map(str::to_owned).collect()
}

#[test]
fn every_metric_that_is_drawn_or_alerted_on_is_one_of_ours() {
    let all = expressions();
    assert!(all.len() > 20);
    for expression in all {
        let words = words(&expression);
        let metrics: Vec<_> = words.iter().filter(|word| !FUNCTIONS.contains(&&***word)).collect();
        assert!(!metrics.is_empty(), "{expression} is about nothing");
        for metric in metrics {
            assert!(OURS.iter().any(|ours| metric.starts_with(ours)), "{metric} in {expression}");
        }
        let pairs = [('(', ')'), ('{', '}'), ('[', ']')];
        let count = |one: char| expression.chars().filter(|other| *other == one).count();
        assert!(pairs.iter().all(|(open, close)| count(*open) == count(*close)), "{expression}");
    }
}

#[test]
fn every_alert_says_how_bad_it_is_what_happened_and_what_to_look_at() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        let name = text(&rule, "/alert").to_owned();
        assert!(name.starts_with("Berth"), "{name}");
        let severity = text(&rule, "/labels/severity");
        assert!(["critical", "warning", "info"].contains(&severity), "{name}: {severity}");
        assert!(text(&rule, "/for").ends_with(['m', 'h']), "{name} is not patient");
        for field in ["/annotations/summary", "/annotations/description"] {
            assert!(text(&rule, field).len() > 10, "{name}{field}");
        }
        assert!(names.insert(name.clone()), "{name} is there twice");
    }
}

#[test]
fn panels_have_a_place_of_their_own_and_something_to_draw() {
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in panels() {
        let title = text(&panel, "/title");
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{title}");
        assert_eq!(text(&panel, "/datasource/uid"), "${datasource}", "{title}");
        let number = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        assert!(number("x") + number("w") <= 24, "{title}");
        for x in number("x")..number("x") + number("w") {
            for y in number("y")..number("y") + number("h") {
                assert!(taken.insert((x, y)), "{title} lies over another");
            }
        }
    }
}
