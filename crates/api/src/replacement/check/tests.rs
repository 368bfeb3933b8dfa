use serde_json::json;

use super::*;
use crate::schema::{prepare, structural_schema, unknown_fields, validate};

const NONE: [&str; 0] = [];

/// What the rules between fields say of a spec.
fn problems(spec: Value) -> Vec<String> {
    let spec: ReplacementPolicySpec = serde_json::from_value(spec).unwrap();
    spec.problems().iter().map(ToString::to_string).collect()
}

/// What the schema says of a spec.
fn misfits(mut spec: Value) -> Vec<String> {
    let schema = serde_json::to_value(structural_schema::<ReplacementPolicySpec>()).unwrap();
    let mut arena = berth_schema::Arena::default();
    let root = berth_schema::compile(&mut arena, &schema).unwrap();
    let structure = arena.schema(root);
    assert_eq!(unknown_fields(&spec, structure), [], "{spec}");
    prepare(&mut spec, structure);
    validate(&spec, structure).iter().map(ToString::to_string).collect()
}

fn with(part: Value) -> Value {
    let mut spec = json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
        "replacements": {},
    });
    if let (Value::Object(fields), Value::Object(part)) = (&mut spec, part) {
        fields.extend(part);
    }
    spec
}

/// Everything there is, each with a good value.
fn whole() -> Value {
    with(json!({
        "mode": "Enforce",
        "pauseRequests": ["upgrade by @x"],
        "replacements": {
            "enabled": true,
            "taintReplacementOptions": [
                {"key": "example.org/maintenance", "durationInSeconds": 7200},
                {"key": "*", "durationInSeconds": i64::MAX},
            ],
            "taintReplacementTimeSeconds": 1800,
            "failureDetectionTimeSeconds": 7200,
            "maxConcurrentReplacements": 1,
            "faultDomainBasedReplacements": false,
            "maxFaultDomainsWithTaintedProcessGroups": "10%",
        },
        "triggers": {
            "taints": [{
                "key": "node.vmware.com/drain", "value": "drain", "effects": ["NoSchedule"], "durationSeconds": 60,
                "action": "Replace", "intent": "Permanent",
            }],
            "tolerated": "Ignore",
            "cordon": {"durationSeconds": 3600},
            "nodeConditions": [{"type": "MaintenanceInProgress", "status": "True", "durationSeconds": 600}],
            "nodeMissing": {"durationSeconds": 60},
            "podConditions": [{"type": "Ready", "status": "False", "durationSeconds": 7200}],
        },
        "budget": {
            "faultDomainKey": "kubernetes.io/hostname",
            "breaker": {"minimum": 1, "countInFlight": false},
            "buckets": [{"selector": {"matchLabels": {"role": "storage"}}, "maxConcurrent": 1}],
            "cooldownSeconds": 60,
            "retry": {"maxRetry": 3, "retryPeriodSeconds": 600, "minHealthySeconds": 3600},
            "windows": [{"schedule": "0 2 * * *", "durationSeconds": 14400}],
        },
        "order": {"cel": "pod.metadata.labels['role'] == 'primary' ? 10 : 0"},
        "strategy": {
            "type": "Evict",
            "volumes": {"policy": "DeleteNodeLocal", "storageClassNames": ["local"], "setReclaimPolicy": "Retain"},
            "placement": {"requireUnschedulableNode": true, "requireFeasibleTarget": true},
            "ready": {"timeoutSeconds": 1800, "minReadySeconds": 60},
        },
        "gates": [{
            "name": "healthy", "stage": "BeforePodRemoval", "timeoutSeconds": 86400, "onTimeout": "Block",
            "cel": "owner.status.readyReplicas == owner.spec.replicas",
        }],
        "cancel": {"onCleared": "BeforePointOfNoReturn"},
    }))
}

#[test]
fn a_policy_with_everything_in_it_is_good_and_written_back_as_it_came() {
    assert_eq!(problems(whole()), NONE);
    assert_eq!(misfits(whole()), NONE);
    let spec: ReplacementPolicySpec = serde_json::from_value(whole()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), whole());
}

#[test]
fn the_option_block_of_the_foundationdb_operator_pastes_in_with_its_defaults() {
    let pasted =
        with(json!({"replacements": {"taintReplacementOptions": [{"key": "*", "durationInSeconds": 60}]}}));
    assert_eq!((problems(pasted.clone()), misfits(pasted.clone())), (vec![], vec![]));
    let spec: ReplacementPolicySpec = serde_json::from_value(pasted).unwrap();
    let options = spec.replacements.unwrap();
    assert!(options.is_enabled() && !options.counts_fault_domains());
    assert_eq!((options.failure_detection_seconds(), options.taint_replacement_seconds()), (7_200, 1_800));
    assert_eq!(
        (options.max_concurrent(), options.max_fault_domains()),
        (1, IntOrString::String("10%".into()))
    );
    assert_eq!(spec.mode, None, "and nothing is done before somebody says so");
}

/// Keys that look like patterns pass upstream's validation and never match anything.
///
/// Upstream: replacement-defects "B10".
#[test]
fn a_key_that_looks_like_a_pattern_is_refused_by_the_schema_and_by_the_rules() {
    for key in ["a/*", "*/a", "**", "example.org/*", "", "a b", "-a", "a/", "/a", "A.org/x"] {
        let option = json!({"key": key, "durationInSeconds": 1});
        for (part, path) in [
            (
                json!({"replacements": {"taintReplacementOptions": [option]}}),
                "spec.replacements.taintReplacementOptions[0].key",
            ),
            (json!({"triggers": {"taints": [{"key": key}]}}), "spec.triggers.taints[0].key"),
        ] {
            let found = problems(with(part.clone()));
            assert!(
                !found.is_empty() && found.iter().all(|problem| problem.starts_with(path)),
                "{key}: {found:?}"
            );
            assert!(!misfits(with(part)).is_empty(), "{key} passes the schema");
        }
    }
    for key in ["*", "a", "node.kubernetes.io/unreachable", "a/B_c.d-e"] {
        let part = json!({"triggers": {"taints": [{"key": key}]}});
        assert_eq!((problems(with(part.clone())), misfits(with(part))), (vec![], vec![]), "{key}");
    }
}

#[test]
fn each_wrong_value_is_named_with_its_path() {
    let cases = [
        (json!({"selector": {"matchLabels": {"a": "b"}}}), "spec.selector: Forbidden"),
        (json!({"mode": "Maybe"}), "spec.mode: Unsupported value: \"Maybe\""),
        (json!({"pauseRequests": ["a", "a"]}), "spec.pauseRequests[1]: Duplicate value"),
        (json!({"pauseRequests": [" "]}), "spec.pauseRequests[0]: Required value"),
        (
            json!({"replacements": {"failureDetectionTimeSeconds": -1}}),
            "spec.replacements.failureDetectionTimeSeconds: Invalid value: -1",
        ),
        // Upstream takes negatives for "at once".
        (
            json!({"replacements": {"taintReplacementTimeSeconds": -1}}),
            "spec.replacements.taintReplacementTimeSeconds: Invalid value: -1",
        ),
        (
            json!({"replacements": {"maxConcurrentReplacements": -1}}),
            "spec.replacements.maxConcurrentReplacements: ",
        ),
        (
            json!({"replacements": {"maxFaultDomainsWithTaintedProcessGroups": "101%"}}),
            "spec.replacements.maxFaultDomainsWithTaintedProcessGroups: ",
        ),
        (
            json!({"replacements": {"maxFaultDomainsWithTaintedProcessGroups": -1}}),
            "spec.replacements.maxFaultDomainsWithTaintedProcessGroups: ",
        ),
        (
            json!({"replacements": {"maxFaultDomainsWithTaintedProcessGroups": "ten"}}),
            "spec.replacements.maxFaultDomainsWithTaintedProcessGroups: ",
        ),
        (
            json!({"replacements": {"taintReplacementOptions": [{"key": "a", "durationInSeconds": -1}]}}),
            "spec.replacements.taintReplacementOptions[0].durationInSeconds: ",
        ),
        (
            json!({"replacements": {"taintReplacementOptions": [{"key": "a", "durationInSeconds": 1}, {"key": "a", "durationInSeconds": 2}]}}),
            "spec.replacements.taintReplacementOptions[1].key: Duplicate value",
        ),
        (json!({"triggers": {"tolerated": "Some"}}), "spec.triggers.tolerated: Unsupported value"),
        (
            json!({"triggers": {"taints": [{"key": "a", "effects": ["NoRun"]}]}}),
            "spec.triggers.taints[0].effects[0]: Unsupported value",
        ),
        (
            json!({"triggers": {"taints": [{"key": "a", "effects": ["NoExecute", "NoExecute"]}]}}),
            "spec.triggers.taints[0].effects[1]: Duplicate value",
        ),
        (
            json!({"triggers": {"taints": [{"key": "a"}, {"key": "a", "durationSeconds": 5}]}}),
            "spec.triggers.taints[1]: Duplicate value",
        ),
        (
            json!({"triggers": {"taints": [{"key": "a", "action": "Run"}]}}),
            "spec.triggers.taints[0].action: ",
        ),
        (
            json!({"triggers": {"taints": [{"key": "a", "intent": "Soon"}]}}),
            "spec.triggers.taints[0].intent: ",
        ),
        (
            json!({"triggers": {"taints": [{"key": "a", "durationSeconds": -5}]}}),
            "spec.triggers.taints[0].durationSeconds: ",
        ),
        // What no taint, no condition and no object can be called would never match.
        (
            json!({"triggers": {"taints": [{"key": "a", "value": "not a value!"}]}}),
            "spec.triggers.taints[0].value: Invalid value",
        ),
        (
            json!({"triggers": {"nodeConditions": [{"type": "a b", "status": "True", "durationSeconds": 1}]}}),
            "spec.triggers.nodeConditions[0].type: Invalid value",
        ),
        (
            json!({"triggers": {"podConditions": [{"type": "example.org/a b", "status": "True", "durationSeconds": 1}]}}),
            "spec.triggers.podConditions[0].type: Invalid value",
        ),
        (
            json!({"gates": [{"name": "a", "podCondition": {"type": "a b"}}]}),
            "spec.gates[0].podCondition.type: Invalid value",
        ),
        (
            json!({"strategy": {"volumes": {"policy": "Delete", "storageClassNames": ["local", "Local*"]}}}),
            "spec.strategy.volumes.storageClassNames[1]: Invalid value",
        ),
        (
            json!({"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db-*"}}),
            "spec.targetRef.name: Invalid value",
        ),
        (
            json!({"targetRef": {"apiVersion": "apps/v1", "kind": "Stateful Set", "name": "db"}}),
            "spec.targetRef.kind: Invalid value",
        ),
        (json!({"triggers": {"cordon": {"durationSeconds": -5}}}), "spec.triggers.cordon.durationSeconds: "),
        (
            json!({"triggers": {"nodeMissing": {"durationSeconds": -5}}}),
            "spec.triggers.nodeMissing.durationSeconds: ",
        ),
        (
            json!({"triggers": {"nodeConditions": [{"type": "", "status": "True", "durationSeconds": 1}]}}),
            "spec.triggers.nodeConditions[0].type: Required value",
        ),
        (
            json!({"triggers": {"podConditions": [{"type": "A", "status": "Yes", "durationSeconds": 1}]}}),
            "spec.triggers.podConditions[0].status: Unsupported value",
        ),
        (json!({"budget": {"maxConcurrent": -1}}), "spec.budget.maxConcurrent: "),
        (
            json!({"budget": {"maxConcurrent": 1}, "replacements": {"maxConcurrentReplacements": 1}}),
            "spec.budget.maxConcurrent: Forbidden",
        ),
        (
            json!({"budget": {"byFaultDomain": true}, "replacements": {"faultDomainBasedReplacements": true}}),
            "spec.budget.byFaultDomain: Forbidden",
        ),
        (json!({"budget": {"breaker": {"minimum": 0}}}), "spec.budget.breaker.minimum: "),
        (
            json!({"budget": {"breaker": {"maxAffectedFaultDomains": 2}}, "replacements": {"maxFaultDomainsWithTaintedProcessGroups": 2}}),
            "spec.budget.breaker.maxAffectedFaultDomains: Forbidden",
        ),
        (
            json!({"budget": {"buckets": [{"selector": {}, "maxConcurrent": -1}]}}),
            "spec.budget.buckets[0].maxConcurrent: ",
        ),
        (json!({"budget": {"cooldownSeconds": -1}}), "spec.budget.cooldownSeconds: "),
        (json!({"budget": {"retry": {"maxRetry": -1}}}), "spec.budget.retry.maxRetry: "),
        (
            json!({"budget": {"windows": [{"schedule": "* * * * *", "durationSeconds": 0}]}}),
            "spec.budget.windows[0].durationSeconds: ",
        ),
        (json!({"strategy": {"type": "Delegate"}}), "spec.strategy.delegate: Required value"),
        (json!({"strategy": {"type": "Delegate", "delegate": {}}}), "spec.strategy.delegate: Required value"),
        (
            json!({"strategy": {"delegate": {"annotatePod": {"key": "a", "value": "b"}}}}),
            "spec.strategy.delegate: Forbidden",
        ),
        (
            json!({"strategy": {"type": "Delegate", "delegate": {"annotatePod": {"key": "a", "value": "b"}}, "volumes": {"policy": "Delete"}}}),
            "spec.strategy.volumes.policy: Forbidden",
        ),
        (
            json!({"strategy": {"volumes": {"policy": "Delete", "setReclaimPolicy": "Delete"}}}),
            "spec.strategy.volumes.setReclaimPolicy: ",
        ),
        (
            json!({"strategy": {"volumes": {"setReclaimPolicy": "Retain"}}}),
            "spec.strategy.volumes.setReclaimPolicy: Forbidden",
        ),
        (
            json!({"strategy": {"volumes": {"policy": "Retain", "storageClassNames": ["local"]}}}),
            "spec.strategy.volumes.storageClassNames: Forbidden",
        ),
        (
            json!({"targetRef": {"apiVersion": "apps/", "kind": "A", "name": "a"}}),
            "spec.targetRef.apiVersion: ",
        ),
        (
            json!({"targetRef": {"apiVersion": "/v1", "kind": "A", "name": "a"}}),
            "spec.targetRef.apiVersion: ",
        ),
        (
            json!({"targetRef": {"apiVersion": "Apps!/v1", "kind": "A", "name": "a"}}),
            "spec.targetRef.apiVersion: ",
        ),
        (json!({"budget": {"faultDomainKey": "a b"}}), "spec.budget.faultDomainKey: "),
        (
            json!({"strategy": {"type": "Delegate", "delegate": {"annotatePod": {"key": "a b", "value": "c"}}}}),
            "spec.strategy.delegate.annotatePod.key: ",
        ),
        (
            json!({"strategy": {"type": "Delegate", "delegate": {"patchOwner": {"list": "spec.a", "entryFromLabel": "a b"}}}}),
            "spec.strategy.delegate.patchOwner.entryFromLabel: ",
        ),
        (
            json!({"strategy": {"type": "Delegate", "delegate": {"patchOwner": {"list": "spec..a"}}}}),
            "spec.strategy.delegate.patchOwner.list: ",
        ),
        (
            json!({"strategy": {"type": "Delegate", "delegate": {"patchOwner": {"list": "spec.a"}, "timeoutSeconds": 0}}}),
            "spec.strategy.delegate.timeoutSeconds: ",
        ),
        (
            json!({"strategy": {"type": "Delegate", "delegate": {"patchOwner": {"list": "spec.a"}, "doneWhen": {"list": "status.a", "key": "", "field": "b"}}}}),
            "spec.strategy.delegate.doneWhen.key: ",
        ),
        (json!({"gates": [{"name": "a", "annotation": {"key": "a b"}}]}), "spec.gates[0].annotation.key: "),
        (
            json!({"gates": [{"name": "a", "podCondition": {"type": "A", "status": "Yes"}}]}),
            "spec.gates[0].podCondition.status: Unsupported value",
        ),
        (json!({"strategy": {"ready": {"timeoutSeconds": 0}}}), "spec.strategy.ready.timeoutSeconds: "),
        (json!({"gates": [{"name": "a"}]}), "spec.gates[0]: Required value: exactly one of"),
        (
            json!({"gates": [{"name": "a", "cel": "true"}, {"name": "a", "cel": "true"}]}),
            "spec.gates[1].name: Duplicate value",
        ),
        (json!({"cancel": {"onCleared": "Sometimes"}}), "spec.cancel.onCleared: Unsupported value"),
    ];
    for (part, path) in cases {
        let found = problems(with(part.clone()));
        assert!(found.len() == 1 && found[0].starts_with(path), "{part}: {found:?}");
    }
}

/// Claims go before the pod, so that a gate before either stands before the volumes.
#[test]
fn no_gate_before_volumes_is_passed_by_time() {
    let gate = |stage: &str, volumes: &str| {
        problems(with(json!({
            "gates": [{"name": "a", "cel": "true", "stage": stage, "onTimeout": "Proceed"}],
            "strategy": {"volumes": {"policy": volumes}},
        })))
    };
    for stage in ["BeforePodRemoval", "BeforeVolumeRemoval"] {
        for volumes in ["Delete", "DeleteNodeLocal"] {
            let found = gate(stage, volumes);
            assert!(
                found.len() == 1 && found[0].starts_with("spec.gates[0].onTimeout: Forbidden"),
                "{found:?}"
            );
        }
    }
    assert_eq!(gate("BeforePodRemoval", "Retain"), NONE);
    assert_eq!(gate("BeforeStart", "Delete"), NONE);
}

#[test]
fn a_gate_that_nobody_would_ever_ask_is_refused() {
    let list = json!({"type": "Delegate", "delegate": {"patchOwner": {"list": "spec.a"}}});
    let annotated = json!({"type": "Delegate", "delegate": {"annotatePod": {"key": "a", "value": "b"}}});
    let asks = json!({"cel": "true"});
    let condition = json!({"podCondition": {"type": "A"}});
    let fresh = json!({"podCondition": {"type": "A", "observedAfterStart": true}});
    for (stage, strategy, way, is_asked) in [
        ("BeforeStart", &list, &asks, true),
        ("BeforePodRemoval", &list, &asks, false),
        ("BeforeVolumeRemoval", &annotated, &asks, false),
        ("BeforeComplete", &list, &asks, true),
        ("BeforeComplete", &list, &condition, false),
        ("BeforeComplete", &annotated, &condition, true),
        ("BeforeVolumeRemoval", &json!({}), &asks, false),
        ("BeforeVolumeRemoval", &json!({"volumes": {"policy": "Delete"}}), &asks, true),
        ("BeforeStart", &json!({}), &fresh, false),
        ("BeforePodRemoval", &json!({}), &fresh, true),
    ] {
        let mut gate = way.clone();
        gate["name"] = json!("a");
        gate["stage"] = json!(stage);
        let found = problems(with(json!({"gates": [gate], "strategy": strategy})));
        let is_told = found.len() == 1 && found[0].starts_with("spec.gates[0].stage: Forbidden");
        assert_eq!(is_told, !is_asked, "{stage} {strategy} {way}: {found:?}");
        assert_eq!(found.is_empty(), is_asked, "{stage} {strategy} {way}: {found:?}");
    }
}

#[test]
fn a_policy_for_nobody_for_everybody_or_for_nothing_is_refused() {
    let of = |part: Value| {
        let mut spec = json!({"replacements": {}});
        spec.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        problems(spec)
    };
    assert_eq!(of(json!({})), ["spec: Required value: one of targetRef and selector is required"]);
    for everybody in
        [json!({}), json!({"matchLabels": {}}), json!({"matchLabels": {}, "matchExpressions": []})]
    {
        let found = of(json!({"selector": everybody}));
        assert!(found.len() == 1 && found[0].starts_with("spec.selector: Required value"), "{found:?}");
    }
    assert_eq!(of(json!({"selector": {"matchLabels": {"a": "b"}}})), NONE);
    for nothing in [json!({}), json!({"triggers": {}}), json!({"triggers": {"tolerated": "Match"}})] {
        let mut spec = json!({"selector": {"matchLabels": {"a": "b"}}});
        spec.as_object_mut().unwrap().extend(nothing.as_object().unwrap().clone());
        let found = problems(spec);
        assert!(found.len() == 1 && found[0].starts_with("spec.triggers: Required value"), "{found:?}");
    }
}

#[test]
fn lists_have_limits() {
    let options: Vec<_> = (0..33).map(|n| json!({"key": format!("k{n}"), "durationInSeconds": 1})).collect();
    let found = misfits(with(json!({"replacements": {"taintReplacementOptions": options}})));
    assert_eq!(found.len(), 1, "{found:?}");
    let pauses: Vec<_> = (0..17).map(|n| format!("because {n}")).collect();
    assert_eq!(misfits(with(json!({ "pauseRequests": pauses }))).len(), 1);
}

#[test]
fn percentages_are_plain_numbers_up_to_a_hundred() {
    for (text, read) in [("10%", Some(10)), ("0%", Some(0)), ("100%", Some(100))] {
        assert_eq!(percentage(text), read);
    }
    for text in ["101%", "10", "%", "+1%", "-1%", "1.5%", "999999999999%", " 1%"] {
        assert_eq!(percentage(text), None, "{text}");
    }
}
