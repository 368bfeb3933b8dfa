//! Who is at the other end of a connection, as far as the connection itself tells.

use std::net::SocketAddr;
use std::sync::Arc;

use berth_hub_guard::{Peer as Certificate, User};

/// What a connection says about its requests, carried to the pipeline as a request extension.
#[derive(Debug, Clone)]
pub enum Peer {
    /// A socket.
    Socket {
        /// Where it connects from.
        address: SocketAddr,
        /// Whose certificate it showed, if any.
        certificate: Certificate,
    },
    /// The program itself, acting as this user.
    InProcess(Arc<User>),
}
