//! Putting an account into words: sentences for people, rows for tables.

use std::fmt::Write as _;

use super::account::{
    Account, ClusterAccount, Failure, IgnoredBinding, ScoreAccount, SetMembers, TaintAccount, Tolerance,
    Verdict,
};
use super::counterfactual::{Change, Counterfactual};
use crate::moment::{Moment, Span};
use crate::select::{NextChange, Obstacle, Outcome};

/// The account of a placement as sentences, without its clusters.
pub fn sentences(account: &Account) -> Vec<String> {
    let mut said = Vec::new();
    let selection = &account.selection;
    let sets = &account.sets;
    match &account.outcome {
        Outcome::NoBindings => said.push(format!(
            "No ManagedClusterSet that exists is bound to namespace {}, so there is nothing to select from; create a ManagedClusterSetBinding there.",
            account.placement.namespace
        )),
        Outcome::NoIntersection { asked } => said.push(format!(
            "None of the sets it names ({}) is bound to namespace {}; bind one, or name a bound one in spec.clusterSets.",
            asked.join(", "),
            account.placement.namespace
        )),
        Outcome::SetsEmpty { sets } => {
            said.push(format!("Its sets ({}) have no member.", sets.join(", ")));
        }
        Outcome::Kept { why } => {
            let stay = format!("It cannot be decided, so the {} of the last decision stay", clusters(selection.selected as u64));
            // What is misconfigured is listed below.
            said.push(if account.complaints.is_empty() { format!("{stay}: {why}.") } else { format!("{stay}.") });
        }
        Outcome::Decided => {
            let from: Vec<String> = sets.eligible.iter().map(|SetMembers { set, members }| format!("{set} ({members})")).collect();
            let asked = selection.asked.map_or_else(|| "all that fit".to_owned(), |asked| asked.to_string());
            said.push(format!(
                "Selected {} of {} feasible; asked for {asked}.",
                clusters(selection.selected as u64),
                selection.feasible
            ));
            said.push(format!(
                "From {}: {} in all, {} of them past the predicates, {} without a taint it does not tolerate.",
                from.join(", "),
                clusters(selection.members),
                selection.candidates,
                selection.feasible
            ));
        }
    }
    for complaint in &account.complaints {
        said.push(format!("Misconfigured: {}: {}", complaint.path, complaint.message));
    }
    for hint in &account.hints {
        said.push(format!("Note: {}: {}.", hint.path, hint.message));
    }
    for IgnoredBinding { binding, why } in &sets.ignored {
        said.push(format!("The binding {binding} does not count: {why}."));
    }
    if let Some(cut) = &selection.cut_line {
        said.push(format!("The cut line is {} with {}.", cut.cluster, points(cut.score)));
    }
    if let Some(next) = &account.next {
        said.push(format!("Next change {}: {next}.", when(next.at, account.at)));
    }
    said
}

/// The account of one cluster as sentences.
pub fn cluster_sentences(account: &Account, cluster: &ClusterAccount) -> Vec<String> {
    let mut said = vec![format!("{} {}.", cluster.cluster, verdict_phrase(cluster))];
    if let Some(set) = &cluster.set {
        said.push(format!("It comes through the set {set}."));
    }
    for predicate in &cluster.predicates {
        said.push(if predicate.failures.is_empty() {
            format!("Predicate {} matches.", predicate.index)
        } else {
            let failures: Vec<String> = predicate.failures.iter().map(failure).collect();
            format!("Predicate {} fails: {}.", predicate.index, failures.join("; "))
        });
    }
    said.extend(cluster.taints.iter().map(|taint| taint_sentence(taint, account.at)));
    if let Some(total) = cluster.total {
        // The score is what the cluster is worth by itself; what spreading adds depends on who is selected already.
        let (spread, own): (Vec<_>, Vec<_>) =
            cluster.scores.iter().partition(|part| part.prioritizer == "Spread");
        let parts: Vec<String> = own.into_iter().map(score).collect();
        let rank = cluster.rank.map(|rank| format!(", rank {rank} of {}", account.selection.feasible));
        said.push(format!("Score {total} = {}{}.", parts.join(" + "), rank.unwrap_or_default()));
        said.extend(spread.into_iter().map(|part| format!("To that comes {}.", score(part))));
    }
    if let Some(margin) = cluster.margin {
        said.push(match margin {
            0 => "It has as many points as the cut line; ties go by name.".to_owned(),
            above if above > 0 => format!("That is {} above the cut line.", points(above)),
            below => format!("That is {} below the cut line.", points(below.saturating_abs())),
        });
    }
    if let Some(leaves) = &cluster.leaves {
        said.push(format!("It changes {}: {leaves}.", when(leaves.at, account.at)));
    }
    if let Some(counterfactual) = &cluster.counterfactual {
        said.push(counterfactual_sentence(counterfactual));
    }
    said
}

/// What became of a cluster, to follow its name.
pub fn verdict_phrase(cluster: &ClusterAccount) -> String {
    match &cluster.verdict {
        Verdict::Selected if cluster.held => "is selected, as before".into(),
        Verdict::Selected => "is selected, newly".into(),
        Verdict::Kept => "stays selected, because the placement cannot be decided".into(),
        Verdict::Deleting => "is being deleted".into(),
        Verdict::Missing => "does not exist; the decision that names it is out of date".into(),
        Verdict::NotInSets { member_of } if member_of.is_empty() => "is in no ManagedClusterSet".into(),
        Verdict::NotInSets { member_of } => {
            format!("is only in sets this placement does not draw from ({})", member_of.join(", "))
        }
        Verdict::NoPredicateMatches => "matches no predicate".into(),
        Verdict::Barred => {
            let barring: Vec<&str> =
                cluster.taints.iter().filter(|taint| taint.bars).map(|taint| taint.taint.as_str()).collect();
            format!("has a taint that is not tolerated ({})", barring.join(", "))
        }
        Verdict::Outranked { .. } if cluster.margin.is_some_and(|margin| margin > 0) => {
            "fits, but others spread the selection better".into()
        }
        Verdict::Outranked { better } => format!("fits, but the {better} selected clusters rank higher"),
        Verdict::Obstructed { by } => format!("fits, but {}", obstacle(by)),
        Verdict::NotConsidered => "was not considered, because nothing is asked for or decided".into(),
    }
}

fn obstacle(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::NoTopology { key } => format!("has no {key}, by which the selection is kept apart"),
        Obstacle::SameTopology { key, value } => format!("a selected cluster has the same {key}, {value}"),
        Obstacle::Skew { key, value, here, least, max_skew } => format!(
            "{key} {value} has {here} selected already while another has {least}, and they may differ by {max_skew} at most"
        ),
    }
}

fn failure(failure: &Failure) -> String {
    match failure {
        Failure::Requirement { wanted, actual: Some(actual) } => format!("wants {wanted}, it is {actual:?}"),
        Failure::Requirement { wanted, actual: None } => format!("wants {wanted}, it is not set"),
        Failure::Name => "names other clusters".into(),
        Failure::Expression { source, outcome } => format!("`{source}` gave {outcome}"),
    }
}

fn taint_sentence(taint: &TaintAccount, now: Moment) -> String {
    let name = &taint.taint;
    match &taint.tolerance {
        Tolerance::Tolerated { by } => format!("Taint {name} is tolerated by [{by}]."),
        Tolerance::Until { by, deadline, .. } => {
            let left = Span(deadline.seconds_since(now));
            format!("Taint {name} is tolerated by [{by}], until {deadline} (in {left}).")
        }
        Tolerance::Expired { by, ended: Some(ended) } => {
            format!("Taint {name} was tolerated by [{by}], until {ended}.")
        }
        Tolerance::Expired { by, ended: None } => {
            format!("Taint {name} has no timeAdded, so [{by}] has nothing to count from and does not hold.")
        }
        Tolerance::HeldAlready => {
            format!("Taint {name} bars only new selections; the cluster is selected already.")
        }
        Tolerance::Avoided => format!("Taint {name} is not tolerated and lowers the score."),
        Tolerance::No => format!("Taint {name} is not tolerated."),
    }
}

fn score(score: &ScoreAccount) -> String {
    let mut text = format!("{} {}", score.prioritizer, score.value);
    if score.weight != 1 {
        let _ = write!(text, " x {}", score.weight);
    }
    if !score.note.is_empty() {
        let _ = write!(text, " ({})", score.note);
    }
    text
}

fn counterfactual_sentence(counterfactual: &Counterfactual) -> String {
    let phrase = counterfactual_phrase(counterfactual);
    let mut letters = phrase.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn counterfactual_phrase(counterfactual: &Counterfactual) -> String {
    let change = match &counterfactual.change {
        Change::Set { facet, key, value } => format!("the {facet} {key} = {value:?}"),
        Change::Unset { facet, key } => format!("no {facet} {key}"),
        Change::RemoveTaint { taint } => format!("the taint {taint} gone or tolerated"),
        Change::RaiseScore { resource, score, to } => format!("the score {score} of {resource} at {to}"),
        Change::GainPoints { points: needed } => format!("{} more", points(*needed)),
        Change::Several { obstacles } => {
            return format!("{obstacles} things stand in its way, and no single change selects it");
        }
    };
    if counterfactual.selects {
        format!("with {change} it would be selected")
    } else {
        format!("with {change} it would compete, which may not be enough")
    }
}

/// The header and one row per cluster: what became of it, score, rank, why.
pub fn table(account: &Account) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let header = vec!["CLUSTER", "VERDICT", "SET", "SCORE", "RANK", "MARGIN", "LEAVES", "WHY"];
    let number = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let rows = account.clusters.iter().map(|cluster| {
        vec![
            cluster.cluster.to_string(),
            verdict_word(&cluster.verdict).to_owned(),
            number(cluster.set.as_ref().map(ToString::to_string)),
            number(cluster.total.map(|total| total.to_string())),
            number(cluster.rank.map(|rank| rank.to_string())),
            number(cluster.margin.map(|margin| format!("{margin:+}"))),
            number(cluster.leaves.as_ref().map(|NextChange { at, .. }| at.to_string())),
            why(cluster),
        ]
    });
    (header, rows.collect())
}

fn why(cluster: &ClusterAccount) -> String {
    match &cluster.verdict {
        Verdict::NoPredicateMatches => {
            let nearest = cluster.predicates.iter().min_by_key(|predicate| predicate.failures.len());
            nearest.map_or_else(
                || verdict_phrase(cluster),
                |predicate| predicate.failures.iter().map(failure).collect::<Vec<_>>().join("; "),
            )
        }
        Verdict::Outranked { .. } => match &cluster.counterfactual {
            Some(counterfactual) => {
                format!("fits, but others rank higher; {}", counterfactual_phrase(counterfactual))
            }
            None => verdict_phrase(cluster),
        },
        _ => verdict_phrase(cluster),
    }
}

fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Selected => "Selected",
        Verdict::Kept => "Kept",
        Verdict::Deleting => "Deleting",
        Verdict::Missing => "Missing",
        Verdict::NotInSets { .. } => "NotInSets",
        Verdict::NoPredicateMatches => "NoMatch",
        Verdict::Barred => "Tainted",
        Verdict::Outranked { .. } => "Outranked",
        Verdict::Obstructed { .. } => "KeptApart",
        Verdict::NotConsidered => "NotConsidered",
    }
}

fn clusters(count: u64) -> String {
    if count == 1 { "1 cluster".into() } else { format!("{count} clusters") }
}

fn points(count: i64) -> String {
    if count == 1 { "1 point".into() } else { format!("{count} points") }
}

fn when(at: Moment, now: Moment) -> String {
    format!("at {at}, in {}", Span(at.seconds_since(now)))
}
