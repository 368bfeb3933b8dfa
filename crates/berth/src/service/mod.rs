//! What commands that keep running have in common: their log, the signals that end them, where they listen.
//!
//! Owns how a long job talks to whoever runs it. Never knows what the job is.

mod address;
mod log;
mod signals;

pub use address::Address;
pub use log::{LogArgs, LogFormat};

pub(crate) use address::url_host;
pub(crate) use log::{parse as parse_log, start as start_log};
pub(crate) use signals::Signals;
