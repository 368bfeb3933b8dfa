//! Lists as sets: `sets.contains`, `sets.equivalent`, `sets.intersects`.

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("sets.contains", "list_sets_contains_list", "(list(A), list(A)) -> bool", contains),
    ("sets.equivalent", "list_sets_equivalent_list", "(list(A), list(A)) -> bool", equivalent),
    ("sets.intersects", "list_sets_intersects_list", "(list(A), list(A)) -> bool", intersects),
];

fn lists<'v>(context: &mut Context<'_>, args: &'v [Value]) -> Result<(&'v [Value], &'v [Value]), EvalError> {
    let [Value::List(a), Value::List(b)] = args else { return Err(EvalError::NoSuchOverload) };
    let comparisons = (a.len() as u64).saturating_mul(b.len() as u64);
    context.budget.work(comparisons)?;
    Ok((a, b))
}

fn has(context: &mut Context<'_>, list: &[Value], wanted: &Value) -> Result<bool, EvalError> {
    for element in list {
        if element.equals(wanted, context.budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn includes(context: &mut Context<'_>, all: &[Value], some: &[Value]) -> Result<bool, EvalError> {
    for element in some {
        if !has(context, all, element)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (all, some) = lists(context, args)?;
    includes(context, all, some).map(Value::Bool)
}

fn equivalent(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (a, b) = lists(context, args)?;
    Ok(Value::Bool(includes(context, a, b)? && includes(context, b, a)?))
}

fn intersects(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (a, b) = lists(context, args)?;
    for element in a {
        if has(context, b, element)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
