//! Impersonation: acting as somebody else, by headers, if policy allows it.
//!
//! Owns the headers, the questions to policy and whom the request then acts as. Since Kubernetes 1.36 there are
//! constrained modes (who may be impersonated, and for which requests) tried before the plain `impersonate` verb;
//! a refusal is the first mode's that applies. Never touches a request: the caller drops the headers.

use std::collections::BTreeMap;

use berth_text::gotext::quote;
use berth_text::names;
use http::HeaderMap;

use crate::attributes::{Attributes, ResourceTarget, Target};
use crate::policy::PolicySet;
use crate::refusal::Refusal;
use crate::user::{
    GROUP_AUTHENTICATED, GROUP_MASTERS, GROUP_UNAUTHENTICATED, User, service_account_groups,
    split_service_account,
};

/// Header naming the user.
pub const HEADER_USER: &str = "impersonate-user";
/// Header naming a group, repeatable.
pub const HEADER_GROUP: &str = "impersonate-group";
/// Header naming the uid.
pub const HEADER_UID: &str = "impersonate-uid";
/// What headers with extra values start with.
pub const HEADER_EXTRA_PREFIX: &str = "impersonate-extra-";

const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";
const NODE_PREFIX: &str = "system:node:";
const GROUP_NODES: &str = "system:nodes";
const NODE_NAME_EXTRA: &str = "authentication.kubernetes.io/node-name";
/// From this many checks of one kind on, one wildcard check is tried first.
const MANY_CHECKS: usize = 4;

/// Whom the request of `attributes` shall act as: `Ok(None)` without impersonation headers.
pub fn impersonate(
    headers: &HeaderMap,
    attributes: &Attributes<'_>,
    policy: &PolicySet,
) -> Result<Option<User>, Refusal> {
    let Some(wanted) = wanted(headers)? else { return Ok(None) };
    let mut first = None;
    for mode in MODES {
        match mode.check(&wanted, attributes, policy) {
            Some(Ok(user)) => return Ok(Some(user)),
            Some(Err(refusal)) => first = first.or(Some(refusal)),
            None => {}
        }
    }
    // The plain mode always applies, so there is a refusal by now.
    Err(first.unwrap_or(Refusal::Internal("all impersonation modes failed".to_owned())))
}

/// The user the headers ask for, as they say it.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, Refusal> {
    let text = |value: &http::HeaderValue| {
        std::str::from_utf8(value.as_bytes())
            .map(str::to_owned)
            .map_err(|_| Refusal::BadRequest("an impersonation header is not UTF-8 text".to_owned()))
    };
    let first = |name: &str| headers.get(name).map_or_else(|| Ok(String::new()), text);
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(HEADER_EXTRA_PREFIX) {
            let values = headers.get_all(name).iter().map(text).collect::<Result<Vec<_>, _>>()?;
            extra.entry(unescape(key)).or_default().extend(values);
        }
    }
    let user = User {
        name: first(HEADER_USER)?,
        uid: first(HEADER_UID)?,
        groups: headers.get_all(HEADER_GROUP).iter().map(text).collect::<Result<_, _>>()?,
        extra,
    };
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    Err(Refusal::BadRequest(format!("requested {} without impersonating a user name", go_literal(&user))))
}

/// The user as the reference server prints it in this one message.
fn go_literal(user: &User) -> String {
    let list = |items: &[String]| {
        let quoted: Vec<String> = items.iter().map(|item| quote(item)).collect();
        format!("{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() {
        "[]string(nil)".to_owned()
    } else {
        format!("[]string{}", list(&user.groups))
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs: Vec<String> = user
            .extra
            .iter()
            .map(|(key, values)| format!("{}:[]string{}", quote(key), list(values)))
            .collect();
        format!("map[string][]string{{{}}}", pairs.join(", "))
    };
    format!("&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:{extra}}}", quote(&user.uid))
}

/// Percent-decoding as paths have it; a malformed key is taken as it stands.
fn unescape(key: &str) -> String {
    let bytes = key.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        if bytes[index] == b'%' {
            let Some(byte) = key.get(index + 1..index + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok())
            else {
                return key.to_owned();
            };
            out.push(byte);
            index += 3;
        } else {
            out.push(bytes[index]);
            index += 1;
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| key.to_owned())
}

/// A way to impersonate, in the order they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A service account bound to a node acts as that node.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// A service account.
    ServiceAccount,
    /// Anybody who is neither.
    UserInfo,
    /// The plain verb, which knows no constraints.
    Plain,
}

const MODES: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Plain];

impl Mode {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Plain => None,
        }
    }

    fn applies(self, wanted: &User, requestor: &User) -> bool {
        let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        let account = split_service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get(NODE_NAME_EXTRA);
                let own = own.filter(|values| values.len() == 1).and_then(|values| values.first());
                only_name
                    && split_service_account(&requestor.name).is_some()
                    && node.is_some_and(|node| own.is_some_and(|own| own == node))
            }
            Self::ArbitraryNode => only_name && node.is_some(),
            Self::ServiceAccount => only_name && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Plain => true,
        }
    }

    /// `None` when the mode does not apply.
    fn check(
        self,
        wanted: &User,
        attributes: &Attributes<'_>,
        policy: &PolicySet,
    ) -> Option<Result<User, Refusal>> {
        self.applies(wanted, attributes.user).then(|| {
            if let Some(name) = self.name() {
                let verb = format!("impersonate-on:{name}:{}", attributes.verb);
                policy.check(&Attributes { verb: &verb, ..*attributes })?;
            }
            self.check_user(wanted, attributes.user, policy)
        })
    }

    fn check_user(self, wanted: &User, requestor: &User, policy: &PolicySet) -> Result<User, Refusal> {
        let verb = self.name().map_or_else(|| "impersonate".to_owned(), |name| format!("impersonate:{name}"));
        let constrained = self != Self::Plain;
        // Plain impersonation keeps users and groups in the core group, where they have always been.
        let group = if constrained { AUTHENTICATION_GROUP } else { "" };
        let ask = Ask { requestor, verb: &verb, policy };
        let mut actual = wanted.clone();
        let mut target = ResourceTarget {
            group,
            version: "v1",
            resource: "users",
            name: &wanted.name,
            ..Default::default()
        };
        if constrained && let Some(node) = node_name(&wanted.name) {
            // A node's name is not asked about where it is the requestor's own: the right holds for any.
            let name = if self == Self::AssociatedNode { "*" } else { node };
            target = ResourceTarget { resource: "nodes", name, ..target };
            actual.groups = vec![GROUP_NODES.to_owned()];
        }
        if let Some((namespace, name)) = split_service_account(&wanted.name) {
            target = ResourceTarget { resource: "serviceaccounts", namespace, name, ..target };
            if wanted.groups.is_empty() {
                actual.groups = service_account_groups(namespace);
            }
        }
        ask.about(target)?;
        if !wanted.uid.is_empty() {
            ask.about(ResourceTarget {
                group: AUTHENTICATION_GROUP,
                version: "v1",
                resource: "uids",
                name: &wanted.uid,
                ..Default::default()
            })?;
        }
        ask.groups(&wanted.groups, group, constrained)?;
        ask.extra(&wanted.extra, constrained)?;
        let login = if actual.is_anonymous() { GROUP_UNAUTHENTICATED } else { GROUP_AUTHENTICATED };
        if !actual.in_group(login) && !actual.in_group(GROUP_UNAUTHENTICATED) {
            actual.groups.push(login.to_owned());
        }
        Ok(actual)
    }
}

fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| names::dns_subdomain(name).is_empty())
}

/// Questions of one requestor with one verb.
struct Ask<'a> {
    requestor: &'a User,
    verb: &'a str,
    policy: &'a PolicySet,
}

impl Ask<'_> {
    fn about(&self, target: ResourceTarget<'_>) -> Result<(), Refusal> {
        self.policy.check(&Attributes {
            user: self.requestor,
            verb: self.verb,
            target: Target::Resource(target),
        })
    }

    fn refuse(&self, target: ResourceTarget<'_>, reason: &str) -> Refusal {
        Attributes::resource(self.requestor, self.verb, target).forbidden(reason)
    }

    fn groups(&self, groups: &[String], api_group: &str, constrained: bool) -> Result<(), Refusal> {
        let target =
            ResourceTarget { group: api_group, version: "v1", resource: "groups", ..Default::default() };
        if constrained && !groups.is_empty() {
            if groups.iter().any(String::is_empty) {
                return Err(self.refuse(target, "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == GROUP_MASTERS) {
                let target = ResourceTarget { name: GROUP_MASTERS, ..target };
                return Err(self.refuse(target, "impersonating the system:masters group is not allowed"));
            }
            if groups.len() >= MANY_CHECKS && self.about(ResourceTarget { name: "*", ..target }).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|name| self.about(ResourceTarget { name, ..target }))
    }

    fn extra(&self, extra: &BTreeMap<String, Vec<String>>, constrained: bool) -> Result<(), Refusal> {
        let target = ResourceTarget {
            group: AUTHENTICATION_GROUP,
            version: "v1",
            resource: "userextras",
            ..Default::default()
        };
        if constrained && !extra.is_empty() {
            if let Some(problem) = extra.iter().find_map(|(key, values)| extra_problem(key, values)) {
                return Err(self.refuse(target, &problem));
            }
            let many =
                extra.len() >= MANY_CHECKS || extra.values().map(Vec::len).sum::<usize>() >= MANY_CHECKS;
            if many && self.about(ResourceTarget { subresource: "*", name: "*", ..target }).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.about(ResourceTarget { subresource: key, name: value, ..target })?;
            }
        }
        Ok(())
    }
}

fn extra_problem(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let prefixed = key
        .split_once('/')
        .is_some_and(|(host, path)| names::dns_subdomain(host).is_empty() && !path.is_empty());
    if !prefixed {
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: must be a \
             domain-prefixed path (such as \"acme.io/foo\")",
            quote(key)
        ));
    }
    if key != key.to_lowercase() {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {}", quote(key)));
    }
    if values.is_empty() {
        return Some("impersonating empty values in extra is not allowed".to_owned());
    }
    let empty = values.iter().any(String::is_empty);
    empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

#[cfg(test)]
#[path = "impersonation_tests.rs"]
mod tests;
