//! The form that objects at a path have: the resource's own, or a scale's.
//!
//! Owns the one place where reading an object as a built-in kind and reading it by a definition's schema part. What is
//! done to objects beyond that is in [`super::rules`].

use std::collections::HashMap;
use std::sync::OnceLock;

use berth_hub_kinds::{Builtins, TypeId, conform, defaults, strategy};
use berth_hub_merge::ObjectType;
use berth_hub_wire::gotext::quote;
use berth_hub_wire::{GroupVersionKind, Status};
use berth_schema::Schema;
use serde_json::Value;

use crate::registry::{Origin, Resource};

use super::act::{Act, Part};
use super::delete::is_definitions;
use super::{custom, growth, meta};

/// What bodies at a path are read as.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form<'a> {
    /// Objects of the resource.
    Of(&'a Resource),
    /// Scales of the resource's objects.
    Scale,
}

impl<'a> Act<'a> {
    pub(super) fn form(&self) -> Form<'a> {
        if self.part == Part::Scale { Form::Scale } else { Form::Of(self.resource) }
    }
}

impl<'a> Form<'a> {
    /// The kind.
    pub(super) fn gvk(self) -> GroupVersionKind {
        match self {
            Form::Of(resource) => resource.gvk(),
            Form::Scale => GroupVersionKind::new("autoscaling", "v1", "Scale"),
        }
    }

    /// Whether bodies are read by a definition's schema.
    pub(super) fn is_custom(self) -> bool {
        matches!(self, Form::Of(resource) if resource.is_custom())
    }

    /// Reads a value as an object of this form: what it does not know is cut away, with a strict error for each.
    pub(super) fn fit(self, object: Value) -> Result<(Value, Vec<String>), String> {
        let type_id = match self {
            Form::Scale => scale_type(),
            Form::Of(resource) => match &resource.origin {
                Origin::Custom(version) => return custom::fit(resource, version, object),
                Origin::Builtin(kind) => kind.type_id,
            },
        };
        let read = conform::conform(type_id, object).map_err(|error| error.to_string())?;
        let (mut object, gvk) = (read.value, self.gvk());
        let fields = meta::map(&mut object);
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.into());
        let unknown = read.unknown.iter().map(|path| format!("unknown field {}", quote(path)));
        Ok((object, unknown.collect()))
    }

    /// Fills in defaults. Fails when those of a definition add too much.
    pub(super) fn fill(self, object: &mut Value) -> Result<(), Status> {
        match self {
            Form::Scale => {}
            Form::Of(resource) => match &resource.origin {
                Origin::Custom(version) => custom::fill(resource, version, object)?,
                Origin::Builtin(kind) => {
                    defaults::apply(kind, object);
                    if is_definitions(resource) {
                        berth_schema::default_definition(object);
                    }
                }
            },
        }
        Ok(())
    }

    /// Fills in defaults where the object may have more than its form knows; nothing is taken away.
    pub(super) fn fill_raw(self, object: &mut Value) -> Result<(), Status> {
        match self {
            Form::Of(resource) if resource.is_custom() => {
                let allowance = growth::allowance(object);
                berth_schema::apply_defaults(object, resource.schema(), allowance).map_err(growth::refused)
            }
            form => form.fill(object),
        }
    }

    /// The schema that patches go by.
    pub(super) fn schema(self) -> Schema<'a> {
        match self {
            Form::Of(resource) => resource.typed_schema(),
            Form::Scale => Builtins::load().schema(scale_type()),
        }
    }

    /// The type by which fields are owned.
    pub(super) fn tracked(self) -> ObjectType<'a> {
        let type_id = match self {
            Form::Scale => scale_type(),
            Form::Of(resource) => match &resource.origin {
                Origin::Custom(version) => {
                    return ObjectType::custom(self.schema()).with_versions(&**version);
                }
                Origin::Builtin(kind) => kind.type_id,
            },
        };
        ObjectType::builtin(self.schema(), zero(type_id)).alone()
    }

    /// The fields that a writer of this part cannot own.
    pub(super) fn reset(self, part: Part) -> &'static [&'static [&'static str]] {
        let Form::Of(resource) = self else { return &[] };
        match (&resource.origin, part) {
            (Origin::Builtin(kind), _) => strategy::reset_paths(kind, part.subresource()),
            (Origin::Custom(version), Part::Whole) if version.status => &[&["status"]],
            (Origin::Custom(_), Part::Whole) => &[],
            (Origin::Custom(_), _) => &[&["metadata"], &["spec"]],
        }
    }
}

/// What an object of a built-in type is before anything is said.
pub(crate) fn zero(type_id: TypeId) -> &'static Value {
    static ZEROS: OnceLock<HashMap<TypeId, Value>> = OnceLock::new();
    let zeros = ZEROS.get_or_init(|| {
        let types = Builtins::load().kinds.iter().map(|kind| kind.type_id).chain([scale_type()]);
        let empty = || Value::Object(serde_json::Map::new());
        types.filter_map(|id| Some((id, conform::conform(id, empty()).ok()?.value))).collect()
    });
    zeros.get(&type_id).unwrap_or(&Value::Null)
}

fn scale_type() -> TypeId {
    static SCALE: OnceLock<TypeId> = OnceLock::new();
    *SCALE.get_or_init(|| {
        Builtins::load().types.find("autoscaling.v1.Scale").expect("scales are in the table of types")
    })
}

#[cfg(test)]
mod tests {
    use berth_hub_wire::PatchType;
    use serde_json::json;

    use super::*;
    use crate::resource::fixtures::{act, builtin, patched, placement, placements, stored, updated};

    /// The object with one entry more, of a version.
    fn with_entry(mut live: Value, version: &str) -> Value {
        let entries = live["metadata"]["managedFields"].as_array_mut().unwrap();
        entries.push(
            json!({"manager": "other", "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}, "time": "2026-11-15T22:50:54Z"}),
        );
        live
    }

    #[test]
    fn a_built_in_kind_forgets_entries_of_versions_it_has_not() {
        let maps = builtin("", "configmaps");
        let act = Act { manager: "m2", ..act(&maps, "m") };
        let live = stored(&act, &json!({"metadata": {"name": "m"}, "data": {"a": "b"}}), "5");
        let live = with_entry(live, "example.com/v1");
        let body = json!({"metadata": {"name": "m"}, "data": {"a": "c"}});
        let outcome = updated(&act, &body, Some(&live)).unwrap();
        let entries = outcome.object().unwrap()["metadata"]["managedFields"].as_array().unwrap().clone();
        assert!(!entries.is_empty());
        assert!(entries.iter().all(|entry| entry["apiVersion"] == "v1"), "{entries:?}");
    }

    #[test]
    fn a_definition_does_not_forget_a_version_silently() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({"numberOfClusters": 3})), "5");
        let gone = "cluster.open-cluster-management.io/v1alpha1";
        let live = with_entry(live, gone);
        let mut body = placement("p1", json!({"numberOfClusters": 4}));
        body["metadata"]["resourceVersion"] = "5".into();
        let outcome = updated(&act, &body, Some(&live)).unwrap();
        assert_eq!(outcome.object().unwrap()["metadata"].get("managedFields"), None);
        let config = placement("p1", json!({"numberOfClusters": 4})).to_string();
        assert_eq!(
            patched(&act, PatchType::Apply, &config, Some(&live)).unwrap_err().message,
            format!("request to convert CR to an invalid group/version: {gone}")
        );
    }
}
