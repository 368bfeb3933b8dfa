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
    /// What holds for everybody, where `places` may go at once.
    pub(super) fn of_all(&self, places: usize) -> Bounds {
        let in_flight = Allowance::Count(u32::try_from(places).unwrap_or(u32::MAX));
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
        Bounds { rate: rate(self.zone_rate, None), breaker, ..Bounds::default() }
    }
}

fn rate(per_second: Option<f64>, burst: Option<u32>) -> Rate {
    let Some(per_second) = per_second else { return Rate::Unlimited };
    // What is too much for the number of a burst is no bound.
    Rate::per_second(per_second, burst.unwrap_or(per_second.ceil().min(f64::from(u32::MAX)) as u32))
}
