//! Why somebody whose moment has come has not gone.

use std::fmt;

use serde::Serialize;

use super::allowance::Allowance;
use super::domain::Domain;
use super::stop::{Cause, Freeze};
use crate::moment::Moment;

/// Why a subject waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Hold {
    /// Its moment has not come.
    NotDue {
        /// When it comes.
        at: Moment,
    },
    /// Somebody has said stop, or something has.
    Frozen(Freeze),
    /// Nobody has counted yet how much of a domain is affected.
    NotCounted {
        /// The domain.
        domain: Domain,
    },
    /// Too much of a domain is affected at once.
    BreakerOpen {
        /// The domain.
        domain: Domain,
        /// How many are affected.
        affected: usize,
        /// Of how many.
        total: usize,
        /// When it closes by itself, if nothing more happens.
        until: Option<Moment>,
    },
    /// As many of a domain are away as may be.
    Full {
        /// The domain.
        domain: Domain,
        /// How many are away.
        away: usize,
        /// How many may be.
        allowed: Allowance,
    },
    /// A domain's rate has none to spare yet.
    Paced {
        /// The domain.
        domain: Domain,
        /// When it has; never where it is stopped.
        until: Moment,
    },
    /// Others of the same domains are before it.
    Behind {
        /// How many.
        others: usize,
    },
}

impl Hold {
    /// Every word there is for a hold that bounds have a part in.
    pub const WORDS: [&'static str; 7] =
        ["frozen", "all-down", "unseen", "not-counted", "breaker", "full", "rate"];

    /// What it is in one word, for metrics; `None` where nothing but time or others are in the way.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            // What a person has said has had this name for longer than there were other causes.
            Self::Frozen(Freeze { cause: Cause::Person, .. }) => Some("frozen"),
            Self::Frozen(freeze) => Some(freeze.cause.word()),
            Self::NotCounted { .. } => Some("not-counted"),
            Self::BreakerOpen { .. } => Some("breaker"),
            Self::Full { .. } => Some("full"),
            Self::Paced { .. } => Some("rate"),
            Self::NotDue { .. } | Self::Behind { .. } => None,
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDue { at } => write!(f, "not due before {at}"),
            Self::Frozen(freeze) => freeze.fmt(f),
            Self::NotCounted { domain } => write!(f, "how much of {domain} is affected is not known yet"),
            Self::BreakerOpen { domain, affected, total, .. } => {
                write!(f, "{affected} of {total} in {domain} are affected, which is too many at once")
            }
            Self::Full { domain, away, allowed } => {
                write!(f, "{away} of {domain} are away, and {allowed} may be")
            }
            Self::Paced { domain, until: Moment::NEVER } => write!(f, "{domain} is stopped"),
            Self::Paced { domain, until } => write!(f, "{domain} has its rate used up until {until}"),
            Self::Behind { others: 1 } => f.write_str("one other is before it"),
            Self::Behind { others } => write!(f, "{others} others are before it"),
        }
    }
}
