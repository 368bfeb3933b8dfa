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

mod debugger;
mod ground;
mod ledger;
mod life;
mod network;
mod pod;
mod proof;
mod rules;
mod webhook;
