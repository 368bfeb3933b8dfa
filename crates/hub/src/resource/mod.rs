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

pub(crate) mod act;
mod apply;
pub(crate) mod binding;
pub(crate) mod budget;
pub(crate) mod condition;
pub(crate) mod create;
mod custom;
pub(crate) mod definition;
pub(crate) mod delete;
pub(crate) mod eviction;
#[cfg(test)]
mod fixtures;
pub(crate) mod form;
mod govalue;
pub(crate) mod growth;
pub(crate) mod lifecycle;
pub(crate) mod meta;
pub(crate) mod name;
pub(crate) mod outcome;
mod owners;
pub(crate) mod patch;
#[cfg(test)]
mod properties;
pub(crate) mod refusal;
mod rules;
pub(crate) mod scale;
mod sent;
pub(crate) mod subresource;
pub(crate) mod update;

pub(crate) use act::{Act, Mint, Part};
pub(crate) use berth_hub_wire::Propagation;
pub(crate) use delete::Terms;
pub(crate) use outcome::{Answer, Outcome, Pending, Step};
pub(crate) use patch::Patch;
pub(crate) use rules::at_rest;
pub(crate) use sent::{posted, warnings as warnings_of_body};
