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
    pub(crate) fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(&*self.group, &*self.version, &*self.kind)
    }
}

/// What a client is warned of about its body alone. A request that fails after its body was read carries these too, and
/// they are not kept with the failure.
pub(crate) fn warnings(act: &Act<'_>, sent: &Decoded) -> Vec<String> {
    decode(act, sent.clone()).map(|(_, _, warnings)| warnings).unwrap_or_default()
}

/// The object as this resource has it, pruned and with defaults, and the warnings about what was cut away.
pub(super) fn receive(act: &Act<'_>, sent: Decoded) -> Result<(Value, Vec<String>), Status> {
    let (mut object, kind, warnings) = decode(act, sent)?;
    check_version(&kind, &act.form().gvk())?;
    act.form().fill(&mut object)?;
    Ok((object, warnings))
}

/// The object that is posted to a subresource, with what the client is warned of.
pub(crate) fn posted(
    sent: Decoded,
    expected: &GroupVersionKind,
    older: &[&str],
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Status> {
    let Decoded { value, kind, strict_errors } = sent;
    check_posted(&kind, expected, older)?;
    match validation {
        FieldValidation::Strict if !strict_errors.is_empty() => {
            Err(strict_failure(&kind, expected, &strict_errors))
        }
        FieldValidation::Strict | FieldValidation::Ignore => Ok((value, Vec::new())),
        FieldValidation::Warn => Ok((value, strict_errors)),
    }
}

/// Whether a body posted to a subresource is what it takes: the kind `expected`, in its version or an `older` one.
fn check_posted(said: &GroupVersionKind, expected: &GroupVersionKind, older: &[&str]) -> Result<(), Status> {
    if said.group != expected.group || said.kind != expected.kind {
        return Err(cannot_be_handled(said, expected, &rules::foreign_kind(said, expected)));
    }
    if said.version != expected.version && !older.contains(&said.version.as_str()) {
        return Err(cannot_be_handled(said, expected, &rules::unregistered(said)));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_for_a_subresource_is_of_its_kind_in_a_version_that_is_known() {
        let expected = GroupVersionKind::new("policy", "v1", "Eviction");
        let told = |version: &str, kind: &str| {
            let said = GroupVersionKind::new("policy", version, kind);
            check_posted(&said, &expected, &["v1beta1"]).map_err(|status| status.message)
        };
        assert_eq!(told("v1", "Eviction"), Ok(()));
        assert_eq!(told("v1beta1", "Eviction"), Ok(()));
        assert_eq!(
            told("v9", "Eviction").unwrap_err(),
            "Eviction in version \"v9\" cannot be handled as a Eviction: no kind \"Eviction\" is registered for version \
             \"policy/v9\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        assert!(told("v1", "PodDisruptionBudget").unwrap_err().contains("unknown conversion"));
    }
}
