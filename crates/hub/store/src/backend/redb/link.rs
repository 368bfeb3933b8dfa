//! What a store knows of the journal in front of it.
//!
//! Owns its two entries among the store's own. It never looks at the journal.

use ::redb::{ReadableTable, StorageError, Table};

const JOURNAL: &str = "journal";
const TAKEN: &str = "taken";

/// The journal of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// There may be one: the second format did not say.
    Untold,
    /// The journal with this number.
    Known {
        /// Zero is none.
        journal: u64,
        /// Whether the store has everything that is in it, and nothing is written to it any more.
        taken: bool,
    },
}

impl Link {
    /// A store by itself, such as a new one or a backup.
    pub(crate) const NONE: Self = Self::Known { journal: 0, taken: true };

    pub(super) fn read(meta: &impl ReadableTable<&'static str, u64>) -> Result<Self, StorageError> {
        let Some(journal) = meta.get(JOURNAL)? else { return Ok(Self::Untold) };
        let taken = meta.get(TAKEN)?.is_some_and(|taken| taken.value() == 1);
        Ok(Self::Known { journal: journal.value(), taken })
    }

    pub(super) fn write(self, meta: &mut Table<'_, &'static str, u64>) -> Result<(), ::redb::Error> {
        if let Self::Known { journal, taken } = self {
            meta.insert(JOURNAL, journal)?;
            meta.insert(TAKEN, u64::from(taken))?;
        }
        Ok(())
    }
}
