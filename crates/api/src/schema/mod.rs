//! Structural schemas: what an object may look like, what is filled in, and what is wrong with it.
//!
//! Owns the functions that take a JSON value and the schema of a definition: dropping nulls, filling in
//! defaults, finding problems and unknown fields. They follow Kubernetes' rules for custom resources, work on any
//! structural schema, and recurse only as deep as the schema does, however deep the value is. Never looks at
//! expressions (`x-kubernetes-validations`), which none of our definitions has.
//!
//! ```text
//! value --prepare--> nulls dropped, whole floats made integers, defaults filled in
//!       --validate--> problems        --unknown_fields--> paths nobody will read
//! ```

pub(crate) mod format;
pub(crate) mod fragment;
mod generate;
mod metadata;
mod path;
mod pattern;
mod prepare;
mod problem;
mod unknown;
mod validate;

pub(crate) use generate::structural_schema;
pub use metadata::validate_metadata;
pub use path::FieldPath;
pub use prepare::{apply_defaults, drop_nulls, prepare};
pub use problem::{PROBLEMS_MAX, Problem, ProblemKind};
pub use unknown::unknown_fields;
pub use validate::validate;
