//! What a node says of itself.

use berth_api::core::Node;
use k8s_openapi::api::core::v1::NodeCondition;

use super::names::condition;
use crate::moment::Moment;

/// What a node's Ready condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The kubelet says it is ready.
    True,
    /// The kubelet says it is not.
    False,
    /// It has not been heard of.
    Unknown,
    /// There is no such condition, or one with a status nobody knows: nothing follows from it.
    Unsaid,
}

impl Ready {
    /// What this node says.
    pub fn of(node: &Node) -> Self {
        match node.condition(condition::READY).map(|condition| condition.status.as_str()) {
            Some("True") => Self::True,
            Some("False") => Self::False,
            Some("Unknown") => Self::Unknown,
            _ => Self::Unsaid,
        }
    }
}

/// The condition of that type.
pub(super) fn condition_of<'c>(conditions: &'c [NodeCondition], kind: &str) -> Option<&'c NodeCondition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// When a node was made.
pub(super) fn created(node: &Node) -> Moment {
    node.metadata.creation_timestamp.as_ref().map_or(Moment::PAST, |time| Moment::from_timestamp(time.0))
}

/// Whether a node has this label, whatever its value.
pub(super) fn is_labelled(node: &Node, label: &str) -> bool {
    node.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(label))
}
