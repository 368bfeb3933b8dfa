//! Why.
//!
//! Owns the full account of a decision: for every cluster in sight which set it came through, which predicate failed
//! on which value, which taint was tolerated by which toleration and for how long still, every score, its rank and
//! distance to the cut line, and the nearest single change that would select it. It runs the same steps as `select`
//! on the same model, so it cannot tell another story than the decision. It never decides anything itself.
//!
//! [`Account`] is the typed form (JSON through serde); [`sentences`] and [`table`] put it into words.

mod account;
mod build;
mod counterfactual;
mod render;

pub use account::{
    Account, ClusterAccount, CutLine, Failure, IgnoredBinding, PredicateAccount, ScoreAccount, Selection,
    SetMembers, SetsAccount, TaintAccount, Tolerance, Verdict, Weight,
};
pub use build::{TooCostly, explain, explain_as_if};
pub use counterfactual::{Change, Counterfactual};
pub use render::{cluster_sentences, sentences, table, verdict_phrase};
