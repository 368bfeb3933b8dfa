//! How fast pods may be evicted, and when not: what can be said, and what it means together.

use berth_control::{EvictionBreaker, EvictionLimits};
use clap::Args;

/// The bounds of the taint-eviction-controller. What is not said is not bounded, as with Kubernetes' own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
#[command(next_help_heading = "Evictions (taint-eviction-controller)")]
pub struct EvictionArgs {
    /// Evict at most so many pods a second [default: no bound].
    #[arg(id = "eviction_rate", long = "eviction-rate", value_name = "PODS", value_parser = parse_rate, allow_negative_numbers = true)]
    pub rate: Option<f64>,

    /// How many pods may go at once after a rest, with --eviction-rate [default: a second's worth].
    #[arg(id = "eviction_burst", long = "eviction-burst", value_name = "PODS", value_parser = parse_count)]
    pub burst: Option<u32>,

    /// Evict at most so many pods a second from the nodes of one zone [default: no bound].
    #[arg(id = "zone_eviction_rate", long = "zone-eviction-rate", value_name = "PODS", value_parser = parse_rate, allow_negative_numbers = true)]
    pub zone_rate: Option<f64>,

    /// Let at most so many pods of tainted nodes be on their way out at once [default: no bound].
    #[arg(id = "eviction_in_flight", long = "eviction-in-flight", value_name = "PODS", value_parser = parse_count)]
    pub in_flight: Option<u32>,

    /// Let at most so many from the nodes of one zone be on their way out at once [default: no bound].
    #[arg(id = "zone_eviction_in_flight", long = "zone-eviction-in-flight", value_name = "PODS", value_parser = parse_count)]
    pub zone_in_flight: Option<u32>,

    /// Hold the evictions of a zone while so many percent of its nodes, or more, have NoExecute taints [default: never].
    #[arg(id = "eviction_breaker_percent", long = "eviction-breaker-percent", value_name = "PERCENT", value_parser = parse_percent)]
    pub breaker_percent: Option<u8>,

    /// Hold them only if so many nodes of the zone have, or more, with --eviction-breaker-percent [default: 3].
    #[arg(id = "eviction_breaker_min", long = "eviction-breaker-min", value_name = "NODES", value_parser = parse_count)]
    pub breaker_least: Option<u32>,
}

/// What is missing: a bound, and the one it goes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Rate,
    BreakerPercent,
}

impl Missing {
    /// In the names of the flags.
    pub(crate) fn in_flags(self) -> &'static str {
        match self {
            Self::Rate => "--eviction-burst goes with --eviction-rate, which is missing",
            Self::BreakerPercent => {
                "--eviction-breaker-min goes with --eviction-breaker-percent, which is missing"
            }
        }
    }

    /// In the names of the file.
    pub(crate) fn in_file(self) -> &'static str {
        match self {
            Self::Rate => "evictions.burst: evictions.rate is missing beside it",
            Self::BreakerPercent => "evictions.breakerMin: evictions.breakerPercent is missing beside it",
        }
    }
}

impl EvictionArgs {
    /// Flags first.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            rate: self.rate.or(other.rate),
            burst: self.burst.or(other.burst),
            zone_rate: self.zone_rate.or(other.zone_rate),
            in_flight: self.in_flight.or(other.in_flight),
            zone_in_flight: self.zone_in_flight.or(other.zone_in_flight),
            breaker_percent: self.breaker_percent.or(other.breaker_percent),
            breaker_least: self.breaker_least.or(other.breaker_least),
        }
    }

    /// What it means together.
    pub(crate) fn limits(self) -> Result<EvictionLimits, Missing> {
        let Self { rate, burst, zone_rate, in_flight, zone_in_flight, breaker_percent, breaker_least } = self;
        if burst.is_some() && rate.is_none() {
            return Err(Missing::Rate);
        }
        if breaker_least.is_some() && breaker_percent.is_none() {
            return Err(Missing::BreakerPercent);
        }
        let least = breaker_least.unwrap_or(EvictionBreaker::LEAST_USUALLY);
        let breaker = breaker_percent.map(|percent| EvictionBreaker { percent, least });
        Ok(EvictionLimits { rate, burst, zone_rate, in_flight, zone_in_flight, breaker })
    }
}

/// So many a second.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| {
        "give a number of pods a second above 0, such as 10 or 0.5; `berth freeze evictions` stops them all"
            .to_owned()
    })
}

/// At least one.
pub(crate) fn parse_count(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "give a whole number from 1 on".to_owned())
}

/// So many of a hundred.
pub(crate) fn parse_percent(text: &str) -> Result<u8, String> {
    let percent = text.parse().ok().filter(|percent| (1..=100).contains(percent));
    percent.ok_or_else(|| "give a whole number from 1 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_no_bound() {
        assert_eq!(EvictionArgs::default().limits(), Ok(EvictionLimits::default()));
    }

    #[test]
    fn what_is_no_bound_is_refused() {
        assert_eq!(parse_rate("0.5"), Ok(0.5));
        for wrong in ["", "0", "-1", "NaN", "inf", "1e999", "ten"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!((parse_percent("100"), parse_count("1")), (Ok(100), Ok(1)));
        for wrong in ["0", "101", "-5", "5%", ""] {
            assert!(parse_percent(wrong).is_err(), "{wrong}");
        }
        assert!(parse_count("0").is_err() && parse_count("-1").is_err());
    }

    #[test]
    fn a_bound_that_needs_another_is_refused_without_it() {
        let burst = EvictionArgs { burst: Some(5), ..EvictionArgs::default() };
        assert_eq!(burst.limits(), Err(Missing::Rate));
        let both = burst.or(EvictionArgs { rate: Some(2.0), burst: Some(9), ..EvictionArgs::default() });
        assert_eq!(
            both.limits(),
            Ok(EvictionLimits { rate: Some(2.0), burst: Some(5), ..EvictionLimits::default() })
        );
        let least = EvictionArgs { breaker_least: Some(5), ..EvictionArgs::default() };
        assert_eq!(least.limits(), Err(Missing::BreakerPercent));
        let percent = EvictionArgs { breaker_percent: Some(40), ..EvictionArgs::default() };
        assert_eq!(percent.limits().unwrap().breaker, Some(EvictionBreaker { percent: 40, least: 3 }));
    }
}
