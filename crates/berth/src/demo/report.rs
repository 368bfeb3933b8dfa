//! What a simulated agent says about its cluster, as a function of the cluster's name and the time.

use std::collections::BTreeMap;

use berth_api::ManagedCluster;
use berth_api::names::{condition, reason};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

/// What runs on the clusters of the demo.
const KUBERNETES: &str = "v1.36.4";
/// CPUs of the smallest cluster; others have two and three times as many.
const CPU_STEP: i64 = 32;
/// Memory for each CPU, in GiB.
const MEMORY_PER_CPU: i64 = 4;
/// How long the load of a cluster takes to rise and to fall again, in seconds.
const TIDE_SECONDS: i64 = 600;
/// The least and the most of a cluster that is allocatable, in percent.
const ALLOCATABLE_PERCENT: (i64, i64) = (40, 90);
/// How long a score counts after the agent fell silent.
const SCORE_LASTS: SignedDuration = SignedDuration::from_secs(60);

/// What a living agent makes true, with the reason and the words for it.
const CONDITIONS: [(&str, &str, &str); 3] = [
    (condition::HUB_ACCEPTED, reason::HUB_CLUSTER_ADMIN_ACCEPTED, "accepted by the demo"),
    (condition::JOINED, "ManagedClusterJoined", "the simulated agent has joined"),
    (
        condition::AVAILABLE,
        reason::CLUSTER_AVAILABLE,
        "the simulated agent says that the cluster is available",
    ),
];

/// Whether the hub knows everything of the cluster that a living agent makes true.
pub(super) fn is_well(cluster: &ManagedCluster) -> bool {
    CONDITIONS.iter().all(|(kind, ..)| cluster.condition(kind).is_some_and(|known| known.status == "True"))
}

/// The status of a cluster, as a merge patch on the very object that was seen.
pub(super) fn report(cluster: &ManagedCluster, now: Timestamp) -> Value {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let cpu = cpus(name);
    let percent = allocatable_percent(name, now);
    let resources = |percent: i64| {
        let cpu = cpu * percent / 100;
        json!({"cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * MEMORY_PER_CPU)})
    };
    let labels = cluster.metadata.labels.as_ref();
    let region = labels.and_then(|labels| labels.get("region")).map_or("nowhere", String::as_str);
    json!({
        "metadata": {"resourceVersion": cluster.metadata.resource_version},
        "status": {
            "conditions": conditions(cluster, now),
            "capacity": resources(100),
            "allocatable": resources(percent),
            "version": {"kubernetes": KUBERNETES},
            "clusterClaims": [
                {"name": "kubeversion.open-cluster-management.io", "value": KUBERNETES},
                {"name": "region.open-cluster-management.io", "value": region},
            ],
        },
    })
}

/// The score of a cluster: how much of it is free, from -100 to 100.
pub(super) fn score(name: &str, now: Timestamp) -> Value {
    let headroom = 2 * allocatable_percent(name, now) - 100;
    let until = now.saturating_add(SCORE_LASTS).expect("a signed duration saturates");
    json!({"scores": [{"name": "headroom", "value": headroom}], "validUntil": Time(until)})
}

/// Ours as a living agent has them, with the moment they became so; those of others as they are.
fn conditions(cluster: &ManagedCluster, now: Timestamp) -> Vec<Condition> {
    let known = cluster.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut all: BTreeMap<String, Condition> =
        known.map(|condition| (condition.type_.clone(), condition.clone())).collect();
    for (kind, reason, message) in CONDITIONS {
        let since = all.get(kind).filter(|known| known.status == "True");
        let condition = Condition {
            type_: kind.to_owned(),
            status: "True".to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: since.map_or(Time(now), |known| known.last_transition_time.clone()),
            observed_generation: None,
        };
        all.insert(kind.to_owned(), condition);
    }
    all.into_values().collect()
}

fn cpus(name: &str) -> i64 {
    CPU_STEP * (1 + phase(name) % 3)
}

/// Rises and falls evenly, each cluster in its own turn.
fn allocatable_percent(name: &str, now: Timestamp) -> i64 {
    let (least, most) = ALLOCATABLE_PERCENT;
    let at = (now.as_second() + phase(name)).rem_euclid(TIDE_SECONDS);
    let half = TIDE_SECONDS / 2;
    let height = if at < half { at } else { TIDE_SECONDS - at };
    least + (most - least) * height / half
}

/// A number of its own for each name, the same in every run.
fn phase(name: &str) -> i64 {
    name.bytes().fold(0, |sum, byte| (sum * 31 + i64::from(byte)) % TIDE_SECONDS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_report_keeps_the_conditions_of_others_and_the_time_of_its_own() {
        let start = Timestamp::constant(1_800_000_000, 0);
        let later = Timestamp::constant(1_800_000_100, 0);
        let mut cluster = ManagedCluster::new("fra-1");
        cluster.metadata.resource_version = Some("7".to_owned());
        let mut status = report(&cluster, start)["status"].clone();
        let other = json!({"type": "Other", "status": "False", "reason": "Because", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        status["conditions"].as_array_mut().unwrap().push(other.clone());
        cluster.status = serde_json::from_value(status).unwrap();
        let again = report(&cluster, later);
        assert_eq!(again["metadata"]["resourceVersion"], "7");
        let conditions = again["status"]["conditions"].as_array().unwrap();
        assert!(conditions.contains(&other));
        assert_eq!(conditions.len(), 4);
        let ours = conditions.iter().filter(|condition| condition["type"] != "Other");
        ours.for_each(|condition| assert_eq!(condition["lastTransitionTime"], json!(Time(start))));
    }

    proptest! {
        #[test]
        fn a_cluster_changes_slowly_and_within_bounds(name in "[a-z0-9-]{1,20}", second in 0_i64..4_000_000_000) {
            let moment = |second| Timestamp::new(second, 0).unwrap();
            let (now, soon) = (allocatable_percent(&name, moment(second)), allocatable_percent(&name, moment(second + 10)));
            prop_assert!((40..=90).contains(&now));
            prop_assert!((now - soon).abs() <= 3, "{now} {soon}");
            let value = score(&name, moment(second))["scores"][0]["value"].as_i64().unwrap();
            prop_assert!((-100..=100).contains(&value));
        }
    }
}
