//! Bounds on everything a client can ask of the hub.
//!
//! Owns the numbers and why they are what they are. They are data, so that a test can set each of them low and meet it.

use std::time::Duration;

/// Largest object at rest unless told otherwise, in bytes.
const OBJECT_BYTES: usize = 1536 * 1024;

/// How much JSON the defaults of a definition may add to one object, in bytes. Twice the largest object: more could not be
/// kept whatever the object is, and what a request may ask for in three bytes needs a bound before it is there.
pub(crate) const DEFAULTS_BYTES_MAX: usize = 2 * OBJECT_BYTES;

/// What one hub lets its clients use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest request body, in bytes: what kube-apiserver accepts, so that what fits there fits here.
    pub body: usize,
    /// Largest object at rest, in bytes: etcd's limit on one request, so that a move to a real cluster never fails.
    pub object: usize,
    /// Largest head of a request, in bytes: its target and its headers. Up to twice as much is read, to say so.
    pub headers: usize,
    /// How much of a body is read and thrown away once its request is refused, in bytes, so that the client, which is
    /// still sending, gets to see why. Past that it is cut.
    pub discard: usize,
    /// Open connections. One more waits in the kernel's queue until another ends.
    pub connections: usize,
    /// Requests in flight on one connection (HTTP/2 streams).
    pub streams_per_connection: u32,
    /// Watches open at once. One more is refused with 429, so that ordinary requests still find memory.
    pub watches: usize,
    /// Requests being worked on at once, watches left out. One more is refused with 429.
    pub requests: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a client may take to send its headers.
    pub header_read: Duration,
    /// How long a connection may be open without a request. Longer than clients keep theirs by themselves (Go's: 90
    /// seconds), so that it is they who close and no request meets a connection that is just being closed.
    pub idle: Duration,
    /// How long a client may take to send its body.
    pub body_read: Duration,
    /// How long a connection may accept nothing while an answer waits to be sent.
    pub write_stall: Duration,
    /// How long open requests may go on after a stop was asked for.
    pub drain: Duration,
    /// The shortest time after which the hub itself ends a watch; each ends somewhere up to twice this, so that they do
    /// not all come back at once.
    pub watch: Duration,
    /// How often a watch that asked for bookmarks gets one.
    pub bookmark: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 3 * 1024 * 1024,
            object: OBJECT_BYTES,
            headers: 64 * 1024,
            discard: 32 * 1024 * 1024,
            connections: 4096,
            streams_per_connection: 1024,
            watches: 20_000,
            requests: 400,
            handshake: Duration::from_secs(10),
            header_read: Duration::from_secs(10),
            idle: Duration::from_mins(3),
            body_read: Duration::from_secs(30),
            write_stall: Duration::from_mins(1),
            drain: Duration::from_secs(10),
            watch: Duration::from_mins(30),
            bookmark: Duration::from_mins(1),
        }
    }
}
