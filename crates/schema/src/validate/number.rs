//! The rules of numbers.
//!
//! Owns ranges of types and bounds. Whole numbers are compared as such, so that none loses digits on the way.

use serde_json::{Number, Value};

use super::{Checker, Spot};
use crate::{
    gotext,
    node::{Checks, Node, Shape},
    problem::Problems,
};

/// The largest number up to which JSON's floats are exact.
const EXACT_FLOAT_MAX: f64 = 9_007_199_254_740_991.0;
/// How far a float may be from a whole number, relative to their size, and still count as one.
const WHOLE_TOLERANCE: f64 = 1e-9;

/// Whether a float is a whole number as far as JSON can tell.
pub(super) fn is_whole(float: f64) -> bool {
    if !(-EXACT_FLOAT_MAX..=EXACT_FLOAT_MAX).contains(&float) {
        return false;
    }
    let whole = float.trunc();
    if float.fract() == 0.0 {
        return true;
    }
    // Go compares with the unsigned whole number, which is zero for everything below one.
    let whole = if float < 0.0 { 0.0 } else { whole };
    if whole == 0.0 {
        return false;
    }
    (float - whole).abs() / (float.abs() + whole.abs()) < WHOLE_TOLERANCE
}

/// A bound in the type of the value it is compared with.
enum Pair {
    Whole(i64, i64),
    Float(f64, f64),
}

impl Checker {
    pub(super) fn check_number(
        &self,
        number: &Number,
        node: &Node,
        checks: Option<&Checks>,
        format: Option<&str>,
        spot: Spot<'_>,
        problems: &mut Problems,
    ) {
        let range = |number: &Number, what: &str, problems: &mut Problems| {
            let sound = fits(number, node.shape, format);
            if !sound {
                let kind = if node.shape == Shape::Integer { "integer" } else { "number" };
                self.of_whole(problems, spot, |name| match format {
                    Some(format) => {
                        format!("{what} value must be of type {kind} with format {format} in {name}")
                    }
                    None => format!("{what} value must be of type {kind} (default format) in {name}"),
                });
            }
            sound
        };
        range(number, "Checked", problems);
        let Some(checks) = checks else { return };
        let value = Value::Number(number.clone());
        if let Some(step) = &checks.multiple_of {
            let sound = range(step, "MultipleOf", problems);
            if let Some((shown, rule)) = step_problem(&pair(number, step, sound), &value) {
                match rule {
                    StepProblem::NotPositive => {
                        let (path, name) = self.name(spot);
                        let detail = format!(
                            "factor MultipleOf declared for {} must be positive: {}",
                            name.as_str(),
                            gotext_number(&shown)
                        );
                        problems.add(|| crate::Problem::invalid(&path, &shown, &detail));
                    }
                    StepProblem::NotMultiple(step) => {
                        let rule = format!("should be a multiple of {}", gotext_number(&step));
                        self.invalid(&shown, &rule, spot, problems);
                    }
                }
            }
        }
        if let Some((limit, exclusive)) = &checks.minimum {
            let sound = range(limit, "Minimum boundary", problems);
            let (kept, limit) = match pair(number, limit, sound) {
                Pair::Whole(value, limit) => {
                    (if *exclusive { value > limit } else { value >= limit }, limit.into())
                }
                Pair::Float(value, limit) => {
                    (if *exclusive { value > limit } else { value >= limit }, limit.into())
                }
            };
            if !kept {
                let relation = if *exclusive { "greater than" } else { "greater than or equal to" };
                let rule = format!("should be {relation} {}", gotext_number(&limit));
                self.invalid(&value, &rule, spot, problems);
            }
        }
        if let Some((limit, exclusive)) = &checks.maximum {
            let sound = range(limit, "Maximum boundary", problems);
            let (kept, limit) = match pair(number, limit, sound) {
                Pair::Whole(value, limit) => {
                    (if *exclusive { value < limit } else { value <= limit }, limit.into())
                }
                Pair::Float(value, limit) => {
                    (if *exclusive { value < limit } else { value <= limit }, limit.into())
                }
            };
            if !kept {
                let relation = if *exclusive { "less than" } else { "less than or equal to" };
                let rule = format!("should be {relation} {}", gotext_number(&limit));
                self.invalid(&value, &rule, spot, problems);
            }
        }
    }
}

enum StepProblem {
    NotPositive,
    NotMultiple(Value),
}

fn step_problem(pair: &Pair, value: &Value) -> Option<(Value, StepProblem)> {
    match *pair {
        Pair::Whole(_, step) if step <= 0 => Some((step.into(), StepProblem::NotPositive)),
        Pair::Whole(number, step) => {
            (number % step != 0).then(|| (value.clone(), StepProblem::NotMultiple(step.into())))
        }
        Pair::Float(_, step) if step <= 0.0 => Some((step.into(), StepProblem::NotPositive)),
        Pair::Float(number, step) => {
            let times = if step < 1.0 { 1.0 / step * number } else { number / step };
            (!is_whole(times)).then(|| (value.clone(), StepProblem::NotMultiple(step.into())))
        }
    }
}

/// A number and a bound in one type: that of the number where the bound fits the schema's type, floats otherwise.
fn pair(number: &Number, bound: &Number, sound: bool) -> Pair {
    let float = bound.as_f64().unwrap_or(f64::NAN);
    match number.as_i64().filter(|_| sound) {
        Some(whole) => Pair::Whole(whole, bound.as_i64().unwrap_or(float as i64)),
        None => Pair::Float(number.as_f64().unwrap_or(f64::NAN), float),
    }
}

/// Whether a number can be held by the type.
fn fits(number: &Number, shape: Shape, format: Option<&str>) -> bool {
    let float = number.as_f64().unwrap_or(f64::NAN);
    match (shape, format) {
        (Shape::Integer, Some("int32")) => {
            float.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float)
        }
        (Shape::Integer, _) => {
            number.is_i64()
                || (float.fract() == 0.0 && (i64::MIN as f64..-(i64::MIN as f64)).contains(&float))
        }
        (Shape::Number, Some("float")) => (float as f32).is_finite(),
        _ => true,
    }
}

fn gotext_number(value: &Value) -> String {
    match value.as_i64() {
        Some(whole) => whole.to_string(),
        None => gotext::float(value.as_f64().unwrap_or(f64::NAN)),
    }
}
