//! One candidate, as a pure state machine.
//!
//! Owns every decision of the election: when to look, when to bid, when to give up. The driver carries out what
//! [`Elector::next`] asks for and tells [`Elector::answer`] how it went; the time and the dice are arguments. Never trusts
//! the time in a record: a lease has run out when the record has not changed for its duration on *our* clock.
//!
//! ```text
//!            due                   free, or ours                  sent             written
//!  Resting ──────────▶ Looking ────────────────────▶ Claiming ──────────▶ Writing ─────────▶ Resting, holding
//!   ▲   │                │  └─ absent ─▶ Founding ───────────────────────▶  │                       │
//!   │   │ due, holding   │ another's                    ▲                   │ refused               │
//!   │   └────────────────┼──────────────────────────────┘                   │                       │
//!   └────────────────────┴──────────────────────────────────────────────────┴───────────────────────┘
//! ```

use std::time::Duration;

use jiff::Timestamp;

use super::clock::Reading;
use super::config::{JITTER, Timing};
use super::fence::Term;
use super::record::{Record, Seen, micros};

/// The least time between two looks at a Lease that others keep touching.
const NUDGE_GAP: Duration = Duration::from_millis(100);
/// What a released lease says for its duration: client-go's value, since the field must be positive.
const RELEASED_SECONDS: i32 = 1;

/// A lease that was won.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Since when there was no interruption.
    pub term: Term,
    /// Before the last renewal that succeeded was sent.
    pub since: Reading,
}

impl Hold {
    /// Whether it may be relied on: the renew deadline has not passed on either clock.
    pub fn lasts(&self, timing: Timing, now: Reading) -> bool {
        !self.since.is_past(timing.renew_deadline(), now)
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the Lease.
    Get,
    /// Make the Lease, which must not exist.
    Create(Record),
    /// Replace the record, if the Lease is still what it was in this version.
    Update {
        /// What it is to say.
        record: Record,
        /// The resourceVersion it is based on.
        version: String,
    },
    /// Nothing before the monotonic clock shows this.
    Wait(Duration),
    /// Nothing any more: the candidate has resigned.
    Done,
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Read or written: this is what the server holds.
    Found(Seen),
    /// The Lease does not exist, or what it would be in does not.
    Absent,
    /// Another was faster.
    Conflict,
    /// The server will not, whatever the reason; nothing has changed.
    Refused,
    /// Nobody knows: no answer, or one that leaves open whether it was done.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// Nothing is under way. `current` says that the observed version is the server's as far as we know: we wrote it.
    Resting { until: Duration, current: bool },
    /// The Lease is to be read, or is being read.
    Looking,
    /// The Lease does not exist and is to be made.
    Founding,
    /// The observed record is to be replaced.
    Claiming,
    /// A write is on its way.
    Writing { sent: Reading, founding: bool },
    /// It is over.
    Done,
}

#[derive(Debug, Clone)]
struct Observed {
    seen: Seen,
    /// When the record was first seen as it is.
    since: Duration,
}

/// One candidate.
#[derive(Debug, Clone)]
pub struct Elector {
    identity: String,
    timing: Timing,
    phase: Phase,
    observed: Option<Observed>,
    hold: Option<Hold>,
    terms: u64,
    /// The acquire time of our present bid or term. A record is ours if it has our name *and* this time: one that an
    /// earlier process of the same name left behind is another's. Kept while the fate of a bid is unknown.
    claim: Option<Timestamp>,
    /// When the Lease was last looked at.
    looked: Option<Duration>,
    /// A look was taken out of turn, because of a conflict; another one has to wait its turn.
    hurried: bool,
    /// Something happened to the Lease while it was being looked at, perhaps after the answer was made.
    nudged: bool,
    resigning: bool,
}

impl Elector {
    /// A candidate that has not looked yet.
    pub fn new(identity: String, timing: Timing) -> Self {
        Self {
            identity,
            timing,
            phase: Phase::Looking,
            observed: None,
            hold: None,
            terms: 0,
            claim: None,
            looked: None,
            hurried: false,
            nudged: false,
            resigning: false,
        }
    }

    /// The lease, if it was won and not lost since. Whoever relies on it asks [`Hold::lasts`].
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// Who holds the lease according to the last look; none when nobody does.
    pub fn leader(&self) -> Option<&str> {
        self.observed
            .as_ref()
            .map(|observed| observed.seen.record.holder.as_str())
            .filter(|name| !name.is_empty())
    }

    /// What is to be done now. An action that was asked for before and not answered counts as of unknown outcome.
    pub fn next(&mut self, now: Reading) -> Action {
        self.lapse(now);
        if let Phase::Resting { until, current } = self.phase {
            let wake = self.hold.map_or(until, |hold| {
                until.min(hold.since.ticks.saturating_add(self.timing.renew_deadline()))
            });
            if now.ticks < wake {
                return Action::Wait(wake);
            }
            self.phase = if current && self.hold.is_some() { Phase::Claiming } else { Phase::Looking };
        }
        match self.phase {
            Phase::Claiming => self.replace(now),
            Phase::Founding => self.found(now),
            Phase::Done => Action::Done,
            Phase::Looking | Phase::Writing { .. } | Phase::Resting { .. } => {
                self.phase = Phase::Looking;
                self.looked = Some(now.ticks);
                self.nudged = false;
                Action::Get
            }
        }
    }

    /// Takes in how the last action ended. `jitter` is a random part of one that sets candidates apart.
    pub fn answer(&mut self, answer: Answer, now: Reading, jitter: f64) {
        self.lapse(now);
        match (&self.phase, answer) {
            (Phase::Writing { sent, .. }, Answer::Found(seen)) => self.written(*sent, seen, now),
            (Phase::Writing { founding: true, .. }, Answer::Absent) => {
                self.claim = None;
                self.rest(now, jitter);
            }
            (Phase::Writing { founding: false, .. }, Answer::Absent) => {
                self.lose();
                self.hurry(now, jitter);
            }
            (Phase::Writing { .. }, Answer::Conflict) => self.hurry(now, jitter),
            (Phase::Writing { .. }, Answer::Refused) => {
                if self.hold.is_none() {
                    self.claim = None;
                }
                self.rest(now, jitter);
            }
            // A holder has no time to lose; a candidate has.
            (Phase::Writing { .. }, Answer::Unknown) if self.hold.is_some() => self.hurry(now, jitter),
            (Phase::Looking, Answer::Found(seen)) => self.looked_at(seen, now, jitter),
            (Phase::Looking, Answer::Absent) => {
                self.lose();
                self.observed = None;
                self.phase = if self.resigning { Phase::Done } else { Phase::Founding };
            }
            _ => self.rest(now, jitter),
        }
    }

    /// Something happened to the Lease: a candidate that rests looks at once, or as soon as is decent.
    pub fn nudge(&mut self, now: Reading) {
        let decent = self.decent(now);
        match &mut self.phase {
            Phase::Resting { until, .. } if self.hold.is_none() => *until = decent.min(*until),
            _ => self.nudged = true,
        }
    }

    /// When the Lease may be looked at again because something happened to it.
    fn decent(&self, now: Reading) -> Duration {
        self.looked.map_or(now.ticks, |looked| now.ticks.max(looked.saturating_add(NUDGE_GAP)))
    }

    /// Gives up the candidacy. Nothing is held from now on; [`Elector::next`] says what is left to do to let others have
    /// the lease at once, and in the end that it is done.
    pub fn resign(&mut self) {
        self.hold = None;
        self.resigning = true;
        self.hurried = false;
        self.phase = match self.phase {
            _ if self.claim.is_none() => Phase::Done,
            Phase::Resting { current: true, .. } => Phase::Claiming,
            _ => Phase::Looking,
        };
    }

    fn lapse(&mut self, now: Reading) {
        self.hold = self.hold.filter(|hold| hold.lasts(self.timing, now));
    }

    /// The Lease is certainly not ours any more.
    fn lose(&mut self) {
        self.hold = None;
        self.claim = None;
    }

    fn looked_at(&mut self, seen: Seen, now: Reading, jitter: f64) {
        let since = match &self.observed {
            Some(observed) if observed.seen.record == seen.record => observed.since,
            _ => now.ticks,
        };
        let observed = self.observed.insert(Observed { seen, since });
        let record = &observed.seen.record;
        let free = record.holder.is_empty() || now.ticks >= since.saturating_add(record.duration());
        if is_ours(record, &self.identity, self.claim) {
            self.phase = Phase::Claiming;
            return;
        }
        // Whoever took it from us meant it, even by hand and for nobody: the others have the first go.
        let deposed = self.hold.is_some();
        if deposed || !free {
            self.lose();
        }
        match free && !deposed {
            _ if self.resigning => self.phase = Phase::Done,
            true => self.phase = Phase::Claiming,
            false => self.rest(now, jitter),
        }
    }

    fn written(&mut self, sent: Reading, seen: Seen, now: Reading) {
        self.hurried = false;
        let ours = is_ours(&seen.record, &self.identity, self.claim);
        self.observed = Some(Observed { seen, since: now.ticks });
        if self.resigning {
            self.phase = Phase::Done;
            return;
        }
        let won = ours && !sent.is_past(self.timing.renew_deadline(), now);
        if won {
            let term = self.hold.map_or_else(|| self.new_term(), |hold| hold.term);
            self.hold = Some(Hold { term, since: sent });
        }
        // An answer that came too late to be of use calls for another renewal at once.
        let pause = if won { self.timing.retry_period() } else { Duration::ZERO };
        self.phase = Phase::Resting { until: now.ticks.saturating_add(pause), current: won };
    }

    fn new_term(&mut self) -> Term {
        self.terms += 1;
        Term::new(self.terms)
    }

    /// Looks at once, but not twice in a row: a Lease that keeps changing under us is met at the usual pace.
    fn hurry(&mut self, now: Reading, jitter: f64) {
        if self.hurried {
            self.rest(now, jitter);
        } else {
            self.hurried = true;
            self.phase = Phase::Looking;
        }
    }

    fn rest(&mut self, now: Reading, jitter: f64) {
        self.hurried = false;
        if self.resigning {
            self.phase = Phase::Done;
            return;
        }
        let retry = self.timing.retry_period();
        // A holder retries evenly, since it has to; candidates spread out.
        let spread =
            if self.hold.is_some() || jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) * JITTER };
        let mut until = now.ticks.saturating_add(retry.mul_f64(1.0 + spread));
        if let (None, Some(observed)) = (self.hold, &self.observed) {
            // The moment at which the lease runs out is the moment to be there.
            let end = observed.since.saturating_add(observed.seen.record.duration());
            if end > now.ticks && !observed.seen.record.holder.is_empty() {
                until = until.min(end);
            }
            if std::mem::take(&mut self.nudged) {
                until = until.min(self.decent(now));
            }
        }
        self.phase = Phase::Resting { until, current: false };
    }

    fn found(&mut self, now: Reading) -> Action {
        let claim = *self.claim.get_or_insert_with(|| micros(now.wall));
        self.phase = Phase::Writing { sent: now, founding: true };
        Action::Create(self.record(claim, 0, now))
    }

    fn replace(&mut self, now: Reading) -> Action {
        let Some(Observed { seen, .. }) = &self.observed else {
            // Only a record that was seen is ever claimed.
            self.phase = Phase::Looking;
            return Action::Get;
        };
        let (version, transitions) = (seen.version.clone(), seen.record.transitions);
        let ours = is_ours(&seen.record, &self.identity, self.claim);
        let record = if self.resigning {
            let now = Some(micros(now.wall));
            let holder = String::new();
            Record { holder, duration_seconds: RELEASED_SECONDS, acquired: now, renewed: now, transitions }
        } else {
            let claim = *self.claim.get_or_insert_with(|| micros(now.wall));
            self.record(claim, if ours { transitions } else { transitions.saturating_add(1) }, now)
        };
        self.phase = Phase::Writing { sent: now, founding: false };
        Action::Update { record, version }
    }

    fn record(&self, acquired: Timestamp, transitions: i32, now: Reading) -> Record {
        Record {
            holder: self.identity.clone(),
            duration_seconds: self.timing.lease_seconds(),
            acquired: Some(acquired),
            renewed: Some(micros(now.wall)),
            transitions,
        }
    }
}

fn is_ours(record: &Record, identity: &str, claim: Option<Timestamp>) -> bool {
    claim.is_some() && record.holder == identity && record.acquired == claim
}

#[cfg(test)]
mod tests;
