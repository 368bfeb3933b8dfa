//! Who may do what: the hub's certificates, tokens, policy and admission webhooks.
//!
//! Owns authentication (certificates of its own CA, static tokens, service account tokens), authorisation (RBAC
//! over role and binding objects), impersonation, the access and token reviews, and the client that asks admission
//! webhooks. Objects come in as JSON and answers go out as JSON or as a [`Refusal`].
//! Never serves HTTP, never reads a store or a clock: both are given.
//!
//! ```text
//! certificate, token ──Authenticator──▶ User ──impersonate──▶ User ──PolicySet──▶ Verdict
//!                                                                        ▲
//!                                       roles, bindings (raw JSON) ──apply──┘
//! ```

pub mod aggregation;
pub mod attributes;
pub mod authenticator;
pub mod authority;
mod binding;
pub mod bootstrap;
mod cover;
pub mod escalation;
pub mod impersonation;
pub mod policy;
pub mod refusal;
pub mod review;
pub mod rule;
mod selector;
mod shape;
pub mod token;
pub mod token_review;
pub mod user;
pub mod webhook;

pub use aggregation::{AGGREGATION_MANAGER, aggregate_cluster_roles};
pub use attributes::{Attributes, ResourceTarget, Target};
pub use authenticator::Authenticator;
pub use authority::{
    Authority, AuthorityError, Ca, Certificate, Identity, Kubeconfig, Peer, PeerVerifier, Serving,
    write_kubeconfig,
};
pub use escalation::PolicyWrite;
pub use impersonation::impersonate;
pub use policy::{PolicyKind, PolicySet, Verdict};
pub use refusal::{FieldProblem, Refusal};
pub use review::{
    local_subject_access_review, self_subject_access_review, self_subject_rules_review, subject_access_review,
};
pub use rule::PolicyRule;
pub use token::{ObjectLookup, ServiceAccountRef, ServiceAccountTokens, StaticTokens};
pub use token_review::{self_subject_review, token_review};
pub use user::User;
pub use webhook::{Admission, WebhookClient, WebhookKind, WebhookSet};
