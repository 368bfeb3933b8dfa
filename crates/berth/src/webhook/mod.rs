//! Admission for any Kubernetes: the rules of the fleet's kinds behind an HTTPS server that the API server calls.
//!
//! ```text
//! API server --AdmissionReview--> server --review--> door --> berth-admission (the rules, pure)
//!     ^  ^                                             |--> questions: SubjectAccessReviews, namespaces --> API server
//!     |  |                                             '--> lookout: what would leave, asked of a loop that only looks
//!     |  '-- registration: which writes, where, whom to trust <--.
//!     '----- keeper: does what rotation plans -- vault (Secret) -'
//! ```
//!
//! Owns how the rules are reached: the server, its certificates, the webhook configurations and the rights this needs. Never
//! decides what may come in: the rules do.

mod base;
pub(crate) mod door;
pub(crate) mod keeper;
pub(crate) mod lookout;
mod questions;
pub(crate) mod registration;
mod review;
pub mod rights;
mod rotation;
pub(crate) mod server;
pub(crate) mod vault;

pub use base::Base;

/// The names of things on the server that `berth webhook` works with unless told otherwise.
pub(crate) mod usual {
    /// The namespace of the Secret and the Service where this does not run in a pod.
    pub(crate) const NAMESPACE: &str = "berth-system";
    /// The Service that leads to the webhook.
    pub(crate) const SERVICE: &str = "berth-webhook";
    /// The Secret with its certificates.
    pub(crate) const SECRET: &str = "berth-webhook-tls";
    /// Both webhook configurations.
    pub(crate) const CONFIGURATION: &str = "berth-admission";
    /// The service account of the controllers, whose writes are never asked about.
    pub(crate) const CONTROLLERS_ACCOUNT: &str = "berth";
    /// Where it listens.
    pub(crate) const LISTEN: &str = "0.0.0.0:9443";
}
