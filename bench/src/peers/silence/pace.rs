//! How fast nodes live, and what the controllers are told of it.

use std::time::Duration;

/// The share of a zone that may be silent before a controller takes it for the network and taints a node in 100 seconds: both
/// are told so.
const UNHEALTHY_SHARE: f32 = 0.55;
/// The fewest nodes of which 50 may fall silent without that.
pub(crate) const NODES_MIN: u32 = 100;

/// The times of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How often each renews its lease.
    pub(crate) round: Duration,
    /// How long one may be silent: several rounds, or all would be silent now and then.
    pub(crate) grace: Duration,
    /// How long the controllers are watched while all is well, after a round in which they come to rest.
    pub(crate) watched: Duration,
}

impl Pace {
    /// As kubelets live, or faster.
    pub(crate) fn of(quick: bool) -> Self {
        let [round, grace, watched] = if quick { [3, 12, 5] } else { [10, 40, 20] }.map(Duration::from_secs);
        Self { round, grace, watched }
    }

    /// What every controller is told. Tainted as fast as can be: how many nodes a second is a setting, and the same for all.
    pub(crate) fn flags(&self) -> [String; 3] {
        [
            format!("--node-monitor-grace-period={}s", self.grace.as_secs()),
            "--node-eviction-rate=1000".to_owned(),
            format!("--unhealthy-zone-threshold={UNHEALTHY_SHARE}"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::SILENT_NODES;
    use super::*;

    #[test]
    fn the_nodes_that_fall_silent_are_no_disruption_of_their_zone() {
        assert!((SILENT_NODES.len() as f32) / (NODES_MIN as f32) < UNHEALTHY_SHARE);
    }

    #[test]
    fn a_node_has_several_rounds_in_its_grace_period() {
        for pace in [Pace::of(true), Pace::of(false)] {
            assert!(pace.grace >= 3 * pace.round, "{pace:?}");
        }
    }
}
