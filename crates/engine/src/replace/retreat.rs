//! Stopping a replacement, and calling it off.
//!
//! Owns why nothing more is done for now, and why one that has removed nothing ends before its time: a person says so, its
//! cause is gone, the policy no longer speaks of the member or no longer wants its claims. What was told is taken back while
//! the replacement is still under way, so that it is taken back once: whatever is on the pod after that is somebody else's.

use std::sync::Arc;

use berth_api::replacement::OnCleared;

use super::act::{Act, REPLACING_ANNOTATION};
use super::advance::{Progress, end};
use super::course::{Course, Phase, Removal};
use super::facts::Sure;
use super::memory::Memory;
use super::policy::Handing;
use super::reason::Reason;
use super::safety::Scene;
use super::subject::{Subject, subject};

/// Why nothing more is done for now.
pub(super) fn stopped(scene: &Scene<'_>) -> Option<Reason> {
    if !scene.policy.is_enforced {
        return Some(Reason::NotEnforced);
    }
    if let Some(why) = &scene.policy.frozen {
        return Some(Reason::Frozen { why: Arc::clone(why) });
    }
    if scene.member.word.suspend {
        return Some(Reason::Suspended);
    }
    if scene.overlaps {
        return Some(Reason::Overlap);
    }
    if scene.member.is_dismissed {
        return Some(Reason::NotMeant);
    }
    scene.member.pod().is_some_and(|pod| pod.is_skipped).then_some(Reason::Skipped)
}

/// Why it ends here, before anything is removed.
pub(super) fn called_off(
    scene: &Scene<'_>,
    memory: &Memory,
    course: &Course,
    reasons: &mut Vec<Reason>,
) -> Option<Reason> {
    let is_untouched = match course.phase {
        Phase::Gating => true,
        // An operator that was told by a list acts on it whatever becomes of us.
        Phase::Draining => {
            !matches!(scene.policy.strategy.handing, Handing::Append { .. }) || scene.member.told == Sure::No
        }
        // It was written that claims go. That none has may be old news: it is read again before it is written.
        Phase::RemovingVolumes => has_all_claims(scene, course),
        Phase::RemovingPod => course.point_of_no_return.is_none(),
        _ => false,
    };
    let is_possible = is_untouched && matches!(subject(scene.member, course), Subject::There(_));
    if scene.member.word.cancel {
        if is_possible {
            return Some(Reason::Cancelled);
        }
        reasons.push(Reason::TooLateToCancel);
    }
    if !is_possible {
        return None;
    }
    if scene.member.is_dismissed {
        return Some(Reason::NotMeant);
    }
    if is_cleared(scene, memory, course.phase) {
        return Some(Reason::Cleared);
    }
    let is_withdrawn = course.phase == Phase::RemovingVolumes
        && scene.policy.is_enforced
        && scene
            .claims_to_remove(memory.gives_up_the_node(scene.now))
            .is_ok_and(|wanted| !course.claims.iter().any(|claim| wanted.contains(claim)));
    is_withdrawn.then_some(Reason::VolumesStay)
}

/// Whether no cause is due any more, and that is enough to end a replacement that is so far. A cause that has not lasted for
/// long enough, or never will have, is none. What a policy no longer enforces is not a cause that is gone.
fn is_cleared(scene: &Scene<'_>, memory: &Memory, phase: Phase) -> bool {
    scene.policy.is_enforced
        && !memory.is_due(scene.now)
        && match scene.policy.on_cleared {
            OnCleared::Never => false,
            OnCleared::BeforeStart => phase == Phase::Gating,
            _ => true,
        }
}

/// Whether all claims that were to go are there as they were.
fn has_all_claims(scene: &Scene<'_>, course: &Course) -> bool {
    let is_there = |removal: &Removal| {
        let claims = scene.member.claims.get();
        claims.is_some_and(|claims| claims.iter().any(|claim| claim.uid == removal.uid && !claim.is_leaving))
    };
    course.claims.iter().all(is_there)
}

/// Ends a replacement that has removed nothing, once what was told is taken back.
pub(super) fn call_off(scene: &Scene<'_>, course: &mut Course, reason: Reason, out: &mut Progress) {
    if let Some(act) = retraction(scene, course) {
        // Who calls a suspended one off wants that to be done.
        let is_called_off = |why: &Reason| {
            matches!(why, Reason::NotMeant) || matches!(why, Reason::Suspended) && scene.member.word.cancel
        };
        if let Some(why) = stopped(scene).filter(|why| !is_called_off(why)) {
            out.reasons.push(why);
        } else {
            out.acts = vec![act];
            out.reasons.push(reason);
        }
        return;
    }
    if course.phase == Phase::RemovingVolumes {
        out.acts = vec![Act::TurnBack];
        out.reasons.push(reason);
    } else {
        end(course, Phase::Aborted, reason, scene.now, out);
    }
}

/// What takes back what was told; nothing before anybody was, and nothing once it is taken back.
fn retraction(scene: &Scene<'_>, course: &Course) -> Option<Act> {
    if course.phase == Phase::Gating || scene.member.told != Sure::Yes {
        return None;
    }
    let key: &str = match &scene.policy.strategy.handing {
        Handing::Annotate { key, .. } => key,
        Handing::Evict { handshake: true } => REPLACING_ANNOTATION,
        _ => return None,
    };
    Some(Act::Retract { uid: Arc::clone(&course.uid), key: key.into() })
}
