//! What is said of nodes on a command line: how fast pods leave them, and how they are judged.
//!
//! Owns the one group of flags that `berth run`, `berth up` and `berth install` have in common. What each flag means is in
//! [`evictions`](super::evictions) and [`node_lifecycle`](super::node_lifecycle).

use berth_control::{ControllerList, ControllerName, EvictionLimits};
use berth_engine::node::LifecyclePolicy;
use clap::Args;

use super::evictions::{EvictionArgs, Missing};
use super::node_lifecycle::LifecycleArgs;

/// Everything that can be said of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
pub struct NodeArgs {
    /// How fast pods leave.
    #[command(flatten)]
    pub evictions: EvictionArgs,

    /// How nodes are judged.
    #[command(flatten)]
    pub lifecycle: LifecycleArgs,
}

/// What it means together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct NodeSettings {
    pub(crate) evictions: EvictionLimits,
    pub(crate) lifecycle: LifecyclePolicy,
}

impl NodeArgs {
    /// Flags first.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { evictions: self.evictions.or(other.evictions), lifecycle: self.lifecycle.or(other.lifecycle) }
    }

    /// What was said, over what is usual.
    pub(crate) fn settle(self) -> Result<NodeSettings, Missing> {
        Ok(NodeSettings { evictions: self.evictions.limits()?, lifecycle: self.lifecycle.policy() })
    }

    /// What was said about a controller that does not run, and so comes to nothing.
    pub(crate) fn idle(self, list: &ControllerList) -> Option<String> {
        let is_off = |name| !list.enables(name);
        let (flags, name) =
            if self.evictions != EvictionArgs::default() && is_off(ControllerName::TaintEviction) {
                ("bounds of evictions", ControllerName::TaintEviction)
            } else if self.lifecycle != LifecycleArgs::default() && is_off(ControllerName::NodeLifecycle) {
                ("how nodes are judged", ControllerName::NodeLifecycle)
            } else {
                return None;
            };
        Some(format!(
            "{flags} were given, and the {name} they are for does not run; name it in --controllers"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_about_nobody_who_runs_is_told() {
        let evictions = EvictionArgs { rate: Some(1.0), ..EvictionArgs::default() };
        let lifecycle = LifecycleArgs { node_eviction_rate: Some(1.0), ..LifecycleArgs::default() };
        let idle = |args: NodeArgs, list: &str| args.idle(&list.parse().unwrap());
        let fast = NodeArgs { evictions, ..NodeArgs::default() };
        let told = idle(fast, "*").unwrap();
        assert!(told.contains("bounds of evictions") && told.contains("taint-eviction-controller"), "{told}");
        assert_eq!(idle(fast, "*,taint-eviction-controller"), None);
        let judged = NodeArgs { lifecycle, ..NodeArgs::default() };
        let told = idle(judged, "taint-eviction-controller").unwrap();
        assert!(told.contains("node-lifecycle-controller"), "{told}");
        assert_eq!(idle(judged, "node-lifecycle-controller"), None);
        assert_eq!(idle(NodeArgs::default(), "*"), None);
    }
}
