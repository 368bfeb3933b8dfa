//! The write stage: what the pure functions decided, admitted and committed.
//!
//! ```text
//! request ─┐            ┌─▶ resource   begin, finish: what it comes to
//!          ├─ Author ─▶ │   admit      who else has a say: functions, webhooks
//! keep ────┘            └─▶ commit ──▶ core, the log
//! ```
//!
//! Owns the loop around them: an object is read, the outcome decided, and the commit made on the condition that the
//! object is still the one that was read. Whoever loses such a race decides again with what is there now.
//! Never parses a body and never shapes an answer: those are the request's.

mod admit;
mod attempt;
mod author;
mod change;
mod commit;
mod create;
mod definition;
mod grounds;
mod options;
mod remove;
mod view;
mod written;

pub(crate) use admit::{Admitting, Posted, ask, mutate, validate, validate_deletion};
pub(crate) use attempt::{ATTEMPTS, Lost, until_committed};
pub(crate) use author::Author;
pub(crate) use change::change;
pub(crate) use commit::{commit, put, writes};
pub(crate) use create::{create, make};
pub(crate) use remove::remove;
pub(crate) use written::Written;
