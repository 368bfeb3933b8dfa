//! The fleet controllers, from outside: objects in, objects out.
//!
//! ```text
//!  scenario ── YAML ──▶ Fleet ──▶ API server ◀──▶ berth run
//!      └── selects(…), condition(…) ◀──┘
//! ```
//!
//! Each scenario is told once and runs on three grounds: the hub and a kube-apiserver with our definitions, and a
//! kube-apiserver with the stock ones. It works in a namespace of its own, names what is not in a namespace after it, and
//! waits for conditions, never for time. Five ways to run:
//! - `calm`: beside others, on one bed and one `berth run` without the controllers of cluster health.
//! - `health`: beside others, on a bed where those run too.
//! - `turn`: alone on a bed, with controllers of its own that it may kill, pause and start again.
//! - `quiet`: the same while no other scenario runs, for those that measure.
//! - `fresh`: as `turn`, on a bed that nobody had before.
//!
//! Scenarios that also stand in Open Cluster Management's suites say under which name; `docs/conformance.md` has them all.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]
#![expect(clippy::print_stderr, reason = "the seed of a random scenario is told")]

mod cluster;
mod ground;
mod handle;
#[allow(dead_code, reason = "shared with the scenarios, which need more of it")]
#[path = "../scenarios/hook.rs"]
mod hook;
mod metrics;
mod passage;
mod sentinel;
mod slices;
mod witness;

mod bindings;
mod consumers;
mod deadlines;
mod debugger;
mod details;
mod edges;
mod events;
mod examples;
mod flicker;
mod groups;
mod health;
mod leaders;
mod live;
mod misconfigured;
mod others;
mod outage;
mod performed;
mod placements;
mod predicates;
mod prioritizers;
mod process;
mod refused;
mod restart;
mod sets;
mod stories;
mod tolerations;
