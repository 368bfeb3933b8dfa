//! Effects out: writes as data, and the writer that sends them.
//!
//! Owns every change this program makes to an API server. Each is fenced by the lead, bound to the identity and the
//! revision it was decided on, and part of a job that ends at its first failure. Deciding what to write is the
//! controllers' business.

mod difference;
mod events;
mod write;
mod writer;

pub use difference::difference;
pub(crate) use events::Events;
pub use write::{Note, Target, Write};
pub(crate) use writer::{Job, WriteError, Writer};
