//! The log of clusters whose place in a ranking may have changed.
//!
//! Owns a bounded window of slot numbers in the order they changed. Rankings remember how far they have read; one
//! that falls behind the window is built anew. So a delta costs the same however many rankings there are.

use std::collections::VecDeque;

use super::slots::Slot;

/// How many changes are remembered. Reading this many costs about as much as ranking ten thousand clusters anew.
const WINDOW: usize = 2048;

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor(u64);

#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    /// The position of the first remembered entry.
    start: u64,
    entries: VecDeque<Slot>,
}

impl ChangeLog {
    pub(crate) fn push(&mut self, slot: Slot) {
        if self.entries.len() == WINDOW {
            self.entries.pop_front();
            self.start += 1;
        }
        self.entries.push_back(slot);
    }

    /// The place after everything said so far.
    pub(crate) fn end(&self) -> Cursor {
        Cursor(self.start + self.entries.len() as u64)
    }

    /// Everything said since `cursor`; `None` if part of it is forgotten.
    pub(crate) fn since(&self, cursor: Cursor) -> Option<impl Iterator<Item = Slot>> {
        let skip = cursor.0.checked_sub(self.start)?;
        Some(self.entries.range(usize::try_from(skip).ok()?.min(self.entries.len())..).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_hears_everything_or_is_told_that_it_fell_behind() {
        let mut log = ChangeLog::default();
        let cursor = log.end();
        for number in 0..WINDOW {
            log.push(Slot(u32::try_from(number).unwrap()));
        }
        assert_eq!(log.since(cursor).unwrap().count(), WINDOW);
        log.push(Slot(7));
        assert!(log.since(cursor).is_none());
        assert_eq!(log.since(log.end()).unwrap().count(), 0);
    }
}
