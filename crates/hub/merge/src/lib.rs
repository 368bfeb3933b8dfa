//! Patches and server-side apply: how a change that a client sends becomes a new object, and whose each field is.
//!
//! ```text
//! json_patch  merge_patch  strategic_merge      document + patch        -> document
//! track_update                                  live + new              -> new, with managedFields
//! apply                                         live + configuration    -> new, with managedFields, or conflicts
//!
//! fields:    which fields (a trie of path elements), FieldsV1
//! typed:     a value beside its schema: validate, compare, merge, extract, remove
//! managed:   who manages what: entries, conflicts, the order of steps of an update and of an apply
//! strategic: the strategic merge patch of built-in kinds
//! ```
//!
//! Everything here is pure: no clock, no storage, no HTTP. It never fills in defaults, prunes unknown fields or checks
//! value rules; that is what the schemas are for.

mod depth;
mod fields;
mod golang;
mod json_patch;
mod managed;
mod merge_patch;
mod number;
mod patch_error;
mod strategic;
mod typed;

pub use depth::{MAX_DEPTH, MAX_DOCUMENT_DEPTH};
pub use fields::{Element, FieldSet, FieldsError};
pub use json_patch::{MAX_COPY_BYTES, MAX_OPERATIONS, json_patch, unknown_operation_fields};
pub use managed::{
    ApplyError, Conflict, Conflicts, LAST_APPLIED_ANNOTATION, MAX_UPDATE_MANAGERS, ObjectType, Operation,
    ScalePaths, Versions, Writer, apply, scale_to_parent, scale_view, track_update, validate_managed_fields,
};
pub use merge_patch::{check_merge_patch, merge_patch};
pub use patch_error::PatchError;
pub use strategic::strategic_merge;
