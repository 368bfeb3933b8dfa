//! Deciding the placements of a world, one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_api::names::{condition, reason};
use berth_api::{Placement, PlacementDecision};
use berth_engine::explain::{Account, ClusterAccount, explain, table};
use berth_engine::model::ObjectKey;
use berth_engine::select::{Decision, Details, Outcome, Published, publish};
use berth_engine::{Delta, Model, Moment, PlacementKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::groups::{Regrouped, groups_of, regrouped};
use crate::manifest::{Warning, one_line};
use crate::world::{Item, World, key_of};

/// Up to this many clusters are explained one by one; beyond, one account of the whole fleet is cheaper: with ten
/// thousand clusters it costs as much as some seven hundred single ones.
const EXPLAINED_SINGLY_MAX: usize = 500;

/// How many reasons are gathered for the moves of one placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reasons {
    /// None: only the result counts.
    None,
    /// As many as are shown.
    First(usize),
    /// All.
    All,
}

impl Reasons {
    fn most(self) -> usize {
        match self {
            Self::None => 0,
            Self::First(count) => count,
            Self::All => usize::MAX,
        }
    }
}

/// Why a placement is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// It is on its way out.
    Deleting,
    /// An annotation switches deciding off.
    SwitchedOff,
}

/// Whether a cluster comes or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// The placement gains it.
    Gain,
    /// The placement loses it.
    Loss,
}

/// One cluster that comes or goes.
#[derive(Debug, Clone)]
pub struct Move {
    /// The cluster.
    pub cluster: Arc<str>,
    /// Whether it comes or goes.
    pub sense: Sense,
    /// Why, where reasons were asked for.
    pub reason: Option<Reason>,
}

/// Why a cluster is, or is not, where it is.
#[derive(Debug, Clone)]
pub struct Reason {
    /// Everything about the cluster.
    pub account: ClusterAccount,
    /// The verdict in words, to follow the cluster's name.
    pub why: String,
    /// How many clusters were feasible.
    pub feasible: u64,
}

/// One placement, decided.
#[derive(Debug)]
pub struct Settled {
    /// Its name.
    pub key: PlacementKey,
    /// The placement as it was.
    pub placement: Arc<Item<Placement>>,
    /// The PlacementDecisions it had.
    pub existing: Vec<Arc<Item<PlacementDecision>>>,
    /// The clusters in them, in order.
    pub held: Vec<Arc<str>>,
    /// What was decided, or why nothing was.
    pub decided: Result<(Decision, Published), Idle>,
    /// The clusters it has now, in order.
    pub selected: Vec<Arc<str>>,
    /// The decision groups with their clusters.
    pub groups: Vec<(Arc<str>, Vec<Arc<str>>)>,
    /// Clusters that stay, in another group than before.
    pub regrouped: Vec<Regrouped>,
    /// What differs from before: losses first, then gains, each in order.
    pub moves: Vec<Move>,
}

impl Settled {
    /// How many clusters leave.
    pub fn losses(&self) -> usize {
        self.moves.iter().filter(|change| change.sense == Sense::Loss).count()
    }

    /// Whether there was a decision before this one.
    pub fn had_decision(&self) -> bool {
        !self.existing.is_empty()
    }

    /// A condition of the placement after this decision.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        let status = match &self.decided {
            Ok((_, published)) => Some(&published.status),
            Err(_) => self.placement.object.status.as_ref(),
        };
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        conditions.iter().find(|condition| condition.type_ == kind)
    }

    /// Whether the placement cannot work as it is written.
    pub fn is_misconfigured(&self) -> bool {
        self.condition(condition::PLACEMENT_MISCONFIGURED).is_some_and(|condition| condition.status == "True")
    }

    /// The condition that says whether all is as asked.
    pub fn satisfied(&self) -> Option<&Condition> {
        self.condition(condition::PLACEMENT_SATISFIED)
    }

    /// The one word for how the placement stands.
    pub fn standing(&self) -> &str {
        match &self.decided {
            Err(Idle::Deleting) => "BeingDeleted",
            Err(Idle::SwitchedOff) => "SchedulingDisabled",
            Ok(_) if self.is_misconfigured() => reason::MISCONFIGURED,
            Ok(_) => self.satisfied().map_or("", |condition| condition.reason.as_str()),
        }
    }

    /// How many clusters were asked for; `None` means all that fit.
    pub fn asked(&self) -> Option<i32> {
        self.placement.object.spec.number_of_clusters
    }

    /// The PlacementDecisions afterwards.
    pub fn slices(&self) -> Vec<Arc<Item<PlacementDecision>>> {
        match &self.decided {
            Ok((_, published)) => published.decisions.iter().cloned().map(Item::made).collect(),
            Err(_) => self.existing.clone(),
        }
    }
}

/// Decides placements against a model that learns of each decision.
#[derive(Debug)]
pub struct Planner<'w> {
    world: &'w World,
    model: Model,
    slices: BTreeMap<PlacementKey, Vec<Arc<Item<PlacementDecision>>>>,
    /// What was published so far. A PlacementDecision named like ours may carry another placement's label; once it is
    /// written anew it is no longer the other's to remove.
    written: BTreeSet<ObjectKey>,
    now: Moment,
    reasons: Reasons,
}

impl<'w> Planner<'w> {
    /// A planner for a world at a moment.
    pub fn new(world: &'w World, now: Moment, reasons: Reasons) -> Self {
        let written = BTreeSet::new();
        Self { world, model: world.model(), slices: world.slices(), written, now, reasons }
    }

    /// Decides every placement.
    pub fn plan(mut self) -> Plan {
        let settled = self.world.placements.keys().map(|key| self.settle(key)).collect();
        Plan { at: self.now, settled, model: self.model }
    }

    /// The account of one placement, when all that come before it are decided. `None` if it is left alone.
    pub fn account(mut self, placement: &PlacementKey, cluster: Option<&str>) -> Option<Account> {
        for key in self.world.placements.keys().take_while(|key| *key != placement) {
            self.settle(key);
        }
        explain(&mut self.model, placement, cluster, self.now)
    }

    fn settle(&mut self, key: &PlacementKey) -> Settled {
        let placement = Arc::clone(&self.world.placements[key]);
        let existing = self.slices.remove(key).unwrap_or_default();
        let held = self.model.held(key);
        let Some(decision) = self.model.decide(key, self.now) else {
            let idle = if placement.object.is_deleting() { Idle::Deleting } else { Idle::SwitchedOff };
            let (selected, groups) = (held.clone(), groups_of(&existing));
            return Settled {
                key: key.clone(),
                placement,
                existing,
                held,
                decided: Err(idle),
                selected,
                groups,
                regrouped: Vec::new(),
                moves: Vec::new(),
            };
        };
        let objects: Vec<&PlacementDecision> = existing.iter().map(|item| &item.object).collect();
        let published = publish(&self.model, &placement.object, &objects, &decision, Details::ALL, self.now);
        let mut selected: Vec<Arc<str>> =
            decision.picks.iter().map(|pick| Arc::clone(&pick.cluster)).collect();
        let mut rest = selected.iter();
        let groups: Vec<(Arc<str>, Vec<Arc<str>>)> = decision
            .groups
            .iter()
            .map(|group| (Arc::clone(&group.name), rest.by_ref().take(group.len).cloned().collect()))
            .collect();
        selected.sort_unstable();
        let regrouped = regrouped(&existing, &groups);
        // A first decision moves nobody, and its reasons are those of every placement: the overview says enough.
        let reasons = if existing.is_empty() { Reasons::None } else { self.reasons };
        let moves = self.moves(key, &held, &selected, reasons);
        self.feed_back(&existing, &published);
        Settled {
            key: key.clone(),
            placement,
            existing,
            held,
            decided: Ok((decision, published)),
            selected,
            groups,
            regrouped,
            moves,
        }
    }

    /// Must run before the decision is fed back: whether a cluster is held decides what bars it.
    fn moves(
        &mut self,
        key: &PlacementKey,
        held: &[Arc<str>],
        selected: &[Arc<str>],
        reasons: Reasons,
    ) -> Vec<Move> {
        let before: BTreeSet<&Arc<str>> = held.iter().collect();
        let after: BTreeSet<&Arc<str>> = selected.iter().collect();
        let losses = before.difference(&after).map(|cluster| (*cluster, Sense::Loss));
        let gains = after.difference(&before).map(|cluster| (*cluster, Sense::Gain));
        let mut moves: Vec<Move> = losses
            .chain(gains)
            .map(|(cluster, sense)| Move { cluster: Arc::clone(cluster), sense, reason: None })
            .collect();
        let wanted = moves.len().min(reasons.most());
        let clusters = moves[..wanted].iter().map(|change| &change.cluster);
        let mut found = reasons_for(&mut self.model, key, clusters, self.now);
        for change in &mut moves[..wanted] {
            change.reason = found.remove(&change.cluster);
        }
        moves
    }

    fn feed_back(&mut self, existing: &[Arc<Item<PlacementDecision>>], published: &Published) {
        // Additions before removals, as the hub writes them.
        for slice in &published.decisions {
            self.written.insert(key_of(&slice.metadata));
            self.model.apply(Delta::Decision(Box::new(slice.clone())));
        }
        for item in existing {
            let key = key_of(&item.object.metadata);
            if !self.written.contains(&key) {
                self.model.apply(Delta::DecisionGone(key));
            }
        }
    }
}

/// The reasons for some clusters of a placement, as far as the engine knows the clusters.
pub(super) fn reasons_for<'c>(
    model: &mut Model,
    placement: &PlacementKey,
    clusters: impl ExactSizeIterator<Item = &'c Arc<str>>,
    now: Moment,
) -> BTreeMap<Arc<str>, Reason> {
    let accounts: Vec<Account> = if clusters.len() <= EXPLAINED_SINGLY_MAX {
        clusters.filter_map(|cluster| explain(model, placement, Some(cluster), now)).collect()
    } else {
        explain(model, placement, None, now).into_iter().collect()
    };
    let mut reasons = BTreeMap::new();
    for account in accounts {
        let (_, rows) = table(&account);
        let feasible = account.selection.feasible;
        for (account, mut row) in account.clusters.into_iter().zip(rows) {
            // The last column is the verdict in words.
            let why = row.pop().unwrap_or_default();
            reasons.insert(Arc::clone(&account.cluster), Reason { account, why, feasible });
        }
    }
    reasons
}

/// Every placement of a world, decided.
#[derive(Debug)]
pub struct Plan {
    /// When.
    pub at: Moment,
    /// The placements in the order they were decided.
    pub settled: Vec<Settled>,
    /// The world as the engine knows it afterwards.
    pub model: Model,
}

impl Plan {
    /// How many clusters leave placements that had them.
    pub fn moves(&self) -> usize {
        self.settled.iter().map(Settled::losses).sum()
    }

    /// One placement.
    pub fn get(&self, key: &PlacementKey) -> Option<&Settled> {
        self.settled.binary_search_by(|settled| settled.key.cmp(key)).ok().map(|place| &self.settled[place])
    }

    /// The world once this plan is carried out.
    pub fn carried_out(&self, world: &World) -> World {
        let mut world = world.clone();
        // All removals first: what one placement had may bear the name of what another has now.
        for item in self.settled.iter().flat_map(|settled| &settled.existing) {
            world.decisions.remove(&key_of(&item.object.metadata));
        }
        for settled in &self.settled {
            for item in settled.slices() {
                world.decisions.insert(key_of(&item.object.metadata), item);
            }
            if let Ok((_, published)) = &settled.decided {
                let mut object = settled.placement.object.clone();
                object.status = Some(published.status.clone());
                let source = settled.placement.source.clone();
                world.placements.insert(settled.key.clone(), Arc::new(Item { object, source }));
            }
        }
        world
    }

    /// What will not work as it is written.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for Settled { key, placement, decided, .. } in &self.settled {
            let Ok((decision, _)) = decided else { continue };
            for complaint in decision.complaints.iter().chain(self.model.hints(key)) {
                let message = format!("{} (Placement {key})", one_line(&complaint.message));
                warnings.push(placement.warning(&complaint.path, message));
            }
            if let (Outcome::Kept { why }, true) = (&decision.outcome, decision.complaints.is_empty()) {
                let message = format!("{} (Placement {key} keeps what it has)", one_line(why));
                warnings.push(placement.warning("", message));
            }
            if let Some((cluster, score)) = decision.expired.first() {
                let more = match decision.expired.len() - 1 {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let message = format!(
                    "the score {score} of {cluster}{more} has expired and counts as 0 for Placement {key}"
                );
                warnings.push(placement.warning("", message));
            }
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::load;
    use crate::world::read;
    use berth_engine::explain::Verdict;

    const FLEET: &str = "
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: all}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: all}
spec: {clusterSet: all}
";

    fn cluster(name: &str, spec: &str) -> String {
        format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
        )
    }

    fn placement(name: &str, spec: &str) -> String {
        format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
        )
    }

    fn slice(name: &str, placement: &str, clusters: &[&str]) -> String {
        let decisions: Vec<String> = clusters.iter().map(|name| format!("{{clusterName: {name}}}")).collect();
        format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\nmetadata: {{name: {name}, labels: {{cluster.open-cluster-management.io/placement: {placement}}}}}\nstatus: {{decisions: [{}]}}\n",
            decisions.join(", ")
        )
    }

    fn world(parts: &[String]) -> World {
        let text = format!("{FLEET}{}", parts.concat());
        let reading = read(load(&["-".into()], &mut text.as_bytes()));
        assert_eq!(reading.problems, []);
        reading.world
    }

    fn plan(world: &World) -> Plan {
        Planner::new(world, Moment::from_second(1_000_000), Reasons::All).plan()
    }

    fn selected(plan: &Plan) -> Vec<String> {
        plan.settled
            .iter()
            .map(|settled| format!("{} {}", settled.key.name, settled.selected.join(",")))
            .collect()
    }

    #[test]
    fn a_placement_sees_the_decisions_of_those_decided_before_it() {
        let one = "numberOfClusters: 1";
        let world = world(&[
            cluster("c1", ""),
            cluster("c2", ""),
            cluster("c3", ""),
            placement("p1", one),
            placement("p2", one),
            placement("p3", one),
        ]);
        assert_eq!(
            selected(&plan(&world)),
            ["p1 c1", "p2 c2", "p3 c3"],
            "Balance leads each to a free cluster"
        );
    }

    #[test]
    fn slices_that_are_no_longer_wanted_are_gone_once_the_plan_is_carried_out() {
        let world = world(&[
            cluster("c1", ""),
            placement("p1", ""),
            slice("p1-decision-1", "p1", &["c1"]),
            slice("p1-decision-2", "p1", &["c9"]),
        ]);
        let plan = plan(&world);
        let after = plan.carried_out(&world);
        let names: Vec<&str> = after.decisions.keys().map(|key| &*key.name).collect();
        assert_eq!(names, ["p1-decision-1"]);
        assert_eq!(plan.moves(), 1, "c9 was there and is not any more");
        let again = Planner::new(&after, plan.at, Reasons::All).plan();
        assert_eq!((again.moves(), selected(&again)), (0, selected(&plan)));
    }

    #[test]
    fn a_slice_named_like_ours_and_labelled_for_another_is_not_taken_from_us_again() {
        let world = world(&[
            cluster("c1", ""),
            placement("p1", ""),
            placement("z", ""),
            slice("p1-decision-1", "z", &["c1"]),
        ]);
        let first = plan(&world);
        let after = first.carried_out(&world);
        let owners: Vec<(&str, Option<&str>)> =
            after.decisions.iter().map(|(key, item)| (&*key.name, item.object.placement_name())).collect();
        assert_eq!(owners, [("p1-decision-1", Some("p1")), ("z-decision-1", Some("z"))]);
        for name in ["p1", "z"] {
            let key = PlacementKey::new("default", name);
            assert_eq!(first.model.held(&key), [Arc::from("c1")], "{name} in the model");
        }
        let again = plan(&after);
        assert!(again.settled.iter().all(|settled| settled.had_decision() && settled.moves.is_empty()));
    }

    #[test]
    fn a_cluster_that_leaves_is_judged_as_the_one_it_was() {
        // Barred for newcomers only: what makes c1 leave is its rank, not the taint.
        let draining =
            "taints: [{key: draining, effect: NoSelectIfNew}, {key: shun, effect: PreferNoSelect}]";
        let world = world(&[
            cluster("c1", draining),
            cluster("c2", ""),
            placement("p1", "numberOfClusters: 1"),
            slice("p1-decision-1", "p1", &["c1"]),
        ]);
        let plan = plan(&world);
        let [loss, gain] = &plan.settled[0].moves[..] else { panic!("one goes and one comes") };
        assert_eq!((&*loss.cluster, loss.sense), ("c1", Sense::Loss));
        assert_eq!((&*gain.cluster, gain.sense), ("c2", Sense::Gain));
        let verdict = &loss.reason.as_ref().unwrap().account.verdict;
        assert!(matches!(verdict, Verdict::Outranked { .. }), "{verdict:?}");
    }

    #[test]
    fn the_same_reasons_are_found_for_few_moves_and_for_many() {
        let many = EXPLAINED_SINGLY_MAX + 2;
        let mut parts = vec![placement("p1", "")];
        let names: Vec<String> = (0..many).map(|n| format!("c{n}")).collect();
        parts.extend(names.iter().map(|name| cluster(name, "taints: [{key: a, effect: NoSelect}]")));
        parts.push(slice("p1-decision-1", "p1", &names.iter().map(String::as_str).collect::<Vec<_>>()));
        let world = world(&parts);
        let all = plan(&world);
        let few = Planner::new(&world, all.at, Reasons::First(2)).plan();
        let why = |plan: &Plan| -> Vec<Option<String>> {
            plan.settled[0].moves.iter().map(|change| Some(change.reason.as_ref()?.why.clone())).collect()
        };
        assert_eq!(why(&all).len(), many);
        assert!(
            why(&all)
                .iter()
                .all(|why| why.as_deref() == Some("has a taint that is not tolerated (a:NoSelect)"))
        );
        assert_eq!(why(&few)[..2], why(&all)[..2]);
        assert!(why(&few)[2..].iter().all(Option::is_none));
    }
}
