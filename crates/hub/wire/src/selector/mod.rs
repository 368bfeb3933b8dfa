//! Selectors: which objects a request is about.
//!
//! Owns the two little languages, the form that objects carry, their complaints and their matching. Of an object being
//! matched it reads the labels at most: the caller hands over field values.

mod field;
mod label;
mod lexer;
mod parser;

pub use field::{FieldLabelRule, FieldSelector, FieldTerm};
pub use label::{LabelSelector, Labels, Operator, Requirement};
