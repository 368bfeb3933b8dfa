//! What a read shows: one object, a list, a watch.
//!
//! Owns the way from the log to an answer's bytes. Never changes anything, and copies an object only where the answer's
//! form differs from the stored one.

mod get;
mod list;
mod present;
mod scale;
mod selection;
mod shape;
mod stream;

pub(crate) use get::get;
pub(crate) use list::{list, page};
pub(crate) use present::{parse, present_value};
pub(crate) use scale::scale_table;
pub(crate) use selection::Selection;
pub(crate) use shape::Shaper;
pub(crate) use stream::{Watching, watch};
