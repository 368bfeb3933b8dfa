//! One rule.
//!
//! Owns compiling a rule with its message and its path, evaluating it, and what is said when it does not hold.

use berth_cel::{
    Bindings, Env, EvalError, PER_CALL_COST_LIMIT, Program as CelProgram, Type, Value as CelValue,
};
use serde_json::Value;

use super::{Check, RuleNode, Spent, Spot, declaration::Declaration, resolve_field_path};
use crate::{
    gotext,
    node::{Node, Rule, Schema, Shape},
    path::FieldPath,
    problem::{Problem, ProblemKind},
};

/// The longest message that an expression may make, in bytes.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// A rule that can be evaluated.
#[derive(Debug)]
pub(super) struct Program {
    rule: Rule,
    condition: CelProgram,
    message: Option<CelProgram>,
    /// Where to point, below the value.
    field: Option<String>,
    uses_old: bool,
}

/// A rule that cannot be compiled.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Which of the node's rules it is.
    pub(crate) index: usize,
    /// The field of the rule that is to blame.
    pub(crate) field: &'static str,
    /// What is wrong with it.
    pub(crate) detail: String,
}

impl Failure {
    /// The problem, below the path of the node's rules.
    pub(crate) fn problem(&self, path: &FieldPath, node: &Node) -> Problem {
        let shown = node.rules.get(self.index).map(shown_rule).unwrap_or_default();
        Problem::with_shown(
            &path.index(self.index).field(self.field),
            ProblemKind::Invalid,
            &shown,
            &self.detail,
        )
    }
}

/// A rule as Kubernetes shows it in messages: its own structure, in Go's spelling.
pub(crate) fn shown_rule(rule: &Rule) -> String {
    let text = |text: &str| gotext::json(&Value::from(text));
    let optional = |value: Option<&str>| value.map_or_else(|| "null".to_owned(), text);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text(&rule.rule),
        text(rule.message.as_deref().unwrap_or_default()),
        text(rule.message_expression.as_deref().unwrap_or_default()),
        optional(rule.reason.as_deref()),
        text(rule.field_path.as_deref().unwrap_or_default()),
        if rule.optional_old_self { "true" } else { "null" },
    )
}

/// What became of a rule.
pub(super) struct Compiled {
    pub(super) index: usize,
    pub(super) program: Option<Program>,
    pub(super) failure: Option<Failure>,
    pub(super) uses_old: bool,
}

/// Compiles the rules of one node; a rule of nothing but blanks is passed over.
pub(super) fn compile_rules(schema: Schema<'_>, declaration: &Declaration) -> Vec<Compiled> {
    let rules = &schema.node().rules;
    if rules.is_empty() {
        return Vec::new();
    }
    let this = declaration.cel_type("selfType");
    let env = |old: Type| {
        Env::builder()
            .variable("self", this.clone())
            .variable("oldSelf", old)
            .homogeneous_literals(true)
            .presence_test_costs(false)
            .build()
    };
    let plain = env(this.clone());
    let optional = env(Type::optional(this.clone()));
    let written = rules.iter().enumerate().filter(|(_, rule)| !rule.rule.trim().is_empty());
    let compiled = written.map(|(index, rule)| {
        let env = if rule.optional_old_self { &optional } else { &plain };
        let failure = |field, detail| Some(Failure { index, field, detail });
        match compile_condition(env, rule) {
            Err(detail) => {
                Compiled { index, program: None, failure: failure("rule", detail), uses_old: false }
            }
            Ok(condition) => {
                let old = |path: &String| path == "oldSelf" || path.starts_with("oldSelf.");
                let uses_old = condition.field_paths().iter().any(old);
                match compile_rule(env, rule, condition, uses_old, schema) {
                    Ok(program) => Compiled { index, program: Some(program), failure: None, uses_old },
                    Err((field, detail)) => {
                        Compiled { index, program: None, failure: failure(field, detail), uses_old }
                    }
                }
            }
        }
    });
    compiled.collect()
}

fn compile_condition(env: &Env, rule: &Rule) -> Result<CelProgram, String> {
    let condition = env.compile(&rule.rule).map_err(|error| format!("compilation failed: {error}"))?;
    if *condition.output_type() != Type::Bool {
        return Err("cel expression must evaluate to a bool".to_owned());
    }
    Ok(condition)
}

fn compile_rule(
    env: &Env,
    rule: &Rule,
    condition: CelProgram,
    uses_old: bool,
    schema: Schema<'_>,
) -> Result<Program, (&'static str, String)> {
    let message = match rule.message_expression.as_deref().filter(|source| !source.trim().is_empty()) {
        None => None,
        Some(source) => {
            let message = env.compile(source).map_err(|error| {
                ("messageExpression", format!("messageExpression compilation failed: {error}"))
            })?;
            if *message.output_type() != Type::String {
                return Err(("messageExpression", "messageExpression must evaluate to a string".to_owned()));
            }
            Some(message)
        }
    };
    let field = rule.field_path.as_deref().and_then(|path| resolve_field_path(path, schema, true).ok());
    Ok(Program {
        rule: rule.clone(),
        condition,
        message,
        field: field.map(|(path, _)| path.to_string()),
        uses_old,
    })
}

/// Evaluates the rules of one node on a value.
pub(super) fn run(
    rules: &RuleNode,
    schema: Schema<'_>,
    value: &Value,
    spot: Spot<'_>,
    check: &mut Check,
) -> Result<(), Spent> {
    if rules.programs.is_empty() {
        return Ok(());
    }
    let this = rules.declaration.view(value);
    let needs_old = rules.programs.iter().any(|program| program.uses_old);
    let old = spot.old.filter(|_| needs_old).map(|old| rules.declaration.view(old));
    let path = || spot.place.path();
    let unevaluated = |check: &mut Check, detail: &str| {
        check.problems.add(|| Problem::invalid_text(&path(), rules.kind, detail));
    };
    for program in &rules.programs {
        if check.budget.remaining() == 0 {
            unevaluated(check, OUT_OF_BUDGET);
            return Err(Spent);
        }
        if program.uses_old && old.is_none() && !program.rule.optional_old_self {
            continue;
        }
        let mut bindings = Bindings::new().with("self", this.clone());
        if program.rule.optional_old_self {
            bindings.set("oldSelf", old.clone().map_or_else(CelValue::none, CelValue::some));
        } else if let Some(old) = &old {
            bindings.set("oldSelf", old.clone());
        }
        let mut slice = check.budget.slice(PER_CALL_COST_LIMIT);
        let limited = slice.remaining() < PER_CALL_COST_LIMIT;
        let outcome = program.condition.evaluate(&bindings, &mut slice);
        check.budget.settle(&slice);
        match outcome {
            Ok(CelValue::Bool(true)) => {}
            Ok(_) => explain(program, rules, schema, value, spot, &bindings, check)?,
            Err(EvalError::BudgetExceeded) if limited => {
                unevaluated(check, OUT_OF_BUDGET);
                return Err(Spent);
            }
            Err(error @ EvalError::BudgetExceeded) => {
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                    told(&program.rule)
                );
                unevaluated(check, &detail);
                return Err(Spent);
            }
            Err(error @ EvalError::NoSuchOverload) => {
                let detail = format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                    told(&program.rule)
                );
                unevaluated(check, &detail);
            }
            Err(error) => unevaluated(check, &format!("{error} evaluating rule: {}", told(&program.rule))),
        }
    }
    Ok(())
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Adds the problem of a rule that does not hold.
fn explain(
    program: &Program,
    rules: &RuleNode,
    schema: Schema<'_>,
    value: &Value,
    spot: Spot<'_>,
    bindings: &Bindings,
    check: &mut Check,
) -> Result<(), Spent> {
    // What was so before is not held against an update, unless the rule is about the change itself.
    let forgiven = !program.uses_old && spot.pairing.unchanged(value, schema);
    let place = spot.place.path();
    let path = match &program.field {
        Some(field) => place.field(field),
        None => place,
    };
    let mut spent = None;
    let detail = match &program.message {
        None => None,
        Some(message) => {
            let mut slice = check.budget.slice(PER_CALL_COST_LIMIT);
            let limited = slice.remaining() < PER_CALL_COST_LIMIT;
            let outcome = message.evaluate(bindings, &mut slice);
            check.budget.settle(&slice);
            match outcome {
                Ok(CelValue::String(text)) => Some(text.trim().to_owned()).filter(|text| is_message(text)),
                Err(EvalError::BudgetExceeded) if limited => {
                    spent = Some("messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run".to_owned());
                    None
                }
                Err(EvalError::BudgetExceeded) => {
                    spent = Some(format!(
                        "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                        gotext::quote(program.rule.message_expression.as_deref().unwrap_or_default())
                    ));
                    None
                }
                _ => None,
            }
        }
    };
    if let Some(detail) = spent {
        if !forgiven {
            check.problems.add(|| Problem::invalid_text(&path, rules.kind, &detail));
        }
        return Err(Spent);
    }
    if forgiven {
        return Ok(());
    }
    let detail = detail.unwrap_or_else(|| match &program.rule.message {
        Some(message) if !message.is_empty() => message.trim().to_owned(),
        _ => format!("failed rule: {}", program.rule.rule.trim()),
    });
    // A compound value is not shown.
    let hidden = matches!(schema.node().shape, Shape::Object | Shape::Array);
    let with_value = |kind: ProblemKind, detail: &str| {
        if hidden {
            Problem::new(&path, kind, detail)
        } else {
            Problem::with_value(&path, kind, value, detail)
        }
    };
    check.problems.add(|| match program.rule.reason.as_deref() {
        Some("FieldValueForbidden") => Problem::forbidden(&path, &detail),
        Some("FieldValueRequired") => Problem::required(&path, &detail),
        Some("FieldValueDuplicate") => with_value(ProblemKind::Duplicate, ""),
        _ => with_value(ProblemKind::Invalid, &detail),
    });
    Ok(())
}

/// Whether a text that an expression made can be shown: one line, not empty and not endless.
fn is_message(text: &str) -> bool {
    !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n')
}

/// How a rule is named where it could not be evaluated.
fn told(rule: &Rule) -> &str {
    match &rule.message {
        Some(message) if !message.is_empty() => message.trim(),
        _ => rule.rule.trim(),
    }
}
