//! Tables: objects as rows of cells, which is how `kubectl get` reads them.
//!
//! Owns the shape. Cells come from [`crate::column`] or from whoever knows the kind; objects come as JSON and are
//! taken over as they stand.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

use crate::column::Heads;
use crate::envelope::partial_object;
use crate::media::MetaVersion;
use crate::options::IncludeObject;
use crate::status::ListMeta;

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    cells: Vec<Value>,
    object: Option<Bytes>,
}

impl Row {
    /// A row of an object that is already JSON.
    pub fn new(cells: Vec<Value>, object: &Bytes, include: IncludeObject, version: MetaVersion) -> Self {
        let object = match include {
            IncludeObject::None => None,
            IncludeObject::Metadata => partial_object(object, version.as_str()),
            IncludeObject::Object => Some(object.clone()),
        };
        Row { cells, object }
    }
}

/// A table. Heads are left out of every event of a watch but the first.
///
/// In a watch, the metadata of each table has the resource version of the event.
pub fn table<'r, I>(version: MetaVersion, meta: &ListMeta, heads: Option<&Heads>, rows: I) -> Bytes
where
    I: IntoIterator<Item = &'r Row>,
{
    let mut body = BytesMut::with_capacity(4096);
    body.put_slice(b"{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/");
    body.put_slice(version.as_str().as_bytes());
    body.put_slice(b"\",\"metadata\":");
    put(&mut body, meta);
    body.put_slice(b",\"columnDefinitions\":");
    body.put_slice(heads.map_or(b"null".as_slice(), Heads::json));
    body.put_slice(b",\"rows\":[");
    for (index, row) in rows.into_iter().enumerate() {
        if index > 0 {
            body.put_u8(b',');
        }
        body.put_slice(b"{\"cells\":");
        put(&mut body, &row.cells);
        body.put_slice(b",\"object\":");
        body.put_slice(row.object.as_deref().unwrap_or(b"null"));
        body.put_u8(b'}');
    }
    body.put_slice(b"]}\n");
    body.freeze()
}

fn put<T: serde::Serialize>(body: &mut BytesMut, value: &T) {
    serde_json::to_writer(body.writer(), value).expect("writing to memory with string keys");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::ColumnDefinition;
    use serde_json::json;

    fn meta() -> ListMeta {
        ListMeta { resource_version: "243".into(), ..ListMeta::default() }
    }

    #[test]
    fn rows_carry_as_much_of_the_object_as_was_asked_for() {
        let object = Bytes::from_static(br#"{"kind":"X","metadata":{"name":"a"},"spec":{}}"#);
        let heads = Heads::new(vec![ColumnDefinition { name: "Name".into(), ..ColumnDefinition::default() }]);
        for (include, want) in [
            (IncludeObject::None, json!(null)),
            (
                IncludeObject::Metadata,
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}),
            ),
            (IncludeObject::Object, json!({"kind": "X", "metadata": {"name": "a"}, "spec": {}})),
        ] {
            let row = Row::new(vec![json!("a"), Value::Null], &object, include, MetaVersion::V1);
            let table: Value =
                serde_json::from_slice(&table(MetaVersion::V1, &meta(), Some(&heads), [&row])).unwrap();
            assert_eq!(table["rows"][0]["object"], want);
            assert_eq!(table["rows"][0]["cells"], json!(["a", null]));
            assert_eq!(table["columnDefinitions"][0]["name"], "Name");
            assert_eq!(table["metadata"], json!({"resourceVersion": "243"}));
        }
    }

    #[test]
    fn later_events_of_a_watch_have_no_heads() {
        assert_eq!(
            table(MetaVersion::V1Beta1, &meta(), None, []),
            "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1beta1\",\"metadata\":{\"resourceVersion\":\"243\"},\
             \"columnDefinitions\":null,\"rows\":[]}\n"
        );
    }
}
