//! What leads nowhere in a world: bindings that do not count, and sets that are not there.
//!
//! Owns the warnings about references between objects that a hub would accept without a word. Never refuses anything.

use std::collections::BTreeMap;

use berth_api::names::label::CLUSTER_SET;

use super::{World, near};
use crate::manifest::Warning;

/// A warning for every reference that leads nowhere. None where there is no placement to suffer from it.
pub fn loose_ends(world: &World) -> Vec<Warning> {
    if world.placements.is_empty() {
        return Vec::new();
    }
    let mut warnings = bindings(world);
    warnings.extend(memberships(world));
    warnings
}

fn bindings(world: &World) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (key, item) in &world.bindings {
        let title = format!("ManagedClusterSetBinding {}/{}", key.namespace, key.name);
        let set = item.object.cluster_set().unwrap_or_default();
        let message = if set != &*key.name {
            format!("{set:?} is not the name of {title}: a binding counts only where both are the same")
        } else if !world.sets.contains_key(set) {
            let near = near(set, world.sets.keys().map(String::as_str));
            format!("there is no ManagedClusterSet {set} in the input, so {title} does not count{near}")
        } else {
            continue;
        };
        warnings.push(item.warning("spec.clusterSet", message));
    }
    warnings
}

fn memberships(world: &World) -> Vec<Warning> {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, item) in &world.clusters {
        let set = item.object.metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER_SET));
        if let Some(set) = set.filter(|set| !set.is_empty() && !world.sets.contains_key(*set)) {
            missing.entry(set).or_default().push(name);
        }
    }
    let warning = |(set, clusters): (&str, Vec<&str>)| {
        let first = clusters[0];
        let who = match clusters.len() {
            1 => format!("ManagedCluster {first} is"),
            count => format!("{count} ManagedClusters, the first of them {first}, are"),
        };
        let near = near(set, world.sets.keys().map(String::as_str));
        let message =
            format!("there is no ManagedClusterSet {set} in the input, which {who} labelled with{near}");
        world.clusters[first].warning(&format!("metadata.labels[{CLUSTER_SET}]"), message)
    };
    missing.into_iter().map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::load;
    use crate::world::read;

    const API: &str = "apiVersion: cluster.open-cluster-management.io";

    fn warnings(placement: &str) -> Vec<String> {
        let cluster = |name: &str, set: &str| {
            format!(
                "---\n{API}/v1\nkind: ManagedCluster\nmetadata: {{name: {name}, labels: {{{CLUSTER_SET}: {set}}}}}\n"
            )
        };
        let binding = |name: &str, set: &str| {
            format!(
                "---\n{API}/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {{name: {name}, namespace: ns1}}\nspec: {{clusterSet: {set}}}\n"
            )
        };
        let text = [
            format!("{API}/v1beta2\nkind: ManagedClusterSet\nmetadata: {{name: prod}}\n"),
            binding("prod", "prod"),
            binding("prd", "prd"),
            binding("other", "prod"),
            cluster("c1", "prod"),
            cluster("c2", "test"),
            cluster("c3", "test"),
            cluster("c4", "prods"),
            placement.to_owned(),
        ]
        .concat();
        let reading = read(load(&["-".into()], &mut text.as_bytes()));
        assert_eq!(reading.problems, []);
        loose_ends(&reading.world).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn bindings_that_do_not_count_and_sets_that_are_missing_are_told_with_their_place() {
        let placement = format!("---\n{API}/v1beta1\nkind: Placement\nmetadata: {{name: a}}\nspec: {{}}\n");
        assert_eq!(
            warnings(&placement),
            [
                "warning: <stdin>:18: spec.clusterSet: \"prod\" is not the name of ManagedClusterSetBinding ns1/other: a binding counts only where both are the same",
                "warning: <stdin>:13: spec.clusterSet: there is no ManagedClusterSet prd in the input, so ManagedClusterSetBinding ns1/prd does not count; did you mean prod?",
                "warning: <stdin>:34: metadata.labels[cluster.open-cluster-management.io/clusterset]: there is no ManagedClusterSet prods in the input, which ManagedCluster c4 is labelled with; did you mean prod?",
                "warning: <stdin>:26: metadata.labels[cluster.open-cluster-management.io/clusterset]: there is no ManagedClusterSet test in the input, which 2 ManagedClusters, the first of them c2, are labelled with",
            ]
        );
        assert_eq!(warnings(""), [] as [&str; 0], "nothing is decided, so nothing is missed");
    }
}
