//! Whether this process may write, right now.
//!
//! Owns the answer that every writer asks for before every write. It is computed from the clocks each time it is asked
//! for, so it turns to no by itself when the renew deadline has passed, whatever else the process is or is not doing.
//! Never extends a lease and never talks to a server.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::clock::Clock;
use super::config::Timing;
use super::elector::Hold;

/// How often a holder that waits for news looks at the wall clock, by which alone it can tell that the machine slept.
const GLANCE: Duration = Duration::from_secs(1);

/// One time of leading, without interruption. Two of them are never equal in one process, so that something begun in one
/// can tell that it goes on in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(u64);

impl Term {
    pub(super) const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// The permission to write, for as long as it lasts. Cheap to clone and to ask.
#[derive(Debug, Clone)]
pub struct Fence {
    /// None where there is no election.
    elected: Option<Elected>,
    /// The term that [`Fence::changed`] last told of.
    told: Option<Term>,
}

#[derive(Debug, Clone)]
struct Elected {
    state: watch::Receiver<State>,
    clock: Clock,
    timing: Timing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    hold: Option<Hold>,
    leader: Option<Arc<str>>,
}

impl Fence {
    /// A fence that is always open: there is no election, this process is the only one.
    pub fn open() -> Self {
        Self { elected: None, told: None }
    }

    /// A fence that never opens: for those who only look.
    pub fn closed() -> Self {
        Gate::new(Clock::system(), Timing::default()).1
    }

    /// Whether a write may be sent now.
    pub fn holds(&self) -> bool {
        self.term().is_some()
    }

    /// The term that lasts now; none while standing by.
    pub fn term(&self) -> Option<Term> {
        let Some(elected) = &self.elected else { return Some(Term::new(0)) };
        elected.hold().map(|hold| hold.term)
    }

    /// Whether this very term still lasts: what began in it may go on.
    pub fn holds_in(&self, term: Term) -> bool {
        self.term() == Some(term)
    }

    /// From when on it does not hold unless renewed: now when it does not, and none when nothing can end it.
    pub fn deadline(&self) -> Option<Instant> {
        let elected = self.elected.as_ref()?;
        Some(elected.end(elected.timing.renew_deadline()))
    }

    /// From when on another may lead: a write that is not answered by then is to be given up. None when nothing can end it.
    pub fn expiry(&self) -> Option<Instant> {
        let elected = self.elected.as_ref()?;
        Some(elected.end(elected.timing.lease_duration()))
    }

    /// Who leads, as far as is known; none without an election.
    pub fn leader(&self) -> Option<Arc<str>> {
        self.elected.as_ref()?.state.borrow().leader.clone()
    }

    /// Waits until [`Fence::term`] is another than this handle told of last; the first time, until there is one.
    ///
    /// For waking up only: between two calls a term may have ended, so every write asks [`Fence::holds`] all the same.
    pub async fn changed(&mut self) -> Option<Term> {
        loop {
            let term = self.term();
            if term != self.told {
                self.told = term;
                return term;
            }
            let deadline = self.deadline();
            let Some(elected) = &mut self.elected else { return future::pending().await };
            let glance = Instant::now() + GLANCE;
            tokio::select! {
                news = elected.state.changed() => if news.is_err() && term.is_none() {
                    // The election is over and was lost.
                    return future::pending().await;
                },
                () = tokio::time::sleep_until(deadline.map_or(glance, |end| end.min(glance))), if term.is_some() => {}
            }
        }
    }
}

impl Elected {
    fn hold(&self) -> Option<Hold> {
        let hold = self.state.borrow().hold;
        hold.filter(|hold| hold.lasts(self.timing, self.clock.now()))
    }

    fn end(&self, span: Duration) -> Instant {
        match self.hold() {
            Some(hold) => self.clock.instant(hold.since.ticks.saturating_add(span)),
            None => Instant::now(),
        }
    }
}

/// The other side of a fence: who sets it. Closes it when dropped.
#[derive(Debug)]
pub(super) struct Gate {
    state: watch::Sender<State>,
}

impl Gate {
    pub(super) fn new(clock: Clock, timing: Timing) -> (Self, Fence) {
        let (sender, state) = watch::channel(State::default());
        (Self { state: sender }, Fence { elected: Some(Elected { state, clock, timing }), told: None })
    }

    /// Tells what the election says now; wakes those who wait only if it is something new.
    pub(super) fn set(&self, hold: Option<Hold>, leader: Option<&str>) {
        self.state.send_if_modified(|state| {
            let woke = state.hold.map(|hold| hold.term) != hold.map(|hold| hold.term);
            state.hold = hold;
            if state.leader.as_deref() != leader {
                state.leader = leader.map(Arc::from);
            }
            woke
        });
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.set(None, None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use tokio::time::{advance, timeout};

    use super::*;

    fn hold(term: u64, clock: &Clock) -> Hold {
        Hold { term: Term::new(term), since: clock.now() }
    }

    fn fence() -> (Gate, Fence, Clock) {
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
        let (gate, fence) = Gate::new(clock.clone(), Timing::default());
        (gate, fence, clock)
    }

    async fn is_waiting(fence: &mut Fence) -> bool {
        timeout(Duration::from_millis(1), fence.changed()).await.is_err()
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_fence_closes_by_itself_at_the_renew_deadline() {
        let (gate, fence, clock) = fence();
        assert!(!fence.holds());
        gate.set(Some(hold(1, &clock)), Some("me"));
        let begun = Instant::now();
        assert_eq!(fence.deadline(), Some(begun + 10 * SECOND));
        assert_eq!(fence.expiry(), Some(begun + 15 * SECOND));
        advance(Duration::from_millis(9_999)).await;
        assert!(fence.holds() && fence.holds_in(Term::new(1)));
        advance(Duration::from_millis(1)).await;
        assert!(!fence.holds() && !fence.holds_in(Term::new(1)));
        assert_eq!(fence.deadline(), Some(Instant::now()));
        assert_eq!(fence.leader().as_deref(), Some("me"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_is_closed_when_the_machine_wakes_from_a_long_sleep() {
        let (gate, fence, clock) = fence();
        gate.set(Some(hold(1, &clock)), Some("me"));
        clock.skip(9 * SECOND);
        assert!(fence.holds());
        clock.skip(SECOND);
        assert!(!fence.holds());
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_hears_of_the_end_without_anybody_telling_it() {
        let (gate, mut fence, clock) = fence();
        assert!(is_waiting(&mut fence).await);
        gate.set(Some(hold(1, &clock)), None);
        assert_eq!(fence.changed().await, Some(Term::new(1)));
        let begun = Instant::now();
        assert_eq!(fence.changed().await, None);
        assert_eq!(begun.elapsed(), 10 * SECOND);
        assert!(is_waiting(&mut fence).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_hears_within_a_second_that_the_machine_slept() {
        let (gate, mut fence, clock) = fence();
        gate.set(Some(hold(1, &clock)), None);
        assert!(fence.changed().await.is_some());
        clock.skip(3600 * SECOND);
        let begun = Instant::now();
        assert_eq!(fence.changed().await, None);
        assert!(begun.elapsed() <= SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn renewals_wake_nobody_and_a_new_term_wakes_everybody() {
        let (gate, mut fence, clock) = fence();
        gate.set(Some(hold(1, &clock)), None);
        let mut other = fence.clone();
        assert_eq!(fence.changed().await, other.changed().await);
        for _ in 0..20 {
            advance(2 * SECOND).await;
            gate.set(Some(hold(1, &clock)), None);
            assert!(is_waiting(&mut fence).await);
        }
        gate.set(Some(hold(2, &clock)), None);
        assert_eq!(fence.changed().await, Some(Term::new(2)));
        assert_eq!(other.changed().await, Some(Term::new(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_whose_election_ended_is_closed() {
        let (gate, mut fence, clock) = fence();
        gate.set(Some(hold(1, &clock)), None);
        assert!(fence.changed().await.is_some());
        drop(gate);
        assert!(!fence.holds());
        assert_eq!(fence.changed().await, None);
        assert!(is_waiting(&mut fence).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_of_somebody_who_only_looks_never_opens() {
        let mut fence = Fence::closed();
        assert!(!fence.holds());
        assert!(is_waiting(&mut fence).await);
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_election_the_fence_is_open() {
        let mut fence = Fence::open();
        assert!(fence.holds());
        assert_eq!((fence.deadline(), fence.expiry(), fence.leader()), (None, None, None));
        assert!(fence.changed().await.is_some());
        assert!(is_waiting(&mut fence).await);
    }
}
