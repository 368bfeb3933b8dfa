//! What the loop is asked: a placement that exists, or one that is only thought of.
//!
//! Owns reading what was sent, and how much a question may cost the loop. The loop gives the account; its form is made
//! elsewhere, after the loop has gone on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_api::names::{GROUP, annotation};
use berth_api::schema::{prepare, unknown_fields, validate};
use berth_api::{ClusterClaimSelector, ClusterPredicate, DecisionGroup, Placement, kinds};
use berth_engine::explain::Account;
use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, oneshot};

use crate::inquiry::{self, Inquirer, Sight, Unanswered};

/// How much may be asked about clusters for one answer: some hundred milliseconds of the loop's time.
const CHECKS_MAX: usize = 5_000_000;
/// How many requirements an expression counts for.
const EXPRESSION_CHECKS: usize = 20;
/// For every moment a question takes of the loop, the next one waits so many.
const REST_TIMES: u32 = 4;
/// How long a question waits for those before it.
const TURN_WITHIN: Duration = Duration::from_secs(5);
/// Problems of a placement that are told.
const PROBLEMS_TOLD_MAX: usize = 20;

/// A placement to be explained.
#[derive(Debug)]
pub(super) enum Question {
    /// One that exists.
    Existing(ObjectKey),
    /// One that was sent.
    Sent(Box<Sent>),
}

/// A placement as it was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) placement: Placement,
    /// Why an API server would not take it.
    pub(super) problems: Vec<String>,
}

/// What the loop said.
#[derive(Debug)]
pub(super) struct Explained {
    pub(super) placement: Arc<Placement>,
    pub(super) account: Account,
    /// Why an API server would not take the placement.
    pub(super) problems: Vec<String>,
    /// Why nobody decides it.
    pub(super) idle: Option<&'static str>,
    pub(super) is_simulated: bool,
}

/// Why there is nothing to show.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unexplained {
    #[error("placement '{0}' not found")]
    NotFound(Arc<str>),
    #[error(
        "the placement asks too much about the clusters there are ({0} checks, {CHECKS_MAX} at most); explain it with \
         `berth explain` instead"
    )]
    TooLarge(usize),
    #[error("the placement cannot be explained now: {0}")]
    NotNow(inquiry::Unexplained),
    #[error("the placement cannot be explained: {0}")]
    TooCostly(inquiry::Unexplained),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// Asks the loop, one question at a time.
#[derive(Debug)]
pub(super) struct Asker {
    inquirer: Inquirer,
    turn: Arc<Mutex<()>>,
}

impl Asker {
    pub(super) fn new(inquirer: Inquirer) -> Self {
        Self { inquirer, turn: Arc::default() }
    }

    /// Asks when it is its turn. Whatever time the loop spent on it, it then has several times as much for its own work.
    pub(super) async fn ask(&self, question: Question) -> Result<Explained, Unexplained> {
        let turn = tokio::time::timeout(TURN_WITHIN, Arc::clone(&self.turn).lock_owned());
        let turn = turn.await.map_err(|_| Unanswered::Busy)?;
        let inquirer = self.inquirer.clone();
        let (tell, told) = oneshot::channel();
        // Beside the request: who leaves before the answer has come does not shorten the rest.
        tokio::spawn(async move {
            let asked = inquirer.ask(move |sight| {
                let begun = Instant::now();
                let told = look(question, sight);
                (told, begun.elapsed())
            });
            let took = match asked.await {
                Ok((explained, took)) => {
                    let _ = tell.send(explained);
                    took
                }
                Err(why) => {
                    let _ = tell.send(Err(why.into()));
                    Duration::ZERO
                }
            };
            tracing::debug!(?took, "a question about a placement has ended");
            tokio::time::sleep(took.saturating_mul(REST_TIMES)).await;
            drop(turn);
        });
        told.await.unwrap_or(Err(Unexplained::Unanswered(Unanswered::Stopped)))
    }
}

/// Runs in the loop.
fn look(question: Question, mut sight: Sight<'_>) -> Result<Explained, Unexplained> {
    let (placement, problems, is_simulated) = match question {
        Question::Existing(key) => {
            let found = sight.world.placements.get(&key);
            let found = found.ok_or_else(|| Unexplained::NotFound(key.name.clone()))?;
            (Arc::clone(found), Vec::new(), false)
        }
        Question::Sent(sent) => (Arc::new(sent.placement), sent.problems, true),
    };
    let checks = checks(&placement).saturating_mul(sight.world.clusters.len());
    if checks > CHECKS_MAX {
        return Err(Unexplained::TooLarge(checks));
    }
    let idle = idle(&placement);
    let account = match (idle, is_simulated) {
        (None, false) => sight.explain(&ObjectKey::of(&placement.metadata)),
        (None, true) => sight.explain_as_if(&placement),
        // What nobody decides is explained as what it would be.
        (Some(_), _) => sight.explain_as_if(&awake(&placement)),
    };
    let account = account.map_err(|why| match why {
        inquiry::Unexplained::NotFound => {
            Unexplained::NotFound(placement.metadata.name.as_deref().unwrap_or_default().into())
        }
        inquiry::Unexplained::Waiting => Unexplained::NotNow(why),
        inquiry::Unexplained::TooCostly => Unexplained::TooCostly(why),
    })?;
    Ok(Explained { placement, account, problems, idle, is_simulated })
}

/// Why nobody decides a placement.
fn idle(placement: &Placement) -> Option<&'static str> {
    if placement.is_deleting() {
        Some("it is being deleted")
    } else if placement.is_scheduling_disabled() {
        Some("its annotation cluster.open-cluster-management.io/experimental-scheduling-disable says so")
    } else {
        None
    }
}

/// The same placement as if somebody decided it.
fn awake(placement: &Placement) -> Placement {
    let mut awake = placement.clone();
    awake.metadata.deletion_timestamp = None;
    if let Some(annotations) = &mut awake.metadata.annotations {
        annotations.remove(annotation::SCHEDULING_DISABLED);
    }
    awake
}

/// What weighing one cluster costs: everything that is looked at for each.
fn checks(placement: &Placement) -> usize {
    let spec = &placement.spec;
    let labels = |selector: Option<&LabelSelector>| {
        selector.map_or(0, |selector| {
            let equal = selector.match_labels.as_ref().map_or(0, BTreeMap::len);
            equal + selector.match_expressions.as_ref().map_or(0, Vec::len)
        })
    };
    let claims = |selector: Option<&ClusterClaimSelector>| {
        selector.map_or(0, |selector| {
            let equal = selector.match_claims.as_ref().map_or(0, BTreeMap::len);
            equal + selector.match_expressions.as_ref().map_or(0, Vec::len)
        })
    };
    let predicate = |predicate: &ClusterPredicate| {
        let flat = labels(predicate.label_selector.as_ref()) + claims(predicate.claim_selector.as_ref());
        let required = predicate.required_cluster_selector.as_ref().map_or(0, |selector| {
            let cel = selector.cel_selector.as_ref().and_then(|cel| cel.cel_expressions.as_ref());
            labels(selector.label_selector.as_ref())
                + claims(selector.claim_selector.as_ref())
                + EXPRESSION_CHECKS * cel.map_or(0, Vec::len)
        });
        1 + flat + required
    };
    let strategy = spec.decision_strategy.as_ref().and_then(|strategy| strategy.group_strategy.as_ref());
    let group = |group: &DecisionGroup| {
        let selector = &group.group_cluster_selector;
        1 + labels(selector.label_selector.as_ref()) + claims(selector.claim_selector.as_ref())
    };
    let predicates: usize = spec.predicates.iter().flatten().map(predicate).sum();
    let groups: usize =
        strategy.iter().flat_map(|strategy| strategy.decision_groups.iter().flatten()).map(group).sum();
    let policy = spec.prioritizer_policy.as_ref().and_then(|policy| policy.configurations.as_ref());
    let spread = spec.spread_policy.as_ref().and_then(|policy| policy.spread_constraints.as_ref());
    let lists = [
        spec.tolerations.as_ref().map_or(0, Vec::len),
        policy.map_or(0, Vec::len),
        spread.map_or(0, Vec::len),
    ];
    1 + predicates + groups + lists.iter().sum::<usize>()
}

/// Reads a placement that was sent. Only what a user says of one is looked at: its name, labels and annotations, and its
/// spec, with what an API server would fill in.
pub(super) fn read(body: &[u8]) -> Result<Sent, String> {
    let failed = |problem: &dyn std::fmt::Display| format!("failed to unmarshal placement JSON: {problem}");
    let mut sent: Value = serde_json::from_slice(body).map_err(|error| failed(&error))?;
    if !sent.is_object() {
        return Err(failed(&"expected an object"));
    }
    let kind = kinds::kind_info(&format!("{GROUP}/v1beta1"), "Placement").expect("a kind of ours");
    for (field, known) in [("kind", kind.kind.to_owned()), ("apiVersion", kind.api_version())] {
        match sent.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(said)) if said.is_empty() || *said == known => {}
            Some(said) => return Err(failed(&format!("{field}: expected {known}, not {said}"))),
        }
    }
    // An API server prunes them, with a warning at most; whoever misspelt one would take the answer for another question's.
    let unknown = unknown_fields(&sent, kind.structure());
    let unknown = unknown.into_iter().map(|path| format!("{path}: there is no such field; it is ignored"));
    let mut metadata = Map::new();
    if let Some(Value::Object(fields)) = sent.get_mut("metadata").map(Value::take) {
        let ours = ["name", "namespace", "labels", "annotations"];
        metadata.extend(fields.into_iter().filter(|(name, _)| ours.contains(&name.as_str())));
    }
    let mut object = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata,
        "spec": sent.get_mut("spec").map(Value::take),
    });
    prepare(&mut object, kind.structure());
    let refused: Vec<String> =
        validate(&object, kind.structure()).iter().map(ToString::to_string).take(PROBLEMS_TOLD_MAX).collect();
    let problems: Vec<String> = refused.iter().cloned().chain(unknown).take(PROBLEMS_TOLD_MAX).collect();
    let placement: Placement = serde_json::from_value(object).map_err(|error| {
        // Where a field is not what it should be, the schema says which.
        if refused.is_empty() { failed(&error) } else { failed(&refused.join("; ")) }
    })?;
    match placement.metadata.namespace.as_deref() {
        None | Some("") => Err("metadata.namespace: required, to know which sets are bound".to_owned()),
        Some(_) => Ok(Sent { placement, problems }),
    }
}
