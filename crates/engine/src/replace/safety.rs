//! Whether it is safe to go on.
//!
//! Owns the checks that nobody can switch off (all others ready, nothing being changed, one at a time where volumes go) and
//! the judgement of what gates say. Asked before a member gets its turn, and again before every act. What is not known is not
//! safe.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_api::replacement::{OnTimeout, Stage};

use super::course::Removal;
use super::facts::{Claim, Known, Member, Muster, NodeFact, Sure, Target, Verdict};
use super::place::Feasibility;
use super::policy::{Policy, Volumes};
use super::reason::Reason;
use crate::moment::Moment;

/// All that is looked at for one member.
#[derive(Clone, Copy)]
pub(super) struct Scene<'s> {
    pub(super) policy: &'s Policy,
    pub(super) member: &'s Member,
    pub(super) node: &'s NodeFact,
    pub(super) target: Option<&'s Target>,
    /// The budget has no place for its replacement any more.
    pub(super) beyond: Option<&'s Reason>,
    /// Members of the same workload that are being replaced within the budget: that they are not ready was allowed.
    pub(super) excused: &'s [Arc<str>],
    /// Another member of the workload is losing its volumes.
    pub(super) is_volume_turn_taken: bool,
    /// Another policy speaks of the same pod.
    pub(super) overlaps: bool,
    /// The other workloads that the policy has members of: who shares a policy may share data.
    pub(super) company: &'s [&'s Target],
    /// How many members the workload had when the replacement began.
    pub(super) members: Option<usize>,
    pub(super) now: Moment,
}

/// What is about to happen.
#[derive(Clone, Copy)]
pub(super) struct Intent {
    /// Volumes are lost with it.
    pub(super) removes_volumes: bool,
    /// It is the node that is not well.
    pub(super) is_of_the_node: bool,
}

impl Scene<'_> {
    /// Everything that speaks against removing the pod, and with it volumes.
    pub(super) fn obstacles(&self, intent: Intent, found: &mut Vec<Reason>) {
        found.extend(self.beyond.cloned());
        self.about_the_others(intent.removes_volumes, 1, found);
        self.about_the_place(intent.is_of_the_node, found);
        if !intent.removes_volumes {
            return;
        }
        if self.is_volume_turn_taken {
            found.push(Reason::VolumeTurn);
        }
        for target in self.company {
            match &target.unready {
                Known::Unknown => found.push(Reason::PeersUnknown),
                Known::Known(unready) if unready.is_empty() => {}
                Known::Known(unready) => {
                    found.push(Reason::PeersNotReady { names: unready.iter().cloned().collect() });
                }
            }
            if let Some(Muster { ready, wanted: Some(wanted) }) = &target.muster
                && ready.len() < *wanted
            {
                found.push(Reason::MembersMissing { ready: ready.len(), wanted: *wanted });
            }
        }
    }

    /// All others are ready, and nothing is being changed. Where volumes go, no other may be missing for any reason. `itself`
    /// is what the member counts for, where members are counted: nothing once it is gone.
    pub(super) fn about_the_others(&self, removes_volumes: bool, itself: usize, found: &mut Vec<Reason>) {
        let Some(target) = self.target else {
            found.push(Reason::TargetUnknown);
            return;
        };
        match target.is_settled {
            Sure::Yes => {}
            Sure::No => found.push(Reason::RolloutInProgress),
            Sure::Unknown if target.is_silent && !removes_volumes => {}
            Sure::Unknown => found.push(Reason::RolloutUnknown),
        }
        let Known::Known(unready) = &target.unready else {
            found.push(Reason::PeersUnknown);
            return;
        };
        let counts = |name: &&Arc<str>| {
            **name != self.member.name && (removes_volumes || !self.excused.contains(name))
        };
        let names: Vec<Arc<str>> = unready.iter().filter(counts).cloned().collect();
        if !names.is_empty() {
            found.push(Reason::PeersNotReady { names });
        }
        if let Some(muster) = &target.muster {
            let is_away = |name: &&Arc<str>| **name != self.member.name && !muster.ready.contains(*name);
            let excused = if removes_volumes { 0 } else { self.excused.iter().filter(is_away).count() };
            let ready = muster.besides(&self.member.name) + itself;
            match muster.wanted.or(self.members) {
                Some(wanted) if ready + excused < wanted => {
                    found.push(Reason::MembersMissing { ready, wanted });
                }
                None if removes_volumes => found.push(Reason::MembersUnknown),
                _ => {}
            }
        }
    }

    /// The successor can go somewhere, and not back.
    fn about_the_place(&self, is_of_the_node: bool, found: &mut Vec<Reason>) {
        let strategy = &self.policy.strategy;
        if is_of_the_node {
            match (self.node, self.member.pod()) {
                (NodeFact::Missing, _) => {}
                // What made it due was read some time ago, and may be gone.
                (NodeFact::Unknown, _) => found.push(Reason::NodeUnknown),
                (NodeFact::Present(_), _) if !strategy.needs_closed_node => {}
                (NodeFact::Present(node), Some(pod)) if node.is_closed_to(&pod.tolerations) => {}
                (NodeFact::Present(_), _) => found.push(Reason::NodeTakesItBack),
            }
        }
        if strategy.needs_feasible_target {
            match &self.member.feasibility {
                Feasibility::Yes => {}
                Feasibility::No(because) => {
                    found.push(Reason::NoFeasibleTarget { because: because.clone() });
                }
                Feasibility::Unknown(missing) => {
                    found.push(Reason::FeasibilityUnknown { missing: missing.clone() });
                }
            }
        }
    }

    /// Everything that the gates of some stages have against it; a gate that gives it up for good is returned.
    ///
    /// `shut` is since when each of them is shut; one of which nobody knows is from now on.
    pub(super) fn gates(
        &self,
        stages: &[Stage],
        removes_volumes: bool,
        shut: &mut BTreeMap<Arc<str>, Moment>,
        found: &mut Vec<Reason>,
    ) -> Option<Arc<str>> {
        let now = self.now.cut_to_second();
        let mut given_up = None;
        for (index, gate) in self.policy.gates.iter().enumerate() {
            let verdict = self.member.verdict(index);
            if !stages.contains(&gate.stage) || verdict == Verdict::Pass {
                shut.remove(&gate.name);
                continue;
            }
            let name = Arc::clone(&gate.name);
            let since = shut.entry(Arc::clone(&name)).or_insert(now);
            // A clock that was set back must not stretch the wait.
            *since = (*since).min(now);
            let timeout = since.plus_seconds(gate.timeout);
            match gate.on_timeout {
                // Volumes never go because somebody took too long to say no.
                OnTimeout::Proceed if timeout <= self.now && !removes_volumes => {
                    found.push(Reason::GatePassedByTime { gate: name });
                }
                OnTimeout::Abort if timeout <= self.now => {
                    given_up = given_up.or(Some(Arc::clone(&name)));
                    found.push(Reason::GateShut { gate: name, verdict, timeout });
                }
                _ => {
                    // Waiting longer changes nothing by itself where a gate blocks.
                    let blocks = gate.on_timeout == OnTimeout::Block
                        || gate.on_timeout == OnTimeout::Proceed && removes_volumes;
                    let timeout = if blocks { Moment::NEVER } else { timeout };
                    found.push(Reason::GateShut { gate: name, verdict, timeout });
                }
            }
        }
        given_up
    }

    /// The claims that go with the member; none where they stay.
    pub(super) fn claims_to_remove(&self, is_permanent: bool) -> Result<Vec<Removal>, Reason> {
        let Volumes::Delete { local_only, classes } = &self.policy.strategy.volumes else {
            return Ok(Vec::new());
        };
        if !is_permanent {
            return Ok(Vec::new());
        }
        let Known::Known(claims) = &self.member.claims else { return Err(Reason::ClaimsUnknown) };
        let mut removed = Vec::new();
        for Claim { name, uid, class, is_local, is_own, .. } in claims {
            let is_of_class =
                classes.is_empty() || class.as_ref().is_some_and(|class| classes.contains(class));
            let is_meant = if *local_only { *is_local } else { Sure::Yes };
            match (is_of_class, is_meant, is_own) {
                (false, ..) | (_, Sure::No, _) | (_, _, Sure::No) => {}
                (true, Sure::Unknown, _) => {
                    return Err(Reason::ClaimLocalityUnknown { claim: name.clone() });
                }
                (true, Sure::Yes, Sure::Unknown) => {
                    return Err(Reason::ClaimUsersUnknown { claim: name.clone() });
                }
                (true, Sure::Yes, Sure::Yes) => {
                    removed.push(Removal { name: name.clone(), uid: uid.clone() });
                }
            }
        }
        Ok(removed)
    }

    /// A claim that somebody else is deleting goes for good when the pod does.
    pub(super) fn claims_of_others(&self, removed: &[Removal], found: &mut Vec<Reason>) {
        for claim in self.member.claims.get().into_iter().flatten() {
            if claim.is_leaving && !removed.iter().any(|ours| ours.uid == claim.uid) {
                found.push(Reason::ClaimLeaving { claim: claim.name.clone() });
            }
        }
    }
}
