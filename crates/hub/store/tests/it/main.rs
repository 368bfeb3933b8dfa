//! The store from outside: every promise of a backend and of the ledger, with both backends, and what happens when
//! storage fails, the process dies or the power goes.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod concurrency;
mod conformance;
mod faults;
mod history;
mod journal;
mod journal_loss;
mod kill;
mod model;
mod power;
mod redb_file;
mod support;
mod watches;
