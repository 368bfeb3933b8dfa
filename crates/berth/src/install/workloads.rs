//! What runs: the Deployments, and what keeps enough of their pods.

use serde_json::{Value, json};

use super::object::{labels, object, selector};
use super::rbac::account;
use super::{CONTROLLERS, Installation, METRICS, NAME, WEBHOOK, debugger};
use crate::webhook;

/// Nobody: as the image has it, and as no file on a node has it.
const USER: u32 = 65_532;

/// What the webhook listens on in its pod, and what the port is called.
pub(super) const WEBHOOK_PORT: (&str, u16) = ("webhook", 9443);

/// One kind of pod.
struct Workload<'a> {
    installation: &'a Installation,
    component: &'static str,
    args: Vec<String>,
    ports: Vec<(&'static str, u16)>,
    /// What it takes in a small fleet, and what it may not exceed.
    memory: (&'static str, &'static str),
    cpu: &'static str,
}

/// The Deployments, and a disruption budget for each.
pub(super) fn workloads(installation: &Installation) -> Vec<Value> {
    let all = [Some(controllers(installation)), installation.has_webhooks.then(|| webhook(installation))];
    let (deployments, budgets): (Vec<_>, Vec<_>) =
        all.into_iter().flatten().map(|workload| (workload.deployment(), workload.budget())).unzip();
    deployments.into_iter().chain(budgets).collect()
}

fn controllers(installation: &Installation) -> Workload<'_> {
    let mut args = vec![
        "run".to_owned(),
        format!("--controllers={}", installation.controllers),
        format!("--metrics-bind=0.0.0.0:{}", METRICS.1),
        "--log-format=json".to_owned(),
    ];
    let mut ports = vec![METRICS];
    if installation.has_debugger {
        args.push(format!("--debug-bind=0.0.0.0:{}", debugger::PORT.1));
        ports.push(debugger::PORT);
    }
    args.extend(installation.node_flags.iter().cloned());
    Workload { installation, component: CONTROLLERS, args, ports, memory: ("128Mi", "1Gi"), cpu: "100m" }
}

fn webhook(installation: &Installation) -> Workload<'_> {
    Workload {
        installation,
        component: WEBHOOK,
        args: vec![
            "webhook".to_owned(),
            format!("--listen=0.0.0.0:{}", WEBHOOK_PORT.1),
            format!("--service={}", webhook::usual::SERVICE),
            format!("--secret={}", webhook::usual::SECRET),
            format!("--configuration={}", webhook::usual::CONFIGURATION),
            format!("--metrics-bind=0.0.0.0:{}", METRICS.1),
            "--log-format=json".to_owned(),
        ],
        ports: vec![WEBHOOK_PORT, METRICS],
        memory: ("128Mi", "1Gi"),
        cpu: "100m",
    }
}

impl Workload<'_> {
    fn name(&self) -> String {
        format!("{NAME}-{}", self.component)
    }

    fn deployment(&self) -> Value {
        let selected = json!({"matchLabels": selector(self.component)});
        let body = json!({"spec": {
            "replicas": self.installation.replicas,
            "selector": selected,
            // The new ones are there before the old ones go: somebody stands by, and somebody answers, all the time.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {
                    "labels": labels(self.component),
                    // Logs and `kubectl exec` mean this container.
                    "annotations": {"kubectl.kubernetes.io/default-container": NAME},
                },
                "spec": self.pod(),
            },
        }});
        object(
            ("apps/v1", "Deployment"),
            (Some(&self.installation.namespace), &self.name()),
            self.component,
            body,
        )
    }

    fn pod(&self) -> Value {
        let spread = |key: &str| {
            json!({
                "maxSkew": 1,
                "topologyKey": key,
                // A cluster of one node gets them all.
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(self.component)},
            })
        };
        json!({
            "serviceAccountName": account(self.component),
            "automountServiceAccountToken": true,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
            "terminationGracePeriodSeconds": 30,
            "containers": [self.container()],
        })
    }

    fn container(&self) -> Value {
        let ports: Vec<Value> = self
            .ports
            .iter()
            .map(|(name, number)| json!({"name": name, "containerPort": number, "protocol": "TCP"}))
            .collect();
        let probe = |path: &str, failures: u32| {
            json!({
                "httpGet": {"path": path, "port": METRICS.0, "scheme": "HTTP"},
                "periodSeconds": 10,
                "timeoutSeconds": 5,
                "failureThreshold": failures,
            })
        };
        json!({
            "name": NAME,
            "image": self.installation.image.as_str(),
            "imagePullPolicy": "IfNotPresent",
            "args": self.args,
            "ports": ports,
            "livenessProbe": probe("/healthz", 6),
            "readinessProbe": probe("/readyz", 3),
            // No limit on the processor: who is held back when a cluster fails decides late.
            "resources": {
                "requests": {"cpu": self.cpu, "memory": self.memory.0},
                "limits": {"memory": self.memory.1},
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        })
    }

    fn budget(&self) -> Value {
        // Also of a single pod: a budget that holds up every drain is turned off sooner or later.
        let body = json!({"spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector(self.component)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        }});
        let place = (Some(&*self.installation.namespace), &*self.name());
        object(("policy/v1", "PodDisruptionBudget"), place, self.component, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::webhooks::plumbing;

    #[test]
    fn whoever_asks_the_pods_finds_them_by_ports_that_they_have() {
        let installation = Installation::default();
        let all = workloads(&installation);
        let of = |kind: &str, name: &str| {
            let found = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
            all.iter().find(found).unwrap_or_else(|| panic!("no {kind} {name}"))
        };
        for name in ["berth-controllers", "berth-webhook"] {
            let template = &of("Deployment", name)["spec"]["template"];
            let container = &template["spec"]["containers"][0];
            let metrics = json!({"name": METRICS.0, "containerPort": METRICS.1, "protocol": "TCP"});
            assert!(container["ports"].as_array().unwrap().contains(&metrics), "{container}");
            for probe in ["livenessProbe", "readinessProbe"] {
                assert_eq!(container[probe]["httpGet"]["port"], METRICS.0, "{name} {probe}");
            }
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
            let budget = &of("PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"];
            for (key, value) in budget.as_object().unwrap() {
                assert_eq!(template["metadata"]["labels"][key], *value, "{name}: {key}");
            }
            assert_eq!(budget["app.kubernetes.io/component"], name.trim_start_matches("berth-"));
        }
        let template = &of("Deployment", "berth-webhook")["spec"]["template"];
        let service = &plumbing(&installation)[0]["spec"];
        for (key, value) in service["selector"].as_object().unwrap() {
            assert_eq!(template["metadata"]["labels"][key], *value, "{key}");
        }
        assert_eq!(service["selector"]["app.kubernetes.io/component"], "webhook");
        let container = &template["spec"]["containers"][0];
        let target = &service["ports"][0]["targetPort"];
        let mut ports = container["ports"].as_array().unwrap().iter();
        let number = &ports.find(|port| port["name"] == *target).unwrap()["containerPort"];
        assert!(container["args"].as_array().unwrap().contains(&json!(format!("--listen=0.0.0.0:{number}"))));
    }

    #[test]
    fn what_was_said_of_nodes_is_said_to_the_controllers_and_to_nobody_else() {
        let flags = ["--eviction-rate=5", "--node-flap-hold=1m"].map(str::to_owned).to_vec();
        let installation = Installation { node_flags: flags.clone(), ..Installation::default() };
        assert!(controllers(&installation).args.ends_with(&flags));
        assert_eq!(webhook(&installation).args, webhook(&Installation::default()).args);
    }
}
