//! A fleet drawn from a seed: clusters as their agents describe them, and placements of eight kinds of predicates.
//!
//! Every property is drawn by itself from the seed, the number and a salt, so an object is the same whenever and in
//! whatever order it is made. The predicates match from an eighth to seven eighths of the clusters; nothing is tainted.

use std::collections::{BTreeMap, HashMap};

use berth_api::{
    ClusterClaimSelector, ClusterSelector, ManagedCluster, ManagedClusterClaim, ManagedClusterSet,
    ManagedClusterSetBinding, ManagedClusterSetBindingSpec, ManagedClusterSpec, ManagedClusterStatus,
    ManagedClusterVersion, Placement, Quantity,
    names::{condition::AVAILABLE, label},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};

use crate::fleet::{WANTED, condition, placement, scrambled};

const SET: &str = "sample";
const NAMESPACE: &str = "sample";
/// A label that a quarter of the clusters have.
const GPU: &str = "accelerator";
const PLATFORM: &str = "platform.example.com";
const VERSION: &str = "version.example.com";
const REGIONS: usize = 8;
const ENVIRONMENTS: [&str; 4] = ["prod", "staging", "dev", "test"];
const TIERS: [&str; 4] = ["gold", "silver", "bronze", "none"];
const PLATFORMS: [&str; 3] = ["AWS", "Azure", "GCP"];
const VERSIONS: [&str; 4] = ["4.16", "4.17", "4.18", "4.19"];

/// A fleet of any size, by its seed.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    seed: u64,
}

/// What is drawn of a cluster.
#[derive(Clone, Copy)]
enum Salt {
    Name,
    Id,
    Environment,
    Region,
    Platform,
    Tier,
    Owner,
    Gpu,
    Version,
    Size,
}

impl Sample {
    /// The fleet of that seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    fn bits(self, number: usize, salt: Salt) -> u64 {
        // Each step is one to one, so clusters of different numbers never share a name.
        scrambled(scrambled(number as u64) ^ scrambled(self.seed) ^ ((salt as u64) << 56))
    }

    fn pick(self, number: usize, salt: Salt, of: usize) -> usize {
        (self.bits(number, salt) % of as u64) as usize
    }

    /// The name of cluster `number`.
    pub fn name(self, number: usize) -> String {
        format!("cluster-{:016x}", self.bits(number, Salt::Name))
    }

    /// Cluster `number`: nine labels at most, five claims, three conditions, its resources.
    pub fn cluster(self, number: usize) -> ManagedCluster {
        let name = self.name(number);
        let mut labels = BTreeMap::from(
            [
                (label::CLUSTER_SET, SET.to_owned()),
                ("vendor", "OpenShift".to_owned()),
                ("env", ENVIRONMENTS[self.pick(number, Salt::Environment, ENVIRONMENTS.len())].to_owned()),
                ("region", region(self.pick(number, Salt::Region, REGIONS))),
                ("cloud", PLATFORMS[self.pick(number, Salt::Platform, PLATFORMS.len())].to_owned()),
                ("tier", TIERS[self.pick(number, Salt::Tier, TIERS.len())].to_owned()),
                ("owner", format!("team-{:02}", self.pick(number, Salt::Owner, 50))),
                ("name", name.clone()),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        if self.pick(number, Salt::Gpu, 4) == 0 {
            labels.insert(GPU.to_owned(), "gpu".to_owned());
        }
        ManagedCluster {
            metadata: ObjectMeta { name: Some(name), labels: Some(labels), ..ObjectMeta::default() },
            spec: Some(ManagedClusterSpec {
                hub_accepts_client: Some(true),
                lease_duration_seconds: Some(60),
                ..ManagedClusterSpec::default()
            }),
            status: Some(self.status(number)),
        }
    }

    fn status(self, number: usize) -> ManagedClusterStatus {
        let claims = [
            ("id.k8s.io", format!("{:016x}", self.bits(number, Salt::Id))),
            (PLATFORM, PLATFORMS[self.pick(number, Salt::Platform, PLATFORMS.len())].to_owned()),
            ("region.example.com", region(self.pick(number, Salt::Region, REGIONS))),
            ("product.example.com", "OpenShift".to_owned()),
            (VERSION, VERSIONS[self.pick(number, Salt::Version, VERSIONS.len())].to_owned()),
        ];
        let size = self.pick(number, Salt::Size, 48);
        let amounts = |spare: usize| {
            let amount = |amount: usize, unit: &str| Quantity::Text(format!("{amount}{unit}"));
            BTreeMap::from([
                ("cpu".to_owned(), amount(16 + size - spare, "")),
                ("memory".to_owned(), amount(64 + 4 * size - spare, "Gi")),
            ])
        };
        let conditions = [
            ("HubAcceptedManagedCluster", "HubClusterAdminAccepted"),
            ("ManagedClusterJoined", "ManagedClusterJoined"),
            (AVAILABLE, "ManagedClusterAvailable"),
        ];
        ManagedClusterStatus {
            conditions: Some(conditions.map(|(kind, reason)| condition(kind, reason)).to_vec()),
            capacity: Some(amounts(0)),
            allocatable: Some(amounts(2)),
            version: Some(ManagedClusterVersion { kubernetes: Some("v1.33.3".to_owned()) }),
            cluster_claims: Some(
                claims
                    .map(|(name, value)| ManagedClusterClaim {
                        name: Some(name.to_owned()),
                        value: Some(value),
                    })
                    .to_vec(),
            ),
            ..ManagedClusterStatus::default()
        }
    }

    /// The set of all clusters, by their exclusive label.
    pub fn set(self) -> ManagedClusterSet {
        ManagedClusterSet::new(SET)
    }

    /// The namespace of all placements.
    pub fn namespace(self) -> &'static str {
        NAMESPACE
    }

    /// The binding of the set to that namespace.
    pub fn binding(self) -> ManagedClusterSetBinding {
        let mut binding = ManagedClusterSetBinding::new(SET);
        binding.metadata.namespace = Some(NAMESPACE.to_owned());
        binding.spec = Some(ManagedClusterSetBindingSpec { cluster_set: Some(SET.to_owned()) });
        binding
    }

    /// Placement `number`: ten clusters of those that its predicate matches.
    pub fn placement(self, number: usize) -> Placement {
        let turn = number / 8;
        let here = region(turn % REGIONS);
        let version = |count: usize| -> Vec<&str> {
            (0..count).map(|place| VERSIONS[(turn + place) % VERSIONS.len()]).collect()
        };
        let predicate = match number % 8 {
            0 => labels("region", "In", &[&here]),
            1 => labels("env", "In", &["prod", "staging"]),
            2 => labels("region", "NotIn", &[&here]),
            3 => labels(GPU, "Exists", &[]),
            4 => claims(VERSION, "In", &version(2)),
            5 => claims(PLATFORM, "NotIn", &[PLATFORMS[turn % PLATFORMS.len()]]),
            6 => ClusterSelector {
                claim_selector: claims(VERSION, "In", &version(2)).claim_selector,
                ..labels("env", "In", &["prod", "staging", "dev"])
            },
            _ => ClusterSelector {
                label_selector: Some(LabelSelector {
                    match_labels: Some([("tier".to_owned(), TIERS[turn % TIERS.len()].to_owned())].into()),
                    match_expressions: None,
                }),
                ..ClusterSelector::default()
            },
        };
        placement(format!("placement-{number:05}"), NAMESPACE.to_owned(), Some(predicate), Vec::new())
    }

    /// How many clusters each of the first `placements` has to get from a fleet of so many `clusters`, by its namespace
    /// and name. One without any is left out: it is never seen to be decided.
    pub fn wanted(self, clusters: usize, placements: usize) -> HashMap<String, usize> {
        let fleet: Vec<_> = (0..clusters).map(|number| self.cluster(number)).collect();
        let mut known: HashMap<String, usize> = HashMap::new();
        (0..placements)
            .map(|number| {
                let placement = self.placement(number);
                let predicates = placement.spec.predicates.unwrap_or_default();
                let selector = predicates.into_iter().next().and_then(|only| only.required_cluster_selector);
                let selector = selector.expect("every placement of the sample has one predicate");
                let matching = *known
                    .entry(format!("{selector:?}"))
                    .or_insert_with(|| fleet.iter().filter(|cluster| matches(&selector, cluster)).count());
                let name = placement.metadata.name.unwrap_or_default();
                (format!("{NAMESPACE}/{name}"), matching.min(WANTED as usize))
            })
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

fn region(number: usize) -> String {
    format!("region-{number}")
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> LabelSelectorRequirement {
    let values: Vec<_> = values.iter().map(ToString::to_string).collect();
    LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: Some(values).filter(|values| !values.is_empty()),
    }
}

fn labels(key: &str, operator: &str, values: &[&str]) -> ClusterSelector {
    let match_expressions = Some(vec![requirement(key, operator, values)]);
    ClusterSelector {
        label_selector: Some(LabelSelector { match_expressions, match_labels: None }),
        ..ClusterSelector::default()
    }
}

fn claims(key: &str, operator: &str, values: &[&str]) -> ClusterSelector {
    let match_expressions = Some(vec![requirement(key, operator, values)]);
    ClusterSelector {
        claim_selector: Some(ClusterClaimSelector { match_claims: None, match_expressions }),
        ..ClusterSelector::default()
    }
}

/// Whether a cluster fits a selector of ours, said without any of the contenders' code.
fn matches(selector: &ClusterSelector, cluster: &ManagedCluster) -> bool {
    let fits = |requirement: &LabelSelectorRequirement, value: Option<&str>| {
        let listed = value.is_some_and(|value| requirement.values.iter().flatten().any(|one| one == value));
        match requirement.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            _ => value.is_some(),
        }
    };
    let label = |key: &str| cluster.metadata.labels.as_ref()?.get(key).map(String::as_str);
    let claim = |key: &str| cluster.claims().find(|(name, _)| *name == key).map(|(_, value)| value);
    let by_label = selector.label_selector.iter().all(|selector| {
        selector.match_labels.iter().flatten().all(|(key, value)| label(key) == Some(value))
            && selector.match_expressions.iter().flatten().all(|one| fits(one, label(&one.key)))
    });
    let by_claim = selector
        .claim_selector
        .iter()
        .all(|selector| selector.match_expressions.iter().flatten().all(|one| fits(one, claim(&one.key))));
    by_label && by_claim
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_fleet_and_another_one_another() {
        let (one, other) = (Sample::new(7), Sample::new(8));
        for number in [0, 1, 4_999] {
            assert_eq!(one.cluster(number), Sample::new(7).cluster(number));
            assert_ne!(one.cluster(number), other.cluster(number));
        }
    }

    #[test]
    fn no_two_clusters_share_a_name() {
        let sample = Sample::new(1);
        let names: std::collections::BTreeSet<_> = (0..10_000).map(|number| sample.name(number)).collect();
        assert_eq!(names.len(), 10_000);
    }

    #[test]
    fn predicates_match_from_an_eighth_to_seven_eighths_of_the_clusters() {
        let sample = Sample::new(1);
        let fleet: Vec<_> = (0..4_000).map(|number| sample.cluster(number)).collect();
        let mut shares: Vec<f64> = (0..8)
            .map(|number| {
                let predicates = sample.placement(number).spec.predicates.unwrap();
                let selector = predicates[0].required_cluster_selector.clone().unwrap();
                let count = fleet.iter().filter(|cluster| matches(&selector, cluster)).count();
                count as f64 / fleet.len() as f64
            })
            .collect();
        shares.sort_unstable_by(f64::total_cmp);
        let expected = [0.125, 0.25, 0.25, 0.375, 0.5, 0.5, 0.667, 0.875];
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 0.03, "{shares:?}");
        }
    }

    #[test]
    fn a_small_fleet_wants_no_more_clusters_than_match() {
        let wanted = Sample::new(1).wanted(20, 64);
        assert!(wanted.values().all(|count| (1..=10).contains(count)));
        assert!(wanted.values().any(|count| *count < 10));
        assert_eq!(Sample::new(1).wanted(1_000, 64).len(), 64);
    }
}
