//! Changes a user asks for on the command line: moments, taints, removals.
//!
//! Owns the grammar of each and its typed meaning. Never applies them to a world.

mod moment;
mod removal;
mod taint;

pub use moment::{Moment, MomentError};
pub use removal::{Removal, RemovalError};
pub use taint::{Effect, TaintChange, TaintChangeError};
