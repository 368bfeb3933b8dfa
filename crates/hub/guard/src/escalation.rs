//! Escalation: nobody may give away more than they hold.
//!
//! Owns the check on writes of roles and bindings, with the verbs `escalate` and `bind` as the ways around it. Never
//! decides whether the write itself is allowed: that question was asked before.

use berth_text::gotext::{quote, quote_list};
use serde_json::Value;

use crate::attributes::{Attributes, ResourceTarget};
use crate::binding::{RoleKind, RoleRef};
use crate::cover::{Missing, covers, descriptions};
use crate::policy::{PolicyKind, PolicySet, RBAC_GROUP, Unresolved};
use crate::refusal::{Refusal, aggregate};
use crate::rule::{ALL, PolicyRule};
use crate::user::User;

/// A write of a role or binding about to happen.
#[derive(Clone, Copy, Debug)]
pub struct PolicyWrite<'a> {
    /// Who writes.
    pub user: &'a User,
    /// What kind of object.
    pub kind: PolicyKind,
    /// The namespace of the request, empty for cluster kinds.
    pub namespace: &'a str,
    /// The name in the request's path, empty for creates.
    pub request_name: &'a str,
    /// The object to be stored.
    pub object: &'a Value,
    /// The object stored now, if any.
    pub old: Option<&'a Value>,
}

impl PolicySet {
    /// `Ok`, or the refusal when the write would give away what the writer does not hold.
    pub fn check_write(&self, write: &PolicyWrite<'_>) -> Result<(), Refusal> {
        if write.user.is_master() {
            return Ok(());
        }
        match write.kind {
            PolicyKind::Role | PolicyKind::ClusterRole => self.check_role(write),
            PolicyKind::RoleBinding | PolicyKind::ClusterRoleBinding => self.check_binding(write),
        }
    }

    fn check_role(&self, write: &PolicyWrite<'_>) -> Result<(), Refusal> {
        let target = ResourceTarget {
            group: RBAC_GROUP,
            version: ALL,
            resource: write.kind.plural(),
            namespace: write.namespace,
            name: write.request_name,
            ..ResourceTarget::default()
        };
        if self.authorize(&Attributes::resource(write.user, "escalate", target)).allowed
            || only_lifecycle(write)
        {
            return Ok(());
        }
        self.check_held(write, &PolicyRule::read_all(write.object))?;
        let aggregates = write.kind == PolicyKind::ClusterRole
            && (aggregates(write.object) || write.old.is_some_and(aggregates));
        // What an aggregated role will hold is anybody's guess, so its author must hold everything.
        if aggregates && self.check_held(write, &everything()).is_err() {
            return Err(refuse(
                write,
                "must have cluster-admin privileges to use the aggregationRule".to_owned(),
            ));
        }
        Ok(())
    }

    fn check_binding(&self, write: &PolicyWrite<'_>) -> Result<(), Refusal> {
        if only_lifecycle(write) {
            return Ok(());
        }
        let reference = RoleRef::read(write.object);
        let resource = match reference.kind {
            RoleKind::Role => "roles",
            RoleKind::ClusterRole => "clusterroles",
            RoleKind::Other => {
                let text = format!("unsupported role reference kind: {}", quote(&reference.kind_text));
                return Err(Refusal::Internal(text));
            }
        };
        let target = ResourceTarget {
            group: &reference.group,
            version: ALL,
            resource,
            namespace: write.namespace,
            name: &reference.name,
            ..ResourceTarget::default()
        };
        if self.authorize(&Attributes::resource(write.user, "bind", target)).allowed {
            return Ok(());
        }
        // The reference server names the resource that was asked for with the name of the role that is missing.
        let rules = self.resolve(&reference, write.namespace).map_err(|_| Refusal::NotFound {
            group: RBAC_GROUP.to_owned(),
            resource: write.kind.plural().to_owned(),
            name: reference.name.to_string(),
        })?;
        self.check_held(write, rules)
    }

    fn check_held(&self, write: &PolicyWrite<'_>, wanted: &[PolicyRule]) -> Result<(), Refusal> {
        let (held, unresolved) = self.rules_and_unresolved(write.user, write.namespace);
        let missing = match covers(&held, wanted) {
            Ok(()) => return Ok(()),
            Err(Missing::Rules(missing)) => descriptions(&missing).join("\n"),
            Err(Missing::TooMany) => "more permissions than can be listed; split the role".to_owned(),
        };
        let mut text = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{missing}",
            quote(&write.user.name),
            quote_list(&write.user.groups)
        );
        if !unresolved.is_empty() {
            text.push_str("; resolution errors: [");
            text.push_str(&aggregate(unresolved.iter().map(Unresolved::as_stored).collect()));
            text.push(']');
        }
        Err(refuse(write, text))
    }
}

fn refuse(write: &PolicyWrite<'_>, detail: String) -> Refusal {
    Refusal::Forbidden {
        group: RBAC_GROUP.to_owned(),
        resource: write.kind.plural().to_owned(),
        name: write.object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        detail,
    }
}

fn aggregates(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|list| !list.is_empty())
}

fn everything() -> [PolicyRule; 2] {
    let star = || vec![ALL.to_owned()];
    [
        PolicyRule { verbs: star(), api_groups: star(), resources: star(), ..PolicyRule::default() },
        PolicyRule { verbs: star(), non_resource_urls: star(), ..PolicyRule::default() },
    ]
}

/// Writes that change only what garbage collection changes must pass, or nothing could ever be deleted.
fn only_lifecycle(write: &PolicyWrite<'_>) -> bool {
    let strip = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for key in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
                metadata.remove(key);
            }
        }
        object
    };
    write.old.is_some_and(|old| strip(old) == strip(write.object))
}

#[cfg(test)]
#[path = "escalation_tests.rs"]
mod tests;
