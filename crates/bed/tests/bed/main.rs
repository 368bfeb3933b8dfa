//! The beds themselves, tested.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod client_go;
mod hub;
mod life;
