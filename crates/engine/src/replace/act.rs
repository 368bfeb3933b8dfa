//! What is to be done, as data, and what must be read again right before.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// The annotation by which a pod is told that it is being replaced, where a gate waits for an answer.
pub const REPLACING_ANNOTATION: &str = "berth.dev/replacing";

/// Something to be done. Every one can be done twice without harm: it names what it is about by identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "act", rename_all_fields = "camelCase")]
pub enum Act {
    /// Create the `Replacement`: from then on the member has its place in the budget.
    Begin,
    /// Annotate the pod.
    Annotate {
        /// The pod, by its identity.
        uid: Arc<str>,
        /// The annotation.
        key: Box<str>,
        /// Its value.
        value: Box<str>,
    },
    /// Take the annotation off again.
    Retract {
        /// The pod, by its identity.
        uid: Arc<str>,
        /// The annotation.
        key: Box<str>,
    },
    /// Append to a list of the owner, unless it is there.
    Append {
        /// The list.
        list: Box<str>,
        /// The entry.
        entry: Box<str>,
    },
    /// Let the volume outlive its claim.
    KeepVolume {
        /// The claim, by name and identity.
        claim: Box<str>,
        /// Its identity.
        uid: Box<str>,
    },
    /// Delete a claim.
    DeleteClaim {
        /// Its name.
        claim: Box<str>,
        /// Its identity.
        uid: Box<str>,
    },
    /// Write down that it is called off after all ([`super::Memory::turn_back`]): it was written that claims go, and none has.
    TurnBack,
    /// Ask for the pod to be evicted, by the Eviction API.
    Evict {
        /// The pod, by its identity.
        uid: Arc<str>,
    },
    /// Delete a successor that never ran and never will, so that it is made anew.
    DeleteStuck {
        /// The pod, by its identity.
        uid: Arc<str>,
    },
}

/// What must be read from the server, not from a cache, right before an act. Whatever of it cannot be read is unknown, and
/// unknown holds. With what was read, [`super::confirm`] decides again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Demand {
    /// The policy: it still says so.
    Policy,
    /// The `Replacement`: nobody has suspended it or called it off.
    Replacement,
    /// All replacements of the policy and of the workload: the budget still has the place, and nobody else is losing volumes.
    Replacements,
    /// The pod: it is still the same, still there, and its cause lasts.
    Pod,
    /// Its node.
    Node,
    /// Its claims and their volumes.
    Claims,
    /// The workload: nothing is being changed.
    Owner,
    /// The other members: all are ready.
    Peers,
    /// The gates: all of the stage pass.
    Gates,
    /// Another node can take the successor.
    Feasibility,
    /// An eviction would be let through: asked as a trial. Claims are not deleted of a pod that a disruption budget keeps.
    EvictionTrial,
}

impl Act {
    /// What must be read right before.
    pub fn demands(&self) -> &'static [Demand] {
        use Demand::{
            Claims, EvictionTrial, Feasibility, Gates, Node, Owner, Peers, Pod, Policy, Replacement,
            Replacements,
        };
        match self {
            Self::Begin => &[Policy, Replacements, Pod, Node],
            Self::Annotate { .. } | Self::Append { .. } => &[Policy, Replacement, Pod, Node, Owner, Peers],
            Self::Retract { .. } => &[Policy, Replacement, Pod, Node],
            Self::TurnBack => &[Policy, Replacement, Pod, Node, Claims],
            Self::KeepVolume { .. } | Self::DeleteClaim { .. } => &[
                Policy,
                Replacement,
                Replacements,
                Pod,
                Node,
                Claims,
                Owner,
                Peers,
                Gates,
                Feasibility,
                EvictionTrial,
            ],
            Self::Evict { .. } => {
                &[Policy, Replacement, Replacements, Pod, Node, Claims, Owner, Peers, Gates, Feasibility]
            }
            Self::DeleteStuck { .. } => &[Replacement, Pod, Claims],
        }
    }

    /// Whether something is lost by it that nobody can bring back.
    pub fn is_irreversible(&self) -> bool {
        matches!(self, Self::DeleteClaim { .. } | Self::Evict { .. })
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin => f.write_str("begin the replacement"),
            Self::Annotate { key, value, .. } => write!(f, "annotate the pod with {key}={value}"),
            Self::Retract { key, .. } => write!(f, "take the annotation {key} off the pod"),
            Self::Append { list, entry } => write!(f, "append {entry} to {list} of the owner"),
            Self::KeepVolume { claim, .. } => write!(f, "keep the volume of claim {claim}"),
            Self::DeleteClaim { claim, .. } => write!(f, "delete claim {claim}"),
            Self::TurnBack => f.write_str("call it off: no claim has been deleted yet"),
            Self::Evict { .. } => f.write_str("evict the pod"),
            Self::DeleteStuck { .. } => f.write_str("delete the successor that is stuck"),
        }
    }
}
