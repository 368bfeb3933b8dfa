//! An object of any of our kinds, read from JSON.
//!
//! Owns the way from a document to a typed object: find the kind, prepare, validate, convert. Used where objects
//! do not come from an API server, which would have done the same.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    AddOnPlacementScore, ClusterClaim, EvictionPolicy, ManagedCluster, ManagedClusterSet,
    ManagedClusterSetBinding, Placement, PlacementDecision,
    kinds::{KindInfo, kind_info},
    replacement::{Replacement, ReplacementPolicy},
    schema::{FieldPath, Problem, prepare, unknown_fields, validate, validate_metadata},
};

/// An object of any of our kinds.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant holds the kind it is named after")]
pub enum Object {
    ManagedCluster(Box<ManagedCluster>),
    ManagedClusterSet(Box<ManagedClusterSet>),
    ManagedClusterSetBinding(Box<ManagedClusterSetBinding>),
    Placement(Box<Placement>),
    PlacementDecision(Box<PlacementDecision>),
    AddOnPlacementScore(Box<AddOnPlacementScore>),
    ClusterClaim(Box<ClusterClaim>),
    EvictionPolicy(Box<EvictionPolicy>),
    ReplacementPolicy(Box<ReplacementPolicy>),
    Replacement(Box<Replacement>),
}

/// An object and what should be said to whoever wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The object, with defaults filled in.
    pub object: Object,
    /// Fields that nobody will read; most likely misspelt.
    pub unknown_fields: Vec<FieldPath>,
}

/// Why a document is not one of our objects.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// The document belongs to somebody else; not an error where documents are mixed.
    #[error("{api_version} {kind} is not a kind of this program")]
    UnknownKind {
        /// The `apiVersion` it carries, possibly empty.
        api_version: String,
        /// The `kind` it carries, possibly empty.
        kind: String,
    },
    /// The document is one of ours, and wrong.
    #[error("{kind} {name} is invalid: {}", sentence(problems))]
    Invalid {
        /// The kind.
        kind: &'static str,
        /// The name, as far as it has one.
        name: String,
        /// All that is wrong with it.
        problems: Vec<Problem>,
    },
    /// The document is valid and still cannot be read: a defect of this program.
    #[error("{kind} {name} is valid but cannot be read: {reason}")]
    Unreadable {
        /// The kind.
        kind: &'static str,
        /// The name, as far as it has one.
        name: String,
        /// What the reader said.
        reason: String,
    },
}

impl Object {
    /// Reads a document: fills in defaults, finds all problems, and converts.
    pub fn read(mut document: Value) -> Result<Reading, ReadError> {
        let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let Some(info) = kind_info(&api_version, &kind) else {
            return Err(ReadError::UnknownKind { api_version, kind });
        };
        let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let unknown_fields = unknown_fields(&document, info.structure());
        prepare(&mut document, info.structure());
        let mut problems = validate_metadata(&document, info);
        problems.extend(validate(&document, info.structure()));
        if !problems.is_empty() {
            return Err(ReadError::Invalid { kind: info.kind, name, problems });
        }
        let object = convert(document, info).map_err(|reason| ReadError::Unreadable {
            kind: info.kind,
            name,
            reason: reason.to_string(),
        })?;
        Ok(Reading { object, unknown_fields })
    }

    /// The object's metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::ManagedCluster(object) => object.meta(),
            Self::ManagedClusterSet(object) => object.meta(),
            Self::ManagedClusterSetBinding(object) => object.meta(),
            Self::Placement(object) => object.meta(),
            Self::PlacementDecision(object) => object.meta(),
            Self::AddOnPlacementScore(object) => object.meta(),
            Self::ClusterClaim(object) => object.meta(),
            Self::EvictionPolicy(object) => object.meta(),
            Self::ReplacementPolicy(object) => object.meta(),
            Self::Replacement(object) => object.meta(),
        }
    }

    /// The object as JSON, in its stored version.
    pub fn to_value(&self) -> Value {
        let value = match self {
            Self::ManagedCluster(object) => serde_json::to_value(object),
            Self::ManagedClusterSet(object) => serde_json::to_value(object),
            Self::ManagedClusterSetBinding(object) => serde_json::to_value(object),
            Self::Placement(object) => serde_json::to_value(object),
            Self::PlacementDecision(object) => serde_json::to_value(object),
            Self::AddOnPlacementScore(object) => serde_json::to_value(object),
            Self::ClusterClaim(object) => serde_json::to_value(object),
            Self::EvictionPolicy(object) => serde_json::to_value(object),
            Self::ReplacementPolicy(object) => serde_json::to_value(object),
            Self::Replacement(object) => serde_json::to_value(object),
        };
        value.expect("our types have string keys and finite numbers only")
    }
}

fn convert(document: Value, info: &KindInfo) -> serde_json::Result<Object> {
    fn typed<T: DeserializeOwned>(document: Value) -> serde_json::Result<Box<T>> {
        serde_json::from_value(document).map(Box::new)
    }
    match info.kind {
        "ManagedCluster" => typed(document).map(Object::ManagedCluster),
        "ManagedClusterSet" => typed(document).map(Object::ManagedClusterSet),
        "ManagedClusterSetBinding" => typed(document).map(Object::ManagedClusterSetBinding),
        "Placement" => typed(document).map(Object::Placement),
        "PlacementDecision" => typed(document).map(Object::PlacementDecision),
        "AddOnPlacementScore" => typed(document).map(Object::AddOnPlacementScore),
        "ClusterClaim" => typed(document).map(Object::ClusterClaim),
        "EvictionPolicy" => typed(document).map(Object::EvictionPolicy),
        "ReplacementPolicy" => typed(document).map(Object::ReplacementPolicy),
        "Replacement" => typed(document).map(Object::Replacement),
        other => unreachable!("{other} is in the registry without a type"),
    }
}

fn sentence(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_of_another_program_is_told_from_a_wrong_one() {
        let foreign = Object::read(json!({"apiVersion": "v1", "kind": "Pod"})).unwrap_err();
        assert_eq!(foreign.to_string(), "v1 Pod is not a kind of this program");
        let wrong = Object::read(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement",
            "metadata": {"name": "p"},
            "spec": {"numberOfClusters": "three", "sortBy": "Size"},
        }))
        .unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "Placement p is invalid: spec.numberOfClusters: Invalid value: \"three\": must be of type integer: \
             \"string\"; spec.sortBy: Unsupported value: \"Size\": supported values: \"ClusterName\", \"Score\""
        );
    }

    #[test]
    fn defaults_are_filled_in_and_unknown_fields_are_named() {
        let reading = Object::read(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1alpha1",
            "kind": "Placement",
            "metadata": {"name": "p"},
            "spec": null,
            "specs": {},
        }))
        .unwrap();
        assert_eq!(reading.unknown_fields.iter().map(FieldPath::as_str).collect::<Vec<_>>(), ["specs"]);
        assert_eq!(
            reading.object.to_value(),
            json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta1",
                "kind": "Placement",
                "metadata": {"name": "p"},
                "spec": {"scoreRateLimit": "1m", "sortBy": "ClusterName"},
            })
        );
    }

    #[test]
    fn a_document_that_is_no_object_is_no_kind() {
        for document in [json!(null), json!([]), json!("x"), json!({"kind": 7})] {
            assert!(matches!(Object::read(document), Err(ReadError::UnknownKind { .. })));
        }
    }
}
