//! What an object is before it is read: its name, its revision, and what of it nobody reads.
//!
//! Owns cutting out which fields somebody owns, which is half of many an object and costs more to read than the rest of it,
//! and one look over the JSON of an object that builds nothing: it tells the name of an object that cannot be read.

use std::borrow::Cow;

use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::kind::Kind;

/// An object, seen from afar.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Outline<'j> {
    #[serde(borrow, default)]
    metadata: Metadata<'j>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'j> {
    #[serde(borrow, default)]
    name: Cow<'j, str>,
    #[serde(borrow, default)]
    namespace: Cow<'j, str>,
    #[serde(borrow, default)]
    uid: Cow<'j, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'j, str>,
}

impl Outline<'_> {
    /// Its name; `None` if it has none, which no object of a server has.
    pub(crate) fn key(&self) -> Option<ObjectKey> {
        let Metadata { name, namespace, .. } = &self.metadata;
        (!name.is_empty()).then(|| ObjectKey::new(namespace, name))
    }

    /// Its revision; `None` if it has none.
    pub(crate) fn revision(&self) -> Option<&str> {
        Some(&*self.metadata.resource_version).filter(|revision| !revision.is_empty())
    }

    /// Who it is, as far as the end of an object is concerned.
    pub(crate) fn identity(&self) -> ObjectMeta {
        let Metadata { name, namespace, uid, resource_version, .. } = &self.metadata;
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ObjectMeta {
            name: given(name),
            namespace: given(namespace),
            uid: given(uid),
            resource_version: given(resource_version),
            ..ObjectMeta::default()
        }
    }
}

/// What stands before who owns which field, as API servers write it. No text of an object has these bytes in it, because a
/// quote in a text is written with a backslash, and of the kinds we read none has a list of that name elsewhere.
const MANAGED: &[u8] = b"\"managedFields\":[";
/// What stands where something was cut out.
const NOTHING: &str = "null";
/// The memory that is kept to read the next object in.
const SLIM_BYTES_KEPT: usize = 64 << 10;

/// Reads an object, or what an object of that kind is in. Where `text` is not written as an API server writes it, nothing is
/// cut out, and it is read all the same.
pub(crate) fn read<'j, T: Deserialize<'j>>(
    kind: Kind,
    text: &'j str,
    slim: &'j mut String,
) -> serde_json::Result<T> {
    // Who renews a lease, and when, is told by who owns its fields.
    let Some((before, after)) = (kind != Kind::Lease).then(|| around_owners(text)).flatten() else {
        return serde_json::from_str(text);
    };
    slim.clear();
    slim.shrink_to(SLIM_BYTES_KEPT);
    slim.extend([before, NOTHING, after]);
    serde_json::from_str(slim)
}

/// What stands before and after the list of who owns which field.
fn around_owners(text: &str) -> Option<(&str, &str)> {
    let begin = memchr::memmem::find(text.as_bytes(), MANAGED)? + MANAGED.len() - 1;
    let end = begin + list_length(&text.as_bytes()[begin..])?;
    Some((&text[..begin], &text[end..]))
}

/// The length of the list at the beginning of `json`; `None` where it has no end.
fn list_length(json: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match json.get(at)? {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b'"' => at += text_length(&json[at + 1..])?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The length of a text whose beginning has been read, with its end.
fn text_length(json: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use berth_api::Placement;
    use berth_api::core::Lease;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const PLACEMENT: &str = r#"{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",
        "metadata":{"name":"p","managedFields":[{"manager":"k","fieldsV1":{"f:spec":{"]":{}}}}],"namespace":"n",
        "resourceVersion":"7","uid":"u"},"spec":{"numberOfClusters":3}}"#;

    #[test]
    fn an_object_is_the_same_but_for_who_owns_its_fields() {
        let outline: Outline<'_> = serde_json::from_str(PLACEMENT).unwrap();
        assert_eq!(outline.key(), Some(ObjectKey::new("n", "p")));
        assert_eq!(outline.revision(), Some("7"));
        let (before, after) = around_owners(PLACEMENT).unwrap();
        assert!(
            before.ends_with(r#""managedFields":"#) && after.starts_with(r#","namespace":"n""#),
            "{after}"
        );
        let read: Placement = read(Kind::Placement, PLACEMENT, &mut String::new()).unwrap();
        let mut expected: Placement = serde_json::from_str(PLACEMENT).unwrap();
        assert!(expected.metadata.managed_fields.take().is_some());
        assert_eq!(read, expected);
    }

    #[test]
    fn who_renewed_a_lease_is_read() {
        let text = r#"{"metadata":{"name":"l","managedFields":[{"manager":"agent"}]}}"#;
        let lease: Lease = read(Kind::Lease, text, &mut String::new()).unwrap();
        assert_eq!(lease.metadata.managed_fields.unwrap().len(), 1);
    }

    #[test]
    fn a_text_that_looks_like_owners_is_not_cut() {
        let texts = json!({"metadata": {"name": "p", "annotations": {
            "last-applied": r#"{"metadata":{"managedFields":[{"manager":"k"}]}}"#, "managedFields": "[",
        }}, "spec": {}});
        let text = texts.to_string();
        assert_eq!(around_owners(&text), None);
        let read: Placement = read(Kind::Placement, &text, &mut String::new()).unwrap();
        assert_eq!(
            serde_json::to_value(read.metadata.annotations).unwrap(),
            texts["metadata"]["annotations"]
        );
    }

    #[test]
    fn owners_that_do_not_end_are_not_cut() {
        for text in [r#"{"managedFields":["#, r#"{"managedFields":[{"a":"]"#, r#"{"managedFields":["\"#] {
            assert_eq!(around_owners(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_object_without_its_owners_is_the_rest_of_it(
            owners in prop::collection::vec("[a-z\\[\\]{}\"\\\\é]{0,12}", 0..5),
            name in "[a-z\\[\\]{}\"\\\\é]{0,12}",
        ) {
            let entries: Vec<Value> = owners.iter().map(|owner| json!({"manager": owner, (&**owner): [owner]})).collect();
            let text = json!({"metadata": {"a": name, "managedFields": entries, "name": name}}).to_string();
            let read: Value = read(Kind::Cluster, &text, &mut String::new()).unwrap();
            prop_assert_eq!(read, json!({"metadata": {"a": name, "managedFields": null, "name": name}}));
        }
    }

    #[test]
    fn an_object_without_a_name_has_no_key() {
        let outline: Outline<'_> = serde_json::from_str(r#"{"spec":{}}"#).unwrap();
        assert_eq!((outline.key(), outline.revision()), (None, None));
    }

    #[test]
    fn what_is_escaped_is_a_name_all_the_same() {
        let outline: Outline<'_> = serde_json::from_str(r#"{"metadata":{"name":"a\u0062"}}"#).unwrap();
        assert_eq!(outline.key(), Some(ObjectKey::new("", "ab")));
    }

    #[test]
    fn a_lease_that_is_renewed_past_the_calendar_is_read() {
        let text = r#"{"metadata":{"name":"l"},"spec":{"renewTime":"9999-12-31T23:59:59.000000Z"}}"#;
        let lease: crate::world::Object = Kind::Lease.read(text).unwrap();
        let crate::world::Object::Lease(lease) = lease else { panic!("{lease:?}") };
        let renewed = lease.spec.as_ref().unwrap().renew_time.as_ref().unwrap();
        assert_eq!(renewed.0, jiff::Timestamp::MAX);
    }
}
