//! Regular expressions: `matches`, `find`, `findAll`.
//!
//! Owns how much a pattern may take and cost. What it means is said by [`berth_text::pattern`].

use std::sync::Arc;

use berth_text::pattern::{Limits, Regex};

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("matches", "matches", "(string, string) -> bool", matches),
    ("matches", "matches_string", "string.(string) -> bool", matches),
    ("find", "string_find_string", "string.(string) -> string", find),
    ("findAll", "string_find_all_string", "string.(string) -> list(string)", find_all),
    ("findAll", "string_find_all_string_int", "string.(string, int) -> list(string)", find_all),
];

/// What a compiled pattern may take. Anybody who may write an expression can write patterns, even compose them while it
/// runs, so there is less room than where patterns are part of a definition.
const LIMITS: Limits = Limits { program_bytes: 256 * 1024, automaton_bytes: 512 * 1024, nesting: 64 };
/// The longest pattern accepted, in bytes.
const PATTERN_BYTES_MAX: usize = 4096;

/// Compiles a pattern, or says what is wrong with it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("pattern is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    berth_text::pattern::compile(pattern, &LIMITS)
}

/// The text and the compiled pattern of a call. Matching is linear in their product, and accounted for
/// as such.
fn prepare<'v>(
    context: &mut Context<'_>,
    args: &'v [Value],
) -> Result<(&'v Arc<str>, Arc<Regex>), EvalError> {
    let [Value::String(text), Value::String(pattern), ..] = args else {
        return Err(EvalError::NoSuchOverload);
    };
    let compiled = context.pattern(pattern)?;
    context.budget.work((text.len() as u64).saturating_mul(1 + pattern.len() as u64 / 16))?;
    Ok((text, compiled))
}

fn matches(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, pattern) = prepare(context, args)?;
    Ok(Value::Bool(pattern.is_match(text)))
}

fn find(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, pattern) = prepare(context, args)?;
    Ok(Value::string(pattern.find(text).map_or("", |found| found.as_str())))
}

fn find_all(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let limit = match args {
        [_, _, Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
        [_, _] => usize::MAX,
        _ => return Err(EvalError::NoSuchOverload),
    };
    let (text, pattern) = prepare(context, args)?;
    let mut found = Vec::new();
    for matched in pattern.find_iter(text).take(limit) {
        context.budget.work(64 + matched.len() as u64)?;
        found.push(Value::string(matched.as_str()));
    }
    Ok(Value::list(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_multiplies_is_refused_quickly() {
        assert!(compile("((((a{100}){100}){100}){100})").is_err());
        assert!(compile(&"(".repeat(5000)).is_err());
    }
}
