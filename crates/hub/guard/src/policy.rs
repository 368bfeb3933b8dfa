//! The policy set: all roles and bindings, indexed by who they are bound to, and the verdicts they give.
//!
//! Kept up to date object by object from raw JSON. Owns evaluation; never does I/O, never guesses: a binding
//! whose role is missing grants nothing and is named in the reason of a denial.
//!
//! ```text
//! user, groups ──index──▶ bindings ──roleRef──▶ rules ──▶ Verdict
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use berth_text::gotext::quote;
use serde_json::Value;

use crate::attributes::Attributes;
use crate::binding::{Binding, RoleKind, RoleRef, SubjectKey};
use crate::refusal::{Refusal, aggregate};
use crate::rule::PolicyRule;
use crate::user::User;

/// The API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The four kinds policy is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PolicyKind {
    /// Rules within a namespace.
    Role,
    /// Rules usable anywhere.
    ClusterRole,
    /// Subjects given a role within a namespace.
    RoleBinding,
    /// Subjects given a cluster role everywhere.
    ClusterRoleBinding,
}

impl PolicyKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Role, Self::ClusterRole, Self::RoleBinding, Self::ClusterRoleBinding];

    /// The kind as objects carry it.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
            Self::RoleBinding => "RoleBinding",
            Self::ClusterRoleBinding => "ClusterRoleBinding",
        }
    }

    /// The plural as paths carry it.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::ClusterRole => "clusterroles",
            Self::RoleBinding => "rolebindings",
            Self::ClusterRoleBinding => "clusterrolebindings",
        }
    }

    /// The kind behind a plural of the RBAC group.
    pub fn from_plural(plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.plural() == plural)
    }

    /// Whether objects of this kind live in a namespace.
    pub fn namespaced(self) -> bool {
        matches!(self, Self::Role | Self::RoleBinding)
    }
}

/// The answer to one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it may be done.
    pub allowed: bool,
    /// Why, in upstream's words; empty when there is nothing to say.
    pub reason: String,
}

impl Verdict {
    /// `Ok` or the 403 of these attributes.
    pub fn into_result(self, attributes: &Attributes<'_>) -> Result<(), Refusal> {
        if self.allowed { Ok(()) } else { Err(attributes.forbidden(&self.reason)) }
    }
}

/// The rules of one role.
type Rules = Arc<[PolicyRule]>;

/// Names of bindings by the subject they apply to.
type Index = HashMap<Arc<str>, BTreeSet<Arc<str>>>;

/// Bindings of one namespace, or of the cluster, with the names of those that apply to a user or group.
#[derive(Clone, Debug, Default)]
struct Scope {
    bindings: BTreeMap<Arc<str>, Binding>,
    by_user: Index,
    by_group: Index,
}

impl Scope {
    fn index(&mut self, key: SubjectKey) -> (&mut Index, Arc<str>) {
        match key {
            SubjectKey::User(name) => (&mut self.by_user, name),
            SubjectKey::Group(name) => (&mut self.by_group, name),
        }
    }

    fn insert(&mut self, name: Arc<str>, binding: Binding) {
        self.remove(&name);
        for key in binding.subject_keys() {
            let (index, subject) = self.index(key);
            index.entry(subject).or_default().insert(Arc::clone(&name));
        }
        self.bindings.insert(name, binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(old) = self.bindings.remove(name) else { return };
        for key in old.subject_keys() {
            let (index, subject) = self.index(key);
            if let Some(names) = index.get_mut(&subject) {
                names.remove(name);
                if names.is_empty() {
                    index.remove(&subject);
                }
            }
        }
    }

    /// Names of the bindings that apply to a user, each once, in the order of their names.
    fn applying(&self, user: &User) -> Vec<&Arc<str>> {
        let groups = user.groups.iter().filter_map(|group| self.by_group.get(group.as_str()));
        let mut names: Vec<&Arc<str>> =
            self.by_user.get(user.name.as_str()).into_iter().chain(groups).flatten().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A role reference that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unresolved(RoleRef);

impl Unresolved {
    /// As the evaluator words it, which reads roles from its own memory.
    fn as_listed(&self) -> String {
        self.text("role", "clusterrole")
    }

    /// As the escalation check words it, which reads roles from the store.
    pub(crate) fn as_stored(&self) -> String {
        self.text("roles", "clusterroles")
    }

    fn text(&self, role: &str, cluster_role: &str) -> String {
        let resource = match self.0.kind {
            RoleKind::Role => role,
            RoleKind::ClusterRole => cluster_role,
            RoleKind::Other => {
                return format!("unsupported role reference kind: {}", quote(&self.0.kind_text));
            }
        };
        format!("{resource}.{RBAC_GROUP} {} not found", quote(&self.0.name))
    }
}

/// One rule that applies to a user, with the binding it comes from.
struct Granted<'a> {
    rule: &'a PolicyRule,
    binding: &'a Binding,
    name: &'a str,
    namespace: &'a str,
    subject: usize,
}

impl Granted<'_> {
    fn describe(&self) -> String {
        self.binding.describe(self.name, self.namespace, self.subject)
    }
}

/// All roles and bindings, ready to be asked.
#[derive(Clone, Debug, Default)]
pub struct PolicySet {
    cluster_roles: HashMap<Arc<str>, Rules>,
    /// By namespace, then name.
    roles: HashMap<Arc<str>, HashMap<Arc<str>, Rules>>,
    cluster: Scope,
    namespaces: HashMap<Arc<str>, Scope>,
}

impl PolicySet {
    /// A set that allows nothing but to masters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the newest state of one object, `None` when it is gone. `namespace` is ignored for cluster kinds.
    pub fn apply(&mut self, kind: PolicyKind, namespace: &str, name: &str, object: Option<&Value>) {
        let name: Arc<str> = Arc::from(name);
        match (kind, object) {
            (PolicyKind::ClusterRole, Some(object)) => {
                self.cluster_roles.insert(name, PolicyRule::read_all(object).into());
            }
            (PolicyKind::ClusterRole, None) => {
                self.cluster_roles.remove(&name);
            }
            (PolicyKind::Role, Some(object)) => {
                let rules = PolicyRule::read_all(object).into();
                self.roles.entry(Arc::from(namespace)).or_default().insert(name, rules);
            }
            (PolicyKind::Role, None) => {
                if let Some(roles) = self.roles.get_mut(namespace) {
                    roles.remove(&name);
                    if roles.is_empty() {
                        self.roles.remove(namespace);
                    }
                }
            }
            (PolicyKind::ClusterRoleBinding, Some(object)) => {
                self.cluster.insert(name, Binding::read(object, ""));
            }
            (PolicyKind::ClusterRoleBinding, None) => self.cluster.remove(&name),
            (PolicyKind::RoleBinding, Some(object)) => {
                let binding = Binding::read(object, namespace);
                self.namespaces.entry(Arc::from(namespace)).or_default().insert(name, binding);
            }
            (PolicyKind::RoleBinding, None) => {
                if let Some(scope) = self.namespaces.get_mut(namespace) {
                    scope.remove(&name);
                    if scope.bindings.is_empty() {
                        self.namespaces.remove(namespace);
                    }
                }
            }
        }
    }

    /// May this be done? Masters may do anything; for everybody else the bindings decide.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        if attributes.user.is_master() {
            return Verdict { allowed: true, reason: String::new() };
        }
        let mut missing = Vec::new();
        let mut reason = None;
        self.visit(attributes.user, attributes.namespace(), &mut missing, |granted| {
            if granted.rule.allows(attributes) {
                reason = Some(format!("RBAC: allowed by {}", granted.describe()));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        if let Some(reason) = reason {
            return Verdict { allowed: true, reason };
        }
        let texts: Vec<String> = missing.iter().map(Unresolved::as_listed).collect();
        let reason = if texts.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(texts)) };
        Verdict { allowed: false, reason }
    }

    /// `Ok`, or the 403 to answer with.
    pub fn check(&self, attributes: &Attributes<'_>) -> Result<(), Refusal> {
        self.authorize(attributes).into_result(attributes)
    }

    /// Every rule that applies to a user in a namespace, and what could not be resolved.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Vec<String>) {
        let (rules, missing) = self.rules_and_unresolved(user, namespace);
        (rules, missing.iter().map(Unresolved::as_listed).collect())
    }

    /// Rules behind a role reference.
    pub(crate) fn resolve(&self, reference: &RoleRef, namespace: &str) -> Result<&[PolicyRule], Unresolved> {
        let found = match reference.kind {
            RoleKind::ClusterRole => self.cluster_roles.get(&*reference.name),
            RoleKind::Role => self.roles.get(namespace).and_then(|roles| roles.get(&*reference.name)),
            RoleKind::Other => None,
        };
        found.map(|rules| &**rules).ok_or_else(|| Unresolved(reference.clone()))
    }

    /// As `rules_for`, with what could not be resolved left to the caller to word.
    pub(crate) fn rules_and_unresolved(
        &self,
        user: &User,
        namespace: &str,
    ) -> (Vec<PolicyRule>, Vec<Unresolved>) {
        let mut missing = Vec::new();
        let mut rules = Vec::new();
        self.visit(user, namespace, &mut missing, |granted| {
            rules.push(granted.rule.clone());
            ControlFlow::Continue(())
        });
        (rules, missing)
    }

    /// Shows every rule that applies to a user: those of the cluster, then those of the namespace.
    fn visit(
        &self,
        user: &User,
        namespace: &str,
        missing: &mut Vec<Unresolved>,
        mut look: impl FnMut(&Granted<'_>) -> ControlFlow<()>,
    ) {
        let local = (!namespace.is_empty()).then(|| self.namespaces.get(namespace)).flatten();
        let scopes = std::iter::once((&self.cluster, "")).chain(local.map(|scope| (scope, namespace)));
        for (scope, namespace) in scopes {
            for name in scope.applying(user) {
                let Some(binding) = scope.bindings.get(name) else { continue };
                let Some(subject) = binding.first_applying(user) else { continue };
                let rules = match self.resolve(&binding.role, namespace) {
                    Ok(rules) => rules,
                    Err(unresolved) => {
                        if !missing.contains(&unresolved) {
                            missing.push(unresolved);
                        }
                        continue;
                    }
                };
                for rule in rules {
                    if look(&Granted { rule, binding, name, namespace, subject }).is_break() {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
