//! What must hold in every world.

use std::collections::BTreeSet;

use berth_api::names::label;
use berth_api::placement_decision::DECISIONS_PER_SLICE_MAX;
use berth_engine::explain::{explain, explain_as_if};
use berth_engine::select::{Decision, Outcome};
use berth_engine::{Delta, Moment, PlacementKey};
use proptest::prelude::*;
use proptest::sample::select;

use crate::fixtures::{Request, at};
use crate::naive::{Naive, Verdict};
use crate::random::{
    Breadth, Step, Story, any_fact, any_request, any_step, any_time, any_toleration, any_world, line,
    placement_keys,
};
use crate::world::World;

/// How many worlds each property is tried in.
const WORLDS: u32 = 800;

/// `PROPTEST_CASES` asks for more worlds, or fewer.
pub(crate) fn config() -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").is_ok().then(|| ProptestConfig::default().cases);
    let cases = given.unwrap_or(WORLDS);
    ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// The decision in the words of the naive rules.
fn in_words(decision: &Decision) -> Verdict {
    match &decision.outcome {
        Outcome::NoBindings => Verdict::NoBindings,
        Outcome::NoIntersection { .. } => Verdict::NoIntersection,
        Outcome::SetsEmpty { .. } => Verdict::SetsEmpty,
        Outcome::Kept { .. } => Verdict::Kept(crate::world::World::names(decision).into_iter().collect()),
        Outcome::Decided => {
            let mut picks = decision.picks.iter();
            let groups = decision.groups.iter().map(|group| {
                let members = picks.by_ref().take(group.len);
                let members = members.map(|pick| (pick.cluster.to_string(), pick.score));
                (group.name.to_string(), members.collect())
            });
            Verdict::Groups(groups.collect())
        }
    }
}

fn check_against_naive(world: &mut World, now: i64) -> Result<(), TestCaseError> {
    for key in placement_keys() {
        let decision = world.decide(&key, at(now));
        let naive = Naive::new(world, &key, at(now).timestamp().unwrap().as_second());
        prop_assert_eq!(decision.is_some(), naive.is_some(), "{} is decided or left alone", key);
        let (Some(decision), Some(naive)) = (decision, naive) else { continue };
        prop_assert_eq!(in_words(&decision), naive.verdict(), "{}: the engine's on the left", key);
    }
    Ok(())
}

/// Two renderings are the same; of long ones only the first difference is told.
fn same_lines(one: Option<String>, other: Option<String>) -> Result<(), TestCaseError> {
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    for (place, (left, right)) in one.lines().zip(other.lines()).enumerate() {
        let before = || one.lines().take(place).skip(place.saturating_sub(8)).collect::<Vec<_>>().join("\n");
        prop_assert_eq!(left, right, "after\n{}", before());
    }
    prop_assert_eq!(one.len(), other.len());
    Ok(())
}

/// Lets a history happen; the second at which it ends.
fn live_through(world: &mut World, history: Vec<Step>) -> i64 {
    let mut now = 0;
    for step in history {
        match step {
            Step::Change(delta) => drop(world.apply(delta)),
            Step::Clock(seconds) => now = seconds,
            // Both compare what is kept with a decision from nothing.
            Step::Decide(key) => drop(world.decide(&key, at(now))),
            Step::Settle(key) => drop(world.settle(&key, at(now))),
        }
    }
    now
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_engine_selects_what_the_naive_rules_select(deltas in any_world(Breadth::Plain), now in any_time()) {
        check_against_naive(&mut World::of(deltas.0), now)?;
    }

    #[test]
    fn the_engine_spreads_as_the_naive_rules_spread(deltas in any_world(Breadth::Full), now in any_time()) {
        check_against_naive(&mut World::of(deltas.0), now)?;
    }

    #[test]
    fn what_is_kept_between_decisions_never_changes_one(
        deltas in any_world(Breadth::Plain),
        history in prop::collection::vec(any_step(Breadth::Plain), 0..40),
    ) {
        let mut world = World::of(deltas.0);
        let now = live_through(&mut world, history);
        check_against_naive(&mut world, now)?;
    }

    #[test]
    fn a_model_with_a_past_equals_one_told_the_present(
        deltas in any_world(Breadth::Full),
        history in prop::collection::vec(any_step(Breadth::Full), 0..40),
    ) {
        let mut world = World::of(deltas.0);
        let now = live_through(&mut world, history);
        let mut anew = world.rebuilt();
        for key in placement_keys() {
            same_lines(world.rendered(&key, at(now)), anew.rendered(&key, at(now)))?;
        }
    }

    #[test]
    fn questions_about_placements_that_are_not_there_change_nothing(
        deltas in any_world(Breadth::Full),
        history in prop::collection::vec(
            (any_step(Breadth::Full), prop::option::of((any_request(Breadth::Full), prop::bool::ANY))),
            0..30,
        ),
    ) {
        let (mut world, mut asked) = (World::of(deltas.0.clone()), World::of(deltas.0));
        let mut now = 0;
        for (step, question) in history {
            let time: Vec<Vec<PlacementKey>> = [&mut world.model, &mut asked.model]
                .map(|model| model.advance(at(now)).keys(model).cloned().collect())
                .into();
            prop_assert_eq!(&time[0], &time[1], "touched by time");
            if let Some((Request(mut placement), is_other)) = question {
                if is_other {
                    placement.metadata.name = Some("nobody".into());
                }
                let account = explain_as_if(&mut asked.model, &placement, None, at(now)).unwrap();
                let idle = placement.is_deleting() || placement.is_scheduling_disabled();
                prop_assert_eq!(account.is_none(), idle);
            }
            match step {
                Step::Change(delta) => prop_assert_eq!(world.apply(delta.clone()), asked.apply(delta)),
                Step::Clock(seconds) => now = seconds,
                Step::Decide(key) => prop_assert_eq!(world.decide(&key, at(now)), asked.decide(&key, at(now))),
                Step::Settle(key) => {
                    let (one, other) = (world.settle(&key, at(now)), asked.settle(&key, at(now)));
                    prop_assert_eq!(one.map(|one| one.decisions), other.map(|other| other.decisions));
                }
            }
        }
        prop_assert_eq!(
            world.model.placements().collect::<Vec<_>>(),
            asked.model.placements().collect::<Vec<_>>()
        );
        for key in placement_keys() {
            same_lines(world.rendered(&key, at(now)), asked.rendered(&key, at(now)))?;
        }
    }

    #[test]
    fn a_placement_explained_before_it_is_made_is_explained_the_same_afterwards(
        deltas in any_world(Breadth::Full),
        request in any_request(Breadth::Full),
        now in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        let before = explain_as_if(&mut world.model, &request.0, None, at(now)).unwrap();
        world.apply(Delta::Placement(Box::new(request.0.clone())));
        let after = explain(&mut world.model, &request.key(), None, at(now));
        prop_assert_eq!(before, after);
    }

    #[test]
    fn the_order_in_which_objects_arrive_changes_no_byte(
        (deltas, shuffled) in any_world(Breadth::Full).prop_flat_map(|deltas| {
            let objects = World::of(deltas.0).objects();
            (Just(objects.clone()).prop_map(Story), Just(objects).prop_shuffle().prop_map(Story))
        }),
        now in any_time(),
    ) {
        let (mut world, mut other) = (World::of(deltas.0), World::of(shuffled.0));
        for key in placement_keys() {
            let rendered = world.rendered(&key, at(now));
            same_lines(rendered.clone(), world.rendered(&key, at(now)))?;
            same_lines(rendered, other.rendered(&key, at(now)))?;
        }
    }

    #[test]
    fn whoever_is_not_touched_by_a_change_decides_as_before(
        deltas in any_world(Breadth::Full),
        settled in prop::collection::vec(select(placement_keys()), 0..3),
        change in any_fact(Breadth::Full).prop_map(|delta| Story(vec![delta])),
        now in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        for key in settled {
            world.settle(&key, at(now));
        }
        for key in placement_keys() {
            world.model.decide(&key, at(now));
        }
        let view = |world: &mut World, key: &PlacementKey| {
            let decision = world.model.decide_afresh(key, at(now))?;
            let said = (in_words(&decision), decision.unscheduled, decision.complaints);
            let next = decision.next.map_or(Moment::NEVER, |next| next.at);
            Some((said, next, decision.expired))
        };
        let before: Vec<_> = placement_keys().iter().map(|key| view(&mut world, key)).collect();
        let touched = world.apply(change.0[0].clone());
        prop_assert_eq!(touched.iter().collect::<BTreeSet<_>>().len(), touched.len(), "nobody is touched twice");
        for (key, before) in placement_keys().iter().zip(before) {
            if touched.contains(key) {
                continue;
            }
            let (Some(before), Some(after)) = (before, view(&mut world, key)) else { continue };
            prop_assert_eq!(&after.0, &before.0, "{} was not touched", key);
            // A cluster that was not selected may take its deadline with it when it goes: then a timer fires in
            // vain. None may be missed.
            prop_assert!(after.1 >= before.1, "{}: the next change moved from {} to {}", key, before.1, after.1);
            prop_assert!(after.2.iter().all(|one| before.2.contains(one)), "{}: {:?} expired unheard", key, after.2);
        }
    }

    #[test]
    fn applying_an_object_again_touches_nobody(deltas in any_world(Breadth::Full), now in any_time()) {
        let mut world = World::of(deltas.0);
        for key in placement_keys() {
            world.settle(&key, at(now));
        }
        for object in world.objects() {
            prop_assert_eq!(world.apply(object.clone()), Vec::new(), "{}", line(&object));
        }
    }

    #[test]
    fn another_toleration_never_loses_a_cluster_that_could_be_selected(
        deltas in any_world(Breadth::Plain),
        request in any_request(Breadth::Plain),
        toleration in any_toleration(),
        now in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        let key = request.key();
        let mut feasible = |request: &crate::fixtures::Request| -> Option<BTreeSet<String>> {
            world.apply(Delta::Placement(Box::new(request.0.clone())));
            world.decide(&key, at(now))?;
            let clusters = world.explain(&key, at(now)).clusters.into_iter();
            Some(clusters.filter(|one| one.total.is_some()).map(|one| one.cluster.to_string()).collect())
        };
        if let (Some(before), Some(after)) = (feasible(&request), feasible(&toleration.add_to(request.clone()))) {
            prop_assert!(before.is_subset(&after), "{:?} lost some of {:?}", after, before);
        }
    }

    #[test]
    fn slices_hold_every_selected_cluster_once_and_are_numbered_without_gaps(
        deltas in any_world(Breadth::Full),
        now in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        for key in placement_keys() {
            let Some(decision) = world.decide(&key, at(now)) else { continue };
            if matches!(decision.outcome, Outcome::Kept { .. }) {
                continue;
            }
            let published = world.publish(&key, &decision, at(now));
            let mut selected = crate::world::World::names(&decision);
            let mut written: Vec<String> = Vec::new();
            let mut group_sizes: Vec<usize> = Vec::new();
            for (place, object) in published.decisions.iter().enumerate() {
                let name = format!("{}-decision-{}", key.name, place + 1);
                prop_assert_eq!(object.metadata.name.as_deref(), Some(name.as_str()));
                prop_assert!(object.decisions().len() <= DECISIONS_PER_SLICE_MAX);
                let labels = object.metadata.labels.as_ref().unwrap();
                let index: usize = labels[label::DECISION_GROUP_INDEX].parse().unwrap();
                prop_assert!(index == group_sizes.len() || index + 1 == group_sizes.len(), "groups have no gaps");
                group_sizes.resize(index + 1, 0);
                group_sizes[index] += object.decisions().len();
                prop_assert_eq!(&*labels[label::DECISION_GROUP_NAME], &*decision.groups[index].name);
                written.extend(object.decisions().iter().map(|entry| entry.cluster_name.clone()));
            }
            prop_assert_eq!(&group_sizes, &decision.groups.iter().map(|group| group.len).collect::<Vec<_>>());
            let reported = published.status.decision_groups.iter().flatten();
            prop_assert!(reported.map(|group| group.cluster_count.unwrap() as usize).eq(group_sizes));
            selected.sort();
            written.sort();
            prop_assert_eq!(&written, &selected);
            written.dedup();
            prop_assert_eq!(written, selected, "nobody comes twice");
        }
    }

    #[test]
    fn hard_rules_hold_and_nobody_is_left_out_who_could_be_added(
        deltas in any_world(Breadth::Full),
        now in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        for key in placement_keys() {
            let Some(decision) = world.decide(&key, at(now)) else { continue };
            let chosen = crate::world::World::names(&decision);
            let naive = Naive::new(&world, &key, at(now).timestamp().unwrap().as_second()).unwrap();
            let Ok(feasible) = naive.feasible() else { continue };
            if matches!(decision.outcome, Outcome::Kept { .. }) {
                continue;
            }
            let scores = naive.scores(&feasible);
            prop_assert!(chosen.iter().all(|name| scores.contains_key(name)), "the selected are feasible");
            for (topology, kind, skew, _) in naive.spread_terms().into_iter().filter(|term| term.3) {
                let topologies: BTreeSet<String> =
                    scores.keys().filter_map(|name| naive.place(name, &topology, &kind)).collect();
                let chosen_in = |place: &String| {
                    let there = |name: &&String| naive.place(name, &topology, &kind).as_ref() == Some(place);
                    i64::try_from(chosen.iter().filter(there).count()).unwrap()
                };
                let counts: Vec<i64> = topologies.iter().map(chosen_in).collect();
                if let (Some(most), Some(least)) = (counts.iter().max(), counts.iter().min()) {
                    prop_assert!(most - least <= skew, "{topology}: {counts:?}");
                }
            }
            if let Some(apart) = &world.placements[&key].spec.anti_affinity {
                let places: Vec<_> = chosen
                    .iter()
                    .map(|name| naive.place(name, &apart.topology_key, &apart.topology_key_type).unwrap())
                    .collect();
                prop_assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), places.len());
            }
            let wanted = world.placements[&key].spec.number_of_clusters;
            if wanted.is_none_or(|wanted| chosen.len() < usize::try_from(wanted).unwrap()) {
                let left_out: Vec<_> = scores
                    .keys()
                    .filter(|name| !chosen.contains(name) && naive.allowed(&chosen, &scores, name))
                    .collect();
                prop_assert!(left_out.is_empty(), "{left_out:?} could be added to {chosen:?}");
            }
        }
    }

    #[test]
    fn a_mistake_keeps_every_cluster_that_was_selected_and_is_still_granted(
        deltas in any_world(Breadth::Full),
        mistake in select(vec!["count", "expression", "toleration", "size", "mode"]),
        now in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        for key in placement_keys() {
            let Some(before) = world.settle(&key, at(now)) else { continue };
            let decision = world.decide(&key, at(now)).unwrap();
            if decision.outcome != Outcome::Decided {
                continue;
            }
            let request = Request(world.placements[&key].clone());
            let wrong = match mistake {
                "count" => request.number(-7),
                "expression" => request.cel(&["("]),
                "toleration" => request.tolerate("", "Equal", ""),
                "size" => request.percent("half"),
                _ => request.policy("Sometimes", &[]),
            };
            prop_assert_eq!(world.apply(Delta::Placement(Box::new(wrong.0))), vec![key.clone()]);
            let after = world.settle(&key, at(now)).unwrap();
            prop_assert_eq!(&after.decisions, &before.decisions);
            prop_assert_eq!(after.status.decision_groups, before.status.decision_groups);
            prop_assert!(after.status.conditions.unwrap().iter().any(|one| one.reason == "Misconfigured"));
        }
    }

    #[test]
    fn nothing_changes_before_the_moment_that_was_announced(
        deltas in any_world(Breadth::Full),
        now in any_time(),
        later in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        for key in placement_keys() {
            let Some(first) = world.decide(&key, at(now)) else { continue };
            // Written first: what holds a cluster need not select it anew.
            world.settle(&key, at(now));
            let decision = world.decide(&key, at(now)).unwrap();
            let settled = in_words(&first) == in_words(&decision);
            let before = decision.next.as_ref().is_none_or(|next| at(later) < next.at);
            if settled && later > now && before {
                let after = world.decide(&key, at(later)).unwrap();
                prop_assert_eq!(in_words(&decision), in_words(&after), "{} from {} to {}", key, now, later);
            }
            if let Some(next) = decision.next {
                prop_assert!(next.at > at(now));
            }
        }
    }
}
