//! Structural schemas: what an object may look like, what is filled in, what is cut away, and what is wrong with it.
//!
//! Owns the functions that take a JSON value and a compiled schema. They follow Kubernetes' rules for custom resources,
//! in its words and its order, and work as well on the built-in kinds, whose schemas are data in the same form.
//! Never panics on any value or schema, never recurses deeper than [`DEPTH_MAX`], never does I/O.
//!
//! ```text
//! openAPIV3Schema --compile--> Arena
//! value --prepare--> nulls dropped, defaults filled in --prune--> what is not described cut away
//!       --validate--> problems
//! ```

mod allowance;
mod compile;
mod correlate;
pub mod definition;
mod embedded;
pub mod format;
pub mod gotext;
mod list_type;
pub mod metadata;
mod node;
mod path;
pub mod pattern;
mod prepare;
mod problem;
mod rules;
mod unknown;
mod validate;

pub use allowance::{Allowance, DefaultsError, count_values};
pub use berth_text::names;
pub use compile::{SCHEMA_DEPTH_MAX, compile};
pub use definition::{check_structural, default_definition, validate_definition};
pub use embedded::validate_embedded;
pub use list_type::validate_list_types;
pub use metadata::{
    MetadataRules, NamespaceRule, coerce_metadata, validate_metadata, validate_metadata_update,
};
pub use names::NameRule;
pub use node::{Arena, Checks, ListType, MapType, Node, NodeId, PatchRule, Rule, Schema, Shape};
pub use path::FieldPath;
pub use pattern::Pattern;
pub use prepare::{apply_defaults, drop_nulls, prepare, prepare_within};
pub use problem::{EXCERPT_BYTES_MAX, PROBLEMS_MAX, Problem, ProblemKind};
pub use rules::Rules;
pub use unknown::{PATHS_MAX, PruneOptions, prune, unknown_fields};
pub use validate::{validate, validate_below, validate_readable, validate_update, validate_update_below};

/// How deep a value is followed. A little more than the JSON reader lets through, so that it is never met by a
/// document that was read; what lies deeper is left alone, and refused where it would have to be checked.
pub const DEPTH_MAX: usize = 160;
