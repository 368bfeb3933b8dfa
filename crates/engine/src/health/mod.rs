//! Whether a cluster can be reached, and what follows from it.
//!
//! ```text
//!   Lease --lease--> Available = Unknown when it ends    (the agent itself says True and False)
//!         --clock--> ClockSynced
//!   Available --taint--> unavailable | unreachable, with one clock for both
//! ```
//!
//! Never says that a cluster is healthy: only the cluster's own agent can know that.

mod clock;
mod lease;
mod taint;

pub use clock::clock_condition;
pub use lease::{GRACE_LEASES, LeaseVerdict, Stop, check_lease, lease_grace_seconds, lease_written};
pub use taint::{Health, wanted_taints};
