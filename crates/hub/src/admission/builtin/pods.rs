//! New pods get a priority, and stay a while on nodes that are lost.

use berth_hub_guard::webhook::{Operation, Resource};
use berth_hub_kinds::admission::{Surroundings, on_create, on_update};
use berth_hub_kinds::{Builtin, Builtins};
use berth_hub_wire::Status;
use serde_json::Value;

use crate::admission::{Admission, Request, Review};

const CLASSES: Resource<'_> =
    Resource { group: "scheduling.k8s.io", version: "v1", resource: "priorityclasses" };

/// What pods are given.
#[derive(Debug)]
pub(super) struct Pods;

impl Admission for Pods {
    fn concerns(&self, request: &Request<'_>) -> bool {
        request.is_about("", "pods")
    }

    fn mutate(&self, review: &mut Review<'_>, object: &mut Value) -> Result<(), Status> {
        if let (Operation::Update, Some(old)) = (review.request.operation, review.request.old) {
            on_update(pod(), object, old);
            return Ok(());
        }
        let class = priority_class(review, object)?;
        let surroundings = Surroundings { priority_class: class.as_ref(), ..Surroundings::default() };
        on_create(pod(), object, &surroundings).map_err(|why| review.forbidden(&why))
    }
}

/// The class that a pod names, or else the one for all that name none.
fn priority_class(review: &Review<'_>, pod: &Value) -> Result<Option<Value>, Status> {
    let named = pod.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default();
    if named.is_empty() {
        return Ok(review.list(CLASSES, None).into_iter().find(|class| class["globalDefault"] == true));
    }
    review
        .find(CLASSES, "", named)
        .map(Some)
        .ok_or_else(|| review.forbidden(&format!("no PriorityClass with name {named} was found")))
}

fn pod() -> &'static Builtin {
    Builtins::load().kind("", "v1", "Pod").expect("pods are built in")
}
