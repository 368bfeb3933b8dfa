//! Attributes: what a request wants to do, as policy sees it.
//!
//! Owns the vocabulary of authorisation and the texts of a refusal. Never consults a policy.

use berth_text::gotext::quote;

use crate::refusal::Refusal;
use crate::user::User;

/// The resource a request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceTarget<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// API version; policy ignores it.
    pub version: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Subresource, empty when none.
    pub subresource: &'a str,
    /// Namespace, empty at cluster scope and for requests over all namespaces.
    pub namespace: &'a str,
    /// Object name, empty for lists and creates.
    pub name: &'a str,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// An API resource.
    Resource(ResourceTarget<'a>),
    /// Any other path, such as `/version`.
    Path(&'a str),
}

/// One question to policy: may this user do this to that?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a User,
    /// API verb (`get`, `list`, `watch`, …) or the lower-case HTTP method for paths.
    pub verb: &'a str,
    /// About what.
    pub target: Target<'a>,
}

impl<'a> Attributes<'a> {
    /// A question about a resource.
    pub fn resource(user: &'a User, verb: &'a str, target: ResourceTarget<'a>) -> Self {
        Self { user, verb, target: Target::Resource(target) }
    }

    /// A question about a path.
    pub fn path(user: &'a User, verb: &'a str, path: &'a str) -> Self {
        Self { user, verb, target: Target::Path(path) }
    }

    /// Namespace the question is asked in, empty for none.
    pub fn namespace(&self) -> &'a str {
        match self.target {
            Target::Resource(target) => target.namespace,
            Target::Path(_) => "",
        }
    }

    /// The 403 for this question; `reason` is the verdict's, possibly empty.
    pub fn forbidden(&self, reason: &str) -> Refusal {
        let text = sanitize(&self.forbidden_text());
        let detail = if reason.is_empty() { text } else { format!("{text}: {reason}") };
        let (group, resource, name) = match self.target {
            Target::Resource(target) => (target.group, target.resource, target.name),
            Target::Path(_) => ("", "", ""),
        };
        Refusal::Forbidden {
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            detail,
        }
    }

    fn forbidden_text(&self) -> String {
        let (user, verb) = (quote(&self.user.name), self.verb);
        match self.target {
            Target::Path(path) => format!("User {user} cannot {verb} path {}", quote(path)),
            Target::Resource(target) => {
                let resource = quote(&combined(target.resource, target.subresource));
                let group = quote(target.group);
                if target.namespace.is_empty() {
                    format!(
                        "User {user} cannot {verb} resource {resource} in API group {group} at the cluster scope"
                    )
                } else {
                    let namespace = quote(target.namespace);
                    format!(
                        "User {user} cannot {verb} resource {resource} in API group {group} in the namespace {namespace}"
                    )
                }
            }
        }
    }
}

/// `resource` or `resource/subresource`.
pub(crate) fn combined(resource: &str, subresource: &str) -> String {
    if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") }
}

/// A refusal must never read as HTML to a browser.
fn sanitize(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placements<'a>(namespace: &'a str, name: &'a str) -> ResourceTarget<'a> {
        ResourceTarget {
            group: "cluster.open-cluster-management.io",
            version: "v1beta1",
            resource: "placements",
            namespace,
            name,
            ..ResourceTarget::default()
        }
    }

    #[test]
    fn a_refused_list_names_resource_group_and_namespace() {
        let user = User::anonymous();
        let refusal = Attributes::resource(&user, "list", placements("default", "")).forbidden("");
        assert_eq!(
            refusal.message(),
            "placements.cluster.open-cluster-management.io is forbidden: User \"system:anonymous\" cannot list \
             resource \"placements\" in API group \"cluster.open-cluster-management.io\" in the namespace \"default\""
        );
        assert_eq!(
            refusal.details().unwrap(),
            serde_json::json!({"group": "cluster.open-cluster-management.io", "kind": "placements"})
        );
    }

    #[test]
    fn a_refused_subresource_at_cluster_scope_carries_name_and_reason() {
        let user = User::new("x<y", Vec::<String>::new());
        let target =
            ResourceTarget { resource: "nodes", subresource: "proxy", name: "n1", ..Default::default() };
        let refusal = Attributes::resource(&user, "create", target).forbidden("RBAC: why");
        assert_eq!(
            refusal.message(),
            "nodes \"n1\" is forbidden: User \"x&lt;y\" cannot create resource \"nodes/proxy\" in API group \"\" at the \
             cluster scope: RBAC: why"
        );
    }

    #[test]
    fn a_refused_path_has_no_object_in_front() {
        let user = User::anonymous();
        let refusal = Attributes::path(&user, "get", "/metrics").forbidden("");
        assert_eq!(refusal.message(), "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"");
        assert_eq!(refusal.details(), Some(serde_json::json!({})));
    }
}
