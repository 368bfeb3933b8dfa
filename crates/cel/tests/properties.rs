//! Whatever is thrown at it, compiling and evaluating ends, and never panics.

use berth_cel::{Bindings, Budget, Env, EvalError, Type, Value, parse_json};
use proptest::prelude::*;

fn environment() -> Env {
    Env::builder()
        .variable("m", Type::map(Type::String, Type::Dyn))
        .variable("n", Type::Int)
        .function(parse_json())
        .build()
}

fn bindings() -> Bindings {
    let object = serde_json::json!({
        "a": "text", "b": [1, 2, 3], "c": {"d": 1.5, "e": null}, "f": true, "g": "2024-01-01T00:00:00Z", "h": "1.5Gi"
    });
    Bindings::new().with("m", Value::from_json(&object)).with("n", 7)
}

/// Compiles and evaluates with a budget, and checks that the budget holds.
fn exercise(source: &str, limit: u64) {
    let Ok(program) = environment().compile(source) else { return };
    let mut budget = Budget::new(limit);
    let result = program.evaluate(&bindings(), &mut budget);
    if budget.spent() > limit {
        assert_eq!(result, Err(EvalError::BudgetExceeded), "{source}");
    }
    let _ = program.field_paths();
}

#[test]
fn a_budget_that_ends_while_a_list_is_begun_is_what_is_reported() {
    exercise("dyn(1).map(x, dyn(1))", 1);
}

const TOKENS: &[&str] = &[
    "m",
    "n",
    "x",
    "1",
    "-1",
    "0",
    "1u",
    "1.5",
    "'a'",
    "\"\"",
    "b'x'",
    "r'\\d'",
    "true",
    "false",
    "null",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    ":",
    "?",
    ".?",
    "[?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "!",
    " in ",
    ".a",
    ".b",
    ".c",
    ".size()",
    ".map(x, ",
    ".filter(x, ",
    ".all(x, ",
    ".exists(x, ",
    ".exists_one(x, ",
    "has(m.a)",
    "size(",
    "int(",
    "string(",
    "timestamp(",
    "duration(",
    "quantity(",
    "ip(",
    "cidr(",
    "semver(",
    "url(",
    "optional.of(",
    "optional.none()",
    ".orValue(",
    ".optMap(x, ",
    ".matches(",
    ".find(",
    ".format(",
    ".split(",
    ".replace(",
    ".substring(",
    ".parseJSON()",
    ".sum()",
    ".max()",
    ".indexOf(",
    "format.date()",
    ".validate(",
    "`a`",
    "9223372036854775807",
    "\\",
    "'",
    "\"\"\"",
    "é",
    "//",
    "\n",
];

fn token_soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(TOKENS), 0..40).prop_map(|tokens| tokens.concat())
}

fn leaf() -> impl Strategy<Value = String> {
    prop::sample::select(
        &[
            "1",
            "-3",
            "0",
            "n",
            "2u",
            "1.5",
            "0.0",
            "'a'",
            "'12'",
            "''",
            "b'z'",
            "true",
            "false",
            "null",
            "m",
            "m.a",
            "m.b",
            "m.c.d",
            "m.f",
            "m.g",
            "m.h",
            "m.nope",
            "[]",
            "[1, 2]",
            "{}",
            "{'k': 1}",
            "duration('1h')",
            "timestamp(0)",
            "optional.none()",
            "quantity('1Gi')",
            "ip('10.0.0.1')",
            "cidr('10.0.0.0/8')",
            "semver('1.2.3')",
        ][..],
    )
    .prop_map(str::to_owned)
}

/// Expressions that parse, though they need not type-check: operands are hidden behind `dyn` often
/// enough to reach evaluation.
fn expression() -> impl Strategy<Value = String> {
    leaf().prop_recursive(5, 64, 4, |inner| {
        let operator = prop::sample::select(
            &["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"][..],
        );
        let unary = prop::sample::select(
            &[
                "!dyn(E)",
                "-dyn(E)",
                "size(dyn(E))",
                "int(dyn(E))",
                "uint(dyn(E))",
                "double(dyn(E))",
                "string(dyn(E))",
                "bytes(dyn(E))",
                "bool(dyn(E))",
                "type(E)",
                "duration(dyn(E))",
                "timestamp(dyn(E))",
                "dyn(E).a",
                "dyn(E)[0]",
                "dyn(E).?a",
                "dyn(E)[?'k']",
                "has(dyn(E).a)",
                "[E, 1]",
                "{'a': E}",
                "{dyn(E): 1}",
                "optional.of(E)",
                "optional.ofNonZeroValue(E)",
                "quantity(dyn(E))",
                "isQuantity(dyn(E))",
                "ip(dyn(E))",
                "url(dyn(E))",
                "dyn(E).upperAscii()",
                "dyn(E).split('')",
                "dyn(E).reverse()",
                "dyn(E).trim()",
                "dyn(E).sum()",
                "dyn(E).max()",
                "dyn(E).isSorted()",
                "dyn(E).getHours()",
                "dyn(E).getFullYear('-01:30')",
                "dyn(E).value()",
                "dyn(E).parseJSON()",
                "'%s %d %f %x'.format([E, E, E, E])",
                "strings.quote(dyn(E))",
                "dyn(E).join('-')",
            ][..],
        );
        let fold = prop::sample::select(&["map", "filter", "all", "exists", "exists_one"][..]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(a, op, b)| format!("(dyn({a}) {op} dyn({b}))")),
            (unary, inner.clone()).prop_map(|(form, operand)| form.replace('E', &operand)),
            (inner.clone(), fold, inner.clone())
                .prop_map(|(range, fold, body)| format!("dyn({range}).{fold}(x, dyn({body}))")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(c, a, b)| format!("(dyn({c}) ? dyn({a}) : {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("dyn({a}).replace(dyn({b}), dyn({a}))")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("dyn({a}).matches(dyn({b}))")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_compiled_or_refused(source in "\\PC{0,200}") {
        exercise(&source, 10_000);
    }

    #[test]
    fn any_ascii_is_compiled_or_refused(source in "[\\x00-\\x7f]{0,120}") {
        exercise(&source, 10_000);
    }

    #[test]
    fn any_soup_of_tokens_is_compiled_or_refused(source in token_soup()) {
        exercise(&source, 10_000);
    }

    #[test]
    fn any_expression_ends_within_its_budget(source in expression(), limit in 0u64..5_000) {
        exercise(&source, limit);
    }

    #[test]
    fn evaluation_is_repeatable(source in expression()) {
        if let Ok(program) = environment().compile(&source) {
            let run = || {
                let mut budget = Budget::per_call();
                let outcome = program.evaluate(&bindings(), &mut budget);
                (format!("{outcome:?}"), budget.spent())
            };
            prop_assert_eq!(run(), run());
        }
    }

    #[test]
    fn a_larger_budget_never_changes_a_result(source in expression(), limit in 0u64..500) {
        if let Ok(program) = environment().compile(&source) {
            let small = program.evaluate(&bindings(), &mut Budget::new(limit));
            let large = program.evaluate(&bindings(), &mut Budget::per_call());
            if small != Err(EvalError::BudgetExceeded) {
                prop_assert_eq!(format!("{:?}", small), format!("{:?}", large));
            }
        }
    }

    #[test]
    fn integer_arithmetic_agrees_with_wide_arithmetic(a: i64, b: i64) {
        let env = Env::builder().variable("a", Type::Int).variable("b", Type::Int).build();
        let bindings = Bindings::new().with("a", a).with("b", b);
        let (wide_a, wide_b) = (i128::from(a), i128::from(b));
        for (source, wide) in [("a + b", wide_a + wide_b), ("a - b", wide_a - wide_b), ("a * b", wide_a * wide_b)] {
            let result = env.compile(source).unwrap().evaluate(&bindings, &mut Budget::per_call());
            let wanted = i64::try_from(wide).map(Value::Int).map_err(|_| EvalError::Overflow { what: "integer" });
            prop_assert_eq!(result, wanted);
        }
    }
}
