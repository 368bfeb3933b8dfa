//! The fleet controllers, from outside: objects in, objects out.
//!
//! ```text
//!  scenario ── YAML ──▶ Fleet ──▶ API server ◀──▶ berth run
//!      └── selects(…), condition(…) ◀──┘
//! ```
//!
//! Each scenario is told once and runs on three grounds: the hub and a kube-apiserver with our definitions, and a
//! kube-apiserver with the stock ones. It works in a namespace of its own, names what is not in a namespace after it, and
//! waits for conditions, never for time. Three ways to run:
//! - `calm`: beside others, on one bed and one `berth run` without the controllers of cluster health.
//! - `health`: beside others, on a bed where those run too.
//! - `turn`: alone on a bed, with controllers of its own that it may kill, pause and start again.
//!
//! Scenarios that also stand in Open Cluster Management's suites say under which name.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]

mod cluster;
mod ground;
mod handle;
mod metrics;
mod passage;
mod sentinel;
mod slices;

mod bindings;
mod deadlines;
mod edges;
mod flicker;
mod groups;
mod health;
mod leaders;
mod misconfigured;
mod others;
mod outage;
mod placements;
mod predicates;
mod prioritizers;
mod restart;
mod sets;
mod stories;
mod tolerations;
