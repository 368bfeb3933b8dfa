//! The parts of an installation, in the order in which one `kubectl apply` works.

use serde_json::{Value, json};

use super::object::object;
use super::{CONTROLLERS, Installation, debugger, monitor, rbac, webhooks, workloads};

/// Objects that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The namespace.
    Namespace,
    /// The definitions of our kinds.
    Definitions,
    /// Accounts, roles and bindings.
    Rights,
    /// The webhook's Service and Secret, and the debugger's Service.
    Plumbing,
    /// What runs.
    Workloads,
    /// What collects metrics.
    Monitor,
    /// Who is asked about writes: last, when there is somebody to ask.
    Webhooks,
}

impl Part {
    /// All of them, first to apply first.
    pub const ALL: [Self; 7] = [
        Self::Namespace,
        Self::Definitions,
        Self::Rights,
        Self::Plumbing,
        Self::Workloads,
        Self::Monitor,
        Self::Webhooks,
    ];

    /// Its objects, in order; none where the installation does without it.
    pub fn objects(self, installation: &Installation) -> serde_json::Result<Vec<Value>> {
        Ok(match self {
            Self::Namespace => vec![namespace(installation)],
            Self::Definitions if installation.has_definitions => {
                berth_api::crds().iter().map(serde_json::to_value).collect::<Result<_, _>>()?
            }
            Self::Rights => [rbac::accounts(installation), rbac::roles(installation)].concat(),
            Self::Plumbing => {
                let webhooks = installation.has_webhooks.then(|| webhooks::plumbing(installation));
                let debugger = installation.has_debugger.then(|| debugger::service(installation));
                webhooks.into_iter().flatten().chain(debugger).collect()
            }
            Self::Workloads => workloads::workloads(installation),
            Self::Monitor if installation.is_monitored => monitor::monitor(installation),
            Self::Webhooks if installation.has_webhooks => webhooks::configurations(installation)?,
            Self::Definitions | Self::Monitor | Self::Webhooks => Vec::new(),
        })
    }
}

/// Everything, in order.
pub fn objects(installation: &Installation) -> serde_json::Result<Vec<Value>> {
    let parts = Part::ALL.iter().map(|part| part.objects(installation));
    Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
}

fn namespace(installation: &Installation) -> Value {
    let mut namespace = object(("v1", "Namespace"), (None, &installation.namespace), CONTROLLERS, json!({}));
    // It is everybody's here.
    if let Some(labels) = namespace.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove("app.kubernetes.io/component");
        // Our pods need no more, and nobody else's should come by it here.
        labels.insert("pod-security.kubernetes.io/enforce".to_owned(), json!("restricted"));
    }
    namespace
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::install::object::Identity;

    fn identities(installation: &Installation) -> Vec<Identity> {
        objects(installation).unwrap().iter().map(Identity::of).collect()
    }

    #[test]
    fn nothing_is_named_twice_and_everything_is_labelled_but_the_definitions() {
        let installation = Installation { is_monitored: true, has_debugger: true, ..Installation::default() };
        let all = identities(&installation);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for object in objects(&installation).unwrap() {
            let label = object.pointer("/metadata/labels/app.kubernetes.io~1part-of");
            assert_eq!(label.is_some(), object["kind"] != "CustomResourceDefinition", "{object}");
            assert!(object.get("status").is_none() && !object.to_string().contains(":null"), "{object}");
        }
    }

    #[test]
    fn what_is_left_out_leaves_no_trace() {
        let bare = Installation { has_webhooks: false, has_definitions: false, ..Installation::default() };
        let text = serde_json::to_string(&objects(&bare).unwrap()).unwrap();
        assert!(!text.contains("webhook") && !text.contains("CustomResourceDefinition"), "{text}");
        assert!(!text.contains("debug"), "{text}");
    }

    #[test]
    fn the_debugger_has_a_port_a_service_to_it_and_the_right_to_know_who_asks() {
        let installation =
            Installation { has_debugger: true, has_webhooks: false, ..Installation::default() };
        let all = objects(&installation).unwrap();
        let find = |kind: &str, name: &str| {
            let is_it = |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == name;
            all.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
        };
        let container = find("Deployment", "berth-controllers")
            .pointer("/spec/template/spec/containers/0")
            .unwrap()
            .to_string();
        assert!(container.contains("--debug-bind=0.0.0.0:9443"), "{container}");
        assert!(container.contains(r#""containerPort":9443,"name":"debugger""#), "{container}");
        assert_eq!(find("Service", "berth-debugger")["spec"]["ports"][0]["targetPort"], "debugger");
        assert_eq!(
            find("ClusterRole", "berth:debugger")["rules"],
            json!([
                {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
                {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
            ])
        );
    }

    #[test]
    fn only_the_controllers_that_run_have_roles() {
        let controllers = "placement-controller".parse().unwrap();
        let one = Installation { controllers, has_webhooks: false, ..Installation::default() };
        let roles: Vec<String> = identities(&one)
            .into_iter()
            .filter(|one| one.kind.ends_with("Role"))
            .map(|one| one.name)
            .collect();
        assert_eq!(roles, ["berth:placement-controller", "berth:leader-election"]);
    }
}
