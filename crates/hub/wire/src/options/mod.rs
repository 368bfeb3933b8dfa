//! The options of requests, from query strings and bodies, checked as a real server checks them.
//!
//! Owns the meaning of each option and the refusals. Never carries a request out.

mod delete;
mod list;
mod table;
mod write;

pub use delete::{DeleteOptions, Preconditions, Propagation};
pub use list::{GetOptions, ListOptions, VersionMatch, parse_resource_version};
pub use table::{IncludeObject, TableOptions};
pub use write::{
    CreateOptions, FIELD_MANAGER_BYTES_MAX, FieldValidation, PatchOptions, UpdateOptions, manager_name,
};

use crate::names::GroupKind;
use crate::status::{Cause, Status};

/// The refusal of options, or nothing when nothing is wrong with them.
fn refuse(kind: &str, wrong: &[Cause]) -> Result<(), Status> {
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(GroupKind::new("meta.k8s.io", kind), "", wrong))
    }
}
