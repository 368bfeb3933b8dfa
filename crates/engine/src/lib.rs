//! What should be: Berth's decisions, as pure functions.
//!
//! Owns every verdict Berth gives: which clusters a Placement selects, why, and when that will change. It never does
//! I/O, never reads a clock and never draws a random number: `now` is an argument, ties break by name, and the same
//! input gives the same output bit for bit. A clippy list and a test over the dependency graph keep it so.
//!
//! ```text
//!   objects --Delta--> model (the indexed fleet) --touched--> select (filter, score, spread, pick, group)
//!                                                      |--> explain (the same steps, every reason kept)
//!                                                      |--> impact (what a change would move)
//!   taint: the one matcher both use; selector: labels, claims, names, expressions
//!   evict: who must leave when, and how many at once      gate: what has to hold before
//!   health: leases -> conditions -> system taints      sets: members, standard sets, bindings, grants
//!   replace: members of stateful workloads on ailing nodes, data first
//!   node: the same for nodes: leases -> conditions -> taints, with zones and their pace
//!   window: when something may happen at all
//! ```

pub mod condition;
pub mod evict;
pub mod explain;
pub mod gate;
pub mod health;
pub mod impact;
pub mod model;
pub mod moment;
pub mod node;
pub mod replace;
pub mod select;
pub mod selector;
pub mod sets;
pub mod taint;
pub mod window;

pub use model::{Delta, DeltaRef, Model, PlacementKey, Touched};
pub use moment::Moment;
