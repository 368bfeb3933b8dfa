//! How clusters are told apart: by labels, claims, names and expressions.
//!
//! Owns the parsed form of Kubernetes' selectors and of CEL over a cluster, and the match against one cluster. Matching
//! over a whole fleet by postings is the model's business; which selectors a placement uses is `select`'s.

mod expression;
mod requirement;
mod term;

pub use expression::Expression;
pub use requirement::{Ask, BadSelector, Facet, Requirement, from_claims, from_label_selector};
pub use term::Term;

pub(crate) use expression::{Mismatch, Subject};
