//! Whom a pod must be near, and whom it must keep away from.
//!
//! Owns required affinity between pods, seen from the pod that is to be placed. What its neighbours have against it is not known
//! here.

use std::collections::HashSet;
use std::sync::Arc;

use berth_api::core::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::nodes::label;
use super::{Fit, Misfit, Missing};
use crate::selector::{Requirement, from_label_selector};

/// A pod that is somewhere.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour<'n> {
    /// Its namespace.
    pub namespace: &'n str,
    /// Its labels, in order.
    pub labels: &'n [(Arc<str>, Arc<str>)],
    /// Whether it is on its way out.
    pub is_leaving: bool,
    /// Its node.
    pub node: &'n Node,
}

impl Neighbour<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        let place = self.labels.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
        Some(&*self.labels[place].1)
    }

    /// Whether a selector speaks of it.
    pub(super) fn is_asked_for(&self, asks: &[Requirement]) -> bool {
        asks.iter().all(|ask| ask.holds(self.label(&ask.key)))
    }
}

/// Whom a selector speaks of.
pub(super) enum Asks {
    /// Those of whom all of this holds.
    All(Vec<Requirement>),
    /// Nobody: there is none.
    Nobody,
    /// It cannot be read.
    Unknown,
}

impl Asks {
    pub(super) fn read(selector: &Value) -> Self {
        if selector.is_null() {
            return Self::Nobody;
        }
        let read = serde_json::from_value::<LabelSelector>(selector.clone()).ok();
        read.and_then(|read| from_label_selector(&read).ok()).map_or(Self::Unknown, Self::All)
    }

    /// Whether a pod with these labels is meant; `None` where nobody knows.
    pub(super) fn means(&self, labels: &Value) -> Option<bool> {
        match self {
            Self::All(asks) => Some(asks.iter().all(|ask| ask.holds(labels[&*ask.key].as_str()))),
            Self::Nobody => Some(false),
            Self::Unknown => None,
        }
    }
}

/// The namespaces that a rule speaks of.
enum Where<'s> {
    These(Vec<&'s str>),
    Everywhere,
    /// Those with certain labels, which nobody reads here; these in any case.
    Unknown(Vec<&'s str>),
}

impl<'s> Where<'s> {
    fn read(term: &'s Value, own: &'s str) -> Self {
        let named: Vec<&str> =
            term["namespaces"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let selector = &term["namespaceSelector"];
        let is_empty = |field: &str| match &selector[field] {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        match selector {
            Value::Null if named.is_empty() => Self::These(vec![own]),
            Value::Null => Self::These(named),
            Value::Object(_) if is_empty("matchLabels") && is_empty("matchExpressions") => Self::Everywhere,
            _ => Self::Unknown(named),
        }
    }

    /// Whether it speaks of a namespace; `None` where nobody knows.
    fn speaks_of(&self, namespace: &str) -> Option<bool> {
        match self {
            Self::These(named) => Some(named.contains(&namespace)),
            Self::Everywhere => Some(true),
            Self::Unknown(named) => named.contains(&namespace).then_some(true),
        }
    }
}

/// A rule about the neighbours of a pod: where they are.
struct Term<'s> {
    key: &'s str,
    /// The places where one is that it speaks of.
    there: HashSet<&'s str>,
    /// The places where one may be.
    perhaps: HashSet<&'s str>,
    /// Whether it speaks of the pod itself; `None` where nobody knows.
    is_of_itself: Option<bool>,
}

impl<'s> Term<'s> {
    fn read(term: &'s Value, pod: &'s Value, neighbours: &[Neighbour<'s>]) -> Self {
        let key = term["topologyKey"].as_str().unwrap_or_default();
        let own = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let (asks, within) = (Asks::read(&term["labelSelector"]), Where::read(term, own));
        let (mut there, mut perhaps) = (HashSet::new(), HashSet::new());
        for other in neighbours {
            let is_asked_for = match &asks {
                Asks::All(asks) => Some(other.is_asked_for(asks)),
                Asks::Nobody => Some(false),
                Asks::Unknown => None,
            };
            let Some(place) = label(other.node, key) else { continue };
            match both(is_asked_for, within.speaks_of(other.namespace)) {
                Some(true) => there.insert(place),
                None => perhaps.insert(place),
                Some(false) => false,
            };
        }
        let is_of_itself = both(asks.means(&pod["metadata"]["labels"]), within.speaks_of(own));
        Self { key, there, perhaps, is_of_itself }
    }
}

/// Whether both are so; one that is not settles it.
fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// What a pod wants of its neighbours.
pub(super) struct Nearness<'s> {
    near: Vec<Term<'s>>,
    apart: Vec<Term<'s>>,
}

fn terms<'s>(pod: &'s Value, kind: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    let required = &pod["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"];
    required.as_array().into_iter().flatten()
}

/// Whether a rule of a pod about its neighbours may speak of pods in other namespaces.
pub fn looks_abroad(pod: &Value) -> bool {
    let is_abroad = |term: &Value| !term["namespaces"].is_null() || !term["namespaceSelector"].is_null();
    terms(pod, "podAffinity").chain(terms(pod, "podAntiAffinity")).any(is_abroad)
}

impl<'s> Nearness<'s> {
    pub(super) fn read(pod: &'s Value, neighbours: &[Neighbour<'s>]) -> Self {
        let of = |kind: &str| terms(pod, kind).map(|term| Term::read(term, pod, neighbours)).collect();
        Self { near: of("podAffinity"), apart: of("podAntiAffinity") }
    }

    pub(super) fn on(&self, node: &Node) -> Fit {
        let mut is_sure = true;
        for term in &self.apart {
            // Where there is no such place, nobody is in it.
            let Some(here) = label(node, term.key) else { continue };
            if term.there.contains(here) {
                return Fit::Refuses(Misfit::KeepsApart);
            }
            is_sure &= !term.perhaps.contains(here);
        }
        // The first of those that want to be together goes anywhere.
        let is_nobody_there = self.near.iter().all(|term| term.there.is_empty() && term.perhaps.is_empty());
        let is_the_first = is_nobody_there && self.near.iter().all(|term| term.is_of_itself == Some(true));
        for term in &self.near {
            let Some(here) = label(node, term.key) else { return Fit::Refuses(Misfit::NotNear) };
            if is_the_first || term.there.contains(here) {
                continue;
            }
            if !term.perhaps.contains(here) {
                return Fit::Refuses(Misfit::NotNear);
            }
            is_sure = false;
        }
        if is_sure { Fit::Takes } else { Fit::Unknown(Missing::Rule) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{labels, neighbour, node};
    use super::*;

    fn pod(kind: &str, term: &Value) -> Value {
        let mut term = term.clone();
        term["topologyKey"] = json!("kubernetes.io/hostname");
        json!({
            "metadata": {"namespace": "ns", "labels": {"app": "db"}},
            "spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
        })
    }

    const APART: Fit = Fit::Refuses(Misfit::KeepsApart);

    #[test]
    fn members_that_keep_apart_need_a_node_of_their_own() {
        let (one, two) = (node("n1", &json!({})), node("n2", &json!({})));
        let labels = labels(&[("app", "db")]);
        let near = [neighbour("ns", &labels, &one), neighbour("other", &labels, &two)];
        let db = json!({"matchLabels": {"app": "db"}});
        for (term, on_one, on_two) in [
            (json!({"labelSelector": db}), APART, Fit::Takes),
            (json!({"labelSelector": {"matchLabels": {"app": "web"}}}), Fit::Takes, Fit::Takes),
            (json!({"labelSelector": {}}), APART, Fit::Takes),
            (json!({}), Fit::Takes, Fit::Takes),
            (json!({"labelSelector": db, "namespaces": ["other"]}), Fit::Takes, APART),
            (json!({"labelSelector": db, "namespaceSelector": {}}), APART, APART),
            (
                json!({"labelSelector": db, "namespaces": ["ns"], "namespaceSelector": {"matchLabels": {"a": "b"}}}),
                APART,
                Fit::Unknown(Missing::Rule),
            ),
            (json!({"labelSelector": 7}), Fit::Unknown(Missing::Rule), Fit::Takes),
        ] {
            let pod = pod("podAntiAffinity", &term);
            let nearness = Nearness::read(&pod, &near);
            assert_eq!((nearness.on(&one), nearness.on(&two)), (on_one, on_two), "{term}");
        }
    }

    #[test]
    fn who_must_be_near_others_goes_where_they_are_or_begins_anew() {
        let (one, two) = (node("n1", &json!({})), node("n2", &json!({})));
        let labels = labels(&[("app", "db")]);
        let near = [neighbour("ns", &labels, &one)];
        let of = |app: &str| pod("podAffinity", &json!({"labelSelector": {"matchLabels": {"app": app}}}));
        let fits = |pod: &Value, near: &[Neighbour<'_>]| {
            let nearness = Nearness::read(pod, near);
            (nearness.on(&one), nearness.on(&two))
        };
        let not_near = || Fit::Refuses(Misfit::NotNear);
        assert_eq!(fits(&of("db"), &near), (Fit::Takes, not_near()));
        assert_eq!(fits(&of("db"), &[]), (Fit::Takes, Fit::Takes), "it is the first of its own sort");
        assert_eq!(fits(&of("web"), &near), (not_near(), not_near()));
    }
}
