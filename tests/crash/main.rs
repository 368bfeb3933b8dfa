//! Writes that were acknowledged are kept, whatever happens to the process or to its storage.
//!
//! ```text
//!  Writer ── creates, updates, deletes ──▶ ┌─────┐ ──▶ Follower   watches over every crash, from where it was
//!  Writer ──                               │ hub │ ──▶ Follower   the same with a selector
//!  Reader ── lists, gets ───────────────── └─────┘
//!     └──────────── what each was told ──▶ Witness ◀── after each crash: is all of it true still?
//! ```
//!
//! `kill`: the process is killed with SIGKILL under load, again and again, and started on the same data. `faults`: the
//! storage under a hub in this process refuses, forgets to answer, writes short, is full, cannot be synchronised.
//! `BERTH_SEED=N` repeats a run's decisions; the seed of each run is printed.

#![expect(clippy::print_stderr, reason = "the seed of a run is told, also where a helper begins it")]

mod disk;
mod faults;
mod follower;
mod kill;
mod load;
mod server;
mod vessel;
mod witness;

use berth_tests::random::seed;
