//! Pods as scenarios make them: no grace, so that who is deleted is gone, unless they say otherwise.

use serde_json::{Value, json};

/// A pod to be made.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    name: String,
    pub(crate) node: Option<String>,
    tolerations: Vec<Value>,
    grace: i64,
    finalizers: Vec<String>,
    annotations: Value,
    labels: Value,
    owners: Vec<Value>,
}

impl Pod {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            node: None,
            tolerations: Vec::new(),
            grace: 0,
            finalizers: Vec::new(),
            annotations: json!({}),
            labels: json!({}),
            owners: Vec::new(),
        }
    }

    /// On that node of the scenario.
    pub(crate) fn on(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }

    pub(crate) fn tolerating(mut self, tolerations: impl IntoIterator<Item = Value>) -> Self {
        self.tolerations.extend(tolerations);
        self
    }

    /// With so many seconds to end in: there is no kubelet, so it stays, on its way out.
    pub(crate) fn grace(mut self, seconds: i64) -> Self {
        self.grace = seconds;
        self
    }

    /// What a kubelet shows of a pod that it was given by a file.
    pub(crate) fn mirror(mut self) -> Self {
        self.annotations = json!({"kubernetes.io/config.mirror": "scenario"});
        self
    }

    pub(crate) fn labelled(mut self, key: &str, value: &str) -> Self {
        self.labels[key] = json!(value);
        self
    }

    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations[key] = json!(value);
        self
    }

    /// Kept by this object.
    pub(crate) fn kept_by(mut self, owner: &Value) -> Self {
        self.owners.push(json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": true,
        }));
        self
    }

    /// With something that holds it when it is deleted.
    pub(crate) fn held(mut self) -> Self {
        self.finalizers.push("berth.dev/scenario".to_owned());
        self
    }

    /// The object to send; a node by its whole name.
    pub(crate) fn object(&self, node: Option<&str>) -> Value {
        let mut spec = json!({
            "terminationGracePeriodSeconds": self.grace, "tolerations": self.tolerations,
            "containers": [{"name": "main", "image": "scenario"}],
        });
        if let Some(node) = node {
            spec["nodeName"] = json!(node);
        }
        json!({
            "apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {
                "name": self.name, "finalizers": self.finalizers, "annotations": self.annotations,
                "labels": self.labels, "ownerReferences": self.owners,
            },
        })
    }
}
