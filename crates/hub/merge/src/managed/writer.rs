//! Who writes, how, and when.

use super::entry::Operation;

/// The facts about a write that end up in `metadata.managedFields`.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The field manager: `fieldManager`, or what the User-Agent begins with. An empty one is recorded as `unknown`.
    pub manager: &'a str,
    /// How the fields are written: by [`apply`](super::apply) or by [`track_update`](super::track_update).
    pub operation: Operation,
    /// The version the object is written in.
    pub api_version: &'a str,
    /// The subresource written to.
    pub subresource: Option<&'a str>,
    /// The time, in UTC with whole seconds: `2026-01-02T03:04:05Z`.
    pub now: &'a str,
}

impl<'a> Writer<'a> {
    /// The name under which the write is recorded.
    pub(super) fn name(&self) -> &'a str {
        if self.manager.is_empty() { "unknown" } else { self.manager }
    }
}
