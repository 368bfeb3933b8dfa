//! The controllers: what each looks at, what touches its subjects, and which writes a decision becomes.
//!
//! A controller owns an index at most. It asks the engine for verdicts and turns them into writes; it never sends one,
//! and it never asks the API server anything.

mod cluster_lease;
mod cluster_set;
mod cluster_taint;
mod confirmation;
mod node_lifecycle;
mod placement;
mod pods_by_node;
mod rbac_binding;
mod replacement;
mod set_binding;
#[cfg(test)]
pub(crate) mod stage;
mod taint_eviction;

use std::sync::Arc;

use berth_engine::evict::Freeze;
use berth_engine::model::ObjectKey;
use berth_engine::node::LifecyclePolicy;
use berth_engine::{Model, Moment};

pub use cluster_lease::ClusterLeaseController;
pub use cluster_set::ClusterSetController;
pub use cluster_taint::ClusterTaintController;
pub use confirmation::FROZEN_REASON;
pub use node_lifecycle::NodeLifecycleController;
pub use placement::PlacementController;
pub use rbac_binding::RbacBindingController;
pub use replacement::ReplacementController;
pub use set_binding::SetBindingController;
pub use taint_eviction::{EvictionBreaker, EvictionLimits, TaintEvictionController};

use crate::act::{Note, Write};
use crate::dialect::Dialect;
use crate::due::{Due, Ended};
use crate::names::ControllerName;
use crate::rights::Need;
use crate::serve::Metrics;
use crate::world::{Change, Found, Kind, World};

/// What controllers are made with.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// What the server's definitions have room for.
    pub(crate) dialect: Dialect,
    /// The bounds of evictions.
    pub(crate) evictions: EvictionLimits,
    /// How nodes are judged.
    pub(crate) lifecycle: LifecyclePolicy,
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            dialect: Dialect::OURS,
            evictions: EvictionLimits::default(),
            lifecycle: LifecyclePolicy::default(),
            metrics: Arc::default(),
        }
    }
}

/// The controller of that name.
pub(crate) fn controller(name: ControllerName, setup: &Setup) -> Box<dyn Controller> {
    let Setup { dialect, evictions, lifecycle, metrics } = setup;
    match name {
        ControllerName::TaintEviction => {
            Box::new(TaintEvictionController::new(*evictions, Arc::clone(metrics)))
        }
        ControllerName::Replacement => Box::new(ReplacementController::new(Arc::clone(metrics))),
        ControllerName::NodeLifecycle => {
            Box::new(NodeLifecycleController::new(*lifecycle, Arc::clone(metrics)))
        }
        ControllerName::Placement => Box::new(PlacementController::new(*dialect)),
        ControllerName::ClusterSet => Box::<ClusterSetController>::default(),
        ControllerName::ClusterSetBinding => Box::<SetBindingController>::default(),
        ControllerName::RbacBinding => Box::<RbacBindingController>::default(),
        ControllerName::ClusterLease => Box::<ClusterLeaseController>::default(),
        ControllerName::ClusterTaint => Box::<ClusterTaintController>::default(),
    }
}

/// A controller: changes in, writes out.
pub trait Controller: Send {
    /// Its name.
    fn name(&self) -> ControllerName;

    /// What it must have seen all of before it decides anything.
    fn kinds(&self) -> &'static [Kind];

    /// What it may come to look at besides, once [`Controller::needs_more`] says so. It does not wait for those.
    fn kinds_at_need(&self) -> &'static [Kind] {
        &[]
    }

    /// Whether it looks at [`Controller::kinds_at_need`] as well, from now on.
    fn needs_more(&self) -> bool {
        false
    }

    /// What else it needs leave for. Every write it decides on is in here.
    fn needs(&self) -> &'static [Need];

    /// Something changed: marks the subjects it may concern. `world` already has the change.
    fn observe(&mut self, change: &Change, world: &World, due: &mut Due);

    /// Time has passed: marks the subjects this alone may concern. Deadlines given with a verdict need no such help.
    fn advance(&mut self, _now: Moment, _world: &World, _due: &mut Due) {}

    /// When time alone will next make [`Controller::advance`] mark somebody, for a controller with a clock of its own.
    fn wake(&self) -> Option<Moment> {
        None
    }

    /// Goes on with work that was put off so that nobody waits for long, and marks the subjects it may concern; whether some
    /// is left. Called in every turn.
    fn go_on(&mut self, _due: &mut Due) -> bool {
        false
    }

    /// The server's definitions have room for something else now: marks the subjects it may concern.
    fn speak(&mut self, _dialect: Dialect, _world: &World, _due: &mut Due) {}

    /// Decides one subject.
    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict;

    /// The writes of a verdict on this subject are done, or the first that failed has ended them: what was expected of them
    /// counts no more, what the world has does.
    fn ended(&mut self, _subject: &ObjectKey, _ended: Ended, _now: Moment, _world: &World, _due: &mut Due) {}

    /// What somebody waits to be told, whatever else is under way. Asked for in every turn of who leads, after
    /// [`Controller::advance`]; what was given is not given again.
    fn news(&mut self) -> Option<Note> {
        None
    }

    /// What it asked for was found. Told before the end of the writes it was asked with.
    fn found(&mut self, _found: Found) {}

    /// Whether it may come to know of something that nobody should be evicted for. Until it has seen its part of the world,
    /// nobody knows that there is no such thing.
    fn may_stop(&self) -> bool {
        false
    }

    /// What it knows that nobody should be evicted for, whoever evicts.
    fn stop(&self) -> Option<Freeze> {
        None
    }

    /// What another knows that nobody should be evicted for.
    fn heed(&mut self, _stop: Option<&Freeze>) {}

    /// The fleet as it knows it, for questions; most controllers need no model of it.
    fn model(&mut self) -> Option<&mut Model> {
        None
    }
}

/// What should be done about a subject, and when to look again.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The writes, in order; none if everything is as it should be.
    pub writes: Vec<Write>,
    /// Events to record once all writes are done.
    pub notes: Vec<Note>,
    /// When time alone will change the verdict.
    pub wake: Option<Moment>,
    /// Whether there is something to write that waits for its turn, so that failures before still count.
    pub is_waiting: bool,
    /// What it was, in one word, for metrics.
    pub outcome: &'static str,
}
