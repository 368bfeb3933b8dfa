//! Bindings: subjects and the role they are given.
//!
//! Owns reading a binding and deciding whom it applies to. Never knows the rules behind its role.

use std::sync::Arc;

use berth_text::gotext::quote;
use serde_json::Value;

use crate::user::{User, service_account_user};

/// What a role reference points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleKind {
    /// A role of the binding's namespace.
    Role,
    /// A cluster role.
    ClusterRole,
    /// Anything else; grants nothing.
    Other,
}

/// `roleRef` of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleRef {
    pub(crate) kind: RoleKind,
    pub(crate) kind_text: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl RoleRef {
    pub(crate) fn read(binding: &Value) -> Self {
        let field = |key: &str| {
            binding.get("roleRef").and_then(|r| r.get(key)).and_then(Value::as_str).unwrap_or_default()
        };
        let kind = match field("kind") {
            "Role" => RoleKind::Role,
            "ClusterRole" => RoleKind::ClusterRole,
            _ => RoleKind::Other,
        };
        Self {
            kind,
            kind_text: Arc::from(field("kind")),
            group: Arc::from(field("apiGroup")),
            name: Arc::from(field("name")),
        }
    }
}

/// What a subject is looked up by. A service account is a user with a known name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SubjectKey {
    User(Arc<str>),
    Group(Arc<str>),
}

#[derive(Clone, Debug)]
struct Subject {
    kind: Arc<str>,
    name: Arc<str>,
    namespace: Arc<str>,
    /// `None` for subjects that can never apply: unknown kinds, service accounts without a namespace.
    key: Option<SubjectKey>,
}

/// A RoleBinding or ClusterRoleBinding, read.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) role: RoleRef,
    subjects: Vec<Subject>,
}

impl Binding {
    /// `namespace` is the binding's own, empty for cluster role bindings; service accounts default to it.
    pub(crate) fn read(object: &Value, namespace: &str) -> Self {
        let subjects = object.get("subjects").and_then(Value::as_array);
        Self {
            role: RoleRef::read(object),
            subjects: subjects
                .map_or_else(Vec::new, |list| list.iter().map(|s| subject(s, namespace)).collect()),
        }
    }

    pub(crate) fn subject_keys(&self) -> impl Iterator<Item = SubjectKey> {
        self.subjects.iter().filter_map(|subject| subject.key.clone())
    }

    /// Index of the first subject that is this user or a group of theirs.
    pub(crate) fn first_applying(&self, user: &User) -> Option<usize> {
        self.subjects.iter().position(|subject| match &subject.key {
            Some(SubjectKey::User(name)) => **name == *user.name,
            Some(SubjectKey::Group(name)) => user.in_group(name),
            None => false,
        })
    }

    /// The binding as verdicts name it.
    pub(crate) fn describe(&self, name: &str, namespace: &str, subject: usize) -> String {
        let (kind, full_name) = if namespace.is_empty() {
            ("ClusterRoleBinding", name.to_owned())
        } else {
            ("RoleBinding", format!("{name}/{namespace}"))
        };
        let to = self.subjects.get(subject).map(|s| describe_subject(s, namespace)).unwrap_or_default();
        format!("{kind} {} of {} {} to {to}", quote(&full_name), self.role.kind_text, quote(&self.role.name))
    }
}

fn describe_subject(subject: &Subject, namespace: &str) -> String {
    if &*subject.kind == "ServiceAccount" {
        let own = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
        return format!("{} {}", subject.kind, quote(&format!("{}/{own}", subject.name)));
    }
    format!("{} {}", subject.kind, quote(&subject.name))
}

fn subject(value: &Value, binding_namespace: &str) -> Subject {
    let field = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (kind, name, namespace) = (field("kind"), field("name"), field("namespace"));
    let key = match kind {
        "User" => Some(SubjectKey::User(Arc::from(name))),
        "Group" => Some(SubjectKey::Group(Arc::from(name))),
        "ServiceAccount" => {
            let own = if namespace.is_empty() { binding_namespace } else { namespace };
            (!own.is_empty()).then(|| SubjectKey::User(Arc::from(service_account_user(own, name))))
        }
        _ => None,
    };
    Subject { kind: Arc::from(kind), name: Arc::from(name), namespace: Arc::from(namespace), key }
}
