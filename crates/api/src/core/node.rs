//! Nodes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use kube::core::ClusterResourceScope;
use serde::{Deserialize, Deserializer, Serialize};

/// The labels that say where a node is, those of old first: where both are given, Kubernetes goes by them.
const REGION_LABELS: [&str; 2] =
    ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"];
const ZONE_LABELS: [&str; 2] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];

/// A node: what it is called and labelled, who must stay away from it, and how it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What somebody wants of it.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: NodeSpec,
    /// How it is.
    #[serde(default, deserialize_with = "or_default")]
    pub status: NodeStatus,
}

/// What somebody wants of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Who must stay away, or leave.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<NodeTaint>,
    /// Whether nothing new may be put there.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
}

/// How a node is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Ready, under pressure, and whatever else is told of it.
    #[serde(default, deserialize_with = "conditions", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<NodeCondition>,
    /// What it has for pods, by resource; empty where nobody has said.
    #[serde(default, deserialize_with = "amounts", skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
}

/// An amount as it may be written: a text or a bare number. What is neither is kept as a text that says nothing, and must not
/// hide the node.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Text(String),
    Number(serde_json::Number),
    Other(serde::de::IgnoredAny),
}

/// Reads amounts; null is none.
fn amounts<'de, D: Deserializer<'de>>(source: D) -> Result<BTreeMap<String, String>, D::Error> {
    let written: BTreeMap<String, Amount> = or_default(source)?;
    let read = |amount| match amount {
        Amount::Text(text) => text,
        Amount::Number(number) => number.to_string(),
        Amount::Other(_) => String::new(),
    };
    Ok(written.into_iter().map(|(name, amount)| (name, read(amount))).collect())
}

/// A condition as it may be written: a time that cannot be held must not hide the node, and with it its taints.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default, deserialize_with = "crate::time::told")]
    last_heartbeat_time: Option<Time>,
    #[serde(default, deserialize_with = "crate::time::told")]
    last_transition_time: Option<Time>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    status: String,
    #[serde(default, deserialize_with = "or_default", rename = "type")]
    type_: String,
}

/// Reads conditions; null is none.
fn conditions<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<NodeCondition>, D::Error> {
    let written: Vec<Written> = or_default(source)?;
    let read = |written: Written| NodeCondition {
        last_heartbeat_time: written.last_heartbeat_time,
        last_transition_time: written.last_transition_time,
        message: written.message,
        reason: written.reason,
        status: written.status,
        type_: written.type_,
    };
    Ok(written.into_iter().map(read).collect())
}

/// A mark on a node that keeps pods away, or makes them leave, unless they tolerate it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTaint {
    /// What it is about.
    pub key: String,
    /// Its value; often there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What it does: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// When it was added, where somebody says so.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

impl NodeTaint {
    /// What makes pods leave.
    pub const NO_EXECUTE: &'static str = "NoExecute";

    /// Whether it makes pods leave.
    pub fn is_no_execute(&self) -> bool {
        self.effect == Self::NO_EXECUTE
    }

    /// Its value, where none reads as the empty text.
    pub fn value(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }
}

/// Where a node is: what fails as one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zone {
    /// The region; empty where the node does not say.
    pub region: String,
    /// The zone in it; empty where the node does not say.
    pub zone: String,
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.region, &*self.zone) {
            ("", zone) => f.write_str(zone),
            (region, "") => write!(f, "{region}/"),
            (region, zone) => write!(f, "{region}/{zone}"),
        }
    }
}

impl Node {
    /// Whether it says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }

    /// Where it is. Nodes that do not say are together in a zone without a name.
    pub fn zone(&self) -> Zone {
        let labels = self.metadata.labels.as_ref();
        let first = |names: [&str; 2]| {
            let given = names.iter().find_map(|name| labels?.get(*name).filter(|text| !text.is_empty()));
            given.cloned().unwrap_or_default()
        };
        Zone { region: first(REGION_LABELS), zone: first(ZONE_LABELS) }
    }

    /// What is told of it under this name.
    pub fn condition(&self, name: &str) -> Option<&NodeCondition> {
        self.status.conditions.iter().find(|condition| condition.type_ == name)
    }

    /// Its taints that make pods leave.
    pub fn no_execute(&self) -> impl Iterator<Item = &NodeTaint> {
        self.spec.taints.iter().filter(|taint| taint.is_no_execute())
    }
}

impl Resource for Node {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Node".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "nodes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Reads null as what is usual.
fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(source: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(labels: &serde_json::Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": "n", "labels": labels}})).unwrap()
    }

    #[test]
    fn a_node_is_read_without_what_nobody_needs() {
        let node: Node = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "n", "labels": {"a": "b"}},
            "spec": {"podCIDR": "10.0.0.0/24", "unschedulable": true, "taints": [
                {"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
                {"key": "k", "value": "v", "effect": "NoSchedule"},
            ]},
            "status": {"images": [{"names": ["x"]}], "conditions": [{"type": "Ready", "status": "True"}],
                "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3", "pods": 110, "odd": {}}},
        }))
        .unwrap();
        assert!(node.spec.unschedulable);
        assert_eq!(node.no_execute().map(NodeTaint::value).collect::<Vec<_>>(), [""]);
        assert_eq!(node.condition("Ready").unwrap().status, "True");
        let written = serde_json::to_value(&node).unwrap();
        assert_eq!(written["spec"]["taints"][0]["timeAdded"], "2026-01-01T00:00:00Z");
        assert_eq!(written["status"].get("images"), None);
        let allocatable = json!({"cpu": "3", "odd": "", "pods": "110"});
        assert_eq!(written["status"]["allocatable"], allocatable);
    }

    #[test]
    fn null_is_nothing_and_a_time_past_the_calendar_is_its_end() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n"}, "spec": {"taints": null, "unschedulable": null}, "status": null,
        }))
        .unwrap();
        assert_eq!((node.spec, node.status), Default::default());
        let taint = json!({"key": "k", "effect": "NoExecute", "timeAdded": "9999-12-31T23:59:59Z"});
        assert!(serde_json::from_value::<NodeTaint>(taint).unwrap().time_added.is_some());
    }

    #[test]
    fn the_labels_of_old_say_where_a_node_is_before_the_new_ones() {
        let new = json!({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"});
        assert_eq!(node(&new).zone().to_string(), "r/z");
        let mut both = new;
        both["failure-domain.beta.kubernetes.io/zone"] = json!("old");
        assert_eq!(node(&both).zone().to_string(), "r/old");
        assert_eq!(node(&json!({"topology.kubernetes.io/zone": "z"})).zone().to_string(), "z");
        assert_eq!(node(&json!({})).zone(), Zone::default());
    }

    #[test]
    fn no_time_in_a_condition_makes_a_node_unreadable() {
        for (time, read) in [
            ("2026-01-01T00:00:00Z", Some("2026-01-01T00:00:00Z".parse().unwrap())),
            ("9999-12-31T23:59:59Z", Some(jiff::Timestamp::MAX)),
            ("soon", None),
        ] {
            let condition = json!({
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "well",
                "lastHeartbeatTime": time, "lastTransitionTime": time,
            });
            let node = json!({"metadata": {"name": "n"}, "status": {"conditions": [condition]}});
            let node: Node = serde_json::from_value(node).unwrap();
            let ready = node.condition("Ready").unwrap();
            let texts = (&*ready.status, ready.reason.as_deref(), ready.message.as_deref());
            assert_eq!(texts, ("True", Some("KubeletReady"), Some("well")));
            for told in [&ready.last_heartbeat_time, &ready.last_transition_time] {
                assert_eq!(told.as_ref().map(|time| time.0), read, "{time}");
            }
        }
    }
}
