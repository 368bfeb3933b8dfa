//! A write that holds.

use std::sync::Arc;

use berth_hub_store::Entry;

use crate::resource::Outcome;

/// What was decided and what became of it.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) outcome: Outcome,
    /// The object as it was read, if there was one.
    pub(crate) read: Option<Arc<Entry>>,
    /// What was written; nothing in a dry run, or when nothing changed.
    pub(crate) entries: Vec<Arc<Entry>>,
}
