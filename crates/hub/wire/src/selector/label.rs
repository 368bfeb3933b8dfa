//! Label selectors: `a=b,c!=d,e in (f,g),h,!i,j>5`.

use std::fmt;

use berth_text::names;
use serde_json::{Map, Value};

use super::parser;
use crate::field_error;
use crate::gotext::quote;
use crate::status::{Cause, Status};

/// The labels of an object.
pub trait Labels {
    /// The value of a label, when the object has it.
    fn label(&self, key: &str) -> Option<&str>;
}

/// Labels in order of their keys.
impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn label(&self, key: &str) -> Option<&str> {
        let at = self.binary_search_by(|(own, _)| own.as_ref().cmp(key)).ok()?;
        Some(self[at].1.as_ref())
    }
}

impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

impl<L: Labels + ?Sized> Labels for &L {
    fn label(&self, key: &str) -> Option<&str> {
        (**self).label(key)
    }
}

impl<L: Labels> Labels for Option<L> {
    fn label(&self, key: &str) -> Option<&str> {
        self.as_ref()?.label(key)
    }
}

/// How a label and the values of a requirement go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Equals,
    /// `==`
    DoubleEquals,
    /// `!=`: also true where the label is missing.
    NotEquals,
    /// `in`
    In,
    /// `notin`: also true where the label is missing.
    NotIn,
    /// The key alone.
    Exists,
    /// `!` before the key.
    DoesNotExist,
    /// `>`, between integers.
    GreaterThan,
    /// `<`, between integers.
    LessThan,
}

/// One condition of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// In order, without repetition.
    values: Box<[Box<str>]>,
}

impl Requirement {
    /// A requirement, or what is wrong with it as a sentence.
    pub fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, String> {
        values.sort_unstable();
        values.dedup();
        let mut wrong: Vec<Cause> = Vec::new();
        if let Some(cause) = key_cause(key, "key") {
            wrong.push(cause);
        }
        let shown = || serde_json::to_string(&values).unwrap_or_default();
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                let detail = "for 'in', 'notin' operators, values set can't be empty";
                wrong.push(field_error::invalid_raw("values", &shown(), detail));
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                let detail = "exact-match compatibility requires one single value";
                wrong.push(field_error::invalid_raw("values", &shown(), detail));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                let detail = "values set must be empty for exists and does not exist";
                wrong.push(field_error::invalid_raw("values", &shown(), detail));
            }
            Operator::GreaterThan | Operator::LessThan => {
                if values.len() != 1 {
                    let detail = "for 'Gt', 'Lt' operators, exactly one value is required";
                    wrong.push(field_error::invalid_raw("values", &shown(), detail));
                }
                for (index, value) in values.iter().enumerate() {
                    if value.parse::<i64>().is_err() {
                        let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                        wrong.push(field_error::invalid(&format!("values[{index}]"), value, detail));
                    }
                }
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                let field = format!("values[{index}][{key}]");
                wrong.push(field_error::invalid(&field, value, &problems.join("; ")));
            }
        }
        if !wrong.is_empty() {
            return Err(sentence(&wrong));
        }
        let values = values.into_iter().map(String::into_boxed_str).collect();
        Ok(Requirement { key: key.into(), operator, values })
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, in order and without repetition.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(AsRef::as_ref)
    }

    fn has_value(&self, value: &str) -> bool {
        match self.values.as_ref() {
            [one] => one.as_ref() == value,
            many => many.binary_search_by(|own| own.as_ref().cmp(value)).is_ok(),
        }
    }

    /// Whether labels meet it.
    pub fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        let found = labels.label(&self.key);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                found.is_some_and(|v| self.has_value(v))
            }
            Operator::NotIn | Operator::NotEquals => !found.is_some_and(|v| self.has_value(v)),
            Operator::Exists => found.is_some(),
            Operator::DoesNotExist => found.is_none(),
            Operator::GreaterThan => self.compare(found, |label, own| label > own),
            Operator::LessThan => self.compare(found, |label, own| label < own),
        }
    }

    fn compare(&self, found: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let label = found.and_then(|value| value.parse().ok());
        let own = self.values.first().and_then(|value| value.parse().ok());
        matches!((label, own), (Some(label), Some(own)) if holds(label, own))
    }
}

pub(super) fn key_cause(key: &str, field: &str) -> Option<Cause> {
    let problems = names::label_key(key);
    (!problems.is_empty()).then(|| field_error::invalid(field, key, &problems.join("; ")))
}

/// Complaints as one sentence.
pub(super) fn sentence(causes: &[Cause]) -> String {
    let all: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    match all.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let values = self.values.join(",");
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// Conditions that must all hold. Without any, every object is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    /// In order of their keys.
    requirements: Box<[Requirement]>,
    /// Selects nothing, whatever the requirements: a selector object that is absent.
    selects_nothing: bool,
}

impl LabelSelector {
    /// Selects every object.
    pub fn everything() -> Self {
        LabelSelector::default()
    }

    /// Selects no object.
    pub fn nothing() -> Self {
        LabelSelector { selects_nothing: true, ..LabelSelector::default() }
    }

    /// Selects what meets all of the requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector { requirements: requirements.into(), selects_nothing: false }
    }

    /// Reads a selector; the error is the sentence a Kubernetes server gives.
    pub fn parse(text: &str) -> Result<Self, String> {
        parser::requirements(text).map(Self::new)
    }

    /// Reads the selector of a query; the error is the answer to the request.
    pub fn parse_query(text: &str) -> Result<Self, Status> {
        Self::parse(text).map_err(Status::bad_request)
    }

    /// Reads the object form with `matchLabels` and `matchExpressions`. An absent selector selects nothing, an empty
    /// one everything.
    pub fn from_object(selector: &Value) -> Result<Self, String> {
        let Value::Object(map) = selector else {
            return if selector.is_null() {
                Ok(Self::nothing())
            } else {
                Err("a label selector is an object with matchLabels and matchExpressions".to_owned())
            };
        };
        let mut requirements = Vec::new();
        for (key, value) in map.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value =
                value.as_str().ok_or_else(|| format!("the value of label {} is not a string", quote(key)))?;
            requirements.push(Requirement::new(key, Operator::Equals, vec![value.to_owned()])?);
        }
        for expression in map.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(format!("{} is not a valid label selector operator", quote(other))),
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(|value| value.as_str().map(str::to_owned)).collect();
            requirements.push(Requirement::new(text("key"), operator, values)?);
        }
        Ok(Self::new(requirements))
    }

    /// The requirements, in order of their keys.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether it selects every object.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.selects_nothing
    }

    /// Whether it selects an object with these labels.
    pub fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        !self.selects_nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether it selects an object, by the labels in its metadata.
    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
        self.matches(&labels.and_then(Value::as_object))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn canonical(text: &str) -> String {
        LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
    }

    #[test]
    fn the_grammar_has_every_operator() {
        for (text, want) in [
            ("", ""),
            ("  ", ""),
            ("x=a,y=b,z=c", "x=a,y=b,z=c"),
            ("x==a , z in (c, b ,a)", "x==a,z in (a,b,c)"),
            ("b!=c,a", "a,b!=c"),
            ("!x", "!x"),
            ("x notin (a,,b)", "x notin (,a,b)"),
            ("x in ()", "x in ()"),
            ("x in (,)", "x in ()"),
            ("x in (a,)", "x in (,a)"),
            ("x>1,y<5", "x>1,y<5"),
            ("x=", "x="),
            ("x=,y", "x=,y"),
            ("in in (in, notin)", "in in (in,notin)"),
            ("notin=in", "notin=in"),
            ("a.b/c in (d)", "a.b/c in (d)"),
        ] {
            assert_eq!(canonical(text), want, "{text}");
        }
    }

    #[test]
    fn complaints_are_those_of_the_real_server() {
        for (text, want) in [
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a,", "found '', expected: identifier after ','"),
            (",a", "found ',', expected: !, identifier, or 'end of string'"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
            ("a==(b)", "unable to parse requirement: found '(', expected: identifier"),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap_err(), want, "{text}");
        }
        assert!(LabelSelector::parse("a/b/c=d").unwrap_err().starts_with(
            "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must consist"
        ));
        assert!(LabelSelector::parse("a=-").unwrap_err().starts_with(
            "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid label must be"
        ));
    }

    #[test]
    fn matching_follows_the_operators() {
        let labels = [("app", "web"), ("replicas", "5"), ("tier", "front")];
        let matches = |text: &str| LabelSelector::parse(text).unwrap().matches(&labels[..]);
        for text in [
            "",
            "app=web",
            "app==web,tier",
            "app!=db",
            "missing!=x",
            "missing notin (a)",
            "!missing",
            "app in (db,web)",
            "replicas>4",
            "replicas<6",
        ] {
            assert!(matches(text), "{text}");
        }
        for text in [
            "app=db",
            "missing",
            "!app",
            "app in (db)",
            "app notin (web)",
            "replicas>5",
            "tier>1",
            "missing<1",
        ] {
            assert!(!matches(text), "{text}");
        }
    }

    #[test]
    fn the_object_form_matches_objects() {
        let selector = LabelSelector::from_object(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "env", "operator": "NotIn", "values": ["dev"]},
                {"key": "app", "operator": "Exists"},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }));
        let selector = selector.unwrap();
        assert_eq!(selector.to_string(), "app=web,app,env notin (dev),!old,tier in (a,b)");
        let matches = |labels: Value| selector.matches_object(&json!({"metadata": {"labels": labels}}));
        assert!(matches(json!({"app": "web", "tier": "a"})));
        assert!(!matches(json!({"app": "web", "tier": "c"})));
        assert!(!matches(json!({"app": "web", "tier": "a", "env": "dev"})));
        assert!(!matches(json!({"app": "web", "tier": "a", "old": ""})));
        assert!(!matches(json!({"tier": "a"})));
        assert!(!selector.matches_object(&json!({})));
        assert!(LabelSelector::everything().matches_object(&json!({})));
        assert!(!LabelSelector::nothing().matches_object(&json!({})));
    }

    #[test]
    fn the_object_form_means_the_same() {
        let selector = LabelSelector::from_object(&json!({
            "matchLabels": {"b": "c"},
            "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["y", "x"]}, {"key": "z", "operator": "Exists"}],
        }));
        assert_eq!(selector.unwrap().to_string(), "a notin (x,y),b=c,z");
        assert!(!LabelSelector::from_object(&Value::Null).unwrap().matches(&Map::new()));
        assert!(LabelSelector::from_object(&json!({})).unwrap().matches(&Map::new()));
        let bad = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
        assert_eq!(
            LabelSelector::from_object(&bad).unwrap_err(),
            "\"Near\" is not a valid label selector operator"
        );
        for (operator, values) in [("In", json!([])), ("NotIn", json!(null)), ("Exists", json!(["a"]))] {
            let bad = json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
            assert!(LabelSelector::from_object(&bad).is_err(), "{operator}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_selector_or_a_sentence(text in "[ab=!<>(),in \u{0}é]{0,24}") {
            if let Ok(selector) = LabelSelector::parse(&text) {
                // A canonical form is a fixed point.
                let again = LabelSelector::parse(&selector.to_string()).unwrap();
                prop_assert_eq!(again.to_string(), selector.to_string());
            }
        }

        #[test]
        fn a_selector_and_its_negation_never_agree(value in "[a-c]", label in proptest::option::of("[a-c]")) {
            let labels: Vec<(String, String)> = label.into_iter().map(|v| ("k".to_owned(), v)).collect();
            let yes = LabelSelector::parse(&format!("k in ({value})")).unwrap().matches(labels.as_slice());
            let no = LabelSelector::parse(&format!("k notin ({value})")).unwrap().matches(labels.as_slice());
            prop_assert_ne!(yes, no);
        }
    }
}
