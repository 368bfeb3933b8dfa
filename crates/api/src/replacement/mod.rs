//! How members of stateful workloads are replaced: the policy and the work it makes.
//!
//! Owns the kinds `ReplacementPolicy` (when members on ailing nodes are replaced, how many at once, and how) and
//! `Replacement` (one member's replacement, from its start to its end), with their schemas and the rules that no schema can
//! say ([`ReplacementPolicySpec::problems`]). The option block of the FoundationDB operator is read as that operator reads it.
//! Deciding is the engine's work, acting the controller's.

mod budget;
mod check;
mod gate;
mod options;
mod policy;
mod status;
mod strategy;
mod trigger;
mod work;

pub use budget::{BUCKETS_MAX, Breaker, Bucket, Budget, FAULT_DOMAIN_KEY_DEFAULT, Retry};
pub use check::percentage;
pub use gate::{
    AnnotationGate, GATE_TIMEOUT_DEFAULT_SECONDS, GATES_MAX, Gate, HttpGate, OnTimeout, PodConditionGate,
    Stage,
};
pub use options::{
    FAILURE_DETECTION_DEFAULT_SECONDS, MAX_CONCURRENT_DEFAULT, MAX_FAULT_DOMAINS_DEFAULT, ReplacementOptions,
    TAINT_OPTIONS_MAX, TAINT_REPLACEMENT_DEFAULT_SECONDS, TaintReplacementOption,
};
pub use policy::{Mode, ReplacementPolicy, ReplacementPolicySpec, TargetRef};
pub use status::{
    Counts, MEMBERS_TOLD_MAX, MemberRecord, MemberStatus, ReplacementPolicyStatus, Sighting, SightingSource,
};
pub use strategy::{
    AnnotatePod, Cancel, Delegate, DoneWhen, OnCleared, Order, PatchOwner, Ready, Strategy, StrategyType,
    SuccessorPlacement, VolumePolicy, Volumes,
};
pub use trigger::{
    CordonTrigger, Effect, Intent, NodeConditionTrigger, NodeMissingTrigger, PodConditionTrigger,
    TRIGGERS_MAX, TaintAction, TaintTrigger, Tolerated, Triggers,
};
pub use work::{
    ClaimRef, GateVerdict, Phase, PodRef, Replacement, ReplacementSpec, ReplacementStatus, Successor,
};
