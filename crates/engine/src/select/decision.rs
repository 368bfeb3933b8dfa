//! What was decided.
//!
//! Owns the typed result of deciding a placement. Its form as API objects is `publish`'s business, its reasons cluster
//! by cluster are `explain`'s.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::compile::Complaint;
use crate::model::Slot;
use crate::moment::Moment;

/// The decision for one placement at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// How it came about.
    pub outcome: Outcome,
    /// What is misconfigured; empty if nothing is.
    pub complaints: Arc<[Complaint]>,
    /// The selected clusters, group by group.
    pub picks: Vec<Pick>,
    /// The groups, in order; never empty.
    pub groups: Vec<Group>,
    /// How many clusters were asked for and not found.
    pub unscheduled: usize,
    /// When the decision will change if nothing but time passes.
    pub next: Option<NextChange>,
    /// Scores in use that have expired and count as 0, as cluster and AddOnPlacementScore.
    pub expired: Vec<(Arc<str>, Arc<str>)>,
}

/// How a decision came about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// Selected from the feasible clusters, which may be none.
    Decided,
    /// No set is bound to the namespace.
    NoBindings,
    /// None of the sets asked for is bound to the namespace.
    NoIntersection {
        /// The sets asked for.
        asked: Vec<String>,
    },
    /// The sets have no member.
    SetsEmpty {
        /// The sets.
        sets: Vec<Arc<str>>,
    },
    /// Something cannot be understood, so what was selected before stays selected.
    Kept {
        /// What cannot be understood.
        why: String,
    },
}

/// A selected cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The cluster.
    pub cluster: Arc<str>,
    /// Its number in the model that decided, good until the model's next change.
    pub(crate) slot: Slot,
    /// Its score, without the part that spreading adds.
    pub score: i64,
}

/// A decision group: the next `len` picks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name; empty for clusters of no named group.
    pub name: Arc<str>,
    /// How many picks it has.
    pub len: usize,
}

/// A change that time alone will bring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextChange {
    /// When.
    pub at: Moment,
    /// About which cluster.
    pub cluster: Arc<str>,
    /// Why.
    pub cause: Cause,
}

/// Why time changes a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Cause {
    /// A taint ceases to be tolerated, and the cluster leaves.
    TolerationEnds {
        /// The taint, `key=value:Effect`.
        taint: String,
    },
    /// A taint that asks to avoid the cluster ceases to be tolerated, and its score falls.
    PreferenceEnds {
        /// The taint, `key=value:Effect`.
        taint: String,
    },
    /// A score expires and counts as 0 from then on.
    ScoreExpires {
        /// The AddOnPlacementScore.
        resource: Arc<str>,
    },
}

impl fmt::Display for NextChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, cause, .. } = self;
        match cause {
            Cause::TolerationEnds { taint } => {
                write!(f, "{cluster} leaves: taint {taint} is tolerated until then")
            }
            Cause::PreferenceEnds { taint } => {
                write!(f, "{cluster} is to be avoided: taint {taint} is tolerated until then")
            }
            Cause::ScoreExpires { resource } => write!(f, "the score {resource} of {cluster} expires"),
        }
    }
}
