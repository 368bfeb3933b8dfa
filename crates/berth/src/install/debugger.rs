//! The way to the controllers' debugger: who asks questions about Placements goes by a Service.
//!
//! What the process itself may do for it is in `rbac`. Who may ask is the users' to grant: rights on the path and on the
//! Placements of a namespace, as `docs/fleet.md` has it.

use serde_json::{Value, json};

use super::object::{object, selector};
use super::{CONTROLLERS, Installation};

/// What the debugger listens on in the controllers' pods, and what the port is called.
pub(super) const PORT: (&str, u16) = ("debugger", 9443);
const SERVICE: &str = "berth-debugger";

/// The Service. One that stands by answers as well as the leader.
pub(super) fn service(installation: &Installation) -> Value {
    let (port, _) = PORT;
    let body = json!({"spec": {
        "selector": selector(CONTROLLERS),
        "ports": [{"name": port, "port": 443, "targetPort": port, "protocol": "TCP"}],
    }});
    object(("v1", "Service"), (Some(&installation.namespace), SERVICE), CONTROLLERS, body)
}
