//! Berth on a real Kubernetes: what `berth install` prints is applied, runs with the rights it was given, and goes away again.
//!
//! ```text
//!  berth install ──▶ kubectl apply ──▶ kube-apiserver (RBAC, audit log)
//!       Deployment's args + token of its account ──▶ Pod (berth run) ──▶ │
//!                                     Ledger ◀── every request ──────────┤
//!           Pod (berth webhook) ◀── Network (address of the Service) ◀───┘
//! ```
//!
//! There is no kubelet: a [`pod::Pod`] runs the binary with the arguments of the Deployment, and finds the API server and its
//! token where a kubelet would put them. There is no kube-proxy: a [`network::Network`] leads from the Service to the pod.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]

#[allow(dead_code, reason = "shared with the scenarios about replacements, which need more of it")]
#[path = "../replacements/chronicle.rs"]
mod chronicle;
mod debugger;
mod ground;
mod guard;
#[allow(dead_code, reason = "shared with the scenarios about replacements, which need more of it")]
#[path = "../replacements/hands.rs"]
mod hands;
mod ledger;
mod life;
mod members;
mod network;
mod pod;
mod proof;
mod rules;
#[allow(dead_code, reason = "shared with the scenarios about replacements, which need more of it")]
#[path = "../replacements/scene.rs"]
mod scene;
#[allow(dead_code, reason = "shared with the scenarios about replacements, which need more of it")]
#[path = "../replacements/set.rs"]
mod set;
#[path = "../replacements/sets.rs"]
mod sets;
mod team;
mod webhook;
