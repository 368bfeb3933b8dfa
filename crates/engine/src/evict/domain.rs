//! Failure domains and everything else that has bounds of its own.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::allowance::Allowance;
use super::breaker::Thresholds;
use super::rate::Rate;

/// Something whose members must not all go at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Domain {
    /// Everything there is.
    Everything,
    /// A zone, rack or whatever fails as one.
    Zone(Arc<str>),
    /// All that a policy speaks of.
    Policy(Arc<str>),
    /// The members of one workload.
    Workload(Arc<str>),
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("everything"),
            Self::Zone(name) => write!(f, "zone {name}"),
            Self::Policy(name) => write!(f, "policy {name}"),
            Self::Workload(name) => write!(f, "workload {name}"),
        }
    }
}

/// The domains a subject belongs to, the widest first: all of them have a say.
pub type Route = Arc<[Domain]>;

/// What a domain allows. By default everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// How fast its members may go.
    pub rate: Rate,
    /// How many of them may be away at once.
    pub in_flight: Allowance,
    /// When too many of them are affected for any to go.
    pub breaker: Option<Thresholds>,
}
