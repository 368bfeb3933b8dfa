use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::encode::{Writer, bytes};
use super::*;

fn round_trip(object: &Value) {
    let gvk = Gvk::of(object).unwrap();
    let id = Builtins::load().body(&gvk).unwrap();
    let expected = conform(id, object.clone()).unwrap().value;
    let body = Writer(&Builtins::load().types).body(&gvk, Builtins::load().body(&gvk).unwrap(), &expected);
    let (found, value) = decode(&body, None).unwrap();
    assert_eq!(found, gvk);
    assert_eq!(value, expected);
}

#[test]
fn objects_with_every_special_value_survive_protobuf() {
    round_trip(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": "y"},
        "creationTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 0,
        "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]},
        "spec": {"volumes": [{"name": "v", "configMap": {"name": "cm", "items": [{"key": "k", "path": "p", "mode": 420}]}}],
            "containers": [{"name": "c", "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                "resources": {"limits": {"cpu": "250m"}},
                "livenessProbe": {"httpGet": {"port": "http"}, "initialDelaySeconds": 3},
                "readinessProbe": {"tcpSocket": {"port": 8080}}}],
            "tolerations": [{"operator": "Exists", "tolerationSeconds": -5}]}}));
    round_trip(&json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "AAEC/w=="}, "type": "Opaque"}));
    round_trip(&json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "spec": {"renewTime": "2026-01-02T03:04:05.000006Z", "leaseDurationSeconds": 15}}));
    round_trip(&json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"extra": {"scopes": ["a", "b"]}, "user": "u"}}));
    round_trip(
        &json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "data": {"any": ["thing", 1]}, "revision": 3}),
    );
    round_trip(
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"versions": [
        {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "default": {"a": 1}, "minimum": 0.5,
            "properties": {"l": {"items": {"type": "string"}}, "m": {"additionalProperties": true},
                "n": {"additionalProperties": {"type": "string"}}, "o": {"items": [{"type": "string"}]}},
            "dependencies": {"a": ["b"], "c": {"type": "string"}}}}}]}}),
    );
}

#[test]
fn bodies_that_kubectl_sends_are_read() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/fixtures/kubectl/protobuf-bodies");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: recorded protobuf bodies are not on this machine");
        return;
    };
    let mut kinds = Vec::new();
    for entry in entries {
        let body = std::fs::read(entry.unwrap().path()).unwrap();
        let (gvk, object) = decode(&body, None).unwrap();
        assert_eq!(object["kind"], *gvk.kind);
        let again = Writer(&Builtins::load().types).body(&gvk, Builtins::load().body(&gvk).unwrap(), &object);
        assert_eq!(decode(&again, None).unwrap().1, object, "{gvk}");
        kinds.push(gvk.kind.to_string());
    }
    kinds.sort();
    assert!(
        kinds.contains(&"Namespace".to_owned()) && kinds.contains(&"DeleteOptions".to_owned()),
        "{kinds:?}"
    );
}

#[test]
fn the_kind_may_come_from_the_request() {
    let mut body = MAGIC.to_vec();
    bytes(&mut body, 2, &[]);
    let gvk = Gvk::new("v1", "ConfigMap").unwrap();
    assert_eq!(decode(&body, None), Err(ProtoError::NoKind));
    let (found, object) = decode(&body, Some(&gvk)).unwrap();
    assert_eq!((found, object["kind"].as_str()), (gvk, Some("ConfigMap")));
}

#[test]
fn kinds_that_are_not_built_in_and_encodings_are_refused() {
    let gvk = Gvk::new("example.com/v1", "Thing").unwrap();
    assert_eq!(decode(b"k8s\0", Some(&gvk)), Err(ProtoError::UnknownKind(gvk.clone())));
    let mut body = MAGIC.to_vec();
    bytes(&mut body, 3, b"gzip");
    assert_eq!(decode(&body, Some(&gvk)), Err(ProtoError::Encoded("gzip".into())));
    assert_eq!(decode(b"{}", None), Err(ProtoError::Magic));
}

#[test]
fn a_body_of_countless_empty_values_is_refused() {
    let mut body = MAGIC.to_vec();
    let mut spec = Vec::new();
    for _ in 0..=VALUES_MAX {
        bytes(&mut spec, 2, &[]);
    }
    let mut pod = Vec::new();
    bytes(&mut pod, 2, &spec);
    bytes(&mut body, 2, &pod);
    assert_eq!(decode(&body, Some(&Gvk::new("v1", "Pod").unwrap())), Err(ProtoError::Values));
}

#[test]
fn endless_nesting_is_refused() {
    // A schema within `not` within `not`.
    let props =
        Builtins::load().types.get(Builtins::load().types.find("apiextensions.v1.JSONSchemaProps").unwrap());
    let not = props.field("not").unwrap().number;
    let mut schema = Vec::new();
    for _ in 0..DEPTH_MAX {
        let mut outer = Vec::new();
        bytes(&mut outer, not, &schema);
        schema = outer;
    }
    let mut reader = Reader { types: &Builtins::load().types, values: 0, depth: 0 };
    let id = Builtins::load().types.find("apiextensions.v1.JSONSchemaProps").unwrap();
    assert_eq!(reader.message(id, &schema, &mut Map::new()), Err(ProtoError::Depth));
}

#[test]
fn raw_json_deep_within_messages_is_refused_before_it_is_stored() {
    let gvk = Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let definition = |levels: usize| {
        let default = (1..levels).fold(json!([]), |inner, _| json!([inner]));
        let schema = json!({"type": "object", "default": default});
        json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
    };
    let read = |levels: usize| {
        let body = Writer(&Builtins::load().types).body(
            &gvk,
            Builtins::load().body(&gvk).unwrap(),
            &definition(levels),
        );
        decode(&body, None).map(|(gvk, _)| gvk)
    };
    // The definition, its spec, versions, version, schema and `openAPIV3Schema` are six levels themselves.
    assert_eq!(read(OBJECT_DEPTH_MAX - 6), Ok(gvk.clone()));
    assert_eq!(read(OBJECT_DEPTH_MAX - 5), Err(ProtoError::ObjectDepth));
}

fn label() -> impl Strategy<Value = String> {
    "[a-zé]{1,8}"
}

prop_compose! {
    fn any_pod()(name in label(), labels in proptest::collection::btree_map(label(), ".{0,5}", 0..4),
        grace in proptest::option::of(any::<i64>()), ports in proptest::collection::vec(any::<i32>(), 0..4),
        host in any::<bool>(), when in proptest::option::of(0_i64..4_000_000_000)) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels,
                "creationTimestamp": when.and_then(instant::seconds_text)},
            "spec": {"terminationGracePeriodSeconds": grace, "hostNetwork": host,
                "containers": ports.iter().map(|port| json!({"name": name, "ports": [{"containerPort": port}]})).collect::<Vec<_>>()}})
    }
}

proptest! {
    #[test]
    fn any_pod_survives_protobuf(pod in any_pod()) {
        round_trip(&pod);
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut body in proptest::collection::vec(any::<u8>(), 0..300), kind in 0_usize..40) {
        let kinds = &Builtins::load().kinds;
        let gvk = kinds[kind % kinds.len()].gvk();
        let mut framed = MAGIC.to_vec();
        bytes(&mut framed, 2, &body);
        let _ = decode(&framed, Some(&gvk));
        body.splice(0..0, MAGIC);
        let _ = decode(&body, Some(&gvk));
    }

    #[test]
    fn a_damaged_body_is_read_or_refused(pod in any_pod(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let gvk = Gvk::of(&pod).unwrap();
        let mut body = Writer(&Builtins::load().types).body(&gvk, Builtins::load().body(&gvk).unwrap(), &conform(Builtins::load().body(&gvk).unwrap(), pod).unwrap().value);
        let at = at.index(body.len());
        body[at] = byte;
        let _ = decode(&body, None);
        body.truncate(at);
        let _ = decode(&body, None);
    }
}
