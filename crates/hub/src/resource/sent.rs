//! The object in a request's body, read as the kind that the path serves.
//!
//! Owns the order of the checks: fields that are unknown or said twice, then the version, then defaults. Turning bytes into
//! values is the wire's.

use berth_hub_wire::body::{Decoded, cannot_be_handled, check_version, strict_failure};
use berth_hub_wire::{FieldValidation, GroupVersionKind, Status};
use serde_json::Value;

use crate::registry::Resource;

use super::act::Act;
use super::meta;
use super::rules;

impl Resource {
    /// The kind that bodies are expected to have.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(&*self.group, &*self.version, &*self.kind)
    }
}

/// What a client is warned of about its body alone. A request that fails after its body was read carries these too, and
/// they are not kept with the failure.
pub fn warnings(act: &Act<'_>, sent: &Decoded) -> Vec<String> {
    decode(act, sent.clone()).map(|(_, _, warnings)| warnings).unwrap_or_default()
}

/// The object as this resource has it, pruned and with defaults, and the warnings about what was cut away.
pub(super) fn receive(act: &Act<'_>, sent: Decoded) -> Result<(Value, Vec<String>), Status> {
    let (mut object, kind, warnings) = decode(act, sent)?;
    check_version(&kind, &act.form().gvk())?;
    act.form().fill(&mut object);
    Ok((object, warnings))
}

fn decode(act: &Act<'_>, sent: Decoded) -> Result<(Value, GroupVersionKind, Vec<String>), Status> {
    let (form, expected) = (act.form(), act.form().gvk());
    let Decoded { value, kind, mut strict_errors } = sent;
    if rules::is_other_view(act.resource, &kind) {
        check_version(&kind, &expected)?;
    }
    if !form.is_custom() && (kind.group != expected.group || kind.kind != expected.kind) {
        return Err(cannot_be_handled(&kind, &expected, &rules::foreign_kind(&kind, &expected)));
    }
    if !form.is_custom() && kind.version != expected.version {
        return Err(cannot_be_handled(&kind, &expected, &rules::unregistered(&kind)));
    }
    let (object, unknown) = form.fit(value).map_err(|why| cannot_be_handled(&kind, &expected, &why))?;
    strict_errors.extend(unknown);
    let mut warnings = Vec::new();
    if !strict_errors.is_empty() {
        match act.field_validation {
            FieldValidation::Strict => return Err(strict_failure(&kind, &expected, &strict_errors)),
            FieldValidation::Warn => warnings = strict_errors,
            FieldValidation::Ignore => {}
        }
    }
    Ok((object, kind, warnings))
}

/// Sees to it that the object is in the namespace of the path.
pub(super) fn settle_namespace(act: &Act<'_>, object: &mut Value) -> Result<(), Status> {
    let wanted = act.object_namespace();
    let found = meta::text(object, "namespace");
    if found == wanted {
        return Ok(());
    }
    if !found.is_empty() && !wanted.is_empty() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta::set(object, "namespace", (!wanted.is_empty()).then(|| wanted.into()));
    Ok(())
}

/// Sees to it that the object has the name of the path.
pub(super) fn check_name(act: &Act<'_>, object: &Value) -> Result<(), Status> {
    let found = meta::text(object, "name");
    if found.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            act.name
        )));
    }
    if found != act.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({})",
            act.name
        )));
    }
    Ok(())
}

/// The revision an object says it is at: zero when it says none.
pub(super) fn said_revision(object: &Value) -> Result<u64, String> {
    let said = meta::text(object, "resourceVersion");
    if said.is_empty() {
        return Ok(0);
    }
    let quoted = berth_hub_wire::gotext::quote(said);
    if said.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err(format!("strconv.ParseUint: parsing {quoted}: invalid syntax"));
    }
    said.parse().map_err(|_| format!("strconv.ParseUint: parsing {quoted}: value out of range"))
}
