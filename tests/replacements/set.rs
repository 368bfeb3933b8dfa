//! StatefulSets, as people write them.

use serde_json::{Value, json};

use crate::scene::SCENE;

/// A StatefulSet in the making.
pub(crate) struct Set {
    name: String,
    object: Value,
}

impl Set {
    /// A set of pods without volumes, all of which may come at once.
    pub(crate) fn of(name: &str, replicas: usize) -> Self {
        let labels = json!({"app": name});
        let object = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {
                "replicas": replicas, "serviceName": name, "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "terminationGracePeriodSeconds": 5,
                        "containers": [{"name": "main", "image": "scenario"}],
                    },
                },
            },
        });
        Self { name: name.to_owned(), object }
    }

    /// Each member has a volume that cannot leave its node.
    pub(crate) fn with_volumes(mut self) -> Self {
        self.object["spec"]["volumeClaimTemplates"] = json!([{
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }]);
        self
    }

    /// Members come one after the other.
    pub(crate) fn ordered(mut self) -> Self {
        self.object["spec"]["podManagementPolicy"] = json!("OrderedReady");
        self
    }

    /// Members say this of themselves.
    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.object["spec"]["template"]["metadata"]["annotations"] = json!({key: value});
        self
    }

    /// Members ask for so much of their node, which has to be one of the scenario's own.
    pub(crate) fn asking(mut self, requests: &Value, scene: &str) -> Self {
        let spec = &mut self.object["spec"]["template"]["spec"];
        spec["containers"][0]["resources"] = json!({"requests": requests});
        spec["nodeSelector"] = json!({SCENE: scene});
        self
    }

    /// Its name, and all of it.
    pub(crate) fn written(self) -> (String, Value) {
        (self.name, self.object)
    }
}
