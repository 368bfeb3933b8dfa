//! Which subjects to decide again, and when.
//!
//! Owns what a work queue owns elsewhere: subjects a change touched, deadlines, retries, and that a subject has at most
//! one job at a time. Pure: moments and jitter come in.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use berth_engine::Moment;
use berth_engine::model::ObjectKey;

/// The first wait after a failure.
const RETRY_FIRST: Duration = Duration::from_millis(20);
/// The longest wait after a failure: long enough to spare a server in trouble, short enough not to be noticed after it.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// The subjects of one controller.
#[derive(Debug, Default)]
pub struct Due {
    /// To be decided, in the order in which they were touched.
    ready: VecDeque<ObjectKey>,
    queued: HashSet<ObjectKey>,
    /// Subjects with a job under way, and what happened to them meanwhile.
    busy: HashMap<ObjectKey, Meanwhile>,
    deadlines: Timers,
    retries: Timers,
    failures: HashMap<ObjectKey, u32>,
}

/// What happened to a subject while its job was under way. Only a change makes a job that failed worth trying at once: a
/// timer would run out again with every try.
#[derive(Clone, Copy, Debug, Default)]
struct Meanwhile {
    /// Its inputs changed.
    changed: bool,
    /// A timer of it ran out.
    ran_out: bool,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// Everything was written.
    Done,
    /// Something was not; to be tried again after a wait, which `jitter` from 0 to 1 spreads.
    Failed {
        /// The spread.
        jitter: f64,
    },
    /// Somebody wanted to make sure of something, and the server did not answer: as after a failure, and that nothing was heard
    /// until now says nothing.
    Unanswered {
        /// The spread.
        jitter: f64,
    },
}

impl Due {
    /// The inputs of a subject changed.
    pub fn mark(&mut self, subject: &ObjectKey) {
        if let Some(meanwhile) = self.busy.get_mut(subject) {
            meanwhile.changed = true;
        } else if !self.queued.contains(subject) {
            self.queued.insert(subject.clone());
            self.ready.push_back(subject.clone());
        }
    }

    /// When time alone will change a subject's decision; `None` for never.
    pub fn wake(&mut self, subject: &ObjectKey, at: Option<Moment>) {
        self.deadlines.set(subject, at.filter(|at| at.is_finite()));
    }

    /// The next subject to decide at `now`.
    pub fn pop(&mut self, now: Moment) -> Option<ObjectKey> {
        for timers in [&mut self.deadlines, &mut self.retries] {
            while let Some(subject) = timers.pop(now) {
                match self.busy.get_mut(&subject) {
                    Some(meanwhile) => meanwhile.ran_out = true,
                    None if self.queued.contains(&subject) => {}
                    None => {
                        self.queued.insert(subject.clone());
                        self.ready.push_back(subject);
                    }
                }
            }
        }
        let subject = self.ready.pop_front()?;
        self.queued.remove(&subject);
        self.retries.set(&subject, None);
        Some(subject)
    }

    /// A job of this subject is under way: it is not decided again before the job has ended.
    pub fn begin(&mut self, subject: &ObjectKey) {
        self.busy.insert(subject.clone(), Meanwhile::default());
    }

    /// The job of this subject has ended.
    pub fn end(&mut self, subject: &ObjectKey, ended: Ended, now: Moment) {
        let Meanwhile { changed, ran_out } = self.busy.remove(subject).unwrap_or_default();
        let again = match ended {
            Ended::Done => {
                self.failures.remove(subject);
                changed || ran_out
            }
            Ended::Failed { jitter } | Ended::Unanswered { jitter } => {
                let failures = self.failures.entry(subject.clone()).or_default();
                *failures = failures.saturating_add(1);
                let wait = backoff(*failures, jitter);
                self.retries.set(subject, Some(now.plus(wait)));
                // The retry also stands for a deadline that nobody has noticed yet.
                self.deadlines.expire(subject, now);
                changed
            }
        };
        if again {
            self.mark(subject);
        }
    }

    /// The subject is no more.
    pub fn forget(&mut self, subject: &ObjectKey) {
        self.deadlines.set(subject, None);
        self.retries.set(subject, None);
        self.failures.remove(subject);
    }

    /// Whether something can be decided at once, given that no timer has run out.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How many subjects wait to be decided.
    pub fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// The moment at which a timer runs out.
    pub fn next(&self) -> Option<Moment> {
        self.deadlines.next().into_iter().chain(self.retries.next()).min()
    }

    /// The first deadline, without retries.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.next()
    }
}

/// How long to wait after so many failures in a row: doubling, from the half to the whole of it by `jitter`.
fn backoff(failures: u32, jitter: f64) -> Duration {
    let doubled =
        RETRY_FIRST.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(RETRY_MAX).mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

/// At most one moment for each subject.
#[derive(Debug, Default)]
struct Timers {
    order: BTreeSet<(Moment, ObjectKey)>,
    of: HashMap<ObjectKey, Moment>,
}

impl Timers {
    fn set(&mut self, subject: &ObjectKey, at: Option<Moment>) {
        if self.of.get(subject) == at.as_ref() {
            return;
        }
        if let Some((subject, before)) = self.of.remove_entry(subject) {
            self.order.remove(&(before, subject));
        }
        if let Some(at) = at {
            self.of.insert(subject.clone(), at);
            self.order.insert((at, subject.clone()));
        }
    }

    /// Takes away the moment of a subject if it has come.
    fn expire(&mut self, subject: &ObjectKey, now: Moment) {
        if self.of.get(subject).is_some_and(|at| *at <= now) {
            self.set(subject, None);
        }
    }

    fn pop(&mut self, now: Moment) -> Option<ObjectKey> {
        if self.order.first()?.0 > now {
            return None;
        }
        let (_, subject) = self.order.pop_first()?;
        self.of.remove(&subject);
        Some(subject)
    }

    fn next(&self) -> Option<Moment> {
        self.order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_second(1_000);

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("n", name)
    }

    fn drain(due: &mut Due, now: Moment) -> Vec<String> {
        std::iter::from_fn(|| due.pop(now)).map(|key| key.name.to_string()).collect()
    }

    #[test]
    fn a_subject_touched_often_is_decided_once() {
        let mut due = Due::default();
        for name in ["a", "b", "a", "a"] {
            due.mark(&key(name));
        }
        assert_eq!(drain(&mut due, START), ["a", "b"]);
        assert_eq!(drain(&mut due, START), [""; 0]);
    }

    #[test]
    fn a_subject_with_a_job_under_way_waits_for_its_end() {
        let mut due = Due::default();
        due.begin(&key("a"));
        due.mark(&key("a"));
        due.wake(&key("a"), Some(START));
        assert_eq!(drain(&mut due, START), [""; 0]);
        due.end(&key("a"), Ended::Done, START);
        assert_eq!(drain(&mut due, START), ["a"]);
    }

    #[test]
    fn a_deadline_is_met_at_its_moment_and_only_once() {
        let mut due = Due::default();
        due.wake(&key("a"), Some(START.plus_seconds(5)));
        assert_eq!(drain(&mut due, START.plus_seconds(4)), [""; 0]);
        assert_eq!(due.next(), Some(START.plus_seconds(5)));
        assert_eq!(drain(&mut due, START.plus_seconds(5)), ["a"]);
        assert_eq!((drain(&mut due, START.plus_seconds(9)), due.next()), (vec![], None));
    }

    #[test]
    fn a_deadline_that_moved_counts_only_where_it_is_now() {
        let mut due = Due::default();
        due.wake(&key("a"), Some(START.plus_seconds(5)));
        due.wake(&key("a"), Some(START.plus_seconds(8)));
        assert_eq!(drain(&mut due, START.plus_seconds(6)), [""; 0]);
        due.wake(&key("a"), None);
        assert_eq!(drain(&mut due, START.plus_seconds(9)), [""; 0]);
    }

    #[test]
    fn failures_wait_longer_and_longer_and_never_give_up() {
        let mut due = Due::default();
        let mut now = START;
        let mut waits = Vec::new();
        for _ in 0..40 {
            due.begin(&key("a"));
            due.end(&key("a"), Ended::Failed { jitter: 1.0 }, now);
            let next = due.next().unwrap();
            waits.push(now.until(next));
            now = next;
            assert_eq!(drain(&mut due, now), ["a"]);
        }
        assert!(waits.is_sorted());
        assert_eq!((waits[0], waits[39]), (RETRY_FIRST, RETRY_MAX));
    }

    #[test]
    fn success_starts_the_waits_afresh() {
        let mut due = Due::default();
        for _ in 0..9 {
            due.end(&key("a"), Ended::Failed { jitter: 1.0 }, START);
        }
        due.end(&key("a"), Ended::Done, START);
        due.end(&key("a"), Ended::Failed { jitter: 0.0 }, START);
        due.mark(&key("a"));
        assert_eq!(drain(&mut due, START), ["a"]);
        assert_eq!(due.next(), None, "deciding takes the place of the retry");
    }

    #[test]
    fn a_change_does_not_wait_for_the_retry() {
        let mut due = Due::default();
        due.end(&key("a"), Ended::Failed { jitter: 1.0 }, START);
        due.mark(&key("a"));
        assert_eq!(drain(&mut due, START), ["a"]);
    }

    #[test]
    fn a_deadline_that_runs_out_during_a_job_that_fails_waits_for_the_retry() {
        for ended in [Ended::Failed { jitter: 1.0 }, Ended::Unanswered { jitter: 1.0 }] {
            for is_noticed in [true, false] {
                let mut due = Due::default();
                due.wake(&key("a"), Some(START));
                due.begin(&key("a"));
                if is_noticed {
                    assert_eq!(drain(&mut due, START), [""; 0]);
                }
                due.end(&key("a"), ended, START);
                assert_eq!(drain(&mut due, START), [""; 0], "{ended:?}, noticed: {is_noticed}");
                let retry = START.plus(RETRY_FIRST);
                assert_eq!((due.next(), drain(&mut due, retry)), (Some(retry), vec!["a".to_owned()]));
            }
        }
    }

    #[test]
    fn a_deadline_that_runs_out_during_a_job_is_met_when_everything_was_written() {
        for is_noticed in [true, false] {
            let mut due = Due::default();
            due.wake(&key("a"), Some(START));
            due.begin(&key("a"));
            if is_noticed {
                assert_eq!(drain(&mut due, START), [""; 0]);
            }
            due.end(&key("a"), Ended::Done, START);
            assert_eq!(drain(&mut due, START), ["a"], "noticed: {is_noticed}");
        }
    }

    #[test]
    fn a_change_during_a_job_that_fails_does_not_wait_although_a_deadline_ran_out_as_well() {
        let mut due = Due::default();
        due.wake(&key("a"), Some(START));
        due.begin(&key("a"));
        due.mark(&key("a"));
        assert_eq!(drain(&mut due, START), [""; 0]);
        due.end(&key("a"), Ended::Failed { jitter: 1.0 }, START);
        assert_eq!(drain(&mut due, START), ["a"]);
        assert_eq!(due.next(), None, "deciding takes the place of the retry");
    }

    #[test]
    fn a_deadline_still_to_come_when_a_job_fails_is_met() {
        let mut due = Due::default();
        for _ in 0..20 {
            due.end(&key("a"), Ended::Failed { jitter: 1.0 }, START);
        }
        due.wake(&key("a"), Some(START.plus_seconds(5)));
        assert_eq!(drain(&mut due, START.plus_seconds(5)), ["a"], "time has changed the decision");
    }
}
