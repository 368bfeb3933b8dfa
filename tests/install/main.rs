//! Berth on a real Kubernetes: what `berth install` prints is applied, runs with the rights it was given, and goes away again.
//!
//! ```text
//!  berth install ──▶ kubectl apply ──▶ kube-apiserver (RBAC, audit log)
//!       Deployment's args + token of its account ──▶ Pod (berth run) ──▶ │
//!                                     Ledger ◀── every request ──────────┘
//! ```
//!
//! There is no kubelet: a [`pod::Pod`] runs the binary with the arguments of the Deployment, and finds the API server and its
//! token where a kubelet would put them.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]

mod ground;
mod ledger;
mod life;
mod pod;
mod proof;
mod rules;
mod webhook;
