//! Every expression in `vectors.json` behaves here as it was observed to behave in the reference
//! implementation of CEL with Kubernetes' libraries: same value, same type, same cost, same errors.
//!
//! Where we differ, the expression stands in one of the tables of `disagreements`, with the reason; an
//! entry that no longer differs fails the test, so the tables cannot rot.

#[path = "vectors/disagreements.rs"]
mod disagreements;
#[path = "vectors/render.rs"]
mod render;

use std::collections::BTreeMap;

use berth_cel::{Bindings, Budget, Env, EvalError, HostFunction, Type, Value, parse_json};
use disagreements::{COSTS, ERROR_TEXTS, OUTCOMES, TYPES};
use render::render;

/// The environment the vectors were observed in.
fn environment() -> Env {
    let scores =
        HostFunction::member("scores", vec![Type::Dyn, Type::String], Type::list(Type::Dyn), |args, _, _| {
            if args[1] == Value::from("missing") {
                return Err(EvalError::host("failed to get score: missing not found"));
            }
            let score = |name: &str, value: i64| {
                Value::map([("name", Value::from(name)), ("value", Value::Int(value))])
            };
            Ok(Value::list(vec![score("cpu", 60), score("mem", -20)]))
        })
        .with_cost(|_, result| match result {
            Value::List(scores) => 10 + 31 * scores.len() as u64,
            _ => 10,
        });
    Env::builder()
        .cross_type_comparisons(false)
        .variable("managedCluster", Type::map(Type::String, Type::Dyn))
        .function(scores)
        .function(parse_json())
        .build()
}

#[derive(Default)]
struct Report {
    checked: BTreeMap<&'static str, usize>,
    failures: Vec<String>,
}

impl Report {
    /// Compares, unless a table says that we differ: then we have to.
    fn compare(
        &mut self,
        what: &'static str,
        table: &[(&str, &str)],
        expression: &str,
        ours: &str,
        theirs: &str,
    ) {
        let excused = table.iter().any(|(known, _)| *known == expression);
        match (ours == theirs, excused) {
            (true, false) => *self.checked.entry(what).or_default() += 1,
            (false, true) => {}
            (false, false) => {
                self.failures
                    .push(format!("{what} of {expression}\n    ours:   {ours}\n    theirs: {theirs}"));
            }
            (true, true) => {
                self.failures.push(format!("{what} of {expression} agrees: take it off the table"));
            }
        }
    }
}

#[test]
fn every_vector_gives_the_observed_outcome() {
    let document: serde_json::Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let env = environment();
    let bindings = Bindings::new().with("managedCluster", Value::from_json(&document["cluster"]));
    let vectors = document["vectors"].as_array().unwrap();
    let mut report = Report::default();
    for vector in vectors {
        let text = |field: &str| vector[field].as_str();
        let expression = text("e").unwrap();
        let theirs = match (text("v"), text("x"), text("c")) {
            (Some(value), _, _) => format!("value {value}"),
            (_, Some(_), _) => "error".to_owned(),
            (_, _, Some(_)) => "refused".to_owned(),
            _ => panic!("{expression} has no outcome"),
        };
        let program = match env.compile(expression) {
            Ok(program) => program,
            Err(error) => {
                report.compare("outcome", OUTCOMES, expression, "refused", &theirs);
                // Syntax errors and failed preparations are worded by machinery we do not have.
                let issues = text("c").unwrap_or_default();
                if !issues.is_empty()
                    && !issues.contains("Syntax error")
                    && !issues.starts_with("instantiation")
                {
                    report.compare("compile error", ERROR_TEXTS, expression, &error.one_line(), issues);
                }
                continue;
            }
        };
        let mut budget = Budget::per_call();
        let (ours, message) = match program.evaluate(&bindings, &mut budget) {
            Ok(value) => (format!("value {}", render(&value)), None),
            Err(error) => ("error".to_owned(), Some(error.to_string())),
        };
        report.compare("outcome", OUTCOMES, expression, &ours, &theirs);
        if let Some(ty) = text("t") {
            report.compare("type", TYPES, expression, &render::type_name(program.output_type()), ty);
        }
        if let (Some(message), Some(observed)) = (&message, text("x")) {
            // We promise the kind of this error; theirs sometimes adds the types it was given.
            let observed =
                if observed.starts_with("no such overload") { "no such overload" } else { observed };
            report.compare("error text", ERROR_TEXTS, expression, message, observed);
        }
        if let (None, Some(_), Some(cost)) = (&message, text("v"), vector["n"].as_u64()) {
            report.compare("cost", COSTS, expression, &budget.spent().to_string(), &cost.to_string());
        }
    }
    println!("{} vectors, agreeing on: {:?}", vectors.len(), report.checked);
    for table in [OUTCOMES, TYPES, COSTS, ERROR_TEXTS] {
        for (expression, _) in table {
            let known = vectors.iter().any(|vector| vector["e"] == *expression);
            assert!(known, "a table of disagreements names an expression that is not a vector: {expression}");
        }
    }
    assert!(report.failures.is_empty(), "{} differ:\n{}", report.failures.len(), report.failures.join("\n"));
}
