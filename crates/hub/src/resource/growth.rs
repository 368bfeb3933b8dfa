//! How large a custom resource may grow on its way in.
//!
//! Owns the counting of its values and what the defaults of its definition may add, with the words of the refusals. How
//! large an object may be at rest is asked when it is committed.

use berth_hub_kinds::conform::{ConformError, VALUES_MAX};
use berth_hub_wire::{Reason, Status};
use berth_schema::{Allowance, DefaultsError, count_values};
use serde_json::Value;

use super::meta;
use crate::limits::DEFAULTS_BYTES_MAX;

/// Refuses an object with more values than an object of a built-in kind may hold.
pub(super) fn check_values(object: &Value) -> Result<(), String> {
    held(object).map(|_| ()).ok_or_else(|| ConformError::too_many_values().to_string())
}

/// What defaults may add to an object.
pub(crate) fn allowance(object: &Value) -> Allowance {
    let values = held(object).map_or(0, |count| VALUES_MAX - count);
    Allowance { bytes: DEFAULTS_BYTES_MAX, values }
}

/// What a client is told when they would add more.
pub(super) fn refused(error: DefaultsError) -> Status {
    let why = match error {
        DefaultsError::Bytes => {
            format!("the defaults of its schema add more than {DEFAULTS_BYTES_MAX} bytes to the object")
        }
        DefaultsError::Values => format!(
            "the object holds more than {VALUES_MAX} values once the defaults of its schema are filled in"
        ),
    };
    Status::failure(413, Reason::RequestEntityTooLarge, format!("Request entity too large: {why}"))
}

/// How many values an object holds; none when they are too many. Who owns its fields is the server's to say and not
/// counted, as in built-in kinds.
fn held(object: &Value) -> Option<usize> {
    let owners = meta::at(object, &["metadata", "managedFields"]);
    let owners = owners.map_or(Some(0), |owners| count_values(owners, usize::MAX))?;
    count_values(object, VALUES_MAX.saturating_add(owners)).map(|count| count - owners)
}
