//! Who in this process has a say in a write, besides the writer.
//!
//! ```text
//! write stage ──Request──▶ Chain ──Review──▶ builtin   what Kubernetes' always-on admission adds and refuses
//!                                     │      given     functions that whoever opens the hub hands in
//!                                     ▼
//!                                  Lookup              other objects, and what policy would say
//! ```
//!
//! Owns the door for functions and those that the hub brings itself; a webhook is the same thing with a network between,
//! and is asked by the write stage. The order is Kubernetes': functions that change the object, mutating webhooks, the
//! schema, functions that only refuse, validating webhooks.
//! Knows nothing of what the functions handed in are about, and never reads or writes the log.

mod builtin;
mod chain;
mod function;
mod lookup;
mod request;
mod review;

pub use berth_hub_guard::webhook::{Kind, Operation, Resource};
pub use berth_hub_guard::{ResourceTarget, User, Verdict};
pub use berth_hub_wire::{Cause, Details, Reason, Status, field_error};
pub(crate) use builtin::builtin;
pub(crate) use chain::Chain;
pub use function::Admission;
pub use lookup::Lookup;
pub use request::Request;
pub use review::Review;
