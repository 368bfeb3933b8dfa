//! Where volumes can be used, and which of them cannot leave their node.

use berth_api::core::Node;
use serde_json::Value;

use super::nodes::selects;

/// Whether a persistent volume can be used on a node.
pub fn is_within_reach(volume: &Value, node: &Node) -> bool {
    let required = &volume["spec"]["nodeAffinity"]["required"];
    required.is_null() || selects(required, node)
}

/// Node labels by which drivers of local volumes tell nodes apart, each node from every other.
const NODE_KEYS: [&str; 6] = [
    "kubernetes.io/hostname",
    "openebs.io/nodeid",
    "openebs.io/nodename",
    "topology.hostpath.csi/node",
    "topology.topolvm.cybozu.com/node",
    "topology.topolvm.io/node",
];

/// Whether a persistent volume cannot be used on any node but one: `None` where that is not known. `others` are the other
/// nodes, if they are known.
///
/// That no other node is within its reach is no proof: the disk of a zone with one node left is not lost with that node. Only
/// what the volume says of itself is.
pub fn is_bound_to_a_node<'n>(
    volume: &Value,
    others: Option<impl Iterator<Item = &'n Node>>,
) -> Option<bool> {
    let spec = &volume["spec"];
    if spec.is_null() {
        return None;
    }
    if !spec["local"].is_null() || !spec["hostPath"].is_null() {
        return Some(true);
    }
    let required = &spec["nodeAffinity"]["required"];
    if required.is_null() {
        return Some(false);
    }
    if names_one_node(required) {
        return Some(true);
    }
    others?.any(|node| is_within_reach(volume, node)).then_some(false)
}

/// Whether each term of a node selector names the same one node.
fn names_one_node(selector: &Value) -> bool {
    let named = |term: &Value| -> Option<String> {
        let list = |field: &str| term[field].as_array().map(Vec::as_slice).unwrap_or_default().to_vec();
        let is_of_a_node = |one: &Value, keys: &[&str]| {
            one["operator"] == "In"
                && one["key"].as_str().is_some_and(|key| keys.contains(&key))
                && one["values"].as_array().is_some_and(|values| values.len() == 1)
        };
        let label = list("matchExpressions").into_iter().find(|one| is_of_a_node(one, &NODE_KEYS));
        let field = || list("matchFields").into_iter().find(|one| is_of_a_node(one, &["metadata.name"]));
        let one = label.or_else(field)?;
        Some(format!("{}={}", one["key"], one["values"][0]))
    };
    let terms = selector["nodeSelectorTerms"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names = terms.iter().map(named);
    let Some(Some(first)) = names.next() else { return false };
    names.all(|name| name.as_ref() == Some(&first))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{node, volume_on};
    use super::*;

    #[test]
    fn only_a_volume_that_says_so_itself_cannot_leave_its_node() {
        let (one, two) = (node("n1", &json!({})), node("n2", &json!({})));
        let others = |nodes: &[&Node]| nodes.iter().map(|node| (*node).clone()).collect::<Vec<_>>();
        let is_bound = |volume: &Value, nodes: &[Node]| is_bound_to_a_node(volume, Some(nodes.iter()));
        let nobody: Option<std::iter::Empty<&Node>> = None;
        assert_eq!(is_bound_to_a_node(&volume_on("n1"), nobody.clone()), Some(true));
        assert_eq!(is_bound_to_a_node(&json!({"spec": {"local": {}}}), nobody.clone()), Some(true));
        assert_eq!(is_bound_to_a_node(&json!({"spec": {"nfs": {}}}), nobody.clone()), Some(false));
        assert_eq!(is_bound_to_a_node(&json!({}), nobody.clone()), None);
        let with = |terms: Value| json!({"spec": {"csi": {}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
        let on = |key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": "In", "values": values}]});
        let zonal = with(json!([on("zone", &["a"])]));
        assert_eq!(is_bound(&zonal, &others(&[])), None, "the zone's last node is not the disk's only one");
        assert_eq!(is_bound(&zonal, &others(&[&two])), Some(false));
        assert_eq!(is_bound_to_a_node(&zonal, nobody), None, "nobody knows the other nodes");
        let host = "kubernetes.io/hostname";
        for (terms, expected) in [
            (json!([on(host, &["n1"])]), Some(true)),
            (json!([on("topology.topolvm.io/node", &["n1"])]), Some(true)),
            (
                json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]),
                Some(true),
            ),
            (json!([on(host, &["n1"]), on(host, &["n1"])]), Some(true)),
            (json!([on(host, &["n1"]), on(host, &["n3"])]), None),
            (json!([on(host, &["n1", "n3"])]), None),
            (json!([on(host, &["n1", "n2"])]), Some(false)),
            (json!([on(host, &["n1"]), on("zone", &["b"])]), None),
            (json!([{"matchExpressions": [{"key": host, "operator": "NotIn", "values": ["n2"]}]}]), None),
            (json!([]), None),
        ] {
            assert_eq!(is_bound(&with(terms.clone()), &others(&[&two])), expected, "{terms}");
        }
        assert_eq!(is_bound(&zonal, &others(&[&one, &two])), Some(false));
    }
}
