//! What an object is before it is read: its name, its revision, and what of it nobody reads.
//!
//! Owns one look over the JSON of an object that builds nothing. It tells the name of an object that cannot be read, and
//! cuts out which fields somebody owns, which is half of many an object and costs more to read than the rest of it.

use std::borrow::Cow;

use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

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
    #[serde(borrow, default)]
    managed_fields: Option<&'j RawValue>,
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

    /// Reads all of it out of `text`, which this is the outline of.
    pub(crate) fn read<T: DeserializeOwned>(&self, kind: Kind, text: &str) -> serde_json::Result<T> {
        // Who renews a lease, and when, is told by who owns its fields.
        let cut = self.metadata.managed_fields.filter(|_| kind != Kind::Lease);
        match cut.and_then(|cut| text.split_at_checked(place(text, cut.get())?).zip(Some(cut.get().len()))) {
            Some(((before, rest), length)) => {
                let after = &rest[length..];
                let mut slim = String::with_capacity(before.len() + after.len() + NOTHING.len());
                slim.extend([before, NOTHING, after]);
                serde_json::from_str(&slim)
            }
            None => serde_json::from_str(text),
        }
    }
}

/// What stands where something was cut out.
const NOTHING: &str = "null";

/// Where in `text` a part of it begins.
fn place(text: &str, part: &str) -> Option<usize> {
    let begin = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (begin + part.len() <= text.len()).then_some(begin)
}

#[cfg(test)]
mod tests {
    use berth_api::Placement;
    use k8s_openapi::api::coordination::v1::Lease;

    use super::*;

    const PLACEMENT: &str = r#"{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",
        "metadata":{"name":"p","managedFields":[{"manager":"k","fieldsV1":{"f:spec":{"]":{}}}}],"namespace":"n",
        "resourceVersion":"7","uid":"u"},"spec":{"numberOfClusters":3}}"#;

    #[test]
    fn an_object_is_the_same_but_for_who_owns_its_fields() {
        let outline: Outline<'_> = serde_json::from_str(PLACEMENT).unwrap();
        assert_eq!(outline.key(), Some(ObjectKey::new("n", "p")));
        assert_eq!(outline.revision(), Some("7"));
        let read: Placement = outline.read(Kind::Placement, PLACEMENT).unwrap();
        let mut expected: Placement = serde_json::from_str(PLACEMENT).unwrap();
        assert!(expected.metadata.managed_fields.take().is_some());
        assert_eq!(read, expected);
    }

    #[test]
    fn who_renewed_a_lease_is_read() {
        let text = r#"{"metadata":{"name":"l","managedFields":[{"manager":"agent"}]}}"#;
        let outline: Outline<'_> = serde_json::from_str(text).unwrap();
        let lease: Lease = outline.read(Kind::Lease, text).unwrap();
        assert_eq!(lease.metadata.managed_fields.unwrap().len(), 1);
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
}
