//! What a write comes to: pure functions from the stored object and the request to the object to keep, or a refusal.
//!
//! ```text
//!            begin                    finish
//! create     body ──────────────┐     ┌─► Outcome { steps, answer }
//! update     body + live ───────┤ ──► │
//! patch      patch + live ──────┘  mutating admission between, validating admission and the commit after
//! delete     terms + live ───────────► Outcome
//! scale, binding, eviction             the subresources that are more than a part of an object
//! ```
//!
//! Owns the lifecycle of every resource alike: what is checked in which order, what only the server sets, when a write
//! changes nothing, when it completes a deletion. No I/O, no clock, no dice: the same input gives the same outcome.
//! Never asks which kind an object is, except where a behaviour is registered for it.

pub mod act;
mod apply;
pub mod binding;
pub mod condition;
pub mod create;
mod custom;
pub mod delete;
pub mod eviction;
#[cfg(test)]
mod fixtures;
pub(crate) mod form;
mod govalue;
pub mod lifecycle;
pub mod meta;
pub mod name;
pub mod outcome;
mod owners;
pub mod patch;
#[cfg(test)]
mod properties;
pub mod refusal;
mod rules;
pub mod scale;
mod sent;
pub mod subresource;
pub mod update;

pub use act::{Act, Mint, Part};
pub use berth_hub_wire::{FieldValidation, Propagation};
pub use delete::Terms;
pub use outcome::{Answer, Outcome, Pending, Step};
pub use patch::Patch;
pub use rules::at_rest;
pub use sent::warnings as warnings_of_body;
pub use subresource::Behaviour;
