//! From a policy as it is written to one that can be decided by.

use berth_api::replacement::{
    Effect, Intent, Mode, OnCleared, ReplacementOptions, ReplacementPolicySpec, StrategyType, TaintAction,
    Tolerated, Triggers, VolumePolicy, percentage,
};
use berth_api::schema::{FieldPath, Problem, ProblemKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::policy::{Breaker, Budget, DoneWhen, Gate, Handing, Off, Policy, Retry, Strategy, Volumes};
use super::rule::{ConditionRule, PlainRule, Rules, TaintRule, Timing};
use crate::evict::Allowance;
use crate::selector::{BadSelector, from_label_selector};
use crate::taint::NodeEffect;

/// The node label that is the node's own name: no node is read for it.
const HOSTNAME: &str = berth_api::replacement::FAULT_DOMAIN_KEY_DEFAULT;

/// The conditions of a pod that fails, where upstream's are those of a process group: it is not ready, or finds no node.
const FAILURES: [&str; 2] = ["Ready", "PodScheduled"];

impl Policy {
    /// Makes a policy ready, or says all that is wrong with it. A policy with problems starts nothing.
    pub fn compile(spec: &ReplacementPolicySpec) -> Result<Self, Vec<Problem>> {
        let mut problems = spec.problems();
        let defaults = (ReplacementOptions::default(), Triggers::default());
        let options = spec.replacements.as_ref().unwrap_or(&defaults.0);
        let triggers = spec.triggers.as_ref().unwrap_or(&defaults.1);
        let budget = budget(spec, options, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let rules = rules(spec, options, triggers);
        let off = match (options.is_enabled(), budget.max) {
            (false, _) => Some(Off::NotEnabled),
            (true, 0) if budget.buckets.iter().all(|(_, max)| *max == 0) => Some(Off::NoneAtOnce),
            _ => None,
        };
        Ok(Self {
            is_enforced: spec.mode() == Mode::Enforce,
            is_disabled: spec.mode() == Mode::Disabled,
            pauses: spec.pause_requests().into(),
            frozen: None,
            off,
            strategy: strategy(spec, rules.ask_for_nodes()),
            rules,
            budget,
            gates: spec
                .gates()
                .iter()
                .map(|gate| Gate {
                    name: gate.name.as_str().into(),
                    stage: gate.stage(),
                    timeout: gate.timeout_seconds(),
                    on_timeout: gate.on_timeout(),
                })
                .collect(),
            on_cleared: spec
                .cancel
                .as_ref()
                .and_then(|cancel| cancel.on_cleared.clone())
                .unwrap_or(OnCleared::BeforePointOfNoReturn),
        })
    }
}

/// The options' rules are native ones with a second wait; a failing pod is one that is not ready or finds no node.
fn rules(spec: &ReplacementPolicySpec, options: &ReplacementOptions, triggers: &Triggers) -> Rules {
    let mut rules = Rules {
        // Who wrote only the options gets what upstream does.
        tolerated_count: match triggers.tolerated {
            Some(Tolerated::Match) => true,
            Some(_) => false,
            None => triggers.is_empty(),
        },
        ..Rules::default()
    };
    let plain = |seconds: i64| Timing { mark: seconds, replace: None };
    for (index, option) in options.taint_options().iter().enumerate() {
        rules.taints.push(TaintRule {
            key: key(&option.key),
            value: None,
            effects: Vec::new(),
            timing: Some(Timing {
                mark: option.duration_in_seconds,
                replace: Some(options.taint_replacement_seconds()),
            }),
            is_permanent: true,
            place: format!("replacements.taintReplacementOptions[{index}]").into(),
        });
    }
    for (index, rule) in triggers.taints().iter().enumerate() {
        let is_ignored = rule.action == Some(TaintAction::Ignore);
        let effects = rule.effects.iter().flatten();
        rules.taints.push(TaintRule {
            key: key(&rule.key),
            value: rule.value.as_deref().map(Into::into),
            effects: effects.map(|effect: &Effect| NodeEffect::parse(effect.as_str())).collect(),
            timing: (!is_ignored).then(|| plain(rule.duration_seconds.unwrap_or_default())),
            is_permanent: rule.intent != Some(Intent::Temporary),
            place: format!("triggers.taints[{index}]").into(),
        });
    }
    let place = |text: &str| -> Box<str> { text.into() };
    rules.cordon = triggers
        .cordon
        .map(|cordon| PlainRule { timing: plain(cordon.duration_seconds), place: place("triggers.cordon") });
    rules.node_missing = triggers.node_missing.map(|missing| PlainRule {
        timing: plain(missing.duration_seconds),
        place: place("triggers.nodeMissing"),
    });
    let of_nodes = triggers.node_conditions().iter().enumerate();
    rules.node_conditions = of_nodes
        .map(|(index, rule)| ConditionRule {
            condition: rule.type_.as_str().into(),
            status: rule.status.as_str().into(),
            timing: plain(rule.duration_seconds),
            place: format!("triggers.nodeConditions[{index}]").into(),
        })
        .collect();
    let of_pods = triggers.pod_conditions().iter().enumerate();
    rules.pod_conditions = of_pods
        .map(|(index, rule)| ConditionRule {
            condition: rule.type_.as_str().into(),
            status: rule.status.as_str().into(),
            timing: plain(rule.duration_seconds),
            place: format!("triggers.podConditions[{index}]").into(),
        })
        .collect();
    for condition in FAILURES.into_iter().filter(|_| spec.replacements.is_some()) {
        let is_said = |rule: &ConditionRule| &*rule.condition == condition && &*rule.status == "False";
        if !rules.pod_conditions.iter().any(is_said) {
            rules.pod_conditions.push(ConditionRule {
                condition: condition.into(),
                status: "False".into(),
                timing: plain(options.failure_detection_seconds()),
                place: place("replacements.failureDetectionTimeSeconds"),
            });
        }
    }
    rules
}

fn key(text: &str) -> Option<Box<str>> {
    (text != "*").then(|| text.into())
}

fn budget(spec: &ReplacementPolicySpec, options: &ReplacementOptions, problems: &mut Vec<Problem>) -> Budget {
    let given = spec.budget.clone().unwrap_or_default();
    let breaker = given.breaker.clone().unwrap_or_default();
    let retry = given.retry.unwrap_or_default();
    let count = |number: i32| usize::try_from(number).unwrap_or_default();
    let path = FieldPath::root().field("spec");
    let mut requirements = |path: &FieldPath, selector: &LabelSelector| {
        from_label_selector(selector).unwrap_or_else(|errors| {
            let problem = |error: &BadSelector| {
                Problem::new(&path.field(&error.path), ProblemKind::Invalid, &error.message)
            };
            problems.extend(errors.iter().map(problem));
            Vec::new()
        })
    };
    if let Some(selector) = &spec.selector {
        requirements(&path.field("selector"), selector);
    }
    let path = path.field("budget").field("buckets");
    let mut buckets = Vec::new();
    for (index, bucket) in given.buckets().iter().enumerate() {
        let asks = requirements(&path.index(index).field("selector"), &bucket.selector);
        buckets.push((asks, count(bucket.max_concurrent)));
    }
    let limit = breaker.max_affected_fault_domains.clone().unwrap_or_else(|| options.max_fault_domains());
    Budget {
        max: count(given.max_concurrent.unwrap_or_else(|| options.max_concurrent())),
        by_domain: given.by_fault_domain.unwrap_or_else(|| options.counts_fault_domains()),
        domain_key: Some(given.fault_domain_key()).filter(|key| *key != HOSTNAME).map(Into::into),
        breaker: Breaker {
            allowed: match limit {
                IntOrString::Int(number) => Allowance::Count(u32::try_from(number).unwrap_or_default()),
                // What is no percentage has been told as a problem.
                IntOrString::String(text) => Allowance::Percent(percentage(&text).unwrap_or_default()),
            },
            minimum: count(breaker.minimum.unwrap_or(1)),
            counts_in_flight: breaker.count_in_flight.unwrap_or(false),
        },
        buckets,
        cooldown: given.cooldown_seconds.unwrap_or_default(),
        retry: Retry {
            max: u32::try_from(retry.max_retry()).unwrap_or_default(),
            period: retry.retry_period_seconds(),
            healthy: retry.min_healthy_seconds(),
        },
    }
}

fn strategy(spec: &ReplacementPolicySpec, asks_for_nodes: bool) -> Strategy {
    let given = spec.strategy.clone().unwrap_or_default();
    let volumes = given.volumes.clone().unwrap_or_default();
    let placement = given.placement.unwrap_or_default();
    let ready = given.ready.unwrap_or_default();
    let delegate = given.delegate.clone().unwrap_or_default();
    // A gate that waits for an answer is asked after the question.
    let answers = spec.gates().iter().any(|gate| {
        let condition = gate.pod_condition.as_ref();
        gate.annotation.is_some() || condition.is_some_and(|gate| gate.observed_after_start == Some(true))
    });
    let handing = match (given.kind(), delegate.annotate_pod, delegate.patch_owner) {
        (StrategyType::Delegate, Some(annotation), _) => {
            Handing::Annotate { key: annotation.key.into(), value: annotation.value.into() }
        }
        (StrategyType::Delegate, None, Some(patch)) => {
            Handing::Append { list: patch.list.into(), label: patch.entry_from_label.map(Into::into) }
        }
        _ => Handing::Evict { handshake: answers },
    };
    let done_when = delegate.done_when.map(|done| DoneWhen {
        list: done.list.into(),
        key: done.key.into(),
        field: done.field.into(),
    });
    let classes = volumes.storage_class_names.into_iter().flatten().map(Into::into).collect();
    let is_ours = !handing.is_delegated();
    Strategy {
        done_when: done_when.filter(|_| !is_ours),
        operator_timeout: delegate.timeout_seconds.unwrap_or(i64::MAX),
        volumes: match given.volume_policy() {
            VolumePolicy::Delete => Volumes::Delete { local_only: false, classes },
            VolumePolicy::DeleteNodeLocal => Volumes::Delete { local_only: true, classes },
            _ => Volumes::Retain,
        },
        keeps_volumes: volumes.set_reclaim_policy.is_some(),
        // Where the successor goes is the operator's care if the operator makes it.
        needs_closed_node: is_ours && placement.requires_unschedulable_node(),
        // Who asks for no node otherwise has to say that nodes are to be looked at for this.
        needs_feasible_target: is_ours && placement.require_feasible_target.unwrap_or(asks_for_nodes),
        ready_timeout: ready.timeout_seconds(),
        min_ready: ready.min_ready_seconds(),
        handing,
    }
}
