//! Expressions written to do harm end quickly, with an error that says why.

use std::time::Duration;

use berth_cel::{
    AST_DEPTH_MAX, Bindings, Budget, Env, EvalError, NESTING_MAX, SOURCE_BYTES_MAX, Type, Value, parse_json,
};
use rustix::time::{ClockId, clock_gettime};

/// Far more than any of these takes, far less than they would take unbounded.
const PATIENCE: Duration = Duration::from_secs(20);

fn environment() -> Env {
    Env::builder()
        .variable("list", Type::list(Type::Dyn))
        .variable("text", Type::String)
        .function(parse_json())
        .build()
}

/// What this thread has had of a processor: the same however many others want it.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("a time that has passed is not negative")
}

fn evaluate_with(expression: &str, bindings: &Bindings) -> Result<Value, EvalError> {
    let program = environment().compile(expression).unwrap_or_else(|error| panic!("{expression}:\n{error}"));
    let started = processor_time();
    let result = program.evaluate(bindings, &mut Budget::per_call());
    let took = processor_time().saturating_sub(started);
    assert!(took < PATIENCE, "{expression} took {took:?}");
    result
}

fn thousand() -> Bindings {
    Bindings::new()
        .with("list", Value::list((0..1000).map(Value::Int).collect()))
        .with("text", "a".repeat(100_000))
}

fn refused(source: &str) -> String {
    let started = processor_time();
    let error = environment().compile(source).expect_err("it must be refused");
    assert!(processor_time().saturating_sub(started) < PATIENCE);
    error.one_line()
}

#[test]
fn nested_loops_stop_at_the_cost_limit() {
    for expression in [
        "list.all(a, list.all(b, list.all(c, list.all(d, a + b + c + d >= 0))))",
        "list.map(a, list.map(b, list.map(c, list.map(d, a))))",
        "list.exists(a, list.exists(b, list.exists(c, false)))",
        "list.filter(a, list.all(b, list.all(c, true))).size() > 0",
        "list.all(a, list.all(b, list.all(c, true)))",
    ] {
        assert_eq!(evaluate_with(expression, &thousand()), Err(EvalError::BudgetExceeded), "{expression}");
    }
}

#[test]
fn an_exceeded_budget_is_not_absorbed_by_logic() {
    for expression in [
        "list.all(a, list.all(b, list.all(c, true))) || true",
        "true || list.all(a, list.all(b, list.all(c, true))) && false || true ? false : true",
        "[1].exists(x, list.all(a, list.all(b, list.all(c, true))))",
        "[list.all(a, list.all(b, list.all(c, true)))].all(x, true) || true",
    ] {
        let result = evaluate_with(expression, &thousand());
        assert!(matches!(result, Err(EvalError::BudgetExceeded) | Ok(_)), "{expression}: {result:?}");
        if !expression.starts_with("true") {
            assert_eq!(result, Err(EvalError::BudgetExceeded), "{expression}");
        }
    }
}

#[test]
fn what_grows_by_itself_is_stopped_before_it_is_built() {
    for expression in [
        // The reference implementation charges a replacement by the text it starts from.
        "text.replace('a', text).size() > 0",
        "list.map(a, text.replace('a', text).size()).size() > 0",
        "list.map(a, list + list + list + list).map(x, x + x).map(x, x + x).size() > 0",
        "list.map(a, text + text).join(text).size() > 0",
        "list.map(a, '%s%s%s%s'.format([text, text, text, text])).size() > 0",
        "list.map(a, text.split('')).size() > 0",
        "list.map(a, text.findAll('a')).size() > 0",
    ] {
        assert_eq!(evaluate_with(expression, &thousand()), Err(EvalError::BudgetExceeded), "{expression}");
    }
}

#[test]
fn what_costs_nothing_cannot_be_done_without_end() {
    let ones = vec!["1"; 3000].join(",");
    let entries: Vec<String> = (0..900).map(|key| format!("{key}:1")).collect();
    let entries = entries.join(",");
    let truths = vec!["true"; 2000].join("&&");
    for expression in [
        // A list and a map of constants cost what an empty one does.
        format!("list.all(a, list.all(b, [{ones}].size() > 0))"),
        format!("list.map(a, list.map(b, [{ones}])).size() > 0"),
        format!("list.map(a, list.map(b, {{{entries}}})).size() > 0"),
        format!("list.all(a, list.all(b, {truths}))"),
        // Compared with something small, a text costs little however large it is.
        "list.exists(a, list.exists(b, text.replace('a', 'bbbbbbbbbb') == 'c'))".to_owned(),
        "[text + text + text + text + text].exists(t, list.exists(a, list.exists(b, t == 'c')))".to_owned(),
        "[text + text + text + text + text].exists(t, list.exists(a, list.exists(b, size(t) < 0)))"
            .to_owned(),
        "[text + text + text + text + text].all(t, list.all(a, list.all(b, t.contains(''))))".to_owned(),
    ] {
        let result = evaluate_with(&expression, &thousand());
        assert_eq!(result, Err(EvalError::BudgetExceeded), "{expression:.80}");
    }
}

#[test]
fn lists_that_share_their_elements_are_not_walked_through_without_end() {
    let nested = "[list.map(a, 'x')].map(l, list.map(a, l)).map(l, list.map(a, l)).map(l, list.map(a, l))";
    for use_of_it in ["indexOf(dyn('y')) > 0", "all(l, '%s'.format([l]) == '')", "all(l, l == l)"] {
        let expression = format!("{nested}.{use_of_it}");
        assert_eq!(evaluate_with(&expression, &thousand()), Err(EvalError::BudgetExceeded), "{expression}");
    }
}

#[test]
fn finding_all_matches_in_a_text_that_is_looked_through_for_each_is_stopped() {
    for pattern in [".*[^a]|a", "(a.*)?[^a]|a"] {
        let result = evaluate_with(&format!("text.findAll('{pattern}').size() > 0"), &thousand());
        assert_eq!(result, Err(EvalError::BudgetExceeded), "{pattern}");
    }
    let found = evaluate_with("text.substring(0, 5000).findAll('a').size()", &thousand());
    assert_eq!(found, Ok(Value::Int(5000)), "what is reasonable is not");
}

#[test]
fn patterns_are_compiled_ahead_of_time_only_as_far_as_they_may_be_while_running() {
    let many: Vec<String> = (0..500).map(|n| format!("'a'.matches('{n}\\\\pL{{50}}')")).collect();
    let expression = many.join("||");
    let started = processor_time();
    let program = environment().compile(&expression).unwrap();
    assert_eq!(program.evaluate(&thousand(), &mut Budget::per_call()), Err(EvalError::BudgetExceeded));
    assert!(processor_time().saturating_sub(started) < PATIENCE);
}

#[test]
fn patterns_cannot_be_made_to_run_or_grow_for_long() {
    for expression in [
        "list.exists(x, text.matches('(a|aa)*b'))",
        "list.exists(x, text.matches(string(x) + '(a{100}){100}'))",
        "list.exists(x, text.matches('(x+x+)+y' + string(x)))",
        r"list.exists(x, ''.matches(string(x) + '\\pL{50}'))",
        r"list.exists(x, ''.matches(string(x) + '(?i)\\pL{10}'))",
        r"list.exists(x, ''.matches(string(x) + '(?i)[a-\\x{10ffff}][b-\\x{10fff0}][c-\\x{10ff00}]'))",
        r"list.exists(x, ''.matches(string(x) + '[\\pL][^\\pL][\\pN][^\\pN][\\pM][^\\pM]'))",
        "text.matches('((((a{30}){30}){30}){30})')",
    ] {
        assert!(evaluate_with(expression, &thousand()).is_err(), "{expression}");
    }
}

#[test]
fn comparing_large_objects_over_and_over_is_stopped() {
    let nested = Value::list(vec![Value::list((0..20_000).map(Value::Int).collect())]);
    let bindings = thousand().with("list", Value::list(vec![nested; 5000]));
    let result = evaluate_with("list.all(x, x == list[0])", &bindings);
    assert_eq!(result, Err(EvalError::BudgetExceeded));
}

#[test]
fn deep_nesting_is_refused_by_name() {
    let deep =
        |open: &str, close: &str, count: usize| format!("{}1{}", open.repeat(count), close.repeat(count));
    for (open, close) in
        [("(", ")"), ("[", "]"), ("{1:", "}"), ("size(", ")"), ("[1].map(x,", ")"), ("true ? 1 : ", "")]
    {
        let message = refused(&deep(open, close, 1000));
        assert!(message.contains("limit exceeded") || message.contains("nests deeper"), "{open}: {message}");
    }
    for open in ["!", "-", "- !", "!-", "(-", "(!"] {
        // Signs in a row cancel out or nest; neither may overflow the stack.
        let _ = environment().compile(&format!("{}1", open.repeat(4000)));
    }
}

#[test]
fn long_chains_are_either_refused_or_evaluated_without_deep_recursion() {
    let chain = |operator: &str, term: &str, count: usize| vec![term; count].join(operator);
    for (operator, term) in [("+", "1"), ("-", "1"), ("*", "1"), ("==", "1"), (".", "a"), (" in ", "[]")] {
        let message = refused(&chain(operator, term, 2000));
        assert!(message.contains("nests deeper") || message.contains("undeclared"), "{operator}: {message}");
    }
    for (operator, term) in [("&&", "true"), ("||", "false")] {
        let program = environment().compile(&chain(operator, term, 2000)).unwrap();
        assert!(program.evaluate(&Bindings::new(), &mut Budget::per_call()).is_ok());
    }
}

#[test]
fn the_deepest_expression_allowed_evaluates_on_a_small_stack() {
    let nested = usize::from(NESTING_MAX) - 1;
    let chain = usize::from(AST_DEPTH_MAX) - 1;
    let sources = [
        format!("{}1{}", "size([".repeat(nested / 2), "])".repeat(nested / 2)),
        format!("{}true{}", "[1].all(x, ".repeat(nested / 2), ")".repeat(nested / 2)),
        format!("{}1{}", "[1].map(x, ".repeat(nested / 3), ")".repeat(nested / 3)),
        vec!["1"; chain].join(" + "),
        format!("{}1", "true ? 1 : ".repeat(nested)),
        format!("{}1{}", "[".repeat(nested), "]".repeat(nested)) + " == 1",
    ];
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    let handle = thread.spawn(move || {
        let mut evaluated = 0;
        for source in sources {
            if let Ok(program) = environment().compile(&source) {
                let _ = program.evaluate(&Bindings::new(), &mut Budget::per_call());
                evaluated += 1;
            }
        }
        evaluated
    });
    assert!(handle.unwrap().join().unwrap() >= 4);
}

#[test]
fn macros_that_copy_their_operand_cannot_explode() {
    let message = refused(&format!("optional.of(1){}", ".optMap(x, x)".repeat(60)));
    assert!(message.contains("nodes") || message.contains("nests deeper"), "{message}");
}

#[test]
fn types_that_double_at_every_step_are_given_up_on() {
    let steps: Vec<String> = (0..30).map(|n| format!(".map(x{n}, {{x{n}: x{n}}})")).collect();
    let source = format!("[1]{}", steps.concat());
    let started = processor_time();
    let _ = environment().compile(&source);
    assert!(processor_time().saturating_sub(started) < PATIENCE);
}

#[test]
fn an_overlong_source_is_refused_with_its_length() {
    let message = refused(&" ".repeat(SOURCE_BYTES_MAX + 1));
    assert!(message.contains("16385 bytes"), "{message}");
}

#[test]
fn deep_json_is_an_error_and_not_a_crash() {
    let bindings = Bindings::new().with("text", "[".repeat(100_000));
    assert!(matches!(evaluate_with("text.parseJSON()", &bindings), Err(EvalError::Host(_))));
}
