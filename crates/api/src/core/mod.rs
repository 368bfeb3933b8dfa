//! Kubernetes' own kinds, as far as Berth reads them.
//!
//! Owns slim readings of objects that others define: what is not needed is not kept, so none of them can be written back
//! whole. Changes to them are patches that name what they change.

mod lease;
mod node;

pub use lease::Lease;
pub use node::{Node, NodeSpec, NodeStatus, NodeTaint, Zone};
