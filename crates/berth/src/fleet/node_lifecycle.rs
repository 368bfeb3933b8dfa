//! How nodes are judged: the settings of the node lifecycle controller.
//!
//! Owns the flags, which are kube-controller-manager's with a few of our own, and the bounds of each. What is not said is
//! what is usual; see [`LifecyclePolicy`].

use std::str::FromStr;
use std::time::Duration;

use berth_engine::node::{FlapPolicy, LifecyclePolicy, WhenAllDown};
use clap::{Args, ValueEnum};

use super::settings::parse_span;

/// The longest a grace, a calm or a window may be: beyond a day it is a mistake in the unit.
const SPAN_MAX: Duration = Duration::from_hours(24);
/// The most nodes a second: more is no limit.
const RATE_MAX: f64 = 10_000.0;

/// What is done while no node of any zone is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AllDown {
    /// Take the taints off that make pods leave, as Kubernetes does
    Untaint,
    /// Change nothing: keep the taints with their times, and tell no pod that it is not ready
    Hold,
}

impl From<AllDown> for WhenAllDown {
    fn from(said: AllDown) -> Self {
        match said {
            AllDown::Untaint => Self::Untaint,
            AllDown::Hold => Self::Hold,
        }
    }
}

/// How nodes are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
#[command(next_help_heading = "Nodes (node-lifecycle-controller)")]
pub struct LifecycleArgs {
    /// How long a node may be silent before it counts as unknown [default: 50s].
    #[arg(long, value_name = "SPAN", value_parser = parse_positive_span)]
    pub node_monitor_grace_period: Option<Duration>,

    /// The same for a node that has not said anything yet, from when it was made [default: 1m].
    #[arg(long, value_name = "SPAN", value_parser = parse_positive_span)]
    pub node_startup_grace_period: Option<Duration>,

    /// Taken for the sake of kube-controller-manager's flags, and of no effect: a node is judged when something changes and
    /// at the very moment its grace ends, not every so often.
    #[arg(long, value_name = "SPAN", value_parser = parse_positive_span)]
    pub node_monitor_period: Option<Duration>,

    /// Nodes a second of each zone that are tainted so that their pods leave; 0 for none [default: 0.1].
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub node_eviction_rate: Option<f64>,

    /// The same in a large zone of which too much is not ready; in a small one there are none [default: 0.01].
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub secondary_node_eviction_rate: Option<f64>,

    /// A zone with more nodes than this is large [default: 50].
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pub large_cluster_size_threshold: Option<u32>,

    /// The share of a zone that is too much, if it is more than two nodes [default: 0.55].
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub unhealthy_zone_threshold: Option<f32>,

    /// How long a zone must have been better before more of its nodes are tainted again [default: 5s].
    #[arg(long, value_name = "SPAN", value_parser = parse_bounded_span)]
    pub node_disruption_calm: Option<Duration>,

    /// What is done while no node of any zone is ready [default: untaint].
    #[arg(long, value_name = "WHAT")]
    pub when_all_zones_down: Option<AllDown>,

    /// A node that has fallen more often than this of late is kept from new pods for a while when it is ready again; 0 turns
    /// that off [default: 5].
    #[arg(long, value_name = "COUNT", value_parser = parse_falls)]
    pub node_flap_threshold: Option<u32>,

    /// How long ago is of late [default: 10m].
    #[arg(long, value_name = "SPAN", value_parser = parse_positive_span)]
    pub node_flap_window: Option<Duration>,

    /// For how long such a node is kept from new pods, 10m at most [default: 30s].
    #[arg(long, value_name = "SPAN", value_parser = parse_hold)]
    pub node_flap_hold: Option<Duration>,
}

impl LifecycleArgs {
    /// Flags first.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            node_monitor_grace_period: self.node_monitor_grace_period.or(other.node_monitor_grace_period),
            node_startup_grace_period: self.node_startup_grace_period.or(other.node_startup_grace_period),
            node_monitor_period: self.node_monitor_period.or(other.node_monitor_period),
            node_eviction_rate: self.node_eviction_rate.or(other.node_eviction_rate),
            secondary_node_eviction_rate: self
                .secondary_node_eviction_rate
                .or(other.secondary_node_eviction_rate),
            large_cluster_size_threshold: self
                .large_cluster_size_threshold
                .or(other.large_cluster_size_threshold),
            unhealthy_zone_threshold: self.unhealthy_zone_threshold.or(other.unhealthy_zone_threshold),
            node_disruption_calm: self.node_disruption_calm.or(other.node_disruption_calm),
            when_all_zones_down: self.when_all_zones_down.or(other.when_all_zones_down),
            node_flap_threshold: self.node_flap_threshold.or(other.node_flap_threshold),
            node_flap_window: self.node_flap_window.or(other.node_flap_window),
            node_flap_hold: self.node_flap_hold.or(other.node_flap_hold),
        }
    }

    /// What was said, over what is usual.
    pub(crate) fn policy(self) -> LifecyclePolicy {
        let mut policy = LifecyclePolicy::default();
        let graces = &mut policy.graces;
        graces.monitor = self.node_monitor_grace_period.unwrap_or(graces.monitor);
        graces.startup = self.node_startup_grace_period.unwrap_or(graces.startup);
        let disruption = &mut policy.disruption;
        disruption.rate = self.node_eviction_rate.unwrap_or(disruption.rate);
        disruption.secondary_rate = self.secondary_node_eviction_rate.unwrap_or(disruption.secondary_rate);
        if let Some(size) = self.large_cluster_size_threshold {
            disruption.large_zone = size as usize;
        }
        disruption.unhealthy_share = self.unhealthy_zone_threshold.unwrap_or(disruption.unhealthy_share);
        disruption.calm = self.node_disruption_calm.unwrap_or(disruption.calm);
        disruption.when_all_down =
            self.when_all_zones_down.map_or(disruption.when_all_down, WhenAllDown::from);
        let flaps = &mut policy.flaps;
        if let Some(falls) = self.node_flap_threshold {
            flaps.falls = (falls > 0).then_some(falls);
        }
        flaps.window = self.node_flap_window.unwrap_or(flaps.window);
        flaps.hold = self.node_flap_hold.unwrap_or(flaps.hold);
        policy
    }
}

/// A span of at most a day.
pub(crate) fn parse_bounded_span(text: &str) -> Result<Duration, String> {
    let span = parse_span(text)?;
    if span > SPAN_MAX {
        return Err("give a span of at most 24h".to_owned());
    }
    Ok(span)
}

/// A span of at most a day that is not nothing.
pub(crate) fn parse_positive_span(text: &str) -> Result<Duration, String> {
    let span = parse_bounded_span(text)?;
    if span.is_zero() {
        return Err("give a span greater than zero".to_owned());
    }
    Ok(span)
}

/// For how long a node that is well may be kept from new pods.
pub(crate) fn parse_hold(text: &str) -> Result<Duration, String> {
    let span = parse_span(text)?;
    if span > FlapPolicy::HOLD_MAX {
        return Err("give a span of at most 10m: a node that is well must not be barred for long".to_owned());
    }
    Ok(span)
}

/// Nodes a second.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    within(text, 0.0..=RATE_MAX).ok_or_else(|| "give a number from 0 to 10000, such as 0.1".to_owned())
}

/// A part of a whole.
pub(crate) fn parse_share(text: &str) -> Result<f32, String> {
    within(text, 0.0..=1.0).ok_or_else(|| "give a number from 0 to 1, such as 0.55".to_owned())
}

/// A number of nodes.
pub(crate) fn parse_count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "give a whole number, such as 50".to_owned())
}

/// A number of falls.
pub(crate) fn parse_falls(text: &str) -> Result<u32, String> {
    let falls: Option<u32> = text.parse().ok().filter(|falls| *falls <= FlapPolicy::FALLS_MAX);
    falls.ok_or_else(|| format!("give a whole number from 0 to {}", FlapPolicy::FALLS_MAX))
}

/// A number within bounds; what is no number is within none.
fn within<T: FromStr + PartialOrd>(text: &str, bounds: std::ops::RangeInclusive<T>) -> Option<T> {
    text.parse().ok().filter(|number| bounds.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_kube_controller_managers_default() {
        let policy = LifecycleArgs::default().policy();
        assert_eq!(policy, LifecyclePolicy::default());
        assert_eq!(policy.graces.monitor, Duration::from_secs(50));
        assert_eq!(policy.graces.startup, Duration::from_mins(1));
        let disruption = policy.disruption;
        assert_eq!((disruption.rate, disruption.secondary_rate, disruption.large_zone), (0.1, 0.01, 50));
        assert!((disruption.unhealthy_share - 0.55).abs() < f32::EPSILON);
        assert_eq!(disruption.when_all_down, WhenAllDown::Untaint);
    }

    #[test]
    fn everything_that_is_said_counts_and_flags_before_the_file() {
        let secs = Duration::from_secs;
        let file = LifecycleArgs {
            node_monitor_grace_period: Some(secs(7)),
            node_startup_grace_period: Some(secs(8)),
            node_eviction_rate: Some(2.0),
            secondary_node_eviction_rate: Some(1.0),
            large_cluster_size_threshold: Some(3),
            unhealthy_zone_threshold: Some(0.5),
            node_disruption_calm: Some(secs(0)),
            when_all_zones_down: Some(AllDown::Hold),
            node_flap_threshold: Some(0),
            node_flap_window: Some(secs(9)),
            node_flap_hold: Some(secs(10)),
            node_monitor_period: Some(secs(5)),
        };
        let flags = LifecycleArgs { node_monitor_grace_period: Some(secs(1)), ..LifecycleArgs::default() };
        let policy = flags.or(file).policy();
        assert_eq!((policy.graces.monitor, policy.graces.startup), (secs(1), secs(8)));
        let disruption = policy.disruption;
        assert_eq!((disruption.rate, disruption.secondary_rate, disruption.large_zone), (2.0, 1.0, 3));
        assert_eq!((disruption.calm, disruption.when_all_down), (secs(0), WhenAllDown::Hold));
        assert_eq!(policy.flaps, FlapPolicy { falls: None, window: secs(9), hold: secs(10) });
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for wrong in ["-0.1", "NaN", "inf", "fast", "10001"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
        for wrong in ["-0.1", "1.1", "55%", "NaN"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
        assert!(parse_positive_span("0s").is_err() && parse_positive_span("25h").is_err());
        assert!(parse_hold("11m").is_err() && parse_falls("101").is_err() && parse_count("-1").is_err());
        assert_eq!((parse_rate("0"), parse_share("1"), parse_falls("0")), (Ok(0.0), Ok(1.0), Ok(0)));
    }
}
