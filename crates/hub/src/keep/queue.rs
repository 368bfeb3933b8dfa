//! What is due now, what is due later and what is being done, each task once.
//!
//! Owns the order: what was asked for first is done first, what is asked for while it is done is done once more after
//! that, and what failed waits longer each time. Time comes in.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// The first wait after a failure; it doubles up to the last.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_mins(1);

/// A queue of tasks.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    due: VecDeque<T>,
    queued: HashSet<T>,
    later: BTreeMap<T, Instant>,
    /// The same, the next first.
    clock: BTreeSet<(Instant, T)>,
    /// What is being done, and whether it was asked for again since it began.
    running: HashMap<T, bool>,
    failures: BTreeMap<T, (u32, String)>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            due: VecDeque::new(),
            queued: HashSet::new(),
            later: BTreeMap::new(),
            clock: BTreeSet::new(),
            running: HashMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl<T: Clone + Ord + Hash> Queue<T> {
    /// Asks for a task now.
    pub(crate) fn push(&mut self, task: T) {
        if let Some(again) = self.running.get_mut(&task) {
            *again = true;
        } else if self.queued.insert(task.clone()) {
            self.due.push_back(task);
        }
    }

    /// Asks for a task at a time; the earliest that was asked for counts.
    pub(crate) fn push_at(&mut self, task: T, at: Instant) {
        if let Some(known) = self.later.get(&task).copied() {
            if known <= at {
                return;
            }
            self.clock.remove(&(known, task.clone()));
        }
        self.later.insert(task.clone(), at);
        self.clock.insert((at, task));
    }

    /// The next task that is due. It counts as being done until it [succeeded](Self::succeeded) or [failed](Self::failed).
    pub(crate) fn pop(&mut self) -> Option<T> {
        let task = self.due.pop_front()?;
        self.queued.remove(&task);
        self.running.insert(task.clone(), false);
        Some(task)
    }

    /// How many are being done.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// When the next of the later ones is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.clock.first().map(|(at, _)| *at)
    }

    /// Makes due what has become so.
    pub(crate) fn ripen(&mut self, now: Instant) {
        while let Some((at, task)) = self.clock.pop_first() {
            if at > now {
                self.clock.insert((at, task));
                return;
            }
            self.later.remove(&task);
            self.push(task);
        }
    }

    /// A task went well.
    pub(crate) fn succeeded(&mut self, task: &T) {
        self.failures.remove(task);
        self.ended(task);
    }

    fn ended(&mut self, task: &T) {
        if self.running.remove(task) == Some(true) {
            self.push(task.clone());
        }
    }

    /// A task failed and is to be tried again; whether that is news, so that it is worth a line in the log.
    pub(crate) fn failed(&mut self, task: T, why: &str, now: Instant) -> bool {
        let (times, said) = self.failures.entry(task.clone()).or_default();
        let news = *times == 0 || said != why;
        let wait = RETRY_FIRST.saturating_mul(1 << (*times).min(6)).min(RETRY_LAST);
        *times += 1;
        why.clone_into(said);
        // Whatever asked for it meanwhile may have put right what was wrong.
        self.ended(&task);
        self.push_at(task, now + wait);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_in_the_order_they_were_asked_for_and_once() {
        let mut queue = Queue::default();
        for task in ["b", "a", "b"] {
            queue.push(task);
        }
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some("b"), Some("a"), None));
    }

    #[test]
    fn what_is_asked_for_while_it_is_done_is_done_once_more_after_that() {
        let mut queue = Queue::default();
        queue.push("a");
        assert_eq!(queue.pop(), Some("a"));
        queue.push("a");
        queue.push("a");
        assert_eq!((queue.pop(), queue.running()), (None, 1));
        queue.succeeded(&"a");
        assert_eq!((queue.pop(), queue.pop()), (Some("a"), None));
        queue.succeeded(&"a");
        assert_eq!((queue.pop(), queue.running()), (None, 0));
    }

    #[test]
    fn the_earliest_time_that_was_asked_for_counts() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for (task, seconds) in [("a", 5), ("b", 3), ("a", 2), ("a", 9)] {
            queue.push_at(task, now + Duration::from_secs(seconds));
        }
        assert_eq!(queue.next_at(), Some(now + Duration::from_secs(2)));
        queue.ripen(now + Duration::from_secs(3));
        assert_eq!((queue.pop(), queue.pop(), queue.next_at()), (Some("a"), Some("b"), None));
    }

    #[test]
    fn a_task_that_keeps_failing_waits_longer_and_is_news_once() {
        let (mut queue, begun) = (Queue::default(), Instant::now());
        assert!(queue.failed("a", "no", begun));
        assert_eq!(queue.next_at(), Some(begun + RETRY_FIRST));
        queue.ripen(begun + RETRY_FIRST);
        assert_eq!(queue.pop(), Some("a"));
        assert!(!queue.failed("a", "no", begun));
        assert_eq!(queue.next_at(), Some(begun + RETRY_FIRST * 2));
        assert!(queue.failed("a", "another reason", begun));
        for _ in 0..10 {
            queue.ripen(begun + RETRY_LAST);
            queue.pop();
            queue.failed("a", "no", begun);
        }
        assert_eq!(queue.next_at(), Some(begun + RETRY_LAST));
    }
}
