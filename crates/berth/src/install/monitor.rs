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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::workloads::workloads;

    fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
        objects.iter().find(|object| object["kind"] == kind).unwrap()
    }

    /// Whether whoever has these labels is selected.
    fn selects(selector: &Value, labels: &Value) -> bool {
        let wanted = selector.as_object().unwrap();
        !wanted.is_empty() && wanted.iter().all(|(key, value)| labels[key] == *value)
    }

    #[test]
    fn the_monitor_finds_the_service_and_the_service_every_pod_by_a_port_that_it_has() {
        let installation = Installation { is_monitored: true, ..Installation::default() };
        let objects = monitor(&installation);
        let (service, monitor) = (one(&objects, "Service"), one(&objects, "ServiceMonitor"));
        assert!(selects(&monitor["spec"]["selector"]["matchLabels"], &service["metadata"]["labels"]));
        let namespaces = &monitor["spec"]["namespaceSelector"]["matchNames"];
        assert_eq!(*namespaces, json!([service["metadata"]["namespace"]]));
        let (endpoint, port) = (&monitor["spec"]["endpoints"][0], &service["spec"]["ports"][0]);
        assert_eq!(endpoint["port"], port["name"]);

        let workloads = workloads(&installation);
        let deployments: Vec<&Value> =
            workloads.iter().filter(|object| object["kind"] == "Deployment").collect();
        assert_eq!(deployments.len(), 2);
        for deployment in deployments {
            let template = &deployment["spec"]["template"];
            assert_eq!(deployment["metadata"]["namespace"], service["metadata"]["namespace"]);
            assert!(selects(&service["spec"]["selector"], &template["metadata"]["labels"]), "{deployment}");
            let container = &template["spec"]["containers"][0];
            let is_it = |open: &&Value| open["name"] == port["targetPort"];
            let open = container["ports"].as_array().unwrap().iter().find(is_it).unwrap();
            assert_eq!(open["containerPort"], port["port"]);
            let bound = format!("--metrics-bind=0.0.0.0:{}", open["containerPort"]);
            assert!(container["args"].as_array().unwrap().contains(&json!(bound)), "{container}");
            // The label by which the targets are told apart.
            assert!(template["metadata"]["labels"]["app.kubernetes.io/component"].is_string());
        }
        // What else is there is nobody's to scrape by it.
        let plumbing = crate::install::webhooks::plumbing(&installation);
        assert!(!selects(
            &monitor["spec"]["selector"]["matchLabels"],
            &one(&plumbing, "Service")["metadata"]["labels"]
        ));
    }
}
