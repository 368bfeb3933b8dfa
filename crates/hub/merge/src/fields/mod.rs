//! Which fields of an object: path elements, sets of paths as a trie, and their JSON form.
//!
//! Owns the algebra of field sets. Knows no schema and no manager.

mod element;
mod fields_v1;
mod set;

pub use element::Element;
pub use fields_v1::FieldsError;
pub(crate) use fields_v1::{containers, touches};
pub use set::FieldSet;
pub(crate) use set::Node;
