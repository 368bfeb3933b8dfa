//! What the process tells about itself: `/healthz`, `/readyz` and `/metrics`.
//!
//! ```text
//!  runtime ──▶ Check, Pulse ──▶ Health ──┐
//!  runtime ─────────────────▶ Metrics ───┴──▶ router ──▶ Listener ◀── kubelet, Prometheus, a person with curl
//! ```
//!
//! Owns what is counted, what is checked, and the little server that shows both. It answers from memory and never waits
//! for the runtime, so that a runtime that is stuck can be seen to be stuck. It asks nobody who they are: it listens on
//! loopback unless told otherwise, and says nothing about any object.
//!
//! The listener also carries what `debug` answers, with TLS.

mod certificate;
mod deciding;
mod health;
mod listener;
mod metrics;
mod router;

pub(crate) use certificate::crypto_provider;
pub use certificate::{Certificate, CertificateError};
pub use health::{Check, Health, Pulse};
pub use listener::{Listener, ServeError, Service};
pub use metrics::{Metrics, PlacementState};
pub use router::router;
