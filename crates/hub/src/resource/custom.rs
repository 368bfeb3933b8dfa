//! What is done to custom resources: cut to the definition's schema, checked against it, the status kept apart.
//!
//! Owns the order in which Kubernetes does these things to objects of a definition. The schema's own functions are its
//! crate's.

use berth_hub_wire::names::split_api_version;
use berth_hub_wire::{GroupKind, Status};
use berth_schema::metadata::metadata_misfits;
use berth_schema::{FieldPath, MetadataRules, NameRule, Problem, ProblemKind, PruneOptions};
use serde_json::Value;

use crate::registry::{CustomVersion, Resource, ScalePaths};

use super::act::Part;
use super::{govalue, growth, meta};

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// The object cut to its schema, and the strict errors for what was cut. Fails when its metadata cannot be read or it
/// holds too many values.
pub(super) fn fit(
    resource: &Resource,
    version: &CustomVersion,
    mut object: Value,
) -> Result<(Value, Vec<String>), String> {
    growth::check_values(&object)?;
    let misfit = object.get("metadata").and_then(|metadata| metadata_misfits(metadata).into_iter().next());
    if let Some(misfit) = misfit {
        return Err(misfit.message);
    }
    let mut unknown =
        berth_schema::coerce_metadata(&mut object, None).map_err(|problem| problem.to_string())?;
    // Objects of another kind are refused by validation, as they were sent.
    if is_of(resource, &object) {
        let schema = version.arena.schema(version.root);
        unknown.extend(berth_schema::prune(&mut object, schema, &PruneOptions::default()));
        berth_schema::drop_nulls(&mut object, schema);
        // The object's own metadata is in order by now; this is about objects inside it.
        let embedded = berth_schema::coerce_metadata(&mut object, Some(schema));
        unknown.extend(embedded.map_err(|problem| problem.to_string())?);
    }
    let errors =
        unknown.iter().map(|path| format!("unknown field {}", berth_hub_wire::gotext::quote(path))).collect();
    Ok((object, errors))
}

/// Fills in the schema's defaults, where it is the object's schema.
pub(super) fn fill(resource: &Resource, version: &CustomVersion, object: &mut Value) -> Result<(), Status> {
    if !is_of(resource, object) {
        return Ok(());
    }
    let (schema, allowance) = (version.arena.schema(version.root), growth::allowance(object));
    berth_schema::prepare_within(object, schema, allowance).map_err(growth::refused)
}

/// Whether an object says that it is of the resource's kind, in whatever version.
fn is_of(resource: &Resource, object: &Value) -> bool {
    let said = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    said("kind") == &*resource.kind
        && split_api_version(said("apiVersion")).is_ok_and(|(group, _)| group == &*resource.group)
}

/// A new object has no status where the status is a subresource, and is the first of its generations.
pub(super) fn prepare_create(version: &CustomVersion, object: &mut Value) {
    if version.status {
        meta::map(object).remove("status");
    }
    meta::set(object, "generation", Some(1.into()));
}

/// Keeps the parts that a write may not change, and counts generations.
pub(super) fn prepare_update(version: &CustomVersion, part: Part, object: &mut Value, live: &Value) {
    if part == Part::Status {
        let status = meta::map(object).remove("status");
        let managed = meta::of(object).remove("managedFields");
        object.clone_from(live);
        meta::set(object, "managedFields", managed);
        match status {
            Some(status) => meta::map(object).insert("status".to_owned(), status),
            None => meta::map(object).remove("status"),
        };
        return;
    }
    if version.status {
        match live.get("status") {
            Some(status) => meta::map(object).insert("status".to_owned(), status.clone()),
            None => meta::map(object).remove("status"),
        };
    }
    if !meta::same_except(Some(object), Some(live), "metadata") {
        let generation = meta::number(live, "generation").unwrap_or(0).saturating_add(1);
        meta::set(object, "generation", Some(generation.into()));
    }
}

/// What is wrong with a new object.
pub(super) fn check_create(
    resource: &Resource,
    version: &CustomVersion,
    object: &Value,
) -> Result<(), Status> {
    let mut problems = type_problems(resource, object);
    let schema = version.arena.schema(version.root);
    if problems.is_empty() {
        problems = berth_schema::validate_metadata(object, &metadata_rules(resource));
        problems.extend(berth_schema::validate(object, schema));
        problems.extend(scale_spec_problems(version.scale.as_ref(), object));
        problems.extend(scale_status_problems(version.scale.as_ref(), object));
    }
    // An object of another kind is not held against the schema, but against what the schema says beyond OpenAPI.
    problems.extend(berth_schema::validate_embedded(object, schema));
    problems.extend(berth_schema::validate_list_types(object, schema));
    problems.extend(rule_problems(version, &problems, object, None));
    refuse(resource, object, &problems)?;
    // Upstream asks again, in terms any kind shares; only what the first round let through can turn up here.
    refuse(resource, object, &berth_schema::validate_metadata(object, &common_rules(resource)))
}

/// What is wrong with an update.
pub(super) fn check_update(
    resource: &Resource,
    version: &CustomVersion,
    part: Part,
    object: &Value,
    live: &Value,
) -> Result<(), Status> {
    let schema = version.arena.schema(version.root);
    let mut problems = berth_schema::validate_metadata(object, &common_rules(resource));
    problems.extend(berth_schema::validate_metadata_update(object, live));
    let mut own = type_problems(resource, object);
    if own.is_empty() {
        // Said a second time, as the real server does: the causes are listed twice, the sentence once.
        own.extend(berth_schema::validate_metadata_update(object, live));
        if part == Part::Status {
            if let (Some(status), Some(schema)) = (object.get("status"), schema.property("status")) {
                let base = FieldPath::root().field("status");
                own.extend(berth_schema::validate_update_below(base, status, live.get("status"), schema));
            }
        } else {
            own.extend(berth_schema::validate_update(object, live, schema));
            own.extend(scale_spec_problems(version.scale.as_ref(), object));
        }
        own.extend(scale_status_problems(version.scale.as_ref(), object));
    }
    if part != Part::Status {
        own.extend(berth_schema::validate_embedded(object, schema));
    }
    // Lists that were wrong before may stay so.
    if berth_schema::validate_list_types(live, schema).is_empty() {
        own.extend(berth_schema::validate_list_types(object, schema));
    }
    own.extend(rule_problems(version, &own, object, Some(live)));
    problems.extend(own);
    refuse(resource, object, &problems)
}

/// Words about finalizers that others may use too.
pub(super) fn warnings(object: &Value, live: Option<&Value>) -> Vec<String> {
    let known = live.map(meta::finalizers).unwrap_or_default();
    let mut new: Vec<&str> =
        meta::finalizers(object).into_iter().filter(|name| !known.contains(name)).collect();
    new.sort_unstable();
    new.dedup();
    let mut warnings = Vec::new();
    for name in new {
        let quoted = berth_hub_wire::gotext::quote(name);
        for rule in berth_schema::names::label_key(name) {
            warnings.push(format!("metadata.finalizers: {quoted}: {rule}"));
        }
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            warnings.push(format!(
                "metadata.finalizers: {quoted}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
                 with other finalizer writers"
            ));
        }
    }
    warnings
}

fn metadata_rules(resource: &Resource) -> MetadataRules {
    MetadataRules::new(resource.namespaced, NameRule::DnsSubdomain)
}

fn common_rules(resource: &Resource) -> MetadataRules {
    MetadataRules::new(resource.namespaced, NameRule::PathSegment)
}

fn type_problems(resource: &Resource, object: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (field, wanted) in [("kind", resource.kind.to_string()), ("apiVersion", resource.api_version())] {
        let found = object.get(field).and_then(Value::as_str).unwrap_or_default();
        if found != wanted {
            problems.push(Problem::invalid_text(
                &FieldPath::root().field(field),
                found,
                &format!("must be {wanted}"),
            ));
        }
    }
    problems
}

/// The rules of the definition, unless the object is too far off for them to make sense.
fn rule_problems(
    version: &CustomVersion,
    found: &[Problem],
    object: &Value,
    live: Option<&Value>,
) -> Vec<Problem> {
    if version.rules.is_empty() {
        return Vec::new();
    }
    let blocking = |problem: &Problem| {
        matches!(
            problem.kind,
            ProblemKind::NotSupported
                | ProblemKind::Required
                | ProblemKind::TooLong
                | ProblemKind::TooMany
                | ProblemKind::TypeInvalid
        )
    };
    if found.iter().any(blocking) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                      complete validation";
        // The real server gives no path here, which Go prints like this.
        return vec![Problem::invalid(&FieldPath::from("<nil>"), &Value::Null, detail)];
    }
    version.rules.check(version.arena.schema(version.root), object, live)
}

fn scale_spec_problems(paths: Option<&ScalePaths>, object: &Value) -> Vec<Problem> {
    paths.map(|paths| count_problems(&paths.spec_replicas, object)).unwrap_or_default()
}

fn scale_status_problems(paths: Option<&ScalePaths>, object: &Value) -> Vec<Problem> {
    paths.map(|paths| count_problems(&paths.status_replicas, object)).unwrap_or_default()
}

/// A number of replicas must be one that a scale can hold.
fn count_problems(path: &[String], object: &Value) -> Vec<Problem> {
    let fields: Vec<&str> = path.iter().map(String::as_str).collect();
    // The path is shown as the definition writes it, with its leading dot.
    let place = FieldPath::root().field(&format!(".{}", path.join(".")));
    let count = match govalue::nested(object, &fields) {
        Ok(Some(count)) => count,
        Ok(None) => return Vec::new(),
        Err(why) => return vec![Problem::invalid(&place, &0.into(), &why)],
    };
    match count.as_i64() {
        Some(number) if number < 0 => {
            vec![Problem::invalid(&place, count, "should be a non-negative integer")]
        }
        Some(number) if number > i64::from(i32::MAX) => {
            vec![Problem::invalid(&place, count, &format!("should be less than or equal to {}", i32::MAX))]
        }
        Some(_) => Vec::new(),
        None => vec![Problem::invalid(&place, &0.into(), &govalue::misfit(&fields, count, "int64"))],
    }
}

/// 422, naming the kind that the object says it is.
fn refuse(resource: &Resource, object: &Value, problems: &[Problem]) -> Result<(), Status> {
    if problems.is_empty() {
        return Ok(());
    }
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or(&resource.kind);
    let said = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = split_api_version(said).map_or(&*resource.group, |(group, _)| group);
    Err(Status::invalid(
        GroupKind::new(group, kind),
        meta::text(object, "name"),
        &super::rules::causes(problems),
    ))
}
