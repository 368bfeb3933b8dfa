//! The admission rules, from outside: writes in, refusals, changes and warnings out.
//!
//! ```text
//!  scenario ──▶ API server ──▶ berth webhook      on the hub and on Kubernetes
//!  scenario ──▶ berth up                          the same rules, in the same process
//! ```
//!
//! What a caller sees is told once and runs on all of these, on Kubernetes also with the stock definitions; a scenario works
//! with names of its own. What is about the
//! webhook itself (its certificates, its absence, its callers) runs alone on a bed. Scenarios that also stand in Open
//! Cluster Management's registration_webhook_test.go say under which name.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]

mod ground;
mod person;

mod absence;
mod bindings;
mod clusters;
mod hostile;
mod placements;
mod replacements;
mod replicas;
mod rights;
mod rotation;
mod taints;
mod warnings;
mod words;
