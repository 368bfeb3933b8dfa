//! A decision as the API objects that hold it.
//!
//! Owns names, labels, owner references, conditions and their wording, as upstream's consumers know them. It says
//! what the objects should be; writing them, in an order that never loses a cluster, is the controller's business.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use berth_api::names::{self, condition, label, reason};
use berth_api::placement_decision::DECISIONS_PER_SLICE_MAX;
use berth_api::{
    ClusterDecision, DecisionGroupStatus, NextTransition, Placement, PlacementDecision,
    PlacementDecisionStatus, PlacementStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference, Time};

use super::compile::NAME_CHARS_MAX;
use super::decision::{Decision, Outcome, Pick};
use super::group::slices;
use super::rule::{Details, Order, Rule};
use crate::model::{Model, PlacementKey};
use crate::moment::Moment;

/// The longest condition message the schema takes, in characters.
const MESSAGE_CHARS_MAX: usize = 32_768;
/// How many complaints a condition message lists.
const COMPLAINTS_LISTED_MAX: usize = 10;

/// What the API should hold for one placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Its PlacementDecisions, in order; any other of its PlacementDecisions should go.
    pub decisions: Vec<PlacementDecision>,
    /// Its status.
    pub status: PlacementStatus,
    /// When scores held back by `scoreRateLimit` may be written.
    pub scores_due: Option<Moment>,
}

/// Renders a decision. `existing` are the placement's PlacementDecisions as they are, and `room` is which details these can
/// hold: what is compared with them must be without the others, or it would differ for ever.
pub fn publish(
    model: &Model,
    placement: &Placement,
    existing: &[&PlacementDecision],
    decision: &Decision,
    room: Details,
    now: Moment,
) -> Published {
    let key = PlacementKey::of(&placement.metadata);
    let rule =
        model.placements.find(&key).and_then(|id| model.placements.get(id).rule.as_ref().ok().cloned());
    let details = rule.as_ref().map(|rule| rule.details).unwrap_or_default().and(room);
    let writer = Writer { model, placement, existing, decision, rule: rule.as_deref(), details, now };
    writer.publish()
}

struct Writer<'w> {
    model: &'w Model,
    placement: &'w Placement,
    existing: &'w [&'w PlacementDecision],
    decision: &'w Decision,
    rule: Option<&'w Rule>,
    /// What was asked for, where there is room for it.
    details: Details,
    now: Moment,
}

impl Writer<'_> {
    fn publish(&self) -> Published {
        let before = self.placement.status.clone().unwrap_or_default();
        let mut status = PlacementStatus {
            number_of_selected_clusters: Some(count(self.decision.picks.len())),
            conditions: Some(self.conditions(before.conditions.as_deref().unwrap_or_default())),
            last_score_update_time: before.last_score_update_time.clone(),
            next_transition: self.next_transition(),
            decision_groups: None,
        };
        let mut scores_due = None;
        if self.name().chars().count() > NAME_CHARS_MAX {
            // No slice can carry such a name as its label, not even an empty one; the status can still say so.
            return Published { decisions: self.kept(), status, scores_due };
        }
        if matches!(self.decision.outcome, Outcome::Kept { .. }) && !self.existing.is_empty() {
            let decisions = self.kept();
            status.decision_groups = before.decision_groups.map(|groups| recounted(groups, &decisions));
            return Published { decisions, status, scores_due };
        }
        let (mut decisions, groups) = self.slices();
        status.decision_groups = Some(groups);
        if self.shows_scores() && self.only_scores_differ(&decisions) {
            let last = before.last_score_update_time.as_ref().map(|time| Moment::from_timestamp(time.0));
            let due = last.map_or(Moment::PAST, |last| last.plus_seconds(self.score_rate_limit_seconds()));
            if self.now < due {
                decisions = self.existing.iter().map(|object| (*object).clone()).collect();
                decisions.sort_by_key(|object| slice_number(self.name(), object));
                scores_due = Some(due);
            } else {
                status.last_score_update_time = time(self.now);
            }
        } else if self.shows_scores() && !self.same(&decisions) {
            status.last_score_update_time = time(self.now);
        }
        Published { decisions, status, scores_due }
    }

    fn name(&self) -> &str {
        self.placement.metadata.name.as_deref().unwrap_or_default()
    }

    fn shows_scores(&self) -> bool {
        self.details.score || self.rule.is_some_and(|rule| rule.order == Order::Score)
    }

    /// Slices of at most 100 clusters, numbered from 1 across groups.
    fn slices(&self) -> (Vec<PlacementDecision>, Vec<DecisionGroupStatus>) {
        let mut picks = &self.decision.picks[..];
        let mut decisions = Vec::new();
        let mut groups = Vec::new();
        for (index, group) in self.decision.groups.iter().enumerate() {
            let mut names = Vec::with_capacity(slices(group.len));
            let mut left = group.len;
            for _ in 0..slices(group.len) {
                let (slice, rest) = picks.split_at(left.min(DECISIONS_PER_SLICE_MAX));
                (picks, left) = (rest, left - slice.len());
                let object = self.slice(decisions.len() + 1, index, &group.name, slice);
                names.push(object.metadata.name.clone().unwrap_or_default());
                decisions.push(object);
            }
            groups.push(DecisionGroupStatus {
                decision_group_index: Some(count(index)),
                decision_group_name: Some(group.name.to_string()),
                decisions: Some(names),
                cluster_count: Some(count(group.len)),
            });
        }
        (decisions, groups)
    }

    fn slice(&self, number: usize, index: usize, group: &Arc<str>, picks: &[Pick]) -> PlacementDecision {
        let name = format!("{}{}{number}", self.name(), names::DECISION_NAME_INFIX);
        let existing = self.existing.iter().find(|object| object.metadata.name.as_deref() == Some(&name));
        let owner = self.owner_reference();
        let mut metadata = existing.map_or_else(ObjectMeta::default, |object| object.metadata.clone());
        metadata.name = Some(name);
        metadata.namespace.clone_from(&self.placement.metadata.namespace);
        metadata.labels = Some(BTreeMap::from([
            (label::PLACEMENT.to_owned(), self.name().to_owned()),
            (label::DECISION_GROUP_NAME.to_owned(), group.to_string()),
            (label::DECISION_GROUP_INDEX.to_owned(), index.to_string()),
        ]));
        let owners = metadata.owner_references.get_or_insert_default();
        match owners.iter_mut().find(|other| other.controller == Some(true)) {
            Some(controller) => *controller = owner,
            None => owners.push(owner),
        }
        let decisions = picks.iter().map(|pick| self.entry(pick)).collect();
        PlacementDecision { metadata, status: Some(PlacementDecisionStatus { decisions }) }
    }

    fn entry(&self, pick: &Pick) -> ClusterDecision {
        let cluster = self.model.clusters.get(pick.slot);
        ClusterDecision {
            cluster_name: pick.cluster.to_string(),
            reason: Some(self.why_selected().to_owned()),
            score: self.details.score.then_some(pick.score),
            available: self.details.available.then(|| cluster.is_some_and(|cluster| cluster.available)),
        }
    }

    /// Stable as long as the rule is: a reason that moved with every score would be written again and again.
    fn why_selected(&self) -> &'static str {
        match self.rule {
            None => "Kept",
            Some(rule) if rule.count.is_none() && rule.spread.is_empty() && rule.anti_affinity.is_none() => {
                "AllFeasible"
            }
            Some(rule) if rule.spread.is_empty() && rule.anti_affinity.is_none() => "TopRanked",
            Some(_) => "Spread",
        }
    }

    fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: format!("{}/v1beta1", names::GROUP),
            kind: "Placement".into(),
            name: self.name().to_owned(),
            uid: self.placement.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// The existing slices, without clusters that are no longer granted.
    fn kept(&self) -> Vec<PlacementDecision> {
        let still: BTreeSet<&str> = self.decision.picks.iter().map(|pick| &*pick.cluster).collect();
        let mut kept: Vec<PlacementDecision> = self.existing.iter().map(|object| (*object).clone()).collect();
        for status in kept.iter_mut().filter_map(|object| object.status.as_mut()) {
            status.decisions.retain(|decision| still.contains(decision.cluster_name.as_str()));
        }
        kept.sort_by_key(|object| slice_number(self.name(), object));
        kept
    }

    /// Whether the slices differ from the existing ones in nothing but scores and the order these make.
    fn only_scores_differ(&self, decisions: &[PlacementDecision]) -> bool {
        let without_scores = |objects: &mut dyn Iterator<Item = &PlacementDecision>| {
            let mut entries: Vec<(String, ClusterDecision)> = objects
                .flat_map(|object| {
                    let labels = object.metadata.labels.as_ref();
                    let group = labels.and_then(|labels| labels.get(label::DECISION_GROUP_INDEX));
                    let group = group.cloned().unwrap_or_default();
                    object
                        .decisions()
                        .iter()
                        .map(move |entry| (group.clone(), ClusterDecision { score: None, ..entry.clone() }))
                })
                .collect();
            entries
                .sort_by(|one, other| (&one.0, &one.1.cluster_name).cmp(&(&other.0, &other.1.cluster_name)));
            entries
        };
        decisions.len() == self.existing.len()
            && !self.same(decisions)
            && without_scores(&mut decisions.iter()) == without_scores(&mut self.existing.iter().copied())
    }

    fn same(&self, decisions: &[PlacementDecision]) -> bool {
        decisions.len() == self.existing.len()
            && decisions.iter().all(|wanted| {
                self.existing.iter().any(|object| {
                    object.metadata.name == wanted.metadata.name && object.decisions() == wanted.decisions()
                })
            })
    }

    fn score_rate_limit_seconds(&self) -> i64 {
        const DEFAULT_SECONDS: i64 = 60;
        let Some(text) = self.placement.spec.score_rate_limit.as_deref() else { return DEFAULT_SECONDS };
        let unit = match text.as_bytes().last() {
            Some(b'h') => 3600,
            Some(b'm') => 60,
            Some(b's') => 1,
            _ => return DEFAULT_SECONDS,
        };
        text[..text.len() - 1].parse::<i64>().map_or(DEFAULT_SECONDS, |amount| amount.saturating_mul(unit))
    }

    fn next_transition(&self) -> Option<NextTransition> {
        let next = self.decision.next.as_ref()?;
        Some(NextTransition { time: time(next.at)?, reason: Some(next.to_string()) })
    }

    fn conditions(&self, before: &[Condition]) -> Vec<Condition> {
        let misconfigured = self.misconfigured();
        let satisfied = self.satisfied();
        let mut conditions: Vec<Condition> = before.to_vec();
        for (kind, status, reason, message) in [
            (condition::PLACEMENT_MISCONFIGURED, misconfigured.0, misconfigured.1, misconfigured.2),
            (condition::PLACEMENT_SATISFIED, satisfied.0, satisfied.1, satisfied.2),
        ] {
            let status = if status { "True" } else { "False" };
            let old = conditions.iter().position(|condition| condition.type_ == kind);
            let since = old
                .map(|place| &conditions[place])
                .filter(|condition| condition.status == status)
                .map(|condition| condition.last_transition_time.clone())
                .or_else(|| time(self.now))
                .unwrap_or(Time(jiff::Timestamp::UNIX_EPOCH));
            let new = Condition {
                type_: kind.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: message.chars().take(MESSAGE_CHARS_MAX).collect(),
                last_transition_time: since,
                observed_generation: self.placement.metadata.generation,
            };
            match old {
                Some(place) => conditions[place] = new,
                None => conditions.push(new),
            }
        }
        conditions
    }

    fn misconfigured(&self) -> (bool, &'static str, String) {
        let complaints = &self.decision.complaints;
        let Some(first) = complaints.first() else {
            return (false, reason::SUCCEED_CONFIGURED, "Placement configurations check pass".into());
        };
        let mut message = first.condition_message();
        for other in complaints.iter().skip(1).take(COMPLAINTS_LISTED_MAX - 1) {
            let _ = write!(message, "; {}: {}", other.path, other.message);
        }
        if complaints.len() > COMPLAINTS_LISTED_MAX {
            let _ = write!(message, "; and {} more", complaints.len() - COMPLAINTS_LISTED_MAX);
        }
        (true, reason::MISCONFIGURED, message)
    }

    fn satisfied(&self) -> (bool, &'static str, String) {
        let Decision { outcome, picks, unscheduled, complaints, .. } = self.decision;
        match outcome {
            Outcome::NoBindings => (
                false,
                reason::NO_MANAGED_CLUSTER_SET_BINDINGS,
                "No valid ManagedClusterSetBindings found in placement namespace".into(),
            ),
            Outcome::NoIntersection { asked } => (
                false,
                reason::NO_INTERSECTION,
                format!("None of ManagedClusterSets [{}] is bound to placement namespace", asked.join(",")),
            ),
            Outcome::SetsEmpty { sets } => (
                false,
                reason::ALL_MANAGED_CLUSTER_SETS_EMPTY,
                format!("All ManagedClusterSets [{}] have no member ManagedCluster", sets.join(",")),
            ),
            Outcome::Kept { why } if !picks.is_empty() || complaints.is_empty() => (
                false,
                reason::NOT_ALL_DECISIONS_SCHEDULED,
                format!("the last decision is kept, with {} clusters: {why}", picks.len()),
            ),
            Outcome::Kept { .. } | Outcome::Decided if picks.is_empty() => (
                false,
                reason::NO_MANAGED_CLUSTER_MATCHED,
                "No ManagedCluster matches any of the cluster predicate".into(),
            ),
            Outcome::Kept { .. } | Outcome::Decided => match unscheduled {
                0 => (true, reason::ALL_DECISIONS_SCHEDULED, "All cluster decisions scheduled".into()),
                missing => (
                    false,
                    reason::NOT_ALL_DECISIONS_SCHEDULED,
                    format!("{missing} cluster decisions unscheduled"),
                ),
            },
        }
    }
}

/// The groups with the number of clusters their slices have now.
fn recounted(
    mut groups: Vec<DecisionGroupStatus>,
    decisions: &[PlacementDecision],
) -> Vec<DecisionGroupStatus> {
    for group in &mut groups {
        let slices = group.decisions.as_deref().unwrap_or_default();
        let theirs = decisions
            .iter()
            .filter(|object| object.metadata.name.as_ref().is_some_and(|name| slices.contains(name)));
        group.cluster_count = Some(count(theirs.map(|object| object.decisions().len()).sum()));
    }
    groups
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn time(moment: Moment) -> Option<Time> {
    moment.timestamp().map(Time)
}

/// The number at the end of a slice's name, so that slice 10 comes after slice 9.
fn slice_number(placement: &str, object: &PlacementDecision) -> (u64, Option<String>) {
    let name = object.metadata.name.clone();
    let number = name.as_deref().and_then(|name| {
        name.strip_prefix(placement)?.strip_prefix(names::DECISION_NAME_INFIX)?.parse().ok()
    });
    (number.unwrap_or(u64::MAX), name)
}
