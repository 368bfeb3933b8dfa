//! How much of a zone is down.

/// How much of a zone is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Little enough that it is the nodes' own fault.
    Normal,
    /// So much that it may be something they share.
    Partial,
    /// All of it.
    Full,
}

impl ZoneState {
    /// The state of a zone of which so many nodes are ready, and so many are not. `share` is from which share on it is too
    /// much; two nodes are never too many, as long as one is ready.
    pub fn of(ready: usize, not_ready: usize, share: f32) -> Self {
        // In single precision, as Kubernetes counts: at the threshold itself it makes a difference.
        if ready == 0 && not_ready > 0 {
            Self::Full
        } else if not_ready > 2 && not_ready as f32 / (not_ready + ready) as f32 >= share {
            Self::Partial
        } else {
            Self::Normal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_disrupted_in_part_by_more_than_two_and_the_share_and_fully_when_none_is_ready() {
        use ZoneState::{Full, Normal, Partial};
        for (ready, not_ready, state) in [
            (0, 0, Normal),
            (1, 0, Normal),
            (0, 1, Full),
            (0, 2, Full),
            (1, 2, Normal),
            (1, 1, Normal),
            (2, 3, Partial),
            (3, 3, Normal),
            (9, 11, Partial),
            (46, 54, Normal),
            (45, 55, Partial),
            (0, 100, Full),
        ] {
            assert_eq!(ZoneState::of(ready, not_ready, 0.55), state, "{ready} ready, {not_ready} not");
        }
    }
}
