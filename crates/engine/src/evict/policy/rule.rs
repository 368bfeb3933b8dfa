//! A policy, ready to be obeyed.

use std::sync::Arc;

use super::compile::Complaint;
use super::selection::Selection;
use crate::evict::{Allowance, Bounds, Rate};
use crate::gate::Gate;
use crate::window::Windows;

/// A policy: whom it selects, and what it wants of them.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub name: Arc<str>,
    /// The generation of the object it was read from.
    pub generation: i64,
    /// The pods and taints it is about.
    pub selection: Selection,
    /// What it wants; everything that is wrong with it where it cannot be understood.
    pub orders: Result<Orders, Arc<[Complaint]>>,
}

/// What a policy wants.
#[derive(Clone, Debug)]
pub struct Orders {
    /// How pods leave.
    pub way: Way,
    /// For how long a taint is tolerated in place of what pods say.
    pub toleration_seconds: Option<i64>,
    /// How much longer they stay.
    pub delay_seconds: i64,
    /// When they may go at all.
    pub windows: Windows,
    /// How fast they go.
    pub pace: Pace,
    /// What has to hold before.
    pub gates: Arc<[Gate]>,
    /// What becomes of those that do not end.
    pub force: Option<Force>,
    /// Whether nobody really goes.
    pub is_dry_run: bool,
}

/// How pods leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By deletion.
    Delete,
    /// By the eviction API, which asks budgets.
    Evict {
        /// For so many seconds after a pod is due, and whether it is deleted then; for ever where this is `None`.
        deadline: Option<(i64, bool)>,
    },
    /// Not at all.
    Hold,
}

/// How fast pods leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// All of them.
    pub rate: Rate,
    /// Those of one zone.
    pub zone_rate: Rate,
    /// How many may be on their way out.
    pub in_flight: Allowance,
    /// How many of one zone may be on their way out.
    pub zone_in_flight: Allowance,
    /// How many of one owner may be away.
    pub per_workload: Allowance,
}

impl Pace {
    /// What holds for all of a policy's pods.
    pub fn of_policy(&self) -> Bounds {
        Bounds { rate: self.rate, in_flight: self.in_flight, ..Bounds::default() }
    }

    /// What holds for those in one zone.
    pub fn of_zone(&self) -> Bounds {
        Bounds { rate: self.zone_rate, in_flight: self.zone_in_flight, ..Bounds::default() }
    }

    /// Whether those in one zone have bounds of their own.
    pub fn bounds_zones(&self) -> bool {
        self.of_zone() != Bounds::default()
    }

    /// What holds for those of one owner.
    pub fn of_workload(&self) -> Bounds {
        Bounds { in_flight: self.per_workload, ..Bounds::default() }
    }
}

/// When a pod that does not end is deleted by force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Force {
    /// So long after its grace period has ended.
    pub after_seconds: i64,
    /// What shows that nothing runs on its node any more; none where the risk is accepted.
    pub proofs: Box<[Proof]>,
    /// Whether no proof is needed.
    pub accepts_risk: bool,
}

/// What shows that nothing runs on a node any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The node has the taint `node.kubernetes.io/out-of-service`, and is not ready.
    OutOfServiceTaint,
    /// The node has the taint `node.cloudprovider.kubernetes.io/shutdown`, and is not ready.
    ProviderShutdownTaint,
    /// There is no such node.
    NodeGone,
    /// The node has an annotation, and is not ready.
    NodeAnnotation {
        /// Its key.
        key: Box<str>,
        /// Its value; any where this is `None`.
        value: Option<Box<str>>,
    },
}
