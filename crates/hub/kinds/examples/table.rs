//! Reads the facts about the built-in kinds out of the published Go modules and writes them as one table.
//!
//! `cargo run -p berth-hub-kinds --example table` writes `data/kinds.txt`; with `--check` it compares instead and fails on
//! a difference. The modules are those that `upstream/kubernetes` pins, found through `go list`. Two sources are joined: the
//! OpenAPI documents say what a field is (type, list type, merge key, required), the Go declarations say how it is written
//! (protobuf number, pointer, what is left out when empty, what is inlined). Prose is never read.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Where the Go declarations of an OpenAPI package are: the package as OpenAPI names it, the module and the folder in it.
const PACKAGES: [(&str, &str, &str); 16] = [
    ("io.k8s.api.admissionregistration.v1", "k8s.io/api", "admissionregistration/v1"),
    ("io.k8s.api.apps.v1", "k8s.io/api", "apps/v1"),
    ("io.k8s.api.authentication.v1", "k8s.io/api", "authentication/v1"),
    ("io.k8s.api.authorization.v1", "k8s.io/api", "authorization/v1"),
    ("io.k8s.api.autoscaling.v1", "k8s.io/api", "autoscaling/v1"),
    ("io.k8s.api.batch.v1", "k8s.io/api", "batch/v1"),
    ("io.k8s.api.coordination.v1", "k8s.io/api", "coordination/v1"),
    ("io.k8s.api.core.v1", "k8s.io/api", "core/v1"),
    ("io.k8s.api.discovery.v1", "k8s.io/api", "discovery/v1"),
    ("io.k8s.api.events.v1", "k8s.io/api", "events/v1"),
    ("io.k8s.api.policy.v1", "k8s.io/api", "policy/v1"),
    ("io.k8s.api.rbac.v1", "k8s.io/api", "rbac/v1"),
    ("io.k8s.api.scheduling.v1", "k8s.io/api", "scheduling/v1"),
    ("io.k8s.api.storage.v1", "k8s.io/api", "storage/v1"),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
        "k8s.io/apiextensions-apiserver",
        "pkg/apis/apiextensions/v1",
    ),
    ("io.k8s.apimachinery.pkg.apis.meta.v1", "k8s.io/apimachinery", "pkg/apis/meta/v1"),
];

/// The kinds served, and the types that requests and answers are made of; everything they refer to comes along.
const ROOTS: &str = "admissionregistration.v1.{MutatingWebhookConfiguration,ValidatingWebhookConfiguration} \
    apps.v1.{ControllerRevision,DaemonSet,Deployment,ReplicaSet,StatefulSet} \
    authentication.v1.{SelfSubjectReview,TokenRequest,TokenReview} \
    authorization.v1.{LocalSubjectAccessReview,SelfSubjectAccessReview,SelfSubjectRulesReview,SubjectAccessReview} \
    autoscaling.v1.Scale batch.v1.Job coordination.v1.Lease \
    core.v1.{Binding,ConfigMap,Endpoints,Event,LimitRange,Namespace,Node,PersistentVolume,PersistentVolumeClaim,Pod,\
    ResourceQuota,Secret,Service,ServiceAccount} \
    discovery.v1.EndpointSlice events.v1.Event \
    policy.v1.{Eviction,PodDisruptionBudget} \
    rbac.v1.{ClusterRole,ClusterRoleBinding,Role,RoleBinding} scheduling.v1.PriorityClass storage.v1.StorageClass \
    apiextensions.v1.CustomResourceDefinition \
    meta.v1.{APIGroup,APIGroupList,APIResourceList,APIVersions,DeleteOptions,ListMeta,Status}";

/// Types whose JSON is not the record of their Go fields, and the word the table has for each.
const SCALARS: [(&str, &str); 10] = [
    ("meta.v1.Time", "time"),
    ("meta.v1.MicroTime", "microtime"),
    ("meta.v1.FieldsV1", "fields"),
    ("resource.Quantity", "quantity"),
    ("intstr.IntOrString", "intorstring"),
    ("runtime.RawExtension", "raw"),
    ("apiextensions.v1.JSON", "any"),
    ("apiextensions.v1.JSONSchemaPropsOrArray", "schemaorlist"),
    ("apiextensions.v1.JSONSchemaPropsOrBool", "schemaorbool"),
    ("apiextensions.v1.JSONSchemaPropsOrStringArray", "schemaorstrings"),
];

fn main() -> Outcome<()> {
    let upstream = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../upstream/kubernetes");
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/kinds.txt");
    let text =
        table(&read_documents(&module(&upstream, "k8s.io/kubernetes")?)?, &read_declarations(&upstream)?)?;
    if std::env::args().any(|argument| argument == "--check") {
        if fs::read_to_string(&target)? != text {
            return Err(
                format!("{} is out of date: write it again with ./dev generate", target.display()).into()
            );
        }
    } else {
        fs::write(&target, text)?;
    }
    Ok(())
}

fn module(from: &Path, name: &str) -> Outcome<PathBuf> {
    let answer =
        Command::new("go").args(["list", "-m", "-f", "{{.Dir}}", name]).current_dir(from).output()?;
    let folder = String::from_utf8(answer.stdout)?.trim().to_owned();
    if folder.is_empty() {
        return Err(format!(
            "module {name} is not downloaded: run `go mod download {name}` in {}",
            from.display()
        )
        .into());
    }
    Ok(folder.into())
}

/// `io.k8s.api.core.v1.Pod` as `core.v1.Pod`; types outside a versioned package by their last two names.
fn short(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let versioned = parts.len() > 2 && parts[parts.len() - 2].starts_with('v');
    parts[parts.len() - if versioned { 3 } else { 2 }..].join(".")
}

/// The schemas of all documents, by short name.
fn read_documents(kubernetes: &Path) -> Outcome<BTreeMap<String, Value>> {
    let mut schemas = BTreeMap::new();
    for entry in fs::read_dir(kubernetes.join("api/openapi-spec/v3"))? {
        let mut document: Value = serde_json::from_slice(&fs::read(entry?.path())?)?;
        if let Some(Value::Object(found)) = document.pointer_mut("/components/schemas").map(Value::take) {
            schemas.extend(found.into_iter().map(|(name, schema)| (short(&name), schema)));
        }
    }
    Ok(schemas)
}

/// A field as Go declares it.
#[derive(Debug, Default)]
struct Declared {
    json: String,
    go: String,
    number: u32,
    inline: bool,
    omit_empty: bool,
    omit_zero: bool,
}

/// The structs of all packages by short name, and what named types that are not structs stand for.
#[derive(Default)]
struct Declarations {
    structs: BTreeMap<String, Vec<Declared>>,
    named: BTreeMap<String, String>,
}

fn read_declarations(upstream: &Path) -> Outcome<Declarations> {
    let mut all = Declarations::default();
    for (package, name, folder) in PACKAGES {
        let prefix = short(&format!("{package}."));
        let prefix = prefix.trim_end_matches('.');
        for entry in fs::read_dir(module(upstream, name)?.join(folder))? {
            let path = entry?.path();
            let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let generated =
                file.starts_with("zz_") || file.starts_with("generated") || file.contains("_test");
            if path.extension().is_some_and(|extension| extension == "go") && !generated {
                read_file(&fs::read_to_string(&path)?, prefix, &mut all);
            }
        }
    }
    Ok(all)
}

fn read_file(text: &str, prefix: &str, all: &mut Declarations) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("type ") else { continue };
        let Some((name, rest)) = rest.split_once(' ') else { continue };
        if rest.trim() == "struct{}" {
            all.structs.insert(format!("{prefix}.{name}"), Vec::new());
            continue;
        }
        if rest.trim() != "struct {" {
            all.named.insert(format!("{prefix}.{name}"), rest.trim_start_matches("= ").trim().to_owned());
            continue;
        }
        let fields = lines.by_ref().take_while(|line| *line != "}").filter_map(declared).collect();
        all.structs.insert(format!("{prefix}.{name}"), fields);
    }
}

/// One line of a struct: `Name Type` or an embedded `Type`, then its tags.
fn declared(line: &str) -> Option<Declared> {
    let line = line.trim();
    if line.starts_with("//") {
        return None;
    }
    let (declaration, tags) = line.split_once('`')?;
    let go = declaration.split_whitespace().last()?.to_owned();
    let mut json = tag(tags, "json")?.split(',');
    let name = json.next().unwrap_or_default().to_owned();
    let options: Vec<&str> = json.collect();
    let protobuf = tag(tags, "protobuf").unwrap_or_default();
    Some(Declared {
        inline: name.is_empty(),
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
        number: protobuf.split(',').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0),
        json: name,
        go,
    })
}

fn tag<'a>(tags: &'a str, name: &str) -> Option<&'a str> {
    let rest = &tags[tags.find(&format!("{name}:\""))? + name.len() + 2..];
    Some(&rest[..rest.find('"')?])
}

fn table(schemas: &BTreeMap<String, Value>, all: &Declarations) -> Outcome<String> {
    let mut queue: VecDeque<(String, String)> =
        roots().into_iter().map(|name| (name.clone(), name)).collect();
    let mut lines = BTreeMap::new();
    while let Some((name, documented)) = queue.pop_front() {
        if lines.contains_key(&name) {
            continue;
        }
        // A type that is only ever inlined has no schema of its own: its fields are documented where it is used.
        let schema = schemas.get(&name).or_else(|| schemas.get(&documented));
        let fields = all.structs.get(&name).ok_or_else(|| format!("no Go declaration of {name}"))?;
        let (text, referred) = write_type(&name, schema, schemas.contains_key(&name), fields, all)?;
        queue.extend(referred.into_iter().map(|referred| (referred, name.clone())));
        lines.insert(name, text);
    }
    let mut out = String::from(
        "# Generated by the example `table` from the published Go modules. The format is described in src/types.rs.\n",
    );
    for (package, ..) in PACKAGES {
        writeln!(out, "package {} {package}", short(&format!("{package}.")).trim_end_matches('.'))?;
    }
    out.extend(lines.into_values());
    Ok(out)
}

fn roots() -> VecDeque<String> {
    let mut names = VecDeque::new();
    for word in ROOTS.split_whitespace() {
        match word.split_once('{') {
            Some((prefix, list)) => {
                names.extend(list.trim_end_matches('}').split(',').map(|name| format!("{prefix}{name}")));
            }
            None => names.push_back(word.to_owned()),
        }
    }
    names
}

fn write_type(
    name: &str,
    schema: Option<&Value>,
    documented: bool,
    fields: &[Declared],
    all: &Declarations,
) -> Outcome<(String, Vec<String>)> {
    let mut out = format!("type {name}");
    let empty = Value::Null;
    let schema = schema.unwrap_or(&empty);
    if let Some(map) = schema["x-kubernetes-map-type"].as_str().filter(|_| documented) {
        write!(out, " map={map}")?;
    }
    out.push('\n');
    let mut referred = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for field in fields {
        if field.json == "-" {
            continue;
        }
        if field.inline {
            let go = field.go.trim_start_matches('*');
            if go.ends_with("TypeMeta") {
                out.push_str("  kind string 0 o\n  apiVersion string 0 o\n");
                seen.extend(["kind".to_owned(), "apiVersion".to_owned()]);
            } else {
                let inlined = format!("{}.{go}", &name[..name.rfind('.').unwrap_or(0)]);
                writeln!(out, "  ~ {inlined} {}", field.number)?;
                seen.extend(inlined_names(&inlined, all));
                referred.insert(inlined);
            }
            continue;
        }
        let property = &schema["properties"][&field.json];
        if property.is_null() {
            // Present in Go, absent from the published schema: a deprecated or internal field nobody may send.
            writeln!(out, "  - {} {}", field.json, field.number)?;
            continue;
        }
        seen.insert(field.json.clone());
        let kind =
            kind_of(property, &mut referred).map_err(|error| format!("{name}.{}: {error}", field.json))?;
        write!(
            out,
            "  {} {kind} {}{}",
            field.json,
            field.number,
            flags(name, schema, field, property, &kind, all)?
        )?;
        out.push('\n');
    }
    let own = schema["properties"].as_object().filter(|_| documented);
    for property in own.into_iter().flatten().map(|(property, _)| property) {
        if !seen.contains(property) {
            return Err(format!("{name}.{property} is in the document and not in Go").into());
        }
    }
    Ok((out, referred.into_iter().collect()))
}

fn inlined_names(name: &str, all: &Declarations) -> Vec<String> {
    all.structs.get(name).into_iter().flatten().map(|field| field.json.clone()).collect()
}

fn flags(
    name: &str,
    schema: &Value,
    field: &Declared,
    property: &Value,
    kind: &str,
    all: &Declarations,
) -> Outcome<String> {
    let mut out = String::new();
    let go = field.go.trim_start_matches('*');
    for (set, flag) in [(go != field.go, " *"), (field.omit_empty, " o"), (field.omit_zero, " z")] {
        if set {
            out.push_str(flag);
        }
    }
    if schema["required"].as_array().is_some_and(|required| required.iter().any(|name| *name == *field.json))
    {
        out.push_str(" r");
    }
    if let Some(list) = property["x-kubernetes-list-type"].as_str() {
        write!(out, " list={list}")?;
        if let Some(keys) = property["x-kubernetes-list-map-keys"].as_array() {
            let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
            write!(out, ":{}", keys.join(","))?;
        }
    }
    if let Some(map) = property["x-kubernetes-map-type"].as_str() {
        write!(out, " map={map}")?;
    }
    if let Some(strategy) = property["x-kubernetes-patch-strategy"].as_str() {
        write!(out, " patch={strategy}")?;
        if let Some(key) = property["x-kubernetes-patch-merge-key"].as_str() {
            write!(out, ":{key}")?;
        }
    }
    // Zero values are what Go writes anyway; what is left are the few true defaults, which list keys rely on.
    let default = &property["default"];
    let zero = matches!(default, Value::Null | Value::Object(_))
        || *default == ""
        || *default == 0
        || *default == false;
    if !zero {
        write!(out, " default={default}")?;
    }
    let prefix = &name[..name.rfind('.').unwrap_or(0)];
    let spelled = spelled(go, prefix, all);
    if spelled != plain(kind) {
        write!(out, " go={spelled}")?;
    }
    Ok(out)
}

/// A Go type as an error message spells it: every name with its package.
fn spelled(go: &str, prefix: &str, all: &Declarations) -> String {
    if let Some(item) = go.strip_prefix("[]") {
        return format!("[]{}", spelled(item, prefix, all));
    }
    if let Some((key, value)) = go.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return format!("map[{}]{}", spelled(key, prefix, all), spelled(value, prefix, all));
    }
    if let Some((package, name)) = go.split_once('.') {
        let package = if package.ends_with("v1") { "v1" } else { package };
        return format!("{package}.{name}");
    }
    let local = format!("{prefix}.{go}");
    if all.structs.contains_key(&local) || all.named.contains_key(&local) {
        format!("v1.{go}")
    } else {
        go.to_owned()
    }
}

/// What Go calls a type of the table when nothing else is said. The loader has the same rule.
fn plain(kind: &str) -> String {
    if let Some(item) = kind.strip_prefix("[]") {
        return format!("[]{}", plain(item));
    }
    if let Some(value) = kind.strip_prefix("{}") {
        return format!("map[string]{}", plain(value));
    }
    match kind {
        "bytes" => "[]byte".to_owned(),
        "double" => "float64".to_owned(),
        "time" => "v1.Time".to_owned(),
        "microtime" => "v1.MicroTime".to_owned(),
        "fields" => "v1.FieldsV1".to_owned(),
        "quantity" => "resource.Quantity".to_owned(),
        "intorstring" => "intstr.IntOrString".to_owned(),
        "raw" => "runtime.RawExtension".to_owned(),
        "any" => "v1.JSON".to_owned(),
        "schemaorlist" => "v1.JSONSchemaPropsOrArray".to_owned(),
        "schemaorbool" => "v1.JSONSchemaPropsOrBool".to_owned(),
        "schemaorstrings" => "v1.JSONSchemaPropsOrStringArray".to_owned(),
        _ => match kind.rsplit_once('.') {
            Some((_, name)) => format!("v1.{name}"),
            None => kind.to_owned(),
        },
    }
}

/// The table's word for the type of a property.
fn kind_of(property: &Value, referred: &mut BTreeSet<String>) -> Outcome<String> {
    let reference = property["$ref"].as_str().or_else(|| property["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        let name = short(reference.rsplit('/').next().unwrap_or_default());
        if let Some((_, word)) = SCALARS.iter().find(|(scalar, _)| *scalar == name) {
            if word.starts_with("schema") {
                referred.insert("apiextensions.v1.JSONSchemaProps".to_owned());
            }
            return Ok((*word).to_owned());
        }
        referred.insert(name.clone());
        return Ok(name);
    }
    Ok(match (property["type"].as_str(), property["format"].as_str()) {
        (Some("array"), _) => format!("[]{}", kind_of(&property["items"], referred)?),
        (Some("object"), _) if property["additionalProperties"].is_object() => {
            format!("{{}}{}", kind_of(&property["additionalProperties"], referred)?)
        }
        (Some("string"), Some("byte")) => "bytes".to_owned(),
        (Some("string"), _) => "string".to_owned(),
        (Some("integer"), Some(format)) => format.to_owned(),
        (Some("number"), _) => "double".to_owned(),
        (Some("boolean"), _) => "bool".to_owned(),
        _ => return Err(format!("no word for {property}").into()),
    })
}
