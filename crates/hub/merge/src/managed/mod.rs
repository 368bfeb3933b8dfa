//! Who manages which fields of an object: the entries of `metadata.managedFields`, how a write changes them, and what
//! an apply does to the object.
//!
//! ```text
//! entries (read, sort, write)  <-  update: compare, take over, strip, cap
//!                              <-  apply:  merge, prune, compare, conflicts
//! ```
//!
//! Owns the steps and their order, as the API server takes them. Never looks at storage or the clock; the time of a
//! write comes with its [`Writer`].

mod apply;
mod cap;
mod conflict;
mod entry;
mod last_applied;
mod object_type;
mod scale;
mod strip;
mod time;
mod update;
mod writer;

pub use apply::apply;
pub use cap::MAX_UPDATE_MANAGERS;
pub use conflict::{ApplyError, Conflict, Conflicts};
pub use entry::{Operation, validate_managed_fields};
pub use last_applied::LAST_APPLIED_ANNOTATION;
pub use object_type::{ObjectType, Versions};
pub use scale::{ScalePaths, scale_to_parent, scale_view};
pub use update::track_update;
pub use writer::Writer;
