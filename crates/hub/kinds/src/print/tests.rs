use proptest::prelude::*;

use super::*;
use crate::{Builtins, conform::conform, defaults};

const NOW: i64 = 1_800_000_000;

fn row(group: &str, kind: &str, object: Value) -> Vec<Value> {
    let kind = Builtins::load().kind(group, "v1", kind).unwrap();
    let mut object = conform(kind.type_id, object).unwrap().value;
    defaults::apply(kind, &mut object);
    cells(kind, &object, NOW)
}

fn ago(seconds: i64) -> String {
    instant::seconds_text(NOW - seconds).unwrap()
}

#[test]
fn every_kind_has_a_cell_for_each_column() {
    for kind in &Builtins::load().kinds {
        assert_eq!(cells(kind, &json!({}), NOW).len(), columns(kind).len(), "{}", kind.kind);
    }
}

#[test]
fn spans_of_time_are_told_in_at_most_two_units() {
    for (seconds, told) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (47 * 3600, "47h"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (3000 * 86400, "8y"),
    ] {
        assert_eq!(human(seconds), told, "{seconds}");
    }
}

#[test]
fn a_pod_is_summed_up_in_a_word() {
    let pod = |status: Value| {
        let row = row(
            "",
            "Pod",
            json!({"metadata": {"name": "p", "creationTimestamp": ago(90)}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "status": status}),
        );
        format!("{} {} {}", row[1].as_str().unwrap(), row[2].as_str().unwrap(), row[3].as_str().unwrap())
    };
    assert_eq!(pod(json!({"phase": "Pending"})), "0/2 Pending 0");
    assert_eq!(
        pod(json!({"phase": "Running", "containerStatuses": [
            {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}}, "lastState": {"terminated": {"finishedAt": ago(300)}}},
            {"name": "b", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]})),
        "1/2 CrashLoopBackOff 2 (5m ago)"
    );
    assert_eq!(
        pod(
            json!({"phase": "Running", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
            {"name": "b", "ready": true, "state": {"running": {}}}]})
        ),
        "1/2 NotReady 0"
    );
    assert_eq!(pod(json!({"phase": "Failed", "reason": "Evicted"})), "0/2 Evicted 0");
}

#[test]
fn a_node_shows_readiness_roles_and_addresses() {
    let node = json!({"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": ""}}, "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "False"}], "nodeInfo": {"kubeletVersion": "v1"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
    let row = row("", "Node", node);
    assert_eq!(row[1], "NotReady,SchedulingDisabled");
    assert_eq!(row[2], "worker");
    assert_eq!(&row[3..], ["<unknown>", "v1", "10.0.0.1", "<none>", "<unknown>", "<unknown>", "<unknown>"]);
}

#[test]
fn both_views_of_an_event_show_the_same_row() {
    let first = row(
        "",
        "Event",
        json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"}, "message": "m",
        "firstTimestamp": ago(60), "lastTimestamp": ago(30), "count": 2, "source": {"component": "c"}}),
    );
    let second = row(
        "events.k8s.io",
        "Event",
        json!({"apiVersion": "events.k8s.io/v1", "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p"}, "note": "m",
        "deprecatedFirstTimestamp": ago(60), "deprecatedLastTimestamp": ago(30), "deprecatedCount": 2, "deprecatedSource": {"component": "c"}}),
    );
    assert_eq!(first, second);
    assert_eq!(
        first,
        [
            json!("30s"),
            json!(""),
            json!(""),
            json!("pod/p"),
            json!(""),
            json!("c"),
            json!("m"),
            json!("60s"),
            json!(2),
            json!("e")
        ]
    );
}

#[test]
fn workloads_show_counts_containers_and_selectors() {
    let set = json!({"metadata": {"name": "d"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"b": "c"}, "matchExpressions":
        [{"key": "a", "operator": "In", "values": ["y", "x"]}]}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        "status": {"readyReplicas": 2, "updatedReplicas": 1}});
    assert_eq!(
        row("apps", "Deployment", set),
        [
            json!("d"),
            json!("2/3"),
            json!(1),
            json!(0),
            json!("<unknown>"),
            json!("c"),
            json!("i"),
            json!("a in (x,y),b=c")
        ]
    );
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": "50%"}});
    assert_eq!(row("policy", "PodDisruptionBudget", budget)[1..3], [json!("50%"), json!("N/A")]);
}

proptest! {
    #[test]
    fn any_object_is_printed(value in any::<i64>(), text in "\\PC{0,8}", deep in any::<bool>()) {
        let odd = if deep { json!({"status": [text, value], "spec": {"ports": value, "selector": {"matchExpressions": text}}, "metadata": text}) }
            else { json!({"status": {"conditions": [value, {"type": "Ready"}], "containerStatuses": [text], "phase": value}, "spec": {"containers": {"a": 1}}}) };
        for kind in &Builtins::load().kinds {
            prop_assert_eq!(cells(kind, &odd, NOW).len(), columns(kind).len());
        }
    }
}
