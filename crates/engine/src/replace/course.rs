//! The way of one replacement.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::cause::Cause;
use crate::moment::Moment;

/// How far a replacement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Phase {
    /// It has its place in the budget, and waits for gates and for the other members.
    Gating,
    /// Somebody has been told, and does their part.
    Draining,
    /// Claims are removed. There is no way back from here.
    RemovingVolumes,
    /// The pod is removed.
    RemovingPod,
    /// The pod is gone, and its successor is not ready.
    AwaitingSuccessor,
    /// The successor is ready, and has to stay so for a while.
    Verifying,
    /// It is done.
    Done,
    /// It was called off before anything was removed.
    Aborted,
    /// It could not be finished.
    Failed,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 9] = [
        Self::Gating,
        Self::Draining,
        Self::RemovingVolumes,
        Self::RemovingPod,
        Self::AwaitingSuccessor,
        Self::Verifying,
        Self::Done,
        Self::Aborted,
        Self::Failed,
    ];

    /// Whether nothing follows. Its place in the budget is free.
    pub fn is_an_end(self) -> bool {
        matches!(self, Self::Done | Self::Aborted | Self::Failed)
    }

    /// Whether it counts when it is asked how often a member was replaced: what was called off changed nothing.
    pub(super) fn counts_as_an_attempt(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }

    /// Whether all that is left is to look on.
    pub(super) fn only_looks_on(self) -> bool {
        matches!(self, Self::AwaitingSuccessor | Self::Verifying)
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gating => "Gating",
            Self::Draining => "Draining",
            Self::RemovingVolumes => "RemovingVolumes",
            Self::RemovingPod => "RemovingPod",
            Self::AwaitingSuccessor => "AwaitingSuccessor",
            Self::Verifying => "Verifying",
            Self::Done => "Done",
            Self::Aborted => "Aborted",
            Self::Failed => "Failed",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A claim that is removed, by its identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Removal {
    /// Its name.
    pub name: Box<str>,
    /// Its identity: one of the same name that was made since is another one.
    pub uid: Box<str>,
}

/// One replacement: what a `Replacement` object holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Course {
    /// The pod, by its identity.
    pub uid: Arc<str>,
    /// The node it is on.
    pub node: Option<Arc<str>>,
    /// The fault domain of that node: what counts in the budget.
    pub domain: Option<Arc<str>>,
    /// Why.
    pub cause: Cause,
    /// Whether it removes volumes. Only one that does runs at a time in a workload.
    pub removes_volumes: bool,
    /// How far it is.
    pub phase: Phase,
    /// Since when it is that far.
    pub since: Moment,
    /// When it began.
    pub started: Moment,
    /// From when on there was no way back.
    pub point_of_no_return: Option<Moment>,
    /// When the pod was seen to be gone.
    pub removed: Option<Moment>,
    /// When it ended.
    pub ended: Option<Moment>,
    /// The claims that are removed.
    pub claims: Vec<Removal>,
    /// How many members the workload had when it began, this one among them, where they can only be counted.
    pub members: Option<usize>,
    /// The gates that are shut, and since when.
    pub shut: BTreeMap<Arc<str>, Moment>,
}

impl Course {
    /// The next phase, from now on.
    pub(super) fn enter(&mut self, phase: Phase, now: Moment) {
        let now = now.cut_to_second();
        self.phase = phase;
        self.since = now;
        match phase {
            Phase::RemovingVolumes => self.point_of_no_return = Some(now),
            Phase::AwaitingSuccessor => self.removed = self.removed.or(Some(now)),
            Phase::Done | Phase::Aborted | Phase::Failed => self.ended = Some(now),
            _ => {}
        }
    }
}

/// How a member stands: before its replacement, in it, and at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum State {
    /// Nothing is wrong with it that the policy speaks of.
    Healthy,
    /// Something is, but not for long enough.
    Detected,
    /// It is marked to be replaced, and waits its time.
    Replacing,
    /// It is due, and held up.
    Queued,
    /// It is being replaced, or has just been.
    Course(Phase),
}

impl State {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Detected => "Detected",
            Self::Replacing => "Replacing",
            Self::Queued => "Queued",
            Self::Course(phase) => phase.word(),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
