//! The effects a taint can have, at each scale.

use std::fmt;

use berth_api::core::NodeTaint;
use serde::Serialize;

use super::matcher::Taint;
use crate::moment::Moment;

/// What a taint on a cluster does to placements that do not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ClusterEffect {
    /// The cluster is not selected, and leaves decisions that hold it.
    NoSelect,
    /// The cluster is not newly selected; decisions that hold it keep it.
    NoSelectIfNew,
    /// The cluster is selected only if better ones are missing.
    PreferNoSelect,
    /// An effect this version does not know. It bars like [`ClusterEffect::NoSelect`]: when in doubt, keep out.
    #[serde(untagged)]
    Other(Box<str>),
}

impl ClusterEffect {
    /// Reads the API's spelling; never fails, see [`ClusterEffect::Other`].
    pub fn parse(text: &str) -> Self {
        match text {
            "NoSelect" => Self::NoSelect,
            "NoSelectIfNew" => Self::NoSelectIfNew,
            "PreferNoSelect" => Self::PreferNoSelect,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for ClusterEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSelect => "NoSelect",
            Self::NoSelectIfNew => "NoSelectIfNew",
            Self::PreferNoSelect => "PreferNoSelect",
            Self::Other(text) => text,
        })
    }
}

/// What a taint on a node does to pods that do not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum NodeEffect {
    /// No new pod is scheduled there.
    NoSchedule,
    /// New pods go there only if better nodes are missing.
    PreferNoSchedule,
    /// No new pod is scheduled there, and running pods leave.
    NoExecute,
    /// An effect this version does not know.
    #[serde(untagged)]
    Other(Box<str>),
}

impl NodeEffect {
    /// Reads the API's spelling; never fails.
    pub fn parse(text: &str) -> Self {
        match text {
            "NoSchedule" => Self::NoSchedule,
            "PreferNoSchedule" => Self::PreferNoSchedule,
            "NoExecute" => Self::NoExecute,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for NodeEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
            Self::Other(text) => text,
        })
    }
}

impl From<&NodeTaint> for Taint<NodeEffect> {
    fn from(taint: &NodeTaint) -> Self {
        Self {
            key: taint.key.as_str().into(),
            value: taint.value().into(),
            effect: NodeEffect::parse(&taint.effect),
            added: taint.time_added.as_ref().map(|time| Moment::from_timestamp(time.0)),
        }
    }
}
