//! The position in the log that every object, list and event carries.
//!
//! Owns the number and its text form. It never hands out the next one: only the writer thread does.

use std::fmt;

/// A position in the log. Every write takes the next one; there is one sequence for the whole store.
///
/// Zero is before the first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    /// The position before the first write.
    pub const ZERO: Self = Self(0);

    /// The position that the write after this one takes.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for Revision {
    fn from(number: u64) -> Self {
        Self(number)
    }
}
