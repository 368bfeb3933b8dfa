//! What may be wrong with a body: one place in a well-formed one, changed.

use serde_json::{Value, json};

use super::Kind;
use berth_tests::random::Random;

/// What may be wrong with any object: where, and what stands there instead, as JSON; nothing takes the place away.
const ANYWHERE: &[(&str, &str)] = &[
    ("/spex", r#"{"a":1}"#),
    ("/metadata/labels/bad key!", r#""x""#),
    ("/metadata/labels/ok", r#""bad value!""#),
    ("/metadata/name", r#""Not_A_Name""#),
    ("/metadata/name", r#""""#),
    ("/metadata/annotations/bad key!", r#""x""#),
    ("/metadata/finalizers", r#"["nogroup"]"#),
    ("/metadata/finalizers", r#"["bad name!/x"]"#),
    ("/metadata/labels", r#""text""#),
    ("/metadata/labels/number", "1"),
    ("/metadata/generation", "7"),
    ("/metadata/unknown", "1"),
    ("/metadata/creationTimestamp", r#""yesterday""#),
    ("/metadata/ownerReferences", r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"x"}]"#),
    ("/metadata/managedFields", "[{}]"),
    ("/metadata/generateName", r#""Bad_""#),
    ("/metadata", "[]"),
    ("/kind", r#""Other""#),
    ("/kind", ""),
    ("/apiVersion", r#""v9""#),
    ("/apiVersion", ""),
];

const POD_SPEC: &[(&str, &str)] = &[
    ("/containers", "[]"),
    ("/containers", ""),
    ("/containers", r#""none""#),
    ("/containers/0/name", r#""Bad_Name""#),
    ("/containers/0/name", ""),
    ("/containers/0/image", ""),
    ("/containers/0/image", "1"),
    ("/containers/0/unknown", "1"),
    ("/containers/0/imagePullPolicy", r#""Sometimes""#),
    ("/containers/0/resources/requests/cpu", r#""lots""#),
    ("/containers/0/resources/requests/cpu", r#""-1""#),
    ("/containers/0/resources/limits", r#"{"cpu":"1m","memory":"1Ki"}"#),
    ("/containers/0/ports", r#"[{"containerPort":0}]"#),
    ("/containers/0/ports", r#"[{"containerPort":70000,"protocol":"ICMP"}]"#),
    ("/containers/0/ports", r#"[{"containerPort":1,"name":"x"},{"containerPort":2,"name":"x"}]"#),
    ("/containers/0/env", r#"[{"name":"has space"},{"name":""}]"#),
    ("/containers/0/env", r#"[{"name":"A","value":1}]"#),
    ("/containers/0/env", r#"[{"name":"A","value":"1"},{"name":"A","value":"2"}]"#),
    ("/containers/0/volumeMounts", r#"[{"name":"absent","mountPath":"/x"}]"#),
    ("/restartPolicy", r#""Sometimes""#),
    ("/dnsPolicy", r#""Guess""#),
    ("/volumes", r#"[{"name":"v"},{"name":"v","emptyDir":{}}]"#),
    ("/volumes", r#"[{"name":"v","emptyDir":{},"hostPath":{"path":"/x"}}]"#),
    ("/tolerations", r#"[{"key":"k","operator":"Maybe"}]"#),
    ("/tolerations", r#"[{"operator":"Equal","value":"x"}]"#),
    ("/nodeSelector", r#"{"a":1}"#),
    ("/nodeSelector", r#"{"bad key!":"x"}"#),
    ("/terminationGracePeriodSeconds", r#""ten""#),
    ("/terminationGracePeriodSeconds", "1.5"),
    ("/activeDeadlineSeconds", "0"),
    ("/hostname", r#""Bad_Host""#),
];

const WIDGET: &[(&str, &str)] = &[
    ("/spec/size", r#""large""#),
    ("/spec/size", "99"),
    ("/spec/size", "1.5"),
    ("/spec/nested", r#"{"deep":{"deeper":5.0}}"#),
    ("/spec/size", "-1"),
    ("/spec/colour", r#""mauve""#),
    ("/spec/colour", "3"),
    ("/spec/tags", r#"["a","b","a"]"#),
    ("/spec/tags", r#"["1","2","3","4","5","6"]"#),
    ("/spec/parts", r#"[{"name":"p"},{"name":"p"}]"#),
    ("/spec/parts", r#"[{"weight":1}]"#),
    ("/spec/parts", r#"[{"name":"much too long a name for this"}]"#),
    ("/spec/parts", r#"[{"name":"p","weight":"heavy"},{"name":"q","more":1}]"#),
    ("/spec/parts", r#"["text"]"#),
    ("/spec/unknown", r#"{"b":1,"a":2}"#),
    ("/spec/pattern", r#""UPPER""#),
    ("/spec/pattern", r#""UPPER and much too long""#),
    ("/spec/replicas", "-1"),
    ("/spec/replicas", "3000000000"),
    ("/spec/ratio", r#""x""#),
    ("/spec/nested", r#"{"deep":{"deeper":"no"}}"#),
    ("/spec/nested", r#"{"deep":null}"#),
    ("/spec/map", r#"{"k":5}"#),
    ("/spec/map", r#"{"k1":"0","k2":"0"}"#),
    ("/spec/limits", r#"{"low":1}"#),
    ("/spec/limits", r#"{"low":1,"high":0}"#),
    ("/spec/limits", r#"{"low":1,"high":1,"unit":"far too long"}"#),
    (
        "/spec/parts",
        r#"[{"name":"p1","weight":4},{"name":"p2","weight":4},{"name":"p3","weight":4,"kind":"red"}]"#,
    ),
    ("/spec/tags", r#"["a","b","c"]"#),
    ("/spec/port", "true"),
    ("/spec/whole", r#"{"a":"x"}"#),
    ("/spec/maybe", "1"),
    ("/spec/list", r#"["1","2","3","4","5","6","7","8","9","10","11"]"#),
    ("/spec/list", r#"["a",null]"#),
    ("/spec", r#""text""#),
    ("/spec", "null"),
    ("/status", "[]"),
];

const GADGET: &[(&str, &str)] = &[
    ("/level", ""),
    ("/level", r#""high""#),
    ("/level", "null"),
    ("/spec/power", "5"),
    ("/spec/more", "5"),
    ("/status/seen", "false"),
];

const CONFIG_MAP: &[(&str, &str)] = &[
    ("/data", r#"{"bad key!":"x"}"#),
    ("/data", r#"{"a":1}"#),
    ("/data", "[]"),
    ("/data", r#"{"..":"x"}"#),
    ("/binaryData", r#"{"bin":"not base64!"}"#),
    ("/binaryData", r#"{"d":"AAEC"}"#),
    ("/immutable", r#""yes""#),
];

const SECRET: &[(&str, &str)] = &[
    ("/data", r#"{"a":"not base64"}"#),
    ("/data", r#"{"a":5}"#),
    ("/stringData", r#"{"a":1}"#),
    ("/stringData", r#"{"bad key!":"x"}"#),
    ("/type", r#""kubernetes.io/tls""#),
    ("/type", r#""kubernetes.io/basic-auth""#),
    ("/type", r#""kubernetes.io/service-account-token""#),
    ("/immutable", "1"),
];

const NODE: &[(&str, &str)] = &[
    ("/spec/taints", r#"[{"key":"a","effect":"Never"}]"#),
    ("/spec/taints", r#"[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule","value":"v"}]"#),
    ("/spec/taints", r#"[{"key":"bad key!","effect":"NoSchedule"}]"#),
    ("/spec/taints", r#"[{"effect":"NoSchedule"}]"#),
    ("/spec/podCIDR", r#""10.0.0.0""#),
    ("/spec/unschedulable", r#""yes""#),
];

const DEPLOYMENT: &[(&str, &str)] = &[
    ("/spec/selector/matchLabels", r#"{"app":"other"}"#),
    ("/spec/selector", ""),
    ("/spec/selector", "{}"),
    ("/spec/replicas", "-1"),
    ("/spec/replicas", r#""two""#),
    ("/spec/replicas", "1.5"),
    ("/spec/strategy", r#"{"type":"Other"}"#),
    ("/spec/strategy", r#"{"type":"Recreate","rollingUpdate":{"maxSurge":1}}"#),
    ("/spec/strategy", r#"{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}}"#),
    ("/spec/strategy", r#"{"rollingUpdate":{"maxSurge":"x%"}}"#),
    ("/spec/template", ""),
    ("/spec/minReadySeconds", "-1"),
    ("/spec/template/spec/restartPolicy", r#""Never""#),
];

const STATEFUL_SET: &[(&str, &str)] = &[
    ("/spec/selector/matchLabels", r#"{"app":"other"}"#),
    ("/spec/selector", ""),
    ("/spec/replicas", "-1"),
    ("/spec/podManagementPolicy", r#""Other""#),
    ("/spec/updateStrategy", r#"{"type":"Other"}"#),
    ("/spec/serviceName", r#""other""#),
    ("/spec/template/spec/restartPolicy", r#""Never""#),
];

const REPLICA_SET: &[(&str, &str)] = &[
    ("/spec/selector/matchLabels", r#"{"app":"other"}"#),
    ("/spec/selector", ""),
    ("/spec/replicas", "-1"),
    ("/spec/template", ""),
];

const DAEMON_SET: &[(&str, &str)] = &[
    ("/spec/selector/matchLabels", r#"{"app":"other"}"#),
    ("/spec/selector", ""),
    ("/spec/updateStrategy", r#"{"type":"Other"}"#),
    ("/spec/updateStrategy", r#"{"rollingUpdate":{"maxUnavailable":0}}"#),
    ("/spec/template/spec/restartPolicy", r#""Never""#),
];

const LEASE: &[(&str, &str)] = &[
    ("/spec/leaseDurationSeconds", "0"),
    ("/spec/leaseDurationSeconds", r#""long""#),
    ("/spec/renewTime", r#""soon""#),
    ("/spec/renewTime", r#""2026-01-01T00:00:00Z""#),
    ("/spec/leaseTransitions", "-1"),
    ("/spec/preferredHolder", r#""me""#),
];

const ROLE: &[(&str, &str)] = &[
    ("/rules/0/verbs", "[]"),
    ("/rules/0/apiGroups", ""),
    ("/rules/0/resources", "[]"),
    ("/rules/0/nonResourceURLs", r#"["/x"]"#),
    ("/rules", r#""all""#),
];

const BINDING: &[(&str, &str)] = &[
    ("/roleRef/kind", r#""Other""#),
    ("/roleRef/apiGroup", r#""x""#),
    ("/roleRef/name", ""),
    ("/roleRef", ""),
    ("/subjects/0/kind", r#""Robot""#),
    ("/subjects/0/name", ""),
    ("/subjects/0/apiGroup", r#""x""#),
    ("/subjects/0", r#"{"kind":"ServiceAccount","name":"Bad_Name"}"#),
];

const PRIORITY_CLASS: &[(&str, &str)] = &[
    ("/value", "2000000000"),
    ("/value", r#""high""#),
    ("/value", "50"),
    ("/preemptionPolicy", r#""Maybe""#),
    ("/metadata/name", r#""system-x""#),
];

const STORAGE_CLASS: &[(&str, &str)] = &[
    ("/provisioner", ""),
    ("/provisioner", r#""Bad Provisioner""#),
    ("/reclaimPolicy", r#""Burn""#),
    ("/reclaimPolicy", r#""Retain""#),
    ("/volumeBindingMode", r#""Later""#),
    ("/parameters", r#"{"":"x"}"#),
    ("/parameters", r#"{"a":1}"#),
];

const CLAIM: &[(&str, &str)] = &[
    ("/spec/accessModes", "[]"),
    ("/spec/accessModes", r#"["Some"]"#),
    ("/spec/resources", ""),
    ("/spec/resources/requests/storage", r#""big""#),
    ("/spec/resources/requests/storage", r#""0""#),
    ("/spec/storageClassName", r#""Bad_Class""#),
    ("/spec/volumeMode", r#""Tape""#),
];

const VOLUME: &[(&str, &str)] = &[
    ("/spec/capacity", ""),
    ("/spec/capacity/storage", r#""big""#),
    ("/spec/hostPath", ""),
    ("/spec/hostPath/path", r#""../x""#),
    ("/spec/nfs", r#"{"server":"s","path":"/x"}"#),
    ("/spec/accessModes", "[]"),
    ("/spec/persistentVolumeReclaimPolicy", r#""Burn""#),
];

const CORE_EVENT: &[(&str, &str)] = &[
    ("/involvedObject/namespace", r#""elsewhere""#),
    ("/involvedObject", ""),
    ("/count", r#""many""#),
    ("/firstTimestamp", r#""early""#),
    ("/eventTime", r#""2026-01-01T00:00:00.000001Z""#),
];

const EVENT: &[(&str, &str)] = &[
    ("/eventTime", ""),
    ("/type", r#""Odd""#),
    ("/regarding/namespace", r#""elsewhere""#),
    ("/reportingController", ""),
    ("/reportingInstance", ""),
    ("/action", ""),
    ("/reason", ""),
    ("/series", r#"{"count":1,"lastObservedTime":"2026-01-01T00:00:01.000000Z"}"#),
    ("/deprecatedCount", "3"),
];

const BUDGET: &[(&str, &str)] = &[
    ("/spec/minAvailable", "-1"),
    ("/spec/minAvailable", r#""120%""#),
    ("/spec/minAvailable", r#""x""#),
    ("/spec/maxUnavailable", r#""10%""#),
    ("/spec/selector/matchLabels", r#"{"bad key!":"x"}"#),
    ("/spec/unhealthyPodEvictionPolicy", r#""Other""#),
];

const WEBHOOKS: &[(&str, &str)] = &[
    ("/webhooks/0/name", r#""unqualified""#),
    ("/webhooks/0/name", ""),
    ("/webhooks/0/sideEffects", ""),
    ("/webhooks/0/sideEffects", r#""Some""#),
    ("/webhooks/0/admissionReviewVersions", "[]"),
    ("/webhooks/0/admissionReviewVersions", r#"["v7"]"#),
    ("/webhooks/0/clientConfig", "{}"),
    ("/webhooks/0/clientConfig/url", r#""http://127.0.0.1/x""#),
    ("/webhooks/0/clientConfig/service", r#"{"name":"s","namespace":"n"}"#),
    ("/webhooks/0/rules/0/operations", r#"["EAT"]"#),
    ("/webhooks/0/rules/0/resources", "[]"),
    ("/webhooks/0/rules/0/apiVersions", r#"["*","v1"]"#),
    ("/webhooks/0/timeoutSeconds", "50"),
    ("/webhooks/0/failurePolicy", r#""Shrug""#),
    ("/webhooks/0/matchPolicy", r#""Guess""#),
];

const DEFINITION: &[(&str, &str)] = &[
    ("/spec/names/kind", r#""lower_case""#),
    ("/spec/names/plural", r#""Plural""#),
    ("/spec/names/plural", ""),
    ("/spec/scope", r#""Other""#),
    ("/spec/scope", ""),
    ("/spec/group", r#""nodots""#),
    ("/spec/versions", "[]"),
    ("/spec/versions/0/storage", "false"),
    ("/spec/versions/0/name", r#""One""#),
    ("/spec/versions/0/schema", ""),
    ("/spec/versions/0/schema/openAPIV3Schema", r#"{"type":"string"}"#),
    ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/type", ""),
    ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/type", r#""text""#),
    ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/default", "7"),
    ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/pattern", r#""(""#),
    ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b/items", ""),
    ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b/uniqueItems", "true"),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b/x-kubernetes-list-type",
        r#""bag""#,
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b/x-kubernetes-list-type",
        r#""map""#,
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/c/properties",
        r#"{"x":{"type":"string"}}"#,
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/properties/metadata",
        r#"{"type":"object","properties":{"labels":{"type":"object"}}}"#,
    ),
    (
        "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations",
        r#"[{"rule":"self.spec.nothing == 1"}]"#,
    ),
    ("/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations", r#"[{"rule":""}]"#),
    (
        "/spec/versions/0/subresources",
        r#"{"scale":{"specReplicasPath":"spec.replicas","statusReplicasPath":".status.replicas"}}"#,
    ),
    ("/spec/versions/0/additionalPrinterColumns", r#"[{"name":"A","type":"text","jsonPath":"spec.a"}]"#),
    ("/spec/versions/0/selectableFields", r#"[{"jsonPath":".spec.none"}]"#),
    ("/spec/preserveUnknownFields", "true"),
    ("/spec/conversion", r#"{"strategy":"Other"}"#),
];

fn own(kind: &Kind) -> (&'static [(&'static str, &'static str)], Option<&'static str>) {
    match kind.kind {
        "Widget" => (WIDGET, None),
        "Gadget" => (GADGET, None),
        "ConfigMap" => (CONFIG_MAP, None),
        "Secret" => (SECRET, None),
        "Pod" => (&[], Some("/spec")),
        "Node" => (NODE, None),
        "Deployment" => (DEPLOYMENT, Some("/spec/template/spec")),
        "StatefulSet" => (STATEFUL_SET, Some("/spec/template/spec")),
        "ReplicaSet" => (REPLICA_SET, Some("/spec/template/spec")),
        "DaemonSet" => (DAEMON_SET, Some("/spec/template/spec")),
        "Lease" => (LEASE, None),
        "ClusterRole" | "Role" => (ROLE, None),
        "ClusterRoleBinding" | "RoleBinding" => (BINDING, None),
        "PriorityClass" => (PRIORITY_CLASS, None),
        "StorageClass" => (STORAGE_CLASS, None),
        "PersistentVolumeClaim" => (CLAIM, None),
        "PersistentVolume" => (VOLUME, None),
        "Event" if kind.api_version == "v1" => (CORE_EVENT, None),
        "Event" => (EVENT, None),
        "PodDisruptionBudget" => (BUDGET, None),
        "CustomResourceDefinition" => (DEFINITION, None),
        kind if kind.ends_with("WebhookConfiguration") => (WEBHOOKS, None),
        _ => (&[], None),
    }
}

/// Spoils one place of a well-formed body.
pub(crate) fn spoil(random: &mut Random, kind: &Kind, body: &mut Value) {
    let (own, pods) = own(kind);
    let any = own.is_empty() && pods.is_none();
    if any || random.chance(30) {
        let (pointer, value) = *random.pick(ANYWHERE);
        return put(body, pointer, value);
    }
    if let Some(prefix) = pods
        && (own.is_empty() || random.chance(50))
    {
        let (pointer, value) = *random.pick(POD_SPEC);
        return put(body, &format!("{prefix}{pointer}"), value);
    }
    let (pointer, value) = *random.pick(own);
    put(body, pointer, value);
}

/// Puts a value where a pointer says, making what is not there on the way.
fn put(body: &mut Value, pointer: &str, json: &str) {
    let mut at = body;
    let mut parts = pointer.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        if let Value::Array(items) = at {
            let index: usize = part.parse().expect("a place in a list is a number");
            let Some(item) = items.get_mut(index) else { return };
            at = item;
        } else {
            if !at.is_object() {
                *at = json!({});
            }
            let map = at.as_object_mut().expect("it was just made one");
            if last && json.is_empty() {
                map.remove(part);
                return;
            }
            at = map.entry(part).or_insert(Value::Null);
        }
    }
    *at = serde_json::from_str(json).expect("what is put is JSON");
}
