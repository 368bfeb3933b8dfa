//! Options of deletions, from the body or, without one, from the query.

use serde_json::Value;

use super::refuse;
use super::write::check_dry_run;
use crate::body::{not_registered, type_meta};
use crate::field_error::{invalid_raw, not_supported};
use crate::gotext::json_kind;
use crate::query::Query;
use crate::status::{Cause, Status};

/// What happens to the objects that the deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// They are deleted first.
    Foreground,
    /// They are deleted afterwards.
    Background,
    /// They are kept.
    Orphan,
}

/// What must still hold of an object for it to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// It is this very object.
    pub uid: Option<String>,
    /// It has not changed since.
    pub resource_version: Option<String>,
}

/// Options of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Seconds the object may take to end; nothing leaves it to the object.
    pub grace_period_seconds: Option<i64>,
    /// What must still hold.
    pub preconditions: Preconditions,
    /// The old way to say whether dependents are kept.
    pub orphan_dependents: Option<bool>,
    /// What happens to dependents.
    pub propagation: Option<Propagation>,
    /// Do everything but keep the result.
    pub dry_run: bool,
}

/// Options as they were sent, before they are checked.
#[derive(Default)]
struct Said {
    options: DeleteOptions,
    propagation: Option<String>,
    dry_run: Vec<String>,
}

impl DeleteOptions {
    /// Reads and checks options. A body, already decoded from whatever form it had, stands alone: the query counts
    /// only without one, as on a real server.
    pub fn parse(query: &Query, body: Option<&Value>) -> Result<Self, Status> {
        let said = match body {
            Some(body) => from_body(body).map_err(Status::bad_request)?,
            None => from_query(query)?,
        };
        let mut wrong: Vec<Cause> = Vec::new();
        let Said { mut options, propagation, dry_run } = said;
        if let Some(text) = &propagation {
            let shown = Value::from(text.as_str()).to_string();
            if options.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                wrong.push(invalid_raw("propagationPolicy", &shown, detail));
            }
            options.propagation = match text.as_str() {
                "Foreground" => Some(Propagation::Foreground),
                "Background" => Some(Propagation::Background),
                "Orphan" => Some(Propagation::Orphan),
                _ => {
                    let supported = ["Foreground", "Background", "Orphan", "nil"];
                    wrong.push(not_supported("propagationPolicy", &shown, &supported));
                    None
                }
            };
        }
        let values: Vec<&str> = dry_run.iter().map(String::as_str).collect();
        check_dry_run(&values, &mut wrong);
        options.dry_run = !values.is_empty();
        refuse("DeleteOptions", &wrong)?;
        Ok(options)
    }
}

fn from_query(query: &Query) -> Result<Said, Status> {
    let some = |name: &str| query.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
    Ok(Said {
        options: DeleteOptions {
            grace_period_seconds: query.integer("gracePeriodSeconds")?,
            preconditions: Preconditions { uid: some("uid"), resource_version: some("resourceVersion") },
            orphan_dependents: query.boolean("orphanDependents"),
            ..DeleteOptions::default()
        },
        propagation: query.get("propagationPolicy").map(str::to_owned),
        dry_run: query.all("dryRun").map(str::to_owned).collect(),
    })
}

/// Reads a body; the error is the sentence that Go's decoder gives for a field of the wrong type.
fn from_body(body: &Value) -> Result<Said, String> {
    let wrong = |field: &str, value: &Value, wanted: &str| {
        let shown = match value {
            Value::Number(number) if wanted == "int64" => format!("number {number}"),
            other => json_kind(other).to_owned(),
        };
        format!("json: cannot unmarshal {shown} into Go struct field DeleteOptions.{field} of type {wanted}")
    };
    let head = type_meta(body)?;
    if !matches!(head.kind.as_str(), "" | "DeleteOptions") {
        return Err(not_registered(&head));
    }
    let Value::Object(map) = body else { return Ok(Said::default()) };
    let field = |name: &str| map.get(name).filter(|value| !value.is_null());
    let text = |path: &str, value: Option<&Value>, wanted: &str| {
        value
            .map(|value| value.as_str().map(str::to_owned).ok_or_else(|| wrong(path, value, wanted)))
            .transpose()
    };
    let propagation = text("propagationPolicy", field("propagationPolicy"), "v1.DeletionPropagation")?;
    let mut said = Said { propagation, ..Said::default() };
    let options = &mut said.options;
    if let Some(value) = field("gracePeriodSeconds") {
        let seconds = value.as_i64().ok_or_else(|| wrong("gracePeriodSeconds", value, "int64"))?;
        options.grace_period_seconds = Some(seconds);
    }
    if let Some(value) = field("orphanDependents") {
        options.orphan_dependents =
            Some(value.as_bool().ok_or_else(|| wrong("orphanDependents", value, "bool"))?);
    }
    if let Some(value) = field("preconditions") {
        if !value.is_object() {
            return Err(wrong("preconditions", value, "v1.Preconditions"));
        }
        let given = |name: &str| value.get(name).filter(|value| !value.is_null());
        options.preconditions.uid = text("preconditions.uid", given("uid"), "types.UID")?;
        options.preconditions.resource_version =
            text("preconditions.resourceVersion", given("resourceVersion"), "string")?;
    }
    if let Some(value) = field("dryRun") {
        let items = value.as_array().ok_or_else(|| wrong("dryRun", value, "[]string"))?;
        for item in items {
            said.dry_run.push(item.as_str().ok_or_else(|| wrong("dryRun", item, "string"))?.to_owned());
        }
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(query: &str, body: Option<&Value>) -> Result<DeleteOptions, String> {
        DeleteOptions::parse(&Query::parse(Some(query)), body).map_err(|status| status.message)
    }

    #[test]
    fn a_body_stands_alone() {
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground",
                          "gracePeriodSeconds": 0, "preconditions": {"uid": "u", "resourceVersion": "5"}, "dryRun": ["All"]});
        let options = parse("propagationPolicy=Orphan", Some(&body)).unwrap();
        assert_eq!(options.propagation, Some(Propagation::Foreground));
        assert_eq!(options.grace_period_seconds, Some(0));
        assert_eq!(options.preconditions.uid.as_deref(), Some("u"));
        assert!(options.dry_run);
        assert_eq!(parse("propagationPolicy=Orphan", Some(&json!({}))).unwrap(), DeleteOptions::default());
    }

    #[test]
    fn without_a_body_the_query_counts() {
        let options =
            parse("propagationPolicy=Orphan&gracePeriodSeconds=5&uid=u&resourceVersion=7", None).unwrap();
        assert_eq!(options.propagation, Some(Propagation::Orphan));
        assert_eq!(options.grace_period_seconds, Some(5));
        assert_eq!(options.preconditions.resource_version.as_deref(), Some("7"));
        assert_eq!(
            parse("gracePeriodSeconds=x", None).unwrap_err(),
            "strconv.ParseInt: parsing \"x\": invalid syntax"
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
        assert_eq!(
            parse("", Some(&both)).unwrap_err(),
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"
        );
        assert_eq!(
            parse("propagationPolicy=Later", None).unwrap_err(),
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Later\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        );
        assert!(parse("dryRun=x", None).unwrap_err().contains("dryRun: Unsupported value: [\"x\"]"));
    }

    #[test]
    fn fields_of_the_wrong_type_are_refused() {
        for body in [
            json!([]),
            json!({"gracePeriodSeconds": "5"}),
            json!({"gracePeriodSeconds": 1.5}),
            json!({"orphanDependents": 1}),
            json!({"preconditions": []}),
            json!({"preconditions": {"uid": 1}}),
            json!({"dryRun": "All"}),
            json!({"kind": 1}),
            json!({"kind": "Pod"}),
        ] {
            assert!(parse("", Some(&body)).is_err(), "{body}");
        }
        assert_eq!(
            parse("", Some(&json!({"kind": "Pod", "apiVersion": "v1"}))).unwrap_err(),
            "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        assert_eq!(
            parse("", Some(&json!({"propagationPolicy": 5}))).unwrap_err(),
            "json: cannot unmarshal number into Go struct field DeleteOptions.propagationPolicy of type v1.DeletionPropagation"
        );
        assert_eq!(
            parse("", Some(&json!({"gracePeriodSeconds": 1.5}))).unwrap_err(),
            "json: cannot unmarshal number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
        );
    }
}
