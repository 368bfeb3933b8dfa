//! The descriptions of types and fields, as [`k8s_openapi`] has them.
//!
//! Owns nothing but the way to them: one walk over its schemas on first use. A field that this version of the library does not
//! know has no description.

use std::{collections::HashMap, sync::OnceLock};

use k8s_openapi::{
    api::{
        admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
        authorization::v1 as authorization, autoscaling::v1 as autoscaling, batch::v1 as batch,
        coordination::v1 as coordination, core::v1 as core, discovery::v1 as discovery, events::v1 as events,
        policy::v1 as policy, rbac::v1 as rbac, scheduling::v1 as scheduling, storage::v1 as storage,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions,
    apimachinery::pkg::apis::meta::v1 as meta,
};
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

/// Descriptions by type and by field of a type.
#[derive(Debug, Default)]
pub(crate) struct Prose {
    types: HashMap<String, (Option<String>, HashMap<String, String>)>,
}

impl Prose {
    /// The description of a type.
    pub(crate) fn whole(&self, name: &str) -> Option<&str> {
        self.types.get(name)?.0.as_deref()
    }

    /// The description of a field.
    pub(crate) fn field(&self, name: &str, field: &str) -> Option<&str> {
        self.types.get(name)?.1.get(field).map(String::as_str)
    }
}

/// The descriptions, collected on first use.
pub(crate) fn prose() -> &'static Prose {
    static PROSE: OnceLock<Prose> = OnceLock::new();
    PROSE.get_or_init(collect)
}

macro_rules! walk {
    ($generator:ident: $($kind:ty),* $(,)?) => { $($generator.subschema_for::<$kind>();)* };
}

fn collect() -> Prose {
    let mut generator = SchemaGenerator::default();
    walk!(generator:
        admission::MutatingWebhookConfiguration, admission::ValidatingWebhookConfiguration,
        apps::ControllerRevision, apps::DaemonSet, apps::Deployment, apps::ReplicaSet, apps::StatefulSet,
        authentication::SelfSubjectReview, authentication::TokenRequest, authentication::TokenReview,
        authorization::LocalSubjectAccessReview, authorization::SelfSubjectAccessReview,
        authorization::SelfSubjectRulesReview, authorization::SubjectAccessReview,
        autoscaling::Scale, batch::Job, coordination::Lease,
        core::Binding, core::ConfigMap, core::Endpoints, core::Event, core::LimitRange, core::Namespace, core::Node,
        core::PersistentVolume, core::PersistentVolumeClaim, core::Pod, core::ResourceQuota, core::Secret, core::Service,
        core::ServiceAccount, discovery::EndpointSlice, events::Event, policy::Eviction, policy::PodDisruptionBudget,
        rbac::ClusterRole, rbac::ClusterRoleBinding, rbac::Role, rbac::RoleBinding, scheduling::PriorityClass,
        storage::StorageClass, extensions::CustomResourceDefinition, meta::DeleteOptions, meta::ListMeta, meta::Status,
    );
    let definitions = generator.take_definitions(false);
    Prose { types: definitions.into_iter().map(|(name, schema)| (name, read(&schema))).collect() }
}

fn read(schema: &Value) -> (Option<String>, HashMap<String, String>) {
    let words = |value: &Value| value.get("description").and_then(Value::as_str).map(str::to_owned);
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    (words(schema), properties.filter_map(|(name, value)| Some((name.clone(), words(value)?))).collect())
}
