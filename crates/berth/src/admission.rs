//! The fleet's admission rules, at the door of the hub in this process.
//!
//! Owns the way between the hub's words and the rules' words. Never decides: the rules do, with the hub as their oracle.
//! What a change would move is asked of the controllers' loop, which does not wait for the hub when it answers; the
//! controllers' own writes ask nothing.

use berth_admission::{Access, Attempt, Denial, Operation, Oracle, Question, TimeAdded, stake};
use berth_control::Inquirer;
use berth_hub::admission::{
    Admission, Cause, Operation as HubOperation, Reason, Request, Resource, ResourceTarget, Review, Status,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

/// The rules of the fleet's kinds.
#[derive(Debug, Clone)]
pub(crate) struct FleetAdmission {
    /// Whose word counts for when a taint was added.
    pub(crate) time_added: TimeAdded,
    /// Who knows the fleet.
    pub(crate) inquirer: Inquirer,
    /// As whom the controllers write.
    pub(crate) controllers: String,
}

impl Admission for FleetAdmission {
    fn concerns(&self, request: &Request<'_>) -> bool {
        berth_admission::concerns(request.resource.group, request.resource.resource, request.subresource)
    }

    fn mutate(&self, review: &mut Review<'_>, object: &mut Value) -> Result<(), Status> {
        let Some(attempt) = self.attempt(&review.request) else { return Ok(()) };
        berth_admission::mutate(&attempt, object, &HubOracle(review))
            .map_err(|denial| status(review, &denial))
    }

    fn validate(&self, review: &mut Review<'_>, object: Option<&Value>) -> Result<(), Status> {
        let Some(attempt) = self.attempt(&review.request) else { return Ok(()) };
        let warnings = berth_admission::validate(&attempt, object, &HubOracle(review))
            .map_err(|denial| status(review, &denial))?;
        for warning in warnings {
            review.warn(warning);
        }
        Ok(())
    }

    fn advise(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
    ) -> Option<BoxFuture<'static, Vec<String>>> {
        if request.user.name == self.controllers {
            return None;
        }
        let change = stake(&self.attempt(request)?, object)?;
        let inquirer = self.inquirer.clone();
        Some(
            async move { crate::fleet::stakes::warning(&inquirer, change).await.into_iter().collect() }
                .boxed(),
        )
    }
}

impl FleetAdmission {
    fn attempt<'a>(&self, request: &Request<'a>) -> Option<Attempt<'a>> {
        let operation = match request.operation {
            HubOperation::Create => Operation::Create,
            HubOperation::Update => Operation::Update,
            HubOperation::Delete => Operation::Delete,
            HubOperation::Connect => return None,
        };
        Some(Attempt {
            operation,
            resource: request.resource.resource,
            name: request.name,
            user: &request.user.name,
            old: request.old,
            now: request.now,
            time_added: self.time_added,
        })
    }
}

/// The hub answers from its own memory.
struct HubOracle<'r, 'a>(&'r Review<'a>);

impl Oracle for HubOracle<'_, '_> {
    fn answer(&self, question: &Question) -> bool {
        match question {
            Question::May(Access { group, resource, subresource, verb, name }) => {
                let target =
                    ResourceTarget { group, version: "", resource, subresource, namespace: "", name };
                self.0.may(verb, target)
            }
            Question::IsTerminating(name) => {
                let namespaces = Resource { group: "", version: "v1", resource: "namespaces" };
                let found = self.0.find(namespaces, "", name);
                found.is_some_and(|namespace| namespace["metadata"]["deletionTimestamp"].is_string())
            }
        }
    }
}

fn status(review: &Review<'_>, denial: &Denial) -> Status {
    match denial.code {
        403 => review.forbidden(&denial.message),
        400 => Status::failure(400, Reason::BadRequest, denial.message.clone()),
        _ => {
            let causes: Vec<Cause> = denial
                .fields
                .iter()
                .map(|field| Cause::new("FieldValueInvalid", &field.message, &field.path))
                .collect();
            review.invalid(&causes)
        }
    }
}
