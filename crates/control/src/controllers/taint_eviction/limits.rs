//! How fast and how much at once: what `berth run` is told about evictions.

use std::time::Duration;

use berth_engine::evict::{Allowance, Bounds, Rate, Thresholds};

/// For how long fewer nodes than its share must be tainted before a breaker lets pods go again.
const BREAKER_CALM: Duration = Duration::from_secs(10);

/// The bounds of evictions. By default there are none, as Kubernetes' own controller has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EvictionLimits {
    /// Pods a second, of all.
    pub rate: Option<f64>,
    /// How many a rest saves up of that; `None` for a second's worth.
    pub burst: Option<u32>,
    /// Pods a second, of each zone.
    pub zone_rate: Option<f64>,
    /// Pods of tainted nodes that may be on their way out at once, of all.
    pub in_flight: Option<u32>,
    /// The same of each zone.
    pub zone_in_flight: Option<u32>,
    /// When evictions in a zone are held.
    pub breaker: Option<EvictionBreaker>,
}

/// How many nodes of a zone may be tainted before its evictions are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionBreaker {
    /// Held from so many of a hundred on,
    pub percent: u8,
    /// and from so many on.
    pub least: u32,
}

impl EvictionBreaker {
    /// Of fewer nodes a share says little.
    pub const LEAST_USUALLY: u32 = 3;
}

impl EvictionLimits {
    /// Whether it is bounded how many may be on their way out.
    pub(super) fn count_leaving(&self) -> bool {
        self.in_flight.is_some() || self.zone_in_flight.is_some()
    }

    /// What holds for everybody, where `places` may go at once besides those who are `leaving` already.
    pub(super) fn of_all(&self, places: usize, leaving: usize) -> Bounds {
        let places = u32::try_from(places.saturating_add(leaving)).unwrap_or(u32::MAX);
        let in_flight = Allowance::Count(self.in_flight.map_or(places, |allowed| allowed.min(places)));
        Bounds { rate: rate(self.rate, self.burst), in_flight, breaker: None }
    }

    /// What holds in each zone.
    pub(super) fn of_zone(&self) -> Bounds {
        let breaker = self.breaker.map(|breaker| Thresholds {
            open_percent: breaker.percent,
            open_count: breaker.least,
            close_percent: breaker.percent,
            calm: BREAKER_CALM,
        });
        let in_flight = self.zone_in_flight.map_or(Allowance::All, Allowance::Count);
        Bounds { rate: rate(self.zone_rate, None), in_flight, breaker }
    }
}

fn rate(per_second: Option<f64>, burst: Option<u32>) -> Rate {
    let Some(per_second) = per_second else { return Rate::Unlimited };
    // What is too much for the number of a burst is no bound.
    Rate::per_second(per_second, burst.unwrap_or(per_second.ceil().min(f64::from(u32::MAX)) as u32))
}
