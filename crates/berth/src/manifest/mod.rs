//! Kubernetes manifests as people write them: files, folders, streams, lists.
//!
//! ```text
//! paths -> source -> split -> yaml | json -> node -> (value, positions) -> object
//! ```
//!
//! Owns reading text into values while remembering the line of every field, and writing values back as YAML or
//! JSON. Never knows what a field means: schemas, defaults and kinds are other modules' business.

mod document;
mod emit;
mod json;
mod load;
mod node;
mod object;
mod path;
mod problem;
mod scalar;
mod source;
mod split;
mod yaml;

pub use document::Document;
pub use emit::{write_json_document, write_json_list, write_yaml_document};
pub use load::{Loaded, load, load_text};
pub use node::Positions;
pub use object::Object;
pub use path::FieldPath;
pub use problem::{Notice, Position, Problem, Warning, one_line, printable};

use node::Node;

/// Nesting of one document, in levels: far above any Kubernetes object, far below what recursion over a value could
/// not bear.
pub const DEPTH_MAX: usize = 100;

/// Nodes of one document: a list of ten thousand clusters with all their bookkeeping has about three million.
pub const NODES_MAX: usize = 8_000_000;

/// Documents read in one run.
pub const DOCUMENTS_MAX: usize = 1_000_000;

/// Bytes that anchors, aliases and merge keys may add in one run, so that a small file cannot unfold into a large
/// memory.
pub const EXPANSION_BYTES_MAX: usize = 64 << 20;

/// What one run may still spend while reading.
#[derive(Debug)]
struct Budget {
    documents: usize,
    expansion_bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { documents: DOCUMENTS_MAX, expansion_bytes: EXPANSION_BYTES_MAX }
    }
}

/// A fault inside one text, before it is known which file the text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    at: Position,
    path: String,
    message: String,
}

/// What reading one text gave: every document that could be read, and every fault found on the way.
#[derive(Debug, Default)]
struct Read {
    documents: Vec<Node>,
    faults: Vec<Fault>,
}
