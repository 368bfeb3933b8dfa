//! What Kubernetes' always-on admission adds to new objects, after defaults and after field ownership was recorded.
//!
//! Owns these additions as pure functions: whatever must be looked up (a priority class, the default storage class) is handed
//! in. Refusing objects is validation's and the pipeline's work.

use serde_json::{Value, json};

use crate::{
    access::{at, items, make, put, text},
    registry::Builtin,
};

/// How long a pod stays on a node that is lost, in seconds.
const TOLERATION_SECONDS: i64 = 300;

/// What admission knows beyond the object.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// Whether pods without a service account run as `default`.
    pub default_service_account: bool,
    /// The priority class that applies: the one the pod names, or else the global default.
    pub priority_class: Option<&'a Value>,
    /// The name of the default storage class.
    pub default_storage_class: Option<&'a str>,
    /// Whether claims and volumes are kept by a finalizer while in use. Needs someone who removes it.
    pub protect_storage: bool,
    /// Whether new nodes are tainted until they are ready. Needs someone who removes it.
    pub taint_new_nodes: bool,
}

/// Adds what admission adds to a new object. An error is why it is forbidden: what follows `pods "x" is forbidden: `.
pub fn on_create(kind: &Builtin, object: &mut Value, surroundings: &Surroundings<'_>) -> Result<(), String> {
    match (kind.group, kind.kind) {
        ("", "Pod") => pod(object, surroundings)?,
        ("", "Node") if surroundings.taint_new_nodes => taint(object),
        ("", "PersistentVolumeClaim") => {
            if let (None, Some(name)) =
                (at(object, &["spec", "storageClassName"]), surroundings.default_storage_class)
            {
                put(object, &["spec", "storageClassName"], Some(name.into()));
            }
            if surroundings.protect_storage {
                add_finalizer(object, "kubernetes.io/pvc-protection");
            }
        }
        ("", "PersistentVolume") if surroundings.protect_storage => {
            add_finalizer(object, "kubernetes.io/pv-protection");
        }
        _ => {}
    }
    Ok(())
}

/// Adds what admission adds to an object that replaces another: what it gave a pod once stays.
pub fn on_update(kind: &Builtin, new: &mut Value, old: &Value) {
    if (kind.group, kind.kind) == ("", "Pod") {
        for field in ["priority", "preemptionPolicy"] {
            if at(new, &["spec", field]).is_none() {
                put(new, &["spec", field], at(old, &["spec", field]).cloned());
            }
        }
        tolerate_lost_nodes(new);
    }
}

fn pod(pod: &mut Value, surroundings: &Surroundings<'_>) -> Result<(), String> {
    if surroundings.default_service_account && text(pod, &["spec", "serviceAccountName"]).is_empty() {
        put(pod, &["spec", "serviceAccountName"], Some("default".into()));
        put(pod, &["spec", "serviceAccount"], Some("default".into()));
    }
    let class = surroundings.priority_class;
    let value = class.and_then(|class| at(class, &["value"])).cloned().unwrap_or_else(|| 0.into());
    let policy = class.and_then(|class| at(class, &["preemptionPolicy"])).cloned();
    if let Some(name) = class.and_then(|class| at(class, &["metadata", "name"])) {
        put(pod, &["spec", "priorityClassName"], Some(name.clone()));
    }
    let policy = policy.unwrap_or_else(|| "PreemptLowerPriority".into());
    for (field, what, computed) in [
        ("priority", "integer value of priority", value),
        ("preemptionPolicy", "string value of PreemptionPolicy", policy),
    ] {
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some(given) = at(pod, &["spec", field]).filter(|given| **given != computed) {
            let (given, computed) = (shown(given), shown(&computed));
            return Err(format!(
                "the {what} ({given}) must not be provided in pod spec; \
                 priority admission controller computed {computed} from the given PriorityClass name"
            ));
        }
        put(pod, &["spec", field], Some(computed));
    }
    tolerate_lost_nodes(pod);
    Ok(())
}

/// Unless it says otherwise, a pod stays a while on a node that is not ready or cannot be reached.
fn tolerate_lost_nodes(pod: &mut Value) {
    let mut tolerations = items(pod, &["spec", "tolerations"]).to_vec();
    let before = tolerations.len();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations[..before].iter().any(|toleration| {
            let (its_key, effect) = (text(toleration, &["key"]), text(toleration, &["effect"]));
            (its_key == key || its_key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS}));
        }
    }
    if tolerations.len() > before {
        put(pod, &["spec", "tolerations"], Some(tolerations.into()));
    }
}

fn taint(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let mut taints = items(node, &["spec", "taints"]).to_vec();
    let there = taints.iter().any(|found| found["key"] == taint["key"] && found["effect"] == taint["effect"]);
    if !there {
        taints.push(taint);
        put(node, &["spec", "taints"], Some(taints.into()));
    }
}

fn add_finalizer(object: &mut Value, name: &str) {
    let Some(metadata) = make(object, &["metadata"]) else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|found| found == name)
    {
        finalizers.push(name.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builtins;

    fn admitted(kind: &str, mut object: Value, surroundings: &Surroundings<'_>) -> Value {
        on_create(Builtins::load().kind("", "v1", kind).unwrap(), &mut object, surroundings).unwrap();
        object
    }

    /// Upstream: admission/defaulttolerationseconds/admission_test.go "TestForgivenessAdmission".
    #[test]
    fn a_pod_tolerates_lost_nodes_for_a_while_unless_it_says_otherwise() {
        let named = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 700});
        let (not_ready, unreachable) =
            (named("node.kubernetes.io/not-ready"), named("node.kubernetes.io/unreachable"));
        let any_effect = json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists"});
        let other = json!({"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoSchedule"});
        for (given, added) in [
            (json!([]), vec!["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]),
            (json!([other]), vec!["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]),
            (json!([not_ready]), vec!["node.kubernetes.io/unreachable"]),
            (json!([unreachable]), vec!["node.kubernetes.io/not-ready"]),
            (json!([not_ready, unreachable]), vec![]),
            (json!([any_effect]), vec!["node.kubernetes.io/not-ready"]),
            (json!([{"operator": "Exists"}]), vec![]),
        ] {
            let pod = admitted("Pod", json!({"spec": {"tolerations": given}}), &Surroundings::default());
            let mut wanted = given.as_array().unwrap().clone();
            wanted.extend(added.into_iter().map(|key| {
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
            }));
            assert_eq!(items(&pod, &["spec", "tolerations"]), wanted, "{given}");
        }
        let pod = admitted("Pod", json!({"spec": {}}), &Surroundings::default());
        assert_eq!(
            (&pod["spec"]["priority"], &pod["spec"]["preemptionPolicy"]),
            (&json!(0), &json!("PreemptLowerPriority"))
        );
    }

    #[test]
    fn a_priority_class_gives_value_and_policy() {
        let class = json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"});
        let surroundings = Surroundings {
            priority_class: Some(&class),
            default_service_account: true,
            ..Surroundings::default()
        };
        let pod = admitted("Pod", json!({"spec": {}}), &surroundings);
        assert_eq!(pod["spec"]["priority"], 1000);
        assert_eq!(pod["spec"]["priorityClassName"], "high");
        assert_eq!(pod["spec"]["preemptionPolicy"], "Never");
        assert_eq!(pod["spec"]["serviceAccount"], "default");
    }

    #[test]
    fn a_pod_may_not_choose_its_priority() {
        let kind = Builtins::load().kind("", "v1", "Pod").unwrap();
        let mut pod = json!({"spec": {"priority": 5}});
        assert_eq!(
            on_create(kind, &mut pod, &Surroundings::default()).unwrap_err(),
            "the integer value of priority (5) must not be provided in pod spec; \
             priority admission controller computed 0 from the given PriorityClass name"
        );
    }

    #[test]
    fn an_update_keeps_what_admission_gave() {
        let kind = Builtins::load().kind("", "v1", "Pod").unwrap();
        let old = admitted("Pod", json!({"spec": {}}), &Surroundings::default());
        let mut new = json!({"spec": {}});
        on_update(kind, &mut new, &old);
        assert_eq!(new, old);
    }

    /// Upstream: admission/nodetaint/admission_test.go "Test_nodeTaints".
    #[test]
    fn storage_is_protected_and_nodes_tainted_only_when_asked() {
        assert_eq!(admitted("Node", json!({"spec": {}}), &Surroundings::default()), json!({"spec": {}}));
        let surroundings = Surroundings {
            protect_storage: true,
            taint_new_nodes: true,
            default_storage_class: Some("fast"),
            ..Surroundings::default()
        };
        let claim = admitted("PersistentVolumeClaim", json!({"metadata": {}, "spec": {}}), &surroundings);
        assert_eq!(
            claim,
            json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}, "spec": {"storageClassName": "fast"}})
        );
        let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
        let unready = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        for node in
            [json!({"spec": {}}), json!({"spec": {"taints": taint}}), json!({"spec": {}, "status": unready})]
        {
            assert_eq!(admitted("Node", node, &surroundings)["spec"]["taints"], taint);
        }
    }
}
