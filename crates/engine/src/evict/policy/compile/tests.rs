//! Policies that are well said, and policies that are not.

use serde_json::{Value, json};

use super::*;

fn read(spec: Value) -> Rule {
    let mut policy = EvictionPolicy::new("p");
    policy.spec = serde_json::from_value(spec).unwrap();
    compile(&policy)
}

fn paths(spec: Value) -> Vec<String> {
    let complaints = read(spec).orders.err().map(|complaints| complaints.to_vec()).unwrap_or_default();
    complaints.into_iter().map(|complaint| complaint.path).collect()
}

#[test]
fn what_is_well_said_is_understood() {
    let rule = read(json!({
        "pods": {"namespaces": ["db"], "ownerKinds": ["StatefulSet"], "selector": {"matchLabels": {"app": "x"}}},
        "taints": [{"key": "example.org/down", "value": "", "effect": "NoExecute"}],
        "way": "Evict", "evict": {"deadlineSeconds": 600, "fallback": "Delete"},
        "when": {"tolerationSeconds": 60, "delaySeconds": 5, "windows": [
            {"schedule": "0 2 * * 1-5", "durationSeconds": 7200, "timeZone": "Europe/Berlin"},
        ]},
        "pace": {"rate": 0.5, "burst": 3, "zoneRate": 2, "inFlight": "10%", "zoneInFlight": 2, "perWorkload": 1},
        "gates": [
            {"name": "safe", "annotation": {"key": "example.org/safe", "value": "yes"}},
            {"name": "asked", "review": {"url": "https://reviews.example.com/pods", "timeoutSeconds": 3}},
        ],
        "after": {"forceDeleteAfterSeconds": 60, "proofs": [
            {"type": "NodeGone"}, {"type": "NodeAnnotation", "annotation": {"key": "example.org/fenced"}},
        ]},
        "dryRun": true,
    }));
    let orders = rule.orders.unwrap();
    assert_eq!(orders.way, Way::Evict { deadline: Some((600, true)) });
    assert_eq!(
        (orders.pace.in_flight, orders.pace.zone_in_flight, orders.pace.per_workload),
        (Allowance::Percent(10), Allowance::Count(2), Allowance::Count(1))
    );
    assert_eq!(orders.pace.rate, Rate::per_second(0.5, 3));
    assert_eq!((orders.force.unwrap().proofs.len(), orders.gates.len(), orders.is_dry_run), (2, 2, true));
    assert!(!rule.selection.is_garbled && !orders.windows.is_unbounded());
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_place() {
    let spec = json!({
        "pods": {
            "namespaces": ["Db"], "ownerKinds": [""],
            "selector": {"matchExpressions": [{"key": "app", "operator": "Near"}]},
        },
        "taints": [{"key": "a b", "effect": "NoSchedule"}],
        "way": "Push", "evict": {"deadlineSeconds": -1, "fallback": "Shove"},
        "when": {"tolerationSeconds": -1, "delaySeconds": 99_999_999, "windows": [
            {"schedule": "0 2 * *", "durationSeconds": 3600},
            {"schedule": "0 2 * * *", "durationSeconds": 1},
            {"schedule": "0 2 * * *", "durationSeconds": 60, "timeZone": "Atlantis"},
        ]},
        "pace": {"burst": 0, "zoneRate": 0, "inFlight": 0, "zoneInFlight": "half", "perWorkload": "101%"},
        "gates": [
            {"name": "g", "cel": {"expression": "pod."}},
            {"name": "g"},
            {"name": "H", "podCondition": {"type": "Ready", "status": "Perhaps"}},
            {"name": "both", "annotation": {"key": "a"}, "cel": {"expression": "true"}},
            {"name": "plain", "review": {"url": "http://reviews.example.com/"}},
            {"name": "coded", "review": {"url": "https://reviews.example.com/", "caBundle": "%"}},
            {"name": "empty", "review": {"url": "https://reviews.example.com/", "caBundle": "AAAA"}},
            {"name": "slow", "review": {"url": "https://reviews.example.com/", "timeoutSeconds": 31}},
        ],
        "after": {"forceDeleteAfterSeconds": 1, "proofs": [
            {"type": "Hearsay"}, {"type": "NodeAnnotation"}, {"type": "NodeGone", "annotation": {"key": "a"}},
        ]},
    });
    assert_eq!(
        paths(spec.clone()),
        [
            "spec.pods.namespaces[0]",
            "spec.pods.ownerKinds[0]",
            "spec.pods.selector.matchExpressions[0].operator",
            "spec.taints[0].key",
            "spec.taints[0].effect",
            "spec.evict.fallback",
            "spec.evict.deadlineSeconds",
            "spec.evict",
            "spec.way",
            "spec.when.tolerationSeconds",
            "spec.when.delaySeconds",
            "spec.when.windows[0].schedule",
            "spec.when.windows[1].durationSeconds",
            "spec.when.windows[2].timeZone",
            "spec.pace.burst",
            "spec.pace.burst",
            "spec.pace.zoneRate",
            "spec.pace.inFlight",
            "spec.pace.zoneInFlight",
            "spec.pace.perWorkload",
            "spec.gates[0].cel.expression",
            "spec.gates[1].name",
            "spec.gates[1]",
            "spec.gates[2].name",
            "spec.gates[2].podCondition.status",
            "spec.gates[3]",
            "spec.gates[4].review.url",
            "spec.gates[5].review.caBundle",
            "spec.gates[6].review.caBundle",
            "spec.gates[7].review.timeoutSeconds",
            "spec.after.proofs[0].type",
            "spec.after.proofs[1].annotation",
            "spec.after.proofs[2].annotation",
        ]
    );
    let selection = read(spec).selection;
    assert!(selection.is_garbled && selection.taints.is_none() && selection.labels.is_empty());
}

#[test]
fn force_needs_a_proof_or_somebody_who_takes_the_risk_and_not_both() {
    let after = |after: Value| paths(json!({"way": "Delete", "after": after}));
    assert_eq!(after(json!({"forceDeleteAfterSeconds": 60})), ["spec.after.proofs"]);
    assert_eq!(after(json!({"forceDeleteAfterSeconds": 60, "acceptRisk": false})), ["spec.after.proofs"]);
    assert_eq!(after(json!({"forceDeleteAfterSeconds": 60, "acceptRisk": true})), [""; 0]);
    let both = json!({"forceDeleteAfterSeconds": 60, "acceptRisk": true, "proofs": [{"type": "NodeGone"}]});
    assert_eq!(after(both), ["spec.after.acceptRisk"]);
}

#[test]
fn a_list_that_is_empty_selects_nobody_and_is_refused() {
    assert_eq!(paths(json!({"way": "Hold", "taints": []})), ["spec.taints"]);
    assert_eq!(paths(json!({"way": "Hold", "pods": {"namespaces": []}})), ["spec.pods.namespaces"]);
    assert_eq!(paths(json!({"way": "Delete", "when": {"windows": []}})), ["spec.when.windows"]);
    let window = json!({"schedule": "0 2 * * *", "durationSeconds": 60});
    assert_eq!(paths(json!({"way": "Delete", "when": {"windows": vec![window; 17]}})), ["spec.when.windows"]);
}
