//! What the hub says and understands over HTTP.
//!
//! Everything between bytes and meaning: paths and queries into routes and options, bodies into values, selectors,
//! continue tokens and JSONPath into things that can be asked; failures, lists, watch events, tables and discovery into
//! bytes. The words are those of a real Kubernetes server, because clients and people compare them.
//!
//! ```text
//! request   path ──▶ route      query ──▶ options, selector, continue_token      body ──▶ body
//!           Accept, Content-Type ──▶ media
//! answer    status, failure, warning      envelope      column ──▶ table      discovery      server_version
//! ```
//!
//! What this crate never does: open a socket, read a store, ask a clock, decide who may do what, or know a kind.
//! Every function is pure; those that read what users send are total, bounded, and fit to be fuzzed:
//! [`body::json::read`], [`body::yaml::read`], [`LabelSelector::parse`], [`FieldSelector::parse`],
//! [`ContinueToken::decode`], [`JsonPath::parse`], [`Query::parse`], [`route::parse`], [`media::negotiate`].

pub mod age;
pub mod body;
pub mod column;
pub mod continue_token;
pub mod discovery;
pub mod envelope;
pub mod failure;
pub mod field_error;
pub mod jsonpath;
pub mod media;
pub mod names;
pub mod options;
mod percent;
pub mod query;
pub mod route;
pub mod selector;
pub mod server_version;
pub mod status;
pub mod table;
pub mod warning;

pub use berth_text::gotext;
pub use column::{ColumnDefinition, CustomColumns, Heads, MetadataTexts, PrinterColumn};
pub use continue_token::{ContinueToken, PageRevision};
pub use discovery::{Discovery, Document, ResourceInfo, SubresourceInfo};
pub use envelope::WatchKind;
pub use failure::Access;
pub use jsonpath::JsonPath;
pub use media::{Answer, AnswerFormat, BodyFormat, DiscoveryAnswer, MetaVersion, PatchType, Shape};
pub use names::{GroupKind, GroupResource, GroupVersionKind};
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, GetOptions, IncludeObject, ListOptions, PatchOptions,
    Propagation, TableOptions, UpdateOptions, VersionMatch,
};
pub use query::Query;
pub use route::{ResourceRoute, Route, Verb};
pub use selector::{FieldLabelRule, FieldSelector, LabelSelector, Labels};
pub use status::{AsCause, Cause, Details, ListMeta, Reason, Status};
