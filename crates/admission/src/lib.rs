//! What may come in: the admission rules of the fleet's kinds, as functions.
//!
//! Owns who may bind a set, move a cluster between sets, accept a cluster or touch the system's taints; when a taint
//! counts from; that a Placement, an EvictionPolicy or a ReplacementPolicy which could not work is refused at the door, with the
//! field's path; and that nobody changes whom a Replacement is about. It does no I/O: what only an authorizer or a server knows
//! is asked of an [`Oracle`]. A hub answers from its own memory; a webhook first records what would be asked ([`Recorder`]),
//! asks it over the network, and then decides with the answers.
//!
//! ```text
//!   Attempt --mutate--> the object as it is to be stored (default set, timeAdded)
//!           --validate--> warnings | Denial (code, message, fields)
//!           --stake--> the change it would be to the fleet, where clusters might leave because of it
//! ```

mod attempt;
mod cluster;
mod denial;
mod eviction_policy;
mod gate;
mod oracle;
mod placement;
mod replacement;
mod replacement_policy;
mod set_binding;
mod stake;
mod taints;

pub use attempt::{Attempt, Operation, TimeAdded};
pub use denial::{Denial, FieldProblem};
pub use gate::{RESOURCES, concerns, mutate, validate};
pub use oracle::{Access, Answers, Oracle, Question, Recorder};
pub use stake::stake;
