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
/// The longest wait that a server can ask for.
const AFTER_MAX: Duration = Duration::from_mins(1);
/// How much longer than the server asked for some wait, so that not all of them come back at once.
const AFTER_SPREAD: f64 = 0.25;

/// Places in the queue of subjects that are no more before it is looked through.
const SLACK: usize = 64;

/// The subjects of one controller.
#[derive(Debug, Default)]
pub struct Due {
    /// To be decided, in the order in which they were touched; those that are not in `queued` any more are passed over.
    ready: VecDeque<ObjectKey>,
    queued: HashSet<ObjectKey>,
    /// Subjects with a job under way, and what happened to them meanwhile.
    busy: HashMap<ObjectKey, Meanwhile>,
    deadlines: Timers,
    retries: Timers,
    failures: HashMap<ObjectKey, u32>,
    /// The moment it knew last.
    clock: Option<Moment>,
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
    /// What was to be taken away had gone by another's hand: nothing is left to do, and nothing was done.
    Gone,
    /// Something was not; to be tried again after a wait, which `jitter` from 0 to 1 spreads.
    Failed {
        /// The spread.
        jitter: f64,
    },
    /// The server has said no, so it was not done; to be tried again after a wait, as after a failure.
    Refused {
        /// The spread.
        jitter: f64,
        /// How long the server wants to be left alone at least.
        after: Duration,
    },
    /// Somebody has a say in it and does not let it happen now. When to ask again is for whoever decided it, with this spread.
    Blocked {
        /// The spread.
        jitter: f64,
        /// How long to wait at least, by the word of who was asked.
        after: Duration,
    },
    /// Somebody wanted to make sure of something, and the server did not answer: as after a failure, and that nothing was heard
    /// until now says nothing.
    Unanswered {
        /// The spread.
        jitter: f64,
    },
}

impl Ended {
    /// Whether nothing is left to do.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Gone)
    }

    /// How long the server wants to be left alone at least, spread.
    fn floor(self) -> Duration {
        match self {
            Self::Refused { jitter, after } => {
                after.min(AFTER_MAX).mul_f64(1.0 + AFTER_SPREAD * jitter.clamp(0.0, 1.0))
            }
            _ => Duration::ZERO,
        }
    }
}

impl Due {
    /// The inputs of a subject changed.
    pub fn mark(&mut self, subject: &ObjectKey) {
        if let Some(meanwhile) = self.busy.get_mut(subject) {
            meanwhile.changed = true;
        } else if self.queued.insert(subject.clone()) {
            self.ready.push_back(subject.clone());
        }
    }

    /// When time alone will change a subject's decision; `None` for never.
    pub fn wake(&mut self, subject: &ObjectKey, at: Option<Moment>) {
        self.deadlines.set(subject, at.filter(|at| at.is_finite()));
    }

    /// The next subject to decide at `now`.
    pub fn pop(&mut self, now: Moment) -> Option<ObjectKey> {
        self.look_at_the_clock(now);
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
        let subject = loop {
            let subject = self.ready.pop_front()?;
            if self.queued.remove(&subject) {
                break subject;
            }
        };
        self.retries.set(&subject, None);
        Some(subject)
    }

    /// A job of this subject is under way: it is not decided again before the job has ended.
    pub fn begin(&mut self, subject: &ObjectKey) {
        self.busy.insert(subject.clone(), Meanwhile::default());
    }

    /// The job of this subject has ended.
    pub fn end(&mut self, subject: &ObjectKey, ended: Ended, now: Moment) {
        self.look_at_the_clock(now);
        // A map that is empty would hash whom it is asked for all the same, and most subjects end without a job or a failure.
        let meanwhile = if self.busy.is_empty() { None } else { self.busy.remove(subject) };
        let Meanwhile { changed, ran_out } = meanwhile.unwrap_or_default();
        let again = match ended {
            Ended::Done | Ended::Gone | Ended::Blocked { .. } => {
                if !self.failures.is_empty() {
                    self.failures.remove(subject);
                }
                changed || ran_out
            }
            Ended::Failed { jitter } | Ended::Refused { jitter, .. } | Ended::Unanswered { jitter } => {
                let failures = self.failures.entry(subject.clone()).or_default();
                *failures = failures.saturating_add(1);
                let wait = backoff(*failures, jitter).max(ended.floor());
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

    /// After the clock was set back nobody waits for a retry for longer than ever: how long it is was told by the clock of before.
    /// Deadlines are moments, whatever the clock says.
    fn look_at_the_clock(&mut self, now: Moment) {
        if self.clock.replace(now).is_some_and(|before| now < before) {
            self.retries.bring_forward(now.plus(RETRY_MAX));
        }
    }

    /// The subject is no more. Whoever has something to do about that marks it afterwards.
    pub fn forget(&mut self, subject: &ObjectKey) {
        self.deadlines.set(subject, None);
        self.retries.set(subject, None);
        self.failures.remove(subject);
        if self.queued.remove(subject) && self.ready.len() > SLACK + 2 * self.queued.len() {
            // Whoever stands by decides nothing for days. Half of it at least is in vain, so this pays for itself.
            let mut kept = HashSet::with_capacity(self.queued.len());
            self.ready.retain(|one| self.queued.contains(one) && kept.insert(one.clone()));
        }
    }

    /// Whether something can be decided at once, given that no timer has run out.
    pub fn is_ready(&self) -> bool {
        !self.queued.is_empty()
    }

    /// How many subjects wait to be decided.
    pub fn waiting(&self) -> usize {
        self.queued.len()
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

    /// Nobody's moment is later than this.
    fn bring_forward(&mut self, latest: Moment) {
        let late: Vec<ObjectKey> =
            self.of.iter().filter(|(_, at)| **at > latest).map(|(subject, _)| subject.clone()).collect();
        for subject in late {
            self.set(&subject, Some(latest));
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
    fn who_is_no_more_is_not_decided_and_takes_no_place() {
        let mut due = Due::default();
        for name in ["a", "b", "a"] {
            due.mark(&key(name));
        }
        due.forget(&key("a"));
        assert_eq!((due.waiting(), due.is_ready()), (1, true));
        due.forget(&key("b"));
        assert!(!due.is_ready());
        due.mark(&key("b"));
        due.mark(&key("a"));
        assert_eq!(drain(&mut due, START), ["a", "b"], "unless it is marked again, and then once");
        assert!(due.ready.is_empty() && due.queued.is_empty());
        due.mark(&key("stays"));
        for number in 0..10 * SLACK {
            let passing = key(&number.to_string());
            due.mark(&passing);
            due.forget(&passing);
        }
        assert!(due.ready.len() <= SLACK + 3, "{}", due.ready.len());
        assert_eq!(drain(&mut due, START), ["stays"]);
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
    fn a_server_that_asks_to_be_left_alone_is_for_as_long_within_reason() {
        for (jitter, asked, waited) in [(0.0, 7, 7_000), (1.0, 7, 8_750), (0.0, 3_600, 60_000)] {
            let mut due = Due::default();
            due.end(&key("a"), Ended::Refused { jitter, after: Duration::from_secs(asked) }, START);
            assert_eq!(due.next(), Some(START.plus(Duration::from_millis(waited))), "{asked}");
        }
        let mut due = Due::default();
        due.end(&key("a"), Ended::Refused { jitter: 1.0, after: Duration::ZERO }, START);
        assert_eq!(due.next(), Some(START.plus(RETRY_FIRST)));
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_retry_wait_for_longer_than_ever() {
        let mut due = Due::default();
        due.end(&key("a"), Ended::Failed { jitter: 1.0 }, START.plus_seconds(3_600));
        due.wake(&key("b"), Some(START.plus_seconds(3_600)));
        assert_eq!(drain(&mut due, START), [""; 0]);
        assert_eq!(due.next(), Some(START.plus(RETRY_MAX)));
        assert_eq!(drain(&mut due, START.plus(RETRY_MAX)), ["a"]);
        assert_eq!(due.next(), Some(START.plus_seconds(3_600)), "a deadline is a moment");
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
