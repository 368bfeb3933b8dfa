//! What a caller asks the ledger to do.

use crate::draft::Draft;
use crate::entry::Entry;
use crate::key::Key;
use crate::revision::Revision;

/// The state that an object must be in for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It must not exist.
    Absent,
    /// It must exist, in whatever state.
    Present,
    /// It must exist at exactly this revision.
    At(Revision),
    /// Whatever state it is in.
    Any,
}

impl Expect {
    /// Whether `current` is the expected state.
    pub fn holds(self, current: Option<&Entry>) -> bool {
        match self {
            Self::Absent => current.is_none(),
            Self::Present => current.is_some(),
            Self::At(revision) => current.is_some_and(|entry| entry.revision() == revision),
            Self::Any => true,
        }
    }
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Change {
    /// Gives the object this state.
    Put(Draft),
    /// Removes the object. The draft is its last state, which watchers are shown with the revision of the deletion.
    Delete(Draft),
}

impl Change {
    pub(crate) fn draft(&self) -> &Draft {
        let (Self::Put(draft) | Self::Delete(draft)) = self;
        draft
    }
}

/// One write of a transaction. A deletion of what does not exist is always a conflict.
#[derive(Clone, Debug)]
pub struct Write {
    /// The object.
    pub key: Key,
    /// The state that it must be in.
    pub expect: Expect,
    /// What happens to it.
    pub change: Change,
}

/// A condition on an object that a transaction does not write, such as the namespace that a new object goes into.
#[derive(Clone, Debug)]
pub struct Check {
    /// The object.
    pub key: Key,
    /// The state that it must be in.
    pub expect: Expect,
}
