//! How evenly a pod wants its like to be spread.
//!
//! Owns the constraints that forbid a place (`DoNotSchedule`), as the scheduler counts them: over the nodes that the pod could be
//! on, without pods that are on their way out, and without the one that is to be replaced.

use std::collections::BTreeMap;

use berth_api::core::Node;
use serde_json::Value;

use super::near::{Asks, Neighbour};
use super::nodes::{is_asked_for, label};
use super::{Fit, Misfit, Missing};

/// One constraint, and how many there are in each place.
struct Constraint<'s> {
    key: &'s str,
    max_skew: i64,
    counts: BTreeMap<&'s str, i64>,
    /// How many there are in the place with the fewest.
    least: i64,
    /// One more where the pod counts as well.
    itself: i64,
    is_known: bool,
}

/// All that a pod wants of the spread of its like.
pub(super) struct Spread<'s>(Vec<Constraint<'s>>);

fn constraints(pod: &Value) -> impl Iterator<Item = &Value> {
    let all = pod["spec"]["topologySpreadConstraints"].as_array().into_iter().flatten();
    all.filter(|one| one["whenUnsatisfiable"] == "DoNotSchedule")
}

impl<'s> Spread<'s> {
    /// `nodes` are all nodes, and `is_tolerated` says whether the pod tolerates all the taints of one.
    pub(super) fn read(
        pod: &'s Value,
        neighbours: &[Neighbour<'s>],
        nodes: impl Iterator<Item = &'s Node>,
        is_tolerated: impl Fn(&Node) -> bool,
    ) -> Self {
        let mut keys = constraints(pod).filter_map(|one| one["topologyKey"].as_str()).peekable();
        if keys.peek().is_none() {
            return Self(Vec::new());
        }
        let keys: Vec<&str> = keys.collect();
        let counted: Vec<&Node> =
            nodes.filter(|node| keys.iter().all(|key| label(node, key).is_some())).collect();
        let read = |one| Constraint::read(one, pod, neighbours, &counted, &is_tolerated);
        Self(constraints(pod).map(read).collect())
    }

    pub(super) fn on(&self, node: &Node) -> Fit {
        let mut is_sure = true;
        for one in &self.0 {
            let refuses = || Fit::Refuses(Misfit::Spread { key: one.key.into() });
            let Some(here) = label(node, one.key) else { return refuses() };
            let there = one.counts.get(here).copied().unwrap_or_default();
            if one.is_known && there + one.itself - one.least > one.max_skew {
                return refuses();
            }
            is_sure &= one.is_known;
        }
        if is_sure { Fit::Takes } else { Fit::Unknown(Missing::Rule) }
    }
}

impl<'s> Constraint<'s> {
    fn read(
        one: &'s Value,
        pod: &'s Value,
        neighbours: &[Neighbour<'s>],
        nodes: &[&'s Node],
        is_tolerated: &impl Fn(&Node) -> bool,
    ) -> Self {
        let key = one["topologyKey"].as_str().unwrap_or_default();
        let counts_node = |node: &Node| {
            (one["nodeAffinityPolicy"] == "Ignore" || is_asked_for(node, &pod["spec"]))
                && (one["nodeTaintsPolicy"] != "Honor" || is_tolerated(node))
        };
        let mut counts: BTreeMap<&str, i64> = nodes
            .iter()
            .filter(|node| counts_node(node))
            .filter_map(|node| Some((label(node, key)?, 0)))
            .collect();
        let mut selector = one["labelSelector"].clone();
        let labels = &pod["metadata"]["labels"];
        if !selector.is_null() {
            // Members of another revision do not count where the constraint says so.
            for name in one["matchLabelKeys"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if labels[name].is_string() {
                    selector["matchLabels"][name] = labels[name].clone();
                }
            }
        }
        let asks = Asks::read(&selector);
        let own = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        if let Asks::All(asks) = &asks {
            for other in neighbours.iter().filter(|other| other.namespace == own && !other.is_leaving) {
                let place = label(other.node, key).filter(|_| counts_node(other.node));
                if let Some(count) = place.and_then(|place| counts.get_mut(place))
                    && other.is_asked_for(asks)
                {
                    *count += 1;
                }
            }
        }
        let wanted = one["minDomains"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
        let least =
            if counts.len() < wanted { 0 } else { counts.values().copied().min().unwrap_or_default() };
        let itself = asks.means(labels);
        let max_skew = one["maxSkew"].as_i64();
        Self {
            key,
            max_skew: max_skew.unwrap_or_default(),
            counts,
            least,
            itself: i64::from(itself == Some(true)),
            is_known: itself.is_some() && max_skew.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{labels, neighbour, node};
    use super::*;

    #[test]
    fn a_place_that_has_more_than_its_share_takes_no_more() {
        let in_zone = |name: &str, zone: &str| {
            node(name, &json!({"metadata": {"name": name, "labels": {"zone": zone}}}))
        };
        let nodes = [
            in_zone("n1", "a"),
            in_zone("n2", "b"),
            in_zone("n3", "c"),
            node("n4", &json!({"metadata": {}})),
        ];
        let labels = labels(&[("app", "db"), ("rev", "1")]);
        let mut near: Vec<_> = [0, 0, 1].map(|index: usize| neighbour("ns", &labels, &nodes[index])).into();
        let fits = |near: &[Neighbour<'_>], more: &Value| {
            let mut one = json!({
                "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "db"}},
            });
            one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let pod = json!({
                "metadata": {"namespace": "ns", "labels": {"app": "db", "rev": "2"}},
                "spec": {"topologySpreadConstraints": [one]},
            });
            let spread = Spread::read(&pod, near, nodes.iter(), |_| true);
            nodes.iter().map(|node| spread.on(node) == Fit::Takes).collect::<Vec<_>>()
        };
        assert_eq!(fits(&near, &json!({})), [false, false, true, false]);
        assert_eq!(fits(&near, &json!({"maxSkew": 2})), [false, true, true, false]);
        assert_eq!(fits(&near, &json!({"whenUnsatisfiable": "ScheduleAnyway"})), [true; 4]);
        assert_eq!(fits(&near, &json!({"matchLabelKeys": ["rev"]})), [true, true, true, false]);
        assert_eq!(fits(&near, &json!({"labelSelector": null})), [true, true, true, false]);
        assert_eq!(fits(&near, &json!({"labelSelector": 7})), [false; 4], "nobody knows");
        near.push(neighbour("ns", &labels, &nodes[2]));
        assert_eq!(fits(&near, &json!({})), [false, true, true, false]);
        assert_eq!(fits(&near, &json!({"minDomains": 4})), [false; 4], "a fourth place is to come");
        near[3].is_leaving = true;
        assert_eq!(fits(&near, &json!({})), [false, false, true, false], "who leaves does not count");
    }
}
