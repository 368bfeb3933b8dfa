//! What the engine is measured against in the same run.
//!
//! The *textbook* decides as one would write it down first: it goes through the API objects, compares strings,
//! counts everybody's decisions and sorts. Its answer is compared with the engine's, so it does the same work. The
//! *scan* is the floor: one pass over numbers that somebody has already looked up, keeping the best ten.

use std::collections::{BTreeMap, HashMap, HashSet};

use berth_api::names::label;
use berth_api::{
    ManagedCluster, Placement, PlacementDecision, Taint, TaintEffect, Toleration, TolerationOperator,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::fleet;

/// The names of the clusters that `placement` selects out of its set, in order. Understands what the generated
/// fleet uses and no more: label selectors with `In`, tolerations without a time, the default prioritizers.
pub(crate) fn textbook(
    placement: &Placement,
    clusters: &[ManagedCluster],
    foreign: &[PlacementDecision],
    held: &HashSet<&str>,
) -> Vec<String> {
    let none = BTreeMap::new();
    let predicates = placement.spec.predicates.as_deref().unwrap_or_default();
    let tolerations = placement.spec.tolerations.as_deref().unwrap_or_default();
    let feasible = clusters.iter().filter_map(|cluster| {
        let name = cluster.metadata.name.as_deref()?;
        let labels = cluster.metadata.labels.as_ref().unwrap_or(&none);
        let selectors = predicates.iter().filter_map(|predicate| {
            predicate.required_cluster_selector.as_ref().and_then(|selector| selector.label_selector.as_ref())
        });
        let wanted = labels.get(label::CLUSTER_SET).is_some_and(|set| set == fleet::SET)
            && (predicates.is_empty() || selectors.into_iter().any(|selector| selects(selector, labels)))
            && cluster.taints().iter().all(|taint| {
                taint.effect == TaintEffect::PreferNoSelect
                    || (taint.effect == TaintEffect::NoSelectIfNew && held.contains(name))
                    || tolerations.iter().any(|toleration| covers(toleration, taint))
            });
        wanted.then_some(name)
    });
    let feasible: Vec<&str> = feasible.collect();
    let mut loads: HashMap<&str, u32> = HashMap::new();
    for chosen in foreign.iter().flat_map(PlacementDecision::decisions) {
        *loads.entry(&chosen.cluster_name).or_default() += 1;
    }
    let highest = loads.values().copied().max().unwrap_or_default();
    let mut ranked: Vec<(i64, &str)> = feasible
        .into_iter()
        .map(|name| {
            let balance = loads
                .get(name)
                .map_or(100, |load| 2 * (100.0 * (0.5 - f64::from(*load) / f64::from(highest))) as i64);
            let steady = if held.contains(name) { 100 } else { 0 };
            (balance + steady, name)
        })
        .collect();
    ranked
        .sort_by(|(score, name), (other_score, other)| other_score.cmp(score).then_with(|| name.cmp(other)));
    let count = placement.spec.number_of_clusters.and_then(|count| usize::try_from(count).ok());
    ranked.truncate(count.unwrap_or(usize::MAX));
    let mut names: Vec<String> = ranked.into_iter().map(|(_, name)| name.to_owned()).collect();
    names.sort_unstable();
    names
}

fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let mut equal = selector.match_labels.iter().flatten();
    let mut one_of = selector.match_expressions.iter().flatten();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && one_of.all(|requirement| {
            let values = requirement.values.as_deref().unwrap_or_default();
            labels.get(&requirement.key).is_some_and(|value| values.contains(value))
        })
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    (toleration.key().is_empty() || toleration.key() == taint.key)
        && toleration.effect().is_none_or(|effect| *effect == taint.effect)
        && (toleration.operator() == TolerationOperator::Exists || toleration.value() == taint.value())
}

/// A cluster after all the looking up, for the scan.
pub(crate) struct Plain {
    set: u32,
    vendor: u32,
    env: u32,
    barred: bool,
    load: u32,
}

/// The fleet for [`scan`].
pub(crate) fn plain(clusters: &[ManagedCluster], foreign: &[PlacementDecision]) -> Vec<Plain> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut loads: HashMap<&str, u32> = HashMap::new();
    for chosen in foreign.iter().flat_map(PlacementDecision::decisions) {
        *loads.entry(&chosen.cluster_name).or_default() += 1;
    }
    let mut plain = Vec::with_capacity(clusters.len());
    for cluster in clusters {
        let mut number = |key: &str| {
            let value = cluster.metadata.labels.as_ref().and_then(|labels| labels.get(key))?;
            let next = u32::try_from(numbers.len()).ok()?;
            Some(*numbers.entry(value).or_insert(next))
        };
        let [set, vendor, env] =
            [label::CLUSTER_SET, "vendor", "env"].map(|key| number(key).unwrap_or(u32::MAX));
        let barred = cluster.taints().iter().any(|taint| taint.effect == TaintEffect::NoSelect);
        let load =
            cluster.metadata.name.as_deref().and_then(|name| loads.get(name)).copied().unwrap_or_default();
        plain.push(Plain { set, vendor, env, barred, load });
    }
    plain
}

/// The ten least loaded clusters like the first two, as `(load, place)`.
pub(crate) fn scan(clusters: &[Plain]) -> [(u32, u32); 10] {
    let mut best = [(u32::MAX, u32::MAX); 10];
    let [first, second, ..] = clusters else { return best };
    for (place, cluster) in clusters.iter().enumerate() {
        let wanted = cluster.set == first.set
            && cluster.vendor == first.vendor
            && (cluster.env == first.env || cluster.env == second.env)
            && !cluster.barred;
        if wanted && cluster.load < best[9].0 {
            best[9] = (cluster.load, place as u32);
            best.sort_unstable();
        }
    }
    best
}
