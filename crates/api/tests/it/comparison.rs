//! Our definitions beside the reference ones: the same or wider in every place, never narrower.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::shared;

/// Where ours is meant to differ, and why.
const INTENDED: &[(&str, &str)] = &[
    // `spec: ~` is dropped and defaulted, so that the placement applies.
    ("Placement.spec", "default"),
];

fn compare(reference: &JSONSchemaProps, ours: &JSONSchemaProps, path: &str, found: &mut Vec<String>) {
    let mut differ = |what: &str, reference: String, ours: String| {
        if !INTENDED.contains(&(path, what)) {
            found.push(format!("{path}: {what} is {ours}, in the reference {reference}"));
        }
    };
    macro_rules! same {
        ($($field:ident as $name:literal),+) => {$(
            if reference.$field != ours.$field {
                differ($name, format!("{:?}", reference.$field), format!("{:?}", ours.$field));
            }
        )+};
    }
    same!(
        type_ as "type", format as "format", pattern as "pattern", default as "default", nullable as "nullable",
        x_kubernetes_int_or_string as "int-or-string", x_kubernetes_list_type as "list-type",
        x_kubernetes_list_map_keys as "list-map-keys", x_kubernetes_map_type as "map-type",
        x_kubernetes_preserve_unknown_fields as "preserve-unknown-fields",
        x_kubernetes_validations as "validations", any_of as "anyOf", all_of as "allOf", one_of as "oneOf", not as "not"
    );
    macro_rules! limit {
        ($($field:ident as $name:literal : $narrower:expr),+) => {$(
            let narrower = match (reference.$field, ours.$field) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(reference), Some(ours)) => $narrower(ours, reference),
            };
            if narrower {
                differ($name, format!("{:?}", reference.$field), format!("{:?}", ours.$field));
            }
        )+};
    }
    limit!(
        minimum as "minimum": |ours, reference| ours > reference,
        maximum as "maximum": |ours, reference| ours < reference,
        min_length as "minLength": |ours, reference| ours > reference,
        max_length as "maxLength": |ours, reference| ours < reference,
        min_items as "minItems": |ours, reference| ours > reference,
        max_items as "maxItems": |ours, reference| ours < reference,
        min_properties as "minProperties": |ours, reference| ours > reference,
        max_properties as "maxProperties": |ours, reference| ours < reference
    );
    let words = |schema: &JSONSchemaProps| -> Option<BTreeSet<String>> {
        schema.enum_.as_ref().map(|words| words.iter().map(|word| word.0.to_string()).collect())
    };
    match (words(reference), words(ours)) {
        (_, None) => {}
        (Some(reference), Some(ours)) if reference.is_subset(&ours) => {}
        (reference, ours) => differ("enum", format!("{reference:?}"), format!("{ours:?}")),
    }
    let required = |schema: &JSONSchemaProps| -> BTreeSet<String> {
        schema.required.iter().flatten().cloned().collect()
    };
    if !required(ours).is_subset(&required(reference)) {
        differ("required", format!("{:?}", required(reference)), format!("{:?}", required(ours)));
    }

    for (name, reference) in reference.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        match ours.properties.as_ref().and_then(|properties| properties.get(name)) {
            Some(ours) => compare(reference, ours, &path, found),
            None => found.push(format!("{path}: missing")),
        }
    }
    match (&reference.items, &ours.items) {
        (Some(JSONSchemaPropsOrArray::Schema(reference)), Some(JSONSchemaPropsOrArray::Schema(ours))) => {
            compare(reference, ours, &format!("{path}[]"), found);
        }
        (None, None) => {}
        _ => found.push(format!("{path}: items differ in kind")),
    }
    match (&reference.additional_properties, &ours.additional_properties) {
        (Some(JSONSchemaPropsOrBool::Schema(reference)), Some(JSONSchemaPropsOrBool::Schema(ours))) => {
            compare(reference, ours, &format!("{path}{{}}"), found);
        }
        (reference, ours) if reference == ours => {}
        _ => found.push(format!("{path}: additionalProperties differ in kind")),
    }
}

fn compare_definitions(
    reference: &CustomResourceDefinition,
    ours: &CustomResourceDefinition,
    found: &mut Vec<String>,
) {
    let (kind, spec, our_spec) = (&reference.spec.names.kind, &reference.spec, &ours.spec);
    let (names, our_names) = (&spec.names, &our_spec.names);
    if (&names.plural, &names.singular, &names.list_kind, &names.short_names)
        != (&our_names.plural, &our_names.singular, &our_names.list_kind, &our_names.short_names)
    {
        found.push(format!("{kind}: names differ: {names:?} and {our_names:?}"));
    }
    if (&spec.group, &spec.scope) != (&our_spec.group, &our_spec.scope) {
        found.push(format!("{kind}: group or scope differ"));
    }
    for version in &spec.versions {
        // Every served version of ours has the reference's newest shape.
        for our_version in &our_spec.versions {
            let columns = |version: &Option<Vec<_>>| version.clone().unwrap_or_default();
            if columns(&version.additional_printer_columns)
                != columns(&our_version.additional_printer_columns)
            {
                found.push(format!("{kind}: printer columns differ"));
            }
            if version.subresources != our_version.subresources {
                found.push(format!("{kind}: subresources differ"));
            }
            let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            let our_schema = our_version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            compare(schema, our_schema, kind, found);
        }
        let stored = our_spec.versions.iter().find(|ours| ours.storage).unwrap();
        if (&version.name, version.storage) != (&stored.name, true) {
            found.push(format!("{kind}: stored in {}, in the reference {}", stored.name, version.name));
        }
    }
}

#[test]
fn our_definitions_are_the_same_as_the_reference_or_wider() {
    let mut ours = berth_api::crds();
    // Kinds of Berth's own have no reference.
    ours.retain(|ours| ours.spec.group == berth_api::names::GROUP);
    let mut found = Vec::new();
    let references = shared::reference_crds();
    assert!(
        references.is_empty() || references.len() == ours.len(),
        "{} definitions found",
        references.len()
    );
    for reference in references {
        match ours.iter().find(|ours| ours.metadata.name == reference.metadata.name) {
            Some(ours) => compare_definitions(&reference, ours, &mut found),
            None => found.push(format!("{:?}: missing", reference.metadata.name)),
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_description_repeats_a_sentence_of_the_reference() {
    fn sentences(schema: &JSONSchemaProps, found: &mut BTreeSet<String>) {
        let text = schema.description.as_deref().unwrap_or_default().replace('\n', " ");
        found.extend(
            text.split(". ")
                .map(|part| part.trim().trim_end_matches('.').to_lowercase())
                .filter(|part| part.len() > 20),
        );
        for property in schema.properties.iter().flatten() {
            sentences(property.1, found);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            sentences(items, found);
        }
    }
    let all = |crds: Vec<CustomResourceDefinition>| {
        let mut found = BTreeSet::new();
        for version in crds.into_iter().flat_map(|crd| crd.spec.versions) {
            sentences(&version.schema.unwrap().open_api_v3_schema.unwrap(), &mut found);
        }
        found
    };
    let reference = all(shared::reference_crds());
    let repeated: Vec<String> =
        all(berth_api::crds()).into_iter().filter(|ours| reference.contains(ours)).collect();
    assert!(repeated.is_empty(), "{repeated:#?}");
}

#[test]
fn every_field_is_described() {
    fn walk(schema: &JSONSchemaProps, path: &str, found: &mut Vec<String>) {
        for (name, property) in schema.properties.iter().flatten() {
            let path = format!("{path}.{name}");
            if property.description.is_none() && name != "metadata" {
                found.push(path.clone());
            }
            walk(property, &path, found);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            walk(items, &format!("{path}[]"), found);
        }
    }
    let mut found = Vec::new();
    for info in berth_api::kinds() {
        walk(info.schema(), info.kind, &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Without the reference at hand, these are the constraints that must not silently change.
#[test]
fn constraints_that_others_rely_on_are_in_place() {
    let placement = berth_api::kinds().iter().find(|info| info.kind == "Placement").unwrap().schema();
    let at = |path: &str| -> &JSONSchemaProps {
        path.split('.').fold(placement, |schema, name| match name {
            "[]" => match &schema.items {
                Some(JSONSchemaPropsOrArray::Schema(items)) => items,
                _ => panic!("{path}: no items"),
            },
            name => &schema.properties.as_ref().unwrap()[name],
        })
    };
    assert_eq!(at("spec").default.as_ref().unwrap().0, serde_json::json!({}));
    assert_eq!(at("spec.spreadPolicy.spreadConstraints").max_items, Some(8));
    assert_eq!(at("spec.tolerations.[].key").max_length, Some(316));
    assert_eq!(at("spec.tolerations.[].operator").enum_, None);
    let weight = at("spec.prioritizerPolicy.configurations.[].weight");
    assert_eq!((weight.minimum, weight.maximum), (Some(-10.0), Some(10.0)));
    assert_eq!(at("spec.numberOfClusters").minimum, None);
    assert_eq!(at("status.conditions").x_kubernetes_list_type.as_deref(), Some("map"));
}
