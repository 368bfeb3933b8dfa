//! The controllers on real API servers: Berth's hub and a kube-apiserver.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]

mod lead;
