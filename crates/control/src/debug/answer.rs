//! The answer: the keys of Open Cluster Management's debugger, as it has them, and the account beside them.
//!
//! Owns the form. It decides nothing, and leaves out what the asker has no right to: clusters of other sets.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_api::Placement;
use berth_engine::explain::{Account, Verdict, sentences};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::question::Explained;

/// The name of the prioritizer whose value depends on who was selected before, and which no total includes.
const SPREAD: &str = "Spread";

/// The whole answer. Lists that are empty are left out, as upstream leaves them out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// The placement, without its status and what the API server keeps in its metadata.
    placement: Placement,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    filtered_pipeline_results: Vec<Stage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prioritize_results: Vec<Prioritized>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aggregated_scores: Vec<Score>,
    /// Whether the placement was sent with the question.
    simulated: bool,
    /// The account in sentences.
    summary: Vec<String>,
    /// Why an API server would not take the placement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    invalid: Vec<String>,
    /// Why nobody decides the placement; the rest then says what would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<&'static str>,
    /// Everything else: outcome, complaints, next change, and each cluster with its verdict and reasons.
    explanation: Account,
}

/// The clusters that are left after a stage.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stage {
    name: &'static str,
    filtered_clusters: Vec<Arc<str>>,
}

/// What one prioritizer says.
#[derive(Debug, Serialize)]
struct Prioritized {
    name: String,
    weight: i64,
    scores: BTreeMap<Arc<str>, i64>,
}

/// The sum for one cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Score {
    cluster_name: Arc<str>,
    score: i64,
}

impl Answer {
    pub(super) fn new(explained: Explained) -> Self {
        let Explained { placement, mut account, problems, idle, is_simulated } = explained;
        // What no set of the namespace contains is none of the asker's business, unless the placement holds it already.
        account.clusters.retain(|cluster| cluster.set.is_some() || cluster.held);
        let aggregated_scores = aggregated(&account);
        Self {
            placement: bare(&placement),
            filtered_pipeline_results: stages(&account, &aggregated_scores),
            prioritize_results: prioritized(&account, &aggregated_scores),
            aggregated_scores,
            simulated: is_simulated,
            summary: sentences(&account),
            invalid: problems,
            idle,
            explanation: account,
        }
    }
}

fn bare(placement: &Placement) -> Placement {
    let metadata = ObjectMeta {
        name: placement.metadata.name.clone(),
        namespace: placement.metadata.namespace.clone(),
        labels: placement.metadata.labels.clone(),
        annotations: placement.metadata.annotations.clone(),
        ..ObjectMeta::default()
    };
    Placement { metadata, spec: placement.spec.clone(), status: None }
}

/// The feasible clusters: highest score first, then by name.
fn aggregated(account: &Account) -> Vec<Score> {
    let feasible = account
        .clusters
        .iter()
        .filter_map(|cluster| Some(Score { cluster_name: cluster.cluster.clone(), score: cluster.total? }));
    let mut scores: Vec<Score> = feasible.collect();
    scores.sort_by(|one, other| {
        other.score.cmp(&one.score).then_with(|| one.cluster_name.cmp(&other.cluster_name))
    });
    scores
}

/// What each stage of filtering leaves; nothing of a placement that cannot be understood.
fn stages(account: &Account, feasible: &[Score]) -> Vec<Stage> {
    if !account.complaints.is_empty() || matches!(account.outcome, berth_engine::select::Outcome::Kept { .. })
    {
        return Vec::new();
    }
    let candidates = account
        .clusters
        .iter()
        .filter(|cluster| cluster.total.is_some() || cluster.verdict == Verdict::Barred);
    let mut candidates: Vec<Arc<str>> = candidates.map(|cluster| cluster.cluster.clone()).collect();
    candidates.sort_unstable();
    vec![
        Stage { name: "Predicate", filtered_clusters: candidates },
        Stage {
            name: "Predicate,TaintToleration",
            // In the order of scores, as upstream leaves it.
            filtered_clusters: feasible.iter().map(|score| score.cluster_name.clone()).collect(),
        },
    ]
}

/// What each prioritizer says of every feasible cluster, in the order of the weights.
fn prioritized(account: &Account, feasible: &[Score]) -> Vec<Prioritized> {
    let weights = account.prioritizers.iter().filter(|weight| weight.prioritizer != SPREAD);
    let mut results: Vec<Prioritized> = weights
        .map(|weight| Prioritized {
            name: weight.prioritizer.clone(),
            weight: weight.weight,
            scores: feasible.iter().map(|score| (score.cluster_name.clone(), 0)).collect(),
        })
        .collect();
    for cluster in account.clusters.iter().filter(|cluster| cluster.total.is_some()) {
        for part in &cluster.scores {
            if let Some(result) = results.iter_mut().find(|result| result.name == part.prioritizer) {
                result.scores.insert(cluster.cluster.clone(), part.value);
            }
        }
    }
    // One of ours, which upstream does not know: told only where it matters.
    results
        .retain(|result| result.name != "PreferNoSelect" || result.scores.values().any(|value| *value != 0));
    results
}
