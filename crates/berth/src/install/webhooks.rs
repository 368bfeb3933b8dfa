//! The way from the API server to the webhook: Service, Secret, configurations.

use serde_json::{Value, json};

use super::object::{labels, object, selector};
use super::rbac::user;
use super::workloads::WEBHOOK_PORT;
use super::{CONTROLLERS, Installation, WEBHOOK};
use crate::webhook::registration::{Door, Registration, mutating, validating};
use crate::webhook::usual;

/// The Service, and the Secret that the webhook keeps its certificates in: it is there from the start, because whoever may
/// make Secrets may make more than that one.
pub(super) fn plumbing(installation: &Installation) -> Vec<Value> {
    let place = |name| (Some(&*installation.namespace), name);
    let (port, _) = WEBHOOK_PORT;
    let service = json!({"spec": {
        "selector": selector(WEBHOOK),
        "ports": [{"name": port, "port": 443, "targetPort": port, "protocol": "TCP"}],
    }});
    vec![
        object(("v1", "Service"), place(usual::SERVICE), WEBHOOK, service),
        // What is in it is the webhook's.
        object(("v1", "Secret"), place(usual::SECRET), WEBHOOK, json!({"type": "Opaque"})),
    ]
}

/// The configurations. Whom to trust at the other end is filled in by the webhook.
pub(super) fn configurations(installation: &Installation) -> serde_json::Result<Vec<Value>> {
    let registration = Registration {
        name: usual::CONFIGURATION,
        door: Door::Service { namespace: &installation.namespace, name: usual::SERVICE },
        ca_bundle: None,
        trusted: &[user(CONTROLLERS, &installation.namespace)],
    };
    let mut objects = vec![
        serde_json::to_value(mutating(&registration))?,
        serde_json::to_value(validating(&registration))?,
    ];
    for object in &mut objects {
        object["metadata"]["labels"] = labels(WEBHOOK);
    }
    Ok(objects)
}
