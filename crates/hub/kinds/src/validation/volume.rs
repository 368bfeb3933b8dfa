//! The rules of volumes, volumes' claims and storage classes.

use berth_schema::{Problem, ProblemKind, gotext, names};

use super::{
    place::{At, Found},
    selector,
};
use crate::quantity::Quantity;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
/// Fields of a persistent volume's spec that are not where it lives.
const NOT_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// The volumes of a pod; the names of those that are in order, which containers may mount.
pub(super) fn volumes<'a>(list: &At<'a>, found: &mut Found) -> Vec<&'a str> {
    let mut usable: Vec<&str> = Vec::new();
    for volume in list.items() {
        let name = volume.get("name");
        let mut problems = Found::default();
        source(&volume, &mut problems);
        if name.text().is_empty() {
            problems.required(&name, "");
        } else {
            problems.label(&name);
        }
        if usable.contains(&name.text()) {
            problems.duplicate(&name);
        }
        if problems.0.is_empty() {
            usable.push(name.text());
        }
        found.extend(problems.0);
    }
    usable
}

fn source(volume: &At<'_>, found: &mut Found) {
    let sources = volume
        .value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .filter(|name| *name != "name");
    for (index, name) in sources.enumerate() {
        let one = volume.get(name);
        if index > 0 {
            found.forbidden(&one, "may not specify more than 1 volume type");
            continue;
        }
        let mut need = |field: &str| {
            if one.get(field).text().is_empty() {
                found.required(&one.get(field), "");
            }
        };
        match name {
            "secret" => need("secretName"),
            "configMap" => need("name"),
            "hostPath" => need("path"),
            "persistentVolumeClaim" => need("claimName"),
            "csi" => need("driver"),
            "nfs" => {
                need("server");
                need("path");
                if !one.get("path").text().starts_with('/') {
                    found.invalid_text(&one.get("path"), one.get("path").text(), "must be an absolute path");
                }
            }
            "emptyDir" => {
                let limit = one.get("sizeLimit");
                if Quantity::parse(limit.text()).is_ok_and(|limit| limit.is_negative()) {
                    found.forbidden(&limit, "SizeLimit field must be a valid resource quantity");
                }
            }
            _ => {}
        }
        if name == "hostPath" && one.get("path").text().split('/').any(|part| part == "..") {
            found.invalid(&one.get("path"), "must not contain '..'");
        }
        for item in one.get("items").items().filter(|_| name == "secret" || name == "configMap") {
            for field in ["key", "path"] {
                if item.get(field).text().is_empty() {
                    found.required(&item.get(field), "");
                }
            }
        }
    }
    if volume.value.as_object().is_none_or(|map| map.keys().all(|name| name == "name")) {
        found.required(volume, "must specify a volume type");
    }
}

fn access_modes(modes: &At<'_>, detail: &str, found: &mut Found) {
    if modes.len() == 0 {
        found.required(modes, detail);
    }
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.text())) {
        found.not_supported(&At { value: mode.value, path: modes.path.clone() }, &ACCESS_MODES);
    }
    let once = modes.items().any(|mode| mode.text() == "ReadWriteOncePod");
    if once
        && modes.items().any(|mode| mode.text() != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode.text()))
    {
        found.forbidden(modes, "may not use ReadWriteOncePod with other access modes");
    }
}

/// An amount of storage is more than nothing.
fn positive(amount: &At<'_>, found: &mut Found) {
    let parsed = amount.value.as_str().and_then(|text| Quantity::parse(text).ok());
    if parsed.is_some_and(|amount| amount.is_negative() || amount.is_zero()) {
        found.invalid_text(amount, amount.text(), "must be greater than zero");
    }
}

pub(super) fn persistent_volume(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    access_modes(&spec.get("accessModes"), "", found);
    let capacity = spec.get("capacity");
    if capacity.len() == 0 {
        found.required(&capacity, "");
    }
    if !capacity.get("storage").is_set() || capacity.len() > 1 {
        let message =
            format!("Unsupported value: {}: supported values: \"storage\"", gotext::json(capacity.value));
        found.extend(vec![Problem { path: capacity.path.clone(), kind: ProblemKind::NotSupported, message }]);
    }
    for (_, amount) in capacity.entries() {
        positive(&amount, found);
    }
    found.one_of_if_set(&spec.get("persistentVolumeReclaimPolicy"), &["Delete", "Recycle", "Retain"]);
    let sources: Vec<At<'_>> = spec
        .value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| !NOT_SOURCES.contains(&name.as_str()) && !value.is_null())
        .map(|(name, _)| spec.get(name))
        .collect();
    for extra in sources.iter().skip(1) {
        found.forbidden(extra, "may not specify more than 1 volume type");
    }
    match sources.first() {
        None => found.required(&spec, "must specify a volume type"),
        Some(source) => {
            let is = |name: &str| source.path == spec.get(name).path;
            let local = is("local");
            if local && !spec.get("nodeAffinity").is_set() {
                found.required(&spec.get("nodeAffinity"), "Local volume requires node affinity");
            }
            let path = source.get("path");
            if (local || is("hostPath")) && path.text().is_empty() {
                found.required(&path, "");
            } else if (local || is("hostPath")) && path.text().split('/').any(|part| part == "..") {
                found.invalid(&path, "must not contain '..'");
            }
        }
    }
    if !spec.get("storageClassName").text().is_empty() {
        found.subdomain(&spec.get("storageClassName"));
    }
    found.one_of_if_set(&spec.get("volumeMode"), &VOLUME_MODES);
}

pub(super) fn persistent_volume_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    let source = |object: &At<'_>| {
        let spec = object.get("spec").value.as_object().cloned().unwrap_or_default();
        spec.into_iter().filter(|(name, _)| !NOT_SOURCES.contains(&name.as_str())).collect::<Vec<_>>()
    };
    if source(new) != source(old) {
        let place = At { value: new.value, path: new.path.field("spec").field("persistentvolumesource") };
        found.forbidden(&place, "spec.persistentvolumesource is immutable after creation");
    }
    let (mode, before) = (new.get("spec").get("volumeMode"), old.get("spec").get("volumeMode"));
    found.immutable(&At { value: mode.value, path: new.path.field("volumeMode") }, &before);
}

pub(super) fn claim_spec(spec: &At<'_>, found: &mut Found) {
    access_modes(&spec.get("accessModes"), "at least 1 access mode is required", found);
    selector::check(&spec.get("selector"), found);
    let requests = spec.get("resources").get("requests");
    // The path leaves out `requests`, as upstream's does.
    let storage =
        At { value: requests.get("storage").value, path: spec.get("resources").path.key("storage") };
    if storage.is_set() {
        positive(&storage, found);
    } else {
        found.required(&storage, "");
    }
    if !spec.get("storageClassName").text().is_empty() {
        found.subdomain(&spec.get("storageClassName"));
    }
    found.one_of_if_set(&spec.get("volumeMode"), &VOLUME_MODES);
}

/// Where claims named their class before there was a field for it.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn claim_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let bound = new.get("status").get("phase").text() == "Bound";
    let class = spec.get("storageClassName");
    let annotated = old.get("metadata").get("annotations").get(CLASS_ANNOTATION);
    let upgraded = class.is_set()
        && !before.get("storageClassName").is_set()
        && (!annotated.is_set() || annotated.value == class.value);
    let fixed = |at: &At<'_>| {
        let mut fields = at.value.as_object().cloned().unwrap_or_default();
        // A claim is bound by naming its volume, once.
        if before.get("volumeName").text().is_empty() {
            fields.remove("volumeName");
        }
        // A claim that names no class may be given one.
        if upgraded {
            fields.remove("storageClassName");
        }
        if bound {
            fields.remove("volumeAttributesClassName");
            if let Some(requests) =
                fields.get_mut("resources").and_then(|resources| resources.get_mut("requests"))
            {
                requests.as_object_mut().map(|requests| requests.remove("storage"));
            }
        }
        fields
    };
    if fixed(&spec) != fixed(&before) {
        found.forbidden(
            &spec,
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
    }
    let amount = |at: &At<'_>| Quantity::parse(if at.is_set() { at.text() } else { "0" }).ok();
    let [storage, storage_before] =
        [&spec, &before].map(|spec| spec.get("resources").get("requests").get("storage"));
    let capacity = old.get("status").get("capacity").get("storage");
    if let (Some(wanted), Some(had), Some(is)) =
        (amount(&storage), amount(&storage_before), amount(&capacity))
        && wanted.compare(&had).is_lt()
        && wanted.compare(&is).is_le()
    {
        found.forbidden(&storage, "field can not be less than status.capacity");
    }
    let (mode, mode_before) = (spec.get("volumeMode"), before.get("volumeMode"));
    found.immutable(&At { value: mode.value, path: new.path.field("volumeMode") }, &mode_before);
}

/// The most parameters a storage class may have.
const PARAMETERS_MAX: u64 = 512;
/// The most the keys and values of parameters may hold together, in bytes.
const PARAMETERS_BYTES_MAX: u64 = 256 * 1024;

fn parameters(parameters: &At<'_>, found: &mut Found) {
    if parameters.len() as u64 > PARAMETERS_MAX {
        return found.extend(vec![Problem::too_long(&parameters.path, PARAMETERS_MAX)]);
    }
    let mut bytes = 0;
    for (key, value) in parameters.entries() {
        if key.is_empty() {
            found.invalid_text(parameters, key, "field can not be empty.");
        }
        bytes += (key.len() + value.text().len()) as u64;
    }
    if bytes > PARAMETERS_BYTES_MAX {
        found.extend(vec![Problem::too_long(&parameters.path, PARAMETERS_BYTES_MAX)]);
    }
}

pub(super) fn storage_class(object: &At<'_>, found: &mut Found) {
    let provisioner = object.get("provisioner");
    if provisioner.text().is_empty() {
        found.required(&provisioner, "");
    } else {
        let lower = provisioner.text().to_lowercase();
        for sentence in names::label_key(&lower) {
            found.invalid_text(&provisioner, &lower, &sentence);
        }
    }
    parameters(&object.get("parameters"), found);
    found.one_of_if_set(&object.get("reclaimPolicy"), &["Delete", "Retain"]);
    let mode = object.get("volumeBindingMode");
    if mode.is_set() {
        found.one_of_if_set(&mode, &["Immediate", "WaitForFirstConsumer"]);
    } else {
        found.required(&mode, "");
    }
}

pub(super) fn storage_class_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        found.immutable(&new.get(field), &old.get(field));
    }
}
