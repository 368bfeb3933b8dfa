//! Lists and watch events around objects that are already JSON.
//!
//! Objects are kept as compact JSON; an answer is put together from those bytes without reading them again. Owns the
//! envelopes' bytes. Never looks into an object.

use std::fmt::Write as _;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::status::{ListMeta, Status};

/// The annotation on the bookmark that ends the initial events of a streaming list.
pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What happened to an object, as a watch says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchKind {
    /// It is new, or new to this watch.
    Added,
    /// It changed.
    Modified,
    /// It is gone, or gone from this watch.
    Deleted,
    /// Nothing: the revision moved on.
    Bookmark,
    /// The watch ends for a reason; the object is a `Status`.
    Error,
}

impl WatchKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            WatchKind::Added => "ADDED",
            WatchKind::Modified => "MODIFIED",
            WatchKind::Deleted => "DELETED",
            WatchKind::Bookmark => "BOOKMARK",
            WatchKind::Error => "ERROR",
        }
    }
}

/// Any value as a body: one line with a line feed at its end, or indented without one, as a real server sends them.
pub fn encode<T: Serialize + ?Sized>(value: &T, pretty: bool) -> Bytes {
    let encoded = if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    // Only maps with keys that are not strings can fail, and nothing in this crate has any.
    let mut body = encoded.expect("wire types have string keys");
    if !pretty {
        body.push(b'\n');
    }
    Bytes::from(body)
}

/// An object that is already JSON as a body: the same bytes and a line feed, or indented.
pub fn encode_raw(object: &[u8], pretty: bool) -> Bytes {
    let raw = pretty.then(|| serde_json::from_slice::<Value>(object).ok()).flatten();
    if let Some(value) = raw {
        return encode(&value, true);
    }
    let mut body = BytesMut::with_capacity(object.len() + 1);
    body.put_slice(object);
    body.put_u8(b'\n');
    body.freeze()
}

/// Whether a list that ends says so: those of custom resources do, with an empty `continue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spelled {
    /// What is empty is left out.
    Short,
    /// `continue` is always there.
    Full,
}

/// A list of objects that are already JSON, each in two pieces: what stands before it may differ from what is stored.
///
/// The keys come in alphabetical order as those of the objects do: `apiVersion`, `items`, `kind`, `metadata`.
pub fn list<'a, I>(api_version: &str, list_kind: &str, meta: &ListMeta, spelled: Spelled, items: I) -> Bytes
where
    I: IntoIterator<Item = [&'a [u8]; 2]>,
    I::IntoIter: Clone,
{
    let items = items.into_iter();
    let size: usize = items.clone().map(|[head, tail]| head.len() + tail.len() + 1).sum();
    let mut body = BytesMut::with_capacity(size + 160 + meta.continue_token.len());
    body.put_slice(b"{\"apiVersion\":");
    put_string(&mut body, api_version);
    body.put_slice(b",\"items\":[");
    for (index, [head, tail]) in items.enumerate() {
        if index > 0 {
            body.put_u8(b',');
        }
        body.put_slice(head);
        body.put_slice(tail);
    }
    body.put_slice(b"],\"kind\":");
    put_string(&mut body, list_kind);
    body.put_slice(b",\"metadata\":");
    put_list_meta(&mut body, meta, spelled);
    body.put_slice(b"}\n");
    body.freeze()
}

/// One line of a watch around an object that is already JSON.
pub fn watch_line(kind: WatchKind, object: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(object.len() + 32);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(kind.as_str().as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(object.strip_suffix(b"\n").unwrap_or(object));
    line.put_slice(b"}\n");
    line.freeze()
}

/// The object of a bookmark.
pub fn bookmark_object(
    api_version: &str,
    kind: &str,
    resource_version: &str,
    initial_events_end: bool,
) -> Bytes {
    let mut object = BytesMut::with_capacity(160);
    object.put_slice(b"{\"apiVersion\":");
    put_string(&mut object, api_version);
    object.put_slice(b",\"kind\":");
    put_string(&mut object, kind);
    object.put_slice(b",\"metadata\":{");
    if initial_events_end {
        object.put_slice(b"\"annotations\":{\"");
        object.put_slice(INITIAL_EVENTS_END.as_bytes());
        object.put_slice(b"\":\"true\"},");
    }
    object.put_slice(b"\"resourceVersion\":");
    put_string(&mut object, resource_version);
    object.put_slice(b"}}");
    object.freeze()
}

/// A bookmark as a watch line.
pub fn bookmark(api_version: &str, kind: &str, resource_version: &str, initial_events_end: bool) -> Bytes {
    watch_line(WatchKind::Bookmark, &bookmark_object(api_version, kind, resource_version, initial_events_end))
}

/// The failure that ends a watch, as a watch line.
pub fn watch_error(status: &Status) -> Bytes {
    watch_line(WatchKind::Error, &status.to_json(false))
}

/// The metadata alone of an object that is already JSON, as `PartialObjectMetadata` has it.
///
/// `version` is that of the group `meta.k8s.io`. The metadata's bytes are taken over as they stand. Nothing when the
/// bytes are not an object with metadata.
pub fn partial_object(object: &[u8], version: &str) -> Option<Bytes> {
    #[derive(serde::Deserialize)]
    struct OnlyMetadata<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let found: OnlyMetadata<'_> = serde_json::from_slice(object).ok()?;
    let metadata = found.metadata.get().as_bytes();
    let mut out = BytesMut::with_capacity(metadata.len() + 80);
    out.put_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
    out.put_slice(version.as_bytes());
    out.put_slice(b"\",\"metadata\":");
    out.put_slice(metadata);
    out.put_u8(b'}');
    Some(out.freeze())
}

/// A `PartialObjectMetadataList` of objects that [`partial_object`] made.
pub fn partial_list<'a, I>(version: &str, meta: &ListMeta, items: I) -> Bytes
where
    I: IntoIterator<Item = &'a [u8]>,
{
    let mut body = BytesMut::with_capacity(1024);
    body.put_slice(b"{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/");
    body.put_slice(version.as_bytes());
    body.put_slice(b"\",\"metadata\":");
    put_list_meta(&mut body, meta, Spelled::Short);
    body.put_slice(b",\"items\":");
    let mut is_empty = true;
    for item in items {
        body.put_u8(if std::mem::take(&mut is_empty) { b'[' } else { b',' });
        body.put_slice(item);
    }
    // A real server has nothing there rather than an empty list.
    body.put_slice(if is_empty { b"null}\n" } else { b"]}\n" });
    body.freeze()
}

/// The metadata of a list in alphabetical order of its keys.
fn put_list_meta(body: &mut BytesMut, meta: &ListMeta, spelled: Spelled) {
    body.put_u8(b'{');
    let mut first = true;
    let mut key = |body: &mut BytesMut, name: &[u8]| {
        if !std::mem::take(&mut first) {
            body.put_u8(b',');
        }
        body.put_slice(name);
    };
    if !meta.continue_token.is_empty() || spelled == Spelled::Full {
        key(body, b"\"continue\":");
        put_string(body, &meta.continue_token);
    }
    if let Some(count) = meta.remaining_item_count {
        key(body, b"\"remainingItemCount\":");
        let _ = write!(body, "{count}");
    }
    if !meta.resource_version.is_empty() {
        key(body, b"\"resourceVersion\":");
        put_string(body, &meta.resource_version);
    }
    body.put_u8(b'}');
}

/// A JSON string; the names that reach this are nearly always free of anything to escape.
fn put_string(body: &mut BytesMut, text: &str) {
    if text.bytes().all(|b| b >= 0x20 && b != b'"' && b != b'\\') {
        body.put_u8(b'"');
        body.put_slice(text.as_bytes());
        body.put_u8(b'"');
    } else {
        body.put_slice(Value::from(text).to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_list_is_the_bytes_of_its_items() {
        let meta = ListMeta {
            resource_version: "7".into(),
            continue_token: "a\"b".into(),
            remaining_item_count: Some(3),
        };
        let items: [[&[u8]; 2]; 2] = [[b"{\"a\"", b":1}"], [b"", b"{}"]];
        let body = list("v1", "PodList", &meta, Spelled::Short, items);
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            json!({"apiVersion": "v1", "items": [{"a": 1}, {}], "kind": "PodList",
                   "metadata": {"continue": "a\"b", "remainingItemCount": 3, "resourceVersion": "7"}})
        );
        assert!(text(&body).ends_with("}\n"));
        let empty = list("v1", "PodList", &ListMeta::default(), Spelled::Short, []);
        assert_eq!(
            text(&empty),
            "{\"apiVersion\":\"v1\",\"items\":[],\"kind\":\"PodList\",\"metadata\":{}}\n"
        );
    }

    #[test]
    fn a_watch_event_is_one_line() {
        assert_eq!(
            text(&watch_line(WatchKind::Added, b"{\"a\":1}\n")),
            "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n"
        );
        let expired = Status::too_old_resource_version(1, 241);
        assert_eq!(
            text(&watch_error(&expired)),
            "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\
             \"status\":\"Failure\",\"message\":\"too old resource version: 1 (241)\",\"reason\":\"Expired\",\
             \"code\":410}}\n"
        );
    }

    #[test]
    fn the_bookmark_that_ends_initial_events_says_so() {
        assert_eq!(
            text(&bookmark("g/v1", "Kind", "243", true)),
            "{\"type\":\"BOOKMARK\",\"object\":{\"apiVersion\":\"g/v1\",\"kind\":\"Kind\",\"metadata\":\
             {\"annotations\":{\"k8s.io/initial-events-end\":\"true\"},\"resourceVersion\":\"243\"}}}\n"
        );
        assert!(!text(&bookmark("g/v1", "Kind", "243", false)).contains("annotations"));
    }

    #[test]
    fn metadata_is_taken_over_as_it_stands() {
        let object = br#"{"apiVersion":"v1","metadata":{"name":"x","labels":{"a":"b"}},"spec":{}}"#;
        assert_eq!(
            text(&partial_object(object, "v1").unwrap()),
            r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","labels":{"a":"b"}}}"#
        );
        let meta = ListMeta::default();
        let list = |items: &[&[u8]]| text(&partial_list("v1", &meta, items.iter().copied())).to_owned();
        let head =
            r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":"#;
        assert_eq!(list(&[]), format!("{head}null}}\n"));
        assert_eq!(list(&[b"1", b"2"]), format!("{head}[1,2]}}\n"));
        assert!(partial_object(b"[]", "v1").is_none());
        assert!(partial_object(b"{}", "v1").is_none());
    }

    #[test]
    fn a_pretty_answer_has_the_same_content() {
        assert_eq!(text(&encode_raw(b"{\"a\":[1]}", true)), "{\n  \"a\": [\n    1\n  ]\n}");
        assert_eq!(text(&encode_raw(b"{\"a\":[1]}", false)), "{\"a\":[1]}\n");
    }
}
