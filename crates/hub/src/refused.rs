//! What the guard refuses, as the status it is answered with.

use berth_hub_guard::Refusal;
use berth_hub_wire::Status;

/// A refusal of the guard as a status.
#[expect(clippy::needless_pass_by_value, reason = "it is the end of the refusal, and reads well in map_err")]
pub(crate) fn refused(refusal: Refusal) -> Status {
    serde_json::from_value(refusal.status())
        .unwrap_or_else(|error| Status::internal(&format!("{refusal:?}: {error}")))
}
