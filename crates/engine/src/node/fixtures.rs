//! Nodes and moments for tests.

use std::collections::BTreeMap;

use berth_api::core::{Node, NodeTaint, Zone};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::moment::Moment;

/// When the tests take place.
const START: i64 = 1_700_000_000;

pub(super) fn at(second: i64) -> Moment {
    Moment::from_second(START + second)
}

pub(super) fn time(second: i64) -> Time {
    Time(Timestamp::from_second(START + second).unwrap())
}

pub(super) fn conditions(said: &[(&str, &str)]) -> Vec<NodeCondition> {
    let one = |(kind, status): &(&str, &str)| NodeCondition {
        type_: (*kind).to_owned(),
        status: (*status).to_owned(),
        ..NodeCondition::default()
    };
    said.iter().map(one).collect()
}

/// A Ready condition with a heartbeat.
pub(super) fn beating(status: &str, second: i64) -> Vec<NodeCondition> {
    let mut conditions = conditions(&[("Ready", status)]);
    conditions[0].last_heartbeat_time = Some(time(second));
    conditions
}

/// A node that was made a thousand seconds before the tests begin.
pub(super) fn node(said: &[(&str, &str)], taints: &[NodeTaint]) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some("n".to_owned());
    node.metadata.uid = Some("u".to_owned());
    node.metadata.creation_timestamp = Some(time(-1_000));
    node.status.conditions = conditions(said);
    node.spec.taints = taints.to_vec();
    node
}

pub(super) fn zone(name: &str) -> Zone {
    Zone { region: String::new(), zone: name.to_owned() }
}

pub(super) fn taint(key: &str, effect: &str, added: Option<i64>) -> NodeTaint {
    NodeTaint { key: key.to_owned(), effect: effect.to_owned(), value: None, time_added: added.map(time) }
}

pub(super) fn labels(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
