//! What has to be remembered of a member, and nothing else.

use std::sync::Arc;

use super::cause::Sighting;
use super::course::{Course, Phase};
use super::policy::Retry;
use crate::moment::Moment;

/// What outlives a restart. Times in it are whole seconds: that is what objects hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Memory {
    /// The pod that the causes were seen of.
    pub uid: Option<Arc<str>>,
    /// The fault domain its node was in: a node that is gone cannot be asked.
    pub domain: Option<Arc<str>>,
    /// What is wrong with it.
    pub sightings: Vec<Sighting>,
    /// Its replacement: the one that is under way, or the last one.
    pub course: Option<Course>,
    /// What became of those before.
    pub record: Record,
}

/// What became of the replacements of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// How often it has been replaced without having been well for long enough in between.
    pub attempts: u32,
    /// When the last of these ended.
    pub ended: Option<Moment>,
    /// The pod that the last of all was about: one that is counted is not counted again.
    pub uid: Option<Arc<str>>,
}

impl Memory {
    /// The replacement that is under way.
    pub fn under_way(&self) -> Option<&Course> {
        self.course.as_ref().filter(|course| !course.phase.is_an_end())
    }

    /// Whether it is losing its volumes.
    pub(super) fn has_volume_turn(&self) -> bool {
        self.under_way().is_some_and(|course| course.removes_volumes)
    }

    /// What is wrong with it that has lasted for long enough, by the rules as they are.
    pub(super) fn due(&self, now: Moment) -> impl Iterator<Item = &Sighting> {
        self.sightings.iter().filter(move |sighting| sighting.due_at().is_some_and(|at| at <= now))
    }

    /// Whether anything is.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.due(now).next().is_some()
    }

    /// Whether the node is given up for good by any of it, and with the node what cannot leave it.
    pub(super) fn gives_up_the_node(&self, now: Moment) -> bool {
        self.due(now).any(|sighting| sighting.is_permanent)
    }

    /// The replacement is called off although it was written that claims go. Only [`super::Act::TurnBack`] leads here: that
    /// none has gone must have been read from the server.
    pub fn turn_back(&mut self, now: Moment) {
        if let Some(course) = self.course.as_mut().filter(|course| course.phase == Phase::RemovingVolumes) {
            course.enter(Phase::Aborted, now);
            // There was a way back after all.
            course.point_of_no_return = None;
            course.claims.clear();
        }
    }

    /// Counts a replacement that has ended, once: whoever crashed between writing the two finds it here again.
    pub(super) fn count_the_end(&mut self, now: Moment) {
        let now = now.cut_to_second();
        // A clock that was set back must not stretch a wait for as long as it was ahead.
        self.record.ended = self.record.ended.map(|ended| ended.min(now));
        let Some(course) = &self.course else { return };
        let (Some(ended), true) = (course.ended, course.phase.counts_as_an_attempt()) else { return };
        if self.record.uid.as_ref() != Some(&course.uid) {
            self.record = Record {
                attempts: self.record.attempts.saturating_add(1),
                ended: Some(ended.min(now)),
                uid: Some(Arc::clone(&course.uid)),
            };
        }
    }

    /// A member that was well for long enough before what is wrong with it now begins anew.
    pub(super) fn forgive(&mut self, retry: Retry) {
        let Some(ended) = self.record.ended else { return };
        // What never marks anybody says nothing of how the member was.
        let marked = self.sightings.iter().filter(|sighting| sighting.replacing.is_some());
        let first = marked.map(|sighting| sighting.since).min();
        if first.is_some_and(|first| first >= ended.plus_seconds(retry.healthy)) {
            (self.record.attempts, self.record.ended) = (0, None);
        }
    }

    /// Whether there is anything to be remembered.
    pub fn is_empty(&self) -> bool {
        self.sightings.is_empty() && self.course.is_none() && self.record == Record::default()
    }
}
