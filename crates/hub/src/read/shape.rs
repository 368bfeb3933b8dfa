//! Objects in the form a client asked for: whole, metadata alone, or rows of a table.
//!
//! Owns the forms. Which objects are shown, and in which order, is decided before.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use berth_hub_kinds::{Builtin, print};
use berth_hub_store::Entry;
use berth_hub_wire::envelope::Spelled;
use berth_hub_wire::table::{Row, table};
use berth_hub_wire::{Answer, ColumnDefinition, Heads, ListMeta, MetaVersion, Shape, TableOptions, envelope};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use super::present::{Item, parse, present, present_item, present_value};
use crate::registry::{Origin, Resource};

/// How the objects of one request are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shaper<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) answer: Answer,
    pub(crate) table: TableOptions,
    pub(crate) now: Timestamp,
}

impl Shaper<'_> {
    /// One stored object.
    pub(crate) fn one(&self, entry: &Entry) -> Bytes {
        match self.answer.shape {
            Shape::Plain => envelope::encode_raw(&present(self.resource, entry), self.answer.pretty),
            _ => self.value(&present_value(self.resource, entry)),
        }
    }

    /// One object that is not stored as it stands, as in a dry run.
    pub(crate) fn value(&self, object: &Value) -> Bytes {
        match self.answer.shape {
            Shape::Plain => envelope::encode(object, self.answer.pretty),
            Shape::PartialObjectMetadata(version) | Shape::PartialObjectMetadataList(version) => {
                let json = envelope::encode(object, false);
                envelope::partial_object(&json, version.as_str()).unwrap_or(json)
            }
            Shape::Table(version) => {
                let row = self.row(object, &envelope::encode(object, false), version);
                self.table(version, &own_meta(object), true, &[row])
            }
        }
    }

    /// A list.
    pub(crate) fn many(&self, meta: &ListMeta, entries: &[std::sync::Arc<Entry>]) -> Bytes {
        match self.answer.shape {
            Shape::Plain => {
                let items: Vec<Item> =
                    entries.iter().map(|entry| present_item(self.resource, entry)).collect();
                let list = envelope::list(
                    &self.resource.api_version(),
                    &self.resource.list_kind,
                    meta,
                    if self.resource.custom().is_some() { Spelled::Full } else { Spelled::Short },
                    items.iter().map(Item::pieces),
                );
                if self.answer.pretty { envelope::encode_raw(&list, true) } else { list }
            }
            Shape::PartialObjectMetadata(version) | Shape::PartialObjectMetadataList(version) => {
                let items: Vec<Bytes> = entries
                    .iter()
                    .filter_map(|entry| {
                        envelope::partial_object(&present(self.resource, entry), version.as_str())
                    })
                    .collect();
                envelope::partial_list(version.as_str(), meta, items.iter().map(|item| &**item))
            }
            Shape::Table(version) => {
                let row = |entry: &std::sync::Arc<Entry>| {
                    let json = present(self.resource, entry);
                    self.row(&parse(&json), &json, version)
                };
                self.table(version, meta, true, &entries.iter().map(row).collect::<Vec<_>>())
            }
        }
    }

    /// The object of a watch event. `headers` is whether a table names its columns, as only the first one does.
    pub(crate) fn event_object(&self, json: &Bytes, headers: bool) -> Bytes {
        match self.answer.shape {
            Shape::Plain => json.clone(),
            Shape::PartialObjectMetadata(version) | Shape::PartialObjectMetadataList(version) => {
                envelope::partial_object(json, version.as_str()).unwrap_or_else(|| json.clone())
            }
            Shape::Table(version) => {
                let object = parse(json);
                self.table(version, &own_meta(&object), headers, &[self.row(&object, json, version)])
            }
        }
    }

    fn row(&self, object: &Value, json: &Bytes, version: MetaVersion) -> Row {
        let cells = match &self.resource.origin {
            Origin::Custom(version) => version.columns.cells(object, self.now),
            Origin::Builtin(kind) => print::cells(kind, object, self.now.as_second()),
        };
        Row::new(cells, json, self.table.include_object, version)
    }

    fn table(&self, version: MetaVersion, meta: &ListMeta, headers: bool, rows: &[Row]) -> Bytes {
        let heads = match &self.resource.origin {
            Origin::Custom(version) => version.columns.heads(),
            Origin::Builtin(kind) => builtin_heads(kind),
        };
        let table = table(version, meta, headers.then_some(heads), rows);
        if self.answer.pretty { envelope::encode_raw(&table, true) } else { table }
    }
}

/// The heads of built-in tables, made once.
fn builtin_heads(kind: &'static Builtin) -> &'static Heads {
    static HEADS: OnceLock<Mutex<HashMap<(&'static str, &'static str), &'static Heads>>> = OnceLock::new();
    let mut known = HEADS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    // As many as there are built-in kinds, for as long as the program runs.
    known.entry((kind.group, kind.plural)).or_insert_with(|| Box::leak(Box::new(Heads::new(columns(kind)))))
}

fn columns(kind: &Builtin) -> Vec<ColumnDefinition> {
    print::columns(kind)
        .iter()
        .map(|column| ColumnDefinition {
            name: column.name.to_owned(),
            kind: column.kind.to_owned(),
            format: column.format.to_owned(),
            description: column.description().to_owned(),
            priority: column.priority,
        })
        .collect()
}

/// The metadata of the table of one object.
fn own_meta(object: &Value) -> ListMeta {
    let revision = object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    ListMeta { resource_version: revision.to_owned(), ..ListMeta::default() }
}
