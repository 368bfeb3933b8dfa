//! What this crate says, compared with what a real kube-apiserver said to the same requests.
//!
//! The recorded answers stand beside the project; without them the tests say so and pass.

// Helpers of tests are tests too: they may stop at what cannot be, and say what they skip.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::HashMap;
use std::path::PathBuf;

use berth_hub_wire::body::{self, KindRule, TextFormat, decode_object};
use berth_hub_wire::media::{body_format, negotiate};
use berth_hub_wire::options::parse_resource_version;
use berth_hub_wire::table::{Row, table};
use berth_hub_wire::{
    Access, Cause, CustomColumns, Details, FieldLabelRule, GroupKind, GroupResource, GroupVersionKind,
    IncludeObject, ListMeta, ListOptions, MetaVersion, MetadataTexts, PatchOptions, PatchType, PrinterColumn,
    Query, Status, envelope, warning,
};
use bytes::Bytes;
use serde_json::Value;

const GROUP: &str = "cluster.open-cluster-management.io";
const PLACEMENTS: GroupResource<'_> = GroupResource { group: GROUP, resource: "placements" };
const NAMESPACES: GroupResource<'_> = GroupResource { group: "", resource: "namespaces" };

fn placement() -> GroupVersionKind {
    GroupVersionKind::new(GROUP, "v1beta1", "Placement")
}

/// A recorded file, or nothing where the recordings are not at hand.
fn recorded(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared").join(name);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        eprintln!("skipped: no recording at {}", path.display());
    }
    bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The sections of the recorded answers by title.
fn sections() -> Option<HashMap<String, String>> {
    let text = recorded("fixtures/kube-apiserver/golden.txt")?;
    let sections = text.split("### ").skip(1).filter_map(|section| {
        let (title, body) = section.split_once('\n')?;
        Some((title.to_owned(), body.to_owned()))
    });
    Some(sections.collect())
}

/// The JSON objects of a section, headers and other text left out.
fn objects(section: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = section;
    while let Some(at) = rest.find('{') {
        let mut stream = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                found.push(value);
                rest = &rest[at + stream.byte_offset()..];
            }
            _ => rest = &rest[at + 1..],
        }
    }
    found
}

#[test]
fn failures_are_those_of_the_real_server() {
    let Some(sections) = sections() else { return };
    let refused = |query: &str| ListOptions::parse(&Query::parse(Some(query))).unwrap_err();
    let cause = Cause::new(
        "FieldValueTypeInvalid",
        "Invalid value: \"string\": spec.numberOfClusters in body must be of type integer: \"string\"",
        "spec.numberOfClusters",
    );
    let unconditional = Cause::new(
        "FieldValueInvalid",
        "Invalid value: 0: must be specified for an update",
        "metadata.resourceVersion",
    );
    let owned = Cause::new(
        "FieldManagerConflict",
        format!("conflict with \"m1\" using {GROUP}/v1beta1"),
        ".spec.numberOfClusters",
    );
    let anonymous = Access {
        user: "system:anonymous",
        verb: "list",
        group: GROUP,
        resource: "placements",
        namespace: "default",
        ..Access::default()
    };
    let strict = ["unknown field \"spec.foo\"".to_owned()];
    let by_field =
        ListOptions::parse(&Query::parse(Some("fieldSelector=spec.foo%3Dx"))).unwrap().field_selector;
    let known = |field: &str| field.starts_with("metadata.");
    let no_manager = PatchOptions::parse(&Query::parse(None), PatchType::Apply).unwrap_err();
    let cases: Vec<(&str, usize, Status)> = vec![
        ("create dup", 0, Status::already_exists(PLACEMENTS, "p1")),
        ("strict unknown field", 0, body::strict_failure(&placement(), &placement(), &strict)),
        ("invalid type", 0, Status::invalid(GroupKind::new(GROUP, "Placement"), "p2", &[cause])),
        ("PUT without rv", 0, Status::invalid(GroupKind::new(GROUP, "placements"), "p1", &[unconditional])),
        ("PUT stale rv", 0, Status::stale(PLACEMENTS, "p1")),
        (
            "SSA m2 conflict",
            0,
            Status::apply_conflict(
                format!("Apply failed with 1 conflict: {}: .spec.numberOfClusters", owned.message),
                vec![owned],
            ),
        ),
        ("SSA no manager", 0, no_manager),
        (
            "strategic on CR",
            0,
            PatchType::parse(Some("application/strategic-merge-patch+json"), false).unwrap_err(),
        ),
        ("get 404", 0, Status::not_found(PLACEMENTS, "nope")),
        ("bad field selector", 0, by_field.check(known, FieldLabelRule::Listed).unwrap_err()),
        ("bad label selector", 0, refused("labelSelector=a,,b")),
        ("list future", 0, Status::too_large_resource_version(99_999_999, 243)),
        ("rvm invalid", 0, refused("resourceVersionMatch=Exact")),
        ("missing ns", 0, Status::not_found(NAMESPACES, "nons")),
        (
            "delete default ns",
            0,
            Status::forbidden(NAMESPACES, "default", "this namespace may not be deleted"),
        ),
        ("415", 0, body_format(Some("text/plain"), false).unwrap_err()),
        (
            "method not allowed",
            0,
            decode_object(TextFormat::Json, b"{}", &placement(), KindRule::FromBody).unwrap_err(),
        ),
        (
            "delete plain",
            0,
            Status::success(Details {
                name: "gen-xqlbb".into(),
                group: GROUP.into(),
                kind: "placements".into(),
                uid: "a47e7e48-4e3b-4b8d-9830-78e4c56e030e".into(),
                ..Details::default()
            }),
        ),
        ("unauth", 0, Status::access_denied(&anonymous, "")),
        ("unauth", 1, Status::unauthorized()),
    ];
    for (title, index, ours) in cases {
        let theirs = &objects(&sections[title])[index];
        let compact: Value = serde_json::from_slice(&ours.to_json(false)).unwrap();
        assert_eq!(&compact, theirs, "{title}");
        // Indented, it is the same text, in the same order.
        let indented = String::from_utf8(ours.to_json(true).to_vec()).unwrap();
        assert!(sections[title].contains(&indented), "{title}: {indented}");
    }
    let refusal = negotiate(Some("text/html")).unwrap_err();
    assert!(sections["406"].contains(&refusal.message));
    assert!(
        sections["warn unknown field (dry run)"]
            .contains(&format!("warning: {}", warning::headers(&strict)[0]))
    );
}

#[test]
fn watch_lines_are_those_of_the_real_server() {
    let Some(sections) = sections() else { return };
    let line = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let too_old = line(envelope::watch_error(&Status::too_old_resource_version(1, 241)));
    assert!(sections["watch too old"].contains(&too_old));
    let bookmark = line(envelope::bookmark(&format!("{GROUP}/v1beta1"), "Placement", "243", true));
    assert!(sections["streaming list"].contains(&bookmark));
}

/// The printer columns of a version of a recorded definition.
fn printer_columns(definition: &str, version: &str) -> Vec<PrinterColumn> {
    let definition = body::yaml::read(definition.as_bytes()).unwrap().value;
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|candidate| candidate["name"] == version).unwrap();
    serde_json::from_value(version["additionalPrinterColumns"].clone()).unwrap()
}

#[test]
fn tables_are_those_of_the_real_server() {
    let name = "crds/0000_02_clusters.open-cluster-management.io_placements.crd.yaml";
    let (Some(sections), Some(events), Some(definition)) =
        (sections(), recorded("fixtures/kube-apiserver/w_tab.txt"), recorded(name))
    else {
        return;
    };
    let theirs = &objects(&sections["table"])[0];
    let texts = MetadataTexts {
        name: theirs["columnDefinitions"][0]["description"].as_str().unwrap(),
        creation_timestamp: "",
    };
    let columns = CustomColumns::compile(&printer_columns(&definition, "v1beta1"), texts).unwrap();
    let now = "2026-11-15T23:00:00Z".parse().unwrap();

    let metadata = theirs["rows"][0]["object"]["metadata"].clone();
    let mut objects = vec![(theirs.clone(), serde_json::json!({"metadata": metadata}))];
    for (index, line) in events.lines().enumerate() {
        let event: Value = serde_json::from_str(line).unwrap();
        let theirs = event["object"].clone();
        let metadata = theirs["rows"][0]["object"]["metadata"].clone();
        let mut object = serde_json::json!({"metadata": metadata});
        if theirs["rows"][0]["cells"][1] == "True" {
            // What the recorded object's status must have held for its cells to be what they are.
            object["status"] = serde_json::json!({"numberOfSelectedClusters": 1, "conditions": [
                {"type": "Other", "status": "False"},
                {"type": "PlacementSatisfied", "status": "True", "reason": "R"}]});
        }
        assert_eq!(theirs["columnDefinitions"].is_null(), index > 0, "only the first event has heads");
        objects.push((theirs, object));
    }
    for (theirs, object) in objects {
        let json = Bytes::from(object.to_string());
        let row = Row::new(columns.cells(&object, now), &json, IncludeObject::Metadata, MetaVersion::V1);
        let meta = ListMeta {
            resource_version: theirs["metadata"]["resourceVersion"].as_str().unwrap().to_owned(),
            ..ListMeta::default()
        };
        let heads = (!theirs["columnDefinitions"].is_null()).then(|| columns.heads());
        let ours: Value = serde_json::from_slice(&table(MetaVersion::V1, &meta, heads, [&row])).unwrap();
        assert_eq!(ours, theirs);
    }
}

/// Every request line and header of the recorded kubectl sessions is understood.
#[test]
fn everything_kubectl_asks_is_understood() {
    let logs = ["kc.log", "kc2.log", "kc3.log", "kc4.log", "kc5.log"];
    let logs: Vec<String> =
        logs.iter().filter_map(|log| recorded(&format!("fixtures/kubectl/{log}"))).collect();
    let mut requests = 0;
    for line in logs.iter().flat_map(|log| log.lines()) {
        let Some((method, target)) = line.split_once(" /") else {
            if let Some(accept) = line.trim().strip_prefix("Accept: ")
                && accept != "None"
                && !accept.contains("openapi")
            {
                assert!(negotiate(Some(accept)).is_ok(), "{accept}");
            }
            continue;
        };
        if !matches!(method, "GET" | "POST" | "PUT" | "PATCH" | "DELETE") {
            continue;
        }
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let query = Query::parse(query);
        let route = berth_hub_wire::route::parse(method, &format!("/{path}"), &query).unwrap();
        assert_ne!(route, berth_hub_wire::Route::Other, "{line}");
        let options = ListOptions::parse(&query).unwrap_or_else(|status| panic!("{line}: {status}"));
        assert!(parse_resource_version(&options.resource_version).is_ok(), "{line}");
        requests += 1;
    }
    assert!(logs.is_empty() || requests > 50, "only {requests} requests were read");
}
