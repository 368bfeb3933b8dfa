//! Match conditions: CEL expressions that narrow down which requests a webhook hears of.
//!
//! Owns compiling and evaluating them. `object`, `oldObject` and `request` are there; `authorizer` is not, and an
//! expression that uses it is refused when its configuration is stored.

use std::fmt;
use std::sync::LazyLock;

use berth_cel::{Bindings, Budget, Env, PER_CALL_COST_LIMIT, Program, Type, Value as CelValue};
use berth_text::gotext::quote;
use serde_json::Value;

use super::Admission;
use super::exchange::request_facts;
use super::matching::Invocation;
use crate::refusal::{FieldProblem, aggregate};

/// As many as upstream allows for one webhook.
const CONDITIONS_MAX: usize = 64;
/// Cost units for all conditions of one webhook and one request: a quarter of what a whole object's rules may cost.
const BUDGET_UNITS: u64 = 2_500_000;

static ENV: LazyLock<Env> = LazyLock::new(|| {
    Env::builder()
        .variable("object", Type::Dyn)
        .variable("oldObject", Type::Dyn)
        .variable("namespaceObject", Type::Dyn)
        .variable("request", Type::Dyn)
        .build()
});

struct Condition {
    source: String,
    program: Result<Program, String>,
}

/// The conditions of one webhook, compiled.
#[derive(Default)]
pub(super) struct Conditions(Vec<Condition>);

impl Condition {
    fn read(condition: &Value) -> Self {
        let source = expression(condition);
        Self { source: source.to_owned(), program: compile(source) }
    }
}

impl fmt::Debug for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conditions({})", self.0.len())
    }
}

impl Conditions {
    /// Conditions that do not compile are kept as errors, so that a stored one can never be silently left out.
    pub(super) fn read(list: &Value) -> Self {
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        Self(list.iter().take(CONDITIONS_MAX).map(Condition::read).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is wrong with a list of conditions.
    pub(super) fn check(list: &Value, path: &str) -> Vec<FieldProblem> {
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        if list.len() > CONDITIONS_MAX {
            return vec![FieldProblem {
                reason: "FieldValueTooMany",
                message: format!("Too many: {}: must have at most {CONDITIONS_MAX} items", list.len()),
                field: path.to_owned(),
            }];
        }
        let mut problems = Vec::new();
        for (index, condition) in list.iter().enumerate() {
            let (at, source) = (format!("{path}[{index}]"), expression(condition));
            if source.is_empty() {
                problems.push(FieldProblem::required(format!("{at}.expression"), ""));
            } else if let Err(detail) = compile(source) {
                problems.push(FieldProblem::invalid(format!("{at}.expression"), &quote(source), &detail));
            }
            let name = condition["name"].as_str().unwrap_or_default();
            if name.is_empty() {
                problems.push(FieldProblem::required(format!("{at}.name"), ""));
            } else if list[..index].iter().any(|earlier| earlier["name"].as_str() == Some(name)) {
                problems.push(FieldProblem {
                    reason: "FieldValueDuplicate",
                    message: format!("Duplicate value: {}", quote(name)),
                    field: format!("{at}.name"),
                });
            }
        }
        problems
    }

    /// Whether all hold. One that is false decides, whatever the others say; otherwise errors do.
    pub(super) fn hold(
        &self,
        admission: &Admission<'_>,
        invocation: Invocation<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<bool, String> {
        let json = |value: Option<&Value>| value.map_or(CelValue::Null, CelValue::from_json);
        let bindings = Bindings::new()
            .with("object", json(object))
            .with("oldObject", json(old))
            .with("namespaceObject", CelValue::Null)
            .with("request", CelValue::from_json(&request_facts(admission, invocation)));
        let mut budget = Budget::new(BUDGET_UNITS);
        let mut errors = Vec::new();
        for Condition { source, program } in &self.0 {
            let result = program.as_ref().map_err(Clone::clone).and_then(|program| {
                let mut slice = budget.slice(PER_CALL_COST_LIMIT);
                let result = program.evaluate(&bindings, &mut slice);
                budget.settle(&slice);
                result.map_err(|error| format!("expression '{source}' resulted in error: {error}"))
            });
            match result {
                Ok(CelValue::Bool(false)) => return Ok(false),
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => errors.push(format!("expression '{source}' did not evaluate to bool")),
                Err(text) => errors.push(text),
            }
        }
        if errors.is_empty() { Ok(true) } else { Err(aggregate(errors)) }
    }
}

fn expression(condition: &Value) -> &str {
    condition["expression"].as_str().unwrap_or_default().trim()
}

fn compile(source: &str) -> Result<Program, String> {
    let program = ENV.compile(source).map_err(|error| {
        let text = error.to_string();
        if text.contains("undeclared reference to 'authorizer'") {
            "the authorizer is not available in match conditions here; use object, oldObject and request"
                .to_owned()
        } else {
            format!("compilation failed: {text}")
        }
    })?;
    match program.output_type() {
        Type::Bool | Type::Dyn => Ok(program),
        other => Err(format!("must evaluate to bool but got {other}")),
    }
}
