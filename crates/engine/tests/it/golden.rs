//! Random fleets that upstream's own scheduler decided: ours must decide them alike, to the last score.

use std::collections::{BTreeMap, BTreeSet};

use berth_api::PlacementDecision;
use berth_api::names::label as names;
use berth_engine::select::Published;
use berth_engine::{Delta, Moment, PlacementKey};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::shared;
use crate::world::{World, delta};

/// Where ours decides otherwise than upstream, on purpose: fixture, what differs, why. Empty: it agrees everywhere.
const DEVIATIONS: &[(&str, &str, &str)] = &[];

/// The prioritizer upstream does not have. It may only be there where it adds nothing.
const OURS_ALONE: &str = "PreferNoSelect";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Want {
    decisions: Vec<WantDecision>,
    decision_groups: Value,
    number_of_selected_clusters: i32,
    conditions: BTreeSet<Condition>,
    #[serde(default)]
    scores: Option<BTreeMap<String, i64>>,
    #[serde(default)]
    prioritizers: Option<Vec<WantPrioritizer>>,
    #[serde(default)]
    warning: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize, Debug, PartialEq)]
struct WantDecision {
    name: String,
    group: String,
    index: String,
    clusters: Option<Vec<String>>,
}

#[derive(Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Deserialize)]
struct WantPrioritizer {
    name: String,
    weight: i64,
    scores: Option<BTreeMap<String, i64>>,
}

fn web() -> PlacementKey {
    PlacementKey::new("apps", "web")
}

struct Case {
    name: String,
    at: Moment,
    deltas: Vec<Delta>,
    want: Want,
}

fn cases() -> Vec<Case> {
    let wanted: BTreeMap<String, String> =
        shared::files("fixtures/ocm-golden", ".want.json").into_iter().collect();
    let cases = shared::files("fixtures/ocm-golden", ".yaml").into_iter().map(|(file, text)| {
        let name = file.trim_end_matches(".yaml").to_owned();
        let at = text.lines().next().unwrap().strip_prefix("# at: ").unwrap();
        let at = Moment::from_timestamp(at.parse().unwrap());
        let deltas = shared::yaml(&text).into_iter().map(delta).collect();
        let want = serde_json::from_str(&wanted[&format!("{name}.want.json")]).unwrap();
        Case { name, at, deltas, want }
    });
    let cases: Vec<Case> = cases.collect();
    assert!(cases.is_empty() || cases.len() >= 140, "{} of at least 140 recordings found", cases.len());
    cases
}

/// What differs, in words; nothing where all agrees.
fn differences(case: &Case) -> Vec<(&'static str, String)> {
    let Case { at, deltas, want, .. } = case;
    let mut world = World::of(deltas.iter().cloned());
    let web = web();
    let decision = world.decide(&web, *at).unwrap();
    let published = world.publish(&web, &decision, *at);
    let mut differences = Vec::new();
    let mut compare = |what: &'static str, got: Value, wanted: Value| {
        if got != wanted {
            differences.push((what, format!("ours {got}, upstream's {wanted}")));
        }
    };
    compare(
        "conditions",
        json!(conditions(&published)),
        json!(want.conditions.iter().map(words).collect::<Vec<_>>()),
    );
    if want.error.is_some() {
        return differences;
    }
    let existed: BTreeSet<&str> =
        world.existing(&web).iter().filter_map(|object| object.metadata.name.as_deref()).collect();
    let described = |name: &str, group: &str, index: &str, clusters: &[String]| {
        // Upstream writes the labels of a slice that existed only on its next pass.
        let labels = (!existed.contains(name)).then_some((group, index));
        json!({"name": name, "labels": labels, "clusters": clusters})
    };
    // By name, in the order of text, as upstream's are listed.
    let got: BTreeMap<&str, Value> = published
        .decisions
        .iter()
        .map(|object| {
            let name = object.metadata.name.as_deref().unwrap();
            let label = |key: &str| object.metadata.labels.as_ref().unwrap()[key].as_str();
            let clusters: Vec<String> =
                object.decisions().iter().map(|entry| entry.cluster_name.clone()).collect();
            let (group, index) = (label(names::DECISION_GROUP_NAME), label(names::DECISION_GROUP_INDEX));
            (name, described(name, group, index, &clusters))
        })
        .collect();
    let wanted: BTreeMap<&str, Value> = want
        .decisions
        .iter()
        .map(|slice| {
            let clusters = slice.clusters.as_deref().unwrap_or_default();
            (&*slice.name, described(&slice.name, &slice.group, &slice.index, clusters))
        })
        .collect();
    compare("decisions", json!(got), json!(wanted));
    compare(
        "decisionGroups",
        json!(published.status.decision_groups),
        groups_with_defaults(&want.decision_groups),
    );
    compare(
        "numberOfSelectedClusters",
        json!(published.status.number_of_selected_clusters),
        json!(want.number_of_selected_clusters),
    );
    let expired: BTreeSet<String> =
        decision.expired.iter().map(|(cluster, resource)| format!("{cluster}/{resource}")).collect();
    compare("warning", json!(expired), json!(warned(want.warning.as_deref())));
    let account = world.explain(&web, *at);
    let totals: BTreeMap<&str, i64> =
        account.clusters.iter().filter_map(|cluster| Some((&*cluster.cluster, cluster.total?))).collect();
    compare("scores", json!(totals), json!(want.scores.clone().unwrap_or_default()));
    let mut weights: BTreeMap<String, i64> =
        account.prioritizers.iter().map(|entry| (entry.prioritizer.clone(), entry.weight)).collect();
    let mut values: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
    for cluster in &account.clusters {
        for score in &cluster.scores {
            values.entry(&score.prioritizer).or_default().insert(&cluster.cluster, score.value);
        }
    }
    if values.get(OURS_ALONE).is_none_or(|values| values.values().all(|value| *value == 0)) {
        weights.remove(OURS_ALONE);
        values.remove(OURS_ALONE);
    }
    // Where nothing was feasible, upstream never came to the point of weighing.
    let weighed =
        want.prioritizers.is_some() && want.scores.as_ref().is_some_and(|scores| !scores.is_empty());
    if weighed {
        let upstream = want.prioritizers.iter().flatten();
        let wanted: BTreeMap<&str, i64> =
            upstream.clone().map(|one| (one.name.as_str(), one.weight)).collect();
        compare("weights", json!(weights), json!(wanted));
        for one in upstream {
            // A cluster that a prioritizer did not score counts as 0 with it.
            let mut wanted: BTreeMap<&str, i64> = totals.keys().map(|cluster| (*cluster, 0)).collect();
            wanted.extend(one.scores.iter().flatten().map(|(cluster, value)| (cluster.as_str(), *value)));
            compare("prioritizers", json!({&one.name: values.get(&*one.name)}), json!({&one.name: wanted}));
        }
    }
    differences
}

fn conditions(published: &Published) -> Vec<Value> {
    let conditions: BTreeSet<Condition> = published
        .status
        .conditions
        .iter()
        .flatten()
        .map(|condition| Condition {
            kind: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        })
        .collect();
    conditions.iter().map(words).collect()
}

fn words(condition: &Condition) -> Value {
    json!([condition.kind, condition.status, condition.reason, condition.message])
}

/// Group names and counts that upstream leaves out because they are empty.
fn groups_with_defaults(groups: &Value) -> Value {
    let with_defaults = groups.as_array().into_iter().flatten().map(|group| {
        json!({
            "decisionGroupIndex": group["decisionGroupIndex"].as_i64().unwrap_or_default(),
            "decisionGroupName": group["decisionGroupName"].as_str().unwrap_or_default(),
            "decisions": group["decisions"],
            "clusterCount": group["clusterCount"].as_i64().unwrap_or_default(),
        })
    });
    with_defaults.collect()
}

/// The scores a warning complains of.
fn warned(warning: Option<&str>) -> BTreeSet<String> {
    let Some(warning) = warning else { return BTreeSet::new() };
    let listed = warning.strip_prefix("AddOnPlacementScores").and_then(|rest| rest.strip_suffix("expired"));
    listed
        .unwrap_or_else(|| panic!("an unknown warning: {warning}"))
        .split_whitespace()
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn every_recorded_fleet_is_decided_as_upstream_decided_it() {
    let mut found = Vec::new();
    for case in cases() {
        for (what, difference) in differences(&case) {
            if !DEVIATIONS.iter().any(|(name, of, _)| *name == case.name && *of == what) {
                found.push(format!("{}: {what}: {difference}", case.name));
            }
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_order_in_which_objects_arrive_changes_nothing() {
    for case in cases().iter().step_by(4) {
        let rendered = |deltas: &mut dyn Iterator<Item = &Delta>| {
            let mut world = World::of(deltas.cloned());
            let decision = world.decide(&web(), case.at).unwrap();
            let published = world.publish(&web(), &decision, case.at);
            let account = world.explain(&web(), case.at);
            serde_json::to_string(&(&published.decisions, &published.status, &account)).unwrap()
        };
        let forwards = rendered(&mut case.deltas.iter());
        let backwards = rendered(&mut case.deltas.iter().rev());
        assert_eq!(forwards, backwards, "{}", case.name);
    }
}

#[test]
fn a_decision_once_written_stays_until_something_changes() {
    for case in cases() {
        let mut world = World::of(case.deltas);
        let weights = world.explain(&web(), case.at).prioritizers;
        // Whoever asks to be moved on is.
        if weights.iter().any(|entry| entry.prioritizer == "Steady" && entry.weight < 0) {
            continue;
        }
        let Some(first) = world.settle(&web(), case.at) else { continue };
        let again = world.settle(&web(), case.at).unwrap();
        let clusters = |published: &Published| -> Vec<Vec<String>> {
            let slices = published.decisions.iter().map(PlacementDecision::decisions);
            slices.map(|entries| entries.iter().map(|entry| entry.cluster_name.clone()).collect()).collect()
        };
        assert_eq!(clusters(&first), clusters(&again), "{}", case.name);
    }
}
