//! Writes of definitions: one after the other, and established by the time they are kept.

use serde_json::Value;

use super::Author;
use crate::resource::{Act, Outcome, Step, definition};

/// Which names are free is decided before a definition is written, so they are written one after the other.
pub(super) async fn alone<'a>(author: &Author<'a>, act: &Act<'_>) -> Option<tokio::sync::MutexGuard<'a, ()>> {
    if act.resource.storage == author.core.definitions {
        Some(author.core.defining.lock().await)
    } else {
        None
    }
}

/// Writes into a definition what the hub itself answers for.
pub(super) fn settle(author: &Author<'_>, act: &Act<'_>, mut outcome: Outcome) -> Outcome {
    // A dry run shows the definition as sent: nothing is established by it.
    if act.resource.storage == author.core.definitions && !act.dry_run {
        let known = author.core.derived.definitions();
        let others: Vec<&Value> = known.iter().map(|definition| &**definition).collect();
        for step in &mut outcome.steps {
            if let Step::Create(object) | Step::Update(object) = step
                && let Some(established) = definition::establish(object, &others, act.now)
            {
                *object = established;
            }
        }
    }
    outcome
}
