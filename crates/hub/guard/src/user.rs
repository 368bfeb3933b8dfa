//! Users: who a request is made by, and the names every Kubernetes client knows.
//!
//! Owns the well-known user and group names and the service-account naming scheme. Never authenticates.

use std::collections::BTreeMap;

use berth_text::names;
use serde_json::{Value, json};

/// Members may do anything; no policy is consulted.
pub const GROUP_MASTERS: &str = "system:masters";
/// Everybody who presented credentials.
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
/// Everybody who presented none.
pub const GROUP_UNAUTHENTICATED: &str = "system:unauthenticated";
/// All service accounts.
pub const GROUP_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// The user of requests without credentials.
pub const USER_ANONYMOUS: &str = "system:anonymous";
/// What every service account's user name starts with.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name.
    pub name: String,
    /// A stable identity behind the name, empty when there is none.
    pub uid: String,
    /// Groups, in the order the credentials gave them.
    pub groups: Vec<String>,
    /// Further facts about the credentials.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user in groups, without uid or extra.
    pub fn new<G: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = G>) -> Self {
        Self { name: name.into(), groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        Self::new(USER_ANONYMOUS, [GROUP_UNAUTHENTICATED])
    }

    /// The hub's own components, for which no policy is consulted.
    pub fn in_process() -> Self {
        Self::new("system:apiserver", [GROUP_MASTERS, GROUP_AUTHENTICATED])
    }

    /// The user a service account acts as.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let mut groups = service_account_groups(namespace);
        groups.push(GROUP_AUTHENTICATED.to_owned());
        Self {
            name: service_account_user(namespace, name),
            uid: uid.to_owned(),
            groups,
            extra: BTreeMap::new(),
        }
    }

    /// Whether this user is in `group`.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether policy is skipped for this user.
    pub fn is_master(&self) -> bool {
        self.in_group(GROUP_MASTERS)
    }

    /// Whether the request came without credentials.
    pub fn is_anonymous(&self) -> bool {
        self.name == USER_ANONYMOUS
    }

    /// As `UserInfo` of the authentication group, empty fields left out.
    pub fn to_value(&self) -> Value {
        let mut value = json!({});
        let map = value.as_object_mut().expect("the literal above is an object");
        if !self.name.is_empty() {
            map.insert("username".into(), json!(self.name));
        }
        if !self.uid.is_empty() {
            map.insert("uid".into(), json!(self.uid));
        }
        if !self.groups.is_empty() {
            map.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            map.insert("extra".into(), json!(self.extra));
        }
        value
    }

    /// Adds `system:authenticated`, as every successful authentication does, unless a login group is there.
    pub(crate) fn authenticated(mut self) -> Self {
        let known = self.groups.iter().any(|g| g == GROUP_AUTHENTICATED || g == GROUP_UNAUTHENTICATED);
        if !known && !self.is_anonymous() {
            self.groups.push(GROUP_AUTHENTICATED.to_owned());
        }
        self
    }
}

/// The user name of a service account.
pub fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups of every service account of a namespace.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![GROUP_SERVICE_ACCOUNTS.to_owned(), format!("{GROUP_SERVICE_ACCOUNTS}:{namespace}")]
}

/// Namespace and name out of a service account's user name; `None` when it is not one.
pub fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    (names::dns_label(namespace).is_empty() && names::dns_subdomain(name).is_empty())
        .then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_is_in_its_two_groups_and_authenticated() {
        let user = User::service_account("apps", "runner", "u-1");
        assert_eq!(user.name, "system:serviceaccount:apps:runner");
        assert_eq!(
            user.groups,
            ["system:serviceaccounts", "system:serviceaccounts:apps", "system:authenticated"]
        );
    }

    #[test]
    fn only_well_formed_names_split_into_namespace_and_name() {
        assert_eq!(split_service_account("system:serviceaccount:a:b.c"), Some(("a", "b.c")));
        for bad in
            ["alice", "system:serviceaccount:a", "system:serviceaccount:a:b:c", "system:serviceaccount::b"]
        {
            assert_eq!(split_service_account(bad), None, "{bad}");
        }
    }

    #[test]
    fn empty_fields_stay_out_of_the_user_info() {
        assert_eq!(User::new("a", Vec::<String>::new()).to_value(), json!({"username": "a"}));
    }
}
