//! What is remembered, as objects hold it.
//!
//! Owns the way from [`Memory`] to the status of a policy and to a `Replacement`, and back. Nothing is lost on the way but
//! what the policy says again: the waits of a rule are the policy's, and a cause that was not looked at since is not due.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_api::replacement as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::cause::{Cause, Sighting, Source};
use super::course::{Course, Phase, Removal};
use super::memory::{Memory, Record};
use super::plan::Step;
use super::reason::Reason;
use super::rule::Timing;
use crate::moment::Moment;
use crate::taint::NodeEffect;

/// The condition of a member on a node with a taint that a rule speaks of, as upstream names it.
const DETECTED: &str = "NodeTaintDetected";
/// The condition of a member whose node has had such a taint for long enough.
const REPLACING: &str = "NodeTaintReplacing";

/// What the status of a policy says of a member; `None` where there is nothing to say.
pub fn member_status(step: &Step) -> Option<api::MemberStatus> {
    let Step { name, memory, reasons, deadline, .. } = step;
    let held = reasons.iter().find(|reason| reason.holds());
    // That a policy is disabled is said once, by the policy.
    if memory.is_empty() && held.is_none_or(|reason| *reason == Reason::Disabled) {
        return None;
    }
    Some(api::MemberStatus {
        name: name.to_string(),
        uid: memory.uid.as_deref().map(Into::into),
        node: memory.under_way().and_then(|course| course.node.as_deref()).map(Into::into),
        fault_domain: memory.domain.as_deref().map(Into::into),
        next_transition_time: time(Some(*deadline)),
        conditions: some(conditions(&memory.sightings)),
        causes: some(memory.sightings.iter().map(written).collect()),
        record: (memory.record != Record::default()).then(|| api::MemberRecord {
            attempts: i32::try_from(memory.record.attempts).unwrap_or(i32::MAX),
            ended_at: time(memory.record.ended),
            uid: memory.record.uid.as_deref().map(Into::into),
        }),
        message: held.map(ToString::to_string),
    })
}

/// The spec and the status of the `Replacement` of a member; `None` if it has none.
pub fn replacement(
    policy: &str,
    target: &str,
    step: &Step,
) -> Option<(api::ReplacementSpec, api::ReplacementStatus)> {
    let course = step.memory.course.as_ref()?;
    let spec = api::ReplacementSpec {
        policy: policy.to_owned(),
        owner: Some(target.to_owned()),
        target: api::PodRef {
            name: step.name.to_string(),
            uid: course.uid.to_string(),
            node: course.node.as_deref().map(Into::into),
            fault_domain: course.domain.as_deref().map(Into::into),
            entry: None,
        },
        trigger: Some(of_cause(&course.cause)),
        removes_volumes: Some(course.removes_volumes),
        suspend: None,
        cancel: None,
    };
    let told = step.reasons.iter().find(|reason| reason.holds()).or_else(|| step.reasons.last());
    let claim = |claim: &Removal| api::ClaimRef { name: claim.name.to_string(), uid: claim.uid.to_string() };
    let shut = |(name, since): (&Arc<str>, &Moment)| api::GateVerdict {
        name: name.to_string(),
        verdict: "Unknown".to_owned(),
        shut_since: time(Some(*since)),
        ..api::GateVerdict::default()
    };
    let status = api::ReplacementStatus {
        phase: Some(api::Phase::from(course.phase.word())),
        phase_since: time(Some(course.since)),
        started_at: time(Some(course.started)),
        point_of_no_return_at: time(course.point_of_no_return),
        pod_removed_at: time(course.removed),
        ended_at: time(course.ended),
        claims: some(course.claims.iter().map(claim).collect()),
        members_at_start: course.members.map(|count| i32::try_from(count).unwrap_or(i32::MAX)),
        gates: some(course.shut.iter().map(shut).collect()),
        reason: told.map(|reason| reason.word().to_owned()),
        message: told.map(Reason::to_string),
        ..api::ReplacementStatus::default()
    };
    Some((spec, status))
}

/// What is remembered of a member, out of what was written down. Of several replacements the latest counts.
pub fn restore(member: Option<&api::MemberStatus>, latest: Option<&api::Replacement>) -> Memory {
    let record = member.and_then(|member| member.record.as_ref());
    let causes = member.and_then(|member| member.causes.as_deref()).unwrap_or_default();
    let mut sightings: Vec<Sighting> = causes.iter().filter_map(read).collect();
    sightings.sort_unstable_by(|one, other| one.cause.cmp(&other.cause));
    Memory {
        uid: member.and_then(|member| member.uid.as_deref()).map(Arc::from),
        domain: member.and_then(|member| member.fault_domain.as_deref()).map(Arc::from),
        sightings,
        course: latest.and_then(course),
        record: Record {
            attempts: record.map_or(0, |record| u32::try_from(record.attempts).unwrap_or_default()),
            ended: record.and_then(|record| moment(record.ended_at.as_ref())),
            uid: record.and_then(|record| record.uid.as_deref()).map(Arc::from),
        },
    }
}

/// A `Replacement` without a status has been created and nothing more.
fn course(replacement: &api::Replacement) -> Option<Course> {
    let spec = &replacement.spec;
    let created = moment(replacement.metadata.creation_timestamp.as_ref());
    let empty = api::ReplacementStatus::default();
    let status = replacement.status.as_ref().unwrap_or(&empty);
    let started = moment(status.started_at.as_ref()).or(created)?;
    let word = status.phase.as_ref().map_or(Phase::Gating.word(), api::Phase::as_str);
    // A phase that this program does not know was written by another one: nothing is done about it.
    let phase = Phase::ALL.into_iter().find(|phase| phase.word() == word)?;
    let claims = status.claims.iter().flatten();
    let shut = |gate: &api::GateVerdict| Some((gate.name.as_str().into(), moment(gate.shut_since.as_ref())?));
    Some(Course {
        uid: spec.target.uid.as_str().into(),
        node: spec.target.node.as_deref().map(Arc::from),
        domain: spec.target.fault_domain.as_deref().map(Arc::from),
        cause: spec.trigger.as_ref().and_then(Cause::read).unwrap_or(Cause::NodeMissing),
        removes_volumes: spec.removes_volumes.unwrap_or(true),
        phase,
        since: moment(status.phase_since.as_ref()).unwrap_or(started),
        started,
        point_of_no_return: moment(status.point_of_no_return_at.as_ref()),
        removed: moment(status.pod_removed_at.as_ref()),
        ended: moment(status.ended_at.as_ref()),
        claims: claims
            .map(|claim| Removal { name: claim.name.as_str().into(), uid: claim.uid.as_str().into() })
            .collect(),
        members: status.members_at_start.and_then(|count| usize::try_from(count).ok()),
        shut: status.gates.iter().flatten().filter_map(shut).collect(),
    })
}

/// Upstream's two conditions: since when the oldest taint is known, and since when one has lasted for long enough.
fn conditions(sightings: &[Sighting]) -> Vec<Condition> {
    let mut first: BTreeMap<&str, (Moment, &Cause)> = BTreeMap::new();
    for sighting in sightings.iter().filter(|sighting| sighting.cause.is_taint()) {
        let marks = [(DETECTED, Some(sighting.since)), (REPLACING, sighting.replacing)];
        for (name, since) in marks {
            let Some(since) = since else { continue };
            let known = first.entry(name).or_insert((since, &sighting.cause));
            if since < known.0 {
                *known = (since, &sighting.cause);
            }
        }
    }
    let condition = |(name, (since, cause)): (&str, (Moment, &Cause))| {
        Some(Condition {
            type_: name.to_owned(),
            status: "True".to_owned(),
            reason: "NodeTainted".to_owned(),
            message: cause.to_string(),
            last_transition_time: Time(since.timestamp()?),
            observed_generation: None,
        })
    };
    first.into_iter().filter_map(condition).collect()
}

fn of_cause(cause: &Cause) -> api::Sighting {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (kind, key, value, effect) = match cause {
        Cause::Taint { key, value, effect } => ("Taint", text(key), text(value), Some(effect.to_string())),
        Cause::Cordon => ("Cordon", None, None, None),
        Cause::NodeMissing => ("NodeMissing", None, None, None),
        Cause::NodeCondition { condition, status } => ("NodeCondition", text(condition), text(status), None),
        Cause::PodCondition { condition, status } => ("PodCondition", text(condition), text(status), None),
    };
    api::Sighting { kind: kind.to_owned(), key, value, effect, ..api::Sighting::default() }
}

impl Cause {
    /// The cause that an object tells of; `None` where it is of a sort that this program does not know.
    pub fn read(written: &api::Sighting) -> Option<Self> {
        let key: Box<str> = written.key.as_deref().unwrap_or_default().into();
        let value: Box<str> = written.value.as_deref().unwrap_or_default().into();
        match written.kind.as_str() {
            "Taint" => {
                let effect = NodeEffect::parse(written.effect.as_deref().unwrap_or_default());
                Some(Self::Taint { key, value, effect })
            }
            "Cordon" => Some(Self::Cordon),
            "NodeMissing" => Some(Self::NodeMissing),
            "NodeCondition" => Some(Self::NodeCondition { condition: key, status: value }),
            "PodCondition" => Some(Self::PodCondition { condition: key, status: value }),
            _ => None,
        }
    }
}

fn written(sighting: &Sighting) -> api::Sighting {
    api::Sighting {
        since: time(Some(sighting.since)),
        since_source: Some(match sighting.source {
            Source::TimeAdded => api::SightingSource::TimeAdded,
            Source::FirstSeen => api::SightingSource::FirstSeen,
        }),
        replacing_since: time(sighting.replacing),
        due_at: time(Some(sighting.due_at_the_earliest())),
        rule: Some(sighting.rule.to_string()),
        ..of_cause(&sighting.cause)
    }
}

fn read(written: &api::Sighting) -> Option<Sighting> {
    Some(Sighting {
        cause: Cause::read(written)?,
        since: moment(written.since.as_ref())?,
        source: match written.since_source {
            Some(api::SightingSource::TimeAdded) => Source::TimeAdded,
            _ => Source::FirstSeen,
        },
        replacing: moment(written.replacing_since.as_ref()),
        timing: Timing::NEVER,
        rule: written.rule.as_deref().unwrap_or_default().into(),
        is_permanent: false,
    })
}

pub(super) fn time(moment: Option<Moment>) -> Option<Time> {
    moment.filter(|moment| moment.is_finite())?.timestamp().map(Time)
}

fn moment(time: Option<&Time>) -> Option<Moment> {
    time.map(|time| Moment::from_timestamp(time.0))
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
