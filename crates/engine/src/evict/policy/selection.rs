//! Which pods and taints a policy is about, and how closely it says so.

use super::demand::PodFacts;
use crate::selector::Requirement;
use crate::taint::{NodeEffect, Taint};

/// Pods and taints. Whatever is `None` selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The pods' namespaces.
    pub namespaces: Option<Box<[Box<str>]>>,
    /// Requirements on the labels of their namespace; none select all.
    pub namespace_labels: Box<[Requirement]>,
    /// Requirements on their labels; none select all.
    pub labels: Box<[Requirement]>,
    /// The kinds of their owners.
    pub owner_kinds: Option<Box<[Box<str>]>>,
    /// The taints.
    pub taints: Option<Box<[TaintTerm]>>,
    /// Whether a part of it could not be understood. That part selects all, and nobody can say how closely it was meant.
    pub is_garbled: bool,
}

/// Taints of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaintTerm {
    /// The key.
    pub key: Box<str>,
    /// The value; any where this is `None`.
    pub value: Option<Box<str>>,
}

/// How closely a policy says whom it is about; the greater, the closer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Closeness {
    /// What cannot be understood may have been meant for nobody but this pod.
    is_garbled: bool,
    /// How many things it asks for: namespaces, their labels, labels, owners, a taint's key, a taint's value.
    fields: u8,
    /// How many requirements on labels it has.
    requirements: usize,
}

impl Selection {
    /// Whether a pod is among them; `None` where that depends on a namespace of which nothing is known.
    pub fn admits(&self, pod: &PodFacts<'_>) -> Option<bool> {
        if self.namespaces.as_ref().is_some_and(|names| !names.iter().any(|name| **name == *pod.namespace)) {
            return Some(false);
        }
        let owned = |kinds: &[Box<str>]| kinds.iter().any(|kind| Some(&**kind) == pod.owner_kind);
        if self.owner_kinds.as_ref().is_some_and(|kinds| !owned(kinds)) {
            return Some(false);
        }
        let label = |key: &str| {
            let place = pod.labels.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
            Some(&*pod.labels[place].1)
        };
        if !self.labels.iter().all(|requirement| requirement.holds(label(&requirement.key))) {
            return Some(false);
        }
        if self.namespace_labels.is_empty() {
            return Some(true);
        }
        let labels = pod.namespace_labels?;
        let label = |key: &str| labels.get(key).map(String::as_str);
        Some(self.namespace_labels.iter().all(|requirement| requirement.holds(label(&requirement.key))))
    }

    /// Whether it is about a taint, and if so how closely all in all.
    pub(super) fn closeness(&self, taint: &Taint<NodeEffect>) -> Option<Closeness> {
        let by_taint = match &self.taints {
            None => 0,
            Some(terms) => terms.iter().filter_map(|term| term.fields(taint)).max()?,
        };
        Some(Closeness { fields: self.fields() + by_taint, ..self.of_pods() })
    }

    /// How closely it says which pods it is about.
    pub(super) fn of_pods(&self) -> Closeness {
        Closeness {
            is_garbled: self.is_garbled,
            fields: self.fields(),
            requirements: self.labels.len() + self.namespace_labels.len(),
        }
    }

    fn fields(&self) -> u8 {
        let given = [
            self.namespaces.is_some(),
            !self.namespace_labels.is_empty(),
            !self.labels.is_empty(),
            self.owner_kinds.is_some(),
        ];
        given.into_iter().map(u8::from).sum()
    }
}

impl TaintTerm {
    /// How many things it asks of a taint that fulfils them; `None` for any other.
    fn fields(&self, taint: &Taint<NodeEffect>) -> Option<u8> {
        let is_meant = self.key == taint.key && self.value.as_ref().is_none_or(|value| *value == taint.value);
        is_meant.then(|| 1 + u8::from(self.value.is_some()))
    }
}
