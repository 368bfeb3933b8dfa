//! Resources, acts and bodies for the tests of this module.

use std::sync::Arc;

use berth_hub_kinds::Builtins;
use berth_hub_store::ResourceKey;
use berth_hub_wire::body::{Decoded, KindRule, TextFormat, decode_object};
use berth_hub_wire::{FieldValidation, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::registry::{CustomVersion, Head, Origin, Resource};

use super::act::{Act, Mint, Part};
use super::outcome::{Outcome, Step};
use super::{create, patch, update};

pub(crate) const GROUP: &str = "cluster.open-cluster-management.io";
pub(crate) const API_VERSION: &str = "cluster.open-cluster-management.io/v1beta1";
pub(crate) const NOW: &str = "2026-11-15T22:50:54Z";

/// A custom resource with defaults and a status.
pub(crate) fn placements() -> Resource {
    custom(json!({"status": {}}))
}

/// The same with a scale.
pub(crate) fn scaled_placements() -> Resource {
    let paths =
        json!({"specReplicasPath": ".spec.numberOfClusters", "statusReplicasPath": ".status.selected"});
    custom(json!({"status": {}, "scale": paths}))
}

fn custom(subresources: Value) -> Resource {
    let mut version = json!({
        "name": "v1beta1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": {"type": "object", "properties": {
                    "numberOfClusters": {"type": "integer", "format": "int32"},
                    "scoreRateLimit": {"type": "string", "default": "1m"},
                    "sortBy": {"type": "string", "default": "ClusterName"},
                }},
                "status": {"type": "object", "properties": {
                    "selected": {"type": "integer", "format": "int32"},
                }},
            },
        }},
    });
    version["subresources"] = subresources;
    let definition = json!({
        "metadata": {"name": format!("placements.{GROUP}"), "uid": "d", "resourceVersion": "1"},
        "spec": {"group": GROUP, "names": {"kind": "Placement"}, "versions": [version]},
    });
    let compiled =
        CustomVersion::compile(&definition, &definition["spec"]["versions"][0]).expect("the schema compiles");
    Resource {
        group: GROUP.into(),
        version: "v1beta1".into(),
        kind: "Placement".into(),
        list_kind: "PlacementList".into(),
        plural: "placements".into(),
        singular: "placement".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        storage: ResourceKey::new(GROUP, "placements"),
        head: Head::new(GROUP, "v1beta1", "Placement"),
        origin: Origin::Custom(Arc::new(compiled)),
    }
}

/// A built-in resource.
pub(crate) fn builtin(group: &str, plural: &str) -> Resource {
    Resource::builtin_kind(Builtins::load().resource(group, plural).expect("it is built in"))
}

/// An act on an object in the default namespace, or on a cluster-scoped one.
pub(crate) fn act<'a>(resource: &'a Resource, name: &'a str) -> Act<'a> {
    Act {
        resource,
        namespace: if resource.namespaced { "default" } else { "" },
        name,
        part: Part::Whole,
        manager: "m1",
        field_validation: FieldValidation::Warn,
        dry_run: false,
        now: time(NOW),
    }
}

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().expect("tests write times as RFC 3339")
}

pub(crate) fn mint() -> Mint {
    Mint { uid: "2160e95f-ca09-481a-be5b-74b651146f41".to_owned(), random: 7 }
}

/// A body as the wire decodes it for a resource.
pub(crate) fn sent(resource: &Resource, body: &str) -> Decoded {
    let rule = if resource.is_custom() { KindRule::FromBody } else { KindRule::FromPath };
    decode_object(TextFormat::Json, body.as_bytes(), &resource.gvk(), rule).expect("the body can be read")
}

pub(crate) fn created(act: &Act<'_>, body: &Value) -> Result<Outcome, Status> {
    let pending = create::begin(act, sent(act.resource, &body.to_string()))?;
    create::finish(act, pending, &mint())
}

/// A created object as it is stored at a revision.
pub(crate) fn stored(act: &Act<'_>, body: &Value, revision: &str) -> Value {
    at_revision(created(act, body).expect("the object is good"), revision)
}

/// What the last step of an outcome leaves, at a revision.
pub(crate) fn at_revision(outcome: Outcome, revision: &str) -> Value {
    match outcome.steps.into_iter().next_back() {
        Some(Step::Create(mut object) | Step::Update(mut object)) => {
            object["metadata"]["resourceVersion"] = revision.into();
            object
        }
        other => panic!("nothing was kept: {other:?}"),
    }
}

pub(crate) fn updated(act: &Act<'_>, body: &Value, live: Option<&Value>) -> Result<Outcome, Status> {
    let pending = update::begin(act, sent(act.resource, &body.to_string()), live)?;
    update::finish(act, pending, live, &mint())
}

pub(crate) fn patched(
    act: &Act<'_>,
    kind: berth_hub_wire::PatchType,
    body: &str,
    live: Option<&Value>,
) -> Result<Outcome, Status> {
    let read = patch::read(kind, act.field_validation, body.as_bytes(), false)?;
    let pending = patch::begin(act, &read, live)?;
    update::finish(act, pending, live, &mint())
}

/// A placement to send.
pub(crate) fn placement(name: &str, spec: Value) -> Value {
    let mut placement = json!({"apiVersion": API_VERSION, "kind": "Placement", "metadata": {"name": name}});
    placement["spec"] = spec;
    placement
}

/// A status in the form of the golden file.
pub(crate) fn shown(status: &Status) -> Value {
    serde_json::to_value(status).expect("a status is JSON")
}
