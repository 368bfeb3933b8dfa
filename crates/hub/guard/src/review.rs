//! Access reviews: questions to policy asked through the API, answered as objects.
//!
//! Owns validation and the answers of SubjectAccessReview, its self and local forms, and SelfSubjectRulesReview.
//! Never decides who may ask: that was asked of policy before.

use berth_text::gotext::quote;
use serde_json::{Map, Value, json};

use crate::attributes::{Attributes, ResourceTarget, Target};
use crate::policy::{PolicySet, Verdict};
use crate::refusal::{FieldProblem, Refusal, aggregate};
use crate::rule::{PolicyRule, strings};
use crate::shape::{object_at, set};
use crate::user::User;

const GROUP: &str = "authorization.k8s.io";

/// Answers a SubjectAccessReview.
pub fn subject_access_review(policy: &PolicySet, body: &Value) -> Result<Value, Refusal> {
    let mut problems = spec_problems(body, true);
    if !metadata_is_empty(body, &[]) {
        problems.push(FieldProblem::invalid("metadata", &body["metadata"].to_string(), "must be empty"));
    }
    refuse(problems)?;
    Ok(answer(body, "SubjectAccessReview", &ask(policy, &subject(&body["spec"]), body)))
}

/// Answers a SelfSubjectAccessReview of `user`.
pub fn self_subject_access_review(policy: &PolicySet, user: &User, body: &Value) -> Result<Value, Refusal> {
    let mut problems = spec_problems(body, false);
    if !metadata_is_empty(body, &[]) {
        problems.push(FieldProblem::invalid("metadata", &body["metadata"].to_string(), "must be empty"));
    }
    refuse(problems)?;
    Ok(answer(body, "SelfSubjectAccessReview", &ask(policy, user, body)))
}

/// Answers a LocalSubjectAccessReview posted to `namespace`; `metadata.namespace` must have been filled in.
pub fn local_subject_access_review(
    policy: &PolicySet,
    namespace: &str,
    body: &Value,
) -> Result<Value, Refusal> {
    let mut problems = spec_problems(body, true);
    if !metadata_is_empty(body, &["namespace"]) {
        let detail = "must be empty except for namespace";
        problems.push(FieldProblem::invalid("metadata", &body["metadata"].to_string(), detail));
    }
    let own = body["metadata"]["namespace"].as_str().unwrap_or_default();
    if let Some(resource) = object(&body["spec"], "resourceAttributes") {
        let asked = resource.get("namespace").and_then(Value::as_str).unwrap_or_default();
        if asked != own {
            let detail = "must match metadata.namespace";
            problems.push(FieldProblem::invalid("spec.resourceAttributes.namespace", &quote(asked), detail));
        }
    }
    if let Some(path) = object(&body["spec"], "nonResourceAttributes") {
        let value = go_path_attributes(path);
        problems.push(FieldProblem::invalid(
            "spec.nonResourceAttributes",
            &value,
            "disallowed on this kind of request",
        ));
    }
    refuse(problems)?;
    if namespace.is_empty() {
        return Err(Refusal::BadRequest("namespace is required on this type: ".to_owned()));
    }
    if namespace != own {
        let text = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
        return Err(Refusal::BadRequest(text));
    }
    Ok(answer(body, "LocalSubjectAccessReview", &ask(policy, &subject(&body["spec"]), body)))
}

/// Answers a SelfSubjectRulesReview of `user`.
pub fn self_subject_rules_review(policy: &PolicySet, user: &User, body: &Value) -> Result<Value, Refusal> {
    let namespace = body["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Refusal::BadRequest("no namespace on request".to_owned()));
    }
    let (rules, missing) = policy.rules_for(user, namespace);
    let resource_rules: Vec<Value> =
        rules.iter().filter(|rule| !rule.resources.is_empty()).map(|rule| rule_value(rule, true)).collect();
    let path_rules: Vec<Value> = rules
        .iter()
        .filter(|rule| !rule.non_resource_urls.is_empty())
        .map(|rule| rule_value(rule, false))
        .collect();
    let mut status =
        json!({"resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": false});
    if !missing.is_empty() {
        status["evaluationError"] = json!(aggregate(missing));
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {},
        "status": status,
    }))
}

/// Verbs are always there, the rest only where it says something.
fn rule_value(rule: &PolicyRule, resources: bool) -> Value {
    let mut map = Map::new();
    map.insert("verbs".to_owned(), json!(rule.verbs));
    let lists: &[(&str, &Vec<String>)] = if resources {
        &[
            ("apiGroups", &rule.api_groups),
            ("resources", &rule.resources),
            ("resourceNames", &rule.resource_names),
        ]
    } else {
        &[("nonResourceURLs", &rule.non_resource_urls)]
    };
    for (key, list) in lists {
        if !list.is_empty() {
            map.insert((*key).to_owned(), json!(list));
        }
    }
    Value::Object(map)
}

fn object<'a>(spec: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    spec.get(key).and_then(Value::as_object)
}

fn subject(spec: &Value) -> User {
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let extra = object(spec, "extra").into_iter().flatten();
    User {
        name: text("user"),
        uid: text("uid"),
        groups: strings(spec.get("groups")),
        extra: extra.map(|(key, values)| (key.clone(), strings(Some(values)))).collect(),
    }
}

fn ask(policy: &PolicySet, user: &User, body: &Value) -> Verdict {
    let spec = &body["spec"];
    if let Some(resource) = object(spec, "resourceAttributes") {
        let text = |key: &str| resource.get(key).and_then(Value::as_str).unwrap_or_default();
        let target = ResourceTarget {
            group: text("group"),
            version: text("version"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        };
        return policy.authorize(&Attributes { user, verb: text("verb"), target: Target::Resource(target) });
    }
    let text = |key: &str| spec["nonResourceAttributes"][key].as_str().unwrap_or_default();
    policy.authorize(&Attributes::path(user, text("verb"), text("path")))
}

fn answer(body: &Value, kind: &str, verdict: &Verdict) -> Value {
    let mut answer = body.clone();
    set(&mut answer, &["apiVersion"], json!("authorization.k8s.io/v1"));
    set(&mut answer, &["kind"], json!(kind));
    object_at(&mut answer, &["metadata"]);
    let mut status = Map::from_iter([("allowed".to_owned(), json!(verdict.allowed))]);
    if !verdict.reason.is_empty() {
        status.insert("reason".to_owned(), json!(verdict.reason));
    }
    set(&mut answer, &["status"], Value::Object(status));
    answer
}

fn refuse(problems: Vec<FieldProblem>) -> Result<(), Refusal> {
    if problems.is_empty() {
        return Ok(());
    }
    // The reference server has lost the kind by the time it says this.
    Err(Refusal::Invalid { group: GROUP.to_owned(), kind: String::new(), name: String::new(), problems })
}

/// Managed fields are the server's own doing and never held against the sender.
fn metadata_is_empty(body: &Value, allowed: &[&str]) -> bool {
    body.get("metadata").and_then(Value::as_object).is_none_or(|metadata| {
        metadata.iter().all(|(key, value)| {
            let empty = match value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty(),
                _ => false,
            };
            empty || key == "managedFields" || allowed.contains(&key.as_str())
        })
    })
}

/// Path attributes as the reference server prints its own type.
fn go_path_attributes(map: &Map<String, Value>) -> String {
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    json!({"Path": text("path"), "Verb": text("verb")}).to_string()
}

fn spec_problems(body: &Value, names_subject: bool) -> Vec<FieldProblem> {
    let spec = &body["spec"];
    let mut problems = Vec::new();
    let (resource, path) = (object(spec, "resourceAttributes"), object(spec, "nonResourceAttributes"));
    match (resource, path) {
        (Some(_), Some(path)) => problems.push(FieldProblem::invalid(
            "spec.nonResourceAttributes",
            &go_path_attributes(path),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => problems.push(FieldProblem::invalid(
            "spec.resourceAttributes",
            "null",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    let nobody =
        spec["user"].as_str().unwrap_or_default().is_empty() && strings(spec.get("groups")).is_empty();
    if names_subject && nobody {
        problems.push(FieldProblem::invalid(
            "spec.user",
            "\"\"",
            "at least one of user or group must be specified",
        ));
    }
    for kind in ["fieldSelector", "labelSelector"] {
        if let Some(selector) = resource.and_then(|resource| resource.get(kind)).and_then(Value::as_object) {
            selector_problems(selector, &format!("spec.resourceAttributes.{kind}"), kind, &mut problems);
        }
    }
    problems
}

fn selector_problems(
    selector: &Map<String, Value>,
    path: &str,
    kind: &str,
    problems: &mut Vec<FieldProblem>,
) {
    let raw = selector.get("rawSelector").and_then(Value::as_str).unwrap_or_default();
    let requirements = selector.get("requirements").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if !raw.is_empty() && !requirements.is_empty() {
        let detail = "may not specified at the same time as requirements";
        problems.push(FieldProblem::invalid(format!("{path}.rawSelector"), &quote(raw), detail));
    }
    if raw.is_empty() && requirements.is_empty() {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        problems.push(FieldProblem::required(format!("{path}.requirements"), &detail));
    }
    for (index, requirement) in requirements.iter().enumerate() {
        let at = format!("{path}.requirements[{index}]");
        let key = requirement["key"].as_str().unwrap_or_default();
        if key.is_empty() && kind == "fieldSelector" {
            problems.push(FieldProblem::required(format!("{at}.key"), "must be specified"));
        }
        let values = strings(requirement.get("values"));
        match requirement["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                problems.push(FieldProblem::required(format!("{at}.values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                problems.push(FieldProblem::forbidden(format!("{at}.values"), detail));
            }
            _ => {}
        }
        if key.is_empty() && kind == "labelSelector" {
            let detail = "name part must be non-empty";
            problems.push(FieldProblem::invalid(format!("{at}.key"), "\"\"", detail));
        }
    }
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
