//! What was found, figure by figure and contender by contender.

use std::collections::BTreeMap;

use serde::Serialize;

use super::contender::Contender;
use super::window::Spent;
use crate::figure::median;

/// Whose figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    /// A bare client that makes as many writes as Berth.
    Floor,
    /// A program that decides.
    Of(Contender),
}

impl Column {
    /// What it is called in a table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Floor => "bare client",
            Self::Of(contender) => contender.title(),
        }
    }
}

/// One kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Kind {
    /// What is done.
    pub(crate) stage: &'static str,
    /// What of it is measured.
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
}

/// One measurement with all that belongs to it.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) round: usize,
    pub(crate) who: &'static str,
    pub(crate) stage: &'static str,
    pub(crate) spent: Spent,
    pub(crate) samples: Vec<f64>,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    /// In the order in which they were first told.
    kinds: Vec<Kind>,
    values: BTreeMap<(Kind, Column), Vec<f64>>,
    pub(crate) records: Vec<Record>,
    /// Which round it is.
    pub(crate) round: usize,
}

impl Sheet {
    /// Notes a figure of this round.
    pub(crate) fn note(&mut self, kind: Kind, column: Column, value: f64) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        self.values.entry((kind, column)).or_default().push(value);
    }

    /// Keeps what a measurement is made of.
    pub(crate) fn keep(&mut self, column: Column, stage: &'static str, spent: Spent, samples: Vec<f64>) {
        self.note(Kind { stage, name: "foreign_cores", unit: "cores" }, column, spent.foreign_cores);
        self.records.push(Record { round: self.round, who: column.title(), stage, spent, samples });
    }

    /// The middle one of the rounds.
    pub(crate) fn value(&self, kind: Kind, column: Column) -> Option<f64> {
        self.values.get(&(kind, column)).map(|values| median(values.clone()))
    }

    /// All figures that were told, stage by stage.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut stages: Vec<&str> = Vec::new();
        for kind in &self.kinds {
            if !stages.contains(&kind.stage) {
                stages.push(kind.stage);
            }
        }
        let mut kinds = self.kinds.clone();
        // A stable sort: within a stage the order stays, but noise comes last.
        kinds.sort_by_key(|kind| {
            (stages.iter().position(|stage| *stage == kind.stage), kind.name == "foreign_cores")
        });
        kinds
    }

    /// Everybody of whom there is a figure, the floor first.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<_> = self.values.keys().map(|(_, column)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The figures of one contender, by kind, with each round's value.
    pub(crate) fn rounds(&self) -> impl Iterator<Item = (Kind, Column, &[f64])> {
        self.values.iter().map(|((kind, column), values)| (*kind, *column, values.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_middle_one_of_its_rounds_and_noise_comes_last_in_its_stage() {
        let (one, noise) = (
            Kind { stage: "a", name: "one", unit: "s" },
            Kind { stage: "a", name: "foreign_cores", unit: "cores" },
        );
        let (two, other) =
            (Kind { stage: "a", name: "two", unit: "s" }, Kind { stage: "b", name: "one", unit: "s" });
        let mut sheet = Sheet::default();
        let berth = Column::Of(Contender::Berth);
        for kind in [one, noise, other, two] {
            sheet.note(kind, berth, 1.0);
        }
        sheet.note(one, berth, 9.0);
        sheet.note(one, berth, 2.0);
        sheet.note(one, Column::Floor, 1.0);
        assert_eq!(sheet.value(one, berth), Some(2.0));
        assert_eq!(sheet.value(two, Column::Floor), None);
        assert_eq!(sheet.kinds(), [one, two, noise, other]);
        assert_eq!(sheet.columns(), [Column::Floor, berth]);
    }
}
