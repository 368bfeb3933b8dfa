//! Building the account: the steps of `select`, with everything kept.

use std::cell::Cell;
use std::sync::Arc;

use berth_api::Placement;
use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::account::{
    Account, ClusterAccount, CutLine, Failure, IgnoredBinding, PredicateAccount, ScoreAccount, Selection,
    SetMembers, SetsAccount, TaintAccount, Tolerance, Verdict, Weight,
};
use super::counterfactual::counterfactual;
use super::render::verdict_phrase;
use crate::model::{
    ALLOWANCE, ASK_COST, Entry, FREE_SHARE, Holdings, Members, Model, PlacementKey, Slot, Trial,
};
use crate::moment::Moment;
use crate::select::{
    self, Decision, Outcome, Prioritizer, Ranked, Reach, Rule, Scorer, Spreader, candidates, feasible, pick,
};
use crate::selector::{Ask, Mismatch, Subject, Term};
use crate::taint::{ClusterEffect, Policy, Refusal, Taint, judge};

/// Predicates listed for one cluster: with more, those it comes nearest to. Thousands of predicates over thousands of
/// clusters would be an account nobody can hold.
const PREDICATES_LISTED_MAX: usize = 20;

/// Explains a placement at `now`, about one cluster or about all. `None` if there is no such placement or it is to be
/// left alone.
pub fn explain(
    model: &mut Model,
    placement: &PlacementKey,
    cluster: Option<&str>,
    now: Moment,
) -> Option<Account> {
    let decision = model.decide_afresh(placement, now)?;
    let id = model.placements.find(placement)?;
    let model = &*model;
    let entry = model.placements.get(id);
    let own = model.decisions.of(&entry.key);
    let decidable = entry.eligible.broken.is_none() && decision.complaints.is_empty();
    let rule = entry.rule.as_ref().ok().map(|rule| &**rule).filter(|_| decidable);
    let feasible = if rule.is_some() { feasible(model, entry, own, now) } else { RoaringBitmap::new() };
    let ranks = rule.map(|rule| Standings::new(model, entry, rule, own, &feasible, now));
    let picked = decision.picks.iter().map(|pick| pick.slot.index_u32()).collect();
    let context = Context {
        model,
        entry,
        own,
        rule,
        feasible: &feasible,
        standings: ranks.as_ref(),
        decision: &decision,
        picked,
        now,
        allowance: Cell::new(ALLOWANCE),
        patience: Cell::new(model.patience),
    };
    let mut clusters: Vec<ClusterAccount> = model
        .slots
        .in_order()
        .filter(|(name, slot)| {
            cluster.map_or_else(
                || model.clusters.get(*slot).is_some() || context.held(*slot),
                |wanted| wanted == &***name,
            )
        })
        .map(|(_, slot)| context.cluster(slot))
        .collect();
    clusters.sort_by_key(|account| (nearness(&account.verdict), account.rank.unwrap_or(usize::MAX)));
    Some(Account {
        placement: placement.clone(),
        at: now,
        outcome: decision.outcome.clone(),
        complaints: decision.complaints.to_vec(),
        hints: rule.map(|rule| rule.hints.to_vec()).unwrap_or_default(),
        sets: context.sets(),
        selection: context.selection(),
        prioritizers: rule
            .map(|rule| {
                let weight = |(prioritizer, weight): &(Prioritizer, i64)| Weight {
                    prioritizer: prioritizer.to_string(),
                    weight: *weight,
                };
                rule.weights.iter().map(weight).collect()
            })
            .unwrap_or_default(),
        next: decision.next.clone(),
        clusters,
    })
}

/// The expressions of a placement cost more than the model has patience for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooCostly;

/// Explains a placement that nobody has made, or one that exists as if it said something else. The model is afterwards as
/// it was, also when this fails midway. `None` if the placement is to be left alone.
pub fn explain_as_if(
    model: &mut Model,
    placement: &Placement,
    cluster: Option<&str>,
    now: Moment,
) -> Result<Option<Account>, TooCostly> {
    // Before it goes in: whom the passing of time touches is another question.
    let _ = model.move_clock(now);
    let key = PlacementKey::of(&placement.metadata);
    let mut trial = Trial::of_placement(model, placement);
    if trial.is_waiting(&key) {
        return Err(TooCostly);
    }
    Ok(explain(&mut trial, &key, cluster, now))
}

/// The order in which clusters are listed: the nearer to selection, the earlier.
fn nearness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Selected | Verdict::Kept => 0,
        Verdict::Outranked { .. } | Verdict::Obstructed { .. } | Verdict::NotConsidered => 1,
        Verdict::Barred => 2,
        Verdict::NoPredicateMatches => 3,
        Verdict::Deleting | Verdict::Missing => 4,
        Verdict::NotInSets { .. } => 5,
    }
}

/// How the feasible clusters stand to one another.
struct Standings<'m> {
    scorer: Scorer<'m>,
    /// Scores any cluster as if it were feasible, where that does not depend on which clusters are.
    hypothetical: Option<Scorer<'m>>,
    /// The place of each feasible cluster, from 1.
    ranks: HashMap<Slot, usize>,
    selected: Vec<Ranked>,
    /// The last selected, where the number asked for was reached: to be selected, another must beat it.
    cut: Option<Ranked>,
    spreader: Option<Spreader<'m>>,
}

impl<'m> Standings<'m> {
    fn new(
        model: &'m Model,
        entry: &'m Entry,
        rule: &'m Rule,
        own: Option<&'m Holdings>,
        feasible: &RoaringBitmap,
        now: Moment,
    ) -> Self {
        let scorer = Scorer::new(model, entry, rule, own, feasible, now);
        let everybody = &model.clusters.live;
        let hypothetical =
            (!rule.is_relative()).then(|| Scorer::new(model, entry, rule, own, everybody, now));
        let (ranked, _) = select::best(model, &scorer, feasible, usize::MAX / 4);
        let ranks = ranked.iter().enumerate().map(|(place, ranked)| (ranked.slot, place + 1)).collect();
        let (selected, spreader) = pick(model, rule, own, &scorer, feasible);
        let reached = rule.count.is_some_and(|asked| asked == selected.len());
        let cut = if reached { selected.iter().max().copied() } else { None };
        Self { scorer, hypothetical, ranks, selected, cut, spreader }
    }
}

pub(super) struct Context<'c> {
    pub(super) model: &'c Model,
    pub(super) entry: &'c Entry,
    own: Option<&'c Holdings>,
    pub(super) rule: Option<&'c Rule>,
    feasible: &'c RoaringBitmap,
    standings: Option<&'c Standings<'c>>,
    decision: &'c Decision,
    picked: RoaringBitmap,
    now: Moment,
    /// What expressions may still cost that deciding did not have to ask.
    allowance: Cell<u64>,
    /// Units of cost that expressions may still have for whoever waits for this account.
    patience: Cell<u64>,
}

impl Context<'_> {
    fn held(&self, slot: Slot) -> bool {
        self.own.is_some_and(|own| own.times.contains_key(&slot))
    }

    fn sets(&self) -> SetsAccount {
        let eligible = self.entry.eligible.sets.iter().map(|(set, term)| SetMembers {
            set: set.clone(),
            members: term.map_or(0, |term| self.model.terms.get(term).matching.len()),
        });
        let bindings = self.model.sets.bindings.get(&self.entry.key.namespace).into_iter().flatten();
        let ignored = bindings.filter_map(|(name, counts)| {
            let why = match (counts, self.model.sets.sets.get(name).map(|set| &set.members)) {
                (Err(why), _) | (Ok(()), Some(Members::Broken(why))) => why.clone(),
                (Ok(()), None) => "there is no ManagedClusterSet of that name".to_owned(),
                (Ok(()), Some(_)) => return None,
            };
            Some(IgnoredBinding { binding: name.clone(), why })
        });
        SetsAccount {
            asked: self.entry.asked.iter().map(ToString::to_string).collect(),
            eligible: eligible.collect(),
            ignored: ignored.collect(),
        }
    }

    fn selection(&self) -> Selection {
        let count = |bitmap: RoaringBitmap| bitmap.len();
        Selection {
            asked: self.rule.and_then(|rule| rule.count),
            members: count(select::members(self.model, self.entry)),
            candidates: if self.rule.is_some() { count(candidates(self.model, self.entry)) } else { 0 },
            feasible: self.feasible.len(),
            selected: self.decision.picks.len(),
            cut_line: self
                .cut()
                .map(|cut| CutLine { cluster: self.model.name(cut.slot).clone(), score: cut.score }),
        }
    }

    /// The cluster to beat; see [`Standings::cut`].
    pub(super) fn cut(&self) -> Option<Ranked> {
        self.standings?.cut
    }

    fn cluster(&self, slot: Slot) -> ClusterAccount {
        let model = self.model;
        let set = self.entry.eligible.sets.iter().find(|(_, term)| {
            term.is_some_and(|term| model.terms.get(term).matching.contains(slot.index_u32()))
        });
        let mut account = ClusterAccount {
            cluster: model.name(slot).clone(),
            verdict: self.verdict(slot, set.is_some()),
            why: String::new(),
            held: self.held(slot),
            set: set.map(|(set, _)| set.clone()),
            predicates: self.predicates(slot),
            taints: self.taints(slot),
            scores: Vec::new(),
            total: None,
            rank: None,
            margin: None,
            leaves: None,
            counterfactual: None,
        };
        if let Some(standings) = self.standings
            && self.feasible.contains(slot.index_u32())
        {
            account.scores = self.scores(standings, slot);
            let total = standings.scorer.score(slot);
            account.total = Some(total);
            account.rank = standings.ranks.get(&slot).copied();
            account.margin = self.cut().map(|cut| total.saturating_sub(cut.score));
        }
        if matches!(account.verdict, Verdict::Selected) {
            account.leaves =
                select::next_leave(model, self.entry, std::iter::once(slot), Reach::Selected, self.now);
        } else {
            account.counterfactual = counterfactual(self, slot, &account);
        }
        account.why = verdict_phrase(&account);
        account
    }

    fn verdict(&self, slot: Slot, in_set: bool) -> Verdict {
        if self.picked.contains(slot.index_u32()) {
            let kept = matches!(self.decision.outcome, Outcome::Kept { .. });
            return if kept { Verdict::Kept } else { Verdict::Selected };
        }
        match self.model.clusters.get(slot) {
            None => return Verdict::Missing,
            Some(cluster) if cluster.deleting => return Verdict::Deleting,
            Some(_) => {}
        }
        if !in_set {
            let member_of = self.model.sets.sets.iter().filter(|(_, set)| match &set.members {
                Members::Matching(term) => self.model.terms.get(*term).matching.contains(slot.index_u32()),
                _ => false,
            });
            return Verdict::NotInSets { member_of: member_of.map(|(name, _)| name.clone()).collect() };
        }
        let (Some(_), Some(standings)) = (self.rule, self.standings) else { return Verdict::NotConsidered };
        let passes = self.entry.terms.is_empty()
            || self
                .entry
                .terms
                .iter()
                .any(|term| self.model.terms.get(*term).matching.contains(slot.index_u32()));
        if !passes {
            return Verdict::NoPredicateMatches;
        }
        if !self.feasible.contains(slot.index_u32()) {
            return Verdict::Barred;
        }
        if let Some(obstacle) =
            standings.spreader.as_ref().and_then(|spreader| spreader.why_not(self.model, slot))
        {
            return Verdict::Obstructed { by: obstacle };
        }
        if standings.selected.is_empty() {
            return Verdict::NotConsidered;
        }
        Verdict::Outranked { better: standings.selected.len() }
    }

    fn predicates(&self, slot: Slot) -> Vec<PredicateAccount> {
        let predicates = self.rule.map(|rule| &rule.predicates[..]).unwrap_or_default();
        let cut_to_nearest = |accounts: &mut Vec<PredicateAccount>| {
            accounts.sort_by_key(|account| (account.failures.len(), account.index));
            accounts.truncate(PREDICATES_LISTED_MAX);
        };
        let mut accounts = Vec::new();
        let mut subject = None;
        for (index, term) in predicates.iter().enumerate() {
            accounts.push(PredicateAccount { index, failures: self.failures(term, slot, &mut subject) });
            if accounts.len() == 2 * PREDICATES_LISTED_MAX {
                cut_to_nearest(&mut accounts);
            }
        }
        if accounts.len() > PREDICATES_LISTED_MAX {
            cut_to_nearest(&mut accounts);
        }
        accounts
    }

    /// What of a term fails; `subject` is made once for all terms about one cluster.
    fn failures(&self, term: &Term, slot: Slot, subject: &mut Option<Subject>) -> Vec<Failure> {
        let lens = self.model.lens();
        let mut failures = Vec::new();
        if !term.admits_name(self.model.name(slot)) {
            failures.push(Failure::Name);
        }
        for requirement in &term.requirements {
            let actual = lens.value(slot, requirement.facet, &requirement.key);
            if !requirement.holds(actual) {
                failures.push(Failure::Requirement {
                    wanted: requirement.to_string(),
                    actual: actual.map(ToOwned::to_owned),
                });
            }
        }
        if let Some((place, mismatch)) = self.first_mismatch(term, slot, subject) {
            let outcome = match mismatch {
                Mismatch::False => "false".to_owned(),
                Mismatch::NotBool(kind) => format!("a value of type {kind}, not a bool"),
                Mismatch::Failed(error) => format!("error: {error}"),
            };
            failures
                .push(Failure::Expression { source: term.expressions[place].source().to_owned(), outcome });
        }
        failures
    }

    /// The first expression of a term that does not hold. Where the rest of the term fails, nobody had to ask yet, and
    /// what it costs to ask now is bounded here.
    pub(super) fn first_mismatch(
        &self,
        term: &Term,
        slot: Slot,
        subject: &mut Option<Subject>,
    ) -> Option<(usize, Mismatch)> {
        if term.expressions.is_empty() {
            return None;
        }
        let lens = self.model.lens();
        let screened = !lens.passes_screen(term, slot);
        if self.patience.get() == 0 || (screened && self.allowance.get() == 0) {
            let why = "not evaluated, because that would cost too much for all these clusters";
            return Some((0, Mismatch::Failed(why.to_owned())));
        }
        let (mismatch, cost) = lens.first_mismatch(term, slot, subject);
        self.patience.update(|left| left.saturating_sub(cost.saturating_add(ASK_COST)));
        if screened {
            self.allowance.update(|left| left.saturating_sub(cost.saturating_sub(FREE_SHARE)));
        }
        mismatch
    }

    fn taints(&self, slot: Slot) -> Vec<TaintAccount> {
        let Some(rule) = self.rule else { return Vec::new() };
        let held = self.held(slot);
        self.model
            .clusters
            .taints(slot)
            .iter()
            .map(|carried| {
                let taint = Taint { added: carried.added, ..self.model.standings.taint(carried.id).clone() };
                let words = |by: usize| rule.tolerations[by].to_string();
                let verdict =
                    judge(&taint, &rule.tolerations, Policy::LongestMatch, carried.since(), self.now);
                let refused = !verdict.holds();
                let bars = refused
                    && match taint.effect {
                        ClusterEffect::NoSelect | ClusterEffect::Other(_) => true,
                        ClusterEffect::NoSelectIfNew => !held,
                        ClusterEffect::PreferNoSelect => false,
                    };
                let tolerance = match verdict {
                    crate::taint::Verdict::Tolerated { by } => Tolerance::Tolerated { by: words(by) },
                    crate::taint::Verdict::Until { by, deadline } => Tolerance::Until {
                        by: words(by),
                        deadline,
                        seconds_left: deadline.seconds_since(self.now),
                    },
                    crate::taint::Verdict::Not(_) if taint.effect == ClusterEffect::NoSelectIfNew && held => {
                        Tolerance::HeldAlready
                    }
                    crate::taint::Verdict::Not(_) if taint.effect == ClusterEffect::PreferNoSelect => {
                        Tolerance::Avoided
                    }
                    crate::taint::Verdict::Not(Refusal::Expired { by, at }) => {
                        Tolerance::Expired { by: words(by), ended: taint.added.map(|_| at) }
                    }
                    crate::taint::Verdict::Not(Refusal::NoMatch) => Tolerance::No,
                };
                TaintAccount { taint: taint.to_string(), added: taint.added, tolerance, bars }
            })
            .collect()
    }

    fn scores(&self, standings: &Standings<'_>, slot: Slot) -> Vec<ScoreAccount> {
        let mut scores: Vec<ScoreAccount> = standings
            .scorer
            .values(slot)
            // The penalty is worth a line only where it applies.
            .filter(|(prioritizer, _, value)| {
                !(matches!(prioritizer, Prioritizer::PreferNoSelect) && *value == 0)
            })
            .map(|(prioritizer, weight, value)| ScoreAccount {
                prioritizer: prioritizer.to_string(),
                weight,
                value,
                weighted: weight.saturating_mul(value),
                note: self.note(prioritizer, slot),
            })
            .collect();
        if let (Some(spreader), Some(rule)) = (&standings.spreader, self.rule) {
            let weight = rule.weight(&Prioritizer::Spread);
            if weight != 0 && !rule.spread.is_empty() {
                let value = spreader.worth_of(self.model, slot);
                let note = "where the selection stands now".to_owned();
                let weighted = weight.saturating_mul(value);
                scores.push(ScoreAccount {
                    prioritizer: Prioritizer::Spread.to_string(),
                    weight,
                    value,
                    weighted,
                    note,
                });
            }
        }
        scores
    }

    fn note(&self, prioritizer: &Prioritizer, slot: Slot) -> String {
        let cluster = self.model.clusters.get(slot);
        match prioritizer {
            Prioritizer::Balance => {
                let load = self.model.decisions.foreign_load(slot, self.own);
                let highest = self.model.decisions.highest_foreign_load(self.own);
                let decisions = if load == 1 { "decision" } else { "decisions" };
                format!("{load} {decisions} of other placements, {highest} on the busiest cluster")
            }
            Prioritizer::Steady if self.held(slot) => "selected already".into(),
            Prioritizer::Steady => "not selected yet".into(),
            Prioritizer::ResourceAllocatableCpu | Prioritizer::ResourceAllocatableMemory => {
                let amount = prioritizer.resource().and_then(|resource| cluster?.resource(resource));
                amount.map_or_else(
                    || "allocatable or capacity is unknown".into(),
                    |amount| format!("{amount} allocatable"),
                )
            }
            Prioritizer::AddOn { resource, score } => match self.model.scores.get(slot, resource) {
                None => format!("no AddOnPlacementScore {resource} in namespace {}", self.model.name(slot)),
                Some(scores) if scores.expired(self.now) => format!("expired at {}", scores.ends),
                Some(scores) if scores.value(score).is_none() => {
                    format!("AddOnPlacementScore {resource} has no score {score}")
                }
                Some(scores) if scores.ends.is_finite() => format!("valid until {}", scores.ends),
                Some(_) => String::new(),
            },
            Prioritizer::PreferNoSelect => "a taint asks to avoid this cluster".into(),
            Prioritizer::Spread => String::new(),
        }
    }

    /// The place a score would take among the selected: whether it would be selected if it were feasible.
    pub(super) fn would_be_selected(&self, slot: Slot, score: i64) -> bool {
        match (self.rule.and_then(|rule| rule.count), self.cut()) {
            (Some(0), _) => false,
            (_, None) => true,
            (_, Some(cut)) => Ranked { score, rank: self.model.slots.rank(slot), slot } < cut,
        }
    }

    /// The score the cluster would have if it were feasible.
    pub(super) fn score_if_feasible(&self, slot: Slot) -> Option<i64> {
        if let Some(scorer) = self.standings.and_then(|standings| standings.hypothetical.as_ref()) {
            return Some(scorer.score(slot));
        }
        let mut feasible = self.feasible.clone();
        feasible.insert(slot.index_u32());
        let scorer = Scorer::new(self.model, self.entry, self.rule?, self.own, &feasible, self.now);
        Some(scorer.score(slot))
    }

    /// The name of an exclusive set the placement draws from.
    pub(super) fn joinable_set(&self) -> Option<Arc<str>> {
        let sets = self.entry.eligible.sets.iter();
        let exclusive = sets.filter(|(set, term)| {
            term.is_some_and(|term| {
                let requirements = &self.model.terms.get(term).term.requirements;
                matches!(&requirements[..], [only] if *only.key == *berth_api::names::label::CLUSTER_SET
                    && matches!(&only.ask, Ask::In(values) if values.len() == 1 && *values[0] == **set))
            })
        });
        exclusive.map(|(set, _)| set.clone()).next()
    }
}
