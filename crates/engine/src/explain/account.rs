//! The typed account of a decision.

use std::sync::Arc;

use serde::Serialize;

use super::counterfactual::Counterfactual;
use crate::model::PlacementKey;
use crate::moment::Moment;
use crate::select::{Complaint, NextChange, Obstacle, Outcome};

/// Everything there is to say about one placement at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The placement.
    pub placement: PlacementKey,
    /// The moment.
    pub at: Moment,
    /// How the decision came about.
    pub outcome: Outcome,
    /// What is misconfigured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<Complaint>,
    /// What works but hardly means what was meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Complaint>,
    /// Where clusters come from.
    pub sets: SetsAccount,
    /// How many were asked for, found and selected.
    pub selection: Selection,
    /// The weights in force.
    pub prioritizers: Vec<Weight>,
    /// When this will change if nothing but time passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextChange>,
    /// Every cluster in sight: the selected ones by rank, then the others by how near they came.
    pub clusters: Vec<ClusterAccount>,
}

/// The sets a placement draws from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetsAccount {
    /// The sets the placement names; empty means all that are bound.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The sets it draws from, with the number of their members.
    pub eligible: Vec<SetMembers>,
    /// Bindings of the namespace that do not count, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredBinding>,
}

/// A set with the number of its members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetMembers {
    /// The set.
    pub set: Arc<str>,
    /// Members that are not being deleted.
    pub members: u64,
}

/// A binding that does not count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IgnoredBinding {
    /// Its name.
    pub binding: Arc<str>,
    /// Why it does not count.
    pub why: String,
}

/// A prioritizer with its weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Weight {
    /// The prioritizer.
    pub prioritizer: String,
    /// Its weight.
    pub weight: i64,
}

/// The numbers of a decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// How many clusters were asked for; `None` means all that fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<usize>,
    /// Members of the sets.
    pub members: u64,
    /// Members that pass the predicates.
    pub candidates: u64,
    /// Candidates whose taints allow it.
    pub feasible: u64,
    /// Clusters selected.
    pub selected: usize,
    /// Where the line between selected and not selected runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_line: Option<CutLine>,
}

/// The last cluster that was selected for its rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CutLine {
    /// The cluster.
    pub cluster: Arc<str>,
    /// Its score.
    pub score: i64,
}

/// Everything there is to say about one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAccount {
    /// The cluster.
    pub cluster: Arc<str>,
    /// What became of it.
    pub verdict: Verdict,
    /// The same in words.
    pub why: String,
    /// Whether the decisions that exist hold it.
    pub held: bool,
    /// The set it came through, the first of those it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Arc<str>>,
    /// Each predicate, and what failed; of very many, those the cluster comes nearest to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<PredicateAccount>,
    /// Each taint, and who tolerates it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<TaintAccount>,
    /// Each score; only for feasible clusters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<ScoreAccount>,
    /// The sum; only for feasible clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// The place among the feasible clusters, from 1, before spreading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// Points above (or, negative, below) the cut line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<i64>,
    /// When a selected cluster leaves by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaves: Option<NextChange>,
    /// The nearest change of this cluster that would select it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterfactual: Option<Counterfactual>,
}

/// What became of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Verdict {
    /// It is selected.
    Selected,
    /// It stays selected because the placement cannot be decided.
    Kept,
    /// It is being deleted.
    Deleting,
    /// Decisions hold it, but there is no such cluster.
    Missing,
    /// It is in none of the placement's sets.
    NotInSets {
        /// The sets it is in.
        member_of: Vec<Arc<str>>,
    },
    /// No predicate matches it.
    NoPredicateMatches,
    /// A taint bars it.
    Barred,
    /// Better clusters filled the number asked for.
    Outranked {
        /// How many selected clusters are better.
        better: usize,
    },
    /// A rule of spreading or anti-affinity keeps it out.
    Obstructed {
        /// The rule.
        by: Obstacle,
    },
    /// Nothing was asked for, or the placement could not be decided.
    NotConsidered,
}

/// One predicate against one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredicateAccount {
    /// Its place in the list.
    pub index: usize,
    /// What failed; empty if it matches.
    pub failures: Vec<Failure>,
}

/// A part of a predicate that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Failure {
    /// A requirement on a label or claim.
    Requirement {
        /// The requirement in words.
        wanted: String,
        /// The actual value; `None` if it is not set.
        actual: Option<String>,
    },
    /// The cluster is not one of those named.
    Name,
    /// An expression.
    Expression {
        /// Its text.
        source: String,
        /// What it gave instead of true.
        outcome: String,
    },
}

/// One taint of one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintAccount {
    /// The taint, `key=value:Effect`.
    pub taint: String,
    /// When it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Moment>,
    /// What the placement says to it.
    pub tolerance: Tolerance,
    /// Whether it keeps the cluster out.
    pub bars: bool,
}

/// What a placement says to a taint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Tolerance {
    /// A toleration holds for ever.
    Tolerated {
        /// The toleration in words.
        by: String,
    },
    /// A toleration holds for a while.
    Until {
        /// The toleration in words.
        by: String,
        /// When it ends.
        deadline: Moment,
        /// How long that is from now.
        seconds_left: i64,
    },
    /// A toleration did hold.
    Expired {
        /// The toleration in words.
        by: String,
        /// When it ended; `None` if the taint has no `timeAdded` to count from.
        #[serde(skip_serializing_if = "Option::is_none")]
        ended: Option<Moment>,
    },
    /// No toleration matches, but the placement holds the cluster and the effect bars only new selections.
    HeldAlready,
    /// No toleration matches; the effect only lowers the score.
    Avoided,
    /// No toleration matches.
    No,
}

/// One prioritizer about one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoreAccount {
    /// The prioritizer.
    pub prioritizer: String,
    /// Its weight.
    pub weight: i64,
    /// Its value for the cluster.
    pub value: i64,
    /// Weight times value.
    pub weighted: i64,
    /// What the value comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}
