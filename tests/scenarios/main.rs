//! What a program relies on in a Kubernetes API, told once and run on both beds.
//!
//! ```text
//!  scenario ── YAML ──▶ Caller ──▶ hub │ kube-apiserver + kube-controller-manager
//!      └── eventually(…) ◀── objects ──┘
//! ```
//!
//! Each file is about one noun. A scenario works in a namespace of its own, names what is not in a namespace after it, and
//! waits for conditions, never for time. Where the beds differ on purpose, the scenario says so where it asks for
//! `bed.kind()`.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]

use berth_tests::{caller, waiting};

mod access;
mod concurrency;
mod definitions;
mod durability;
mod events;
mod hook;
mod namespaces;
mod owners;
mod pods;
mod watching;
mod webhooks;
