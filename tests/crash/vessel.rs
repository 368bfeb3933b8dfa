//! The objects that are written: each can be told whole from torn by itself.
//!
//! An object carries a sequence number, and everything else in it follows from that number. What a reader finds is
//! therefore either exactly what one write sent, or damaged.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The label that followers with a selector go by. It changes as the sequence does, so that objects come and go.
pub(crate) const PARITY: &str = "parity";

/// The custom kind's definition.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Where objects of one kind are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Collection {
    /// A built-in kind, in one namespace.
    Maps,
    /// A custom kind, without namespaces.
    Vessels,
}

impl Collection {
    pub(crate) const ALL: [Self; 2] = [Self::Maps, Self::Vessels];

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Maps => "/api/v1/namespaces/default/configmaps",
            Self::Vessels => "/apis/test.berth.dev/v1/vessels",
        }
    }

    pub(crate) fn item(self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Maps => ("v1", "ConfigMap"),
            Self::Vessels => ("test.berth.dev/v1", "Vessel"),
        }
    }

    /// The object that write number `sequence` sends, on the condition that it is still at `revision`.
    pub(crate) fn object(self, name: &str, sequence: u64, revision: Option<u64>) -> Value {
        let (api_version, kind) = self.kind();
        let mut object = json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "labels": {PARITY: parity(sequence)}},
            "data": {"sequence": sequence.to_string(), "cargo": cargo(sequence)},
        });
        if let Some(revision) = revision {
            object["metadata"]["resourceVersion"] = json!(revision.to_string());
        }
        object
    }
}

/// Whether an object is the hub's own, which it puts into every namespace.
pub(crate) fn is_the_hubs(object: &Value) -> bool {
    object["metadata"]["name"] == "kube-root-ca.crt"
}

/// What a client was shown of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) name: String,
    pub(crate) revision: u64,
    pub(crate) sequence: u64,
    pub(crate) uid: String,
}

impl Sighting {
    /// Reads an object; one that is not exactly what some write sent is an error.
    pub(crate) fn read(object: &Value) -> Result<Self, String> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let read = || {
            Some(Self {
                name: text("/metadata/name")?,
                revision: text("/metadata/resourceVersion")?.parse().ok()?,
                sequence: text("/data/sequence")?.parse().ok()?,
                uid: text("/metadata/uid")?,
            })
        };
        let sighting =
            read().ok_or_else(|| format!("an object lacks what every object was sent with: {object}"))?;
        let whole = object["data"].as_object().is_some_and(|data| data.len() == 2)
            && text("/data/cargo").is_some_and(|found| found == cargo(sighting.sequence))
            && text("/metadata/labels/parity").is_some_and(|found| found == parity(sighting.sequence));
        if whole { Ok(sighting) } else { Err(format!("an object is torn: {object}")) }
    }
}

pub(crate) fn parity(sequence: u64) -> &'static str {
    if sequence.is_multiple_of(2) { "even" } else { "odd" }
}

/// Text of up to 4 kB: small objects share a page of the store, large ones span several.
fn cargo(sequence: u64) -> String {
    let mut state = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let words = if sequence.is_multiple_of(17) { 256 } else { 1 + next() % 24 };
    let mut text = String::new();
    for _ in 0..words {
        let _ = write!(text, "{:016x}", next());
    }
    text
}

/// The definition of the custom kind.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "vessels.test.berth.dev"},
        "spec": {
            "group": "test.berth.dev",
            "scope": "Cluster",
            "names": {"plural": "vessels", "kind": "Vessel"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}},
            }}}],
        },
    })
}

#[test]
fn a_torn_object_is_told_from_a_whole_one() {
    let mut object = Collection::Maps.object("a", 34, Some(7));
    object["metadata"]["uid"] = json!("u");
    let whole = Sighting::read(&object).unwrap();
    assert_eq!((whole.revision, whole.sequence), (7, 34));
    let mut other = object.clone();
    other["data"]["sequence"] = json!("36");
    assert!(Sighting::read(&other).unwrap_err().contains("torn"));
    object["data"]["cargo"] = json!("");
    assert!(Sighting::read(&object).unwrap_err().contains("torn"));
}
