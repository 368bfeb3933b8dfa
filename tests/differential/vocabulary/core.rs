//! Bodies of the core group's kinds, leases and events.

use serde_json::{Value, json};

use super::workload::containers;
use super::{maybe, words};
use berth_tests::random::Random;

pub(super) fn config_map(random: &mut Random) -> Value {
    let mut map = json!({});
    maybe(random, 80, &mut map, "data", |r| json!({*r.pick(&["a", "b", "c"]): words(r), "d": words(r)}));
    maybe(random, 20, &mut map, "binaryData", |_| json!({"bin": "AAEC"}));
    maybe(random, 5, &mut map, "immutable", |_| json!(true));
    map
}

pub(super) fn secret(random: &mut Random) -> Value {
    let mut secret = json!({});
    maybe(random, 60, &mut secret, "data", |r| json!({*r.pick(&["a", "b"]): "c2VjcmV0"}));
    maybe(random, 40, &mut secret, "stringData", |r| json!({*r.pick(&["a", "c"]): words(r)}));
    maybe(random, 30, &mut secret, "type", |r| json!(*r.pick(&["Opaque", "berth.dev/other"])));
    secret
}

pub(super) fn pod(random: &mut Random) -> Value {
    let mut spec = json!({"containers": containers(random)});
    maybe(
        random,
        30,
        &mut spec,
        "tolerations",
        |r| json!([{"key": "k", "operator": "Exists", "effect": *r.pick(&["NoExecute", "NoSchedule"])}]),
    );
    maybe(random, 20, &mut spec, "nodeSelector", |r| json!({"disk": words(r)}));
    maybe(random, 20, &mut spec, "restartPolicy", |r| json!(*r.pick(&["Never", "OnFailure"])));
    maybe(random, 20, &mut spec, "volumes", |_| json!([{"name": "v", "emptyDir": {}}]));
    maybe(random, 20, &mut spec, "terminationGracePeriodSeconds", |r| json!(r.below(20)));
    json!({"spec": spec})
}

pub(super) fn pod_status(random: &mut Random) -> Value {
    json!({"phase": *random.pick(&["Running", "Pending"]), "conditions": [{"type": "Ready", "status": *random.pick(&["True", "False"])}]})
}

pub(super) fn node(random: &mut Random) -> Value {
    let mut spec = json!({});
    maybe(
        random,
        50,
        &mut spec,
        "taints",
        |r| json!([{"key": *r.pick(&["a", "b"]), "effect": *r.pick(&["NoSchedule", "NoExecute"])}, {"key": "c", "value": "v", "effect": "PreferNoSchedule"}]),
    );
    maybe(random, 30, &mut spec, "unschedulable", |_| json!(true));
    maybe(random, 20, &mut spec, "podCIDR", |_| json!("10.0.0.0/24"));
    json!({"spec": spec})
}

pub(super) fn node_status(random: &mut Random) -> Value {
    json!({"conditions": [{"type": "Ready", "status": *random.pick(&["True", "False", "Unknown"]), "reason": "R"}], "capacity": {"cpu": *random.pick(&["4", "2000m"]), "memory": "8Gi"}})
}

pub(super) fn lease(random: &mut Random) -> Value {
    let mut spec = json!({});
    maybe(random, 70, &mut spec, "holderIdentity", |r| json!(*r.pick(&["me", "you"])));
    maybe(random, 50, &mut spec, "leaseDurationSeconds", |r| json!(1 + r.below(30)));
    maybe(random, 40, &mut spec, "renewTime", |_| json!("2026-01-01T00:00:00.123456Z"));
    maybe(random, 30, &mut spec, "leaseTransitions", |r| json!(r.below(3)));
    json!({"spec": spec})
}

pub(super) fn service_account(random: &mut Random) -> Value {
    let mut account = json!({});
    maybe(random, 40, &mut account, "automountServiceAccountToken", |r| json!(r.chance(50)));
    maybe(random, 30, &mut account, "imagePullSecrets", |r| json!([{"name": *r.pick(&["p1", "p2"])}]));
    maybe(random, 20, &mut account, "secrets", |_| json!([{"name": "s1"}]));
    account
}

pub(super) fn claim(random: &mut Random) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": *random.pick(&["1Gi", "1024Mi", "0.5Gi"])}}});
    maybe(random, 30, &mut spec, "storageClassName", |r| json!(*r.pick(&["", "fast"])));
    maybe(random, 20, &mut spec, "volumeMode", |r| json!(*r.pick(&["Block", "Filesystem"])));
    maybe(random, 20, &mut spec, "selector", |_| json!({"matchLabels": {"a": "b"}}));
    json!({"spec": spec})
}

pub(super) fn claim_status(random: &mut Random) -> Value {
    json!({"phase": *random.pick(&["Pending", "Bound"]), "capacity": {"storage": "1Gi"}})
}

pub(super) fn volume(random: &mut Random) -> Value {
    let mut spec = json!({"capacity": {"storage": *random.pick(&["1Gi", "5Gi"])}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": *random.pick(&["/a", "/b"])}});
    maybe(random, 30, &mut spec, "persistentVolumeReclaimPolicy", |r| json!(*r.pick(&["Retain", "Delete"])));
    maybe(random, 30, &mut spec, "storageClassName", |_| json!("fast"));
    json!({"spec": spec})
}

pub(super) fn core_event(random: &mut Random) -> Value {
    let mut event = json!({"involvedObject": {"kind": "ConfigMap", "name": "a"}, "reason": *random.pick(&["Made", "Lost"]), "message": words(random), "type": "Normal"});
    // An event is about something in its own namespace; a script's namespace takes the place of this one.
    event["involvedObject"]["namespace"] = "{namespace}".into();
    maybe(random, 40, &mut event, "count", |r| json!(1 + r.below(4)));
    maybe(random, 40, &mut event, "firstTimestamp", |_| json!("2026-01-01T00:00:00Z"));
    maybe(random, 40, &mut event, "source", |r| json!({"component": words(r)}));
    if random.chance(30) {
        event["eventTime"] = "2026-01-01T00:00:00.000001Z".into();
        event["reportingComponent"] = "berth.dev/x".into();
        event["reportingInstance"] = "i".into();
        event["action"] = "Do".into();
    }
    event
}

pub(super) fn event(random: &mut Random) -> Value {
    let mut event = json!({"regarding": {"kind": "ConfigMap", "name": "a", "namespace": "{namespace}"}, "reason": *random.pick(&["Made", "Lost"]), "note": words(random),
        "type": "Normal", "eventTime": "2026-01-01T00:00:00.000001Z", "reportingController": "berth.dev/x", "reportingInstance": "i", "action": "Do"});
    maybe(
        random,
        30,
        &mut event,
        "series",
        |r| json!({"count": 1 + r.below(4), "lastObservedTime": "2026-01-01T00:00:01.000000Z"}),
    );
    event
}
