//! The placements in the model, each understood once and wired to what it depends on.
//!
//! Owns the table of placements and the reverse indexes that answer "who cares about this?". It never decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::key::PlacementKey;
use super::standing::ClassId;
use super::terms::TermId;
use crate::select::{Complaint, Prioritizer, Ranking, Rule};
use crate::selector::Facet;

/// A placement, by number. Used again after the placement is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlacementId(pub(crate) u32);

/// The sets a placement draws from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Eligible {
    /// Whether the namespace has any binding to a set that exists.
    pub(crate) bound: bool,
    /// Sets to draw from, in the order of their names, with the term that tells their members (`None`: nobody).
    pub(crate) sets: Vec<(Arc<str>, Option<TermId>)>,
    /// A set among these whose selector cannot be understood, with the reason.
    pub(crate) broken: Option<(Arc<str>, String)>,
}

/// The parts of a Placement that its written form repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// A successor of the same name is another placement, and its decisions must say so.
    pub(crate) uid: Option<Box<str>>,
    /// Conditions say which generation they speak of.
    pub(crate) generation: Option<i64>,
    pub(crate) score_rate_limit: Option<Box<str>>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: PlacementKey,
    /// The rule, or why there is none.
    pub(crate) rule: Result<Arc<Rule>, Arc<[Complaint]>>,
    /// The sets named in the object, as written.
    pub(crate) asked: Box<[Box<str>]>,
    /// What the object is and says besides its rule, as far as what is written for it depends on it.
    pub(crate) identity: Identity,
    /// Left alone: switched off by annotation, or being deleted.
    pub(crate) idle: bool,
    /// Predicates, in order.
    pub(crate) terms: Vec<TermId>,
    pub(crate) class: Option<ClassId>,
    pub(crate) eligible: Eligible,
    /// The clusters of the last decision, `None` before the first.
    pub(crate) chosen: Option<RoaringBitmap>,
    /// The ranking kept by difference, where the rule allows it.
    pub(crate) ranking: Option<Ranking>,
    /// Whether its expressions cost more than they may, when that was looked at last.
    pub(crate) was_overspent: bool,
}

impl Entry {
    /// A placement that is not wired to anything yet.
    pub(crate) fn loose(
        key: PlacementKey,
        rule: Result<Arc<Rule>, Arc<[Complaint]>>,
        asked: Box<[Box<str>]>,
        identity: Identity,
        idle: bool,
        chosen: Option<RoaringBitmap>,
    ) -> Self {
        Self {
            key,
            rule,
            asked,
            identity,
            idle,
            terms: Vec::new(),
            class: None,
            eligible: Eligible::default(),
            chosen,
            ranking: None,
            was_overspent: false,
        }
    }

    /// The same placement as it was before it was wired.
    pub(crate) fn loosened(self) -> Self {
        Self::loose(self.key, self.rule, self.asked, self.identity, self.idle, self.chosen)
    }

    fn scope(&self) -> Scope {
        Scope {
            sets: self.eligible.sets.iter().filter_map(|(_, term)| *term).collect(),
            terms: self.terms.as_slice().into(),
        }
    }
}

/// Everything that decides whether a cluster is a candidate. Placements of one shape share it, so that a change of a cluster is weighed once for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    pub(crate) sets: Box<[TermId]>,
    pub(crate) terms: Box<[TermId]>,
}

/// Who cares about what.
#[derive(Debug, Default)]
struct Interest {
    /// Keys that groups, spreading and anti-affinity look at.
    keys: HashMap<(Facet, Box<str>), Vec<PlacementId>>,
    /// AddOnPlacementScores by name.
    scores: HashMap<Arc<str>, Vec<PlacementId>>,
    /// Allocatable resources.
    resources: Vec<PlacementId>,
    /// Whether other clusters' feasibility matters.
    relative: Vec<PlacementId>,
}

#[derive(Debug, Default)]
pub(crate) struct Placements {
    entries: Vec<Option<Entry>>,
    /// The keys of those that are not to be left alone, apart from the entries: naming the many placements that a
    /// change touches reads nothing else.
    active: Vec<Option<PlacementKey>>,
    by_key: BTreeMap<PlacementKey, PlacementId>,
    free: Vec<PlacementId>,
    interest: Interest,
    /// By class, because taints are weighed by class.
    scopes: HashMap<ClassId, HashMap<Scope, Vec<PlacementId>>>,
}

impl Placements {
    pub(crate) fn find(&self, key: &PlacementKey) -> Option<PlacementId> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn get(&self, id: PlacementId) -> &Entry {
        self.entries[id.0 as usize].as_ref().expect("a placement's number is known only while it lives")
    }

    pub(crate) fn get_mut(&mut self, id: PlacementId) -> &mut Entry {
        self.entries[id.0 as usize].as_mut().expect("a placement's number is known only while it lives")
    }

    /// The key of a placement that is not to be left alone.
    pub(crate) fn active(&self, id: PlacementId) -> Option<&PlacementKey> {
        self.active[id.0 as usize].as_ref()
    }

    /// The namespace as placements in it already name it, so that they share one copy.
    pub(crate) fn namespace(&self, name: &str) -> Arc<str> {
        let first = PlacementKey { namespace: name.into(), name: Arc::from("") };
        let next = self.by_key.range(&first..).next().map(|(key, _)| &key.namespace);
        next.filter(|namespace| ***namespace == *name).cloned().unwrap_or(first.namespace)
    }

    /// All placements, in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PlacementKey, PlacementId)> {
        self.by_key.iter().map(|(key, id)| (key, *id))
    }

    /// The placements of one namespace.
    pub(crate) fn in_namespace(&self, namespace: &Arc<str>) -> Vec<PlacementId> {
        let first = PlacementKey { namespace: namespace.clone(), name: Arc::from("") };
        self.by_key
            .range(first..)
            .take_while(|(key, _)| key.namespace == *namespace)
            .map(|(_, id)| *id)
            .collect()
    }

    /// A number for a new placement.
    pub(crate) fn reserve(&mut self) -> PlacementId {
        self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.active.push(None);
            PlacementId(u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 placements"))
        })
    }

    /// The scopes of a class, with the placements that have each.
    pub(crate) fn scopes(&self, class: ClassId) -> impl Iterator<Item = (&Scope, &[PlacementId])> {
        self.scopes.get(&class).into_iter().flatten().map(|(scope, users)| (scope, users.as_slice()))
    }

    /// Replaces the sets a placement draws from; the former ones come back.
    pub(crate) fn set_eligible(&mut self, id: PlacementId, eligible: Eligible) -> Eligible {
        self.change_scope(id, false);
        let entry = self.get_mut(id);
        entry.ranking = None;
        let before = std::mem::replace(&mut entry.eligible, eligible);
        self.change_scope(id, true);
        before
    }

    /// Says with which class of tolerations a placement stands that had none.
    pub(crate) fn set_class(&mut self, id: PlacementId, class: ClassId) {
        self.get_mut(id).class = Some(class);
        self.change_scope(id, true);
    }

    fn change_scope(&mut self, id: PlacementId, add: bool) {
        let entry = self.get(id);
        let (Some(class), scope) = (entry.class, entry.scope()) else { return };
        let scopes = self.scopes.entry(class).or_default();
        let users = scopes.entry(scope.clone()).or_default();
        if add {
            users.push(id);
        } else {
            users.retain(|user| *user != id);
        }
        if users.is_empty() {
            scopes.remove(&scope);
        }
        if scopes.is_empty() {
            self.scopes.remove(&class);
        }
    }

    pub(crate) fn put(&mut self, id: PlacementId, entry: Entry) {
        if let Ok(rule) = &entry.rule {
            self.interest.change(id, rule, true);
        }
        self.by_key.insert(entry.key.clone(), id);
        self.active[id.0 as usize] = (!entry.idle).then(|| entry.key.clone());
        self.entries[id.0 as usize] = Some(entry);
        self.change_scope(id, true);
    }

    pub(crate) fn take(&mut self, id: PlacementId) -> Entry {
        self.change_scope(id, false);
        let entry =
            self.entries[id.0 as usize].take().expect("a placement's number is known only while it lives");
        if let Ok(rule) = &entry.rule {
            self.interest.change(id, rule, false);
        }
        self.by_key.remove(&entry.key);
        self.active[id.0 as usize] = None;
        self.free.push(id);
        entry
    }

    pub(crate) fn interested_in_key(&self, facet: Facet, key: &str) -> &[PlacementId] {
        self.interest.keys.get(&(facet, Box::from(key))).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn interested_in_score(&self, resource: &str) -> &[PlacementId] {
        self.interest.scores.get(resource).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn interested_in_resources(&self) -> &[PlacementId] {
        &self.interest.resources
    }

    pub(crate) fn relative(&self) -> &[PlacementId] {
        &self.interest.relative
    }
}

impl Interest {
    fn change(&mut self, id: PlacementId, rule: &Rule, add: bool) {
        let put = |list: &mut Vec<PlacementId>| {
            if add {
                if !list.contains(&id) {
                    list.push(id);
                }
            } else {
                list.retain(|other| *other != id);
            }
        };
        let group_keys = rule
            .groups
            .named
            .iter()
            .flat_map(|(_, term)| &term.requirements)
            .map(|requirement| (requirement.facet, requirement.key.clone()));
        let topologies = rule.spread.iter().map(|term| &term.topology).chain(&rule.anti_affinity);
        let topology_keys = topologies.map(|topology| (topology.facet, topology.key.clone()));
        for key in group_keys.chain(topology_keys) {
            let list = self.keys.entry(key.clone()).or_default();
            put(list);
            if list.is_empty() {
                self.keys.remove(&key);
            }
        }
        for (prioritizer, _) in &rule.weights {
            if let Prioritizer::AddOn { resource, .. } = prioritizer {
                let list = self.scores.entry(resource.clone()).or_default();
                put(list);
                if list.is_empty() {
                    self.scores.remove(resource);
                }
            }
            if prioritizer.resource().is_some() {
                put(&mut self.resources);
            }
        }
        if rule.is_relative() {
            put(&mut self.relative);
        }
    }
}
