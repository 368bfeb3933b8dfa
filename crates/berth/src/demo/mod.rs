//! The fleet of `berth up --demo`: example objects, and the agents of clusters that do not exist.
//!
//! ```text
//! fleet (objects) ──▶ hub ◀── simulator (requests) ◀── agent (what to do when, pure)
//!                      ▲
//!                      └── `berth demo fail`, `recover`: an annotation that the agents obey
//! ```
//!
//! Owns what an agent does for its cluster: the namespace, the lease, the status, a score. Never decides anything about
//! placement, and never touches a cluster without the label of the demo.

mod agent;
mod fleet;
mod report;
mod simulator;

pub(crate) use agent::is_silent;
pub(crate) use fleet::{NAMESPACE, load};
pub(crate) use simulator::{Simulator, is_simulated};

/// The label of clusters whose agents are simulated, and its value.
pub(crate) const LABEL: (&str, &str) = ("berth.dev/demo", "agent");
/// The annotation that says how an agent behaves.
pub(crate) const BEHAVIOUR: &str = "berth.dev/demo-agent";
/// Its value for an agent that is silent; any other is ignored.
pub(crate) const SILENT: &str = "silent";
