//! Why a member stands where it does.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::cause::Cause;
use super::facts::Verdict;
use super::place::{Misfit, Missing};
use super::policy::Off;
use crate::moment::Moment;

/// The most names that a sentence lists; the rest are counted.
const NAMES_TOLD_MAX: usize = 3;

/// Why a member stands where it does, waits, or has ended. Status, events, the command line and tests print the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the sentences below say what each and its parts mean")]
pub enum Reason {
    // How it stands.
    Seen { cause: Cause, since: Moment, marked_at: Moment },
    Marked { cause: Cause, since: Moment, due_at: Moment },
    Due { cause: Cause, since: Moment },
    TaintEvictionRace { cause: Cause, at: Moment },
    // What holds the policy.
    Disabled,
    Off { why: Off },
    DryRun,
    Paused { by: Arc<[String]> },
    Frozen { why: Arc<str> },
    WindowClosed { opens: Moment },
    WindowUnknown,
    BreakerOpen { affected: usize, domains: usize, limit: usize },
    Cooldown { until: Moment },
    // What holds the member.
    Overlap,
    BudgetFull { in_flight: usize, max: usize },
    DomainsFull { in_flight: usize, max: usize },
    DomainUnknown,
    VolumeTurn,
    RetryLater { attempts: u32, until: Moment },
    RetriesExhausted { attempts: u32 },
    Skipped,
    Suspended,
    NotEnforced,
    NotMeant,
    // What is not safe, or not known to be.
    PodUnknown,
    PodLeaving,
    NodeUnknown,
    TargetUnknown,
    PeersNotReady { names: Vec<Arc<str>> },
    PeersUnknown,
    MembersMissing { ready: usize, wanted: usize },
    MembersUnknown,
    RolloutInProgress,
    RolloutUnknown,
    ClaimsUnknown,
    ClaimLocalityUnknown { claim: Box<str> },
    ClaimUsersUnknown { claim: Box<str> },
    ClaimLeaving { claim: Box<str> },
    NodeTakesItBack,
    NoFeasibleTarget { because: BTreeSet<Misfit> },
    FeasibilityUnknown { missing: Missing },
    GateShut { gate: Arc<str>, verdict: Verdict, timeout: Moment },
    GatePassedByTime { gate: Arc<str> },
    // What is waited for.
    AwaitsOperator { until: Moment },
    AwaitsTheEndOfThePod,
    AwaitsSuccessor { until: Moment },
    SuccessorUnknown,
    SuccessorStuck,
    AwaitsStability { until: Moment },
    // Why it goes on or has ended.
    TooLateToCancel,
    ClaimsLeftAlone,
    VolumesStay,
    Cleared,
    Cancelled,
    Overtaken,
    GateTimedOut { gate: Arc<str> },
    OperatorLate,
    SuccessorLate,
    Completed,
}

impl Reason {
    /// What it is in one word, for conditions, events and metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Seen { .. } => "Seen",
            Self::Marked { .. } => "Marked",
            Self::Due { .. } => "Due",
            Self::TaintEvictionRace { .. } => "TaintEvictionRace",
            Self::Disabled => "Disabled",
            Self::Off { .. } => "Off",
            Self::DryRun => "DryRun",
            Self::Paused { .. } => "Paused",
            Self::Frozen { .. } => "Frozen",
            Self::WindowClosed { .. } => "WindowClosed",
            Self::WindowUnknown => "WindowUnknown",
            Self::BreakerOpen { .. } => "BreakerOpen",
            Self::Cooldown { .. } => "Cooldown",
            Self::Overlap => "Overlap",
            Self::BudgetFull { .. } => "BudgetFull",
            Self::DomainsFull { .. } => "DomainsFull",
            Self::DomainUnknown => "DomainUnknown",
            Self::VolumeTurn => "VolumeTurn",
            Self::RetryLater { .. } => "RetryLater",
            Self::RetriesExhausted { .. } => "RetriesExhausted",
            Self::Skipped => "Skipped",
            Self::Suspended => "Suspended",
            Self::NotEnforced => "NotEnforced",
            Self::NotMeant => "NotMeant",
            Self::PodUnknown => "PodUnknown",
            Self::PodLeaving => "PodLeaving",
            Self::NodeUnknown => "NodeUnknown",
            Self::TargetUnknown => "TargetUnknown",
            Self::PeersNotReady { .. } => "PeersNotReady",
            Self::PeersUnknown => "PeersUnknown",
            Self::MembersMissing { .. } => "MembersMissing",
            Self::MembersUnknown => "MembersUnknown",
            Self::RolloutInProgress => "RolloutInProgress",
            Self::RolloutUnknown => "RolloutUnknown",
            Self::ClaimsUnknown => "ClaimsUnknown",
            Self::ClaimLocalityUnknown { .. } => "ClaimLocalityUnknown",
            Self::ClaimUsersUnknown { .. } => "ClaimUsersUnknown",
            Self::ClaimLeaving { .. } => "ClaimLeaving",
            Self::NodeTakesItBack => "NodeTakesItBack",
            Self::NoFeasibleTarget { .. } => "NoFeasibleTarget",
            Self::FeasibilityUnknown { .. } => "FeasibilityUnknown",
            Self::GateShut { .. } => "GateShut",
            Self::GatePassedByTime { .. } => "GatePassedByTime",
            Self::AwaitsOperator { .. } => "AwaitsOperator",
            Self::AwaitsTheEndOfThePod => "AwaitsTheEndOfThePod",
            Self::AwaitsSuccessor { .. } => "AwaitsSuccessor",
            Self::SuccessorUnknown => "SuccessorUnknown",
            Self::SuccessorStuck => "SuccessorStuck",
            Self::AwaitsStability { .. } => "AwaitsStability",
            Self::TooLateToCancel => "TooLateToCancel",
            Self::ClaimsLeftAlone => "ClaimsLeftAlone",
            Self::VolumesStay => "VolumesStay",
            Self::Cleared => "Cleared",
            Self::Cancelled => "Cancelled",
            Self::Overtaken => "Overtaken",
            Self::GateTimedOut { .. } => "GateTimedOut",
            Self::OperatorLate => "OperatorLate",
            Self::SuccessorLate => "SuccessorLate",
            Self::Completed => "Completed",
        }
    }

    /// Whether it holds somebody up who would go on without it.
    pub fn holds(&self) -> bool {
        !matches!(
            self,
            Self::Seen { .. }
                | Self::Marked { .. }
                | Self::Due { .. }
                | Self::TaintEvictionRace { .. }
                | Self::GatePassedByTime { .. }
                | Self::TooLateToCancel
                | Self::ClaimsLeftAlone
                | Self::VolumesStay
                | Self::Cleared
                | Self::Cancelled
                | Self::Overtaken
                | Self::GateTimedOut { .. }
                | Self::OperatorLate
                | Self::SuccessorLate
                | Self::Completed
        )
    }

    /// When time alone may do away with it.
    pub(super) fn until(&self) -> Moment {
        match self {
            Self::WindowClosed { opens: until }
            | Self::Cooldown { until }
            | Self::RetryLater { until, .. }
            | Self::GateShut { timeout: until, .. }
            | Self::AwaitsOperator { until }
            | Self::AwaitsSuccessor { until }
            | Self::AwaitsStability { until } => *until,
            _ => Moment::NEVER,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seen { cause, since, marked_at } => {
                write!(f, "{cause} since {since}; marks the member at {marked_at}")
            }
            Self::Marked { cause, since, due_at } => {
                write!(f, "{cause} since {since}; the member is marked, and due at {due_at}")
            }
            Self::Due { cause, since } => write!(f, "due since {since} because of {cause}"),
            Self::TaintEvictionRace { cause, at } => {
                write!(
                    f,
                    "Kubernetes deletes the pod at {at} because of {cause}, whatever budgets and gates say; let the pod \
                     tolerate it"
                )
            }
            Self::Disabled => f.write_str("the policy is disabled"),
            Self::Off { why: Off::NotEnabled } => f.write_str("replacements are not enabled"),
            Self::Off { why: Off::NoneAtOnce } => f.write_str("none may be replaced at once"),
            Self::DryRun => f.write_str("would begin now, but the policy is on trial (mode DryRun)"),
            Self::Paused { by } => write!(f, "paused: {}", by.join("; ")),
            Self::Frozen { why } => write!(f, "nobody is evicted now: {why}"),
            Self::WindowClosed { opens } => write!(f, "no window is open before {opens}"),
            Self::WindowUnknown => f.write_str("whether a window is open is not known"),
            Self::BreakerOpen { affected, domains, limit } => {
                write!(f, "{affected} of {domains} fault domains are affected, and at most {limit} may be")
            }
            Self::Cooldown { until } => write!(f, "rests until {until} after the last replacement"),
            Self::Overlap => f.write_str("another policy speaks of the same pod; neither acts"),
            Self::BudgetFull { in_flight, max } => {
                write!(f, "{in_flight} are being replaced, and at most {max} may be")
            }
            Self::DomainsFull { in_flight, max } => {
                write!(f, "members in {in_flight} fault domains are being replaced, and at most {max} may be")
            }
            Self::DomainUnknown => f.write_str("its fault domain is not known"),
            Self::VolumeTurn => f.write_str("another member of the workload is losing its volumes"),
            Self::RetryLater { attempts, until } => {
                write!(f, "replaced {attempts} times already; tried again at {until}")
            }
            Self::RetriesExhausted { attempts } => {
                write!(f, "replaced {attempts} times already without getting well; not tried again")
            }
            Self::Skipped => f.write_str("the pod is marked to be left alone"),
            Self::Suspended => f.write_str("the replacement is suspended"),
            Self::NotEnforced => f.write_str("the policy is no longer enforced; nothing more is done"),
            Self::NotMeant => f.write_str("the policy no longer speaks of the pod"),
            Self::PodUnknown => f.write_str("the pod could not be read"),
            Self::PodLeaving => f.write_str("the pod is on its way out already"),
            Self::NodeUnknown => f.write_str("the node could not be read"),
            Self::TargetUnknown => f.write_str("the workload could not be read"),
            Self::PeersNotReady { names } => {
                let told: Vec<&str> = names.iter().take(NAMES_TOLD_MAX).map(|name| &**name).collect();
                write!(f, "{} not ready", told.join(", "))?;
                match names.len().saturating_sub(NAMES_TOLD_MAX) {
                    0 => Ok(()),
                    more => write!(f, ", and {more} more"),
                }
            }
            Self::PeersUnknown => f.write_str("how the other members are is not known"),
            Self::MembersMissing { ready, wanted } => {
                write!(f, "{ready} of {wanted} members are ready")
            }
            Self::MembersUnknown => f.write_str("how many members there should be is not known"),
            Self::RolloutInProgress => f.write_str("the workload is being changed"),
            Self::RolloutUnknown => f.write_str("whether the workload is being changed is not known"),
            Self::ClaimsUnknown => f.write_str("its claims could not be read"),
            Self::ClaimLocalityUnknown { claim } => {
                write!(f, "whether the volume of {claim} can leave the node is not known")
            }
            Self::ClaimUsersUnknown { claim } => {
                write!(f, "whether others use claim {claim} as well is not known")
            }
            Self::ClaimLeaving { claim } => {
                write!(f, "claim {claim} is being deleted by somebody else, and would be lost with the pod")
            }
            Self::NodeTakesItBack => f.write_str("the successor could go back to the same node"),
            Self::NoFeasibleTarget { because } => {
                f.write_str("no other node can take the successor")?;
                let told: Vec<String> = because.iter().map(ToString::to_string).collect();
                if told.is_empty() { Ok(()) } else { write!(f, ": {}", told.join("; ")) }
            }
            Self::FeasibilityUnknown { missing } => {
                write!(f, "whether another node can take the successor is not known: {missing}")
            }
            Self::GateShut { gate, verdict, .. } => match verdict {
                Verdict::Unknown => write!(f, "gate {gate} could not be asked"),
                Verdict::InProgress => write!(f, "gate {gate} is not ready yet"),
                _ => write!(f, "gate {gate} denies it"),
            },
            Self::GatePassedByTime { gate } => {
                write!(f, "gate {gate} was shut for too long and is passed by")
            }
            Self::AwaitsOperator { until } => {
                f.write_str("its operator has been told and has not finished")?;
                if until.is_finite() { write!(f, "; given up at {until}") } else { Ok(()) }
            }
            Self::AwaitsTheEndOfThePod => f.write_str("the pod is going"),
            Self::AwaitsSuccessor { until } => write!(f, "the successor is not ready; given up at {until}"),
            Self::SuccessorUnknown => f.write_str("how the successor is is not known"),
            Self::SuccessorStuck => f.write_str("the successor waits for a volume in another place"),
            Self::AwaitsStability { until } => {
                write!(f, "the successor is ready; it has to stay so until {until}")
            }
            Self::TooLateToCancel => f.write_str("it is too late to call it off"),
            Self::ClaimsLeftAlone => f.write_str("the pod went before its claims; those that are left stay"),
            Self::VolumesStay => f.write_str("its claims are to stay after all, and none has gone"),
            Self::Cleared => f.write_str("the cause is gone, or has not lasted for long enough"),
            Self::Cancelled => f.write_str("called off"),
            Self::Overtaken => f.write_str("the pod has gone by itself"),
            Self::GateTimedOut { gate } => write!(f, "gate {gate} was shut for too long"),
            Self::OperatorLate => f.write_str("its operator has not finished in time"),
            Self::SuccessorLate => f.write_str("the successor has not become ready in time"),
            Self::Completed => f.write_str("the successor is ready"),
        }
    }
}
