//! The socket: accepting connections, TLS, and ending both in good order.
//!
//! Owns everything below HTTP requests. Never looks at one: it hands them to the router with the [`Peer`] they came
//! from, which the in-process client sets by itself.

mod listener;
mod opening;
mod peer;
mod taking;

pub use listener::{Listener, ServeError};
pub use peer::Peer;
