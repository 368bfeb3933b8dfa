//! A write that somebody attempts.

use jiff::Timestamp;
use serde_json::Value;

/// What is attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// To make an object.
    Create,
    /// To change one.
    Update,
    /// To delete one.
    Delete,
}

/// A write to one of the fleet's kinds, apart from the object itself.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// What is attempted.
    pub operation: Operation,
    /// The plural of the kind, as in `managedclusters`.
    pub resource: &'a str,
    /// The object's name; empty while the server has yet to make one up.
    pub name: &'a str,
    /// Who attempts it.
    pub user: &'a str,
    /// The object as it is stored; `None` for one that is to be made.
    pub old: Option<&'a Value>,
    /// The moment.
    pub now: Timestamp,
    /// Whose word counts for when a taint was added.
    pub time_added: TimeAdded,
}

/// Whose word counts for when a taint was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeAdded {
    /// The server's: a client that names another time is refused, unless it may touch the system's taints.
    #[default]
    Server,
    /// The client's, where it names one: as on a hub without these rules, for tools and tests that were written there.
    Client,
}

/// A text in an object; empty where there is none.
pub(crate) fn text<'v>(object: Option<&'v Value>, pointer: &str) -> &'v str {
    object.and_then(|object| object.pointer(pointer)).and_then(Value::as_str).unwrap_or_default()
}
