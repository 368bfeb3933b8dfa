//! The `berth` command: arguments, files in, text out.
//!
//! ```text
//! cli (what was typed) -> commands -> manifest (files in, text out)
//!                              |----> convert  (older forms -> current forms)
//!                              |----> change   (what-ifs of a plan, as typed)
//!                              |----> world    (the objects a plan is about, and what-ifs applied to them)
//!                              |----> plan     (what a hub would decide, and in what it differs)
//!                              |----> replacements (how members of stateful workloads stand)
//!                              |----> berth-hub (the API server, run in this process)
//!                              |----> fleet    (the controllers, run in this process) -> berth-control
//!                              |----> install  (manifests for a Kubernetes, and whether it has them)
//!                              |----> webhook  (the admission rules, served for any Kubernetes) -> berth-admission
//!                              '----> demo     (an example fleet with simulated agents)
//! ```
//!
//! Owns the command line, the reading and writing of manifests and the words a person sees. Never decides anything
//! about placement itself: decisions are the engine's.

mod admission;
pub mod change;
pub mod cli;
pub mod commands;
pub mod console;
pub mod convert;
mod demo;
mod fleet;
pub mod install;
pub mod manifest;
pub mod plan;
mod replacements;
pub mod service;
pub mod table;
pub mod webhook;
pub mod world;

pub use cli::{Cli, run};
