//! What a host can declare, and what it can ask of a compiled expression.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_cel::{
    Bindings, Budget, CompileError, Env, EvalError, HostFunction, Program, StructType, Type, Value,
};

fn evaluate(env: &Env, source: &str, bindings: &Bindings) -> Result<Value, EvalError> {
    env.compile(source).unwrap_or_else(|error| panic!("{error}")).evaluate(bindings, &mut Budget::per_call())
}

fn refused(env: &Env, source: &str) -> CompileError {
    env.compile(source).expect_err("it must be refused")
}

#[test]
fn a_compile_error_points_at_the_token() {
    let error = refused(&Env::builder().build(), "1 + foo");
    assert_eq!(
        error.to_string(),
        "ERROR: <input>:1:5: undeclared reference to 'foo' (in container '')\n | 1 + foo\n | ....^"
    );
    assert_eq!(error.one_line(), "1:5: undeclared reference to 'foo' (in container '')");
}

#[test]
fn a_compile_error_counts_lines_and_characters() {
    let error = refused(&Env::builder().build(), "true &&\n  'é' == foo");
    let issue = &error.issues()[0];
    assert_eq!((issue.line, issue.column), (2, 10));
    assert!(error.to_string().ends_with(" |   'é' == foo\n | .........^"), "{error}");
}

#[test]
fn every_issue_is_reported_in_source_order() {
    let error = refused(&Env::builder().build(), "a + b(c, 1 + 'x') + !1");
    let messages: Vec<&str> = error.issues().iter().map(|issue| issue.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "undeclared reference to 'a' (in container '')",
            "undeclared reference to 'b' (in container '')",
            "undeclared reference to 'c' (in container '')",
            "found no matching overload for '_+_' applied to '(int, string)'",
            "found no matching overload for '!_' applied to '(int)'",
        ]
    );
}

#[test]
fn records_are_checked_field_by_field() {
    let spec = Type::Struct(Arc::new(StructType {
        name: "Spec".into(),
        fields: BTreeMap::from([
            ("replicas".to_owned(), Type::Int),
            ("names".to_owned(), Type::list(Type::String)),
        ]),
    }));
    let env = Env::builder().variable("self", spec.clone()).variable("oldSelf", spec).build();
    let program = env.compile("self.replicas >= oldSelf.replicas && self.names.all(n, n != '')").unwrap();
    let object = |replicas: i64| serde_json::json!({"replicas": replicas, "names": ["a"]});
    let bindings = Bindings::new().with("self", object(3)).with("oldSelf", object(2));
    assert_eq!(program.evaluate(&bindings, &mut Budget::per_call()), Ok(Value::Bool(true)));
    assert!(refused(&env, "self.replica > 1").one_line().contains("undefined field 'replica'"));
    assert!(refused(&env, "self.replicas + 'a'").one_line().contains("(int, string)"));
}

#[test]
fn literals_must_agree_where_kubernetes_asks_for_it() {
    let strict = Env::builder().homogeneous_literals(true).build();
    assert_eq!(refused(&strict, "[1, 'a']").one_line(), "1:5: expected type 'int' but found 'string'");
    assert!(
        refused(&strict, "{'a': 1, 'b': true}").one_line().contains("expected type 'int' but found 'bool'")
    );
    assert!(Env::builder().build().compile("[1, 'a']").is_ok());
}

#[test]
fn a_presence_test_can_be_free() {
    let object = Type::map(Type::String, Type::Dyn);
    let bindings = Bindings::new().with("m", serde_json::json!({"a": 1}));
    for (costs, wanted) in [(true, 2), (false, 1)] {
        let env = Env::builder().variable("m", object.clone()).presence_test_costs(costs).build();
        let mut budget = Budget::per_call();
        env.compile("has(m.a)").unwrap().evaluate(&bindings, &mut budget).unwrap();
        assert_eq!(budget.spent(), wanted);
    }
}

#[test]
fn numbers_compare_across_types_unless_the_host_objects() {
    assert_eq!(
        evaluate(&Env::builder().build(), "1 < 1.5 && 2u > 1", &Bindings::new()),
        Ok(Value::Bool(true))
    );
    let strict = Env::builder().cross_type_comparisons(false).build();
    assert!(refused(&strict, "1 < 1.5").one_line().contains("(int, double)"));
    assert_eq!(evaluate(&strict, "dyn(1) < 1.5", &Bindings::new()), Ok(Value::Bool(true)));
}

#[test]
fn a_host_function_gets_checked_arguments_and_charges_its_cost() {
    let double = HostFunction::member("twice", vec![Type::Int], Type::Int, |args, _, _| match args {
        [Value::Int(int)] => int.checked_mul(2).map(Value::Int).ok_or(EvalError::host("too large to double")),
        _ => Err(EvalError::NoSuchOverload),
    })
    .with_cost(|_, result| if *result == Value::Int(42) { 100 } else { 7 });
    let env = Env::builder().function(double).build();
    let mut budget = Budget::per_call();
    assert_eq!(
        env.compile("21.twice()").unwrap().evaluate(&Bindings::new(), &mut budget),
        Ok(Value::Int(42))
    );
    assert_eq!(budget.spent(), 100);
    assert_eq!(evaluate(&env, "dyn('a').twice()", &Bindings::new()), Err(EvalError::NoSuchOverload));
    assert_eq!(
        evaluate(&env, "9223372036854775807.twice()", &Bindings::new()),
        Err(EvalError::host("too large to double"))
    );
    assert!(refused(&env, "'a'.twice()").one_line().contains("'string.()'"));
    assert!(refused(&env, "twice(1)").one_line().contains("found no matching overload"));
}

#[test]
fn a_host_function_adds_an_overload_to_a_known_name() {
    let size = HostFunction::global("size", vec![Type::Int], Type::Int, |args, _, _| Ok(args[0].clone()));
    let env = Env::builder().function(size).build();
    assert_eq!(evaluate(&env, "size(7) + size('abc')", &Bindings::new()), Ok(Value::Int(10)));
}

#[test]
fn a_program_tells_what_it_reads_and_calls() {
    let env = Env::builder().variable("cluster", Type::map(Type::String, Type::Dyn)).build();
    let program = env
        .compile("has(cluster.spec.taints) && cluster.metadata.labels['env'].startsWith('p') && [1].exists(cluster2, cluster2 > 0) && cluster[cluster.kind] == 1")
        .unwrap();
    assert_eq!(
        program.field_paths(),
        ["cluster", "cluster.kind", "cluster.metadata.labels.env", "cluster.spec.taints"]
    );
    assert!(program.references_function("startsWith"));
    assert!(!program.references_function("endsWith"));
    assert_eq!(program.output_type(), &Type::Bool);
}

#[test]
fn an_unbound_variable_is_an_ordinary_error() {
    let env = Env::builder().variable("x", Type::Bool).build();
    assert!(matches!(evaluate(&env, "x", &Bindings::new()), Err(EvalError::UnboundVariable { .. })));
    assert_eq!(evaluate(&env, "x || true", &Bindings::new()), Ok(Value::Bool(true)));
}

#[test]
fn the_cost_of_a_failed_evaluation_is_charged_too() {
    let env = Env::builder().build();
    let mut budget = Budget::per_call();
    assert_eq!(
        env.compile("1 / 0 == 1").unwrap().evaluate(&Bindings::new(), &mut budget),
        Err(EvalError::DivisionByZero)
    );
    assert_eq!(budget.spent(), 2);
}

#[test]
fn programs_and_environments_are_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Program>();
    shared::<Env>();
    shared::<Value>();
    shared::<Bindings>();
}
