//! The words and lines that overview and difference share.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use berth_api::names::condition;
use berth_engine::Moment;
use berth_engine::explain::{ClusterAccount, Tolerance, Verdict};
use berth_engine::moment::Span;
use berth_engine::select::Complaint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::planner::{Move, Plan, Reason, Sense, Settled};
use crate::console::Colour;
use crate::manifest::one_line;
use crate::table::{Cell, Table, Tone};

/// Moves of one placement that are shown unless all are asked for.
pub const MOVES_SHOWN_MAX: usize = 20;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What fits a screen.
    Short,
    /// Everything.
    Wide,
}

impl Detail {
    pub(super) fn moves_max(self) -> usize {
        match self {
            Self::Short => MOVES_SHOWN_MAX,
            Self::Wide => usize::MAX,
        }
    }
}

/// `1 move`, `3 moves`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// How long from `now` to `at`.
pub(super) fn in_how_long(at: Moment, now: Moment) -> String {
    format!("in {}", Span(at.seconds_since(now)))
}

/// Writes the head of a section, with a blank line before it.
pub(super) fn write_head(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(out, "\n{title}")
}

/// Writes who comes and goes, and why, a line each.
pub(super) fn write_moves(
    out: &mut dyn Write,
    colour: Colour,
    settled: &Settled,
    detail: Detail,
    indent: usize,
    mut gain: impl FnMut(&Move) -> String,
) -> io::Result<()> {
    let shown = settled.moves.len().min(detail.moves_max());
    let mut table = Table::default();
    for change in &settled.moves[..shown] {
        let (sign, tone, why) = match change.sense {
            Sense::Gain => ("+", Tone::Good, gain(change)),
            Sense::Loss => ("-", Tone::Bad, loss(change)),
        };
        table.row([Cell::toned(format!("{sign} {}", change.cluster), tone), why.into()]);
    }
    table.write_indented(out, colour, indent)?;
    let more = settled.moves.len() - shown;
    if more > 0 {
        writeln!(out, "{:indent$}and {more} more, all shown with -o wide", "")?;
    }
    Ok(())
}

/// Writes who stays in another group than before, a line each.
pub(super) fn write_regrouped(
    out: &mut dyn Write,
    colour: Colour,
    settled: &Settled,
    detail: Detail,
    indent: usize,
) -> io::Result<()> {
    let shown = settled.regrouped.len().min(detail.moves_max());
    let mut table = Table::default();
    for change in &settled.regrouped[..shown] {
        table.row([Cell::toned(format!("~ {}", change.cluster), Tone::Warn), change.to_string().into()]);
    }
    table.write_indented(out, colour, indent)?;
    let more = settled.regrouped.len() - shown;
    if more > 0 {
        writeln!(out, "{:indent$}and {more} more in another group, all shown with -o wide", "")?;
    }
    Ok(())
}

/// What a condition of a placement says: every complaint by itself where the placement is misconfigured.
pub(super) fn told(settled: &Settled, condition: &Condition) -> Vec<String> {
    let complaints = settled.decided.as_ref().map_or(&[][..], |(decision, _)| &decision.complaints);
    if condition.type_ == condition::PLACEMENT_MISCONFIGURED && !complaints.is_empty() {
        let line = |complaint: &Complaint| format!("{}: {}", complaint.path, one_line(&complaint.message));
        return complaints.iter().map(line).collect();
    }
    // Upstream puts the name of the stage before a colon, and has no name for some stages.
    vec![one_line(condition.message.trim_start_matches(':'))]
}

/// Why a cluster leaves.
fn loss(change: &Move) -> String {
    // Without a reason the engine has forgotten the cluster altogether.
    let Some(Reason { account, why, .. }) = &change.reason else { return "no longer exists".into() };
    match account.verdict {
        Verdict::Missing => "no longer exists".into(),
        Verdict::Barred => barred(account),
        _ => why.clone(),
    }
}

/// The taints that keep a cluster out. One that was tolerated for a while tells until when.
fn barred(account: &ClusterAccount) -> String {
    let taints = account.taints.iter().filter(|taint| taint.bars).map(|taint| match &taint.tolerance {
        Tolerance::Expired { ended: Some(ended), .. } => {
            format!("taint {} was tolerated until {ended}", taint.taint)
        }
        Tolerance::Expired { ended: None, by } => {
            format!("taint {} has no timeAdded from which [{by}] could count", taint.taint)
        }
        _ => format!("taint {} is not tolerated", taint.taint),
    });
    taints.collect::<Vec<_>>().join("; ")
}

/// Why a cluster comes, as far as the decision itself tells: whom it replaces, and how it ranks.
pub(super) fn gain(settled: &Settled, change: &Move) -> Vec<String> {
    let mut said = Vec::new();
    let of = |sense| move |change: &&Move| change.sense == sense;
    let mut losses = settled.moves.iter().filter(of(Sense::Loss));
    let gains = settled.moves.iter().filter(of(Sense::Gain)).count();
    if let (Some(loss), None, 1) = (losses.next(), losses.next(), gains) {
        said.push(format!("takes the place of {}", loss.cluster));
    }
    if let (Some(Reason { account, feasible, .. }), true) = (&change.reason, settled.asked().is_some())
        && let (Some(rank), Some(total)) = (account.rank, account.total)
    {
        said.push(format!("rank {rank} of {feasible} with {}", points(total)));
    }
    said
}

fn points(count: i64) -> String {
    if count == 1 { "1 point".into() } else { format!("{count} points") }
}

/// Writes what time alone will bring, the nearest first.
pub(super) fn write_deadlines(out: &mut dyn Write, colour: Colour, plan: &Plan) -> io::Result<()> {
    let mut deadlines: Vec<(Moment, String, String)> = Vec::new();
    for settled in &plan.settled {
        let Ok((decision, published)) = &settled.decided else { continue };
        let key = settled.key.to_string();
        if let Some(next) = &decision.next {
            deadlines.push((next.at, key.clone(), next.to_string()));
        }
        if let Some(due) = published.scores_due {
            deadlines.push((due, key, "scores held back by scoreRateLimit are written".into()));
        }
    }
    if deadlines.is_empty() {
        return Ok(());
    }
    deadlines.sort();
    write_head(out, "Deadlines ahead:")?;
    let mut table = Table::default();
    for (at, key, what) in deadlines {
        table.row([
            Cell::toned(in_how_long(at, plan.at), Tone::Warn),
            at.to_string().into(),
            key.into(),
            what.into(),
        ]);
    }
    table.write_indented(out, colour, 2)
}

/// Names in one cell: as many as fit, and how many more there are.
pub(super) fn names(names: &[Arc<str>], detail: Detail) -> String {
    /// Columns for names; with the columns before them most terminals still hold the line.
    const NAMES_COLUMNS_MAX: usize = 40;
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        let full = detail == Detail::Short && text.len() + name.len() + 1 > NAMES_COLUMNS_MAX;
        if full && index > 0 {
            let _ = write!(text, " +{}", names.len() - index);
            return text;
        }
        text.push_str(separator);
        text.push_str(name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_what_fits_and_counted() {
        let all: Vec<Arc<str>> = (0..100).map(|n| format!("cluster-{n:02}").into()).collect();
        assert_eq!(names(&all, Detail::Short), "cluster-00,cluster-01,cluster-02 +97");
        assert_eq!(names(&all[..3], Detail::Short), "cluster-00,cluster-01,cluster-02");
        assert_eq!(names(&all, Detail::Wide).matches(',').count(), 99);
        assert_eq!(names(&["x".repeat(60).as_str().into()], Detail::Short).len(), 60);
        assert_eq!(names(&[], Detail::Short), "");
    }
}
