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
    /// Those of them in one zone.
    PolicyZone(Arc<str>, Arc<str>),
    /// Those of them that are members of one workload.
    PolicyWorkload(Arc<str>, Arc<str>),
}

impl Domain {
    /// The zone, if it is one or a part of one.
    pub fn zone(&self) -> Option<&Arc<str>> {
        match self {
            Self::Zone(zone) | Self::PolicyZone(_, zone) => Some(zone),
            Self::Everything | Self::Policy(_) | Self::PolicyWorkload(..) => None,
        }
    }

    /// The policy, if it is all or some of whom one speaks of.
    pub fn policy(&self) -> Option<&Arc<str>> {
        match self {
            Self::Policy(name) | Self::PolicyZone(name, _) | Self::PolicyWorkload(name, _) => Some(name),
            Self::Everything | Self::Zone(_) => None,
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("everything"),
            // Nodes that do not say where they are make one together.
            Self::Zone(name) if name.is_empty() => f.write_str("the zone without a name"),
            Self::Zone(name) => write!(f, "zone {name}"),
            Self::Policy(name) => write!(f, "policy {name}"),
            Self::PolicyZone(name, zone) if zone.is_empty() => {
                write!(f, "policy {name} in the zone without a name")
            }
            Self::PolicyZone(name, zone) => write!(f, "policy {name} in zone {zone}"),
            Self::PolicyWorkload(name, workload) => write!(f, "policy {name} in workload {workload}"),
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
