//! Configurations of webhooks are refused when they ask for what the hub cannot do.

use berth_hub_guard::WebhookSet;
use berth_hub_wire::{Cause, Status};
use serde_json::Value;

use crate::admission::{Admission, Request, Review};

/// Holds configurations against what can be called.
#[derive(Debug)]
pub(super) struct Hooks;

impl Admission for Hooks {
    fn concerns(&self, request: &Request<'_>) -> bool {
        request.resource.group == "admissionregistration.k8s.io"
    }

    fn validate(&self, review: &mut Review<'_>, object: Option<&Value>) -> Result<(), Status> {
        let problems: Vec<Cause> = object
            .map(WebhookSet::check)
            .unwrap_or_default()
            .into_iter()
            .map(|problem| Cause::new(problem.reason, problem.message, problem.field))
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(review.invalid(&problems)) }
    }
}
