//! How the members of stateful workloads stand: what policies have seen, and which replacements are under way.
//!
//! ```text
//! manifests | server --read--> Ledger --roll--> Entry, one a member --> get: a row | explain: sentences
//! ```
//!
//! Owns bringing the status of ReplacementPolicies and the Replacements together, member by member, and the words for them.
//! Nothing is decided here: what is told is what the replacement-controller has written down.

mod ledger;
mod roll;
mod words;

pub(crate) use ledger::Ledger;
pub(crate) use roll::{Entry, State, roll};
pub(crate) use words::{cause, sentences};
