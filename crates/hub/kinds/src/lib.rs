//! The built-in kinds of the hub, as data.
//!
//! Owns what is known about them: fields, types, protobuf numbers and merge rules (a table generated from the published
//! definitions), names and verbs, defaults, validation, OpenAPI documents and what kubectl prints.
//! Never stores an object, never reads a clock, never speaks to anyone: every function is pure.

mod access;
pub mod admission;
pub mod conform;
pub mod defaults;
pub mod events;
mod fields;
mod gvk;
mod instant;
pub mod openapi;
mod openapi_paths;
mod openapi_prose;
pub mod print;
pub mod protobuf;
mod qos;
pub mod quantity;
mod registry;
mod schemas;
pub mod strategy;
mod types;
pub mod validation;

pub use gvk::Gvk;
pub use registry::{Builtin, Builtins, SelectableField, Subresource};
pub use types::{Field, Kind, Omit, Slot, Type, TypeId, Types};

/// The generated table, see [`types`].
const TABLE: &str = include_str!("../data/kinds.txt");
