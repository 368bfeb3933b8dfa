//! How a policy stands, as its status says it.
//!
//! Owns the conditions of a policy and what is told of its members. What is remembered of a member is `record`'s.

use std::collections::BTreeSet;

use berth_api::replacement::{Counts, MEMBERS_TOLD_MAX, MemberStatus, ReplacementPolicyStatus};
use berth_api::schema::Problem;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::plan::{Plan, Step};
use super::policy::Policy;
use super::reason::Reason;
use super::record::{member_status, time};
use crate::condition::{Status, Wanted};
use crate::moment::Moment;

/// The most problems that a condition repeats; the rest is counted.
const PROBLEMS_TOLD_MAX: usize = 8;
/// The most members that a condition names.
const NAMES_TOLD_MAX: usize = 3;

/// Whether nodes can be read for a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeAccess {
    /// No rule of the policy speaks of nodes, and none is read.
    NotNeeded,
    /// They can.
    Granted,
    /// They cannot, and why: node triggers are inert, the others go on.
    Denied(String),
    /// Nobody has found out yet.
    Unknown,
}

/// What a status is made of.
#[derive(Clone, Copy, Debug)]
pub struct Standings<'s> {
    /// The policy.
    pub policy: &'s Policy,
    /// What was decided.
    pub plan: &'s Plan,
    /// Whether nodes can be read.
    pub access: &'s NodeAccess,
    /// The generation of the policy.
    pub generation: Option<i64>,
    /// What its status said before.
    pub before: Option<&'s ReplacementPolicyStatus>,
    /// The moment.
    pub now: Moment,
}

impl Standings<'_> {
    /// The status to be written. `node` is the node of a member, if it has one.
    pub fn status<'n>(self, node: impl Fn(&str) -> Option<&'n str>) -> ReplacementPolicyStatus {
        let Self { plan, generation, before, now, .. } = self;
        let known = before.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let conditions = self.wanted().into_iter().map(|wanted| keep(wanted, known, now)).collect();
        let mut told: Vec<(Moment, MemberStatus)> = plan
            .steps
            .iter()
            .filter_map(|step| {
                let mut status = member_status(step)?;
                status.node = status.node.or_else(|| node(&step.name).map(str::to_owned));
                // That it is looked at again at once is no news.
                status.next_transition_time = time(Some(step.deadline).filter(|at| *at > now));
                Some((first_due(step), status))
            })
            .collect();
        let omitted = told.len().saturating_sub(MEMBERS_TOLD_MAX);
        // Those that are due first are told.
        told.sort_by(|(one, of), (other, than)| (one, &of.name).cmp(&(other, &than.name)));
        told.truncate(MEMBERS_TOLD_MAX);
        let mut pods: Vec<MemberStatus> = told.into_iter().map(|(_, status)| status).collect();
        pods.sort_by(|one, other| one.name.cmp(&other.name));
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        ReplacementPolicyStatus {
            observed_generation: generation,
            conditions: Some(conditions),
            counts: Some(Counts {
                matched: count(plan.tally.matched),
                detected: count(plan.tally.detected),
                replacing: count(plan.tally.replacing),
                in_flight: count(plan.tally.in_flight),
                blocked: count(plan.tally.blocked),
            }),
            last_ended_at: time(plan.last_ended),
            pods: (!pods.is_empty()).then_some(pods),
            omitted: (omitted > 0).then(|| count(omitted)),
        }
    }

    fn wanted(&self) -> Vec<Wanted<'static>> {
        let accepted = Wanted {
            kind: "Accepted",
            status: Status::True,
            reason: "Accepted",
            message: String::new(),
            generation: self.generation,
        };
        let mut wanted = vec![accepted, node_access(self.access)];
        wanted.push(self.said("Paused", |reason| match reason {
            Reason::Paused { .. } | Reason::Frozen { .. } | Reason::WindowClosed { .. } => Some(false),
            _ => None,
        }));
        // Both are so whether or not somebody is due just now.
        if !self.policy.pauses.is_empty() || self.policy.frozen.is_some() {
            let last = wanted.last_mut().expect("one was put there");
            let paused = Reason::Paused { by: std::sync::Arc::clone(&self.policy.pauses) };
            let frozen = self.policy.frozen.clone().map(|why| Reason::Frozen { why });
            let reason = frozen.unwrap_or(paused);
            (last.status, last.reason, last.message) = (Status::True, reason.word(), reason.to_string());
        }
        wanted.push(
            self.said("BreakerOpen", |reason| matches!(reason, Reason::BreakerOpen { .. }).then_some(false)),
        );
        wanted.push(self.said("BudgetExhausted", |reason| {
            matches!(reason, Reason::BudgetFull { .. } | Reason::DomainsFull { .. }).then_some(false)
        }));
        wanted.push(self.overlap());
        wanted.push(self.said("TaintEvictionRace", |reason| {
            matches!(reason, Reason::TaintEvictionRace { .. }).then_some(true)
        }));
        wanted.push(self.progressing());
        wanted
    }

    /// A condition that is true while some member has such a reason; with the members' names if the reason is theirs alone.
    fn said(&self, kind: &'static str, is_it: impl Fn(&Reason) -> Option<bool>) -> Wanted<'static> {
        let mut first: Option<(&Reason, bool)> = None;
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for step in &self.plan.steps {
            for reason in &step.reasons {
                if let Some(is_theirs) = is_it(reason) {
                    first.get_or_insert((reason, is_theirs));
                    names.insert(&step.name);
                }
            }
        }
        let Some((reason, is_theirs)) = first else {
            return Wanted {
                kind,
                status: Status::False,
                reason: "No",
                message: String::new(),
                generation: None,
            };
        };
        let message = if is_theirs {
            let told: Vec<&str> = names.iter().take(NAMES_TOLD_MAX).copied().collect();
            let more = names.len().saturating_sub(NAMES_TOLD_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}: {reason}", told.join(", "))
        } else {
            reason.to_string()
        };
        Wanted { kind, status: Status::True, reason: reason.word(), message, generation: None }
    }

    /// So it is before anybody is due: whoever wrote the second policy should hear of it at once.
    fn overlap(&self) -> Wanted<'static> {
        let mut told = self.said("Overlap", |reason| matches!(reason, Reason::Overlap).then_some(true));
        let count = self.plan.tally.overlapping;
        if count > 0 && told.status == Status::False {
            (told.status, told.reason) = (Status::True, Reason::Overlap.word());
            let members = if count == 1 { "1 member".to_owned() } else { format!("{count} members") };
            told.message = format!("{members}: {}", Reason::Overlap);
        }
        told
    }

    fn progressing(&self) -> Wanted<'static> {
        let under_way: Vec<&Step> =
            self.plan.steps.iter().filter(|step| step.memory.under_way().is_some()).collect();
        let (status, reason, message) = match under_way.as_slice() {
            [] => (Status::False, "Idle", String::new()),
            steps => {
                let names: Vec<String> = steps
                    .iter()
                    .take(NAMES_TOLD_MAX)
                    .map(|step| format!("{} ({})", step.name, step.state))
                    .collect();
                let more = steps.len().saturating_sub(NAMES_TOLD_MAX);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                (Status::True, "Replacing", format!("{}{more}", names.join(", ")))
            }
        };
        Wanted { kind: "Progressing", status, reason, message, generation: None }
    }
}

/// The status of a policy that cannot be understood: what was remembered of its members stays.
pub fn rejected(
    problems: &[Problem],
    generation: Option<i64>,
    before: Option<&ReplacementPolicyStatus>,
    now: Moment,
) -> ReplacementPolicyStatus {
    let mut status = before.cloned().unwrap_or_default();
    let told: Vec<String> = problems.iter().take(PROBLEMS_TOLD_MAX).map(ToString::to_string).collect();
    let more = problems.len().saturating_sub(PROBLEMS_TOLD_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let wanted = Wanted {
        kind: "Accepted",
        status: Status::False,
        reason: "Misconfigured",
        message: format!("{}{more}", told.join("; ")),
        generation,
    };
    let known = status.conditions.take().unwrap_or_default();
    let condition = keep(wanted, &known, now);
    status.conditions = Some(crate::condition::merged(&known, condition));
    status.observed_generation = generation;
    status
}

fn node_access(access: &NodeAccess) -> Wanted<'static> {
    let (status, reason, message) = match access {
        NodeAccess::NotNeeded => {
            (Status::True, "NotNeeded", "no rule speaks of nodes; none is read".to_owned())
        }
        NodeAccess::Granted => (Status::True, "Granted", String::new()),
        NodeAccess::Denied(why) => (
            Status::False,
            "Forbidden",
            format!("nodes cannot be read, so that rules about them do nothing: {why}"),
        ),
        NodeAccess::Unknown => (Status::Unknown, "NotAsked", String::new()),
    };
    Wanted { kind: "NodeAccess", status, reason, message, generation: None }
}

/// The condition as it should be: as it was, if that is what it says.
fn keep(wanted: Wanted<'_>, known: &[Condition], now: Moment) -> Condition {
    let kind = wanted.kind;
    wanted.unless_said(known, now).unwrap_or_else(|| {
        let said = known.iter().find(|condition| condition.type_ == kind);
        said.cloned().expect("what need not be said again was said")
    })
}

fn first_due(step: &Step) -> Moment {
    if step.memory.under_way().is_some() {
        return Moment::PAST;
    }
    let dues = step.memory.sightings.iter().map(super::Sighting::due_at_the_earliest);
    dues.min().unwrap_or(Moment::NEVER)
}
