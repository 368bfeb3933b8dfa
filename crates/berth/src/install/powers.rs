//! Who else gives our accounts rights: bindings on a server that no installation of these flags has.
//!
//! What is printed can be compared object by object; a binding that somebody made beside it is found only by asking whom each
//! binding of the cluster names. Owns which subjects are ours. Only reads.

use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::object::Identity;
use super::rbac::{VERSION, account, user};
use super::{CONTROLLERS, WEBHOOK};

/// Bindings that are asked for at once: a large cluster has tens of thousands.
const PAGE: u32 = 500;

/// A binding that names an account of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Power {
    /// The binding.
    pub(super) identity: Identity,
    /// What it gives, as `ClusterRole cluster-admin`.
    pub(super) role: String,
    /// To whom, as `berth` or `the group system:serviceaccounts:berth-system`.
    pub(super) holders: Vec<String>,
}

/// Every binding on a server that names an account of ours in a namespace; the error comes with the kind that was asked for.
pub(super) async fn powers(
    client: &Client,
    namespace: &str,
) -> Result<Vec<Power>, (&'static str, kube::Error)> {
    let mut powers = Vec::new();
    let everywhere =
        all::<ClusterRoleBinding>(client).await.map_err(|error| ("ClusterRoleBindings", error))?;
    for ClusterRoleBinding { metadata, role_ref, subjects } in everywhere {
        let holders = holders(subjects.as_deref().unwrap_or_default(), namespace, is_own(&role_ref));
        powers.extend(power("ClusterRoleBinding", None, metadata.name, &role_ref, holders));
    }
    let somewhere = all::<RoleBinding>(client).await.map_err(|error| ("RoleBindings", error))?;
    for RoleBinding { metadata, role_ref, subjects } in somewhere {
        let holders = holders(subjects.as_deref().unwrap_or_default(), namespace, is_own(&role_ref));
        powers.extend(power("RoleBinding", metadata.namespace, metadata.name, &role_ref, holders));
    }
    Ok(powers)
}

async fn all<K>(client: &Client) -> kube::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let mut parameters = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = api.list(&parameters).await?;
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn power(
    kind: &str,
    namespace: Option<String>,
    name: Option<String>,
    role: &RoleRef,
    holders: Vec<String>,
) -> Option<Power> {
    let identity = Identity {
        api_version: VERSION.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.unwrap_or_default(),
        name: name.unwrap_or_default(),
    };
    (!holders.is_empty()).then(|| Power { identity, role: format!("{} {}", role.kind, role.name), holders })
}

/// Whether a role is one of Kubernetes' own, which it and distributions give to everybody: to discover what is served, to find out
/// who one is, to pull images.
fn is_own(role: &RoleRef) -> bool {
    role.name.starts_with("system:")
}

/// Which of the subjects are ours. An account may be named as the user that it is, and by a group of accounts or of everybody, unless
/// what that is given is Kubernetes' own.
fn holders(subjects: &[Subject], namespace: &str, is_given_to_all: bool) -> Vec<String> {
    let own = format!("system:serviceaccounts:{namespace}");
    let groups = [own.as_str(), "system:serviceaccounts", "system:authenticated"];
    let holder = |subject: &Subject| match &*subject.kind {
        "ServiceAccount" if subject.namespace.as_deref() == Some(namespace) => {
            let accounts = [CONTROLLERS, WEBHOOK].map(account);
            accounts.into_iter().find(|account| *account == subject.name)
        }
        "User" => {
            let of = [CONTROLLERS, WEBHOOK].into_iter().find(|one| user(one, namespace) == subject.name);
            of.map(account)
        }
        "Group" if !is_given_to_all && groups.contains(&&*subject.name) => {
            Some(format!("the group {}", subject.name))
        }
        _ => None,
    };
    subjects.iter().filter_map(holder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(kind: &str, name: &str, namespace: Option<&str>) -> Subject {
        Subject {
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            ..Subject::default()
        }
    }

    #[test]
    fn an_account_is_known_by_all_of_its_names() {
        let ours = [
            subject("ServiceAccount", "berth", Some("fleet")),
            subject("ServiceAccount", "berth-webhook", Some("fleet")),
            subject("User", "system:serviceaccount:fleet:berth", None),
            subject("Group", "system:serviceaccounts:fleet", None),
        ];
        let group = "the group system:serviceaccounts:fleet";
        assert_eq!(holders(&ours, "fleet", false), ["berth", "berth-webhook", "berth", group]);
        assert_eq!(holders(&ours, "fleet", true), ["berth", "berth-webhook", "berth"]);
        assert!(holders(&ours, "elsewhere", false).is_empty());
    }

    #[test]
    fn what_everybody_is_given_is_ours_too() {
        for group in ["system:serviceaccounts", "system:authenticated"] {
            let all = [subject("Group", group, None)];
            assert_eq!(holders(&all, "fleet", false), [format!("the group {group}")]);
            assert!(holders(&all, "fleet", true).is_empty(), "Kubernetes' own roles");
        }
        let role = |name: &str| RoleRef { name: name.to_owned(), ..RoleRef::default() };
        assert!(is_own(&role("system:discovery")) && !is_own(&role("cluster-admin")));
    }

    #[test]
    fn others_are_not_ours() {
        let others = [
            subject("ServiceAccount", "berth", Some("elsewhere")),
            subject("ServiceAccount", "berth", None),
            subject("ServiceAccount", "default", Some("fleet")),
            subject("User", "berth", None),
            subject("Group", "berth", None),
            subject("Group", "system:serviceaccounts:elsewhere", None),
        ];
        assert!(holders(&others, "fleet", false).is_empty());
    }
}
