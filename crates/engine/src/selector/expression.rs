//! CEL over a ManagedCluster.
//!
//! Owns the environment that expressions of a placement are compiled in, with the two functions upstream adds:
//! `managedCluster.scores("name")` and `"json".parseJSON()`, and the budget they run under. Anything but `true`
//! within the budget is "does not match"; the reason is kept for explanations.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use berth_cel::{
    Bindings, Budget, Env, EvalError, HostFunction, LIST_CREATE_COST, MAP_CREATE_COST, PER_CALL_COST_LIMIT,
    PER_OBJECT_COST_BUDGET, Program, SELECT_COST, Type, Value, WORK_LIMIT, parse_json,
};

/// The variable expressions know.
const VARIABLE: &str = "managedCluster";
/// Work that counts as a unit of cost: an evaluation that uses up either meter costs about the same.
const WORK_PER_COST: u64 = WORK_LIMIT / PER_CALL_COST_LIMIT;
/// A binding that no expression can name, through which `scores()` reaches the cluster's scores.
const SCORES: &str = "#scores";

/// One expression, ready to run. Two are equal if their source is.
#[derive(Clone, Debug)]
pub struct Expression {
    source: Arc<str>,
    program: Arc<Program>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

impl Expression {
    /// Compiles an expression; the error begins as upstream's message does, and stays on one line.
    pub fn compile(source: &str) -> Result<Self, String> {
        static ENV: LazyLock<Env> = LazyLock::new(environment);
        let program =
            ENV.compile(source).map_err(|error| format!("compilation failed: {}", error.one_line()))?;
        if !matches!(program.output_type(), Type::Bool | Type::Dyn) {
            return Err(format!(
                "compilation failed: the expression gives a value of type {}; it must give a bool",
                program.output_type()
            ));
        }
        Ok(Self { source: source.into(), program: Arc::new(program) })
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn reads_scores(&self) -> bool {
        self.program.references_function("scores")
    }
}

/// A cluster as expressions see it.
#[derive(Debug)]
pub(crate) struct Subject {
    bindings: Bindings,
}

/// Why an expression does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// It gave `false`.
    False,
    /// It gave something that is not a truth value.
    NotBool(String),
    /// It failed, or ran out of budget.
    Failed(String),
}

impl Subject {
    /// A cluster object with its valid scores by AddOnPlacementScore name.
    pub(crate) fn new(
        object: &serde_json::Value,
        scores: impl Iterator<Item = (Arc<str>, Vec<(Arc<str>, i64)>)>,
    ) -> Self {
        let item = |(name, value): (Arc<str>, i64)| {
            Value::map([("name", Value::String(name)), ("value", Value::Int(value))])
        };
        let scores =
            scores.map(|(resource, items)| (resource, Value::list(items.into_iter().map(item).collect())));
        let bindings =
            Bindings::new().with(VARIABLE, Value::from_json(object)).with(SCORES, Value::map(scores));
        Self { bindings }
    }

    /// The first expression that does not hold, by its place, and why: together they have one object's budget. With it
    /// what it cost to find out.
    pub(crate) fn first_mismatch(&self, expressions: &[Expression]) -> (Option<(usize, Mismatch)>, u64) {
        let mut budget = Budget::new(PER_OBJECT_COST_BUDGET);
        let mut cost = 0;
        let mismatch = expressions.iter().enumerate().find_map(|(place, expression)| {
            // Work has no budget of its own for all expressions together.
            if cost >= PER_OBJECT_COST_BUDGET {
                return Some((place, Mismatch::Failed(EvalError::BudgetExceeded.to_string())));
            }
            let mut slice = budget.slice(PER_CALL_COST_LIMIT);
            let outcome = expression.program.evaluate(&self.bindings, &mut slice);
            budget.settle(&slice);
            // The step that was too much is charged, but not taken.
            cost += slice.spent().min(PER_CALL_COST_LIMIT).max(slice.worked() / WORK_PER_COST);
            let mismatch = match outcome {
                Ok(Value::Bool(true)) => return None,
                Ok(Value::Bool(false)) => Mismatch::False,
                Ok(other) => Mismatch::NotBool(other.type_of().to_string()),
                Err(error) => Mismatch::Failed(error.to_string()),
            };
            Some((place, mismatch))
        });
        (mismatch, cost)
    }
}

fn environment() -> Env {
    let object = || Type::map(Type::String, Type::Dyn);
    let scores = HostFunction::member(
        "scores",
        vec![object(), Type::String],
        Type::list(object()),
        |args, bindings, _| {
            let [_, Value::String(name)] = args else {
                return Err(EvalError::host("scores() takes the name of an AddOnPlacementScore"));
            };
            let found = match bindings.get(SCORES) {
                Some(Value::Map(all)) => all.get_str(name).cloned(),
                _ => None,
            };
            found.ok_or_else(|| {
                EvalError::host(format!("the cluster has no valid AddOnPlacementScore {name:?}"))
            })
        },
    )
    // As upstream charges: a list, and for each entry a selection and a map.
    .with_cost(|_, result| match result {
        Value::List(items) => LIST_CREATE_COST + (SELECT_COST + MAP_CREATE_COST) * items.len() as u64,
        _ => SELECT_COST,
    });
    Env::builder()
        .variable(VARIABLE, object())
        .function(scores)
        .function(parse_json())
        .cross_type_comparisons(false)
        .build()
}
