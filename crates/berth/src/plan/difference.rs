//! What a what-if does: two plans, and who gains and loses between them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use berth_api::names::condition;
use berth_engine::explain::Verdict;
use berth_engine::{Moment, PlacementKey};

use super::planner::{Move, Plan, Reason, Sense, Settled, reasons_for};
use super::words::{Detail, counted, gain, told, write_deadlines, write_moves, write_regrouped};
use crate::console::Colour;
use crate::manifest::printable;
use crate::table::Tone;

/// Two plans of which the second starts from the decisions of the first.
#[derive(Debug)]
pub struct Difference {
    /// The world as it was.
    pub before: Plan,
    /// The world after the change.
    pub after: Plan,
}

impl Difference {
    /// Placements that are gone, with the clusters they had.
    fn gone(&self) -> impl Iterator<Item = &Settled> {
        self.before.settled.iter().filter(|settled| self.after.get(&settled.key).is_none())
    }

    /// How many clusters leave placements that had them; a placement that is gone leaves all of its own.
    pub fn moves(&self) -> usize {
        self.after.moves() + self.gone().map(|settled| settled.selected.len()).sum::<usize>()
    }
}

/// Writes who gains and who loses, why, and how many moves it takes.
pub fn write_difference(
    out: &mut dyn Write,
    colour: Colour,
    difference: &mut Difference,
    detail: Detail,
) -> io::Result<()> {
    let (from, at) = (difference.before.at, difference.after.at);
    if from == at {
        writeln!(out, "What changes at {at}:")?;
    } else {
        writeln!(out, "What changes from {from} to {at}:")?;
    }
    let (mut moved, mut other, mut same) = (0, 0, 0);
    for settled in difference.gone() {
        moved += usize::from(!settled.selected.is_empty());
        other += usize::from(settled.selected.is_empty());
        let key = settled.key.to_string();
        writeln!(out, "\n{}: gone, with {}", printable(&key), counted(settled.selected.len(), "cluster"))?;
        let shown = settled.selected.len().min(detail.moves_max());
        for cluster in &settled.selected[..shown] {
            let cluster = printable(cluster);
            writeln!(out, "  {}   its Placement is gone", Tone::Bad.paint(&format!("- {cluster}"), colour))?;
        }
        if settled.selected.len() > shown {
            writeln!(out, "  and {} more, all shown with -o wide", settled.selected.len() - shown)?;
        }
    }
    let Difference { before, after } = &mut *difference;
    for settled in &after.settled {
        let remarks = before.get(&settled.key).map(|was| remarks(was, settled, at)).unwrap_or_default();
        let is_new = before.get(&settled.key).is_none();
        if settled.moves.is_empty() && settled.regrouped.is_empty() && remarks.is_empty() && !is_new {
            same += 1;
            continue;
        }
        if settled.losses() > 0 {
            moved += 1;
        } else {
            other += 1;
        }
        write_placement(out, colour, before, settled, &remarks, detail)?;
    }
    let moves = match difference.moves() {
        0 => "No moves".to_owned(),
        moves => format!("{} in {}", counted(moves, "move"), counted(moved, "placement")),
    };
    let others = match other {
        0 => String::new(),
        count => format!("; {} changed without a move", counted(count, "placement")),
    };
    writeln!(out, "\n{moves}{others}; {} unchanged.", counted(same, "placement"))?;
    write_deadlines(out, colour, &difference.after)
}

fn write_placement(
    out: &mut dyn Write,
    colour: Colour,
    before: &mut Plan,
    settled: &Settled,
    remarks: &[String],
    detail: Detail,
) -> io::Result<()> {
    let key = settled.key.to_string();
    let key = printable(&key);
    let now = counted(settled.selected.len(), "cluster");
    if settled.had_decision() {
        writeln!(out, "\n{key}: {} -> {now}", settled.held.len())?;
    } else {
        writeln!(out, "\n{key}: new, with {now}")?;
    }
    let mut reasons = Earlier::find(before, settled, detail);
    write_moves(out, colour, settled, detail, 2, |change| {
        let mut said: Vec<String> = reasons.take(change).into_iter().collect();
        said.extend(gain(settled, change));
        if said.is_empty() { "is selected, newly".into() } else { said.join("; ") }
    })?;
    write_regrouped(out, colour, settled, detail, 2)?;
    for remark in remarks {
        writeln!(out, "  {}", Tone::Warn.paint(&printable(&format!("~ {remark}")), colour))?;
    }
    Ok(())
}

/// Why clusters that are gained were not there before.
struct Earlier(BTreeMap<Arc<str>, Reason>);

impl Earlier {
    fn find(before: &mut Plan, settled: &Settled, detail: Detail) -> Self {
        let key: &PlacementKey = &settled.key;
        let gains: Vec<&Arc<str>> = settled
            .moves
            .iter()
            .take(detail.moves_max())
            .filter(|change| change.sense == Sense::Gain && change.reason.is_some())
            .map(|change| &change.cluster)
            .collect();
        if gains.is_empty() {
            return Self(BTreeMap::new());
        }
        Self(reasons_for(&mut before.model, key, gains.into_iter(), before.at))
    }

    fn take(&mut self, change: &Move) -> Option<String> {
        change.reason.as_ref()?;
        let Some(reason) = self.0.remove(&change.cluster) else { return Some("is a new cluster".into()) };
        match reason.account.verdict {
            Verdict::Missing => Some("is a new cluster".into()),
            // That somebody else was better is what a new rank already says.
            Verdict::Outranked { .. } | Verdict::Selected | Verdict::Kept | Verdict::NotConsidered => None,
            _ => Some(format!("before: {}", reason.why)),
        }
    }
}

/// What differs beside the clusters: conditions and deadlines.
fn remarks(before: &Settled, after: &Settled, at: Moment) -> Vec<String> {
    let mut said = Vec::new();
    let kinds = [
        (condition::PLACEMENT_MISCONFIGURED, "True", "misconfigured", "no longer misconfigured"),
        (condition::PLACEMENT_SATISFIED, "False", "no longer satisfied", "satisfied again"),
    ];
    // What keeps a misconfigured placement from being satisfied is said already.
    let kinds_told = if after.is_misconfigured() { 1 } else { 2 };
    for (kind, fault, broken, mended) in &kinds[..kinds_told] {
        let (was, is) = (before.condition(kind), after.condition(kind));
        let faulty = |status: Option<&str>| status == Some(*fault);
        let (was_faulty, is_faulty) =
            (faulty(was.map(|c| c.status.as_str())), faulty(is.map(|c| c.status.as_str())));
        match (was_faulty, is_faulty, was, is) {
            (false, true, _, Some(is)) => {
                said.extend(told(after, is).into_iter().map(|text| format!("{broken}: {text}")));
            }
            (true, false, ..) => said.push((*mended).to_owned()),
            (true, true, Some(was), Some(is)) if (&was.reason, &was.message) != (&is.reason, &is.message) => {
                let (is, was) = (told(after, is).join("; "), told(before, was).join("; "));
                said.push(format!("{is} (before: {was})"));
            }
            _ => {}
        }
    }
    let next =
        |settled: &Settled| settled.decided.as_ref().ok().and_then(|(decision, _)| decision.next.clone());
    match (next(before), next(after)) {
        // Times are told to the second: what differs by less would read as no difference.
        (was, Some(is)) if was.as_ref().map(|was| was.at.to_string()) != Some(is.at.to_string()) => {
            let instead = was.map_or_else(String::new, |was| format!(" instead of {}", was.at));
            said.push(format!("next change at {}{instead}: {is}", is.at));
        }
        // A deadline that has passed is told by who left.
        (Some(was), None) if after.decided.is_ok() && was.at > at => {
            said.push(format!("no change is ahead any more; at {} it was: {was}", was.at));
        }
        _ => {}
    }
    match (&before.decided, &after.decided) {
        (Ok(_), Err(_)) => said.push(format!("no longer decided: {}", after.standing())),
        (Err(_), Ok(_)) => said.push("decided from now on".to_owned()),
        _ => {}
    }
    said
}
