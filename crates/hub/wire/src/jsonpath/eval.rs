//! Evaluation: from a value to the values that a path leads to.

use std::cmp::Ordering;
use std::sync::LazyLock;

use serde_json::Value;

use super::{Block, Node, Slice, Test};

/// Values that one evaluation looks at. A column over an object of the largest size stays below it; a chain of
/// recursive descents does not.
pub const STEPS_MAX: usize = 200_000;

/// The members of a string, which are its bytes.
static BYTES: LazyLock<Vec<Value>> = LazyLock::new(|| (0..=u8::MAX).map(Value::from).collect());

/// Why a path could not be evaluated on a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PathError {
    message: String,
    /// Whether values were at hand when evaluation stopped: a filter that asks whether something exists takes that
    /// for a yes.
    left_over: bool,
}

fn failed<T>(message: impl Into<String>, left_over: bool) -> Result<T, PathError> {
    Err(PathError { message: message.into(), left_over })
}

pub(super) fn find<'a>(blocks: &'a [Block], value: &'a Value) -> Result<Vec<Vec<&'a Value>>, PathError> {
    let mut walk = Walk { steps: Some(STEPS_MAX) };
    blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => Ok(vec![text]),
            Block::Action(nodes) => walk.list(nodes, vec![value]),
        })
        .collect()
}

type Found<'a> = Result<Vec<&'a Value>, PathError>;

struct Walk {
    /// What is left of the budget; nothing once it has been overrun, so that no later step passes for an answer.
    steps: Option<usize>,
}

impl Walk {
    fn spend(&mut self, steps: usize) -> Result<(), PathError> {
        self.steps = self.steps.and_then(|left| left.checked_sub(steps));
        match self.steps {
            Some(_) => Ok(()),
            None => failed(format!("the path looks at more than {STEPS_MAX} values"), false),
        }
    }

    fn list<'a>(&mut self, nodes: &'a [Node], mut values: Vec<&'a Value>) -> Found<'a> {
        for node in nodes {
            self.spend(values.len() + 1)?;
            values = self.node(node, values)?;
        }
        Ok(values)
    }

    fn node<'a>(&mut self, node: &'a Node, values: Vec<&'a Value>) -> Found<'a> {
        match node {
            // Text stands for itself once, other literals once per value: one value is all that filters use.
            Node::Literal(literal @ Value::String(_)) => Ok(vec![literal]),
            Node::Literal(literal) => Ok(vec![literal; values.len()]),
            Node::Field(name) => {
                Ok(values.into_iter().filter_map(|value| value.as_object()?.get(name)).collect())
            }
            Node::Wildcard => {
                let mut found = Vec::new();
                for value in values {
                    if let Value::String(text) = value {
                        self.spend(text.len())?;
                        found.extend(text.bytes().map(|byte| &BYTES[usize::from(byte)]));
                    } else {
                        self.children(value, &mut found)?;
                    }
                }
                Ok(found)
            }
            Node::Recursive => {
                let mut found = Vec::new();
                for value in values {
                    self.descend(value, &mut found)?;
                }
                Ok(found)
            }
            Node::Slice(slice) => self.slice(*slice, &values),
            Node::Union(members) => {
                let mut found = Vec::new();
                for member in members {
                    match self.list(member, values.clone()) {
                        Ok(more) => found.extend(more),
                        Err(error) => return failed(error.message, !values.is_empty()),
                    }
                    self.spend(found.len())?;
                }
                Ok(found)
            }
            Node::Filter { left, test, right } => self.filter(left, test, right, &values),
            Node::Identifier(name) => failed(format!("unrecognized identifier {name}"), !values.is_empty()),
        }
    }

    fn children<'a>(&mut self, value: &'a Value, found: &mut Vec<&'a Value>) -> Result<(), PathError> {
        match value {
            Value::Object(map) => {
                self.spend(map.len())?;
                found.extend(map.values());
            }
            Value::Array(items) => {
                self.spend(items.len())?;
                found.extend(items);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    /// The value and everything in it that holds something, outer before inner. A stack of its own keeps deep values
    /// from nesting calls.
    fn descend<'a>(&mut self, value: &'a Value, found: &mut Vec<&'a Value>) -> Result<(), PathError> {
        let mut stack = vec![value];
        while let Some(value) = stack.pop() {
            let holds_something = match value {
                Value::Object(map) => !map.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::String(text) => !text.is_empty(),
                Value::Null | Value::Bool(_) | Value::Number(_) => false,
            };
            if !holds_something {
                continue;
            }
            found.push(value);
            let before = stack.len();
            self.children(value, &mut stack)?;
            stack[before..].reverse();
        }
        Ok(())
    }

    fn slice<'a>(&mut self, slice: Slice, values: &[&'a Value]) -> Found<'a> {
        let mut found = Vec::new();
        for &value in values {
            if value.is_null() {
                continue;
            }
            let Value::Array(items) = value else {
                return failed(format!("{} is not array or slice", go_type(value)), true);
            };
            let length = items.len() as i64;
            let mut start = slice.start.unwrap_or(0);
            if start < 0 {
                start = start.saturating_add(length);
            }
            let mut end = slice.end.unwrap_or(length);
            if end < 0 || (end == 0 && slice.end_is_derived) {
                end = end.saturating_add(length);
            }
            if start == end {
                return Ok(found);
            }
            if start < 0 || start >= length {
                return failed(format!("array index out of bounds: index {start}, length {length}"), true);
            }
            if end < 0 || end > length {
                let last = end - 1;
                return failed(format!("array index out of bounds: index {last}, length {length}"), true);
            }
            if start > end {
                return failed(format!("starting index {start} is greater than ending index {end}"), true);
            }
            let step = slice.step.unwrap_or(1);
            if step <= 0 {
                return failed("step must be > 0", true);
            }
            let chosen = &items[start as usize..end as usize];
            self.spend(chosen.len())?;
            found.extend(chosen.iter().step_by(usize::try_from(step).unwrap_or(usize::MAX)));
        }
        Ok(found)
    }

    fn filter<'a>(
        &mut self,
        left: &'a [Node],
        test: &Test,
        right: &'a [Node],
        values: &[&'a Value],
    ) -> Found<'a> {
        let mut found = Vec::new();
        for &value in values {
            let Value::Array(items) = value else {
                return failed(format!("{value} is not array or slice and cannot be filtered"), true);
            };
            for item in items {
                self.spend(1)?;
                let lefts = self.list(left, vec![item]);
                if *test == Test::Exists {
                    let exists = match &lefts {
                        Ok(lefts) => !lefts.is_empty(),
                        Err(error) => error.left_over,
                    };
                    self.spend(0)?;
                    if exists {
                        found.push(item);
                    }
                    continue;
                }
                let lefts = lefts.map_err(|error| PathError { left_over: true, ..error })?;
                let Some(left) = only(&lefts)? else { continue };
                let rights =
                    self.list(right, vec![item]).map_err(|error| PathError { left_over: true, ..error })?;
                let Some(right) = only(&rights)? else { continue };
                let passes = compare(left, test, right)
                    .map_err(|message| PathError { message, left_over: !found.is_empty() })?;
                if passes {
                    found.push(item);
                }
            }
        }
        Ok(found)
    }
}

/// The one value of a side of a comparison, if there is any.
fn only<'a>(values: &[&'a Value]) -> Result<Option<&'a Value>, PathError> {
    match values {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => failed("can only compare one element at a time", true),
    }
}

/// Only values of one basic type can be compared; a whole number and a fraction are of two.
fn compare(left: &Value, test: &Test, right: &Value) -> Result<bool, String> {
    const BAD_TYPE: &str = "invalid type for comparison";
    let order = match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => {
            return match test {
                Test::Equal => Ok(a == b),
                Test::NotEqual => Ok(a != b),
                Test::Unknown(operator) => Err(format!("unrecognized filter operator {operator}")),
                _ => Err(BAD_TYPE.to_owned()),
            };
        }
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            (None, None) => a.as_f64().partial_cmp(&b.as_f64()),
            _ => return Err("incompatible types for comparison".to_owned()),
        },
        (Value::Null | Value::Array(_) | Value::Object(_), _)
        | (_, Value::Null | Value::Array(_) | Value::Object(_)) => {
            return Err(BAD_TYPE.to_owned());
        }
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    match test {
        Test::Equal => Ok(order == Some(Ordering::Equal)),
        Test::NotEqual => Ok(order != Some(Ordering::Equal)),
        Test::Less => Ok(order == Some(Ordering::Less)),
        Test::LessOrEqual => Ok(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        Test::Greater => Ok(order == Some(Ordering::Greater)),
        Test::GreaterOrEqual => Ok(order != Some(Ordering::Less)),
        Test::Exists => Ok(true),
        Test::Unknown(operator) => Err(format!("unrecognized filter operator {operator}")),
    }
}

/// A value's type in the words of Go.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::super::JsonPath;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object() -> Value {
        json!({
            "metadata": {"name": "p1", "labels": {"a.b/c": "dotted", "x": "y"}},
            "spec": {"list": [0, 1, 2, 3, 4], "ratio": 0.5, "empty": [], "none": null, "flag": true},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Available", "status": "False", "n": 2, "extra": {}},
                {"type": "Odd)", "status": "Unknown", "n": 3}
            ]}
        })
    }

    fn first_list(path: &str) -> Result<Vec<Value>, String> {
        let object = object();
        let compiled = JsonPath::parse_path(path)?;
        let lists = compiled.find(&object).map_err(|error| error.to_string())?;
        Ok(lists.into_iter().next().unwrap_or_default().into_iter().cloned().collect())
    }

    fn check(cases: &[(&str, Value)]) {
        for (path, want) in cases {
            assert_eq!(first_list(path), Ok(want.as_array().unwrap().clone()), "{path}");
        }
    }

    #[test]
    fn fields_are_found_by_name_and_missing_ones_are_nothing() {
        check(&[
            (".metadata.name", json!(["p1"])),
            ("$.metadata.name", json!(["p1"])),
            (".metadata['name']", json!(["p1"])),
            (".metadata.labels.a\\.b/c", json!(["dotted"])),
            (".metadata.labels['a\\.b/c']", json!(["dotted"])),
            (".missing.deeper", json!([])),
            (".spec.none", json!([null])),
            (".spec.none.x", json!([])),
            (".metadata.name.x", json!([])),
        ]);
    }

    #[test]
    fn indices_slices_and_unions_choose_items() {
        check(&[
            (".spec.list[0]", json!([0])),
            (".spec.list[-1]", json!([4])),
            (".spec.list[1:3]", json!([1, 2])),
            (".spec.list[-2:]", json!([3, 4])),
            (".spec.list[::2]", json!([0, 2, 4])),
            (".spec.list[:]", json!([0, 1, 2, 3, 4])),
            (".spec.list[*]", json!([0, 1, 2, 3, 4])),
            (".spec.list[0,2]", json!([0, 2])),
            (".spec.list[2:2]", json!([])),
            (".metadata['name', 'missing']", json!(["p1"])),
            (".spec.none[0]", json!([])),
        ]);
        for (path, want) in [
            (".spec.list[5]", "array index out of bounds: index 5, length 5"),
            (".spec.list[0:9]", "array index out of bounds: index 8, length 5"),
            (".spec.list[3:1]", "starting index 3 is greater than ending index 1"),
            (".spec.list[::0]", "step must be > 0"),
            (".metadata.name[0]", "string is not array or slice"),
            (".spec[0]", "map[string]interface {} is not array or slice"),
        ] {
            assert_eq!(first_list(path).unwrap_err(), want, "{path}");
        }
    }

    #[test]
    fn filters_compare_values_of_one_type() {
        check(&[
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
            (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
            (".status.conditions[?(@.type!=\"Ready\")].n", json!([2, 3])),
            (".status.conditions[?(@.n>1)].n", json!([2, 3])),
            (".status.conditions[?(@.n>=2)].n", json!([2, 3])),
            (".status.conditions[?(@.n<2)].n", json!([1])),
            (".status.conditions[?(@.n<=2)].n", json!([1, 2])),
            (".status.conditions[?(@.extra)].n", json!([2])),
            (".status.conditions[?(@.type==\"Odd)\")].n", json!([3])),
            (".status.conditions[?(@.missing==1)].n", json!([])),
            (".spec.list[?(@>2)]", json!([3, 4])),
            (".spec.empty[?(@.x)]", json!([])),
        ]);
        for (path, want) in [
            (".status.conditions[?(@.n==\"1\")]", "incompatible types for comparison"),
            (".status.conditions[?(@.n==1.5)]", "incompatible types for comparison"),
            (".status.conditions[?(@.n=!1)]", "unrecognized filter operator =!"),
            (".status.conditions[?(@.*==1)]", "can only compare one element at a time"),
        ] {
            assert_eq!(first_list(path).unwrap_err(), want, "{path}");
        }
        assert!(first_list(".metadata[?(@.x)]").unwrap_err().ends_with("cannot be filtered"));
    }

    #[test]
    fn descent_and_wildcards_reach_everything() {
        check(&[
            ("..name", json!(["p1"])),
            ("..n", json!([1, 2, 3])),
            (".metadata.labels.*", json!(["dotted", "y"])),
            (".metadata.name.*", json!([112, 49])),
            (".status.conditions[*].type", json!(["Ready", "Available", "Odd)"])),
            ("..conditions[0].type", json!(["Ready"])),
        ]);
    }

    #[test]
    fn literals_stand_for_themselves() {
        check(&[("'x'", json!(["x"])), ("5", json!([5])), ("-1.5", json!([-1.5])), ("true", json!([true]))]);
    }

    #[test]
    fn grammar_errors_are_told() {
        for (path, want) in [
            (".spec[", "unterminated array"),
            (".spec[a]", "invalid array index a"),
            (".spec[1:2:3:4]", "invalid array index 1:2:3:4"),
            (".spec[?(@.x]", "unterminated filter"),
            (".spec[?(@.x)", "unclosed array expect ]"),
            ("'x", "unterminated quoted string"),
            ("....", "invalid multiple recursive descent"),
            ("#", "unrecognized character in action: U+0023 '#'"),
            ("1.2.3", "cannot parse number 1.2.3"),
        ] {
            assert_eq!(JsonPath::parse_path(path).unwrap_err(), want, "{path}");
        }
        assert_eq!(JsonPath::parse("{.a").unwrap_err(), "unclosed action");
        assert!(JsonPath::parse(&"x".repeat(super::super::PATH_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn templates_keep_their_text() {
        let object = object();
        let path = JsonPath::parse("name: {.metadata.name}, {'x'}").unwrap();
        let lists = path.find(&object).unwrap();
        let flat: Vec<&Value> = lists.into_iter().flatten().collect();
        assert_eq!(flat, [&json!("name: "), &json!("p1"), &json!(", "), &json!("x")]);
    }

    #[test]
    fn evaluation_has_a_budget() {
        let wide: Value = (0..2000).map(|n| json!({"a": [n, {"b": [n]}]})).collect();
        let greedy = JsonPath::parse_path(".. .* .. .* .. .* .. .*").unwrap();
        assert!(greedy.find(&wide).unwrap_err().to_string().contains("looks at more than"));
        // Not even where an error would pass for a yes.
        let hidden = JsonPath::parse_path("[?(@.. .* .. .* .. .* .. .*)]").unwrap();
        assert!(hidden.find(&json!([wide])).unwrap_err().to_string().contains("looks at more than"));
    }

    proptest! {
        #[test]
        fn any_path_is_evaluated_or_refused(path in "[.a-c*?()@$\\[\\]'\"0-9:,=<>!\\\\ {}\\-]{0,30}") {
            if let Ok(path) = JsonPath::parse_path(&path) {
                let _ = path.find(&object());
            }
            let _ = JsonPath::parse(&path);
        }
    }
}
