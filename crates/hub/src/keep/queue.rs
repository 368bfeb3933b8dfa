//! What is due now and what is due later, each task once.
//!
//! Owns the order: what was asked for first is done first, and what failed waits longer each time. Time comes in.

use std::collections::{BTreeMap, HashSet, VecDeque};
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
    failures: BTreeMap<T, (u32, String)>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            due: VecDeque::new(),
            queued: HashSet::new(),
            later: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl<T: Clone + Ord + Hash> Queue<T> {
    /// Asks for a task now.
    pub(crate) fn push(&mut self, task: T) {
        if self.queued.insert(task.clone()) {
            self.due.push_back(task);
        }
    }

    /// Asks for a task at a time; the earliest that was asked for counts.
    pub(crate) fn push_at(&mut self, task: T, at: Instant) {
        self.later.entry(task).and_modify(|known| *known = (*known).min(at)).or_insert(at);
    }

    /// The next task that is due.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let task = self.due.pop_front()?;
        self.queued.remove(&task);
        Some(task)
    }

    /// When the next of the later ones is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.later.values().min().copied()
    }

    /// Makes due what has become so.
    pub(crate) fn ripen(&mut self, now: Instant) {
        let ripe: Vec<T> =
            self.later.iter().filter(|(_, at)| **at <= now).map(|(task, _)| task.clone()).collect();
        for task in ripe {
            self.later.remove(&task);
            self.push(task);
        }
    }

    /// A task went well.
    pub(crate) fn succeeded(&mut self, task: &T) {
        self.failures.remove(task);
    }

    /// A task failed and is to be tried again; whether that is news, so that it is worth a line in the log.
    pub(crate) fn failed(&mut self, task: T, why: &str, now: Instant) -> bool {
        let (times, said) = self.failures.entry(task.clone()).or_default();
        let news = *times == 0 || said != why;
        let wait = RETRY_FIRST.saturating_mul(1 << (*times).min(6)).min(RETRY_LAST);
        *times += 1;
        why.clone_into(said);
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
