//! The findings as Markdown and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::contender::Scale;
use super::sheet::{Column, Kind, Sheet};
use crate::figure::readable;

/// One table: a row for each figure, a column for everybody. Behind a peer's figure stands how many times Berth's it is,
/// behind Berth's how many times the floor's.
pub(crate) fn markdown(sheet: &Sheet, scale: Scale) -> String {
    let berth = Column::Of(scale.ours());
    let mut columns = sheet.columns();
    // Berth first, then those it is measured against.
    columns.sort_by_key(|column| (*column != berth, *column));
    let mut text = String::from("| stage | figure |");
    for column in &columns {
        let _ = write!(text, " {} |", column.title());
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---:|".repeat(columns.len()));
    text.push('\n');
    let mut stage = "";
    for kind in sheet.kinds() {
        let unit = if kind.unit.is_empty() { String::new() } else { format!(", {}", kind.unit) };
        let heading = if kind.stage == stage { "" } else { kind.stage };
        stage = kind.stage;
        let _ = write!(text, "| {heading} | {}{unit} |", kind.name);
        for column in &columns {
            let _ = write!(text, " {} |", cell(sheet, kind, *column, berth));
        }
        text.push('\n');
    }
    text
}

fn cell(sheet: &Sheet, kind: Kind, column: Column, berth: Column) -> String {
    let Some(value) = sheet.value(kind, column) else { return String::new() };
    let beside = match column {
        Column::Floor => None,
        _ if column == berth => sheet.value(kind, Column::Floor),
        Column::Of(_) => sheet.value(kind, berth),
    };
    // How busy others were is no figure of anybody's, and a count that all agree on needs no ratio.
    let is_told = kind.name != "foreign_cores";
    match beside.filter(|beside| is_told && *beside > 0.0 && value > 0.0) {
        Some(beside) => format!("{} (×{})", readable(value), ratio(value / beside)),
        None => readable(value),
    }
}

/// Two digits tell enough of a ratio.
fn ratio(ratio: f64) -> String {
    if ratio >= 9.95 { format!("{ratio:.0}") } else { format!("{ratio:.1}") }
}

/// All of it, with every round's values and what belongs to them.
pub(crate) fn json(sheets: &[Sheet], about: &Value) -> Value {
    let figures = |sheet: &Sheet| -> Vec<Value> {
        let told = |(kind, column, rounds): (Kind, Column, &[f64])| {
            json!({
                "stage": kind.stage, "name": kind.name, "unit": kind.unit, "who": column.title(),
                "value": sheet.value(kind, column), "rounds": rounds,
            })
        };
        sheet.rounds().map(told).collect()
    };
    let figures: Vec<Value> = sheets.iter().flat_map(figures).collect();
    let measurements: Vec<_> = sheets.iter().flat_map(|sheet| &sheet.records).collect();
    json!({"about": about, "figures": figures, "measurements": measurements})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::contender::Contender;

    #[test]
    fn peers_are_told_in_multiples_of_berth_and_berth_in_multiples_of_the_floor() {
        let mut sheet = Sheet::default();
        let kind = Kind { stage: "settle", name: "all", unit: "s" };
        let calm = Kind { stage: "churn", name: "writes", unit: "" };
        sheet.note(kind, Column::Of(Contender::Patched), 30.0);
        sheet.note(kind, Column::Of(Contender::Berth), 2.0);
        sheet.note(kind, Column::Floor, 1.6);
        sheet.note(calm, Column::Of(Contender::Berth), 0.0);
        sheet.note(calm, Column::Of(Contender::Patched), 5.0);
        let expected = "\
| stage | figure | Berth | bare client | OCM patched |
|---|---|---:|---:|---:|
| settle | all, s | 2 (×1.2) | 1.60 | 30 (×15) |
| churn | writes | 0 |  | 5 |
";
        assert_eq!(markdown(&sheet, Scale::Fleet), expected);
    }

    #[test]
    fn of_nodes_the_multiples_are_of_the_eviction_and_its_floor() {
        let mut sheet = Sheet::default();
        let kind = Kind { stage: "50 tainted nodes", name: "last pod gone", unit: "s" };
        sheet.note(kind, Column::Of(Contender::Kcm), 5.0);
        sheet.note(kind, Column::Of(Contender::BerthEvict), 2.0);
        sheet.note(kind, Column::Floor, 2.0);
        let expected = "\
| stage | figure | Berth, taint eviction | bare client | kube-controller-manager |
|---|---|---:|---:|---:|
| 50 tainted nodes | last pod gone, s | 2 (×1.0) | 2 | 5 (×2.5) |
";
        assert_eq!(markdown(&sheet, Scale::Nodes), expected);
    }
}
