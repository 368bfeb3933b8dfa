//! Decision groups before and after a decision.
//!
//! Owns telling which clusters change their group while they stay selected: roll-outs go group by group, so for them
//! that is a change like any other. Never forms groups.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use berth_api::PlacementDecision;
use berth_api::names::label::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME};

use crate::world::Item;

/// The group a cluster sits in. Several groups may share a name, so the index is part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// The number of the group, from 0.
    pub index: usize,
    /// Its name; empty for a group without one.
    pub name: Arc<str>,
}

/// A cluster that stays selected and changes its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regrouped {
    /// The cluster.
    pub cluster: Arc<str>,
    /// Where it was.
    pub from: Seat,
    /// Where it is now.
    pub to: Seat,
}

impl fmt::Display for Regrouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, .. } = self;
        match (&*from.name, &*to.name) {
            (was, is) if was == is && !is.is_empty() => {
                write!(f, "group {is}, index {} -> {}", from.index, to.index)
            }
            ("", "") => write!(f, "group {} -> {}", from.index, to.index),
            ("", is) => write!(f, "group {} -> {is}", from.index),
            (was, "") => write!(f, "group {was} -> {}", to.index),
            (was, is) => write!(f, "group {was} -> {is}"),
        }
    }
}

/// The groups that existing PlacementDecisions tell of.
pub(super) fn groups_of(slices: &[Arc<Item<PlacementDecision>>]) -> Vec<(Arc<str>, Vec<Arc<str>>)> {
    let mut groups: BTreeMap<Seat, Vec<Arc<str>>> = BTreeMap::new();
    for item in slices {
        let seat = seat_of(&item.object).unwrap_or(Seat { index: 0, name: "".into() });
        let clusters = item.object.decisions().iter().map(|decision| decision.cluster_name.as_str().into());
        groups.entry(seat).or_default().extend(clusters);
    }
    groups.into_iter().map(|(seat, clusters)| (seat.name, clusters)).collect()
}

/// The clusters of `groups` that sat elsewhere in `slices`, in the order of the groups.
pub(super) fn regrouped(
    slices: &[Arc<Item<PlacementDecision>>],
    groups: &[(Arc<str>, Vec<Arc<str>>)],
) -> Vec<Regrouped> {
    let mut before: HashMap<&str, Seat> = HashMap::new();
    for item in slices {
        // Decisions from before there were groups tell of none, so nothing changes for their clusters.
        let Some(seat) = seat_of(&item.object) else { continue };
        for decision in item.object.decisions() {
            before.insert(&decision.cluster_name, seat.clone());
        }
    }
    let mut changes = Vec::new();
    for (index, (name, clusters)) in groups.iter().enumerate() {
        let to = Seat { index, name: Arc::clone(name) };
        for cluster in clusters {
            if let Some(from) = before.remove(&**cluster).filter(|from| *from != to) {
                changes.push(Regrouped { cluster: Arc::clone(cluster), from, to: to.clone() });
            }
        }
    }
    changes
}

fn seat_of(slice: &PlacementDecision) -> Option<Seat> {
    let labels = slice.metadata.labels.as_ref()?;
    let index = labels.get(DECISION_GROUP_INDEX)?.parse().ok()?;
    Some(Seat { index, name: labels.get(DECISION_GROUP_NAME).map_or("", String::as_str).into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn slice(group: Option<(&str, &str)>, clusters: &[&str]) -> Arc<Item<PlacementDecision>> {
        let labels = group.map_or(
            json!({}),
            |(index, name)| json!({ DECISION_GROUP_INDEX: index, DECISION_GROUP_NAME: name }),
        );
        let decisions: Vec<_> =
            clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        let object = json!({"metadata": {"labels": labels}, "status": {"decisions": decisions}});
        Item::made(serde_json::from_value(object).unwrap())
    }

    fn shown(slices: &[Arc<Item<PlacementDecision>>], groups: &[(&str, &[&str])]) -> Vec<String> {
        let groups: Vec<(Arc<str>, Vec<Arc<str>>)> = groups
            .iter()
            .map(|(name, clusters)| ((*name).into(), clusters.iter().map(|name| (*name).into()).collect()))
            .collect();
        regrouped(slices, &groups).iter().map(|change| format!("{} {change}", change.cluster)).collect()
    }

    #[test]
    fn a_change_of_group_is_told_by_name_or_else_by_index() {
        let before = [
            slice(Some(("0", "canary")), &["c1", "c2"]),
            slice(Some(("1", "")), &["c3", "c4"]),
            slice(Some(("2", "")), &["c5"]),
        ];
        let after: [(&str, &[&str]); 3] =
            [("early", &["c4"]), ("canary", &["c1"]), ("", &["c2", "c3", "c5"])];
        assert_eq!(
            shown(&before, &after),
            [
                "c4 group 1 -> early",
                "c1 group canary, index 0 -> 1",
                "c2 group canary -> 2",
                "c3 group 1 -> 2"
            ]
        );
    }

    #[test]
    fn decisions_that_tell_of_no_group_change_none() {
        let before = [slice(None, &["c1"]), slice(Some(("many", "")), &["c2"])];
        assert_eq!(shown(&before, &[("a", &["c1"]), ("b", &["c2", "c3"])]), [] as [&str; 0]);
    }
}
