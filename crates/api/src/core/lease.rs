//! Leases.

use std::borrow::Cow;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A lease: who holds something, and when that was renewed last. All of it is kept, and a time that cannot be held does not
/// make it unreadable.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Lease {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Who holds it, since when, and for how long.
    #[serde(default, deserialize_with = "spec")]
    pub spec: Option<LeaseSpec>,
}

/// A spec as it may be written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default, deserialize_with = "crate::time::told")]
    acquire_time: Option<Time>,
    #[serde(default)]
    holder_identity: Option<String>,
    #[serde(default)]
    lease_duration_seconds: Option<i32>,
    #[serde(default)]
    lease_transitions: Option<i32>,
    #[serde(default)]
    preferred_holder: Option<String>,
    #[serde(default, deserialize_with = "crate::time::told")]
    renew_time: Option<Time>,
    #[serde(default)]
    strategy: Option<String>,
}

fn spec<'de, D: Deserializer<'de>>(source: D) -> Result<Option<LeaseSpec>, D::Error> {
    let micro = |time: Option<Time>| time.map(|Time(time)| MicroTime(time));
    Ok(Option::<Written>::deserialize(source)?.map(|written| LeaseSpec {
        acquire_time: micro(written.acquire_time),
        holder_identity: written.holder_identity,
        lease_duration_seconds: written.lease_duration_seconds,
        lease_transitions: written.lease_transitions,
        preferred_holder: written.preferred_holder,
        renew_time: micro(written.renew_time),
        strategy: written.strategy,
    }))
}

impl Serialize for Lease {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Lease", 3 + usize::from(self.spec.is_some()))?;
        object.serialize_field("apiVersion", &Self::api_version(&()))?;
        object.serialize_field("kind", &Self::kind(&()))?;
        object.serialize_field("metadata", &self.metadata)?;
        if let Some(spec) = &self.spec {
            object.serialize_field("spec", spec)?;
        }
        object.end()
    }
}

impl Resource for Lease {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Lease".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "coordination.k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "leases".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::coordination::v1 as reference;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_is_read_and_written_as_kubernetes_has_it() {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "l", "namespace": "n", "resourceVersion": "7"},
            "spec": {
                "acquireTime": "2026-01-01T00:00:00.000000Z", "holderIdentity": "one", "leaseDurationSeconds": 15,
                "leaseTransitions": 3, "preferredHolder": "two", "renewTime": "2026-01-01T00:00:05.000042Z",
                "strategy": "OldestEmulationVersion",
            },
        });
        let read: Lease = serde_json::from_value(lease.clone()).unwrap();
        let expected: reference::Lease = serde_json::from_value(lease.clone()).unwrap();
        assert_eq!((&read.metadata, &read.spec), (&expected.metadata, &expected.spec));
        assert_eq!(serde_json::to_value(&read).unwrap(), lease);
        assert_eq!(serde_json::to_value(Lease::default()).unwrap().get("spec"), None);
        assert_eq!(Lease::url_path(&(), Some("n")), reference::Lease::url_path(&(), Some("n")));
    }

    #[test]
    fn no_time_makes_a_lease_unreadable() {
        for (time, read) in [("9999-12-31T23:59:59.000000Z", Some(MicroTime(Timestamp::MAX))), ("soon", None)]
        {
            let lease = json!({"metadata": {"name": "l"}, "spec": {
                "holderIdentity": "one", "acquireTime": time, "renewTime": time,
            }});
            let spec = serde_json::from_value::<Lease>(lease).unwrap().spec.unwrap();
            assert_eq!(spec.holder_identity.as_deref(), Some("one"));
            assert_eq!((&spec.acquire_time, &spec.renew_time), (&read, &read), "{time}");
        }
    }
}
