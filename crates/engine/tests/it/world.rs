//! A world to decide in: the model, and beside it the objects as an API server would hold them.

use std::collections::BTreeMap;

use berth_api::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision, kinds, schema,
};
use berth_engine::explain::{Account, explain};
use berth_engine::model::ObjectKey;
use berth_engine::select::{Decision, Details, Published, publish};
use berth_engine::{Delta, Model, Moment, PlacementKey};
use serde_json::Value;

/// The model, and the objects it was told of.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) model: Model,
    pub(crate) clusters: BTreeMap<String, ManagedCluster>,
    pub(crate) sets: BTreeMap<String, ManagedClusterSet>,
    pub(crate) bindings: BTreeMap<ObjectKey, ManagedClusterSetBinding>,
    pub(crate) placements: BTreeMap<PlacementKey, Placement>,
    pub(crate) decisions: BTreeMap<ObjectKey, PlacementDecision>,
    pub(crate) scores: BTreeMap<ObjectKey, AddOnPlacementScore>,
}

pub(crate) fn key(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> ObjectKey {
    ObjectKey::new(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

fn name(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

impl World {
    pub(crate) fn of(deltas: impl IntoIterator<Item = Delta>) -> Self {
        let mut world = Self::default();
        for delta in deltas {
            world.apply(delta);
        }
        world
    }

    /// Applies a delta to the objects and the model; the placements touched come back.
    pub(crate) fn apply(&mut self, delta: Delta) -> Vec<PlacementKey> {
        match &delta {
            Delta::Cluster(object) => drop(self.clusters.insert(name(&object.metadata), (**object).clone())),
            Delta::ClusterGone(name) => drop(self.clusters.remove(name)),
            Delta::Set(object) => drop(self.sets.insert(name(&object.metadata), (**object).clone())),
            Delta::SetGone(name) => drop(self.sets.remove(name)),
            Delta::Binding(object) => drop(self.bindings.insert(key(&object.metadata), (**object).clone())),
            Delta::BindingGone(key) => drop(self.bindings.remove(key)),
            Delta::Placement(object) => {
                drop(self.placements.insert(key(&object.metadata), (**object).clone()));
            }
            Delta::PlacementGone(key) => drop(self.placements.remove(key)),
            Delta::Decision(object) => drop(self.decisions.insert(key(&object.metadata), (**object).clone())),
            Delta::DecisionGone(key) => drop(self.decisions.remove(key)),
            Delta::Score(object) => drop(self.scores.insert(key(&object.metadata), (**object).clone())),
            Delta::ScoreGone(key) => drop(self.scores.remove(key)),
        }
        self.model.apply(delta).keys(&self.model).cloned().collect()
    }

    /// Everything there is, in the order of kinds and names.
    pub(crate) fn objects(&self) -> Vec<Delta> {
        let clusters = self.clusters.values().map(|object| Delta::Cluster(Box::new(object.clone())));
        let sets = self.sets.values().map(|object| Delta::Set(Box::new(object.clone())));
        let bindings = self.bindings.values().map(|object| Delta::Binding(Box::new(object.clone())));
        let placements = self.placements.values().map(|object| Delta::Placement(Box::new(object.clone())));
        let decisions = self.decisions.values().map(|object| Delta::Decision(Box::new(object.clone())));
        let scores = self.scores.values().map(|object| Delta::Score(Box::new(object.clone())));
        clusters.chain(sets).chain(bindings).chain(placements).chain(decisions).chain(scores).collect()
    }

    /// The same world, told anew in one go.
    pub(crate) fn rebuilt(&self) -> Self {
        Self::of(self.objects())
    }

    /// The placement's decisions that exist.
    pub(crate) fn existing(&self, placement: &PlacementKey) -> Vec<&PlacementDecision> {
        let owned = |decision: &&PlacementDecision| {
            decision.metadata.namespace.as_deref() == Some(&placement.namespace)
                && decision.placement_name() == Some(&placement.name)
        };
        self.decisions.values().filter(owned).collect()
    }

    /// Decides by what was kept and from nothing; both must say the same.
    pub(crate) fn decide(&mut self, placement: &PlacementKey, now: Moment) -> Option<Decision> {
        let afresh = self.model.decide_afresh(placement, now);
        let kept = self.model.decide(placement, now);
        assert_eq!(kept, afresh, "{placement} at {now}: kept on the left, afresh on the right");
        kept
    }

    pub(crate) fn publish(&self, placement: &PlacementKey, decision: &Decision, now: Moment) -> Published {
        let existing = self.existing(placement);
        publish(&self.model, &self.placements[placement], &existing, decision, Details::ALL, now)
    }

    /// Decides, and writes the result as the controller would.
    pub(crate) fn settle(&mut self, placement: &PlacementKey, now: Moment) -> Option<Published> {
        let decision = self.decide(placement, now)?;
        let published = self.publish(placement, &decision, now);
        let before: Vec<ObjectKey> =
            self.existing(placement).iter().map(|object| key(&object.metadata)).collect();
        for object in &published.decisions {
            self.apply(Delta::Decision(Box::new(object.clone())));
        }
        for gone in
            before.into_iter().filter(|old| !published.decisions.iter().any(|new| key(&new.metadata) == *old))
        {
            self.apply(Delta::DecisionGone(gone));
        }
        let mut object = self.placements[placement].clone();
        object.status = Some(published.status.clone());
        self.apply(Delta::Placement(Box::new(object)));
        Some(published)
    }

    /// The names of the selected clusters in the order of the decision.
    pub(crate) fn selected(&mut self, placement: &PlacementKey, now: Moment) -> Vec<String> {
        let decision = self.decide(placement, now).expect("the placement exists and is not switched off");
        Self::names(&decision)
    }

    pub(crate) fn names(decision: &Decision) -> Vec<String> {
        decision.picks.iter().map(|pick| pick.cluster.to_string()).collect()
    }

    /// Everything that can be said of a placement at a moment, as text: what would be published, and why.
    pub(crate) fn rendered(&mut self, placement: &PlacementKey, now: Moment) -> Option<String> {
        let decision = self.model.decide_afresh(placement, now)?;
        let Published { decisions, status, scores_due } = self.publish(placement, &decision, now);
        let rest = (decision.unscheduled, &decision.next, &decision.expired);
        let account = self.explain(placement, now);
        Some(serde_json::to_string_pretty(&(decisions, status, scores_due, rest, account)).unwrap())
    }

    pub(crate) fn explain(&mut self, placement: &PlacementKey, now: Moment) -> Account {
        explain(&mut self.model, placement, None, now).expect("the placement exists and is not switched off")
    }
}

/// A document as a delta, with defaults filled in as an API server would. Fields that the schema requires and a
/// server without validation would let pass as empty are passed as empty here too.
pub(crate) fn delta(mut document: Value) -> Delta {
    let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let info =
        kinds::kind_info(&api_version, &kind).unwrap_or_else(|| panic!("no kind {api_version} {kind}"));
    schema::prepare(&mut document, info.structure());
    let decisions = document.pointer_mut("/status/decisions").and_then(Value::as_array_mut);
    for decision in decisions.into_iter().flatten().filter_map(Value::as_object_mut) {
        decision.entry("reason").or_insert_with(|| "".into());
    }
    macro_rules! boxed {
        ($variant:ident) => {
            Delta::$variant(Box::new(serde_json::from_value(document).unwrap()))
        };
    }
    match info.kind {
        "ManagedCluster" => boxed!(Cluster),
        "ManagedClusterSet" => boxed!(Set),
        "ManagedClusterSetBinding" => boxed!(Binding),
        "Placement" => boxed!(Placement),
        "PlacementDecision" => boxed!(Decision),
        "AddOnPlacementScore" => boxed!(Score),
        other => panic!("{other} is no part of the engine's world"),
    }
}
