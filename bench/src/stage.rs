//! The steps that are measured, and the stage on which they are done.
//!
//! Before anything is measured, the engine's answers are compared with the textbook's: a fast wrong answer would
//! be worth nothing.

use std::collections::HashSet;
use std::hint::black_box;

use anyhow::{Context, ensure};
use berth_api::{ManagedCluster, Placement};
use berth_engine::Delta;

use crate::fleet::{self, Detail};
use crate::peer::{self, Plain};
use crate::world::{World, names};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// From the indexed facts, holding nothing.
    Afresh,
    Textbook,
    Scan,
    /// From the indexed facts, with ten clusters held.
    Held,
    /// A selected cluster gets a taint; the placement decides again.
    TaintOn,
    /// The taint goes; the placement decides again.
    TaintOff,
    /// The same in parts: the change goes in, the placement decides.
    ApplyOn,
    DecideOn,
    ApplyOff,
    DecideOff,
    /// A label changes that nobody looks at.
    Label,
    /// A selected cluster gets a taint; everybody concerned decides again.
    AllOn,
    /// The taint goes; everybody concerned decides again.
    AllOff,
}

/// Steps that follow each other, again and again.
pub(crate) const GROUPS: [&[Step]; 8] = [
    &[Step::Afresh],
    &[Step::Textbook],
    &[Step::Scan],
    &[Step::Held],
    &[Step::TaintOn, Step::TaintOff],
    &[Step::ApplyOn, Step::DecideOn, Step::ApplyOff, Step::DecideOff],
    &[Step::Label],
    &[Step::AllOn, Step::AllOff],
];
/// The first group for which the placement holds clusters.
pub(crate) const HELD_FROM: usize = 3;
/// How many steps there are.
pub(crate) const STEPS: usize = 13;

impl Step {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Afresh => "decide afresh, nothing held",
            Self::Textbook => "the textbook decides",
            Self::Scan => "scan (the floor)",
            Self::Held => "decide afresh, 10 held",
            Self::TaintOn => "taint put on: apply, decide one",
            Self::TaintOff => "taint taken off: apply, decide one",
            Self::ApplyOn => "taint put on: apply alone",
            Self::DecideOn => "taint put on: decide one alone",
            Self::ApplyOff => "taint taken off: apply alone",
            Self::DecideOff => "taint taken off: decide one alone",
            Self::Label => "label nobody looks at: apply",
            Self::AllOn => "taint put on: apply, decide all touched",
            Self::AllOff => "taint taken off: apply, decide all touched",
        }
    }

    /// Whether it is the engine deciding that one placement, and nothing else but taking one change in.
    pub(crate) fn decides_one(self) -> bool {
        !matches!(self, Self::Textbook | Self::Scan | Self::Label | Self::AllOn | Self::AllOff)
            && !matches!(self, Self::ApplyOn | Self::ApplyOff)
    }

    pub(crate) fn is_from_scratch(self) -> bool {
        matches!(self, Self::Afresh | Self::Held)
    }
}

pub(crate) struct Stage {
    size: usize,
    world: World,
    placement: Placement,
    clusters: Vec<ManagedCluster>,
    plain: Vec<Plain>,
    /// A selected cluster without and with the taint, once something is selected.
    cluster: ManagedCluster,
    tainted: ManagedCluster,
    /// Which of two labels is next.
    odd: bool,
}

impl Stage {
    pub(crate) fn new(size: usize) -> anyhow::Result<Self> {
        let world = World::new(size)?;
        let clusters: Vec<_> = (0..size).map(|number| fleet::cluster(number, Detail::Whole)).collect();
        let plain = peer::plain(&clusters, &world.decisions);
        let (cluster, tainted) = (ManagedCluster::default(), ManagedCluster::default());
        let placement = fleet::subject();
        let mut stage = Self { size, world, placement, clusters, plain, cluster, tainted, odd: false };
        let decision = stage.world.decide_afresh().context("the measured placement was left alone")?;
        let wanted =
            peer::textbook(&stage.placement, &stage.clusters, &stage.world.decisions, &HashSet::new());
        ensure!(names(&decision) == wanted, "the engine and the textbook disagree, nothing held");
        Ok(stage)
    }

    /// Lets the placement hold what it selects.
    pub(crate) fn settle(&mut self) -> anyhow::Result<()> {
        self.world.settle()?;
        self.cluster = self.world.a_selected_cluster(self.size)?;
        self.tainted = fleet::in_maintenance(self.cluster.clone());
        for (step, object) in [(Step::TaintOn, self.tainted.clone()), (Step::TaintOff, self.cluster.clone())]
        {
            let (touched, decision) = self.world.react(Delta::Cluster(Box::new(object.clone())));
            let decision = decision.context("the measured placement was left alone")?;
            ensure!(
                touched.keys(&self.world.model).any(|key| *key == self.world.subject),
                "{}: the placement is not touched",
                step.name()
            );
            let held = self.world.model.held(&self.world.subject);
            let held: HashSet<&str> = held.iter().map(|name| &**name).collect();
            let place = self.clusters.iter().position(|other| other.metadata.name == object.metadata.name);
            self.clusters[place.context("a cluster that is not of the fleet is held")?] = object;
            let wanted = peer::textbook(&self.placement, &self.clusters, &self.world.decisions, &held);
            ensure!(names(&decision) == wanted, "{}: the engine and the textbook disagree", step.name());
        }
        Ok(())
    }

    /// The change a step begins with, made outside the measurement.
    pub(crate) fn delta(&mut self, step: Step) -> Option<Delta> {
        let object = match step {
            Step::TaintOn | Step::ApplyOn | Step::AllOn => self.tainted.clone(),
            Step::TaintOff | Step::ApplyOff | Step::AllOff => self.cluster.clone(),
            Step::Label => {
                self.odd = !self.odd;
                fleet::relabelled(self.cluster.clone(), if self.odd { "cc-odd" } else { "cc-even" })
            }
            _ => return None,
        };
        Some(Delta::Cluster(Box::new(object)))
    }

    /// Does a step; how many placements it touched.
    pub(crate) fn perform(&mut self, step: Step, delta: Option<Delta>) -> usize {
        let Self { world, placement, clusters, plain, .. } = self;
        match (step, delta) {
            (Step::AllOn | Step::AllOff, Some(delta)) => return world.react_all(delta),
            (Step::Label | Step::ApplyOn | Step::ApplyOff, Some(delta)) => {
                return world.model.apply(delta).len();
            }
            (_, Some(delta)) => {
                let (touched, decision) = world.react(delta);
                black_box(decision);
                return touched.len();
            }
            (Step::Textbook, None) => {
                black_box(peer::textbook(placement, clusters, &world.decisions, &HashSet::new()));
            }
            (Step::Scan, None) => {
                black_box(peer::scan(black_box(plain)));
            }
            (Step::DecideOn | Step::DecideOff, None) => {
                black_box(world.decide());
            }
            (_, None) => {
                black_box(world.decide_afresh());
            }
        }
        0
    }
}
