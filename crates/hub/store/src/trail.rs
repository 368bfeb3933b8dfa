//! What compaction has to know: which states each change made obsolete, and how old changes are.
//!
//! Pure: time is what the caller says it is, and nothing here touches a backend.
//!
//! A floor `F` means that nobody can ask for the past before `F` any more. The log then only needs, of everything up to
//! `F`, the newest state of each object that still exists at `F`. A change at or below `F` therefore makes two things
//! obsolete: the state that it replaced and, if it is a deletion, itself.

use std::collections::VecDeque;
use std::time::Duration;

use crate::options::HistoryOptions;
use crate::record::{Operation, Record};
use crate::revision::Revision;

/// Times that are remembered at most: one a minute is an hour's worth, and more often only makes the floor finer.
const MARKS_MAX: usize = 1024;

/// One change after the floor.
#[derive(Clone, Copy, Debug)]
struct Step {
    revision: Revision,
    previous: Revision,
    bytes: u32,
    delete: bool,
}

/// The changes after the floor, and marks in time.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    steps: VecDeque<Step>,
    bytes: u64,
    /// The revision that was current at some time; both ascend.
    marks: VecDeque<(Duration, Revision)>,
}

impl Trail {
    /// A change was made durable.
    pub(crate) fn push(&mut self, record: &Record) {
        let step = Step {
            revision: record.revision,
            previous: record.previous,
            bytes: u32::try_from(record.encoded_len()).unwrap_or(u32::MAX),
            delete: record.operation == Operation::Delete,
        };
        self.bytes += u64::from(step.bytes);
        self.steps.push_back(step);
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The caller's clock says `now` at `revision`. A clock that goes back is taken to stand still.
    pub(crate) fn mark(&mut self, now: Duration, revision: Revision) {
        let now = self.marks.back().map_or(now, |(last, _)| now.max(*last));
        if self.marks.back().is_none_or(|(_, last)| *last < revision) {
            self.marks.push_back((now, revision));
        }
        if self.marks.len() > MARKS_MAX {
            self.marks.pop_front();
        }
    }

    /// The floor that age allows at `now`, if it is above what was compacted already.
    pub(crate) fn floor_by_age(&self, now: Duration, limits: &HistoryOptions) -> Option<Revision> {
        let old = self.marks.iter().rev().find(|(then, _)| *then + limits.keep <= now)?.1;
        let newest_to_go = self.steps.len().checked_sub(limits.events_min + 1)?;
        Some(old.min(self.steps[newest_to_go].revision)).filter(|floor| self.is_news(*floor))
    }

    /// The floor that the size of the log demands, if it is over its limits. Goes a tenth below them, so that the next
    /// write does not ask again.
    pub(crate) fn floor_by_size(&self, limits: &HistoryOptions) -> Option<Revision> {
        if self.steps.len() <= limits.log_events_max && self.bytes <= limits.log_bytes_max {
            return None;
        }
        let (events, bytes) = (limits.log_events_max / 10 * 9, limits.log_bytes_max / 10 * 9);
        let (mut left, mut weight) = (self.steps.len(), self.bytes);
        let mut floor = None;
        for step in &self.steps {
            if left <= events && weight <= bytes {
                break;
            }
            left -= 1;
            weight -= u64::from(step.bytes);
            floor = Some(step.revision);
        }
        floor
    }

    fn is_news(&self, floor: Revision) -> bool {
        self.steps.front().is_some_and(|step| step.revision <= floor)
    }

    /// Forgets everything up to `floor` and adds what became obsolete to `dropped`.
    pub(crate) fn cut(&mut self, floor: Revision, dropped: &mut VecDeque<Revision>) {
        while let Some(step) = self.steps.front().copied().filter(|step| step.revision <= floor) {
            self.steps.pop_front();
            self.bytes -= u64::from(step.bytes);
            if step.previous > Revision::ZERO {
                dropped.push_back(step.previous);
            }
            if step.delete {
                dropped.push_back(step.revision);
            }
        }
        while self.marks.front().is_some_and(|(_, revision)| *revision < floor) {
            self.marks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::key::{Key, ResourceKey};

    fn record(revision: u64, previous: u64, operation: Operation) -> Record {
        Record {
            revision: Revision(revision),
            operation,
            key: Key::new(&ResourceKey::new("", "pods"), "a", "b"),
            created: Revision(1),
            previous: Revision(previous),
            metadata: 0..2,
            json: Bytes::from_static(b"{}"),
        }
    }

    fn limits() -> HistoryOptions {
        HistoryOptions { keep: Duration::from_mins(5), events_min: 1, ..HistoryOptions::default() }
    }

    #[test]
    fn nothing_is_old_before_its_time() {
        let mut trail = Trail::default();
        for revision in 1..=5 {
            trail.push(&record(revision, revision - 1, Operation::Put));
        }
        trail.mark(Duration::from_secs(1000), Revision(3));
        trail.push(&record(6, 5, Operation::Delete));
        assert_eq!(trail.floor_by_age(Duration::from_secs(1299), &limits()), None);
        assert_eq!(trail.floor_by_age(Duration::from_secs(1300), &limits()), Some(Revision(3)));
    }

    #[test]
    fn the_newest_changes_stay_however_old_they_are() {
        let mut trail = Trail::default();
        for revision in 1..=5 {
            trail.push(&record(revision, 0, Operation::Put));
        }
        trail.mark(Duration::ZERO, Revision(5));
        let limits = HistoryOptions { events_min: 2, ..limits() };
        assert_eq!(trail.floor_by_age(Duration::from_hours(1), &limits), Some(Revision(3)));
        let limits = HistoryOptions { events_min: 5, ..limits };
        assert_eq!(trail.floor_by_age(Duration::from_hours(1), &limits), None);
    }

    #[test]
    fn a_cut_drops_replaced_states_and_deletions() {
        let mut trail = Trail::default();
        trail.push(&record(1, 0, Operation::Put));
        trail.push(&record(2, 1, Operation::Put));
        trail.push(&record(3, 2, Operation::Delete));
        trail.push(&record(4, 0, Operation::Put));
        let mut dropped = VecDeque::new();
        trail.cut(Revision(2), &mut dropped);
        assert_eq!(dropped, [Revision(1)]);
        trail.cut(Revision(3), &mut dropped);
        assert_eq!(dropped, [Revision(1), Revision(2), Revision(3)]);
        assert_eq!(trail.len(), 1);
    }

    #[test]
    fn a_log_over_its_limit_is_cut_below_it() {
        let mut trail = Trail::default();
        let limits = HistoryOptions { log_events_max: 10, ..limits() };
        for revision in 1..=10 {
            trail.push(&record(revision, 0, Operation::Put));
        }
        assert_eq!(trail.floor_by_size(&limits), None);
        trail.push(&record(11, 0, Operation::Put));
        assert_eq!(trail.floor_by_size(&limits), Some(Revision(2)));
    }
}
