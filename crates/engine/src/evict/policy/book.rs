//! All policies, and which of them counts for a pod and a taint.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::demand::PodFacts;
use super::rule::Rule;
use crate::taint::{NodeEffect, Taint};

/// All policies, by name.
#[derive(Clone, Debug, Default)]
pub struct Book {
    rules: BTreeMap<Arc<str>, Arc<Rule>>,
}

/// The policy that counts.
#[derive(Clone, Debug)]
pub struct Governing<'b> {
    /// It.
    pub rule: &'b Arc<Rule>,
    /// Whether it is certain that it selects the pod; if not, nothing is known of the pod's namespace yet.
    pub is_certain: bool,
    /// Others that select the pod as well, and are less specific.
    pub others: Vec<&'b Arc<Rule>>,
}

impl Book {
    /// Puts a policy in, in the place of what it was before.
    pub fn set(&mut self, rule: Arc<Rule>) {
        self.rules.insert(Arc::clone(&rule.name), rule);
    }

    /// Takes a policy out.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Rule>> {
        self.rules.remove(name)
    }

    /// The policy of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Rule>> {
        self.rules.get(name)
    }

    /// All of them, in the order of their names.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.values()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether some policy looks at the labels of namespaces.
    pub fn needs_namespaces(&self) -> bool {
        self.rules().any(|rule| !rule.selection.namespace_labels.is_empty())
    }

    /// The policy that counts for a pod and a taint of its node: the most specific, and among equals the first by name.
    pub fn governing(&self, pod: &PodFacts<'_>, taint: &Taint<NodeEffect>) -> Option<Governing<'_>> {
        self.best(pod, |rule| rule.selection.closeness(taint))
    }

    /// The policy that counts for a pod whose node is gone, and its taints with it: the most specific of those that have something
    /// to say then.
    pub fn governing_without_node(&self, pod: &PodFacts<'_>) -> Option<Governing<'_>> {
        self.best(pod, |rule| {
            let orders = rule.orders.as_ref().ok()?;
            orders.force.as_ref()?;
            Some(rule.selection.of_pods())
        })
    }

    fn best<C: Ord + Copy>(
        &self,
        pod: &PodFacts<'_>,
        closeness: impl Fn(&Rule) -> Option<C>,
    ) -> Option<Governing<'_>> {
        let mut best: Option<(C, bool, &Arc<Rule>)> = None;
        let mut others = Vec::new();
        for rule in self.rules() {
            let Some(close) = closeness(rule) else { continue };
            let is_certain = match rule.selection.admits(pod) {
                Some(true) => true,
                Some(false) => continue,
                None => false,
            };
            match &best {
                Some((known, ..)) if *known >= close => others.push(rule),
                _ => {
                    let before = best.replace((close, is_certain, rule));
                    others.extend(before.map(|(.., rule)| rule));
                }
            }
        }
        let (_, is_certain, rule) = best?;
        Some(Governing { rule, is_certain, others })
    }
}
