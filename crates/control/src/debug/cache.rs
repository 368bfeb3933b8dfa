//! Answers that hold for a short while.
//!
//! Owns how long and how many. Everything is kept equally long, so what came first ends first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long an answer holds: as long as API servers that ask another one believe it.
pub(super) const HOLDS_FOR: Duration = Duration::from_secs(10);
/// Answers kept at most. With more askers, the oldest are asked for again.
const KEPT_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct Cache<K, V>(Mutex<Kept<K, V>>);

#[derive(Debug)]
struct Kept<K, V> {
    answers: HashMap<K, (Instant, V)>,
    /// By their ends; one that was given again is here twice.
    ends: VecDeque<(Instant, K)>,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Kept { answers: HashMap::new(), ends: VecDeque::new() }))
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<V> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, answer) = kept.answers.get(key)?;
        (Instant::now() < *end).then(|| answer.clone())
    }

    pub(super) fn keep(&self, key: K, answer: V) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while kept.ends.front().is_some_and(|(end, _)| *end <= now) || kept.ends.len() >= KEPT_MAX {
            let Some((end, oldest)) = kept.ends.pop_front() else { break };
            if kept.answers.get(&oldest).is_some_and(|(current, _)| *current == end) {
                kept.answers.remove(&oldest);
            }
        }
        let end = now + HOLDS_FOR;
        kept.ends.push_back((end, key.clone()));
        kept.answers.insert(key, (end, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_a_while_and_no_longer() {
        let cache = Cache::default();
        cache.keep("a", 1);
        tokio::time::advance(HOLDS_FOR / 2).await;
        cache.keep("a", 2);
        tokio::time::advance(HOLDS_FOR / 2).await;
        cache.keep("b", 3);
        assert_eq!(cache.get(&"a"), Some(2), "the first end was that of the first answer");
        tokio::time::advance(HOLDS_FOR / 2).await;
        assert_eq!((cache.get(&"a"), cache.get(&"b")), (None, Some(3)));
        tokio::time::advance(HOLDS_FOR).await;
        assert_eq!(cache.get(&"b"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_are_kept() {
        let cache = Cache::default();
        for number in 0..3 * KEPT_MAX {
            cache.keep(number, ());
            cache.keep(0, ());
        }
        let kept = cache.0.lock().unwrap();
        assert!(kept.answers.len() <= KEPT_MAX && kept.ends.len() <= KEPT_MAX);
        assert!(kept.answers.contains_key(&(3 * KEPT_MAX - 1)));
    }
}
