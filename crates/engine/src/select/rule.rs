//! A Placement, understood.
//!
//! Owns the typed form every later stage works on ([`Rule`]). Reading it out of an object, with all complaints, is
//! `compile`'s business; nothing here can be misconfigured any more.

use std::fmt;
use std::sync::Arc;

use super::compile::Complaint;
use crate::selector::{Facet, Term};
use crate::taint::{ClusterEffect, Toleration};

/// What a Placement asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// How many clusters; `None` means all that fit.
    pub count: Option<usize>,
    /// A cluster passes if any of these matches. Empty means every cluster passes.
    pub predicates: Box<[Arc<Term>]>,
    /// What taints are tolerated.
    pub tolerations: Arc<[Toleration<ClusterEffect>]>,
    /// What makes one cluster better than another, with weights that are not zero, in a fixed order.
    pub weights: Box<[(Prioritizer, i64)]>,
    /// How the selection is spread, most important first.
    pub spread: Box<[SpreadTerm]>,
    /// No two selected clusters may share a value here.
    pub anti_affinity: Option<Topology>,
    /// How the selection is cut into groups.
    pub groups: Groups,
    /// The order inside a group.
    pub order: Order,
    /// Optional fields of each decision that were asked for.
    pub details: Details,
    /// What works but hardly means what was meant.
    pub hints: Box<[Complaint]>,
}

impl Rule {
    /// The weight of `prioritizer`, zero if it plays no part.
    pub fn weight(&self, prioritizer: &Prioritizer) -> i64 {
        self.weights.iter().filter(|(other, _)| other == prioritizer).map(|(_, weight)| *weight).sum()
    }

    /// Whether a change for the worse to one feasible cluster can move others: relative scores, spreading,
    /// anti-affinity, or a wish for clusters that others avoid.
    pub fn is_relative(&self) -> bool {
        !self.spread.is_empty()
            || self.anti_affinity.is_some()
            || self.weights.iter().any(|(prioritizer, _)| prioritizer.resource().is_some())
            || self.weight(&Prioritizer::PreferNoSelect) < 0
    }

    /// Whether what the placement holds changes what is chosen or written beyond keeping it: scores that are shown or
    /// sorted by contain Steady, and a negative Steady turns the choice around.
    pub(crate) fn reads_holdings(&self) -> bool {
        self.details.score || self.order == Order::Score || self.weight(&Prioritizer::Steady) < 0
    }

    /// Whether every score depends on its own cluster and the loads alone, so that a ranking can be kept by
    /// difference.
    pub fn is_separable(&self) -> bool {
        !self.is_relative()
            && !self.weights.iter().any(|(prioritizer, _)| matches!(prioritizer, Prioritizer::AddOn { .. }))
    }
}

/// Something that scores clusters between -100 and 100.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prioritizer {
    /// Fewer decisions of other placements is better.
    Balance,
    /// Already selected is better.
    Steady,
    /// More allocatable CPU, relative to the other feasible clusters, is better.
    ResourceAllocatableCpu,
    /// More allocatable memory, relative to the other feasible clusters, is better.
    ResourceAllocatableMemory,
    /// A topology with fewer selected clusters is better; see `spread`.
    Spread,
    /// A `PreferNoSelect` taint that is not tolerated is worse.
    PreferNoSelect,
    /// The value of an AddOnPlacementScore.
    AddOn {
        /// Name of the AddOnPlacementScore in the cluster's namespace.
        resource: Arc<str>,
        /// Name of the score in it.
        score: Arc<str>,
    },
}

impl Prioritizer {
    /// The built-in of that name.
    pub fn built_in(name: &str) -> Option<Self> {
        Some(match name {
            "Balance" => Self::Balance,
            "Steady" => Self::Steady,
            "ResourceAllocatableCPU" => Self::ResourceAllocatableCpu,
            "ResourceAllocatableMemory" => Self::ResourceAllocatableMemory,
            "Spread" => Self::Spread,
            "PreferNoSelect" => Self::PreferNoSelect,
            _ => return None,
        })
    }

    /// The names that [`Prioritizer::built_in`] knows.
    pub const BUILT_IN: [&str; 6] = [
        "Balance",
        "Steady",
        "ResourceAllocatableCPU",
        "ResourceAllocatableMemory",
        "Spread",
        "PreferNoSelect",
    ];

    pub(crate) fn resource(&self) -> Option<Resource> {
        match self {
            Self::ResourceAllocatableCpu => Some(Resource::Cpu),
            Self::ResourceAllocatableMemory => Some(Resource::Memory),
            _ => None,
        }
    }
}

impl fmt::Display for Prioritizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Balance => f.write_str("Balance"),
            Self::Steady => f.write_str("Steady"),
            Self::ResourceAllocatableCpu => f.write_str("ResourceAllocatableCPU"),
            Self::ResourceAllocatableMemory => f.write_str("ResourceAllocatableMemory"),
            Self::Spread => f.write_str("Spread"),
            Self::PreferNoSelect => f.write_str("PreferNoSelect"),
            Self::AddOn { resource, score } => write!(f, "AddOn/{resource}/{score}"),
        }
    }
}

/// A resource whose allocatable amount is scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Cpu,
    Memory,
}

/// A label or claim whose value says where a cluster is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topology {
    /// Label or claim.
    pub facet: Facet,
    /// Its key.
    pub key: Box<str>,
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.facet, self.key)
    }
}

/// One spread constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadTerm {
    /// What the selection is spread over.
    pub topology: Topology,
    /// By how many selected clusters one topology may exceed the one with the fewest.
    pub max_skew: usize,
    /// Whether that is a rule (`DoNotSchedule`) or a wish (`ScheduleAnyway`).
    pub hard: bool,
}

/// How the selection is cut into groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The most clusters in one group.
    pub size: GroupSize,
    /// Named groups, in order; a cluster joins the first that matches.
    pub named: Box<[(Arc<str>, Term)]>,
}

/// The most clusters in one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GroupSize {
    /// This many.
    Count(usize),
    /// This part of the selection in percent, rounded up.
    Percent(u8),
}

/// The order of clusters inside a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By name.
    Name,
    /// By score, best first, then by name.
    Score,
}

/// Optional fields of a decision. Off unless asked for: consumers exist that fail on fields that are not strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// `decisions[].score`
    pub score: bool,
    /// `decisions[].available`
    pub available: bool,
}

impl Details {
    /// Each of them.
    pub const ALL: Self = Self { score: true, available: true };

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { score: self.score && other.score, available: self.available && other.available }
    }
}
