//! From the slices that are to the slices that should be, one write at a time, without a gap.
//!
//! Owns the order of writes: a cluster that moves from one slice to another is written where it goes before it is
//! taken from where it was, so no reader ever finds a cluster that stays selected in no slice at all. It says what to
//! write in which order; writing is the controller's business.
//!
//! Slices sorted by name never need more than one write each: a border between two slices moves up or down, never both.
//! Slices sorted by score, or of groups that trade clusters, can form a ring in which each waits for another; one of
//! them then holds its old and its new clusters for a moment.

use std::collections::{BTreeMap, BTreeSet};

use berth_api::{ClusterDecision, PlacementDecision};

/// One write to a placement's slices.
#[derive(Clone, Debug, PartialEq)]
pub enum SliceStep {
    /// Make this slice, with no cluster in it: API servers take those only afterwards.
    Create(Box<PlacementDecision>),
    /// Let the slice of this name hold exactly these clusters.
    Fill {
        /// The slice.
        slice: String,
        /// The clusters.
        decisions: Vec<ClusterDecision>,
    },
    /// Give a slice the labels and owners of this one.
    Dress(Box<PlacementDecision>),
    /// Delete the slice of this name.
    Drop {
        /// The slice.
        slice: String,
    },
}

/// The writes that turn `existing` into `wanted`, in order; none if nothing differs.
pub fn transition(existing: &[&PlacementDecision], wanted: &[PlacementDecision]) -> Vec<SliceStep> {
    let by_name: BTreeMap<&str, &PlacementDecision> =
        existing.iter().map(|object| (name(object), *object)).collect();
    let mut steps = Vec::new();
    let slices: Vec<Slice<'_>> =
        wanted.iter().map(|wanted| Slice { wanted, found: by_name.get(name(wanted)).copied() }).collect();
    for index in order(&slices) {
        match index {
            Turn::Final(index) => slices[index].write(&mut steps, slices[index].wanted.decisions().to_vec()),
            Turn::Both(index) => {
                let mut decisions = slices[index].wanted.decisions().to_vec();
                let names: BTreeSet<_> = decisions.iter().map(|entry| entry.cluster_name.clone()).collect();
                let held = slices[index].held().iter();
                decisions.extend(held.filter(|entry| !names.contains(&entry.cluster_name)).cloned());
                slices[index].write(&mut steps, decisions);
            }
        }
    }
    let dressed =
        slices.iter().filter(|slice| slice.found.is_some_and(|found| !same_dress(found, slice.wanted)));
    steps.extend(dressed.map(|slice| SliceStep::Dress(Box::new(slice.wanted.clone()))));
    let kept: BTreeSet<&str> = wanted.iter().map(name).collect();
    let dropped = by_name.keys().filter(|name| !kept.contains(**name));
    steps.extend(dropped.map(|name| SliceStep::Drop { slice: (*name).to_owned() }));
    steps
}

/// A slice that should be, and what there is of it.
struct Slice<'s> {
    wanted: &'s PlacementDecision,
    found: Option<&'s PlacementDecision>,
}

impl Slice<'_> {
    fn held(&self) -> &[ClusterDecision] {
        self.found.map_or(&[], PlacementDecision::decisions)
    }

    fn differs(&self) -> bool {
        self.found.is_none() || self.held() != self.wanted.decisions()
    }

    fn write(&self, steps: &mut Vec<SliceStep>, decisions: Vec<ClusterDecision>) {
        let created =
            |step: &SliceStep| matches!(step, SliceStep::Create(made) if name(made) == name(self.wanted));
        if self.found.is_none() && !steps.iter().any(created) {
            let mut object = self.wanted.clone();
            object.status = None;
            steps.push(SliceStep::Create(Box::new(object)));
            if decisions.is_empty() {
                return;
            }
        }
        steps.push(SliceStep::Fill { slice: name(self.wanted).to_owned(), decisions });
    }
}

/// A slice's turn to be written.
enum Turn {
    /// With what it should hold.
    Final(usize),
    /// With what it should hold and what it holds, because something waits for it that it waits for itself.
    Both(usize),
}

/// The slices that differ, each after those to which its clusters go.
fn order(slices: &[Slice<'_>]) -> Vec<Turn> {
    let differing: Vec<usize> = (0..slices.len()).filter(|index| slices[*index].differs()).collect();
    let mut goes_to: BTreeMap<&str, usize> = BTreeMap::new();
    for index in &differing {
        let held: BTreeSet<&str> = slices[*index].held().iter().map(cluster).collect();
        for entry in slices[*index].wanted.decisions().iter().map(cluster) {
            if !held.contains(entry) {
                goes_to.insert(entry, *index);
            }
        }
    }
    // For each slice, the slices that must have been written before it.
    let mut waits_for: BTreeMap<usize, BTreeSet<usize>> = differing
        .iter()
        .map(|index| {
            let targets = slices[*index].held().iter().filter_map(|entry| goes_to.get(cluster(entry)));
            (*index, targets.copied().filter(|target| target != index).collect())
        })
        .collect();
    let mut turns = Vec::with_capacity(waits_for.len());
    while !waits_for.is_empty() {
        let free = waits_for.iter().find(|(_, targets)| targets.is_empty()).map(|(index, _)| *index);
        let (index, is_final) = match free {
            Some(index) => (index, true),
            None => (in_a_ring(&waits_for), false),
        };
        if is_final {
            waits_for.remove(&index);
            turns.push(Turn::Final(index));
        } else {
            turns.push(Turn::Both(index));
        }
        for targets in waits_for.values_mut() {
            targets.remove(&index);
        }
    }
    turns
}

/// A slice that waits, over others, for itself. There is one where each slice waits for another: following any of them
/// must come back to a slice that was passed before.
fn in_a_ring(waits_for: &BTreeMap<usize, BTreeSet<usize>>) -> usize {
    let mut at = *waits_for.keys().next().expect("only called while slices are waiting");
    let mut passed = BTreeSet::new();
    while passed.insert(at) {
        at = *waits_for[&at].first().expect("each slice waits for another");
    }
    at
}

/// Whether labels are the same and the owner is there.
fn same_dress(found: &PlacementDecision, wanted: &PlacementDecision) -> bool {
    found.metadata.labels == wanted.metadata.labels
        && found.metadata.owner_references == wanted.metadata.owner_references
}

fn name(object: &PlacementDecision) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

fn cluster(entry: &ClusterDecision) -> &str {
    &entry.cluster_name
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use berth_api::PlacementDecisionStatus;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn slice(number: usize, clusters: &[String]) -> PlacementDecision {
        let mut object = PlacementDecision::new(&format!("p-decision-{number}"));
        let entry = |cluster: &String| ClusterDecision {
            cluster_name: cluster.clone(),
            ..ClusterDecision::default()
        };
        object.status = Some(PlacementDecisionStatus { decisions: clusters.iter().map(entry).collect() });
        object
    }

    fn slices(contents: &[&[&str]]) -> Vec<PlacementDecision> {
        let owned = |clusters: &[&str]| clusters.iter().map(ToString::to_string).collect::<Vec<_>>();
        contents.iter().enumerate().map(|(index, clusters)| slice(index + 1, &owned(clusters))).collect()
    }

    fn between(before: &[PlacementDecision], after: &[PlacementDecision]) -> Vec<SliceStep> {
        transition(&before.iter().collect::<Vec<_>>(), after)
    }

    fn short(steps: &[SliceStep]) -> Vec<String> {
        let number = |name: &str| name.trim_start_matches("p-decision-").to_owned();
        steps
            .iter()
            .map(|step| match step {
                SliceStep::Create(object) => format!("create {}", number(name(object))),
                SliceStep::Fill { slice, decisions } => {
                    let clusters: Vec<_> = decisions.iter().map(cluster).collect();
                    format!("{} = {}", number(slice), clusters.join(" "))
                }
                SliceStep::Dress(object) => format!("dress {}", number(name(object))),
                SliceStep::Drop { slice } => format!("drop {}", number(slice)),
            })
            .collect()
    }

    #[test]
    fn nothing_is_written_where_nothing_differs() {
        let same = slices(&[&["a", "b"], &["c"]]);
        assert_eq!(between(&same, &same), []);
    }

    #[test]
    fn a_new_slice_is_made_and_then_filled() {
        assert_eq!(short(&between(&[], &slices(&[&["a"]]))), ["create 1", "1 = a"]);
    }

    #[test]
    fn a_new_slice_without_clusters_is_only_made() {
        assert_eq!(short(&between(&[], &slices(&[&[]]))), ["create 1"]);
    }

    #[test]
    fn a_cluster_pushed_over_the_border_is_first_written_where_it_goes() {
        let steps = between(&slices(&[&["b", "c"], &["d"]]), &slices(&[&["a", "b"], &["c", "d"]]));
        assert_eq!(short(&steps), ["2 = c d", "1 = a b"]);
    }

    #[test]
    fn a_slice_that_becomes_needless_goes_last() {
        let steps = between(&slices(&[&["a", "b"], &["c"]]), &slices(&[&["b", "c"]]));
        assert_eq!(short(&steps), ["1 = b c", "drop 2"]);
    }

    #[test]
    fn slices_that_trade_clusters_hold_both_for_a_moment() {
        let steps = between(&slices(&[&["a"], &["b"]]), &slices(&[&["b"], &["a"]]));
        assert_eq!(short(&steps), ["1 = b a", "2 = a", "1 = b"]);
    }

    #[test]
    fn labels_follow_the_clusters() {
        let before = slices(&[&["a"]]);
        let mut after = slices(&[&["b"]]);
        after[0].metadata.labels = Some(BTreeMap::from([("x".to_owned(), "y".to_owned())]));
        assert_eq!(short(&between(&before, &after)), ["1 = b", "dress 1"]);
    }

    /// The clusters of each slice after every write, checked against what may never be missing.
    fn replay(before: &[PlacementDecision], after: &[PlacementDecision]) -> BTreeMap<String, Vec<String>> {
        let clusters = |decisions: &[ClusterDecision]| {
            decisions.iter().map(|entry| entry.cluster_name.clone()).collect()
        };
        let named = |object: &PlacementDecision| (name(object).to_owned(), clusters(object.decisions()));
        let mut world: BTreeMap<String, Vec<String>> = before.iter().map(named).collect();
        let all = |world: &BTreeMap<String, Vec<String>>| {
            world.values().flatten().cloned().collect::<BTreeSet<String>>()
        };
        let last: BTreeSet<String> = all(&after.iter().map(named).collect());
        let staying: BTreeSet<String> = all(&world).intersection(&last).cloned().collect();
        for step in between(before, after) {
            match step {
                SliceStep::Create(object) => {
                    assert!(world.insert(name(&object).to_owned(), Vec::new()).is_none(), "made once");
                }
                SliceStep::Fill { slice, decisions } => {
                    assert!(world.insert(slice, clusters(&decisions)).is_some(), "made before it is filled");
                }
                SliceStep::Dress(_) => {}
                SliceStep::Drop { slice } => assert!(world.remove(&slice).is_some(), "dropped once"),
            }
            assert!(all(&world).is_superset(&staying), "a cluster that stays is in no slice: {world:?}");
        }
        world
    }

    /// Contents of slices: each cluster in one of up to five slices, or in none.
    fn anywhere() -> impl Strategy<Value = Vec<PlacementDecision>> {
        vec(0_usize..6, 12).prop_map(|places| {
            (1..=5)
                .map(|number| {
                    let here = places.iter().enumerate().filter(|(_, place)| **place == number);
                    slice(number, &here.map(|(cluster, _)| format!("c{cluster:02}")).collect::<Vec<_>>())
                })
                .collect()
        })
    }

    /// Slices of three, in the order of names.
    fn sorted() -> impl Strategy<Value = Vec<PlacementDecision>> {
        vec(any::<bool>(), 20).prop_map(|selected| {
            let names: Vec<String> = (0..20).filter(|i| selected[*i]).map(|i| format!("c{i:02}")).collect();
            names.chunks(3).enumerate().map(|(index, clusters)| slice(index + 1, clusters)).collect()
        })
    }

    proptest! {
        #[test]
        fn no_cluster_that_stays_is_ever_in_no_slice(before in anywhere(), after in anywhere()) {
            let wanted = after.iter().map(|object| {
                (name(object).to_owned(), object.decisions().iter().map(|entry| entry.cluster_name.clone()).collect())
            });
            prop_assert_eq!(replay(&before, &after), wanted.collect());
        }

        #[test]
        fn slices_in_the_order_of_names_are_written_once_each(before in sorted(), after in sorted()) {
            replay(&before, &after);
            let mut written = BTreeSet::new();
            for step in between(&before, &after) {
                if let SliceStep::Fill { slice, .. } = step {
                    prop_assert!(written.insert(slice));
                }
            }
        }
    }
}
