//! OpenAPI v3 documents, one per group and version, as kubectl reads them to apply, diff and explain.
//!
//! Owns the shape of the documents: schemas under the names upstream gives them, with list types and merge keys, and paths whose
//! operations say what may be done (kubectl looks for `fieldValidation` and `dryRun` there). Descriptions come from
//! [`k8s_openapi`] at run time. Never serves anything and never hashes: the caller caches what it gets.

use std::collections::{BTreeMap, BTreeSet};

use berth_schema::{ListType, PatchRule};
use serde_json::{Map, Value, json};

use crate::{
    openapi_paths::{Resource, paths},
    openapi_prose::prose,
    registry::{Builtin, Builtins},
    types::{Field, Kind, Omit, TypeId},
};

/// Where schemas refer to each other.
const PREFIX: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A kind that a definition brought, in one of its versions.
#[derive(Debug, Clone, Copy)]
pub struct CustomKind<'a> {
    /// The group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The kind of its lists.
    pub list_kind: &'a str,
    /// The name in paths.
    pub plural: &'a str,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// The `openAPIV3Schema` as written.
    pub schema: Option<&'a Value>,
    /// Whether it has a status subresource.
    pub status: bool,
    /// Whether it has a scale subresource.
    pub scale: bool,
}

/// The document of the built-in kinds of a group and version. `server` is the version the server claims, as `v1.36.4`.
pub fn builtin_document(group: &str, version: &str, server: &str) -> Value {
    let builtins = Builtins::load();
    let mut schemas = Schemas::default();
    let mut out = Map::new();
    for kind in builtins.kinds.iter().filter(|kind| kind.group == group && kind.version == version) {
        schemas.want(kind.type_id);
        let name = &*builtins.type_of(kind).name;
        if kind.stored() {
            schemas.list(name, kind);
        }
        for sub in kind.subresources {
            let gvk =
                crate::Gvk { group: sub.group.into(), version: sub.version.into(), kind: sub.kind.into() };
            schemas.want(builtins.body(&gvk).expect("subresources name kinds of the table"));
        }
        let subs: Vec<_> = kind
            .subresources
            .iter()
            .map(|sub| (sub.name, sub_schema(sub), sub.verbs, gvk(sub.group, sub.version, sub.kind)))
            .collect();
        out.extend(paths(&Resource {
            group,
            version,
            plural: kind.plural,
            kind: kind.kind,
            namespaced: kind.namespaced,
            verbs: kind.verbs,
            schema: name,
            list_schema: &format!("{name}List"),
            strategic: true,
            subresources: &subs,
        }));
    }
    schemas.want_meta();
    document(server, &out, &schemas.build())
}

fn sub_schema(sub: &crate::registry::Subresource) -> String {
    let builtins = Builtins::load();
    let gvk = crate::Gvk { group: sub.group.into(), version: sub.version.into(), kind: sub.kind.into() };
    builtins.body(&gvk).map(|id| builtins.types.get(id).name.to_string()).unwrap_or_default()
}

/// The document of the custom kinds of a group and version.
pub fn custom_document(kinds: &[CustomKind<'_>], server: &str) -> Value {
    let builtins = Builtins::load();
    let mut schemas = Schemas::default();
    let mut out = Map::new();
    for kind in kinds {
        let name = custom_name(kind.group, kind.version, kind.kind);
        let list = custom_name(kind.group, kind.version, kind.list_kind);
        schemas.done.insert(name.clone(), custom_schema(kind));
        schemas.done.insert(
            list.clone(),
            list_schema(&name, kind.kind, &gvk(kind.group, kind.version, kind.list_kind)),
        );
        let mut subs = Vec::new();
        if kind.status {
            let own = gvk(kind.group, kind.version, kind.kind);
            subs.push(("status", name.clone(), STATUS_VERBS, own));
        }
        if kind.scale {
            let id = builtins.types.find("autoscaling.v1.Scale").expect("Scale is in the table");
            schemas.want(id);
            subs.push((
                "scale",
                builtins.types.get(id).name.to_string(),
                STATUS_VERBS,
                gvk("autoscaling", "v1", "Scale"),
            ));
        }
        out.extend(paths(&Resource {
            group: kind.group,
            version: kind.version,
            plural: kind.plural,
            kind: kind.kind,
            namespaced: kind.namespaced,
            verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update"],
            schema: &name,
            list_schema: &list,
            strategic: false,
            subresources: &subs,
        }));
    }
    schemas.want_meta();
    document(server, &out, &schemas.build())
}

const STATUS_VERBS: &[&str] = &["get", "patch", "update"];

fn document(server: &str, paths: &Map<String, Value>, schemas: &Map<String, Value>) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": server},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header",
                "description": "Bearer Token authentication"}},
        },
    })
}

/// `stable.example.com` as `com.example.stable`, then version and kind.
fn custom_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').rev().collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// The published form of a definition's schema: its own, with what every object has.
fn custom_schema(kind: &CustomKind<'_>) -> Value {
    let mut schema = kind.schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
    if let Value::Object(map) = &mut schema {
        map.insert("type".into(), "object".into());
        let properties = map.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            let meta = prose();
            let words = |field: &str| meta.field("io.k8s.api.core.v1.ConfigMap", field);
            properties.insert("apiVersion".into(), described(json!({"type": "string"}), words("apiVersion")));
            properties.insert("kind".into(), described(json!({"type": "string"}), words("kind")));
            let object_meta = json!({"allOf": [{"$ref": format!("{PREFIX}{META}.ObjectMeta")}]});
            properties.insert("metadata".into(), described(object_meta, words("metadata")));
        }
        map.insert(GVK.into(), json!([gvk(kind.group, kind.version, kind.kind)]));
    }
    schema
}

const GVK: &str = "x-kubernetes-group-version-kind";

fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

fn described(mut schema: Value, words: Option<&str>) -> Value {
    if let (Value::Object(map), Some(words)) = (&mut schema, words) {
        map.insert("description".into(), words.into());
    }
    schema
}

fn list_schema(item: &str, kind: &str, list_gvk: &Value) -> Value {
    let meta = prose();
    let words = |field: &str| meta.field("io.k8s.api.core.v1.ConfigMap", field);
    json!({
        "description": format!("{kind}List is a list of {kind}"),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": described(json!({"type": "string"}), words("apiVersion")),
            "kind": described(json!({"type": "string"}), words("kind")),
            "metadata": {"allOf": [reference(&format!("{META}.ListMeta"))], "default": {}},
            "items": {"type": "array", "items": {"allOf": [reference(item)], "default": {}}},
        },
        GVK: [list_gvk],
    })
}

/// The schemas of one document: those asked for and whatever they refer to.
#[derive(Default)]
struct Schemas {
    wanted: Vec<TypeId>,
    scalars: BTreeSet<&'static str>,
    done: BTreeMap<String, Value>,
}

impl Schemas {
    fn want(&mut self, id: TypeId) {
        self.wanted.push(id);
    }

    /// What every document has.
    fn want_meta(&mut self) {
        let types = &Builtins::load().types;
        for name in ["meta.v1.DeleteOptions", "meta.v1.ListMeta", "meta.v1.ObjectMeta", "meta.v1.Status"] {
            self.want(types.find(name).expect("the types of metadata are in the table"));
        }
        self.done.insert(
            format!("{META}.Patch"),
            json!({"type": "object", "description": "A patch of an object."}),
        );
    }

    fn list(&mut self, item: &str, kind: &Builtin) {
        let list = list_schema(item, kind.kind, &gvk(kind.group, kind.version, &kind.list_kind));
        self.done.insert(format!("{item}List"), list);
    }

    fn build(mut self) -> Map<String, Value> {
        let builtins = Builtins::load();
        while let Some(id) = self.wanted.pop() {
            let found = builtins.types.get(id);
            if self.done.contains_key(&*found.name) {
                continue;
            }
            // Put down first: types refer to themselves.
            self.done.insert(found.name.to_string(), Value::Null);
            let schema = self.record(id);
            self.done.insert(found.name.to_string(), schema);
        }
        for scalar in std::mem::take(&mut self.scalars) {
            let (name, schema) = scalar_schema(scalar);
            self.done.insert(name.to_owned(), described(schema, prose().whole(name)));
        }
        self.done.into_iter().collect()
    }

    fn record(&mut self, id: TypeId) -> Value {
        let builtins = Builtins::load();
        let found = builtins.types.get(id);
        let mut out = Map::new();
        out.insert("type".into(), "object".into());
        let properties: Map<String, Value> = found
            .fields
            .iter()
            .map(|field| {
                let words = prose().field(&found.name, &field.name);
                (field.name.to_string(), described(self.property(field), words))
            })
            .collect();
        if !properties.is_empty() {
            out.insert("properties".into(), Value::Object(properties));
        }
        let required: Vec<&str> =
            found.fields.iter().filter(|field| field.required).map(|field| &*field.name).collect();
        if !required.is_empty() {
            out.insert("required".into(), required.into());
        }
        if found.atomic {
            out.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
        let kinds: Vec<Value> = match found.go_name() {
            // Options are sent to every group.
            "DeleteOptions" | "Status" => {
                groups().into_iter().map(|group| gvk(group, "v1", found.go_name())).collect()
            }
            name => crate::registry::gvk_of_type(&found.short)
                .map(|group| gvk(group, "v1", name))
                .into_iter()
                .collect(),
        };
        if !kinds.is_empty() {
            out.insert(GVK.into(), kinds.into());
        }
        described(Value::Object(out), prose().whole(&found.name))
    }

    fn property(&mut self, field: &Field) -> Value {
        let mut schema = self.kind(&field.kind, !field.pointer);
        let Value::Object(map) = &mut schema else { return schema };
        match &field.default {
            Some(default) => {
                map.insert("default".into(), default.clone());
            }
            None if (field.pointer || field.omit != Omit::Never)
                && !matches!(field.kind, Kind::Struct(_)) =>
            {
                map.remove("default");
            }
            None => {}
        }
        if let Some(list) = &field.list {
            let word = match list {
                ListType::Atomic => "atomic",
                ListType::Set => "set",
                ListType::Map(keys) => {
                    let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
                    map.insert("x-kubernetes-list-map-keys".into(), keys.into());
                    "map"
                }
            };
            map.insert("x-kubernetes-list-type".into(), word.into());
        }
        if field.atomic {
            map.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
        if let Some(PatchRule { merge, retain_keys, merge_key }) = &field.patch {
            let words: Vec<&str> = [(*merge, "merge"), (*retain_keys, "retainKeys")]
                .into_iter()
                .filter(|(set, _)| *set)
                .map(|(_, word)| word)
                .collect();
            let words = if words.is_empty() { "replace".to_owned() } else { words.join(",") };
            map.insert("x-kubernetes-patch-strategy".into(), words.into());
            if let Some(key) = merge_key {
                map.insert("x-kubernetes-patch-merge-key".into(), (**key).into());
            }
        }
        schema
    }

    /// The schema of a value; `by_value` when Go holds it without a pointer, so that a zero value is its default.
    fn kind(&mut self, kind: &Kind, by_value: bool) -> Value {
        let zero = |mut schema: Value, zero: Value| {
            if by_value {
                schema["default"] = zero;
            }
            schema
        };
        match kind {
            Kind::Bool => zero(json!({"type": "boolean"}), false.into()),
            Kind::Int32 => zero(json!({"type": "integer", "format": "int32"}), 0.into()),
            Kind::Int64 => zero(json!({"type": "integer", "format": "int64"}), 0.into()),
            Kind::Double => zero(json!({"type": "number", "format": "double"}), 0.into()),
            Kind::String => zero(json!({"type": "string"}), "".into()),
            Kind::Bytes => json!({"type": "string", "format": "byte"}),
            Kind::Struct(id) => {
                self.want(*id);
                zero(json!({"allOf": [reference(&Builtins::load().types.get(*id).name)]}), json!({}))
            }
            Kind::List(item) => json!({"type": "array", "items": self.item(item)}),
            Kind::Map(value) => json!({"type": "object", "additionalProperties": self.item(value)}),
            scalar => {
                let name = scalar_name(scalar);
                self.scalars.insert(name);
                if name.starts_with("io.k8s.apiextensions") {
                    let props = Builtins::load().types.find("apiextensions.v1.JSONSchemaProps");
                    self.want(props.expect("JSONSchemaProps is in the table"));
                }
                json!({"allOf": [reference(name)]})
            }
        }
    }
}

impl Schemas {
    /// The schema of items: a reference that has nothing beside it stands alone.
    fn item(&mut self, kind: &Kind) -> Value {
        let mut schema = self.kind(kind, true);
        match schema.as_object_mut().filter(|map| map.len() == 1).and_then(|map| map.remove("allOf")) {
            Some(mut all) => all[0].take(),
            None => schema,
        }
    }
}

/// All groups that are served, the core group first.
fn groups() -> BTreeSet<&'static str> {
    Builtins::load().kinds.iter().map(|kind| kind.group).collect()
}

fn scalar_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Time => "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        Kind::MicroTime => "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        Kind::Fields => "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        Kind::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity",
        Kind::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        Kind::Raw => "io.k8s.apimachinery.pkg.runtime.RawExtension",
        Kind::SchemaOrList => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray"
        }
        Kind::SchemaOrBool => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"
        }
        Kind::SchemaOrStrings => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray"
        }
        _ => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    }
}

fn scalar_schema(name: &'static str) -> (&'static str, Value) {
    let schema = match name.rsplit('.').next().unwrap_or(name) {
        "Time" | "MicroTime" => json!({"type": "string", "format": "date-time"}),
        "FieldsV1" | "RawExtension" => json!({"type": "object"}),
        "Quantity" => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        "IntOrString" => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        _ => json!({}),
    };
    (name, schema)
}

#[cfg(test)]
mod tests;
