//! Who there is something to say about, member by member.

use std::collections::BTreeMap;

use berth_api::replacement::{MemberStatus, Phase, Replacement, ReplacementPolicy, Sighting};
use berth_engine::Moment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Ledger;

/// How a member stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State<'l> {
    /// Something is wrong with it, but not for long enough.
    Detected,
    /// It is marked to be replaced, and waits its time.
    Replacing,
    /// It is due, and held up.
    Queued,
    /// It was replaced before, and there is nothing wrong with it.
    Healthy,
    /// It is being replaced, or has been: so far.
    Course(&'l str),
}

impl<'l> State<'l> {
    /// The word for it.
    pub(crate) fn word(self) -> &'l str {
        match self {
            Self::Detected => "Detected",
            Self::Replacing => "Replacing",
            Self::Queued => "Queued",
            Self::Healthy => "Healthy",
            Self::Course(phase) => phase,
        }
    }
}

/// A member, under a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'l> {
    /// The namespace of both.
    pub(crate) namespace: &'l str,
    /// The policy's name.
    pub(crate) policy_name: &'l str,
    /// The policy; `None` where it is no more.
    pub(crate) policy: Option<&'l ReplacementPolicy>,
    /// The pod's name.
    pub(crate) pod: &'l str,
    /// What the policy has seen of it.
    pub(crate) member: Option<&'l MemberStatus>,
    /// Its replacement: the one that is under way, or the last.
    pub(crate) replacement: Option<&'l Replacement>,
}

impl<'l> Entry<'l> {
    /// How far its replacement is; `Gating` where nobody has said so yet.
    pub(crate) fn phase(&self) -> Option<&'l str> {
        let replacement = self.replacement?;
        let phase = replacement.status.as_ref().and_then(|status| status.phase.as_ref());
        Some(phase.map_or(Phase::Gating.as_str(), Phase::as_str))
    }

    /// Whether a replacement is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.phase().is_some_and(|phase| !is_an_end(phase))
    }

    /// What is wrong with it.
    pub(crate) fn causes(&self) -> &'l [Sighting] {
        self.member.and_then(|member| member.causes.as_deref()).unwrap_or_default()
    }

    /// How it stands: a replacement that is under way first, then what is wrong with it, then what became of it.
    pub(crate) fn state(&self, now: Moment) -> State<'l> {
        if let Some(phase) = self.phase().filter(|_| self.is_under_way() || self.causes().is_empty()) {
            return State::Course(phase);
        }
        let marked = self.causes().iter().filter(|cause| cause.replacing_since.is_some());
        let due = marked.clone().filter_map(|cause| moment(cause.due_at.as_ref())).min();
        match due {
            Some(due) if due <= now => State::Queued,
            _ if marked.count() > 0 => State::Replacing,
            _ if self.causes().is_empty() => State::Healthy,
            _ => State::Detected,
        }
    }

    /// The cause that leads: of the replacement that is under way, or the one that is due first.
    pub(crate) fn leading(&self) -> Option<&'l Sighting> {
        let of_course = self.replacement.and_then(|replacement| replacement.spec.trigger.as_ref());
        let first = self.causes().iter().min_by_key(|cause| {
            (cause.due_at.is_none(), moment(cause.due_at.as_ref()), moment(cause.since.as_ref()))
        });
        if self.is_under_way() || first.is_none() { of_course.or(first) } else { first }
    }

    /// Since when its cause is there.
    pub(crate) fn since(&self) -> Option<Moment> {
        let leading = self.leading()?;
        // A replacement tells which cause it is, the policy since when.
        let same = |cause: &&Sighting| {
            (&cause.kind, &cause.key, &cause.value, &cause.effect)
                == (&leading.kind, &leading.key, &leading.value, &leading.effect)
        };
        let seen = self.causes().iter().find(same).unwrap_or(leading);
        moment(seen.since.as_ref())
    }

    /// The node that it is on; that which it leaves while it is being replaced.
    pub(crate) fn node(&self) -> Option<&'l str> {
        let target = self.replacement.and_then(|replacement| replacement.spec.target.node.as_deref());
        let seen = self.member.and_then(|member| member.node.as_deref());
        let status = self.replacement.and_then(|replacement| replacement.status.as_ref());
        let successor = status.and_then(|status| status.successor.as_ref()?.node.as_deref());
        if self.is_under_way() { target.or(seen) } else { seen.or(successor).or(target) }
    }

    /// The fault domain of that node.
    pub(crate) fn fault_domain(&self) -> Option<&'l str> {
        let seen = self.member.and_then(|member| member.fault_domain.as_deref());
        seen.or_else(|| {
            self.replacement.and_then(|replacement| replacement.spec.target.fault_domain.as_deref())
        })
    }

    /// When something changes by time alone.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.member.and_then(|member| moment(member.next_transition_time.as_ref()))
    }

    /// Why it stands so, as the controller says it.
    pub(crate) fn why(&self) -> Option<&'l str> {
        let of_course =
            self.replacement.and_then(|it| it.status.as_ref()).and_then(|it| it.message.as_deref());
        let of_member = self.member.and_then(|member| member.message.as_deref());
        if self.is_under_way() || self.causes().is_empty() { of_course.or(of_member) } else { of_member }
    }
}

/// Whether nothing follows a phase.
pub(crate) fn is_an_end(phase: &str) -> bool {
    [Phase::Done, Phase::Aborted, Phase::Failed].iter().any(|end| end.as_str() == phase)
}

pub(super) fn moment(time: Option<&Time>) -> Option<Moment> {
    time.map(|time| Moment::from_timestamp(time.0))
}

/// Everybody there is something to say about, by namespace, policy and pod.
pub(crate) fn roll(ledger: &Ledger) -> Vec<Entry<'_>> {
    let mut entries: BTreeMap<(&str, &str, &str), Entry<'_>> = BTreeMap::new();
    let new = |namespace, policy_name, pod| Entry {
        namespace,
        policy_name,
        policy: ledger.policies.iter().find(|policy| {
            policy.metadata.namespace.as_deref() == Some(namespace)
                && policy.metadata.name.as_deref() == Some(policy_name)
        }),
        pod,
        member: None,
        replacement: None,
    };
    for policy in &ledger.policies {
        let (namespace, name) = names(policy.metadata.namespace.as_ref(), policy.metadata.name.as_ref());
        let members = policy.status.as_ref().and_then(|status| status.pods.as_deref());
        for member in members.unwrap_or_default() {
            let key = (namespace, name, member.name.as_str());
            entries.entry(key).or_insert_with(|| new(key.0, key.1, key.2)).member = Some(member);
        }
    }
    // As the controller tells them apart: the one that is under way, and else the one that the server made last.
    let rank = |replacement: &Replacement| {
        let is_over = replacement.status.as_ref().is_some_and(|status| status.ended_at.is_some());
        (!is_over, moment(replacement.metadata.creation_timestamp.as_ref()))
    };
    for replacement in &ledger.replacements {
        let (namespace, _) = names(replacement.metadata.namespace.as_ref(), None);
        let key = (namespace, replacement.spec.policy.as_str(), replacement.spec.target.name.as_str());
        let entry = entries.entry(key).or_insert_with(|| new(key.0, key.1, key.2));
        if entry.replacement.is_none_or(|known| rank(known) <= rank(replacement)) {
            entry.replacement = Some(replacement);
        }
    }
    entries.into_values().collect()
}

fn names<'l>(namespace: Option<&'l String>, name: Option<&'l String>) -> (&'l str, &'l str) {
    (namespace.map_or("", String::as_str), name.map_or("", String::as_str))
}
