//! What a bench found: rows, and targets they are held to.

use std::fmt;
use std::io::{Write as _, stderr};

use serde::Serialize;
use serde_json::Value;

use crate::figure::{Figure, readable};

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) value: Figure,
    /// What another program needs for it, where that is on record.
    pub(crate) peer: Option<f64>,
    /// The least the work can cost, measured in the same run.
    pub(crate) floor: Option<f64>,
    /// How many times better the value is than that of another way or program, measured in the same run.
    pub(crate) ratio: Option<f64>,
}

/// A limit on a row.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The row's name and unit.
    pub(crate) row: (String, &'static str),
    pub(crate) bound: Bound,
    /// The same on every machine, so that a build may be held to it.
    pub(crate) is_binding: bool,
}

/// What is asked of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// Its value is no larger.
    AtMost(f64),
    /// Its ratio is no smaller.
    RatioAtLeast(f64),
}

impl Bound {
    fn is_met(self, number: f64) -> bool {
        match self {
            Self::AtMost(most) => number <= most,
            Self::RatioAtLeast(least) => number >= least,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What the columns mean.
    pub(crate) head: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) targets: Vec<Target>,
    /// All that was measured, where the rows are only a part of it.
    pub(crate) details: Option<Value>,
}

impl Report {
    pub(crate) fn add(&mut self, name: impl Into<String>, unit: &'static str, value: Figure) -> &mut Row {
        self.rows.push(Row { name: name.into(), unit, value, peer: None, floor: None, ratio: None });
        self.rows.last_mut().expect("pushed just above")
    }

    /// Holds a row to a limit.
    pub(crate) fn hold(&mut self, name: &str, unit: &'static str, at_most: f64, is_binding: bool) {
        let bound = Bound::AtMost(at_most);
        self.targets.push(Target { row: (name.to_owned(), unit), bound, is_binding });
    }

    /// Holds a row to being so many times ahead of what was measured beside it.
    pub(crate) fn hold_ratio(&mut self, name: &str, unit: &'static str, at_least: f64) {
        let bound = Bound::RatioAtLeast(at_least);
        self.targets.push(Target { row: (name.to_owned(), unit), bound, is_binding: true });
    }

    /// The value of a row.
    pub(crate) fn value(&self, name: &str, unit: &str) -> Figure {
        let row = self.rows.iter().find(|row| row.name == name && row.unit == unit);
        row.map_or(Figure::Absent("not measured"), |row| row.value)
    }

    /// The number that a target is about, if it was measured.
    fn measured(&self, target: &Target) -> Option<f64> {
        let (name, unit) = &target.row;
        match target.bound {
            Bound::AtMost(_) => self.value(name, unit).number(),
            Bound::RatioAtLeast(_) => {
                self.rows.iter().find(|row| row.name == *name && row.unit == *unit).and_then(|row| row.ratio)
            }
        }
    }

    fn missed(&self) -> impl Iterator<Item = (&Target, f64)> {
        self.targets.iter().filter_map(|target| {
            let number = self.measured(target)?;
            (!target.bound.is_met(number)).then_some((target, number))
        })
    }

    /// A table of the targets, each with what was measured and whether it is met.
    pub(crate) fn verdicts(&self) -> String {
        let mut text = String::from("| target | | measured | |\n|---|---|---:|---|\n");
        for target in &self.targets {
            let (name, unit) = &target.row;
            let (bound, unit) = match target.bound {
                Bound::AtMost(most) => (format!("at most {} {unit}", readable(most)), *unit),
                Bound::RatioAtLeast(least) => {
                    (format!("at most 1/{} of the peer's", readable(least)), "times less")
                }
            };
            let measured = self.measured(target);
            let verdict = match measured.map(|number| target.bound.is_met(number)) {
                Some(true) => "pass",
                Some(false) => "MISSED",
                None => "not measured",
            };
            let measured = measured.map(|number| format!("{} {unit}", readable(number))).unwrap_or_default();
            let cells = [name.as_str(), bound.trim(), measured.trim(), verdict];
            text.extend(["| ", &cells.join(" | "), " |\n"]);
        }
        text
    }

    /// Whether anything was measured: a bench that finds no server to measure on says so and ends.
    pub(crate) fn has_measured(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.value, Figure::Number(_)))
    }

    /// Whether a target is missed that holds on any machine.
    pub(crate) fn misses_a_binding_target(&self) -> bool {
        self.missed().any(|(target, _)| target.is_binding)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |number: Option<f64>| number.map(readable).unwrap_or_default();
        let cells = self.rows.iter().map(|row| {
            let value = row.value.to_string();
            [
                row.name.clone(),
                row.unit.to_owned(),
                value,
                shown(row.peer),
                shown(row.floor),
                shown(row.ratio),
            ]
        });
        let titles = ["name", "unit", "value", "peer", "floor", "ratio"].map(str::to_owned);
        let table: Vec<_> = std::iter::once(titles).chain(cells).collect();
        let widths: [usize; 6] = std::array::from_fn(|column| {
            table.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        });
        writeln!(f, "{}\n", self.head)?;
        for (number, row) in table.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                // Words to the left, numbers to the right.
                if column < 2 { write!(f, "| {cell:<width$} ")? } else { write!(f, "| {cell:>width$} ")? }
            }
            writeln!(f, "|")?;
            if number == 0 {
                for (column, width) in widths.into_iter().enumerate() {
                    let end = if column < 2 { '-' } else { ':' };
                    write!(f, "|{:-<width$}{end}", "", width = width + 1)?;
                }
                writeln!(f, "|")?;
            }
        }
        writeln!(f)?;
        if !self.has_measured() {
            return writeln!(f, "targets: nothing was measured");
        }
        let mut all_met = true;
        for (target, number) in self.missed() {
            all_met = false;
            let ((name, unit), number) = (&target.row, readable(number));
            match target.bound {
                Bound::AtMost(most) => {
                    writeln!(f, "target missed: {name}: {number} {unit}, at most {}", readable(most))?;
                }
                Bound::RatioAtLeast(least) => {
                    writeln!(f, "target missed: {name}: a ratio of {number}, at least {}", readable(least))?;
                }
            }
        }
        let unmeasured = self.targets.iter().filter(|target| self.measured(target).is_none());
        let (unmeasured, total) = (unmeasured.count(), self.targets.len());
        let verdict = if all_met { "all met" } else { "not all met" };
        match unmeasured {
            0 => writeln!(f, "targets: {verdict} ({total} of them)"),
            _ => {
                writeln!(f, "targets: {verdict}, of the {} of {total} that were measured", total - unmeasured)
            }
        }
    }
}

pub(crate) fn progress(what: &str) {
    // Nobody may be reading; the report does not depend on it.
    let _ = writeln!(stderr(), "    {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missed_count_or_ratio_fails_a_check() {
        let mut report = Report::default();
        report.add("decide", "µs", Figure::Number(30.0));
        report.hold("decide", "µs", 20.0, false);
        report.add("decide", "allocations", Figure::Number(7.0));
        report.hold("decide", "allocations", 100.0, true);
        assert!(!report.misses_a_binding_target());
        assert!(report.to_string().contains("target missed: decide: 30 µs, at most 20"));
        report.hold_ratio("decide", "µs", 3.0);
        assert!(!report.misses_a_binding_target(), "nothing was measured beside it");
        report.rows[0].ratio = Some(2.0);
        assert!(report.misses_a_binding_target());
        assert!(report.to_string().contains("target missed: decide: a ratio of 2, at least 3"));
        report.rows[0].ratio = Some(4.0);
        report.hold("decide", "allocations", 6.0, true);
        assert!(report.misses_a_binding_target());
    }

    #[test]
    fn a_target_without_a_measurement_is_said_to_be_unmeasured() {
        let mut report = Report::default();
        report.add("decide", "instructions", Figure::Absent("valgrind not found"));
        report.hold("decide", "instructions", 20.0, true);
        assert!(!report.misses_a_binding_target());
        assert!(report.to_string().ends_with("targets: nothing was measured\n"));
        assert!(!report.has_measured());
        report.add("decide", "µs", Figure::Number(3.0));
        assert!(report.to_string().ends_with("targets: all met, of the 0 of 1 that were measured\n"));
    }
}
