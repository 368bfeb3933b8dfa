//! Whatever the reference accepts, we accept, read and write back.

use berth_api::{Object, kind_info};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::Value;

use crate::{shared, strategy};

/// The document as it should be written back: nulls are absent, times are in UTC with whole seconds.
pub(crate) fn normalise(value: &mut Value, schema: &JSONSchemaProps) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            for (name, field) in fields {
                if let Some(schema) = schema.properties.as_ref().and_then(|properties| properties.get(name)) {
                    normalise(field, schema);
                }
            }
        }
        Value::Array(entries) => {
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                for entry in entries {
                    normalise(entry, schema);
                }
            }
        }
        Value::String(text) if schema.format.as_deref() == Some("date-time") => {
            let time = berth_api::time::parse(text).unwrap();
            *text = jiff::fmt::strtime::format("%Y-%m-%dT%H:%M:%SZ", time).unwrap();
        }
        _ => {}
    }
}

/// Reads a document and checks that it is written back unchanged, but for defaults and the stored version.
pub(crate) fn round_trip(document: &Value) -> Result<Object, String> {
    let reading = Object::read(document.clone()).map_err(|error| error.to_string())?;
    let info =
        kind_info(document["apiVersion"].as_str().unwrap(), document["kind"].as_str().unwrap()).unwrap();
    let mut expected = document.clone();
    berth_api::schema::prepare(&mut expected, info.structure());
    normalise(&mut expected, info.schema());
    let written = reading.object.to_value();
    expected["apiVersion"] = written["apiVersion"].clone();
    if written == expected {
        Ok(reading.object)
    } else {
        Err(format!("read {expected:#}\nwrote {written:#}"))
    }
}

#[test]
fn whatever_the_reference_accepts_is_accepted_read_and_written_back() {
    for crd in shared::reference_crds() {
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            let api_version = format!("{}/{}", crd.spec.group, version.name);
            let objects = strategy::object(
                schema,
                api_version,
                crd.spec.names.kind.clone(),
                crd.spec.scope == "Namespaced",
            );
            let mut runner =
                TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
            let result = runner.run(&objects, |object| {
                let unknown = Object::read(object.clone())
                    .map_err(|error| TestCaseError::fail(error.to_string()))?
                    .unknown_fields;
                prop_assert!(unknown.is_empty(), "{unknown:?}");
                round_trip(&object).map(|_| ()).map_err(TestCaseError::fail)
            });
            if let Err(error) = result {
                panic!("{}: {error}", crd.spec.names.kind);
            }
        }
    }
}

#[test]
fn whatever_our_own_definitions_accept_is_read_and_written_back() {
    for crd in berth_api::crds() {
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            let objects = strategy::object(
                schema,
                format!("{}/{}", crd.spec.group, version.name),
                crd.spec.names.kind.clone(),
                crd.spec.scope == "Namespaced",
            );
            let mut runner =
                TestRunner::new(Config { cases: 50, failure_persistence: None, ..Config::default() });
            let result =
                runner.run(&objects, |object| round_trip(&object).map(|_| ()).map_err(TestCaseError::fail));
            if let Err(error) = result {
                panic!("{}: {error}", crd.spec.names.kind);
            }
        }
    }
}
