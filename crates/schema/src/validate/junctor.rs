//! `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! Owns how the alternatives' problems are told: of those that do not hold, the one that came closest speaks.

use serde_json::Value;

use super::{Checker, Spot};
use crate::{
    gotext,
    node::{Checks, NodeId, Schema},
    problem::Problems,
};

/// An alternative that was tried.
struct Trial {
    problems: Problems,
    passed: u64,
}

impl Checker {
    /// Gives the number of checks passed by the alternatives that count.
    pub(super) fn check_junctors(
        &self,
        value: &Value,
        schema: Schema<'_>,
        checks: &Checks,
        spot: Spot<'_>,
        problems: &mut Problems,
    ) -> u64 {
        if checks.any_of.is_empty()
            && checks.one_of.is_empty()
            && checks.all_of.is_empty()
            && checks.not.is_none()
        {
            return 0;
        }
        if spot.depth == 0 {
            self.too_deep(spot, problems);
            return 0;
        }
        let attempt = |id: NodeId| {
            let mut problems = Problems::default();
            // Alternatives are not forgiven for what was wrong before: the value as a whole is.
            let spot = spot.below(spot.place, None);
            let passed = self.apply(value, schema.at(id), spot, &mut problems);
            Trial { problems, passed }
        };
        let mut passed = 0;
        if !checks.any_of.is_empty() {
            passed += self.check_any(checks.any_of.iter().map(|&id| attempt(id)), spot, problems);
        }
        if !checks.one_of.is_empty() {
            passed += self.check_one(checks.one_of.iter().map(|&id| attempt(id)), spot, problems);
        }
        if !checks.all_of.is_empty() {
            passed += self.check_all(checks.all_of.iter().map(|&id| attempt(id)), spot, problems);
        }
        if let Some(id) = checks.not
            && attempt(id).problems.is_empty()
        {
            self.of_whole(problems, spot, |name| {
                format!("{} must not validate the schema (not)", gotext::quote(name))
            });
        }
        passed
    }

    fn check_any(&self, trials: impl Iterator<Item = Trial>, spot: Spot<'_>, problems: &mut Problems) -> u64 {
        let mut best: Option<Trial> = None;
        for trial in trials {
            if trial.problems.is_empty() {
                return trial.passed;
            }
            if best.as_ref().is_none_or(|best| trial.passed > best.passed) {
                best = Some(trial);
            }
        }
        self.of_whole(problems, spot, |name| {
            format!("{} must validate at least one schema (anyOf)", gotext::quote(name))
        });
        best.map_or(0, |best| {
            problems.merge(best.problems);
            best.passed
        })
    }

    fn check_one(&self, trials: impl Iterator<Item = Trial>, spot: Spot<'_>, problems: &mut Problems) -> u64 {
        let mut best: Option<Trial> = None;
        let mut first = 0;
        let mut valid = 0;
        for trial in trials {
            if trial.problems.is_empty() {
                valid += 1;
                best = None;
                if valid == 1 {
                    first = trial.passed;
                }
            } else if valid == 0 && best.as_ref().is_none_or(|best| trial.passed > best.passed) {
                best = Some(trial);
            }
        }
        if valid == 1 {
            return first;
        }
        let found = match valid {
            0 => "Found none valid".to_owned(),
            valid => format!("Found {valid} valid alternatives"),
        };
        self.of_whole(problems, spot, |name| {
            format!("{} must validate one and only one schema (oneOf). {found}", gotext::quote(name))
        });
        best.map_or(0, |best| {
            problems.merge(best.problems);
            best.passed
        })
    }

    fn check_all(&self, trials: impl Iterator<Item = Trial>, spot: Spot<'_>, problems: &mut Problems) -> u64 {
        let (mut passed, mut valid, mut tried) = (0, 0, 0);
        for trial in trials {
            tried += 1;
            valid += u32::from(trial.problems.is_empty());
            passed += trial.passed;
            problems.merge(trial.problems);
        }
        if valid != tried {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.of_whole(problems, spot, |name| {
                format!("{} must validate all the schemas (allOf){none}", gotext::quote(name))
            });
        }
        passed
    }
}
