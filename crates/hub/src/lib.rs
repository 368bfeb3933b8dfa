//! A place to run: a durable, Kubernetes-compatible API server in one process.
//!
//! ```text
//! socket ── serve ──▶ request ── who? may they? ──▶ resource   (stored, request) -> (new object | Status), pure
//!                        │                             │
//!                        │                             ▼
//!                       read ◀── log, watches ◀── core::commit ──▶ keep   garbage, namespaces, definitions, events
//! ```
//!
//! Owns serving: which resources there are (`registry`), what happens to a request (`request`), what a write comes
//! to (`resource`), what a read shows (`read`), and what must be kept in order without being asked (`keep`).
//! Schemas, patches, the log, the wire formats and access control are crates of their own below this one.
//! Knows nothing of Berth's controllers: they are clients like any other.

pub mod admission;
mod chore;
mod clock;
mod core;
mod derived;
mod dice;
mod hub;
mod keep;
mod limits;
mod metrics;
mod read;
mod refused;
mod registry;
mod reply;
mod request;
mod resource;
mod seed;
mod serve;
mod write;

pub use admission::Admission;
pub use clock::Clock;
pub use hub::{Hub, HubError, HubOptions, Server};
pub use limits::Limits;
pub use registry::CustomVersion;
pub use request::{BACKUP_PATH, Peer};
pub use serve::{Listener, ServeError};
