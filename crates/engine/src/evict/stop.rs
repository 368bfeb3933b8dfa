//! Who has stopped everybody, and why. Several may have at once, and each must be lifted by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::moment::Moment;

/// Whose stop it is. The order is that in which they are named: what somebody wants comes before what has come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Cause {
    /// A person has said so, and has to take it back.
    Person,
    /// No node of any zone is ready, so it is not the nodes.
    AllDown,
    /// Something cannot be seen, or was not looked at yet, that may keep somebody where it is.
    Unseen,
}

impl Cause {
    /// Each of them, in order.
    pub const ALL: [Self; 3] = [Self::Person, Self::AllDown, Self::Unseen];

    /// What it is in one word, for metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::AllDown => "all-down",
            Self::Unseen => "unseen",
        }
    }
}

/// That nobody goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Freeze {
    /// Whose stop it is.
    pub cause: Cause,
    /// What was given as the reason.
    pub reason: Arc<str>,
    /// Who it was, if that is known.
    pub by: Option<Arc<str>>,
    /// Since when, if that is known.
    pub since: Option<Moment>,
}

impl Freeze {
    /// That nobody goes, for something that no person has said.
    pub fn of(cause: Cause, reason: impl Into<Arc<str>>) -> Self {
        Self { cause, reason: reason.into(), by: None, since: None }
    }
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cause, &self.by) {
            (Cause::Person, Some(by)) => write!(f, "frozen by {by}: {}", self.reason),
            (Cause::Person, None) => write!(f, "frozen: {}", self.reason),
            (Cause::AllDown | Cause::Unseen, _) => write!(f, "stopped: {}", self.reason),
        }
    }
}

/// All stops that are in force, at most one of each cause. While there is one, nobody goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    by_cause: BTreeMap<Cause, Freeze>,
}

impl Stops {
    /// Whether nobody has stopped anything.
    pub fn is_empty(&self) -> bool {
        self.by_cause.is_empty()
    }

    /// The one that is named where there is room for one.
    pub fn first(&self) -> Option<&Freeze> {
        self.by_cause.values().next()
    }

    /// The stop of a cause.
    pub fn get(&self, cause: Cause) -> Option<&Freeze> {
        self.by_cause.get(&cause)
    }
}

impl Extend<Freeze> for Stops {
    /// Adds stops. Of several with one cause the first is kept.
    fn extend<I: IntoIterator<Item = Freeze>>(&mut self, stops: I) {
        for stop in stops {
            self.by_cause.entry(stop.cause).or_insert(stop);
        }
    }
}

impl FromIterator<Freeze> for Stops {
    fn from_iter<I: IntoIterator<Item = Freeze>>(stops: I) -> Self {
        let mut all = Self::default();
        all.extend(stops);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_kept_and_what_a_person_said_is_named_first() {
        let said = Freeze { by: Some("ann".into()), ..Freeze::of(Cause::Person, "storm") };
        let down = Freeze::of(Cause::AllDown, "no node is ready");
        let stops: Stops = [
            Freeze::of(Cause::Unseen, "nodes are not followed"),
            down.clone(),
            Freeze::of(Cause::Unseen, "pods are not followed"),
            said.clone(),
        ]
        .into_iter()
        .collect();
        assert_eq!(stops.first(), Some(&said));
        assert_eq!(stops.get(Cause::AllDown), Some(&down));
        assert_eq!(
            stops.get(Cause::Unseen).unwrap().to_string(),
            "stopped: nodes are not followed",
            "the first of one cause"
        );
        assert_eq!(said.to_string(), "frozen by ann: storm");
        assert!(Stops::default().is_empty() && Stops::default().first().is_none());
    }
}
