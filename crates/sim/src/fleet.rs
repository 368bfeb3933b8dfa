//! The standing fleet: objects as a hub has them, the same on every run, by which the engine is measured.
//!
//! Two thirds of the clusters match the measured predicate; a quarter carries a taint that is not tolerated, a
//! quarter one that is. Names come in no order, as they do in life, so that nothing is sorted by chance.

use std::collections::BTreeMap;

use berth_api::{
    ClusterDecision, ClusterPredicate, ClusterSelector, ManagedCluster, ManagedClusterClaim,
    ManagedClusterSet, ManagedClusterSetBinding, ManagedClusterSetBindingSpec, ManagedClusterSpec,
    ManagedClusterStatus, ManagedClusterVersion, Placement, PlacementDecision, PlacementDecisionStatus,
    PlacementSpec, Quantity, Taint, TaintEffect, Toleration, TolerationOperator, names::label,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector, LabelSelectorRequirement, ObjectMeta, Time,
};
use k8s_openapi::jiff::Timestamp;

/// The set of all clusters.
pub const SET: &str = "fleet";
/// How many labels a cluster has.
pub const LABELS_PER_CLUSTER: usize = 20;
/// How many placements there are beside the measured one.
pub const OTHER_PLACEMENTS: usize = 1000;
/// The taint that comes and goes.
pub const MAINTENANCE: &str = "example.com/maintenance";
const NAMESPACES: usize = 50;
pub(crate) const WANTED: i32 = 10;
const REGIONS: usize = 16;
const EDGE: &str = "example.com/edge";
const RESERVED: &str = "example.com/reserved";

/// How much of a cluster is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Twenty labels, ten claims (two with a value of their own), two taints.
    Facts,
    /// The same with conditions, capacity and version as agents report them; half of the clusters have a taint.
    Whole,
}

/// The name of cluster `number`.
pub fn name(number: usize) -> String {
    format!("cluster-{:016x}", scrambled(number as u64))
}

/// Spreads small numbers over all of `u64`, each to one of its own.
pub(crate) fn scrambled(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for shift in [30, 27, 31] {
        bits = (bits ^ (bits >> shift)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    bits ^ (bits >> 32)
}

/// Cluster `number`.
pub fn cluster(number: usize, detail: Detail) -> ManagedCluster {
    let name = name(number);
    let id = format!("{:016x}-{number:08x}", scrambled(!(number as u64)));
    let mut object = ManagedCluster {
        metadata: ObjectMeta {
            labels: Some(labels(number, &name, &id)),
            name: Some(name),
            ..ObjectMeta::default()
        },
        ..ManagedCluster::default()
    };
    let all = [taint(EDGE, "far", TaintEffect::NoSelectIfNew), taint(RESERVED, "lab", TaintEffect::NoSelect)];
    let taints = match (detail, number % 4) {
        (Detail::Facts, _) => all.to_vec(),
        (Detail::Whole, 0) => all[1..].to_vec(),
        (Detail::Whole, 1) => all[..1].to_vec(),
        (Detail::Whole, _) => Vec::new(),
    };
    object.spec = Some(ManagedClusterSpec {
        hub_accepts_client: Some(true),
        lease_duration_seconds: Some(60),
        taints: Some(taints).filter(|taints| !taints.is_empty()),
        ..ManagedClusterSpec::default()
    });
    let mut status = ManagedClusterStatus { cluster_claims: Some(claims(number, &id)), ..Default::default() };
    if detail == Detail::Whole {
        object.metadata.uid = Some(id);
        object.metadata.creation_timestamp = Some(time());
        object.metadata.resource_version = Some(number.to_string());
        status.conditions = Some(
            [
                ("HubAcceptedManagedCluster", "Accepted"),
                ("ManagedClusterJoined", "Joined"),
                (AVAILABLE, "Available"),
            ]
            .map(|(kind, reason)| condition(kind, reason))
            .to_vec(),
        );
        status.version =
            Some(ManagedClusterVersion { kubernetes: Some(format!("v1.{}.3", 28 + number % 6)) });
        let amounts = |spare: usize| {
            let amount = |amount: usize, unit: &str| Quantity::Text(format!("{amount}{unit}"));
            BTreeMap::from([
                ("cpu".to_owned(), amount(16 + number % 48 - spare, "")),
                ("memory".to_owned(), amount(64 + number % 192 - spare, "Gi")),
            ])
        };
        status.capacity = Some(amounts(0));
        status.allocatable = Some(amounts(2));
    }
    object.status = Some(status);
    object
}

const AVAILABLE: &str = berth_api::names::condition::AVAILABLE;

fn labels(number: usize, name: &str, id: &str) -> BTreeMap<String, String> {
    const ADD_ONS: [&str; 7] = ["work", "policy", "observability", "search", "cert", "iam", "application"];
    let mut labels: BTreeMap<String, String> = ADD_ONS
        .iter()
        .map(|add_on| (format!("feature.example.com/addon-{add_on}"), "available".to_owned()))
        .collect();
    let own = [
        ("vendor", "OpenShift".to_owned()),
        ("env", ["prod", "staging", "dev"][number % 3].to_owned()),
        (label::CLUSTER_SET, SET.to_owned()),
        ("region", region(number / 13 % REGIONS)),
        ("cloud", ["Amazon", "Azure", "Google"][number / 7 % 3].to_owned()),
        ("tier", ["gold", "silver", "bronze", "none"][number / 5 % 4].to_owned()),
        ("openshiftVersion", format!("4.{}.{}", 14 + number % 6, number / 6 % 30)),
        ("owner", format!("team-{:02}", number / 3 % 50)),
        ("cost-center", format!("cc-{:03}", number / 11 % 40)),
        ("fips", number.is_multiple_of(10).to_string()),
        ("lifecycle", ["active", "retiring"][usize::from(number.is_multiple_of(20))].to_owned()),
        ("name", name.to_owned()),
        ("clusterID", id.to_owned()),
    ];
    labels.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value)));
    labels
}

fn claims(number: usize, id: &str) -> Vec<ManagedClusterClaim> {
    let claims = [
        ("id.k8s.io", id.to_owned()),
        ("consoleurl.cluster.example.com", format!("https://console.apps.{id}.example.com")),
        ("kubeversion.example.com", format!("v1.{}.3", 28 + number % 6)),
        ("platform.example.com", ["AWS", "Azure", "GCP"][number / 7 % 3].to_owned()),
        ("product.example.com", "OpenShift".to_owned()),
        ("region.example.com", region(number / 13 % REGIONS)),
        ("version.openshift.io", format!("4.{}.{}", 14 + number % 6, number / 6 % 30)),
        ("controlplanetopology.openshift.io", "HighlyAvailable".to_owned()),
        ("infrastructure.openshift.io", "{\"infraName\":\"shared\"}".to_owned()),
        ("schedulable.example.com", "true".to_owned()),
    ];
    claims
        .map(|(name, value)| ManagedClusterClaim { name: Some(name.to_owned()), value: Some(value) })
        .to_vec()
}

fn region(number: usize) -> String {
    format!("region-{number:02}")
}

pub(crate) fn condition(kind: &str, reason: &str) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: format!("The cluster is {reason}"),
        last_transition_time: time(),
        observed_generation: None,
    }
}

pub(crate) fn time() -> Time {
    Time(Timestamp::UNIX_EPOCH)
}

fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
    Taint { key: key.to_owned(), value: Some(value.to_owned()), effect, time_added: Some(time()) }
}

/// The cluster with a taint that nobody tolerates.
pub fn in_maintenance(mut cluster: ManagedCluster) -> ManagedCluster {
    let taints = cluster.spec.get_or_insert_default().taints.get_or_insert_default();
    taints.push(taint(MAINTENANCE, "", TaintEffect::NoSelect));
    cluster
}

/// The cluster with a label changed that no placement looks at.
pub fn relabelled(mut cluster: ManagedCluster, value: &str) -> ManagedCluster {
    cluster.metadata.labels.get_or_insert_default().insert("cost-center".to_owned(), value.to_owned());
    cluster
}

/// The set of all clusters, by their exclusive label.
pub fn set() -> ManagedClusterSet {
    ManagedClusterSet::new(SET)
}

/// A binding of the set to every namespace.
pub fn bindings() -> impl Iterator<Item = ManagedClusterSetBinding> {
    (0..NAMESPACES).map(|number| {
        let mut binding = ManagedClusterSetBinding::new(SET);
        binding.metadata.namespace = Some(namespace(number));
        binding.spec = Some(ManagedClusterSetBindingSpec { cluster_set: Some(SET.to_owned()) });
        binding
    })
}

fn namespace(number: usize) -> String {
    format!("tenant-{:02}", number % NAMESPACES)
}

/// The placement that is measured: ten clusters of `vendor=OpenShift, env in (prod, staging)`.
pub fn subject() -> Placement {
    placement("subject".to_owned(), namespace(0), Some(by_labels(production())), vec![tolerates(EDGE)])
}

/// The others: five kinds of predicates, three kinds of tolerations, all over the namespaces.
pub fn others() -> impl Iterator<Item = Placement> {
    (0..OTHER_PLACEMENTS).map(|number| {
        let predicate = match number % 5 {
            0 => Some(production()),
            1 => Some(LabelSelector {
                match_labels: Some([("env".into(), "prod".into())].into()),
                ..Default::default()
            }),
            2 => Some(selector("region", &[&region(number % REGIONS), &region((number + 5) % REGIONS)])),
            3 => Some(selector("tier", &["gold", "silver"])),
            _ => None,
        };
        let tolerations = match number % 4 {
            0 => vec![],
            3 => vec![tolerates(EDGE), tolerates(RESERVED)],
            _ => vec![tolerates(EDGE)],
        };
        placement(format!("other-{number:04}"), namespace(number), predicate.map(by_labels), tolerations)
    })
}

fn production() -> LabelSelector {
    LabelSelector {
        match_labels: Some([("vendor".to_owned(), "OpenShift".to_owned())].into()),
        ..selector("env", &["prod", "staging"])
    }
}

fn selector(key: &str, values: &[&str]) -> LabelSelector {
    let requirement = LabelSelectorRequirement {
        key: key.to_owned(),
        operator: "In".to_owned(),
        values: Some(values.iter().map(ToString::to_string).collect()),
    };
    LabelSelector { match_expressions: Some(vec![requirement]), match_labels: None }
}

fn tolerates(key: &str) -> Toleration {
    Toleration { key: Some(key.to_owned()), operator: Some(TolerationOperator::Exists), ..Default::default() }
}

fn by_labels(selector: LabelSelector) -> ClusterSelector {
    ClusterSelector { label_selector: Some(selector), ..ClusterSelector::default() }
}

/// A placement of ten clusters.
pub(crate) fn placement(
    name: String,
    namespace: String,
    predicate: Option<ClusterSelector>,
    tolerations: Vec<Toleration>,
) -> Placement {
    let predicate = predicate.map(|selector| ClusterPredicate {
        required_cluster_selector: Some(selector),
        ..ClusterPredicate::default()
    });
    Placement {
        metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() },
        spec: PlacementSpec {
            number_of_clusters: Some(WANTED),
            predicates: predicate.map(|predicate| vec![predicate]),
            tolerations: Some(tolerations),
            ..PlacementSpec::default()
        },
        status: None,
    }
}

/// The PlacementDecision of a placement that selected `clusters`.
pub fn decision(placement: &ObjectMeta, clusters: impl Iterator<Item = String>) -> PlacementDecision {
    let owner = placement.name.clone().unwrap_or_default();
    let decisions = clusters.map(|name| ClusterDecision { cluster_name: name, ..ClusterDecision::default() });
    PlacementDecision {
        metadata: ObjectMeta {
            name: Some(format!("{owner}-decision-1")),
            namespace: placement.namespace.clone(),
            labels: Some([(label::PLACEMENT.to_owned(), owner)].into()),
            ..ObjectMeta::default()
        },
        status: Some(PlacementDecisionStatus { decisions: decisions.collect() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_as_many_labels_claims_and_taints_as_the_figures_say() {
        let object = cluster(7, Detail::Facts);
        assert_eq!(object.metadata.labels.as_ref().unwrap().len(), LABELS_PER_CLUSTER);
        assert_eq!((object.claims().count(), object.taints().len()), (10, 2));
    }

    #[test]
    fn no_two_clusters_share_a_name() {
        let names: std::collections::BTreeSet<_> = (0..10_000).map(name).collect();
        assert_eq!(names.len(), 10_000);
    }
}
