//! One function's look at one write.
//!
//! Owns what the function gets to know and how it answers: refusals in the hub's words, and warnings.

use berth_hub_guard::webhook::Resource;
use berth_hub_guard::{Attributes, ResourceTarget, User, Verdict};
use berth_hub_wire::{AsCause, GroupKind, GroupResource, Status};
use serde_json::Value;

use super::{Lookup, Request};

/// A write under review.
pub struct Review<'a> {
    /// What is asked for.
    pub request: Request<'a>,
    lookup: &'a dyn Lookup,
    warnings: &'a mut Vec<String>,
}

impl<'a> Review<'a> {
    /// A review; its warnings are added to `warnings`.
    pub fn new(request: Request<'a>, lookup: &'a dyn Lookup, warnings: &'a mut Vec<String>) -> Self {
        Self { request, lookup, warnings }
    }

    /// One other object; see [`Lookup::find`].
    pub fn find(&self, resource: Resource<'_>, namespace: &str, name: &str) -> Option<Value> {
        self.lookup.find(resource, namespace, name)
    }

    /// Other objects; see [`Lookup::list`].
    pub fn list(&self, resource: Resource<'_>, namespace: Option<&str>) -> Vec<Value> {
        self.lookup.list(resource, namespace)
    }

    /// Whether the writer may do this, as a `SubjectAccessReview` would answer.
    pub fn may(&self, verb: &str, target: ResourceTarget<'_>) -> bool {
        self.authorize(self.request.user, verb, target).allowed
    }

    /// What policy says about this user, with its reason.
    pub fn authorize(&self, user: &User, verb: &str, target: ResourceTarget<'_>) -> Verdict {
        self.lookup.authorize(&Attributes::resource(user, verb, target))
    }

    /// Tells the writer something, whatever becomes of the write.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// A refusal: 403, with the reason why.
    pub fn forbidden(&self, why: &str) -> Status {
        let Resource { group, resource, .. } = self.request.resource;
        Status::forbidden(GroupResource::new(group, resource), self.request.name, why)
    }

    /// A refusal: 422, with what is wrong and the paths of the fields; [`super::field_error`] words them.
    pub fn invalid<C: AsCause>(&self, causes: &[C]) -> Status {
        let kind = self.request.kind;
        Status::invalid(GroupKind::new(kind.group, kind.kind), self.request.name, causes)
    }
}
