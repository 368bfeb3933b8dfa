//! The socket: accepting connections, TLS, and ending both in good order.
//!
//! Owns everything below HTTP requests. Never looks at one: it hands them to the router with the [`crate::Peer`] they came
//! from, which the in-process client sets by itself.

mod heard;
mod listener;
mod sent;
mod taking;
mod talk;

pub use listener::{Listener, ServeError};
