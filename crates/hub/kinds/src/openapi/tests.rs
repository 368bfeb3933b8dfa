use super::*;

/// Every reference of a document leads somewhere in it.
fn check_references(document: &Value) {
    fn walk(value: &Value, schemas: &Map<String, Value>) {
        match value {
            Value::Object(map) => {
                if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                    assert!(schemas.contains_key(name.strip_prefix(PREFIX).unwrap()), "{name}");
                }
                map.values().for_each(|value| walk(value, schemas));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, schemas)),
            _ => {}
        }
    }
    walk(document, document["components"]["schemas"].as_object().unwrap());
}

#[test]
fn every_reference_of_every_document_leads_somewhere() {
    for group in groups() {
        check_references(&builtin_document(group, "v1", "v1.36.4"));
    }
}

#[test]
fn patches_of_every_kind_take_field_validation_and_dry_run() {
    for group in groups() {
        let document = builtin_document(group, "v1", "v1.36.4");
        for kind in
            Builtins::load().kinds.iter().filter(|kind| kind.group == group && kind.verbs.contains(&"patch"))
        {
            let patches: Vec<&Value> = document["paths"]
                .as_object()
                .unwrap()
                .values()
                .filter_map(|path| path.get("patch"))
                .filter(|patch| patch[GVK]["kind"] == kind.kind)
                .collect();
            assert!(!patches.is_empty(), "{}", kind.kind);
            for patch in patches {
                let names: Vec<&str> = patch["parameters"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| one["name"].as_str().unwrap())
                    .collect();
                assert!(names.contains(&"fieldValidation") && names.contains(&"dryRun"), "{}", kind.kind);
            }
        }
    }
}

#[test]
fn schemas_carry_kinds_merge_rules_and_descriptions() {
    let document = builtin_document("", "v1", "v1.36.4");
    let schemas = &document["components"]["schemas"];
    let pod = &schemas["io.k8s.api.core.v1.Pod"];
    assert_eq!(pod[GVK], json!([{"group": "", "version": "v1", "kind": "Pod"}]));
    assert!(pod["description"].as_str().unwrap().starts_with("Pod is"));
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["items"]["allOf"][0]["$ref"], "#/components/schemas/io.k8s.api.core.v1.Container");
    assert_eq!(schemas["io.k8s.api.core.v1.PodList"][GVK][0]["kind"], "PodList");
    assert_eq!(document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["get"][GVK]["kind"], "Pod");
    assert_eq!(
        document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"][GVK]["kind"],
        "Eviction"
    );
}

#[test]
fn a_custom_kind_is_published_with_the_fields_every_object_has() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "description": "What is wanted"}}});
    let kind = CustomKind {
        group: "stable.example.com",
        version: "v1",
        kind: "CronTab",
        list_kind: "CronTabList",
        plural: "crontabs",
        namespaced: true,
        schema: Some(&schema),
        status: true,
        scale: true,
    };
    let document = custom_document(&[kind], "v1.36.4");
    check_references(&document);
    let published = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(published["properties"]["spec"]["description"], "What is wanted");
    assert!(published["properties"]["metadata"]["allOf"].is_array());
    let item = &document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"];
    assert!(item["patch"]["requestBody"]["content"].get(STRATEGIC_MEDIA).is_none());
    assert_eq!(
        document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale"]["get"]
            [GVK]["kind"],
        "Scale"
    );
}

const STRATEGIC_MEDIA: &str = "application/strategic-merge-patch+json";
