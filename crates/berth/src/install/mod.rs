//! Berth on a Kubernetes: what is installed, whether it is as it should be, and what to take away again.
//!
//! ```text
//! flags --> Installation --> parts (rbac, workloads, webhooks, monitor, the definitions) --> objects, in order
//!                                |--> printed by `berth install`, written to deploy/ by `./dev generate`
//!                                |--> check (compare: what is set, against what a server has; guard: what must not be added;
//!                                |          powers: who else gives our accounts rights)
//!                                '--> removal (the same objects, last first)
//! ```
//!
//! Owns the manifests. Rights come from who needs them (`berth_control::rights`, `webhook::rights`), never from here; and
//! nothing here writes to a server: printing is enough, `kubectl` does the rest.

mod check;
mod compare;
mod debugger;
mod guard;
mod image;
mod installation;
mod monitor;
mod object;
pub mod parts;
mod powers;
mod rbac;
mod removal;
mod webhooks;
mod workloads;

pub(crate) use check::check;
pub use image::Image;
pub use installation::{Installation, InstallationArgs};
pub(crate) use removal::{Extent, heeds_freezes, removal};

/// What everything is called that is not named after a part of it.
const NAME: &str = "berth";
/// The controllers: their account, their Deployment, their component.
const CONTROLLERS: &str = "controllers";
/// The webhook: its account, its Deployment, its component.
const WEBHOOK: &str = "webhook";
/// Where health and metrics are served in a pod, and what the port is called.
const METRICS: (&str, u16) = ("metrics", 8080);
