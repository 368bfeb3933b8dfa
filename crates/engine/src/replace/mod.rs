//! Members of stateful workloads on ailing nodes are replaced: noticed, waited for, a few at a time, data first.
//!
//! Owns the rules of a `ReplacementPolicy` ([`Policy`]), the clocks of what is wrong with a member ([`Sighting`]), the order
//! and the budgets in which members get their turn ([`plan()`]), the way of one replacement from its start to its end
//! ([`Course`]), and all policies at once ([`Fleet`]). Nothing is done here: a [`Step`] says what to write down, and which
//! [`Act`] may follow once that is written. It never believes what it does not know: unknown holds.
//!
//! ```text
//!   Healthy -> Detected -> Replacing -> Queued -> Gating -> Draining -> [RemovingVolumes ->] RemovingPod
//!      ^ cause gone: back from anywhere before something is removed            |  no way back |
//!                                     Done | Failed <- Verifying <- AwaitingSuccessor <-------+
//!
//!   the caller:  facts --plan--> Step{memory, acts} --write memory--> read live --confirm--> act
//! ```
//!
//! What outlives a restart is [`Memory`] and nothing else; `record` turns it into the status of the policy and the
//! `Replacement` objects, and back. Claims are removed before the pod is: the API server keeps them for as long as the pod is
//! there, and a pod that is made anew would otherwise find its old claim and go back to its node.

mod act;
mod advance;
mod cause;
mod compile;
mod course;
mod desk;
mod facts;
mod fleet;
mod memory;
mod observe;
mod place;
mod plan;
mod policy;
mod questions;
mod reason;
mod record;
mod retreat;
mod rule;
mod safety;
mod standing;
mod subject;

pub use act::{Act, Demand, REPLACING_ANNOTATION};
pub use cause::{Cause, Sighting, Source};
pub use course::{Course, Phase, Removal, State};
pub use facts::{
    Claim, Condition, Known, Member, Muster, Node, NodeFact, Opening, Pod, Readiness, Sure, Target, Verdict,
    Word,
};
pub use fleet::{Fleet, PolicyKey};
pub use memory::{Memory, Record};
pub use observe::{Standing, observe};
pub use place::{
    Amounts, Container, Feasibility, Fit, Misfit, Missing, Neighbour, Newcomer, Used, first_that_takes,
    is_bound_to_a_node, is_within_reach, looks_abroad, requests,
};
pub use plan::{Entry, Plan, Step, Tally, View, confirm, plan};
pub use policy::{Breaker, Budget, DoneWhen, Gate, Handing, Off, Policy, Reads, Retry, Strategy, Volumes};
pub use questions::{Questions, problems};
pub use reason::Reason;
pub use record::{member_status, replacement, restore};
pub use rule::{ConditionRule, PlainRule, Rules, TaintRule, Timing};
pub use standing::{NodeAccess, Standings, rejected};
