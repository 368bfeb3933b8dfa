//! How many of a group may be away at once.

use std::fmt;

use serde::Serialize;

/// A number, or a share of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Allowance {
    /// As many as there are.
    #[default]
    All,
    /// So many.
    Count(u32),
    /// So many of a hundred, rounded down, but at least one unless it is zero: a group that is too small for the share
    /// would otherwise never be let go.
    Percent(u8),
}

impl Allowance {
    /// How many of a group of `size` that is.
    pub fn of(self, size: usize) -> usize {
        match self {
            Self::All => usize::MAX,
            Self::Count(count) => count as usize,
            Self::Percent(0) => 0,
            Self::Percent(percent) => (size.saturating_mul(usize::from(percent)) / 100).max(1),
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Count(count) => count.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_and_never_to_nothing() {
        assert_eq!(Allowance::Percent(10).of(29), 2);
        assert_eq!(Allowance::Percent(10).of(3), 1, "too small for the share, and yet not stuck");
        assert_eq!(Allowance::Percent(100).of(3), 3);
        assert_eq!(Allowance::Percent(0).of(1_000), 0, "none is none");
        assert_eq!(Allowance::Count(0).of(5), 0);
        assert_eq!(Allowance::All.of(0), usize::MAX);
    }
}
