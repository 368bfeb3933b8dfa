//! Structural schemas: what an object of our kinds may look like, what is filled in, and what is wrong with it.
//!
//! Owns the way from our types to the schemas of their definitions, and what is asked of objects that no API server has
//! looked at yet. The rules themselves are those of every structural schema and live in `berth_schema`.

pub(crate) mod fragment;
mod generate;
mod metadata;

pub use berth_schema::{
    FieldPath, PROBLEMS_MAX, Problem, ProblemKind, apply_defaults, drop_nulls, prepare, unknown_fields,
    validate_readable as validate,
};
pub(crate) use generate::structural_schema;
pub use metadata::validate_metadata;
