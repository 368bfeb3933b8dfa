//! The rules once more, as simply as they can be said: no index, nothing kept, every cluster looked at every time.
//!
//! Reads the objects, never the model. Slow and plain on purpose: where it and the engine differ, one is wrong.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use berth_api::names::label;
use berth_api::{
    ClusterPredicate, ManagedCluster, ManagedClusterSet, Placement, SelectorType, SortBy, Taint, TaintEffect,
    Toleration, TopologyKeyType, UnsatisfiableAction,
};
use berth_engine::PlacementKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::random::EXPRESSIONS;
use crate::world::World;

/// What should come out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    NoBindings,
    NoIntersection,
    SetsEmpty,
    /// The placement or a set cannot be understood: what is held stays, as far as the sets still have it.
    Kept(BTreeSet<String>),
    /// The groups with their clusters and scores, in order.
    Groups(Vec<(String, Vec<(String, i64)>)>),
}

pub(crate) struct Naive<'w> {
    world: &'w World,
    key: PlacementKey,
    placement: &'w Placement,
    /// Seconds since the epoch.
    now: i64,
}

type Labels = BTreeMap<String, String>;

fn labels(cluster: &ManagedCluster) -> Labels {
    cluster.metadata.labels.clone().unwrap_or_default()
}

/// The last of several claims of one name counts.
fn claims(cluster: &ManagedCluster) -> Labels {
    cluster.claims().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn requirement_holds(requirement: &LabelSelectorRequirement, of: &Labels) -> Option<bool> {
    let value = of.get(&requirement.key);
    let listed = |value: &String| requirement.values.iter().flatten().any(|other| other == value);
    match requirement.operator.as_str() {
        "In" => Some(value.is_some_and(listed)),
        "NotIn" => Some(!value.is_some_and(listed)),
        "Exists" => Some(value.is_some()),
        "DoesNotExist" => Some(value.is_none()),
        _ => None,
    }
}

/// `None` where the selector cannot be understood.
fn selector_holds(selector: &LabelSelector, of: &Labels) -> Option<bool> {
    let mut holds = selector.match_labels.iter().flatten().all(|(key, value)| of.get(key) == Some(value));
    for requirement in selector.match_expressions.iter().flatten() {
        holds &= requirement_holds(requirement, of)?;
    }
    Some(holds)
}

/// `None` where the set cannot be understood.
fn in_set(set: &ManagedClusterSet, cluster: &ManagedCluster) -> Option<bool> {
    match set.selector_type() {
        SelectorType::ExclusiveClusterSetLabel => {
            Some(labels(cluster).get(label::CLUSTER_SET) == set.metadata.name.as_ref())
        }
        SelectorType::LabelSelector => match set.label_selector() {
            None => Some(false),
            Some(selector) => selector_holds(selector, &labels(cluster)),
        },
        _ => None,
    }
}

fn matches(toleration: &Toleration, taint: &Taint) -> bool {
    toleration.effect().is_none_or(|effect| *effect == taint.effect)
        && (toleration.key().is_empty() || toleration.key() == taint.key)
        && (toleration.operator().as_str() == "Exists" || toleration.value() == taint.value())
}

impl<'w> Naive<'w> {
    pub(crate) fn new(world: &'w World, key: &PlacementKey, now: i64) -> Option<Self> {
        let placement = world.placements.get(key)?;
        let idle = placement.is_deleting() || placement.is_scheduling_disabled();
        (!idle).then(|| Self { world, key: key.clone(), placement, now })
    }

    /// The sets the placement draws from; an `Err` where there are none or one cannot be understood.
    fn sets(&self) -> Result<Vec<&'w ManagedClusterSet>, Verdict> {
        let bound: Vec<&ManagedClusterSet> = self
            .world
            .bindings
            .iter()
            .filter(|(key, binding)| {
                key.namespace == self.key.namespace && binding.cluster_set() == Some(&key.name)
            })
            .filter_map(|(key, _)| self.world.sets.get(&*key.name))
            .collect();
        if bound.is_empty() {
            return Err(Verdict::NoBindings);
        }
        let asked: Vec<&String> = self.placement.spec.cluster_sets.iter().flatten().collect();
        let sets: Vec<_> = bound
            .into_iter()
            .filter(|set| {
                asked.is_empty() || asked.iter().any(|asked| Some(*asked) == set.metadata.name.as_ref())
            })
            .collect();
        if sets.is_empty() { Err(Verdict::NoIntersection) } else { Ok(sets) }
    }

    fn members(&self) -> Result<Vec<&'w ManagedCluster>, Verdict> {
        let sets = self.sets()?;
        let probe = ManagedCluster::new("probe");
        if sets.iter().any(|set| in_set(set, &probe).is_none()) {
            let exists = |name: &String| self.world.clusters.contains_key(name);
            return Err(Verdict::Kept(self.held().into_iter().filter(exists).collect()));
        }
        let alive = self.world.clusters.values().filter(|cluster| !cluster.is_deleting());
        Ok(alive.filter(|cluster| sets.iter().any(|set| in_set(set, cluster) == Some(true))).collect())
    }

    /// The clusters of the placement's decisions.
    pub(crate) fn held(&self) -> BTreeSet<String> {
        let own = self.world.existing(&self.key);
        own.iter().flat_map(|object| object.decisions()).map(|entry| entry.cluster_name.clone()).collect()
    }

    /// What is held and in a set, or on its way out and not gone yet.
    fn still_granted(&self, members: &[&ManagedCluster]) -> BTreeSet<String> {
        let member = |name: &String| members.iter().any(|member| member.metadata.name.as_ref() == Some(name));
        let leaving = |name: &String| self.world.clusters.get(name).is_some_and(ManagedCluster::is_deleting);
        self.held().into_iter().filter(|name| member(name) || leaving(name)).collect()
    }

    fn passes(&self, cluster: &ManagedCluster) -> bool {
        let predicates = self.placement.spec.predicates.as_deref().unwrap_or_default();
        predicates.is_empty() || predicates.iter().any(|predicate| self.predicate_holds(predicate, cluster))
    }

    fn predicate_holds(&self, predicate: &ClusterPredicate, cluster: &ManagedCluster) -> bool {
        let Some(selector) = &predicate.required_cluster_selector else { return true };
        let by_labels =
            selector.label_selector.as_ref().is_none_or(|of| selector_holds(of, &labels(cluster)).unwrap());
        let by_claims = selector.claim_selector.iter().flat_map(|of| of.match_expressions.iter().flatten());
        let by_name = selector
            .cluster_names
            .as_ref()
            .is_none_or(|names| names.iter().any(|name| Some(name) == cluster.metadata.name.as_ref()));
        let expressions = selector.cel_selector.iter().flat_map(|of| of.cel_expressions.iter().flatten());
        by_labels
            && by_name
            && by_claims.into_iter().all(|of| requirement_holds(of, &claims(cluster)).unwrap())
            && expressions.into_iter().all(|source| self.expression_holds(source, cluster))
    }

    fn expression_holds(&self, source: &str, cluster: &ManagedCluster) -> bool {
        match EXPRESSIONS.iter().position(|known| *known == source) {
            Some(0) => labels(cluster).get("env").is_some_and(|env| env == "prod"),
            Some(1) => self.add_on_score(cluster, "demo", "cpu").is_some_and(|value| value > 0),
            Some(2) => claims(cluster).get("platform").is_some_and(|platform| platform == "AWS"),
            _ => panic!("not one of ours: {source}"),
        }
    }

    fn add_on_score(&self, cluster: &ManagedCluster, resource: &str, name: &str) -> Option<i64> {
        let key = PlacementKey::new(cluster.metadata.name.as_deref().unwrap(), resource);
        let score = self.world.scores.get(&key)?;
        let valid = score.valid_until().is_none_or(|until| self.now <= until.as_second());
        valid.then(|| score.score(name).map(i64::from)).flatten()
    }

    pub(crate) fn tolerated(&self, taint: &Taint) -> bool {
        self.placement.spec.tolerations.iter().flatten().filter(|toleration| matches(toleration, taint)).any(
            |toleration| match (toleration.toleration_seconds, &taint.time_added) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(seconds), Some(added)) => {
                    i128::from(self.now) < i128::from(added.0.as_second()) + i128::from(seconds)
                }
            },
        )
    }

    fn untolerated<'c>(&self, cluster: &'c ManagedCluster) -> Vec<&'c TaintEffect> {
        cluster.taints().iter().filter(|taint| !self.tolerated(taint)).map(|taint| &taint.effect).collect()
    }

    fn admitted(&self, cluster: &ManagedCluster) -> bool {
        let held = self.held().contains(cluster.metadata.name.as_deref().unwrap());
        self.untolerated(cluster).into_iter().all(|effect| match effect {
            TaintEffect::PreferNoSelect => true,
            TaintEffect::NoSelectIfNew => held,
            _ => false,
        })
    }

    /// Who could be selected.
    pub(crate) fn feasible(&self) -> Result<Vec<&'w ManagedCluster>, Verdict> {
        let members = self.members()?;
        Ok(members.into_iter().filter(|cluster| self.passes(cluster) && self.admitted(cluster)).collect())
    }

    /// The weights in force, by the name of the prioritizer.
    fn weights(&self) -> Vec<(String, i64)> {
        let policy = self.placement.spec.prioritizer_policy.as_ref();
        let mut weights = vec![("PreferNoSelect".to_owned(), 2)];
        if policy.is_none_or(|policy| policy.mode().as_str() != "Exact") {
            weights.extend([("Balance".to_owned(), 1), ("Steady".to_owned(), 1)]);
            if !self.spread_terms().is_empty() {
                weights.push(("Spread".to_owned(), 2));
            }
        }
        for configuration in policy.iter().flat_map(|policy| policy.configurations.iter().flatten()) {
            let add_on =
                configuration.score_coordinate.as_ref().and_then(|coordinate| coordinate.add_on.as_ref());
            let name = match add_on {
                Some(add_on) => format!("AddOn/{}/{}", add_on.resource_name, add_on.score_name),
                None => configuration.built_in().unwrap().to_owned(),
            };
            weights.retain(|(other, _)| *other != name);
            weights.push((name, i64::from(configuration.weight())));
        }
        weights
    }

    fn foreign_loads(&self) -> BTreeMap<String, u32> {
        let mut loads = BTreeMap::new();
        let own = |key: &PlacementKey, placement: Option<&str>| {
            key.namespace == self.key.namespace && placement == Some(&self.key.name)
        };
        for (key, object) in &self.world.decisions {
            if !own(key, object.placement_name()) {
                for entry in object.decisions() {
                    *loads.entry(entry.cluster_name.clone()).or_default() += 1;
                }
            }
        }
        loads
    }

    /// The score of every feasible cluster, without spreading.
    pub(crate) fn scores(&self, feasible: &[&ManagedCluster]) -> BTreeMap<String, i64> {
        let loads = self.foreign_loads();
        let highest = loads.values().max().copied().unwrap_or_default();
        let held = self.held();
        let amount = |cluster: &ManagedCluster, resource: &str| {
            cluster.capacity(resource)?;
            cluster.allocatable(resource)?.approximate_f64().ok()
        };
        let value = |prioritizer: &str, cluster: &ManagedCluster| -> i64 {
            let name = cluster.metadata.name.as_deref().unwrap();
            match prioritizer.split('/').collect::<Vec<_>>()[..] {
                ["Steady"] => i64::from(held.contains(name)) * 100,
                ["Balance"] => match loads.get(name) {
                    None | Some(0) => 100,
                    Some(load) => 2 * (100.0 * (0.5 - f64::from(*load) / f64::from(highest))) as i64,
                },
                ["PreferNoSelect"] => {
                    if self.untolerated(cluster).contains(&&TaintEffect::PreferNoSelect) {
                        -100
                    } else {
                        0
                    }
                }
                ["AddOn", resource, score] => self.add_on_score(cluster, resource, score).unwrap_or_default(),
                ["Spread"] => 0,
                [resource] => {
                    let resource = if resource.ends_with("CPU") { "cpu" } else { "memory" };
                    let all: Vec<f64> =
                        feasible.iter().filter_map(|cluster| amount(cluster, resource)).collect();
                    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    match amount(cluster, resource) {
                        None => 0,
                        Some(_) if most <= least => 100,
                        Some(amount) => (((amount - least) / (most - least) - 0.5) * 2.0 * 100.0) as i64,
                    }
                }
                _ => panic!("not one of ours: {prioritizer}"),
            }
        };
        let weights = self.weights();
        let total = |cluster: &ManagedCluster| {
            weights.iter().map(|(name, weight)| weight * value(name, cluster)).sum()
        };
        feasible.iter().map(|cluster| (cluster.metadata.name.clone().unwrap(), total(cluster))).collect()
    }

    pub(crate) fn spread_terms(&self) -> Vec<(String, TopologyKeyType, i64, bool)> {
        let constraints =
            self.placement.spec.spread_policy.iter().flat_map(|policy| policy.spread_constraints.iter());
        constraints
            .flatten()
            .map(|term| {
                let hard = term.when_unsatisfiable() == UnsatisfiableAction::DoNotSchedule;
                (term.topology_key.clone(), term.topology_key_type.clone(), i64::from(term.max_skew()), hard)
            })
            .collect()
    }

    pub(crate) fn place(&self, cluster: &str, key: &str, kind: &TopologyKeyType) -> Option<String> {
        let cluster = &self.world.clusters[cluster];
        let of = if *kind == TopologyKeyType::Claim { claims(cluster) } else { labels(cluster) };
        of.get(key).cloned()
    }

    /// Chooses from nothing, and, where that does not reach the number, from what is held if it keeps every rule.
    fn choose(&self, scores: &BTreeMap<String, i64>) -> Vec<String> {
        let wanted = self
            .placement
            .spec
            .number_of_clusters
            .map_or(usize::MAX, |count| usize::try_from(count).unwrap());
        let from_nothing = self.choose_from(scores, Vec::new(), wanted);
        let held: Vec<String> = self.held().into_iter().filter(|name| scores.contains_key(name)).collect();
        if held.len() <= wanted && self.keeps_every_rule(scores, &held) {
            let from_held = self.choose_from(scores, held, wanted);
            if from_held.len() > from_nothing.len() {
                return from_held;
            }
        }
        from_nothing
    }

    fn keeps_every_rule(&self, scores: &BTreeMap<String, i64>, chosen: &[String]) -> bool {
        let even = self.spread_terms().into_iter().filter(|(.., hard)| *hard).all(|(key, kind, skew, _)| {
            chosen.iter().all(|name| {
                self.crowd(chosen, scores, name, &key, &kind)
                    .is_some_and(|(here, least)| here - least <= skew)
            })
        });
        let apart = self.placement.spec.anti_affinity.as_ref().is_none_or(|anti| {
            let places: Vec<_> = chosen
                .iter()
                .map(|name| self.place(name, &anti.topology_key, &anti.topology_key_type))
                .collect();
            let distinct: BTreeSet<_> = places.iter().flatten().collect();
            places.iter().all(Option::is_some) && distinct.len() == chosen.len()
        });
        even && apart
    }

    /// Chooses step by step: each time everybody is asked, and the best that no rule forbids is taken.
    fn choose_from(
        &self,
        scores: &BTreeMap<String, i64>,
        mut chosen: Vec<String>,
        wanted: usize,
    ) -> Vec<String> {
        let terms = self.spread_terms();
        let weight: i64 =
            self.weights().iter().filter(|(name, _)| name == "Spread").map(|(_, weight)| weight).sum();
        while chosen.len() < wanted {
            let open =
                scores.keys().filter(|name| !chosen.contains(name) && self.allowed(&chosen, scores, name));
            let bids = open.map(|name| {
                let steps = terms.iter().map(|(key, kind, skew, _)| {
                    match self.crowd(&chosen, scores, name, key, kind) {
                        None => 0,
                        Some((here, least)) => match here + 1 - least - skew {
                            excess if excess <= 0 => 63,
                            excess => (32 - excess).max(0),
                        },
                    }
                });
                let value = steps.fold(0_i128, |value, steps| value * 64 + i128::from(steps));
                let most = 64_i128.pow(u32::try_from(terms.len()).unwrap()) - 1;
                let worth = if terms.is_empty() { 0 } else { (value * 200 / most - 100) as i64 };
                (scores[name] + weight * worth, value, Reverse(name.clone()))
            });
            let Some((_, _, Reverse(best))) = bids.max() else { break };
            chosen.push(best);
        }
        chosen
    }

    /// How many of the chosen are where `name` is, and how many in the emptiest topology.
    fn crowd(
        &self,
        chosen: &[String],
        scores: &BTreeMap<String, i64>,
        name: &str,
        key: &str,
        kind: &TopologyKeyType,
    ) -> Option<(i64, i64)> {
        let here = self.place(name, key, kind)?;
        let mut counts: BTreeMap<String, i64> =
            scores.keys().filter_map(|name| self.place(name, key, kind)).map(|place| (place, 0)).collect();
        for place in chosen.iter().filter_map(|name| self.place(name, key, kind)) {
            *counts.entry(place).or_default() += 1;
        }
        Some((counts[&here], counts.values().min().copied().unwrap_or_default()))
    }

    /// Whether one more may be chosen without breaking a hard rule.
    pub(crate) fn allowed(&self, chosen: &[String], scores: &BTreeMap<String, i64>, name: &str) -> bool {
        let apart = self.placement.spec.anti_affinity.as_ref().is_none_or(|apart| {
            let place = |name: &str| self.place(name, &apart.topology_key, &apart.topology_key_type);
            place(name).is_some_and(|here| chosen.iter().all(|other| place(other).as_ref() != Some(&here)))
        });
        apart
            && self.spread_terms().iter().filter(|(_, _, _, hard)| *hard).all(|(key, kind, skew, _)| {
                self.crowd(chosen, scores, name, key, kind)
                    .is_some_and(|(here, least)| here + 1 - least <= *skew)
            })
    }

    pub(crate) fn verdict(&self) -> Verdict {
        if self.placement.spec.number_of_clusters.is_some_and(|number| number < 0) {
            return match self.members() {
                Ok(members) => Verdict::Kept(self.still_granted(&members)),
                Err(verdict) => verdict,
            };
        }
        let feasible = match self.feasible() {
            Ok(feasible) => feasible,
            Err(verdict) => return verdict,
        };
        let scores = self.scores(&feasible);
        let chosen = self.choose(&scores);
        if chosen.is_empty() && self.members().is_ok_and(|members| members.is_empty()) {
            return Verdict::SetsEmpty;
        }
        Verdict::Groups(self.groups(chosen, &scores))
    }

    fn groups(
        &self,
        mut chosen: Vec<String>,
        scores: &BTreeMap<String, i64>,
    ) -> Vec<(String, Vec<(String, i64)>)> {
        chosen.sort();
        if self.placement.sort_by() == SortBy::Score {
            chosen.sort_by_key(|name| Reverse(scores[name]));
        }
        let strategy = self
            .placement
            .spec
            .decision_strategy
            .as_ref()
            .and_then(|strategy| strategy.group_strategy.as_ref());
        let total = chosen.len();
        let size = match strategy.and_then(|strategy| strategy.clusters_per_decision_group.as_ref()) {
            None => total,
            Some(IntOrString::Int(size)) => usize::try_from(*size).unwrap(),
            Some(IntOrString::String(text)) => {
                let percent: f64 = text.strip_suffix('%').unwrap().parse().unwrap();
                (percent / 100.0 * total as f64).ceil() as usize
            }
        };
        let size = if size == 0 || size > total { total } else { size };
        let mut groups = Vec::new();
        let mut close = |name: &str, members: Vec<String>| {
            for chunk in members.chunks(size.max(1)) {
                groups
                    .push((name.to_owned(), chunk.iter().map(|name| (name.clone(), scores[name])).collect()));
            }
        };
        for group in strategy.iter().flat_map(|strategy| strategy.decision_groups.iter().flatten()) {
            let selector = &group.group_cluster_selector;
            let (inside, outside) = chosen.into_iter().partition(|name| {
                let cluster = &self.world.clusters[name];
                let by_claims =
                    selector.claim_selector.iter().flat_map(|of| of.match_expressions.iter().flatten());
                selector
                    .label_selector
                    .as_ref()
                    .is_none_or(|of| selector_holds(of, &labels(cluster)).unwrap())
                    && by_claims.into_iter().all(|of| requirement_holds(of, &claims(cluster)).unwrap())
            });
            close(&group.group_name, inside);
            chosen = outside;
        }
        close("", chosen);
        if groups.is_empty() {
            groups.push((String::new(), Vec::new()));
        }
        groups
    }
}
