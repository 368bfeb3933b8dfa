//! What namespaces allow: nothing new in one that is missing or ending, and no end for the three that must stay.
//!
//! Owns the checks as pure functions of the namespace object. Looking the namespace up is the caller's.

use berth_hub_wire::{Cause, GroupResource, Status};
use serde_json::Value;

use crate::registry::Resource;

use super::meta;

/// Namespaces that cannot be deleted.
pub(crate) const UNDELETABLE: [&str; 3] = ["default", "kube-system", "kube-public"];
/// Namespaces that exist from the start.
pub(crate) const INITIAL: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// What is about to be done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Make it.
    Create,
    /// Change it.
    Update,
    /// Remove it.
    Delete,
}

/// Whether the namespaces allow this. `holder` is the object's namespace; it is not asked for where none is needed.
pub(crate) fn check(
    resource: &Resource,
    namespace: &str,
    name: &str,
    intent: Intent,
    holder: Option<&Value>,
) -> Result<(), Status> {
    if is_namespaces(resource) {
        if intent == Intent::Delete && UNDELETABLE.contains(&name) {
            return Err(Status::forbidden(
                resource.group_resource(),
                name,
                "this namespace may not be deleted",
            ));
        }
        return Ok(());
    }
    if !needs_namespace(resource, namespace, intent) {
        return Ok(());
    }
    let Some(holder) = holder else {
        return Err(Status::not_found(GroupResource::new("", "namespaces"), namespace));
    };
    let phase = meta::at(holder, &["status", "phase"]).and_then(Value::as_str);
    if intent == Intent::Create && phase == Some("Terminating") {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = Cause::new(
            "NamespaceTerminating",
            format!("namespace {namespace} is being terminated"),
            "metadata.namespace",
        );
        return Err(Status::forbidden(resource.group_resource(), name, &why).with_cause(cause));
    }
    Ok(())
}

/// Whether [`check`] looks at the namespace object at all, so that callers need not read it.
pub(crate) fn needs_namespace(resource: &Resource, namespace: &str, intent: Intent) -> bool {
    // A review of access must not tell who asks whether the namespace exists.
    let review =
        &*resource.group == "authorization.k8s.io" && &*resource.plural == "localsubjectaccessreviews";
    intent != Intent::Delete && !namespace.is_empty() && !is_namespaces(resource) && !review
}

/// Whether this is the resource of namespaces themselves.
pub(crate) fn is_namespaces(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.plural == "namespaces"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::fixtures::{builtin, placements, shown};

    #[test]
    fn nothing_is_made_in_a_namespace_that_is_missing() {
        let status = check(&placements(), "nons", "p1", Intent::Create, None).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "namespaces \"nons\" not found", "reason": "NotFound",
                "details": {"name": "nons", "kind": "namespaces"}, "code": 404,
            })
        );
    }

    #[test]
    fn nothing_is_made_in_a_namespace_that_ends_but_changes_go_on() {
        let configs = builtin("", "configmaps");
        let ending = json!({"status": {"phase": "Terminating"}});
        let status = check(&configs, "t1", "x", Intent::Create, Some(&ending)).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "configmaps \"x\" is forbidden: unable to create new content in namespace t1 because it is being \
                            terminated",
                "reason": "Forbidden",
                "details": {"name": "x", "kind": "configmaps", "causes": [{
                    "reason": "NamespaceTerminating",
                    "message": "namespace t1 is being terminated",
                    "field": "metadata.namespace",
                }]},
                "code": 403,
            })
        );
        assert_eq!(check(&configs, "t1", "x", Intent::Update, Some(&ending)), Ok(()));
        assert_eq!(check(&configs, "t1", "x", Intent::Delete, None), Ok(()));
    }

    #[test]
    fn three_namespaces_stay() {
        let namespaces = builtin("", "namespaces");
        let status = check(&namespaces, "", "default", Intent::Delete, None).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "namespaces \"default\" is forbidden: this namespace may not be deleted",
                "reason": "Forbidden", "details": {"name": "default", "kind": "namespaces"}, "code": 403,
            })
        );
        assert_eq!(check(&namespaces, "", "kube-node-lease", Intent::Delete, None), Ok(()));
        assert_eq!(check(&namespaces, "", "new", Intent::Create, None), Ok(()));
    }
}
