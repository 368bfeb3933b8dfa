//! Admission webhooks: asking others before a write goes through.
//!
//! Owns which webhooks apply to a request, the AdmissionReview exchanged, the call over HTTPS and what its answer
//! means. Never applies a patch itself (the caller gives the function) and never writes to a store.
//!
//! ```text
//! configurations ──WebhookSet──▶ applying hooks ──WebhookClient──▶ patched object, warnings, or a Refusal
//! ```

mod call;
mod condition;
mod configuration;
mod dispatch;
mod exchange;
mod matching;

pub use call::{CallError, NoServices, ServiceMap, ServiceResolver};
pub use configuration::{WebhookKind, WebhookSet};
pub use dispatch::{Around, WebhookClient};

use serde_json::Value;

use crate::user::User;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object going away.
    Delete,
    /// A connection to a subresource.
    Connect,
}

impl Operation {
    /// As rules and reviews carry it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A kind by group and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

/// A resource by group and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural.
    pub resource: &'a str,
}

/// A request on its way to the store.
#[derive(Clone, Debug)]
pub struct Admission<'a> {
    /// What it does.
    pub operation: Operation,
    /// The kind of its object.
    pub kind: Kind<'a>,
    /// The resource it addresses.
    pub resource: Resource<'a>,
    /// The subresource, empty when none.
    pub subresource: &'a str,
    /// Other versions the same objects are served in, which differ in nothing but `apiVersion`.
    pub equivalents: &'a [(Resource<'a>, Kind<'a>)],
    /// The object's name; empty while it is still to be generated.
    pub name: &'a str,
    /// Its namespace; for Namespace objects their own name.
    pub namespace: &'a str,
    /// Who asks.
    pub user: &'a User,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The object to be stored; `None` for deletes. Mutating webhooks change it.
    pub object: Option<Value>,
    /// The object stored now; `None` for creates.
    pub old_object: Option<&'a Value>,
    /// The request's options (`CreateOptions` and its like) as an object.
    pub options: Option<&'a Value>,
}
