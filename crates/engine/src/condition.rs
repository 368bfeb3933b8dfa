//! Conditions, kept as Kubernetes keeps them.
//!
//! Owns the one rule all conditions share: the time of the last transition moves when the status does, and only then.
//! Which condition an object should have is its decider's business.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::moment::Moment;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// What a condition should say.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'w> {
    pub(crate) kind: &'w str,
    pub(crate) status: Status,
    pub(crate) reason: &'w str,
    pub(crate) message: String,
    /// The generation it speaks of, where the condition follows from the spec.
    pub(crate) generation: Option<i64>,
}

impl Wanted<'_> {
    /// The condition to write, or `None` if `existing` says it already.
    pub(crate) fn unless_said(self, existing: &[Condition], now: Moment) -> Option<Condition> {
        let old = existing.iter().find(|condition| condition.type_ == self.kind);
        let since = old
            .filter(|old| old.status == self.status.as_str())
            .map_or_else(|| whole_second(now), |old| old.last_transition_time.clone());
        let new = Condition {
            type_: self.kind.to_owned(),
            status: self.status.as_str().to_owned(),
            reason: self.reason.to_owned(),
            message: self.message,
            last_transition_time: since,
            observed_generation: self.generation,
        };
        (old != Some(&new)).then_some(new)
    }
}

/// `existing` with `condition` in the place of the one of its type, or behind all others.
pub fn merged(existing: &[Condition], condition: Condition) -> Vec<Condition> {
    let mut all = existing.to_vec();
    match all.iter_mut().find(|other| other.type_ == condition.type_) {
        Some(other) => *other = condition,
        None => all.push(condition),
    }
    all
}

/// `moment` as the API keeps times, in whole seconds, so that what is written equals what comes back. The extremes,
/// which no calendar holds, read as the epoch.
pub(crate) fn whole_second(moment: Moment) -> Time {
    let second = moment.timestamp().map_or(0, Timestamp::as_second);
    Time(Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: Status, message: &str) -> Wanted<'static> {
        Wanted { kind: "Ready", status, reason: "Told", message: message.into(), generation: None }
    }

    #[test]
    fn the_time_of_transition_moves_only_with_the_status() {
        let at = Moment::from_second;
        let first = said(Status::True, "a").unless_said(&[], at(10)).unwrap();
        assert_eq!(first.last_transition_time, whole_second(at(10)));
        let existing = [first];
        assert_eq!(said(Status::True, "a").unless_said(&existing, at(20)), None);
        let reworded = said(Status::True, "b").unless_said(&existing, at(20)).unwrap();
        assert_eq!(reworded.last_transition_time, whole_second(at(10)));
        let turned = said(Status::False, "b").unless_said(&existing, at(20)).unwrap();
        assert_eq!(turned.last_transition_time, whole_second(at(20)));
    }

    #[test]
    fn a_condition_takes_the_place_of_its_type_and_leaves_the_others() {
        let of = |kind: &str, status: &str| Condition {
            type_: kind.into(),
            status: status.into(),
            reason: "Told".into(),
            message: String::new(),
            last_transition_time: whole_second(Moment::from_second(0)),
            observed_generation: None,
        };
        let existing = [of("A", "True"), of("B", "True")];
        assert_eq!(merged(&existing, of("A", "False")), [of("A", "False"), of("B", "True")]);
        assert_eq!(merged(&existing, of("C", "True")), [of("A", "True"), of("B", "True"), of("C", "True")]);
    }

    #[test]
    fn moments_are_cut_to_whole_seconds() {
        let moment = Moment::from_timestamp("2026-01-01T00:00:00.9Z".parse().unwrap());
        assert_eq!(whole_second(moment).0.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(whole_second(Moment::NEVER).0, Timestamp::UNIX_EPOCH);
    }
}
