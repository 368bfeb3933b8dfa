//! A value beside the schema that says how its parts are owned: validate, compare, merge, extract and remove by paths.
//!
//! ```text
//! schema -> Type -> { validate | compare | merge | extract | remove | reconcile } <- values and field sets
//! ```
//!
//! Owns the rules by which containers are one value or many. Never checks bounds, patterns or required fields.

mod compare;
mod extract;
mod fits;
mod item;
mod kind;
mod merge;
mod object_meta;
mod reconcile;
mod remove;
mod validate;

pub(crate) use compare::{Comparison, compare};
pub(crate) use extract::extract;
pub(crate) use fits::fits;
pub(crate) use kind::Type;
pub(crate) use merge::merge;
pub(crate) use reconcile::{is_outdated, reconcile};
pub(crate) use remove::{remove, with_named_parents};
pub(crate) use validate::{Duplicates, validate};
