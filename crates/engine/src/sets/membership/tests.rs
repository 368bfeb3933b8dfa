//! Upstream's cases about members, and that counting by difference is counting.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::condition::whole_second;

fn cluster(name: &str, labels: &[(&str, &str)]) -> Arc<ManagedCluster> {
    let mut cluster = ManagedCluster::new(name);
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    cluster.metadata.labels = Some(labels);
    Arc::new(cluster)
}

fn set(name: &str, selector: &Value) -> ManagedClusterSet {
    let mut set = ManagedClusterSet::new(name);
    set.metadata.generation = Some(1);
    set.spec = Some(serde_json::from_value(json!({ "clusterSelector": selector })).unwrap());
    set
}

fn exclusive(name: &str) -> ManagedClusterSet {
    set(name, &json!({"selectorType": "ExclusiveClusterSetLabel"}))
}

fn selecting(name: &str, selector: &Value) -> ManagedClusterSet {
    set(name, &json!({"selectorType": "LabelSelector", "labelSelector": selector}))
}

/// What a set of its kind says when these two clusters are there.
fn said(set: &ManagedClusterSet) -> (String, String, String) {
    let mut all = Memberships::default();
    all.cluster("c1", Some(&cluster("c1", &[(label::CLUSTER_SET, "blue"), ("vendor", "acme")])));
    all.cluster("c2", Some(&cluster("c2", &[("vendor", "acme")])));
    all.set("blue", Some(set));
    let condition = empty_condition(set, all.count("blue").unwrap(), Moment::from_second(1)).unwrap();
    assert_eq!(condition.type_, "ClusterSetEmpty");
    assert_eq!(condition.observed_generation, Some(1));
    (condition.status, condition.reason, condition.message)
}

fn is(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.into(), reason.into(), message.into())
}

/// Upstream: hub/managedclusterset/controller_test.go "TestSyncClusterSet: sync a legacy clusterset".
#[test]
fn an_exclusive_set_has_the_clusters_that_name_it() {
    assert_eq!(said(&exclusive("blue")), is("False", "ClustersSelected", "1 ManagedClusters selected"));
    let legacy = set("blue", &json!({"selectorType": "LegacyClusterSetLabel"}));
    assert_eq!(said(&legacy), is("False", "ClustersSelected", "1 ManagedClusters selected"));
}

/// Upstream: hub/managedclusterset/controller_test.go "TestSyncClusterSet: sync a empty cluster set",
/// "TestSyncClusterSet: sync a legacy clusterset, and no cluster matched".
#[test]
fn a_set_that_no_cluster_names_is_empty() {
    let mut all = Memberships::default();
    all.set("red", Some(&exclusive("red")));
    let condition = empty_condition(&exclusive("red"), all.count("red").unwrap(), Moment::from_second(1));
    let condition = condition.unwrap();
    assert_eq!(
        (&*condition.status, &*condition.reason, &*condition.message),
        ("True", "NoClusterMatched", "No ManagedCluster selected")
    );
}

/// Upstream: hub/managedclusterset/controller_test.go "TestSyncClusterSet: sync a labelselector clusterset".
#[test]
fn a_selector_set_has_the_clusters_that_match() {
    let acme = selecting("blue", &json!({"matchLabels": {"vendor": "acme"}}));
    assert_eq!(said(&acme), is("False", "ClustersSelected", "2 ManagedClusters selected"));
}

/// Upstream: hub/managedclusterset/controller_test.go "TestSyncClusterSet: sync a global clusterset".
#[test]
fn a_set_with_an_empty_selector_has_every_cluster() {
    assert_eq!(
        said(&selecting("blue", &json!({}))),
        is("False", "ClustersSelected", "2 ManagedClusters selected")
    );
}

/// Upstream: hub/managedclusterset/controller_test.go "TestSyncClusterSet: sync a label clusterset with no
/// labelselector specified(no cluster matched)".
#[test]
fn a_selector_set_without_a_selector_has_none() {
    let none = set("blue", &json!({"selectorType": "LabelSelector"}));
    assert_eq!(said(&none), is("True", "NoClusterMatched", "No ManagedCluster selected"));
}

/// Upstream: hub/managedclusterset/controller_test.go "TestSyncClusterSet: ignore any other clusterset".
#[test]
fn a_set_that_cannot_be_understood_says_so_and_spoils_no_other() {
    let (status, reason, message) = said(&set("blue", &json!({"selectorType": "SingleClusterLabel"})));
    assert_eq!((&*status, &*reason), ("Unknown", "ClusterSelectorInvalid"));
    assert!(message.contains("SingleClusterLabel"), "{message}");
    let mut all = Memberships::default();
    let broken = json!({"matchExpressions": [{"key": "a", "operator": "In"}]});
    all.set("broken", Some(&selecting("broken", &broken)));
    all.set("blue", Some(&exclusive("blue")));
    let touched = all.cluster("c1", Some(&cluster("c1", &[(label::CLUSTER_SET, "blue")])));
    assert_eq!(touched, [Arc::from("blue")]);
    assert!(all.count("broken").unwrap().is_err());
    assert_eq!(all.count("nowhere"), None);
}

#[test]
fn a_set_that_says_so_already_or_is_on_its_way_out_is_left_alone() {
    let mut told = exclusive("blue");
    let condition = empty_condition(&told, Ok(3), Moment::from_second(1)).unwrap();
    told.status.get_or_insert_default().conditions = Some(vec![condition]);
    assert_eq!(empty_condition(&told, Ok(3), Moment::from_second(2)), None);
    let recounted = empty_condition(&told, Ok(4), Moment::from_second(2)).unwrap();
    assert_eq!(recounted.last_transition_time, whole_second(Moment::from_second(1)));
    told.metadata.deletion_timestamp = Some(whole_second(Moment::from_second(1)));
    assert_eq!(empty_condition(&told, Ok(4), Moment::from_second(2)), None);
}

/// Upstream: hub/managedclusterset/controller_test.go "TestEnqueueUpdateClusterClusterSet", "TestGetDiffClustersets".
#[test]
fn a_cluster_that_moves_touches_the_set_it_left_and_the_set_it_joined() {
    let mut all = Memberships::default();
    for name in ["blue", "red", "green"] {
        all.set(name, Some(&exclusive(name)));
    }
    all.set("all", Some(&selecting("all", &json!({}))));
    let names = |touched: Vec<Arc<str>>| touched.iter().map(ToString::to_string).collect::<Vec<_>>();
    let put = |all: &mut Memberships, set: &str| {
        names(all.cluster("c1", Some(&cluster("c1", &[(label::CLUSTER_SET, set), ("note", set)]))))
    };
    assert_eq!(put(&mut all, "blue"), ["all", "blue"]);
    assert_eq!(put(&mut all, "red"), ["blue", "red"]);
    assert_eq!(put(&mut all, "red"), [""; 0]);
    assert_eq!(names(all.cluster("c1", Some(&cluster("c1", &[])))), ["red"]);
    assert_eq!(names(all.cluster("c1", None)), ["all"]);
    assert_eq!(names(all.cluster("c1", None)), [""; 0]);
}

#[test]
fn a_cluster_being_deleted_is_a_member_until_it_is_gone() {
    let mut all = Memberships::default();
    all.set("blue", Some(&exclusive("blue")));
    let mut leaving = ManagedCluster::clone(&cluster("c1", &[(label::CLUSTER_SET, "blue")]));
    leaving.metadata.deletion_timestamp = Some(whole_second(Moment::from_second(1)));
    all.cluster("c1", Some(&Arc::new(leaving)));
    assert_eq!(all.count("blue"), Some(Ok(1)));
    all.cluster("c1", None);
    assert_eq!(all.count("blue"), Some(Ok(0)));
}

#[derive(Clone, Debug)]
enum Step {
    Cluster(usize, Option<Vec<(&'static str, &'static str)>>),
    Set(usize, Option<usize>),
}

const SETS: [&str; 3] = ["s0", "s1", "s2"];

fn kind(set: usize, kind: usize) -> ManagedClusterSet {
    let name = SETS[set];
    match kind {
        0 => exclusive(name),
        1 => selecting(name, &json!({})),
        2 => selecting(name, &json!({"matchLabels": {"a": "1"}})),
        3 => selecting(
            name,
            &json!({"matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": ["1"]}, {"key": "b", "operator": "DoesNotExist"},
            ]}),
        ),
        4 => set_without_selector(name),
        _ => selecting(name, &json!({"matchExpressions": [{"key": "a", "operator": "Near"}]})),
    }
}

fn set_without_selector(name: &str) -> ManagedClusterSet {
    set(name, &json!({"selectorType": "LabelSelector"}))
}

fn step() -> impl Strategy<Value = Step> {
    let label = (
        prop_oneof![Just(label::CLUSTER_SET), Just("a"), Just("b")],
        prop_oneof![Just("1"), Just("2"), Just("s0"), Just("s1")],
    );
    let labels = proptest::option::of(proptest::collection::vec(label, 0..4));
    prop_oneof![
        (0..4_usize, labels).prop_map(|(cluster, labels)| Step::Cluster(cluster, labels)),
        (0..SETS.len(), proptest::option::of(0..6_usize)).prop_map(|(set, kind)| Step::Set(set, kind)),
    ]
}

proptest! {
    #[test]
    fn counting_by_difference_is_counting_and_names_every_set_that_changed(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut all = Memberships::default();
        let mut clusters: [Option<Arc<ManagedCluster>>; 4] = Default::default();
        let mut sets: [Option<ManagedClusterSet>; 3] = Default::default();
        for step in steps {
            let before = SETS.map(|set| all.count(set).map(|count| count.map_err(ToOwned::to_owned)));
            let touched = match step {
                Step::Cluster(index, labels) => {
                    let name = format!("c{index}");
                    clusters[index] = labels.map(|labels| cluster(&name, &labels));
                    all.cluster(&name, clusters[index].as_ref())
                }
                Step::Set(index, kinds) => {
                    sets[index] = kinds.map(|kinds| kind(index, kinds));
                    if all.set(SETS[index], sets[index].as_ref()) { vec![SETS[index].into()] } else { Vec::new() }
                }
            };
            for (index, name) in SETS.into_iter().enumerate() {
                let afresh = sets[index].as_ref().map(|set| {
                    let term = term_of(set)?;
                    let members = clusters.iter().flatten();
                    let matching = |cluster: &ManagedCluster| {
                        term.as_ref().is_some_and(|term| matches(&term.requirements, cluster))
                    };
                    Ok::<usize, String>(members.filter(|cluster| matching(cluster)).count())
                });
                let now = all.count(name).map(|count| count.map_err(ToOwned::to_owned));
                prop_assert_eq!(&now, &afresh);
                prop_assert!(now == before[index] || touched.iter().any(|touched| **touched == *name));
            }
        }
    }
}
