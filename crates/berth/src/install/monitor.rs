//! Metrics, for the Prometheus operator.

use serde_json::{Value, json};

use super::object::object;
use super::{Installation, METRICS, NAME};

const COMPONENT: &str = "metrics";
const MONITOR: &str = "berth-metrics";

/// A Service over all pods, and the ServiceMonitor that finds it.
pub(super) fn monitor(installation: &Installation) -> Vec<Value> {
    let place = (Some(&*installation.namespace), MONITOR);
    let pods = json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME});
    let (port, _) = METRICS;
    let service = json!({"spec": {
        "clusterIP": "None",
        // Those that are not ready have something to tell, too.
        "publishNotReadyAddresses": true,
        "selector": pods,
        "ports": [{"name": port, "port": METRICS.1, "targetPort": port, "protocol": "TCP"}],
    }});
    let monitor = json!({"spec": {
        "selector": {"matchLabels": super::object::selector(COMPONENT)},
        "namespaceSelector": {"matchNames": [installation.namespace]},
        "endpoints": [{"port": port, "path": "/metrics", "scheme": "http"}],
        "targetLabels": ["app.kubernetes.io/name"],
        "podTargetLabels": ["app.kubernetes.io/component"],
    }});
    vec![
        object(("v1", "Service"), place, COMPONENT, service),
        object(("monitoring.coreos.com/v1", "ServiceMonitor"), place, COMPONENT, monitor),
    ]
}
