//! The paths of an OpenAPI document: which requests a resource takes.
//!
//! Owns the operations and their query parameters, in words of our own. Never decides what is served: it is told.

use serde_json::{Map, Value, json};

/// Media types of patches.
const PATCHES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// What a subresource is called, the schema it takes, its verbs and its kind.
pub(crate) type Sub<'a> = (&'a str, String, &'a [&'a str], Value);

/// A resource as paths show it.
pub(crate) struct Resource<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespaced: bool,
    pub(crate) verbs: &'a [&'a str],
    pub(crate) schema: &'a str,
    pub(crate) list_schema: &'a str,
    /// Whether strategic merge patches are taken.
    pub(crate) strategic: bool,
    pub(crate) subresources: &'a [Sub<'a>],
}

/// All paths of a resource with their operations.
pub(crate) fn paths(resource: &Resource<'_>) -> Map<String, Value> {
    let base = match resource.group {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let gvk = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let scoped = if resource.namespaced { format!("{base}/namespaces/{{namespace}}") } else { base.clone() };
    let collection = format!("{scoped}/{}", resource.plural);
    let item = format!("{collection}/{{name}}");
    let has = |verb: &str| resource.verbs.contains(&verb);
    let mut out = Map::new();
    let mut add = |path: &str, method: &str, operation: Value, parameters: &[&str]| {
        let entry = out.entry(path).or_insert_with(|| json!({"parameters": path_parameters(parameters)}));
        entry[method] = operation;
    };
    let in_collection: &[&str] = if resource.namespaced { &["namespace"] } else { &[] };
    let in_item: &[&str] = if resource.namespaced { &["name", "namespace"] } else { &["name"] };

    if has("list") {
        add(
            &collection,
            "get",
            operation(resource, "list", &gvk, resource.list_schema, LIST, None),
            in_collection,
        );
        if resource.namespaced {
            let everywhere = format!("{base}/{}", resource.plural);
            add(&everywhere, "get", operation(resource, "list", &gvk, resource.list_schema, LIST, None), &[]);
        }
    }
    if has("create") {
        let body = Some(&["*/*"][..]);
        add(
            &collection,
            "post",
            operation(resource, "post", &gvk, resource.schema, WRITE, body),
            in_collection,
        );
    }
    if has("deletecollection") {
        let status = operation(resource, "deletecollection", &gvk, STATUS, DELETE_COLLECTION, None);
        add(&collection, "delete", status, in_collection);
    }
    for (verb, method, parameters) in [
        ("get", "get", &[][..]),
        ("update", "put", WRITE),
        ("patch", "patch", PATCH),
        ("delete", "delete", DELETE),
    ] {
        if has(verb) {
            add(
                &item,
                method,
                operation(
                    resource,
                    method,
                    &gvk,
                    resource.schema,
                    parameters,
                    body_of(resource, method).as_deref(),
                ),
                in_item,
            );
        }
    }
    for (name, schema, verbs, kind) in resource.subresources {
        for (verb, method, parameters) in [
            ("create", "post", WRITE),
            ("get", "get", &[][..]),
            ("update", "put", WRITE),
            ("patch", "patch", PATCH),
        ] {
            if verbs.contains(&verb) {
                let mut made = operation(
                    resource,
                    method,
                    kind,
                    schema,
                    parameters,
                    body_of(resource, method).as_deref(),
                );
                let id = format!("{}{}", made["operationId"].as_str().unwrap_or_default(), capitalised(name));
                made["operationId"] = id.into();
                add(&format!("{item}/{name}"), method, made, in_item);
            }
        }
    }
    out
}

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const PATCH: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];
const DELETE: &[&str] = &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];
const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
const DELETE_COLLECTION: &[&str] = &[
    "continue",
    "dryRun",
    "fieldSelector",
    "gracePeriodSeconds",
    "labelSelector",
    "limit",
    "orphanDependents",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
];

/// What a query parameter is and does.
fn parameter(name: &str) -> Value {
    let (kind, words) = match name {
        "allowWatchBookmarks" => ("boolean", "ask a watch for events that only carry a resource version"),
        "continue" => ("string", "the token of the page before"),
        "dryRun" => ("string", "All: do everything but keep nothing"),
        "fieldManager" => ("string", "who is making the change, required to apply"),
        "fieldSelector" => ("string", "only objects whose fields match"),
        "fieldValidation" => {
            ("string", "what to do about unknown or duplicate fields: Ignore, Warn or Strict")
        }
        "force" => ("boolean", "take over fields of others when applying"),
        "gracePeriodSeconds" => ("integer", "seconds until the object is deleted"),
        "labelSelector" => ("string", "only objects whose labels match"),
        "limit" => ("integer", "the most objects of one page"),
        "orphanDependents" => {
            ("boolean", "leave dependents alone; propagationPolicy is the newer way to say so")
        }
        "propagationPolicy" => ("string", "what becomes of dependents: Orphan, Background or Foreground"),
        "resourceVersion" => ("string", "how recent the answer has to be, or where a watch starts"),
        "resourceVersionMatch" => ("string", "how resourceVersion is meant: Exact or NotOlderThan"),
        "sendInitialEvents" => ("boolean", "begin a watch with all objects there are"),
        "timeoutSeconds" => ("integer", "seconds after which the answer ends"),
        "watch" => ("boolean", "stream changes instead of listing"),
        _ => ("string", "if true, the answer is indented"),
    };
    json!({"name": name, "in": "query", "description": words, "schema": {"type": kind, "uniqueItems": true}})
}

fn path_parameters(names: &[&str]) -> Value {
    let mut out: Vec<Value> = names
        .iter()
        .map(|name| {
            let words = if *name == "name" { "name of the object" } else { "namespace of the object" };
            json!({"name": name, "in": "path", "required": true, "description": words, "schema": {"type": "string", "uniqueItems": true}})
        })
        .collect();
    out.push(parameter("pretty"));
    out.into()
}

/// The media types of an operation's body.
fn body_of(resource: &Resource<'_>, method: &str) -> Option<Vec<&'static str>> {
    match method {
        "post" | "put" | "delete" => Some(vec!["*/*"]),
        "patch" if resource.strategic => Some(PATCHES.into_iter().chain([STRATEGIC]).collect()),
        "patch" => Some(PATCHES.to_vec()),
        _ => None,
    }
}

fn operation(
    resource: &Resource<'_>,
    action: &str,
    gvk: &Value,
    schema: &str,
    parameters: &[&str],
    body: Option<&[&str]>,
) -> Value {
    let (word, sentence) = match action {
        "list" => ("list", "list or watch objects of kind"),
        "post" => ("create", "create a"),
        "deletecollection" => ("deleteCollection", "delete collection of"),
        "get" => ("read", "read the specified"),
        "put" => ("replace", "replace the specified"),
        "patch" => ("patch", "partially update the specified"),
        _ => ("delete", "delete a"),
    };
    let group = if resource.group.is_empty() { "core" } else { resource.group };
    let group_word = capitalised(group.split('.').next().unwrap_or(group));
    let scope = if resource.namespaced { "Namespaced" } else { "" };
    let reference = |name: &str| json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
    let answers = ["application/json", "application/yaml"].map(|media| (media.to_owned(), reference(schema)));
    let mut out = json!({
        "operationId": format!("{word}{group_word}{}{scope}{}", capitalised(resource.version), resource.kind),
        "description": format!("{sentence} {}", resource.kind),
        "tags": [format!("{}_{}", group.split('.').next().unwrap_or(group), resource.version)],
        "parameters": parameters.iter().map(|name| parameter(name)).collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK", "content": Map::from_iter(answers)}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    });
    if let Some(media) = body {
        let taken = match action {
            "patch" => "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
            "delete" => "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
            _ => schema,
        };
        let content: Map<String, Value> =
            media.iter().map(|media| ((*media).to_owned(), reference(taken))).collect();
        out["requestBody"] = json!({"required": action != "delete", "content": content});
    }
    out
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
}
