//! How an election is held.
//!
//! Owns the settings and what must be true between them, worded as client-go words it; never talks to anybody.

use std::time::Duration;

use crate::names::ControllerName;

/// How much longer than the retry period a candidate may wait between attempts, as a part of it: client-go's factor.
pub(super) const JITTER: f64 = 1.2;

/// The longest lease duration, in seconds: as far as the field of a Lease goes.
const MAX_LEASE_SECONDS: u64 = i32::MAX as u64;

/// The usual namespace of an installation.
pub const HOME: &str = "berth-system";

/// What is wrong with the settings of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ElectionError {
    /// A holder could believe in its lease for longer than others do.
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseNotBeyondDeadline,
    /// A holder could lose its lease without having tried twice.
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    DeadlineNotBeyondRetry,
    /// No time at all.
    #[error("retryPeriod must be greater than zero")]
    NoRetry,
    /// A Lease cannot say it.
    #[error("leaseDuration must be at most {MAX_LEASE_SECONDS} seconds")]
    LeaseTooLong,
    /// Nobody stands.
    #[error("the identity of a candidate must not be empty")]
    NoIdentity,
    /// The Lease has no name or no namespace.
    #[error("the Lease of an election needs a namespace and a name")]
    NoLease,
}

/// The three spans of an election, in the relations that make it safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

impl Default for Timing {
    /// 15 s, 10 s and 2 s: what Kubernetes' own components use.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// Checks the relations between the spans.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, ElectionError> {
        if lease_duration <= renew_deadline {
            return Err(ElectionError::LeaseNotBeyondDeadline);
        }
        if renew_deadline.as_secs_f64() <= retry_period.as_secs_f64() * JITTER {
            return Err(ElectionError::DeadlineNotBeyondRetry);
        }
        if retry_period.is_zero() {
            return Err(ElectionError::NoRetry);
        }
        if lease_duration.as_secs() >= MAX_LEASE_SECONDS {
            return Err(ElectionError::LeaseTooLong);
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// How long others honour a lease that is not renewed.
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long a holder believes in its lease after it began to renew it.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// How long to wait between attempts.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// What a Lease says for [`Timing::lease_duration`]: whole seconds, rounded up so that nobody honours it for less.
    pub fn lease_seconds(&self) -> i32 {
        let whole = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(whole).unwrap_or(i32::MAX)
    }

    /// How long one request may take: half the renew deadline, so that one that hangs leaves time for another.
    pub fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }
}

/// An election: which Lease is stood for, as whom, and how long things take.
///
/// ```
/// # use berth_control::lead::{LeaderElection, identity};
/// let election = LeaderElection { namespace: "berth".to_owned(), ..LeaderElection::new(identity("host-1")) };
/// assert!(election.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElection {
    /// Where the Lease is.
    pub namespace: String,
    /// What the Lease is called.
    pub name: String,
    /// As whom to stand; no two candidates may share it, see [`identity`].
    pub identity: String,
    /// What this process does when it leads, by the names of its controllers: the Lease tells it to whoever needs one of them.
    pub controllers: Vec<ControllerName>,
    /// How long others honour a lease that is not renewed.
    pub lease_duration: Duration,
    /// How long this process acts without having renewed it.
    pub renew_deadline: Duration,
    /// How long to wait between attempts.
    pub retry_period: Duration,
}

impl LeaderElection {
    /// The usual election, for the Lease `berth` in the namespace `berth-system`.
    pub fn new(identity: String) -> Self {
        let usual = Timing::default();
        Self {
            namespace: HOME.to_owned(),
            name: "berth".to_owned(),
            identity,
            controllers: Vec::new(),
            lease_duration: usual.lease_duration,
            renew_deadline: usual.renew_deadline,
            retry_period: usual.retry_period,
        }
    }

    /// The spans, if everything is as it must be.
    pub fn check(&self) -> Result<Timing, ElectionError> {
        if self.identity.is_empty() {
            return Err(ElectionError::NoIdentity);
        }
        if self.namespace.is_empty() || self.name.is_empty() {
            return Err(ElectionError::NoLease);
        }
        Timing::new(self.lease_duration, self.renew_deadline, self.retry_period)
    }
}

/// An identity nobody else has: the host's name, for people, and a random part that changes with every start.
pub fn identity(host: &str) -> String {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("the operating system has randomness");
    // As a version 4 uid, which is what other programs put there.
    random[6] = random[6] & 0x0f | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(random));
    format!("{host}_{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_usual_election_is_valid() {
        let usual = Timing::default();
        assert_eq!(LeaderElection::new("me".to_owned()).check(), Ok(usual));
        assert_eq!(Timing::new(usual.lease_duration, usual.renew_deadline, usual.retry_period), Ok(usual));
        assert_eq!((usual.lease_seconds(), usual.request_timeout()), (15, secs(5)));
    }

    #[test]
    fn spans_that_would_not_be_safe_are_refused() {
        assert_eq!(Timing::new(secs(10), secs(10), secs(2)), Err(ElectionError::LeaseNotBeyondDeadline));
        assert_eq!(Timing::new(secs(15), secs(12), secs(10)), Err(ElectionError::DeadlineNotBeyondRetry));
        assert_eq!(Timing::new(secs(15), secs(10), secs(0)), Err(ElectionError::NoRetry));
        assert_eq!(Timing::new(secs(15), secs(0), secs(0)), Err(ElectionError::DeadlineNotBeyondRetry));
        assert_eq!(Timing::new(Duration::MAX, secs(10), secs(2)), Err(ElectionError::LeaseTooLong));
        assert_eq!(
            Timing::new(Duration::MAX, Duration::from_secs(u64::MAX), Duration::MAX),
            Err(ElectionError::DeadlineNotBeyondRetry)
        );
    }

    #[test]
    fn an_election_without_a_name_is_refused() {
        let usual = LeaderElection::new("me".to_owned());
        assert_eq!(LeaderElection::new(String::new()).check(), Err(ElectionError::NoIdentity));
        let without = LeaderElection { name: String::new(), ..usual.clone() };
        assert_eq!(without.check(), Err(ElectionError::NoLease));
        assert_eq!(LeaderElection { namespace: String::new(), ..usual }.check(), Err(ElectionError::NoLease));
    }

    #[test]
    fn a_lease_promises_at_least_what_was_asked_for() {
        let short =
            Timing::new(Duration::from_millis(1500), Duration::from_millis(1400), Duration::from_millis(100));
        assert_eq!(short.unwrap().lease_seconds(), 2);
    }

    #[test]
    fn two_identities_of_one_host_differ() {
        let (one, other) = (identity("host"), identity("host"));
        assert_ne!(one, other);
        assert!(one.starts_with("host_"));
        assert_eq!(one.len(), "host_".len() + 36);
        assert_eq!(one.as_bytes()["host_".len() + 14], b'4');
    }
}
