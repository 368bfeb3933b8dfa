//! A vocabulary for small worlds: fleets, placements, decisions and scores in a few words each.
//!
//! Times are seconds after a fixed moment; [`at`] makes a [`Moment`] of them.

use std::collections::BTreeMap;

use berth_api::{
    AddOnPlacementScore, AddOnPlacementScoreItem, AddOnScore, AntiAffinity, ClusterPredicate, DecisionGroup,
    ManagedCluster, ManagedClusterClaim, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision, PrioritizerConfig, Quantity, ScoreCoordinate, SpreadConstraint, Taint, Toleration,
    names,
};
use berth_engine::{Delta, Moment, PlacementKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use crate::world::World;

/// The moment that times in fixtures are counted from: the start of 2026.
const START_SECOND: i64 = 1_767_225_600;

/// The namespace in which the set of [`fleet`] is bound.
pub(crate) const NAMESPACE: &str = "ns";

/// The moment `seconds` after the start of fixtures.
pub(crate) fn at(seconds: i64) -> Moment {
    Moment::from_second(START_SECOND.saturating_add(seconds))
}

/// The same as an API time.
pub(crate) fn time(seconds: i64) -> Time {
    Time(at(seconds).timestamp().unwrap())
}

/// Objects to decide about; the words about a cluster speak of the last one added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) objects: Vec<Delta>,
}

/// Clusters in a set called `all`, which has every cluster and is bound to [`NAMESPACE`].
pub(crate) fn fleet() -> Fleet {
    bare().set_of("all", json!({})).bind("all", NAMESPACE)
}

/// Nothing at all.
pub(crate) fn bare() -> Fleet {
    Fleet::default()
}

impl Fleet {
    fn last(&mut self) -> &mut ManagedCluster {
        match self.objects.last_mut() {
            Some(Delta::Cluster(cluster)) => cluster,
            _ => panic!("the last object added is no cluster"),
        }
    }

    pub(crate) fn with(mut self, delta: Delta) -> Self {
        self.objects.push(delta);
        self
    }

    pub(crate) fn cluster(self, name: &str) -> Self {
        self.with(Delta::Cluster(Box::new(ManagedCluster::new(name))))
    }

    /// Clusters without anything to tell them apart but their names.
    pub(crate) fn clusters(self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        names.into_iter().fold(self, |fleet, name| fleet.cluster(name.as_ref()))
    }

    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.last().metadata.labels.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Puts the cluster into an exclusive set.
    pub(crate) fn in_set(self, set: &str) -> Self {
        self.label(names::label::CLUSTER_SET, set)
    }

    pub(crate) fn claim(mut self, name: &str, value: &str) -> Self {
        let claims = self.last().status.get_or_insert_default().cluster_claims.get_or_insert_default();
        claims.push(ManagedClusterClaim { name: Some(name.into()), value: Some(value.into()) });
        self
    }

    /// A taint written `key=value:Effect` or `key:Effect`, put on at `added`.
    pub(crate) fn taint(mut self, taint: &str, added: i64) -> Self {
        let taint = Taint { time_added: Some(time(added)), ..read_taint(taint) };
        self.last().spec.get_or_insert_default().taints.get_or_insert_default().push(taint);
        self
    }

    /// A taint that does not say when it was put on.
    pub(crate) fn timeless_taint(mut self, taint: &str) -> Self {
        self.last().spec.get_or_insert_default().taints.get_or_insert_default().push(read_taint(taint));
        self
    }

    /// Allocatable amounts, with twice that capacity.
    pub(crate) fn resources(mut self, cpu: &str, memory: &str) -> Self {
        let status = self.last().status.get_or_insert_default();
        let of = |text: &str| Quantity::parse(text).unwrap();
        let amounts = BTreeMap::from([("cpu".to_owned(), of(cpu)), ("memory".to_owned(), of(memory))]);
        status.capacity = Some(amounts.clone());
        status.allocatable = Some(amounts);
        self
    }

    pub(crate) fn available(mut self, status: &str) -> Self {
        let condition = Condition {
            type_: names::condition::AVAILABLE.into(),
            status: status.into(),
            reason: "Told".into(),
            message: String::new(),
            last_transition_time: time(0),
            observed_generation: None,
        };
        self.last().status.get_or_insert_default().conditions.get_or_insert_default().push(condition);
        self
    }

    pub(crate) fn deleting(mut self) -> Self {
        self.last().metadata.deletion_timestamp = Some(time(0));
        self
    }

    /// An exclusive set.
    pub(crate) fn set(self, name: &str) -> Self {
        self.with(Delta::Set(Box::new(ManagedClusterSet::new(name))))
    }

    /// A set of the clusters that a label selector matches.
    pub(crate) fn set_of(self, name: &str, selector: Value) -> Self {
        self.set_by(name, json!({"selectorType": "LabelSelector", "labelSelector": selector}))
    }

    /// A set with this cluster selector.
    pub(crate) fn set_by(self, name: &str, selector: Value) -> Self {
        let mut set = ManagedClusterSet::new(name);
        set.spec = Some(serde_json::from_value(json!({ "clusterSelector": selector })).unwrap());
        self.with(Delta::Set(Box::new(set)))
    }

    pub(crate) fn bind(self, set: &str, namespace: &str) -> Self {
        let mut binding = ManagedClusterSetBinding::new(set);
        binding.metadata.namespace = Some(namespace.into());
        binding.spec = Some(serde_json::from_value(json!({ "clusterSet": set })).unwrap());
        self.with(Delta::Binding(Box::new(binding)))
    }

    /// A score of a cluster, valid until (and at) a time, or for ever.
    pub(crate) fn score(
        self,
        cluster: &str,
        resource: &str,
        name: &str,
        value: i32,
        until: Option<i64>,
    ) -> Self {
        self.scores(cluster, resource, &[(name, value)], until)
    }

    pub(crate) fn scores(
        self,
        cluster: &str,
        resource: &str,
        values: &[(&str, i32)],
        until: Option<i64>,
    ) -> Self {
        self.with(Delta::Score(Box::new(score(cluster, resource, values, until))))
    }

    /// A slice of a placement's decisions.
    pub(crate) fn decided(self, placement: &PlacementKey, clusters: &[&str]) -> Self {
        self.with(Delta::Decision(Box::new(decision(placement, 1, clusters))))
    }

    pub(crate) fn placement(self, placement: &Request) -> Self {
        self.with(Delta::Placement(Box::new(placement.0.clone())))
    }

    pub(crate) fn world(self) -> World {
        World::of(self.objects)
    }

    /// Whom the placement selects here, by name, in order.
    pub(crate) fn selected(self, placement: &Request, now: i64) -> Vec<String> {
        self.placement(placement).world().selected(&placement.key(), at(now))
    }
}

fn read_taint(text: &str) -> Taint {
    let (key, effect) = text.split_once(':').expect("a taint is written key=value:Effect");
    let (key, value) = key.split_once('=').map_or((key, None), |(key, value)| (key, Some(value.to_owned())));
    Taint { key: key.into(), value, effect: effect.into(), time_added: None }
}

pub(crate) fn score(
    cluster: &str,
    resource: &str,
    values: &[(&str, i32)],
    until: Option<i64>,
) -> AddOnPlacementScore {
    let mut score = AddOnPlacementScore::new(resource);
    score.metadata.namespace = Some(cluster.into());
    let status = score.status.get_or_insert_default();
    let items =
        values.iter().map(|(name, value)| AddOnPlacementScoreItem { name: (*name).into(), value: *value });
    status.scores = Some(items.collect());
    status.valid_until = until.map(time);
    score
}

/// Slice `number` of a placement's decisions.
pub(crate) fn decision(placement: &PlacementKey, number: usize, clusters: &[&str]) -> PlacementDecision {
    let mut object = PlacementDecision::new(&format!("{}-decision-{number}", placement.name));
    object.metadata.namespace = Some(placement.namespace.to_string());
    object.metadata.labels = Some(BTreeMap::from([
        (names::label::PLACEMENT.to_owned(), placement.name.to_string()),
        (names::label::DECISION_GROUP_NAME.to_owned(), String::new()),
        (names::label::DECISION_GROUP_INDEX.to_owned(), (number - 1).to_string()),
    ]));
    let entries: Vec<Value> =
        clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    object.status = Some(serde_json::from_value(json!({ "decisions": entries })).unwrap());
    object
}

/// A Placement; the words about a toleration speak of the last one added.
#[derive(Clone, Debug)]
pub(crate) struct Request(pub(crate) Placement);

pub(crate) fn placement(namespace: &str, name: &str) -> Request {
    let mut placement = Placement::new(name);
    placement.metadata.namespace = Some(namespace.into());
    placement.metadata.uid = Some(format!("uid-of-{name}"));
    placement.metadata.generation = Some(1);
    Request(placement)
}

/// The placement most tests are about.
pub(crate) fn web() -> Request {
    placement(NAMESPACE, "web")
}

impl Request {
    pub(crate) fn key(&self) -> PlacementKey {
        crate::world::key(&self.0.metadata)
    }

    pub(crate) fn number(mut self, number: i32) -> Self {
        self.0.spec.number_of_clusters = Some(number);
        self
    }

    pub(crate) fn sets(mut self, sets: &[&str]) -> Self {
        self.0.spec.cluster_sets = Some(sets.iter().map(ToString::to_string).collect());
        self
    }

    /// A predicate, as the content of its `requiredClusterSelector`.
    pub(crate) fn predicate(self, selector: Value) -> Self {
        self.flat_predicate(json!({ "requiredClusterSelector": selector }))
    }

    /// A predicate as it is written.
    pub(crate) fn flat_predicate(mut self, predicate: Value) -> Self {
        let predicate: ClusterPredicate = serde_json::from_value(predicate).unwrap();
        self.0.spec.predicates.get_or_insert_default().push(predicate);
        self
    }

    pub(crate) fn labelled(self, key: &str, value: &str) -> Self {
        self.predicate(json!({"labelSelector": {"matchLabels": {key: value}}}))
    }

    pub(crate) fn cel(self, expressions: &[&str]) -> Self {
        self.predicate(json!({"celSelector": {"celExpressions": expressions}}))
    }

    pub(crate) fn tolerate(mut self, key: &str, operator: &str, value: &str) -> Self {
        let toleration = Toleration {
            key: Some(key.into()),
            operator: Some(operator.into()),
            value: Some(value.into()),
            ..Toleration::default()
        };
        self.0.spec.tolerations.get_or_insert_default().push(toleration);
        self
    }

    pub(crate) fn exists(self, key: &str) -> Self {
        self.tolerate(key, "Exists", "")
    }

    fn last_toleration(&mut self) -> &mut Toleration {
        self.0
            .spec
            .tolerations
            .as_mut()
            .and_then(|all| all.last_mut())
            .expect("a toleration was added before")
    }

    pub(crate) fn effect(mut self, effect: &str) -> Self {
        self.last_toleration().effect = Some(effect.into());
        self
    }

    pub(crate) fn seconds(mut self, seconds: i64) -> Self {
        self.last_toleration().toleration_seconds = Some(seconds);
        self
    }

    /// A policy of prioritizers, `Steady` or `AddOn/resource/score`, with weights.
    pub(crate) fn policy(mut self, mode: &str, weights: &[(&str, i32)]) -> Self {
        let policy = self.0.spec.prioritizer_policy.get_or_insert_default();
        policy.mode = Some(mode.into());
        policy.configurations =
            Some(weights.iter().map(|(name, weight)| prioritizer(name, *weight)).collect());
        self
    }

    pub(crate) fn exact(self, weights: &[(&str, i32)]) -> Self {
        self.policy("Exact", weights)
    }

    pub(crate) fn additive(self, weights: &[(&str, i32)]) -> Self {
        self.policy("Additive", weights)
    }

    fn strategy(&mut self) -> &mut berth_api::GroupStrategy {
        self.0.spec.decision_strategy.get_or_insert_default().group_strategy.get_or_insert_default()
    }

    pub(crate) fn group_size(mut self, size: IntOrString) -> Self {
        self.strategy().clusters_per_decision_group = Some(size);
        self
    }

    pub(crate) fn percent(self, percent: &str) -> Self {
        self.group_size(IntOrString::String(percent.into()))
    }

    pub(crate) fn per_group(self, count: i32) -> Self {
        self.group_size(IntOrString::Int(count))
    }

    pub(crate) fn group(mut self, name: &str, selector: Value) -> Self {
        let group = DecisionGroup {
            group_name: name.into(),
            group_cluster_selector: serde_json::from_value(selector).unwrap(),
        };
        self.strategy().decision_groups.get_or_insert_default().push(group);
        self
    }

    /// A group of the clusters with a label.
    pub(crate) fn label_group(self, name: &str, key: &str, value: &str) -> Self {
        self.group(name, json!({"labelSelector": {"matchLabels": {key: value}}}))
    }

    pub(crate) fn spread(mut self, key: &str, kind: &str, max_skew: i32, unsatisfiable: &str) -> Self {
        let policy = self.0.spec.spread_policy.get_or_insert_default();
        policy.spread_constraints.get_or_insert_default().push(SpreadConstraint {
            topology_key: key.into(),
            topology_key_type: kind.into(),
            max_skew: Some(max_skew),
            when_unsatisfiable: Some(unsatisfiable.into()),
        });
        self
    }

    pub(crate) fn apart(mut self, key: &str, kind: &str) -> Self {
        self.0.spec.anti_affinity =
            Some(AntiAffinity { topology_key: key.into(), topology_key_type: kind.into() });
        self
    }

    pub(crate) fn sort_by(mut self, order: &str) -> Self {
        self.0.spec.sort_by = Some(order.into());
        self
    }

    pub(crate) fn annotate(mut self, key: &str, value: &str) -> Self {
        self.0.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
        self
    }
}

fn prioritizer(name: &str, weight: i32) -> PrioritizerConfig {
    let mut coordinate = ScoreCoordinate::default();
    match name.split('/').collect::<Vec<_>>()[..] {
        ["AddOn", resource, score] => {
            coordinate.type_ = Some("AddOn".into());
            coordinate.add_on = Some(AddOnScore { resource_name: resource.into(), score_name: score.into() });
        }
        _ => coordinate.built_in = Some(name.into()),
    }
    PrioritizerConfig { name: None, score_coordinate: Some(coordinate), weight: Some(weight) }
}
