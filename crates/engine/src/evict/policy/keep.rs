//! Why a pod that must leave stays although it is due.

use std::fmt;
use std::sync::Arc;

use crate::evict::{Cause, Domain, Hold};
use crate::gate::Shut;
use crate::moment::Moment;

/// Why a pod that must leave stays although it is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its policy says so.
    ByPolicy,
    /// Its budget has not let it go in time, and its policy says that it stays then.
    DeadlinePassed,
    /// Its policy cannot be understood.
    Misconfigured,
    /// Which policy counts depends on its namespace, of which nothing is known yet.
    NamespaceUnknown,
    /// None of its policy's windows is open.
    Window {
        /// When the next one opens; never where the calendar ends before that.
        opens: Moment,
    },
    /// A gate is shut.
    Gate(Shut),
    /// Its budget does not let it go.
    Budget(Arc<str>),
    /// What holds more than this pod: a stop, a breaker, or a bound on how many may be away. See [`Keep::bound`].
    Bound(Hold),
}

impl Keep {
    /// Every word there is for it.
    pub const WORDS: [&'static str; 14] = [
        "Hold",
        "DeadlinePassed",
        "Misconfigured",
        "NamespaceUnknown",
        "Window",
        "Gate",
        "Budget",
        "Frozen",
        "AllDown",
        "Unseen",
        "Breaker",
        "InFlight",
        "ZoneInFlight",
        "PerWorkload",
    ];

    /// What holds a pod in the marshal, where that is more than waiting for its time or its turn.
    pub fn bound(hold: Hold) -> Option<Self> {
        word_of(&hold).map(|_| Self::Bound(hold))
    }

    /// What it is in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::ByPolicy => "Hold",
            Self::DeadlinePassed => "DeadlinePassed",
            Self::Misconfigured => "Misconfigured",
            Self::NamespaceUnknown => "NamespaceUnknown",
            Self::Window { .. } => "Window",
            Self::Gate(_) => "Gate",
            Self::Budget(_) => "Budget",
            Self::Bound(hold) => word_of(hold).unwrap_or("InFlight"),
        }
    }

    /// The gate that is shut, if it is one.
    pub fn gate(&self) -> Option<&Arc<str>> {
        match self {
            Self::Gate(shut) => Some(&shut.gate),
            _ => None,
        }
    }

    /// The zone that holds it, if it is one.
    pub fn zone(&self) -> Option<&Arc<str>> {
        match self {
            Self::Bound(Hold::BreakerOpen { domain, .. } | Hold::Full { domain, .. }) => domain.zone(),
            _ => None,
        }
    }
}

/// The word for what holds a pod in the marshal; none where it only waits for its time or its turn.
fn word_of(hold: &Hold) -> Option<&'static str> {
    match hold {
        Hold::Frozen(freeze) => Some(match freeze.cause {
            Cause::Person => "Frozen",
            Cause::AllDown => "AllDown",
            Cause::Unseen => "Unseen",
        }),
        Hold::BreakerOpen { .. } => Some("Breaker"),
        Hold::Full { domain, .. } => match domain {
            Domain::Policy(_) => Some("InFlight"),
            Domain::PolicyZone(..) => Some("ZoneInFlight"),
            Domain::PolicyWorkload(..) => Some("PerWorkload"),
            // So many requests are under way, or pods on their way out: each is over in a moment, or with its grace period.
            Domain::Everything | Domain::Zone(_) => None,
        },
        // What passes at once, and what a rate makes wait, is a turn that comes by itself.
        Hold::NotDue { .. } | Hold::NotCounted { .. } | Hold::Paced { .. } | Hold::Behind { .. } => None,
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPolicy => f.write_str("its policy says that it stays"),
            Self::DeadlinePassed => f.write_str(
                "its disruption budget has not let it go in time, and its policy says that it stays then",
            ),
            Self::Misconfigured => f.write_str("its policy cannot be understood"),
            Self::NamespaceUnknown => f.write_str("the labels of its namespace are not known yet"),
            Self::Window { opens } if opens.is_finite() => {
                write!(f, "no window of its policy is open before {opens}")
            }
            Self::Window { .. } => f.write_str("no window of its policy opens any more"),
            Self::Gate(shut) => shut.fmt(f),
            Self::Budget(message) => write!(f, "its disruption budget does not let it go: {message}"),
            Self::Bound(Hold::Frozen(freeze)) => write!(f, "evictions are {freeze}"),
            Self::Bound(hold) => hold.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evict::{Allowance, Freeze};

    fn told(hold: Hold) -> (&'static str, Option<String>, String) {
        let keep = Keep::bound(hold).unwrap();
        (keep.word(), keep.zone().map(ToString::to_string), keep.to_string())
    }

    #[test]
    fn what_holds_more_than_one_pod_is_told_with_its_cause_and_its_zone() {
        let said = Freeze { by: Some("ann".into()), ..Freeze::of(Cause::Person, "storm") };
        assert_eq!(
            told(Hold::Frozen(said)),
            ("Frozen", None, "evictions are frozen by ann: storm".to_owned())
        );
        for (cause, word) in [(Cause::AllDown, "AllDown"), (Cause::Unseen, "Unseen")] {
            let keep = told(Hold::Frozen(Freeze::of(cause, "so it is")));
            assert_eq!(keep, (word, None, "evictions are stopped: so it is".to_owned()));
        }
        let domain = Domain::Zone("eu/a".into());
        assert_eq!(
            told(Hold::BreakerOpen { domain, affected: 2, total: 4, until: None }),
            (
                "Breaker",
                Some("eu/a".to_owned()),
                "2 of 4 in zone eu/a are affected, which is too many at once".to_owned()
            )
        );
        let full = |domain| Hold::Full { domain, away: 1, allowed: Allowance::Count(1) };
        assert_eq!(told(full(Domain::Policy("p".into()))).0, "InFlight");
        assert_eq!(
            told(full(Domain::PolicyZone("p".into(), "a".into()))),
            (
                "ZoneInFlight",
                Some("a".to_owned()),
                "1 of policy p in zone a are away, and 1 may be".to_owned()
            )
        );
        assert_eq!(told(full(Domain::PolicyWorkload("p".into(), "w".into()))).0, "PerWorkload");
    }

    #[test]
    fn who_only_waits_for_its_time_or_its_turn_is_not_kept() {
        let everything = || Domain::Everything;
        for hold in [
            Hold::NotDue { at: Moment::from_second(1) },
            Hold::Behind { others: 3 },
            Hold::NotCounted { domain: everything() },
            Hold::Paced { domain: everything(), until: Moment::from_second(1) },
            Hold::Full { domain: everything(), away: 64, allowed: Allowance::Count(64) },
        ] {
            assert_eq!(Keep::bound(hold.clone()), None, "{hold}");
        }
    }

    #[test]
    fn every_word_is_listed() {
        let bound = Keep::Bound(Hold::Frozen(Freeze::of(Cause::Unseen, "")));
        for keep in [Keep::ByPolicy, Keep::DeadlinePassed, Keep::Misconfigured, Keep::NamespaceUnknown, bound]
        {
            assert!(Keep::WORDS.contains(&keep.word()), "{keep:?}");
        }
    }
}
