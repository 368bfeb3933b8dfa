//! Explanations tell the story of the decision, and what they promise comes true.

use berth_api::{AddOnPlacementScore, ManagedClusterClaim};
use berth_engine::explain::{Change, ClusterAccount, Verdict, cluster_sentences, sentences, table};
use berth_engine::select::Outcome;
use berth_engine::selector::Facet;
use berth_engine::{Delta, PlacementKey};
use proptest::prelude::*;

use crate::fixtures::{at, fleet, score, time, web};
use crate::properties::config;
use crate::random::{Breadth, any_time, any_world, placement_keys};
use crate::world::World;

/// Makes the change in the objects; whether it is one that can be made there.
fn make(world: &mut World, cluster: &str, change: &Change, now: i64) -> bool {
    let mut object = world.clusters[cluster].clone();
    match change {
        Change::Set { facet: Facet::Label, key, value } => {
            object.metadata.labels.get_or_insert_default().insert(key.clone(), value.clone());
        }
        Change::Unset { facet: Facet::Label, key } => {
            object.metadata.labels.get_or_insert_default().remove(key);
        }
        Change::Set { facet: Facet::Claim, key, value } => {
            let claims = object.status.get_or_insert_default().cluster_claims.get_or_insert_default();
            claims.retain(|claim| claim.name.as_ref() != Some(key));
            claims.push(ManagedClusterClaim { name: Some(key.clone()), value: Some(value.clone()) });
        }
        Change::Unset { facet: Facet::Claim, key } => {
            let claims = object.status.get_or_insert_default().cluster_claims.get_or_insert_default();
            claims.retain(|claim| claim.name.as_ref() != Some(key));
        }
        Change::RemoveTaint { taint } => {
            let taints = object.spec.get_or_insert_default().taints.get_or_insert_default();
            let named = |one: &berth_api::Taint| match one.value() {
                "" => format!("{}:{}", one.key, one.effect),
                value => format!("{}={value}:{}", one.key, one.effect),
            };
            let count = taints.len();
            taints.retain(|one| named(one) != *taint);
            assert!(taints.len() < count, "{cluster} has no taint {taint}");
        }
        Change::RaiseScore { resource, score: name, to } => {
            let mut published = score(cluster, resource, &[], None);
            // What has expired is published anew without what else it said.
            let valid =
                |score: &&AddOnPlacementScore| score.valid_until().is_none_or(|until| until >= time(now).0);
            let before = world.scores.get(&PlacementKey::new(cluster, resource)).filter(valid);
            let mut items = before.map(|before| before.scores().to_vec()).unwrap_or_default();
            items.retain(|item| item.name != *name);
            items.push(berth_api::AddOnPlacementScoreItem {
                name: name.clone(),
                value: i32::try_from(*to).unwrap(),
            });
            published.status.get_or_insert_default().scores = Some(items);
            world.apply(Delta::Score(Box::new(published)));
            return true;
        }
        Change::GainPoints { .. } | Change::Several { .. } => return false,
    }
    world.apply(Delta::Cluster(Box::new(object)));
    true
}

fn check_account(account: &ClusterAccount, chosen: Option<i64>, kept: bool) -> Result<(), TestCaseError> {
    let cluster = &account.cluster;
    let selected = matches!(account.verdict, Verdict::Selected | Verdict::Kept);
    prop_assert_eq!(selected, chosen.is_some(), "{}: {:?}", cluster, &account.verdict);
    prop_assert_eq!(kept && selected, account.verdict == Verdict::Kept);
    if let (Some(total), Some(chosen)) = (account.total, chosen) {
        prop_assert_eq!(total, chosen, "{}: the account's total on the left", cluster);
    }
    if let Some(total) = account.total {
        let parts = account.scores.iter().filter(|score| score.prioritizer != "Spread");
        prop_assert_eq!(parts.map(|score| score.weight * score.value).sum::<i64>(), total);
        prop_assert!(account.taints.iter().all(|taint| !taint.bars), "{} is feasible", cluster);
    }
    if account.verdict == Verdict::Barred {
        prop_assert!(account.taints.iter().any(|taint| taint.bars));
    }
    if account.verdict == Verdict::NoPredicateMatches {
        prop_assert!(!account.predicates.is_empty());
        prop_assert!(account.predicates.iter().all(|predicate| !predicate.failures.is_empty()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_account_says_of_every_cluster_what_the_decision_did(
        deltas in any_world(Breadth::Full),
        now in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        for key in placement_keys() {
            let Some(decision) = world.decide(&key, at(now)) else { continue };
            let account = world.explain(&key, at(now));
            let kept = matches!(decision.outcome, Outcome::Kept { .. });
            prop_assert_eq!(account.selection.selected, decision.picks.len());
            prop_assert_eq!(&account.next, &decision.next);
            for name in crate::world::World::names(&decision) {
                let found = account.clusters.iter().filter(|one| *one.cluster == *name).count();
                prop_assert_eq!(found, 1, "{} is told of once", name);
            }
            for one in &account.clusters {
                let pick = decision.picks.iter().find(|pick| pick.cluster == one.cluster);
                check_account(one, pick.map(|pick| pick.score), kept)?;
                prop_assert!(!cluster_sentences(&account, one).is_empty());
            }
            prop_assert!(!sentences(&account).is_empty());
            let (heads, rows) = table(&account);
            prop_assert_eq!(rows.len(), account.clusters.len());
            prop_assert!(rows.iter().all(|row| row.len() == heads.len()));
        }
    }

    #[test]
    fn a_change_that_is_said_to_select_a_cluster_selects_it(
        deltas in any_world(Breadth::Plain),
        now in any_time(),
    ) {
        let mut world = World::of(deltas.0);
        for key in placement_keys() {
            if world.decide(&key, at(now)).is_none() {
                continue;
            }
            let account = world.explain(&key, at(now));
            if account.prioritizers.iter().any(|weight| weight.prioritizer.starts_with("ResourceAllocatable")) {
                continue;
            }
            for one in &account.clusters {
                let Some(counterfactual) = one.counterfactual.as_ref().filter(|one| one.selects) else { continue };
                let mut other = world.rebuilt();
                if make(&mut other, &one.cluster, &counterfactual.change, now) {
                    let selected = other.selected(&key, at(now));
                    prop_assert!(
                        selected.iter().any(|name| **name == *one.cluster),
                        "{}: {:?} was to select {}, and selected are {:?}", key, counterfactual.change, one.cluster, selected
                    );
                }
            }
        }
    }
}

#[test]
fn the_smallest_raise_that_selects_is_told() {
    let request = web().number(1).exact(&[("AddOn/demo/cpu", 1)]);
    let mut world = fleet()
        .clusters(["a", "b"])
        .score("a", "demo", "cpu", 40, None)
        .score("b", "demo", "cpu", 10, None)
        .placement(&request)
        .world();
    let account = world.explain(&request.key(), at(0));
    let raise = |to| Change::RaiseScore { resource: "demo".into(), score: "cpu".into(), to };
    let told =
        account.clusters.iter().find(|one| *one.cluster == *"b").unwrap().counterfactual.clone().unwrap();
    assert_eq!((told.change, told.selects), (raise(41), true));
    assert!(make(&mut world, "b", &raise(40), 0));
    assert_eq!(world.selected(&request.key(), at(0)), ["a"], "one point less is not enough");
    assert!(make(&mut world, "b", &raise(41), 0));
    assert_eq!(world.selected(&request.key(), at(0)), ["b"]);
}
