//! Questions that are asked by posting an object: may somebody do something, whose token is this, who am I?
//!
//! Owns which function answers which kind. Nothing is stored.

use axum::body::Body;
use berth_hub_guard::{
    local_subject_access_review, self_subject_access_review, self_subject_review, self_subject_rules_review,
    subject_access_review, token_review,
};
use berth_hub_wire::media::negotiate;
use berth_hub_wire::{CreateOptions, ResourceRoute, Status, Verb, envelope};
use serde_json::Value;

use super::{Call, body};
use crate::refused::refused;
use crate::registry::Resource;
use crate::reply::{self, Reply};
use crate::resource::meta;

/// Answers a review.
pub(crate) async fn answer(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    sent: Body,
) -> Result<Reply, Status> {
    if route.verb != Verb::Create || !route.name.is_empty() {
        return Err(Status::method_not_allowed(resource.group_resource(), route.verb.as_str()));
    }
    CreateOptions::parse(&call.query)?;
    let shape = negotiate(call.accept().as_deref())?;
    let bytes = body::read(call, sent).await?;
    let mut question = body::object_of(call, &bytes, resource)?.value;
    if resource.namespaced {
        settle_namespace(&mut question, &route.namespace)?;
    }
    let core = &call.core;
    let answered = match &*resource.plural {
        "subjectaccessreviews" => core.with_policy(|policy| subject_access_review(policy, &question)),
        "selfsubjectaccessreviews" => {
            core.with_policy(|policy| self_subject_access_review(policy, &call.user, &question))
        }
        "localsubjectaccessreviews" => {
            core.with_policy(|policy| local_subject_access_review(policy, &route.namespace, &question))
        }
        "selfsubjectrulesreviews" => {
            core.with_policy(|policy| self_subject_rules_review(policy, &call.user, &question))
        }
        "tokenreviews" => token_review(&core.authenticator, &question, call.now, &**core),
        "selfsubjectreviews" => Ok(self_subject_review(&call.user, call.now)),
        _ => return Err(Status::method_not_allowed(resource.group_resource(), route.verb.as_str())),
    };
    let body = envelope::encode(&answered.map_err(refused)?, call.pretty || shape.pretty);
    Ok(reply::whole(201, shape.content_type(), body))
}

/// A question about a namespace is in the namespace of its path.
fn settle_namespace(question: &mut Value, namespace: &str) -> Result<(), Status> {
    match meta::text(question, "namespace") {
        "" => meta::set(question, "namespace", Some(namespace.into())),
        said if said == namespace => {}
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}
