//! What is wrong with a policy beyond what its schema can say.
//!
//! Owns the rules between fields, and those about values that a schema lets pass: who wrote the object gets every problem
//! with its path. The engine compiles only what has none.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::gate::{Gate, OnTimeout, PodConditionGate, Stage};
use super::policy::{ReplacementPolicySpec, TargetRef};
use super::strategy::{Delegate, Strategy, StrategyType, VolumePolicy};
use super::trigger::Triggers;
use crate::open_enum::Word;
use crate::schema::{FieldPath, Problem};
use crate::window::DURATION_SECONDS_MIN;

/// What a condition may say.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

impl ReplacementPolicySpec {
    /// Everything that is wrong with it, with the path of each field below `spec`.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Found::default();
        let spec = FieldPath::root().field("spec");
        match (&self.target_ref, &self.selector) {
            (None, None) => found.push(Problem::required(&spec, "one of targetRef and selector is required")),
            (Some(_), Some(_)) => {
                found.push(Problem::forbidden(&spec.field("selector"), "not together with targetRef"));
            }
            (_, Some(selector)) if asks_for_nothing(selector) => {
                found.push(Problem::required(
                    &spec.field("selector"),
                    "an empty selector would match every pod",
                ));
            }
            _ => {}
        }
        if let Some(target) = &self.target_ref {
            check_target(&mut found, &spec.field("targetRef"), target);
        }
        if self.replacements.is_none() && self.triggers.as_ref().is_none_or(Triggers::is_empty) {
            let detail = "without replacements and without a trigger nobody is ever replaced";
            found.push(Problem::required(&spec.field("triggers"), detail));
        }
        found.word(&spec.field("mode"), self.mode.as_ref());
        found.texts(&spec.field("pauseRequests"), self.pause_requests());
        self.check_options(&mut found, &spec.field("replacements"));
        if let Some(triggers) = &self.triggers {
            check_triggers(&mut found, &spec.field("triggers"), triggers);
        }
        self.check_budget(&mut found, &spec.field("budget"));
        if let Some(strategy) = &self.strategy {
            check_strategy(&mut found, &spec.field("strategy"), strategy);
        }
        check_gates(&mut found, &spec.field("gates"), self.gates(), self.strategy.as_ref());
        if let Some(cancel) = &self.cancel {
            found.word(&spec.field("cancel").field("onCleared"), cancel.on_cleared.as_ref());
        }
        found.problems
    }

    fn check_options(&self, found: &mut Found, path: &FieldPath) {
        let Some(options) = &self.replacements else { return };
        found.seconds(&path.field("failureDetectionTimeSeconds"), options.failure_detection_time_seconds);
        found.seconds(&path.field("taintReplacementTimeSeconds"), options.taint_replacement_time_seconds);
        let most = options.max_concurrent_replacements.map(i64::from);
        found.seconds(&path.field("maxConcurrentReplacements"), most);
        let limit = options.max_fault_domains_with_tainted_process_groups.as_ref();
        found.share(&path.field("maxFaultDomainsWithTaintedProcessGroups"), limit);
        let path = path.field("taintReplacementOptions");
        let mut keys = BTreeSet::new();
        for (index, option) in options.taint_options().iter().enumerate() {
            let path = path.index(index);
            found.key(&path.field("key"), &option.key);
            found.seconds(&path.field("durationInSeconds"), Some(option.duration_in_seconds));
            if !keys.insert(&option.key) {
                found.push(Problem::duplicate(&path.field("key"), &json!(option.key)));
            }
        }
    }

    fn check_budget(&self, found: &mut Found, path: &FieldPath) {
        let Some(budget) = &self.budget else { return };
        found.seconds(&path.field("maxConcurrent"), budget.max_concurrent.map(i64::from));
        found.seconds(&path.field("cooldownSeconds"), budget.cooldown_seconds);
        found.label_key(&path.field("faultDomainKey"), budget.fault_domain_key.as_deref());
        if let Some(options) = &self.replacements {
            let twice = [
                (
                    budget.max_concurrent.is_some(),
                    options.max_concurrent_replacements.is_some(),
                    "maxConcurrent",
                ),
                (
                    budget.by_fault_domain.is_some(),
                    options.fault_domain_based_replacements.is_some(),
                    "byFaultDomain",
                ),
            ];
            for (_, _, field) in twice.iter().filter(|(here, there, _)| *here && *there) {
                found.push(Problem::forbidden(&path.field(field), "given in replacements already"));
            }
        }
        if let Some(breaker) = &budget.breaker {
            let path = path.field("breaker");
            found.share(&path.field("maxAffectedFaultDomains"), breaker.max_affected_fault_domains.as_ref());
            found.at_least(&path.field("minimum"), breaker.minimum.map(i64::from), 1);
            let limit = |options: &super::ReplacementOptions| {
                options.max_fault_domains_with_tainted_process_groups.is_some()
            };
            if breaker.max_affected_fault_domains.is_some() && self.replacements.as_ref().is_some_and(limit) {
                let path = path.field("maxAffectedFaultDomains");
                found.push(Problem::forbidden(&path, "given in replacements already"));
            }
        }
        for (index, bucket) in budget.buckets().iter().enumerate() {
            let path = path.field("buckets").index(index);
            found.seconds(&path.field("maxConcurrent"), Some(i64::from(bucket.max_concurrent)));
        }
        if let Some(retry) = &budget.retry {
            let path = path.field("retry");
            found.seconds(&path.field("maxRetry"), retry.max_retry.map(i64::from));
            found.seconds(&path.field("retryPeriodSeconds"), retry.retry_period_seconds);
            found.seconds(&path.field("minHealthySeconds"), retry.min_healthy_seconds);
        }
        for (index, window) in budget.windows().iter().enumerate() {
            let path = path.field("windows").index(index).field("durationSeconds");
            found.at_least(&path, Some(window.duration_seconds), DURATION_SECONDS_MIN);
        }
    }
}

fn check_triggers(found: &mut Found, path: &FieldPath, triggers: &Triggers) {
    found.word(&path.field("tolerated"), triggers.tolerated.as_ref());
    let mut rules = BTreeSet::new();
    for (index, rule) in triggers.taints().iter().enumerate() {
        let path = path.field("taints").index(index);
        found.key(&path.field("key"), &rule.key);
        for sentence in rule.value.iter().flat_map(|value| berth_text::names::label_value(value)) {
            let value = rule.value.as_deref().unwrap_or_default();
            found.push(Problem::invalid_text(&path.field("value"), value, &sentence));
        }
        found.seconds(&path.field("durationSeconds"), rule.duration_seconds);
        found.word(&path.field("action"), rule.action.as_ref());
        found.word(&path.field("intent"), rule.intent.as_ref());
        let mut effects = BTreeSet::new();
        for (place, effect) in rule.effects.iter().flatten().enumerate() {
            let path = path.field("effects").index(place);
            found.word(&path, Some(effect));
            if !effects.insert(effect) {
                found.push(Problem::duplicate(&path, &json!(effect)));
            }
        }
        if !rules.insert((&rule.key, &rule.value, effects)) {
            found.push(Problem::duplicate(&path, &json!(rule.key)));
        }
    }
    found.seconds(
        &path.field("cordon").field("durationSeconds"),
        triggers.cordon.map(|cordon| cordon.duration_seconds),
    );
    let missing = triggers.node_missing.map(|missing| missing.duration_seconds);
    found.seconds(&path.field("nodeMissing").field("durationSeconds"), missing);
    let nodes = triggers.node_conditions().iter().map(|of| (&of.type_, &of.status, of.duration_seconds));
    found.conditions(&path.field("nodeConditions"), nodes);
    let pods = triggers.pod_conditions().iter().map(|of| (&of.type_, &of.status, of.duration_seconds));
    found.conditions(&path.field("podConditions"), pods);
}

fn check_strategy(found: &mut Found, path: &FieldPath, strategy: &Strategy) {
    found.word(&path.field("type"), strategy.type_.as_ref());
    if let Some(volumes) = &strategy.volumes {
        let path = path.field("volumes");
        found.word(&path.field("policy"), volumes.policy.as_ref());
        let classes = volumes.storage_class_names.as_deref().unwrap_or_default();
        found.texts(&path.field("storageClassNames"), classes);
        for (index, class) in classes.iter().enumerate().filter(|(_, class)| !class.trim().is_empty()) {
            found.name(&path.field("storageClassNames").index(index), class);
        }
        let keeps = volumes.set_reclaim_policy.as_deref();
        if keeps.is_some_and(|keeps| keeps != "Retain") {
            found.push(Problem::not_supported(&path.field("setReclaimPolicy"), &json!(keeps), &["Retain"]));
        }
        if strategy.volume_policy() == VolumePolicy::Retain {
            let unused = [
                ("storageClassNames", volumes.storage_class_names.is_some()),
                ("setReclaimPolicy", keeps.is_some()),
            ];
            for (field, _) in unused.iter().filter(|(_, is_given)| *is_given) {
                found.push(Problem::forbidden(&path.field(field), "no volume is removed with policy Retain"));
            }
        }
    }
    if let Some(ready) = &strategy.ready {
        let path = path.field("ready");
        found.at_least(&path.field("timeoutSeconds"), ready.timeout_seconds, 1);
        found.seconds(&path.field("minReadySeconds"), ready.min_ready_seconds);
    }
    let path_of = path.field("delegate");
    match (strategy.kind(), &strategy.delegate) {
        (StrategyType::Delegate, None) => {
            found.push(Problem::required(&path_of, "how the operator is told"));
        }
        (StrategyType::Delegate, Some(delegate)) => {
            match (&delegate.annotate_pod, &delegate.patch_owner) {
                (Some(_), Some(_)) => {
                    found.push(Problem::forbidden(
                        &path_of.field("patchOwner"),
                        "not together with annotatePod",
                    ));
                }
                (None, None) => {
                    found.push(Problem::required(&path_of, "one of annotatePod and patchOwner is required"));
                }
                _ => {}
            }
            check_delegate(found, &path_of, delegate);
            // Who lets an operator do it leaves the volumes to it too.
            if strategy.volume_policy() != VolumePolicy::Retain {
                let path = path.field("volumes").field("policy");
                found.push(Problem::forbidden(&path, "volumes are the operator's with type Delegate"));
            }
        }
        (_, Some(_)) => found.push(Problem::forbidden(&path_of, "only with type Delegate")),
        (_, None) => {}
    }
}

fn check_target(found: &mut Found, path: &FieldPath, target: &TargetRef) {
    let (group, version) = target.api_version.rsplit_once('/').unwrap_or(("", &target.api_version));
    let path_of = path.field("apiVersion");
    let is_version = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !is_version(version) || (target.api_version.contains('/') && group.is_empty()) {
        let detail = "must be a group and a version, such as apps/v1";
        found.push(Problem::invalid_text(&path_of, &target.api_version, detail));
    } else if !group.is_empty() {
        for sentence in berth_text::names::dns_subdomain(group) {
            found.push(Problem::invalid_text(&path_of, &target.api_version, &sentence));
        }
    }
    let is_kind = target.kind.starts_with(|first: char| first.is_ascii_alphabetic())
        && target.kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if target.kind.is_empty() {
        found.push(Problem::required(&path.field("kind"), ""));
    } else if !is_kind {
        let detail = "must be the name of a kind, such as StatefulSet";
        found.push(Problem::invalid_text(&path.field("kind"), &target.kind, detail));
    }
    if target.name.is_empty() {
        found.push(Problem::required(&path.field("name"), ""));
    } else {
        found.name(&path.field("name"), &target.name);
    }
}

fn check_delegate(found: &mut Found, path: &FieldPath, delegate: &Delegate) {
    if let Some(annotation) = &delegate.annotate_pod {
        found.annotation_key(&path.field("annotatePod").field("key"), &annotation.key);
    }
    if let Some(patch) = &delegate.patch_owner {
        let path = path.field("patchOwner");
        found.path(&path.field("list"), &patch.list);
        found.label_key(&path.field("entryFromLabel"), patch.entry_from_label.as_deref());
    }
    if let Some(done) = &delegate.done_when {
        let path = path.field("doneWhen");
        for (field, text) in [("list", &done.list), ("key", &done.key), ("field", &done.field)] {
            found.path(&path.field(field), text);
        }
    }
    found.at_least(&path.field("timeoutSeconds"), delegate.timeout_seconds, 1);
}

fn check_gates(found: &mut Found, path: &FieldPath, gates: &[Gate], strategy: Option<&Strategy>) {
    let mut names = BTreeSet::new();
    let is_delegated = strategy.is_some_and(|strategy| strategy.kind() == StrategyType::Delegate);
    let is_listed = strategy
        .and_then(|strategy| strategy.delegate.as_ref())
        .is_some_and(|delegate| is_delegated && delegate.patch_owner.is_some());
    let removes_volumes = strategy.is_some_and(|strategy| strategy.volume_policy() != VolumePolicy::Retain);
    for (index, gate) in gates.iter().enumerate() {
        let path = path.index(index);
        if gate.name.is_empty() {
            found.push(Problem::required(&path.field("name"), ""));
        }
        if !names.insert(&gate.name) {
            found.push(Problem::duplicate(&path.field("name"), &json!(gate.name)));
        }
        found.word(&path.field("stage"), gate.stage.as_ref());
        found.word(&path.field("onTimeout"), gate.on_timeout.as_ref());
        found.at_least(&path.field("timeoutSeconds"), gate.timeout_seconds, 1);
        let ways = [
            gate.cel.is_some(),
            gate.pod_condition.is_some(),
            gate.annotation.is_some(),
            gate.http.is_some(),
        ];
        if ways.iter().filter(|given| **given).count() != 1 {
            let detail = "exactly one of cel, podCondition, annotation and http is required";
            found.push(Problem::required(&path, detail));
        }
        if let Some(condition) = &gate.pod_condition {
            found.pod_condition(&path.field("podCondition"), condition);
        }
        if let Some(annotation) = &gate.annotation {
            found.annotation_key(&path.field("annotation").field("key"), &annotation.key);
        }
        let detail = match gate.stage() {
            Stage::BeforePodRemoval | Stage::BeforeVolumeRemoval if is_delegated => {
                Some("never asked with type Delegate: the operator removes the pod when it is safe")
            }
            Stage::BeforeVolumeRemoval if !removes_volumes => {
                Some("never asked while volumes.policy is Retain")
            }
            Stage::BeforeComplete
                if is_listed && (gate.pod_condition.is_some() || gate.annotation.is_some()) =>
            {
                Some("of a pod that its operator has removed there is nothing to be asked; ask the owner")
            }
            Stage::BeforeStart
                if gate.pod_condition.as_ref().is_some_and(|of| of.observed_after_start == Some(true)) =>
            {
                Some("nothing is observed after the start before it")
            }
            _ => None,
        };
        if let Some(detail) = detail {
            found.push(Problem::forbidden(&path.field("stage"), detail));
        }
        // Claims go before the pod, so that both gates stand before them.
        let stands_before_volumes = match gate.stage() {
            Stage::BeforeVolumeRemoval => true,
            Stage::BeforePodRemoval => removes_volumes,
            _ => false,
        };
        if detail.is_none() && stands_before_volumes && gate.on_timeout() == OnTimeout::Proceed {
            let detail = "no volume is removed because nobody answered";
            found.push(Problem::forbidden(&path.field("onTimeout"), detail));
        }
    }
}

fn asks_for_nothing(selector: &LabelSelector) -> bool {
    let labels = selector.match_labels.as_ref().is_none_or(std::collections::BTreeMap::is_empty);
    labels && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

#[derive(Default)]
struct Found {
    problems: Vec<Problem>,
}

impl Found {
    fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn at_least(&mut self, path: &FieldPath, number: Option<i64>, least: i64) {
        if let Some(number) = number.filter(|number| *number < least) {
            let detail = format!("must be greater than or equal to {least}");
            self.push(Problem::invalid(path, &json!(number), &detail));
        }
    }

    fn seconds(&mut self, path: &FieldPath, number: Option<i64>) {
        self.at_least(path, number, 0);
    }

    fn word<W: Word>(&mut self, path: &FieldPath, word: Option<&W>) {
        if let Some(unknown) = word.and_then(Word::unknown) {
            self.push(Problem::not_supported(path, &json!(unknown), W::WORDS));
        }
    }

    /// A taint's key, or `*` alone. `a/*` looks like more and would never match.
    fn key(&mut self, path: &FieldPath, key: &str) {
        if key.is_empty() {
            self.push(Problem::required(path, "a taint's key, or *"));
        } else if key != "*" && key.contains('*') {
            self.push(Problem::invalid_text(path, key, "* stands for every key and only alone"));
        } else if key != "*" {
            for sentence in berth_text::names::label_key(key) {
                self.push(Problem::invalid_text(path, key, &sentence));
            }
        }
    }

    fn label_key(&mut self, path: &FieldPath, key: Option<&str>) {
        for sentence in key.into_iter().flat_map(berth_text::names::label_key) {
            self.push(Problem::invalid_text(path, key.unwrap_or_default(), &sentence));
        }
    }

    /// An annotation's key, which may have capitals in its prefix: it is put to the server in small letters.
    fn annotation_key(&mut self, path: &FieldPath, key: &str) {
        for sentence in berth_text::names::label_key(&key.to_ascii_lowercase()) {
            self.push(Problem::invalid_text(path, key, &sentence));
        }
    }

    /// The name of an object.
    fn name(&mut self, path: &FieldPath, name: &str) {
        for sentence in berth_text::names::dns_subdomain(name) {
            self.push(Problem::invalid_text(path, name, &sentence));
        }
    }

    /// What a condition is called: another one would never be said.
    fn condition_type(&mut self, path: &FieldPath, type_: &str) {
        if type_.is_empty() {
            return self.push(Problem::required(path, ""));
        }
        self.label_key(path, Some(type_));
    }

    /// Names with dots between them.
    fn path(&mut self, path: &FieldPath, text: &str) {
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if !text.split('.').all(is_name) {
            let detail = "must be the names of fields with dots between them, such as status.members";
            self.push(Problem::invalid_text(path, text, detail));
        }
    }

    fn pod_condition(&mut self, path: &FieldPath, condition: &PodConditionGate) {
        self.condition_type(&path.field("type"), &condition.type_);
        let status = condition.status.as_deref();
        if status.is_some_and(|status| !STATUSES.contains(&status)) {
            self.push(Problem::not_supported(&path.field("status"), &json!(status), &STATUSES));
        }
    }

    /// A number that is not negative, or a percentage up to a hundred.
    fn share(&mut self, path: &FieldPath, share: Option<&IntOrString>) {
        match share {
            Some(IntOrString::Int(count)) => self.at_least(path, Some(i64::from(*count)), 0),
            Some(IntOrString::String(text)) if percentage(text).is_none() => {
                let detail = "must be a number or a percentage from 0% to 100%";
                self.push(Problem::invalid_text(path, text, detail));
            }
            _ => {}
        }
    }

    fn texts(&mut self, path: &FieldPath, texts: &[String]) {
        let mut known = BTreeSet::new();
        for (index, text) in texts.iter().enumerate() {
            let path = path.index(index);
            if text.trim().is_empty() {
                self.push(Problem::required(&path, ""));
            } else if !known.insert(text) {
                self.push(Problem::duplicate(&path, &Value::from(text.as_str())));
            }
        }
    }

    fn conditions<'c>(
        &mut self,
        path: &FieldPath,
        conditions: impl Iterator<Item = (&'c String, &'c String, i64)>,
    ) {
        let mut known = BTreeSet::new();
        for (index, (type_, status, seconds)) in conditions.enumerate() {
            let path = path.index(index);
            self.condition_type(&path.field("type"), type_);
            if !STATUSES.contains(&status.as_str()) {
                self.push(Problem::not_supported(&path.field("status"), &json!(status), &STATUSES));
            }
            self.seconds(&path.field("durationSeconds"), Some(seconds));
            if !known.insert((type_, status)) {
                self.push(Problem::duplicate(&path.field("type"), &json!(type_)));
            }
        }
    }
}

/// The number before a percent sign, up to a hundred.
pub fn percentage(text: &str) -> Option<u8> {
    let digits = text.strip_suffix('%')?;
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|percent| is_plain && *percent <= 100)
}

#[cfg(test)]
mod tests;
