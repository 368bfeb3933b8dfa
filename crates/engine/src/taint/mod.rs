//! Taints and tolerations: one matcher for clusters, nodes and members of workloads.
//!
//! Owns the question "does this toleration cover that taint, and until when?". It is generic over the effect, so
//! that clusters ([`ClusterEffect`]) and nodes ([`NodeEffect`]) share every rule but their vocabulary. It never
//! decides what follows from a verdict; that belongs to `select` and, for nodes, to eviction.
//!
//! ```text
//!   Taint{key, value, effect, added}  x  [Toleration{key, operator, value, effect, seconds}]
//!                     |  Policy: which of several matching tolerations decides
//!                     v
//!   Tolerated{by} | Until{by, deadline} | Not(NoMatch | Expired{by, at})
//! ```

mod effect;
mod matcher;

pub use effect::{ClusterEffect, NodeEffect};
pub use matcher::{Lasting, Operator, Policy, Refusal, Taint, Toleration, Verdict, judge, lasting};
