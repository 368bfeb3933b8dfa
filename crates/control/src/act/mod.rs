//! Effects out: writes as data, and the writer that sends them.
//!
//! Owns every change this program makes to an API server, and what is asked before one. Each is fenced by the lead, bound to
//! the identity and the revision it was decided on, and part of a job that ends at its first failure. Deciding what to write
//! is the controllers' business.

mod ask;
mod asking;
mod difference;
mod events;
#[cfg(test)]
mod fixtures;
mod reading;
mod request;
mod write;
mod writer;

#[cfg(test)]
pub(crate) use ask::claim_names;
pub use ask::{Around, Ask, Reply};
pub use difference::difference;
pub(crate) use events::Events;
pub use write::{Note, Target, Write};
pub(crate) use writer::{Job, WriteError, Writer, Wrote};
