//! A plan as a person reads it: every placement, what is not as asked, what changes, what is ahead.

use std::io::{self, Write};

use super::planner::{Plan, Settled};
use super::words::{
    Detail, counted, gain, in_how_long, names, told, write_deadlines, write_head, write_moves,
    write_regrouped,
};
use crate::console::Colour;
use crate::manifest::printable;
use crate::table::{Cell, Table, Tone};

/// Writes the whole of a plan.
pub fn write_overview(out: &mut dyn Write, colour: Colour, plan: &Plan, detail: Detail) -> io::Result<()> {
    if plan.settled.is_empty() {
        return writeln!(out, "No Placement in the input.");
    }
    write_placements(out, colour, plan, detail)?;
    write_conditions(out, colour, plan)?;
    write_changes(out, colour, plan, detail)?;
    write_deadlines(out, colour, plan)
}

fn write_placements(out: &mut dyn Write, colour: Colour, plan: &Plan, detail: Detail) -> io::Result<()> {
    let mut header = vec!["NAMESPACE", "NAME", "SELECTED", "SATISFIED", "REASON", "NEXT CHANGE"];
    header.extend(match detail {
        Detail::Short => &["CLUSTERS"][..],
        Detail::Wide => &["GROUPS", "CLUSTERS"],
    });
    let mut table = Table::with_header(header);
    for settled in &plan.settled {
        let next = settled.decided.as_ref().ok().and_then(|(decision, _)| decision.next.as_ref());
        let satisfied = settled.satisfied().map_or("-", |condition| condition.status.as_str());
        let tone = match satisfied {
            "True" => Tone::Good,
            "False" => Tone::Bad,
            _ => Tone::Dim,
        };
        let mut row: Vec<Cell> = vec![
            (&*settled.key.namespace).into(),
            (&*settled.key.name).into(),
            selected(settled).into(),
            Cell::toned(satisfied, tone),
            Cell::toned(settled.standing(), if settled.is_misconfigured() { Tone::Bad } else { Tone::Plain }),
            next.map_or_else(
                || Cell::toned("-", Tone::Dim),
                |next| Cell::toned(in_how_long(next.at, plan.at), Tone::Warn),
            ),
        ];
        if detail == Detail::Wide {
            row.push(groups(settled).into());
        }
        row.push(names(&settled.selected, detail).into());
        table.row(row);
    }
    table.write(out, colour)
}

/// `3/4` of what was asked for; the number alone where all that fit were asked for.
fn selected(settled: &Settled) -> String {
    match settled.asked() {
        Some(asked) => format!("{}/{asked}", settled.selected.len()),
        None => settled.selected.len().to_string(),
    }
}

/// `canary 5, staging 4, 9`: the groups in order with their sizes; the nameless ones by their size alone.
fn groups(settled: &Settled) -> String {
    let shown: Vec<String> = settled
        .groups
        .iter()
        .map(|(name, clusters)| match &**name {
            "" => clusters.len().to_string(),
            name => format!("{name} {}", clusters.len()),
        })
        .collect();
    if shown.len() > 1 { shown.join(", ") } else { "-".into() }
}

fn write_conditions(out: &mut dyn Write, colour: Colour, plan: &Plan) -> io::Result<()> {
    use berth_api::names::condition::{PLACEMENT_MISCONFIGURED, PLACEMENT_SATISFIED};
    let mut table = Table::default();
    for settled in plan.settled.iter().filter(|settled| settled.decided.is_ok()) {
        // What keeps a misconfigured placement from being satisfied is said already.
        let kinds = if settled.is_misconfigured() { 1 } else { 2 };
        for (kind, fault) in &[(PLACEMENT_MISCONFIGURED, "True"), (PLACEMENT_SATISFIED, "False")][..kinds] {
            if let Some(condition) = settled.condition(kind).filter(|condition| condition.status == *fault) {
                for (line, text) in told(settled, condition).into_iter().enumerate() {
                    let (key, reason) = if line == 0 {
                        (settled.key.to_string(), condition.reason.as_str())
                    } else {
                        Default::default()
                    };
                    table.row([Cell::toned(key, Tone::Bad), reason.into(), text.into()]);
                }
            }
        }
    }
    if table.is_empty() {
        return Ok(());
    }
    write_head(out, "Not as asked:")?;
    table.write_indented(out, colour, 2)
}

fn write_changes(out: &mut dyn Write, colour: Colour, plan: &Plan, detail: Detail) -> io::Result<()> {
    let standing: Vec<&Settled> = plan.settled.iter().filter(|settled| settled.had_decision()).collect();
    if standing.is_empty() {
        return Ok(());
    }
    let changed: Vec<&Settled> = standing
        .iter()
        .copied()
        .filter(|settled| !(settled.moves.is_empty() && settled.regrouped.is_empty()))
        .collect();
    if changed.is_empty() {
        let without = match plan.settled.len() - standing.len() {
            0 => String::new(),
            count => format!("; {} had none", counted(count, "placement")),
        };
        return write_head(out, &format!("No changes: the decisions in the input stand{without}."));
    }
    let moves = match plan.moves() {
        0 => "no moves".to_owned(),
        count => counted(count, "move"),
    };
    write_head(out, &format!("Changes to the decisions in the input, {moves}:"))?;
    for settled in changed {
        writeln!(
            out,
            "  {}: {} -> {}",
            printable(&settled.key.to_string()),
            settled.held.len(),
            counted(settled.selected.len(), "cluster")
        )?;
        write_moves(out, colour, settled, detail, 4, |change| {
            let said = gain(settled, change);
            if said.is_empty() { "is selected, newly".into() } else { said.join("; ") }
        })?;
        write_regrouped(out, colour, settled, detail, 4)?;
    }
    Ok(())
}
