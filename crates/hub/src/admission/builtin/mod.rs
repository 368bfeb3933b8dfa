//! The functions a hub brings itself: what Kubernetes' always-on admission does, as far as its kinds are served.
//!
//! The lifecycle of namespaces is not among them: a write rests on the state its namespace is in, which the write stage
//! holds against the log when it commits.

mod claims;
mod escalation;
mod hooks;
mod pods;

use std::sync::Arc;

use super::Admission;
use crate::derived::Derived;

/// The hub's own functions, in order.
pub(crate) fn builtin(derived: &Arc<Derived>) -> [Arc<dyn Admission>; 4] {
    [
        Arc::new(pods::Pods),
        Arc::new(claims::Claims),
        Arc::new(escalation::Escalation::new(Arc::clone(derived))),
        Arc::new(hooks::Hooks),
    ]
}
