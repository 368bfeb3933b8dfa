//! From an outcome to the log.

use std::sync::Arc;

use berth_hub_store::{Change, Check, CommitError, Draft, DraftError, Entry, Expect, Key, Write};
use berth_hub_wire::{Reason, Status};

use super::{Author, Lost};
use crate::core::Core;
use crate::registry::Resource;
use crate::resource::{Act, Outcome, Step, at_rest, meta};

/// Commits the steps of an outcome on the condition that the object is still the one that was read, and that what the
/// decision rests on still stands.
pub(crate) async fn commit(
    author: &Author<'_>,
    act: &Act<'_>,
    outcome: &Outcome,
    read: Option<&Arc<Entry>>,
    grounds: Vec<Check>,
) -> Result<Vec<Arc<Entry>>, Lost> {
    // Made for a dry run too: it refuses what could not be kept.
    let writes = writes(author.core, act.resource, &outcome.steps, read)?;
    if act.dry_run || writes.is_empty() {
        if let Some(Step::Create(object)) = outcome.steps.first()
            && let Some(taken) =
                author.core.find(act.resource, act.object_namespace(), meta::text(object, "name"))
        {
            return Err(Lost::Race(Some(taken)));
        }
        return Ok(Vec::new());
    }
    put(author.core, grounds, writes).await
}

/// Commits writes on the condition that what they rest on still stands.
pub(crate) async fn put(
    core: &Core,
    grounds: Vec<Check>,
    writes: Vec<Write>,
) -> Result<Vec<Arc<Entry>>, Lost> {
    let guarded = grounds.len();
    core.commit(grounds, writes).await.map_err(|error| match error {
        CommitError::Conflict { index, .. } if index < guarded => Lost::Grounds,
        CommitError::Conflict { current, .. } => Lost::Race(current),
        other => Lost::Refused(unavailable(&other)),
    })
}

/// The steps as writes to the log.
pub(crate) fn writes(
    core: &Core,
    resource: &Resource,
    steps: &[Step],
    read: Option<&Arc<Entry>>,
) -> Result<Vec<Write>, Status> {
    let mut expect = read.map_or(Expect::Absent, |entry| Expect::At(entry.revision()));
    steps
        .iter()
        .map(|step| {
            let (Step::Create(object) | Step::Update(object) | Step::Remove(object)) = step;
            let stored = at_rest(resource, object);
            let draft = Draft::new(&stored).map_err(|error| match error {
                DraftError::TooDeep => Status::bad_request(error.to_string()),
                DraftError::TooLarge(_) => Status::request_too_large(core.limits.object),
                error => Status::internal(&error.to_string()),
            })?;
            if draft.size() > core.limits.object && !matches!(step, Step::Remove(_)) {
                return Err(Status::request_too_large(core.limits.object));
            }
            let key =
                Key::new(&resource.storage, meta::text(object, "namespace"), meta::text(object, "name"));
            let change =
                if matches!(step, Step::Remove(_)) { Change::Delete(draft) } else { Change::Put(draft) };
            let write = Write { key, expect, change };
            // What follows within one transaction builds on what went before.
            expect = Expect::Any;
            Ok(write)
        })
        .collect()
}

/// What a client is told when the log does not take a write.
fn unavailable(error: &CommitError) -> Status {
    match error {
        CommitError::Full => {
            Status::too_many_requests("too many writes are waiting to be stored, try again later", 1)
        }
        CommitError::TooLarge { .. } => {
            Status::failure(413, Reason::RequestEntityTooLarge, error.to_string())
        }
        CommitError::Conflict { .. } => Status::internal("a commit lost a race it was not in"),
        CommitError::Unavailable(_) | CommitError::Closed => Status::unavailable(error.to_string()),
    }
}
