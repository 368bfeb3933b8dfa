//! A small seeded generator: the same seed gives the same scripts on every machine.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for the `number`th part of a run.
    #[must_use]
    pub fn fork(&self, number: u64) -> Self {
        // Both are stirred first: states that differ by a multiple of the step are one sequence, begun elsewhere.
        Self(self.clone().next() ^ Self(!number).next())
    }

    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "a generator has no end to tell of")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True in `percent` of the cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// The seed that `BERTH_SEED` names, to see a failure again, else a fresh one.
///
/// # Panics
/// When that is no number.
pub fn seed() -> u64 {
    std::env::var("BERTH_SEED").map_or_else(
        |_| fresh_seed(),
        |text| text.parse().unwrap_or_else(|_| panic!("BERTH_SEED is not a number: {text:?}")),
    )
}

/// A seed that nobody has tried: the time.
pub fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64 % 1_000_000_007)
}
