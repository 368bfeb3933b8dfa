//! Nobody gives away rights they do not hold.

use std::fmt;
use std::sync::Arc;

use berth_hub_guard::webhook::Operation;
use berth_hub_guard::{PolicyKind, PolicyWrite};
use berth_hub_wire::Status;
use serde_json::Value;

use crate::admission::{Admission, Request, Review};
use crate::derived::Derived;
use crate::refused::refused;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Holds roles and bindings against what their writer holds.
pub(super) struct Escalation {
    derived: Arc<Derived>,
}

impl Escalation {
    pub(super) fn new(derived: Arc<Derived>) -> Self {
        Self { derived }
    }
}

impl fmt::Debug for Escalation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Escalation")
    }
}

impl Admission for Escalation {
    fn concerns(&self, request: &Request<'_>) -> bool {
        request.resource.group == RBAC && matches!(request.operation, Operation::Create | Operation::Update)
    }

    fn validate(&self, review: &mut Review<'_>, object: Option<&Value>) -> Result<(), Status> {
        let request = &review.request;
        let (Some(object), Some(kind)) = (object, PolicyKind::from_plural(request.resource.resource)) else {
            return Ok(());
        };
        let write = PolicyWrite {
            user: request.user,
            kind,
            namespace: request.namespace,
            request_name: request.path_name,
            object,
            old: request.old,
        };
        self.derived.with_policy(|policy| policy.check_write(&write)).map_err(refused)
    }
}
