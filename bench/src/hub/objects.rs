//! What is written: a ConfigMap of about a kilobyte, and a ManagedCluster as a fleet has them.

use std::fmt;

use serde_json::{Value, json};

/// The definition of ManagedCluster, as it is installed.
pub(super) const DEFINITION: &str =
    include_str!("../../../deploy/crds/managedclusters.cluster.open-cluster-management.io.yaml");

/// Bytes of data in a ConfigMap.
const DATA_BYTES: usize = 800;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ConfigMap,
    ManagedCluster,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConfigMap => "ConfigMaps of 1 kB",
            Self::ManagedCluster => "ManagedClusters",
        })
    }
}

impl Kind {
    pub(super) fn collection(self) -> &'static str {
        match self {
            Self::ConfigMap => "/api/v1/namespaces/default/configmaps",
            Self::ManagedCluster => "/apis/cluster.open-cluster-management.io/v1/managedclusters",
        }
    }

    pub(super) fn path(self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    pub(super) fn object(self, name: &str) -> Value {
        match self {
            Self::ConfigMap => json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"app": "bench"}},
                "data": {"text": "All work and no play. ".repeat(DATA_BYTES / 22)},
            }),
            Self::ManagedCluster => json!({
                "apiVersion": "cluster.open-cluster-management.io/v1",
                "kind": "ManagedCluster",
                "metadata": {"name": name, "labels": {
                    "vendor": "OpenShift",
                    "cloud": "Amazon",
                    "env": "prod",
                    "region": "eu-central-1",
                    "cluster.open-cluster-management.io/clusterset": "default",
                }},
                "spec": {
                    "hubAcceptsClient": true,
                    "leaseDurationSeconds": 60,
                    "managedClusterClientConfigs": [{"url": format!("https://api.{name}.example.com:6443")}],
                },
            }),
        }
    }
}
