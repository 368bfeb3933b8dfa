//! One replacement, a step further.
//!
//! Owns the way from Gating to the end. The same course and the same facts give the same acts, however often they are asked
//! for: whoever crashed between writing a phase down and acting on it is told the same again.

use std::sync::Arc;

use berth_api::replacement::Stage;

use super::act::{Act, REPLACING_ANNOTATION};
use super::course::{Course, Phase, Removal};
use super::facts::{Known, Pod, Readiness, Sure};
use super::memory::Memory;
use super::policy::Handing;
use super::reason::Reason;
use super::retreat::{call_off, called_off, stopped};
use super::safety::{Intent, Scene};
use super::subject::{Subject, subject, successor};
use crate::moment::Moment;

/// What a look at a replacement comes to.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) acts: Vec<Act>,
    pub(super) reasons: Vec<Reason>,
}

/// Takes a replacement as far as the facts allow.
pub(super) fn advance(scene: &Scene<'_>, memory: &Memory, course: &mut Course) -> Progress {
    let mut progress = Progress::default();
    if course.phase.is_an_end() {
        return progress;
    }
    if let Some(reason) = called_off(scene, memory, course, &mut progress.reasons) {
        call_off(scene, course, reason, &mut progress);
        return progress;
    }
    // Where the pod has gone, all that is left is to look on.
    let looks_on = course.phase.only_looks_on() || matches!(subject(scene.member, course), Subject::Gone);
    if !looks_on && let Some(reason) = stopped(scene) {
        progress.reasons.push(reason);
        return progress;
    }
    loop {
        let before = course.phase;
        let mut next = Progress::default();
        match course.phase {
            Phase::Gating => gating(scene, memory, course, &mut next),
            Phase::Draining => draining(scene, memory, course, &mut next),
            Phase::RemovingVolumes => removing_volumes(scene, memory, course, &mut next),
            Phase::RemovingPod => removing_pod(scene, memory, course, &mut next),
            Phase::AwaitingSuccessor => awaiting_successor(scene, course, &mut next),
            Phase::Verifying => verifying(scene, course, &mut next),
            Phase::Done | Phase::Aborted | Phase::Failed => {}
        }
        progress.acts = next.acts;
        progress.reasons.retain(|reason| !reason.holds());
        progress.reasons.extend(next.reasons);
        if course.phase == before || course.phase.is_an_end() {
            break;
        }
    }
    progress
}

pub(super) fn end(course: &mut Course, phase: Phase, reason: Reason, now: Moment, progress: &mut Progress) {
    course.enter(phase, now);
    progress.reasons.push(reason);
}

fn is_free(reasons: &[Reason]) -> bool {
    !reasons.iter().any(Reason::holds)
}

/// The gates that stand before a removal.
fn stages(removes_volumes: bool) -> &'static [Stage] {
    const POD: &[Stage] = &[Stage::BeforePodRemoval];
    const BOTH: &[Stage] = &[Stage::BeforePodRemoval, Stage::BeforeVolumeRemoval];
    if removes_volumes { BOTH } else { POD }
}

/// A successor may well go back to a node that is well again.
fn intent(scene: &Scene<'_>, memory: &Memory, removes_volumes: bool) -> Intent {
    let is_of_the_node = memory.due(scene.now).any(|sighting| sighting.cause.is_of_the_node());
    Intent { removes_volumes, is_of_the_node }
}

fn gating(scene: &Scene<'_>, memory: &Memory, course: &mut Course, out: &mut Progress) {
    match subject(scene.member, course) {
        Subject::Unknown => out.reasons.push(Reason::PodUnknown),
        Subject::Gone => end(course, Phase::Aborted, Reason::Overtaken, scene.now, out),
        Subject::Leaving => out.reasons.push(Reason::PodLeaving),
        Subject::There(_) => {
            let intent = intent(scene, memory, course.removes_volumes);
            scene.obstacles(intent, &mut out.reasons);
            if scene.policy.strategy.handing.tells() {
                if is_free(&out.reasons) {
                    course.enter(Phase::Draining, scene.now);
                }
                return;
            }
            pass_to_removal(scene, memory, course, out);
        }
    }
}

/// The gates are asked, and if they let it pass, the removal begins.
fn pass_to_removal(scene: &Scene<'_>, memory: &Memory, course: &mut Course, out: &mut Progress) {
    let (stages, removes_volumes) = (stages(course.removes_volumes), course.removes_volumes);
    let given_up = scene.gates(stages, removes_volumes, &mut course.shut, &mut out.reasons);
    if let Some(gate) = given_up {
        return call_off(scene, course, Reason::GateTimedOut { gate }, out);
    }
    // Volumes go only because of a node that is given up, and that still is.
    let is_permanent = course.removes_volumes && memory.gives_up_the_node(scene.now);
    let claims = match scene.claims_to_remove(is_permanent) {
        Ok(claims) => claims,
        Err(reason) => return out.reasons.push(reason),
    };
    scene.claims_of_others(&claims, &mut out.reasons);
    if !is_free(&out.reasons) {
        return;
    }
    if claims.is_empty() {
        course.enter(Phase::RemovingPod, scene.now);
    } else {
        course.claims = claims;
        course.enter(Phase::RemovingVolumes, scene.now);
    }
}

fn draining(scene: &Scene<'_>, memory: &Memory, course: &mut Course, out: &mut Progress) {
    let handing = &scene.policy.strategy.handing;
    let pod = match subject(scene.member, course) {
        Subject::Unknown => return out.reasons.push(Reason::PodUnknown),
        // Who was told to has removed it.
        Subject::Gone if handing.is_delegated() => return gone_while_draining(scene, course, out),
        Subject::Gone => return end(course, Phase::Aborted, Reason::Overtaken, scene.now, out),
        Subject::Leaving => return out.reasons.push(Reason::AwaitsTheEndOfThePod),
        Subject::There(pod) => pod,
    };
    scene.obstacles(intent(scene, memory, course.removes_volumes), &mut out.reasons);
    if scene.member.told != Sure::Yes {
        if is_free(&out.reasons) {
            out.acts.push(tell(scene, handing, pod, course));
        }
        return;
    }
    if handing.is_delegated() {
        // It is the operator's work now, and the operator knows when it is safe.
        return await_operator(scene, course, out);
    }
    pass_to_removal(scene, memory, course, out);
}

/// That the pod is gone says that the operator is done, unless the operator has a way of its own to say so: then a pod that
/// died before its data had left is not one that was replaced.
fn gone_while_draining(scene: &Scene<'_>, course: &mut Course, out: &mut Progress) {
    if scene.policy.strategy.done_when.is_none() || scene.member.handed == Sure::Yes {
        course.enter(Phase::AwaitingSuccessor, scene.now);
    } else if scene.member.told == Sure::No {
        end(course, Phase::Aborted, Reason::Overtaken, scene.now, out);
    } else {
        await_operator(scene, course, out);
    }
}

fn await_operator(scene: &Scene<'_>, course: &mut Course, out: &mut Progress) {
    let until = course.since.plus_seconds(scene.policy.strategy.operator_timeout);
    if until <= scene.now {
        return end(course, Phase::Failed, Reason::OperatorLate, scene.now, out);
    }
    out.reasons = vec![Reason::AwaitsOperator { until }];
}

fn tell(scene: &Scene<'_>, handing: &Handing, pod: &Pod, course: &Course) -> Act {
    let uid = Arc::clone(&course.uid);
    match handing {
        Handing::Annotate { key, value } => Act::Annotate { uid, key: key.clone(), value: value.clone() },
        Handing::Append { list, label } => {
            let named = label.as_ref().and_then(|label| pod.labels.get(label)).cloned();
            Act::Append { list: list.clone(), entry: named.unwrap_or_else(|| (*scene.member.name).into()) }
        }
        Handing::Evict { .. } => {
            Act::Annotate { uid, key: REPLACING_ANNOTATION.into(), value: "true".into() }
        }
    }
}

fn removing_volumes(scene: &Scene<'_>, memory: &Memory, course: &mut Course, out: &mut Progress) {
    match subject(scene.member, course) {
        Subject::Unknown => return out.reasons.push(Reason::PodUnknown),
        Subject::Gone => {
            out.reasons.push(Reason::ClaimsLeftAlone);
            return course.enter(Phase::AwaitingSuccessor, scene.now);
        }
        Subject::Leaving => return out.reasons.push(Reason::AwaitsTheEndOfThePod),
        Subject::There(_) => {}
    }
    let Known::Known(claims) = &scene.member.claims else { return out.reasons.push(Reason::ClaimsUnknown) };
    let is_left =
        |removal: &&Removal| claims.iter().any(|claim| claim.uid == removal.uid && !claim.is_leaving);
    let mut left: Vec<Removal> = course.claims.iter().filter(is_left).cloned().collect();
    if !left.is_empty() {
        // What is no longer wanted stays, whatever was written: the policy may have changed, or what is said of the node.
        match scene.claims_to_remove(memory.gives_up_the_node(scene.now)) {
            Ok(wanted) => left.retain(|removal| wanted.contains(removal)),
            Err(reason) => return out.reasons.push(reason),
        }
    }
    if left.is_empty() {
        return course.enter(Phase::RemovingPod, scene.now);
    }
    scene.obstacles(intent(scene, memory, true), &mut out.reasons);
    scene.gates(stages(true), true, &mut course.shut, &mut out.reasons);
    scene.claims_of_others(&course.claims, &mut out.reasons);
    if !is_free(&out.reasons) {
        return;
    }
    for removal in left {
        let (claim, uid) = (removal.name, removal.uid);
        if scene.policy.strategy.keeps_volumes {
            out.acts.push(Act::KeepVolume { claim: claim.clone(), uid: uid.clone() });
        }
        out.acts.push(Act::DeleteClaim { claim, uid });
    }
}

fn removing_pod(scene: &Scene<'_>, memory: &Memory, course: &mut Course, out: &mut Progress) {
    match subject(scene.member, course) {
        Subject::Unknown => return out.reasons.push(Reason::PodUnknown),
        Subject::Gone => return course.enter(Phase::AwaitingSuccessor, scene.now),
        Subject::Leaving => return out.reasons.push(Reason::AwaitsTheEndOfThePod),
        Subject::There(_) => {}
    }
    // A claim that is deleted is lost when the pod goes, so everything is asked once more.
    let loses_volumes = course.point_of_no_return.is_some();
    scene.obstacles(intent(scene, memory, loses_volumes), &mut out.reasons);
    let given_up = scene.gates(stages(loses_volumes), loses_volumes, &mut course.shut, &mut out.reasons);
    if let Some(gate) = given_up.filter(|_| !loses_volumes) {
        return call_off(scene, course, Reason::GateTimedOut { gate }, out);
    }
    scene.claims_of_others(&course.claims, &mut out.reasons);
    if is_free(&out.reasons) {
        out.acts.push(Act::Evict { uid: Arc::clone(&course.uid) });
    }
}

/// When a successor is given up.
fn patience(scene: &Scene<'_>, course: &Course) -> Moment {
    course.removed.unwrap_or(course.since).plus_seconds(scene.policy.strategy.ready_timeout)
}

fn awaiting_successor(scene: &Scene<'_>, course: &mut Course, out: &mut Progress) {
    let until = patience(scene, course);
    if scene.member.has_no_successor {
        about_the_newcomer(scene, &mut out.reasons);
        if is_free(&out.reasons) {
            return course.enter(Phase::Verifying, scene.now);
        }
        if until <= scene.now {
            return end(course, Phase::Failed, Reason::SuccessorLate, scene.now, out);
        }
        return out.reasons.push(Reason::AwaitsSuccessor { until });
    }
    let reason = match successor(scene.member, course) {
        Known::Unknown => Reason::SuccessorUnknown,
        Known::Known(None) => Reason::AwaitsSuccessor { until },
        Known::Known(Some(pod)) => match pod.ready {
            Readiness::Since(_) if !pod.is_leaving => return course.enter(Phase::Verifying, scene.now),
            Readiness::Unknown => Reason::SuccessorUnknown,
            _ if pod.is_stuck && !pod.is_leaving => {
                match stopped(scene) {
                    Some(why) => out.reasons.push(why),
                    None => out.acts.push(Act::DeleteStuck { uid: Arc::clone(&pod.uid) }),
                }
                Reason::SuccessorStuck
            }
            _ => Reason::AwaitsSuccessor { until },
        },
    };
    if until <= scene.now {
        out.acts.clear();
        return end(course, Phase::Failed, Reason::SuccessorLate, scene.now, out);
    }
    out.reasons.push(reason);
    if !matches!(out.reasons.last(), Some(Reason::AwaitsSuccessor { .. })) {
        out.reasons.push(Reason::AwaitsSuccessor { until });
    }
}

/// Whoever takes the place of a member whose successor has another name is one of the others, and they are complete with it.
fn about_the_newcomer(scene: &Scene<'_>, reasons: &mut Vec<Reason>) {
    scene.about_the_others(true, 0, reasons);
    let Some(target) = scene.target else { return };
    if target.muster.is_none() {
        reasons.push(Reason::MembersUnknown);
    }
    if target.is_silent {
        // It never says whether it is at rest, and nothing is removed here.
        reasons.retain(|reason| *reason != Reason::RolloutUnknown);
    }
}

fn verifying(scene: &Scene<'_>, course: &mut Course, out: &mut Progress) {
    if scene.member.has_no_successor {
        about_the_newcomer(scene, &mut out.reasons);
        if !is_free(&out.reasons) {
            return course.enter(Phase::AwaitingSuccessor, scene.now);
        }
        // Since when it is ready nobody can say of a pod that has no name, but they have been complete since then.
        let until = course.since.plus_seconds(scene.policy.strategy.min_ready);
        if until > scene.now {
            return out.reasons.push(Reason::AwaitsStability { until });
        }
    } else {
        match successor(scene.member, course) {
            Known::Unknown => return out.reasons.push(Reason::SuccessorUnknown),
            Known::Known(Some(Pod { ready: Readiness::Since(since), is_leaving: false, .. })) => {
                let until = since.plus_seconds(scene.policy.strategy.min_ready);
                if until > scene.now {
                    return out.reasons.push(Reason::AwaitsStability { until });
                }
            }
            Known::Known(Some(Pod { ready: Readiness::Unknown, .. })) => {
                return out.reasons.push(Reason::SuccessorUnknown);
            }
            Known::Known(_) => return course.enter(Phase::AwaitingSuccessor, scene.now),
        }
    }
    let given_up = scene.gates(&[Stage::BeforeComplete], false, &mut course.shut, &mut out.reasons);
    if let Some(gate) = given_up {
        return end(course, Phase::Failed, Reason::GateTimedOut { gate }, scene.now, out);
    }
    if is_free(&out.reasons) {
        end(course, Phase::Done, Reason::Completed, scene.now, out);
    }
}
