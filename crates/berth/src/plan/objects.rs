//! The objects a hub would hold after a plan.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::planner::{Plan, Settled};
use crate::commands::OutputFormat;
use crate::manifest::{write_json_list, write_yaml_document};

/// Every Placement with its status, each followed by its PlacementDecisions.
pub fn objects(plan: &Plan) -> Vec<Value> {
    plan.settled.iter().flat_map(objects_of).collect()
}

/// Writes the objects: as one `v1` List in JSON, as a stream of documents in YAML.
pub fn write_objects(out: &mut dyn Write, plan: &Plan, format: OutputFormat) -> io::Result<()> {
    let objects = objects(plan);
    if format == OutputFormat::Json {
        return write_json_list(out, &objects);
    }
    objects.iter().enumerate().try_for_each(|(index, value)| write_yaml_document(out, value, index == 0))
}

fn objects_of(settled: &Settled) -> Vec<Value> {
    let mut objects = vec![placement(settled)];
    match &settled.decided {
        Ok((_, published)) => objects.extend(published.decisions.iter().map(to_value)),
        Err(_) => objects.extend(settled.existing.iter().map(|item| match &item.source {
            Some(source) => source.value.clone(),
            None => to_value(&item.object),
        })),
    }
    objects
}

/// The object as it was written, fields this program does not know included, with what the hub adds.
fn placement(settled: &Settled) -> Value {
    let item = &settled.placement;
    let mut value = match &item.source {
        Some(source) => source.value.clone(),
        None => to_value(&item.object),
    };
    let (Ok((_, published)), Some(fields)) = (&settled.decided, value.as_object_mut()) else {
        return value;
    };
    fields.insert("status".into(), to_value(&published.status));
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        let known = &item.object.metadata;
        for (name, text) in [("namespace", &known.namespace), ("uid", &known.uid)] {
            let absent = metadata.get(name).is_none_or(|value| value.is_null() || value == "");
            if let (Some(text), true) = (text, absent) {
                metadata.insert(name.into(), json!(text));
            }
        }
    }
    value
}

fn to_value<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).expect("our types have string keys and finite numbers only")
}

/// The notice about owner references that lead nowhere yet; `None` if all placements have a uid.
pub fn without_uid(plan: &Plan) -> Option<String> {
    let count = plan
        .settled
        .iter()
        .filter(|settled| settled.decided.is_ok())
        .filter(|settled| settled.placement.object.metadata.uid.as_deref().unwrap_or_default().is_empty())
        .count();
    match count {
        0 => None,
        1 => Some("1 Placement has no metadata.uid, which only a hub can give: the ownerReferences of its PlacementDecisions carry an empty uid".into()),
        _ => Some(format!(
            "{count} Placements have no metadata.uid, which only a hub can give: the ownerReferences of their PlacementDecisions carry an empty uid"
        )),
    }
}
