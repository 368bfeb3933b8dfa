//! Objects as they are printed: what every one of them carries, and how one is named.

use std::fmt;

use serde_json::{Map, Value, json};

use super::NAME;

/// By which everything that was printed is known, and what it says.
const PRINTED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "berth-install");

/// Whether an object on a server was printed by `berth install`.
pub(super) fn is_printed(object: &Value) -> bool {
    let (label, value) = PRINTED_BY;
    object["metadata"]["labels"][label] == value
}

/// Which object, on any server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// Empty where it has none.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Identity {
    /// Of an object that was made here.
    pub(super) fn of(object: &Value) -> Self {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }

    /// The path of the object on a server.
    pub(super) fn path(&self) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let namespace =
            if self.namespace.is_empty() { String::new() } else { format!("/namespaces/{}", self.namespace) };
        // Every kind that is installed has a regular plural.
        let plural = format!("{}s", self.kind.to_ascii_lowercase());
        format!("{root}/{}{namespace}/{plural}/{}", self.api_version, self.name)
    }

    /// The line that deletes what is called so, of these kinds.
    pub(super) fn deletion(&self, kinds: &str) -> String {
        let Self { namespace, name, .. } = self;
        let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
        format!("kubectl delete {kinds}{place} {name}")
    }

    /// Just enough of the object for `kubectl delete`.
    pub(super) fn stub(&self) -> Value {
        let mut metadata = json!({"name": self.name});
        if !self.namespace.is_empty() {
            metadata["namespace"] = json!(self.namespace);
        }
        json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata})
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() {
            write!(formatter, "{kind} {name}")
        } else {
            write!(formatter, "{kind} {namespace}/{name}")
        }
    }
}

/// The labels by which the pods of a component are found; they never change.
pub(super) fn selector(component: &str) -> Value {
    json!({
        "app.kubernetes.io/name": NAME,
        "app.kubernetes.io/instance": NAME,
        "app.kubernetes.io/component": component,
    })
}

/// The labels of everything that belongs to a component.
pub(super) fn labels(component: &str) -> Value {
    let mut labels = selector(component);
    labels["app.kubernetes.io/part-of"] = json!(NAME);
    labels["app.kubernetes.io/version"] = json!(env!("CARGO_PKG_VERSION"));
    let (label, value) = PRINTED_BY;
    labels[label] = json!(value);
    labels
}

/// An object of a component: `body` has everything but its type and metadata.
pub(super) fn object(
    (api_version, kind): (&str, &str),
    (namespace, name): (Option<&str>, &str),
    component: &str,
    body: Value,
) -> Value {
    let mut metadata = json!({"name": name, "labels": labels(component)});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    object.insert("metadata".to_owned(), metadata);
    if let Value::Object(fields) = body {
        object.extend(fields);
    }
    Value::Object(object)
}
