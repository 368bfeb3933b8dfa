//! The indexed fleet with everybody's decisions in place, and the steps that are measured on it.

use anyhow::{Context, ensure};
use berth_api::{ManagedCluster, PlacementDecision};
use berth_engine::select::Decision;
use berth_engine::{Delta, Model, Moment, PlacementKey, Touched};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::fleet::{self, Detail};

/// How often everybody decides and writes before the measurement; Balance and Steady have settled by then.
const ROUNDS: usize = 2;
/// When all decisions are made. Nothing in the fleet depends on time.
const NOW: Moment = Moment::from_second(1_800_000_000);

pub(crate) struct World {
    pub(crate) model: Model,
    /// The measured placement.
    pub(crate) subject: PlacementKey,
    /// The decisions of all others.
    pub(crate) decisions: Vec<PlacementDecision>,
}

impl World {
    /// A fleet of `size` clusters, the others' decisions made and written, the subject not yet decided.
    pub(crate) fn new(size: usize) -> anyhow::Result<Self> {
        let mut model = Model::new();
        for number in 0..size {
            model.apply(Delta::Cluster(Box::new(fleet::cluster(number, Detail::Whole))));
        }
        model.apply(Delta::Set(Box::new(fleet::set())));
        for binding in fleet::bindings() {
            model.apply(Delta::Binding(Box::new(binding)));
        }
        let others: Vec<ObjectMeta> = fleet::others()
            .map(|placement| {
                let metadata = placement.metadata.clone();
                model.apply(Delta::Placement(Box::new(placement)));
                metadata
            })
            .collect();
        let subject = fleet::subject();
        let mut world = Self { model, subject: key(&subject.metadata), decisions: Vec::new() };
        for _ in 0..ROUNDS {
            world.decisions.clear();
            for metadata in &others {
                let object = world.decision(metadata)?;
                world.model.apply(Delta::Decision(Box::new(object.clone())));
                world.decisions.push(object);
            }
        }
        // Once more with nothing left to say, so that what is kept between decisions is up to date.
        for metadata in &others {
            world.model.decide(&key(metadata), NOW);
        }
        world.model.apply(Delta::Placement(Box::new(subject)));
        Ok(world)
    }

    fn decision(&mut self, placement: &ObjectMeta) -> anyhow::Result<PlacementDecision> {
        let decision = self.model.decide(&key(placement), NOW).context("a placement was left alone")?;
        ensure!(!decision.picks.is_empty(), "a placement of the fleet selects nothing");
        Ok(fleet::decision(placement, names(&decision).into_iter()))
    }

    /// Decides the subject and writes its decision.
    pub(crate) fn settle(&mut self) -> anyhow::Result<()> {
        let object = self.decision(&fleet::subject().metadata)?;
        self.model.apply(Delta::Decision(Box::new(object)));
        self.decide();
        Ok(())
    }

    /// A cluster that the subject holds.
    pub(crate) fn a_selected_cluster(&self, size: usize) -> anyhow::Result<ManagedCluster> {
        let held = self.model.held(&self.subject);
        let number = (0..size).find(|number| held.iter().any(|held| **held == *fleet::name(*number)));
        Ok(fleet::cluster(number.context("the measured placement holds nothing")?, Detail::Whole))
    }

    pub(crate) fn decide_afresh(&mut self) -> Option<Decision> {
        self.model.decide_afresh(&self.subject, NOW)
    }

    pub(crate) fn decide(&mut self) -> Option<Decision> {
        self.model.decide(&self.subject, NOW)
    }

    /// Takes a change in and decides the subject again; whom the change concerns comes back too.
    pub(crate) fn react(&mut self, delta: Delta) -> (Touched, Option<Decision>) {
        let touched = self.model.apply(delta);
        (touched, self.decide())
    }

    /// Takes a change in and decides everybody it concerns again; how many these are.
    pub(crate) fn react_all(&mut self, delta: Delta) -> usize {
        let touched = self.model.apply(delta);
        let touched: Vec<PlacementKey> = touched.keys(&self.model).cloned().collect();
        for placement in &touched {
            std::hint::black_box(self.model.decide(placement, NOW));
        }
        touched.len()
    }
}

fn key(metadata: &ObjectMeta) -> PlacementKey {
    PlacementKey::new(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// The names of selected clusters, in order.
pub(crate) fn names(decision: &Decision) -> Vec<String> {
    let mut names: Vec<_> = decision.picks.iter().map(|pick| pick.cluster.to_string()).collect();
    names.sort_unstable();
    names
}
