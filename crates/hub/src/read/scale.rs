//! The table of one scale, which no kind of its own describes.

use berth_hub_wire::table::{Row, table};
use berth_hub_wire::{ColumnDefinition, Heads, IncludeObject, ListMeta, MetaVersion, age, envelope};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

/// Name, type and meaning of its columns.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("Name", "string", "The name of what is scaled."),
    ("Desired", "integer", "Number of desired replicas"),
    ("Available", "integer", "Number of actual replicas"),
    ("Age", "string", "How long ago it was created."),
];

/// A scale as a table of one row.
pub(crate) fn scale_table(
    scale: &Value,
    version: MetaVersion,
    include: IncludeObject,
    now: Timestamp,
) -> Bytes {
    let columns = COLUMNS.map(|(name, kind, description)| ColumnDefinition {
        name: name.to_owned(),
        kind: kind.to_owned(),
        description: description.to_owned(),
        ..ColumnDefinition::default()
    });
    let text = |path: &str| scale.pointer(path).and_then(Value::as_str).unwrap_or_default();
    // Left out means none.
    let count = |path: &str| scale.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let cells = vec![
        text("/metadata/name").into(),
        count("/spec/replicas").into(),
        count("/status/replicas").into(),
        age::age_of_text(now, text("/metadata/creationTimestamp")).into(),
    ];
    let row = Row::new(cells, &envelope::encode(scale, false), include, version);
    let meta =
        ListMeta { resource_version: text("/metadata/resourceVersion").to_owned(), ..ListMeta::default() };
    table(version, &meta, Some(&Heads::new(columns.into())), [&row])
}
