//! What a resource asks of its objects, whichever way it came to be served.
//!
//! Owns the one place where built-in kinds and custom resources part: everything above speaks of resources. The facts of
//! built-in kinds are their crate's, those of definitions are in [`super::custom`].

use std::borrow::Cow;

use berth_hub_kinds::{events, strategy, validation};
use berth_hub_wire::{Cause, GroupKind, GroupVersionKind, Status};
use berth_schema::{MetadataRules, NameRule, Problem, PruneOptions};
use serde_json::Value;

use crate::registry::{Origin, Resource};

use super::act::Part;
use super::delete::is_definitions;
use super::{custom, meta};

impl Resource {
    /// Whether this comes from a definition.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.origin, Origin::Custom(_))
    }

    /// Whether an update of an absent object makes it.
    pub(crate) fn creates_on_update(&self) -> bool {
        self.builtin().is_some_and(|kind| kind.create_on_update)
    }

    /// Whether an update may leave out the revision it is about.
    pub(crate) fn updates_unconditionally(&self) -> bool {
        self.builtin().is_some_and(|kind| kind.unconditional_update)
    }

    /// Whether a deletion answers with the object it removed rather than with a status.
    pub(crate) fn answers_deleted_object(&self) -> bool {
        const KINDS: [(&str, &str); 8] = [
            ("", "namespaces"),
            ("", "persistentvolumeclaims"),
            ("", "persistentvolumes"),
            ("", "pods"),
            ("", "resourcequotas"),
            ("", "serviceaccounts"),
            ("", "services"),
            ("storage.k8s.io", "storageclasses"),
        ];
        !self.is_custom() && KINDS.contains(&(&*self.group, &*self.plural))
    }
}

/// An object as it is kept: in the storage version of its definition, or in the first of two views.
pub(crate) fn at_rest<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.is_storage_form() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    match &resource.origin {
        Origin::Builtin(kind) => Cow::Owned(events::to_stored(kind, object)),
        Origin::Custom(version) => {
            meta::map(&mut object)
                .insert("apiVersion".to_owned(), version.storage_api_version.as_str().into());
            berth_schema::prune(
                &mut object,
                version.arena.schema(version.storage_root),
                &PruneOptions::default(),
            );
            Cow::Owned(object)
        }
    }
}

/// Makes a new object what its kind starts as.
pub(super) fn prepare_create(resource: &Resource, object: &mut Value, now: &str) {
    match &resource.origin {
        Origin::Custom(version) => custom::prepare_create(version, object),
        Origin::Builtin(kind) => strategy::prepare_for_create(kind, object, now),
    }
}

/// Keeps what a write to this part may not change, and counts generations.
pub(super) fn prepare_update(resource: &Resource, part: Part, object: &mut Value, live: &Value, now: &str) {
    match (&resource.origin, part.subresource()) {
        (Origin::Custom(version), _) => custom::prepare_update(version, part, object, live),
        (Origin::Builtin(kind), None) => strategy::prepare_for_update(kind, object, live),
        (Origin::Builtin(kind), Some(subresource)) => {
            strategy::prepare_for_subresource_update(kind, subresource, object, live);
            if part == Part::Status && kind.kind == "PersistentVolume" {
                strategy::set_phase_transition(object, live, now);
            }
        }
    }
}

/// What is wrong with a new object.
pub(super) fn check_create(resource: &Resource, object: &Value) -> Result<(), Status> {
    match &resource.origin {
        Origin::Custom(version) => custom::check_create(resource, version, object),
        Origin::Builtin(_) if is_definitions(resource) => {
            refuse(resource, object, &berth_schema::validate_definition(object, None))
        }
        Origin::Builtin(kind) => refuse(resource, object, &validation::create(kind, object)),
    }
}

/// What is wrong with an update.
pub(super) fn check_update(
    resource: &Resource,
    part: Part,
    object: &Value,
    live: &Value,
) -> Result<(), Status> {
    match &resource.origin {
        Origin::Custom(version) => custom::check_update(resource, version, part, object, live),
        Origin::Builtin(kind) => {
            // First what every kind asks of its metadata, then what the kind asks, which may well be the same again.
            let rules = MetadataRules::new(resource.namespaced, NameRule::PathSegment);
            let mut problems = berth_schema::validate_metadata(object, &rules);
            problems.extend(berth_schema::validate_metadata_update(object, live));
            if is_definitions(resource) && part == Part::Whole {
                problems.extend(berth_schema::validate_definition(object, Some(live)));
            } else {
                problems.extend(validation::update(kind, part.subresource(), object, live));
            }
            refuse(resource, object, &problems)
        }
    }
}

/// What a client is warned of about a new object.
pub(super) fn warnings(resource: &Resource, object: &Value) -> Vec<String> {
    match &resource.origin {
        Origin::Custom(_) => custom::warnings(object, None),
        Origin::Builtin(_) if is_definitions(resource) => {
            berth_schema::definition::definition_warnings(object, None)
        }
        Origin::Builtin(kind) => validation::create_warnings(kind, object),
    }
}

/// What a client is warned of about an update.
pub(super) fn warnings_on_update(
    resource: &Resource,
    part: Part,
    object: &Value,
    live: &Value,
) -> Vec<String> {
    match &resource.origin {
        Origin::Custom(_) if part == Part::Whole => custom::warnings(object, Some(live)),
        Origin::Builtin(_) if part == Part::Whole && is_definitions(resource) => {
            berth_schema::definition::definition_warnings(object, Some(live))
        }
        Origin::Builtin(kind) if part == Part::Whole => validation::update_warnings(kind, object, live),
        _ => Vec::new(),
    }
}

/// The last touch before an object is kept.
pub(super) fn canonicalize(resource: &Resource, object: &mut Value) {
    if super::lifecycle::is_namespaces(resource) {
        // Defaults knew no generated name yet.
        let name = meta::text(object, "name").to_owned();
        meta::child(meta::of(object), "labels").insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

/// Whether a kind is another view of the objects of a built-in resource.
pub(super) fn is_other_view(resource: &Resource, said: &GroupVersionKind) -> bool {
    let other = berth_hub_kinds::Builtins::load().kind(&said.group, &said.version, &said.kind);
    resource.builtin().zip(other).is_some_and(|(kind, other)| {
        kind.storage == other.storage && (kind.group, kind.kind) != (other.group, other.kind)
    })
}

/// The words of a body that is another built-in kind than the one served.
pub(super) fn foreign_kind(said: &GroupVersionKind, expected: &GroupVersionKind) -> String {
    let known = berth_hub_kinds::Builtins::load().kind(&said.group, &said.version, &said.kind).is_some();
    if !known {
        return unregistered(said);
    }
    let package = |group: &str| match group {
        "" => "core".to_owned(),
        group => group.split('.').next().unwrap_or(group).to_owned(),
    };
    format!(
        "converting ({}.{}) to ({}.{}): unknown conversion",
        said.version,
        said.kind,
        package(&expected.group),
        expected.kind
    )
}

/// The words of a body of a kind that nothing knows.
pub(super) fn unregistered(said: &GroupVersionKind) -> String {
    format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        berth_hub_wire::gotext::quote(&said.kind),
        berth_hub_wire::gotext::quote(&said.api_version())
    )
}

/// Problems as the causes of a status.
pub(super) fn causes(problems: &[Problem]) -> Vec<Cause> {
    let cause =
        |problem: &Problem| Cause::new(problem.kind.reason(), &problem.message, problem.path.to_string());
    problems.iter().map(cause).collect()
}

fn refuse(resource: &Resource, object: &Value, problems: &[Problem]) -> Result<(), Status> {
    if problems.is_empty() {
        return Ok(());
    }
    // A second view of a kind is judged as the first.
    let group = resource.builtin().map_or(&*resource.group, |kind| kind.storage.0);
    let kind = GroupKind::new(group, &resource.kind);
    Err(Status::invalid(kind, meta::text(object, "name"), &causes(problems)))
}
