//! The fleet controllers in this process: how they are set up, what they need, and where they work.
//!
//! ```text
//! flags, file ──▶ settings ──▶ connect (which server?) ──▶ controllers (wait, stand for leader, run, say so)
//!                                └──▶ observe (what the server holds, for `berth plan` and `berth explain`)
//!                                     definitions, rights: what `berth up` gives its own hub first
//! ```
//!
//! Owns what `berth run` and `berth up` share. Never decides anything about placement: that is the controllers' work.

pub(crate) mod connect;
pub(crate) mod controllers;
pub(crate) mod definitions;
pub(crate) mod evictions;
pub(crate) mod file;
pub(crate) mod node_lifecycle;
pub(crate) mod nodes;
pub(crate) mod observe;
pub(crate) mod rights;
pub(crate) mod settings;
pub(crate) mod stakes;
pub(crate) mod typed;

/// As whom `berth up` writes what its controllers need.
pub(crate) const MANAGER: &str = "berth";
