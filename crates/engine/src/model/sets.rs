//! Cluster sets and their bindings to namespaces.
//!
//! Owns which sets exist, how each tells its members, and which namespace may use which. Who is a member is the
//! business of the set's term.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_api::{ManagedClusterSet, SelectorType, names};

use super::placements::{Eligible, PlacementId};
use super::terms::TermId;
use crate::selector::{Ask, Facet, Requirement, Term, from_label_selector};

/// How a set tells its members.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Members {
    /// By this term.
    Matching(TermId),
    /// A label selector set without a selector has none.
    Nobody,
    /// The selector cannot be understood.
    Broken(String),
}

#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) members: Members,
    /// Placements that draw from it.
    pub(crate) users: Vec<PlacementId>,
}

/// A binding, or why it does not count.
pub(crate) type Binding = Result<(), String>;

#[derive(Debug, Default)]
pub(crate) struct Sets {
    pub(crate) sets: BTreeMap<Arc<str>, Set>,
    /// Namespace, then set.
    pub(crate) bindings: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Binding>>,
}

impl Sets {
    /// What a placement in `namespace` that names `asked` may draw from.
    pub(crate) fn eligible(&self, namespace: &str, asked: &[Box<str>]) -> Eligible {
        let mut eligible = Eligible::default();
        let bindings = self.bindings.get(namespace).into_iter().flatten();
        for (name, set) in bindings
            .filter(|(_, binding)| binding.is_ok())
            .filter_map(|(name, _)| self.sets.get_key_value(name))
        {
            eligible.bound = true;
            if !asked.is_empty() && !asked.iter().any(|asked| **asked == **name) {
                continue;
            }
            let term = match &set.members {
                Members::Matching(term) => Some(*term),
                Members::Nobody => None,
                Members::Broken(why) => {
                    eligible.broken.get_or_insert((name.clone(), why.clone()));
                    None
                }
            };
            eligible.sets.push((name.clone(), term));
        }
        eligible
    }

    /// The namespaces with a binding to `set`.
    pub(crate) fn namespaces_bound_to(&self, set: &str) -> Vec<Arc<str>> {
        self.bindings
            .iter()
            .filter(|(_, bindings)| bindings.contains_key(set))
            .map(|(namespace, _)| namespace.clone())
            .collect()
    }
}

/// The term of a set's members; `Ok(None)` where it can have none.
pub(crate) fn term_of(set: &ManagedClusterSet) -> Result<Option<Term>, String> {
    let requirements = match set.selector_type().canonical() {
        SelectorType::ExclusiveClusterSetLabel => {
            let name = set.metadata.name.as_deref().unwrap_or_default();
            vec![Requirement {
                facet: Facet::Label,
                key: names::label::CLUSTER_SET.into(),
                ask: Ask::In([name.into()].into()),
            }]
        }
        SelectorType::LabelSelector => match set.label_selector() {
            None => return Ok(None),
            Some(selector) => from_label_selector(selector).map_err(|bad| {
                let all: Vec<_> = bad
                    .iter()
                    .map(|bad| format!("spec.clusterSelector.labelSelector.{}: {}", bad.path, bad.message))
                    .collect();
                all.join("; ")
            })?,
        },
        other => {
            return Err(format!(
                "spec.clusterSelector.selectorType: selectorType is not right: {other}; allowed are ExclusiveClusterSetLabel and LabelSelector"
            ));
        }
    };
    Ok(Some(Term { requirements: requirements.into(), ..Term::default() }))
}
