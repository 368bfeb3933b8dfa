//! Matching: whether a webhook wants to hear of a request.
//!
//! Owns rules, scopes, selectors and equivalent versions. Never evaluates conditions before all else matched.

use serde_json::Value;

use super::configuration::Webhook;
use super::exchange::versioned;
use super::{Admission, Kind, Operation, Resource};
use crate::refusal::Refusal;
use crate::rule::strings;
use crate::token::ObjectLookup;

/// Groups whose objects decide about webhooks are never shown to webhooks, or one could lock everybody out.
const EXEMPT_GROUP: &str = "admissionregistration.k8s.io";

/// One rule of a webhook.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Any,
    Namespaced,
    Cluster,
    Unknown,
}

impl Rule {
    pub(super) fn read(value: &Value) -> Self {
        Self {
            operations: strings(value.get("operations")),
            groups: strings(value.get("apiGroups")),
            versions: strings(value.get("apiVersions")),
            resources: strings(value.get("resources")),
            scope: match value["scope"].as_str() {
                None | Some("*") => Scope::Any,
                Some("Namespaced") => Scope::Namespaced,
                Some("Cluster") => Scope::Cluster,
                Some(_) => Scope::Unknown,
            },
        }
    }

    fn matches(&self, admission: &Admission<'_>, resource: Resource<'_>) -> bool {
        // The namespace of a Namespace object is its own name, yet the object itself is cluster-scoped.
        let cluster_scoped =
            (resource.group.is_empty() && resource.version == "v1" && resource.resource == "namespaces")
                || admission.namespace.is_empty();
        let scope = match self.scope {
            Scope::Any => true,
            Scope::Namespaced => !cluster_scoped,
            Scope::Cluster => cluster_scoped,
            Scope::Unknown => false,
        };
        scope
            && has(&self.operations, admission.operation.as_str())
            && has(&self.groups, resource.group)
            && has(&self.versions, resource.version)
            && self.resources.iter().any(|own| {
                let (own, subresource) = own.split_once('/').unwrap_or((own, ""));
                (own == "*" || own == resource.resource)
                    && (subresource == "*" || subresource == admission.subresource)
            })
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|own| own == "*" || own == wanted)
}

/// How a webhook wants to see a request: in which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invocation<'a> {
    pub(super) resource: Resource<'a>,
    pub(super) kind: Kind<'a>,
}

/// Whether any webhook may hear of this request at all.
pub(super) fn is_exempt(admission: &Admission<'_>) -> bool {
    admission.kind.group == EXEMPT_GROUP
}

/// How to call `hook` for this request; `Ok(None)` when it does not apply.
pub(super) fn invocation<'a>(
    hook: &Webhook,
    admission: &Admission<'a>,
    lookup: &dyn ObjectLookup,
) -> Result<Option<Invocation<'a>>, Refusal> {
    // Errors of the selectors count only if the rules match: a webhook that does not apply must not stop anything.
    let namespace = matches_namespace(hook, admission, lookup);
    let object = matches_object(hook, admission);
    if matches!(namespace, Ok(false)) || matches!(object, Ok(false)) {
        return Ok(None);
    }
    let Some(found) = matching_version(hook, admission) else { return Ok(None) };
    namespace?;
    object?;
    if hook.conditions.is_empty() {
        return Ok(Some(found));
    }
    let object = admission.object.as_ref().map(|object| versioned(object, found.kind));
    let old = admission.old_object.map(|object| versioned(object, found.kind));
    match hook.conditions.hold(admission, found, object.as_ref(), old.as_ref()) {
        Ok(true) => Ok(Some(found)),
        Ok(false) => Ok(None),
        Err(_) if hook.ignores_failure => Ok(None),
        Err(text) => Err(Refusal::Forbidden {
            group: admission.resource.group.to_owned(),
            resource: admission.resource.resource.to_owned(),
            name: admission.name.to_owned(),
            detail: text,
        }),
    }
}

fn matching_version<'a>(hook: &Webhook, admission: &Admission<'a>) -> Option<Invocation<'a>> {
    if hook.rules.iter().any(|rule| rule.matches(admission, admission.resource)) {
        return Some(Invocation { resource: admission.resource, kind: admission.kind });
    }
    if !hook.equivalent {
        return None;
    }
    hook.rules.iter().find_map(|rule| {
        let others = admission.equivalents.iter().filter(|(resource, _)| *resource != admission.resource);
        others
            .filter(|(resource, _)| rule.matches(admission, *resource))
            .map(|(resource, kind)| Invocation { resource: *resource, kind: *kind })
            .next()
    })
}

fn matches_object(hook: &Webhook, admission: &Admission<'_>) -> Result<bool, Refusal> {
    let selector = hook.object_selector.as_ref().map_err(|text| Refusal::Internal(text.clone()))?;
    let matches = |object: Option<&Value>| object.is_some_and(|object| selector.matches_object(object));
    Ok(selector.is_everything() || matches(admission.object.as_ref()) || matches(admission.old_object))
}

fn matches_namespace(
    hook: &Webhook,
    admission: &Admission<'_>,
    lookup: &dyn ObjectLookup,
) -> Result<bool, Refusal> {
    let is_namespace = admission.resource.resource == "namespaces";
    if admission.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let selector = hook.namespace_selector.as_ref().map_err(|text| Refusal::Internal(text.clone()))?;
    if selector.is_everything() {
        return Ok(true);
    }
    // A namespace being written is judged by its new labels.
    let writes = matches!(admission.operation, Operation::Create | Operation::Update);
    if is_namespace
        && admission.subresource.is_empty()
        && writes
        && let Some(object) = &admission.object
    {
        return Ok(selector.matches_object(object));
    }
    let found = lookup.find("namespaces", "", admission.namespace).ok_or_else(|| Refusal::NotFound {
        group: String::new(),
        resource: "namespaces".to_owned(),
        name: admission.namespace.to_owned(),
    })?;
    Ok(selector.matches_object(&found))
}
