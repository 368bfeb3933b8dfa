use serde_json::json;

use super::*;

const NONE: [&str; 0] = [];

fn definition(schema: &Value) -> Value {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io", "resourceVersion": "1"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    default_definition(&mut definition);
    prepare_definition(&mut definition, None);
    definition
}

fn plain() -> Value {
    definition(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}),
    )
}

fn problems(definition: &Value) -> Vec<String> {
    validate_definition(definition, None).iter().map(ToString::to_string).collect()
}

fn of_spec(spec: &Value) -> Vec<String> {
    problems(&definition(&json!({"type": "object", "properties": {"spec": spec}})))
}

#[test]
fn a_sound_definition_is_taken() {
    assert_eq!(problems(&plain()), NONE);
}

#[test]
fn no_versions_are_told_from_an_empty_list_of_them() {
    let told = |versions: Value, shown: &str| {
        let mut wrong = plain();
        wrong["spec"]["versions"] = versions;
        let expected = format!(
            "spec.versions: Invalid value: {shown}: must have exactly one version marked as storage version"
        );
        let found = problems(&wrong);
        assert!(found.contains(&expected), "{found:#?}");
    };
    told(json!([]), "[]");
    told(Value::Null, "null");
}

#[test]
fn names_group_scope_and_versions_are_checked() {
    let mut wrong = plain();
    wrong["metadata"]["name"] = "other.x.io".into();
    wrong["spec"]["scope"] = "Global".into();
    wrong["spec"]["names"]["shortNames"] = json!(["OK"]);
    wrong["spec"]["names"]["listKind"] = "Thing".into();
    wrong["spec"]["versions"][0]["name"] = "1".into();
    wrong["spec"]["versions"][0]["storage"] = false.into();
    wrong["status"]["storedVersions"] = json!(["v1"]);
    let found = problems(&wrong);
    assert_eq!(found.len(), 8, "{found:#?}");
    assert_eq!(
        found[0],
        "metadata.name: Invalid value: \"other.x.io\": must be spec.names.plural+\".\"+spec.group"
    );
    assert_eq!(
        found[1],
        "spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\""
    );
    assert!(
        found[2].starts_with("spec.versions[0].name: Invalid value: \"1\": a DNS-1035 label must"),
        "{}",
        found[2]
    );
    assert_eq!(
        found[3],
        "spec.versions: Invalid value: [{\"Name\":\"1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one version marked as storage version"
    );
    assert!(
        found[4].starts_with("spec.version: Invalid value: \"1\": a DNS-1035 label must"),
        "{}",
        found[4]
    );
    assert!(found[5].starts_with("spec.names.shortNames[0]: Invalid value: \"OK\": "), "{}", found[5]);
    assert_eq!(
        found[6],
        "spec.names.listKind: Invalid value: \"Thing\": kind and listKind may not be the same"
    );
    assert!(
        found[7].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions;"),
        "{}",
        found[7]
    );
}

#[test]
fn a_schema_is_required_and_has_to_be_structural() {
    let mut without = plain();
    without["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    assert_eq!(problems(&without), ["spec.versions[0].schema.openAPIV3Schema: Required value"]);
    assert_eq!(
        of_spec(&json!({})),
        [
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"
        ]
    );
    assert_eq!(
        of_spec(
            &json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {"type": "string"}}})
        ),
        [
            "spec.validation.openAPIV3Schema.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"
        ]
    );
    assert_eq!(
        of_spec(&json!({"type": "text", "uniqueItems": true})),
        [
            "spec.validation.openAPIV3Schema.properties[spec].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            "spec.validation.openAPIV3Schema.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ]
    );
}

#[test]
fn versions_that_differ_are_told_apart() {
    let mut two = plain();
    let mut other = two["spec"]["versions"][0].clone();
    other["name"] = "v2".into();
    other["storage"] = false.into();
    other["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["a"] = json!({});
    two["spec"]["versions"].as_array_mut().unwrap().push(other);
    assert_eq!(
        problems(&two),
        [
            "spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[a].type: Required value: must not be empty for specified object fields"
        ]
    );
}

#[test]
fn list_types_have_to_fit() {
    let list = |keys: &Value, items: &Value| {
        of_spec(
            &json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items}),
        )
    };
    let items = json!({"type": "object", "properties": {"k": {"type": "string"}, "o": {"type": "object"}}, "required": ["k", "o"]});
    assert_eq!(list(&json!(["k"]), &items), NONE);
    let path = "spec.validation.openAPIV3Schema.properties[spec]";
    assert_eq!(
        list(&json!(["k", "k", "z", "o"]), &items),
        [
            format!(
                "{path}.x-kubernetes-list-map-keys: Invalid value: [\"k\",\"k\",\"z\",\"o\"]: must not contain duplicate entries"
            ),
            format!(
                "{path}.x-kubernetes-list-map-keys: Invalid value: [\"k\",\"k\",\"z\",\"o\"]: entries must all be names of item properties"
            ),
            format!(
                "{path}.items.properties[o].type: Invalid value: \"object\": must be a scalar type if parent array's x-kubernetes-list-type is map"
            ),
        ]
    );
    assert_eq!(
        list(&json!(["k"]), &json!({"type": "object", "properties": {"k": {"type": "string"}}})),
        [format!(
            "{path}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        )]
    );
    assert_eq!(
        of_spec(&json!({"type": "object", "x-kubernetes-list-type": "set"})),
        [format!(
            "{path}.type: Invalid value: \"object\": must be array if x-kubernetes-list-type is specified"
        )]
    );
    assert_eq!(
        of_spec(&json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}})),
        [format!(
            "{path}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set"
        )]
    );
}

#[test]
fn defaults_have_to_fit_their_schema() {
    let path = "spec.validation.openAPIV3Schema.properties[spec]";
    assert_eq!(
        of_spec(&json!({"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}})),
        [format!(
            "{path}.properties[n].default: Invalid value: \"string\":  in body must be of type integer: \"string\""
        )]
    );
    assert_eq!(
        of_spec(&json!({"type": "object", "properties": {"n": {"type": "integer"}}, "default": {"m": 1}})),
        [format!("{path}.default: Invalid value: {{\"m\":1}}: must not have unknown fields")]
    );
    assert_eq!(
        of_spec(
            &json!({"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 1"}]})
        ),
        [format!("{path}.default: Invalid value: 1: failed rule: self > 1")]
    );
    assert_eq!(
        problems(&definition(
            &json!({"type": "object", "properties": {"kind": {"type": "string", "default": "x"}}})
        )),
        [
            "spec.validation.openAPIV3Schema.properties[kind].default: Forbidden: must not be set in top-level kind"
        ]
    );
}

#[test]
fn rules_have_to_compile_and_to_be_about_parts_that_can_be_told_apart() {
    let path = "spec.validation.openAPIV3Schema.properties[spec]";
    let found = of_spec(
        &json!({"type": "object", "properties": {"n": {"type": "integer"}}, "x-kubernetes-validations": [
            {"rule": " "}, {"rule": "self.n > 0", "reason": "Because", "fieldPath": ".m"},
        ]}),
    );
    assert_eq!(
        found,
        [
            format!("{path}.x-kubernetes-validations[0].rule: Required value: rule is not specified"),
            format!(
                "{path}.x-kubernetes-validations[1].reason: Unsupported value: \"Because\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""
            ),
            format!(
                "{path}.x-kubernetes-validations[1].fieldPath: Invalid value: \".m\": must be a valid path"
            ),
        ]
    );
    let found = of_spec(&json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.m > 0"}]}));
    assert!(found[0].contains("compilation failed: ERROR: <input>:1:5: undefined field 'm'"), "{found:?}");
    let rule = json!([{"rule": "self == oldSelf"}, {"rule": "self != ''", "optionalOldSelf": true}]);
    let found =
        of_spec(&json!({"type": "array", "items": {"type": "string", "x-kubernetes-validations": rule}}));
    assert_eq!(
        found,
        [
            format!(
                "{path}.items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
            ),
            format!(
                "{path}.items.x-kubernetes-validations[1].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
            ),
        ]
    );
}

#[test]
fn subresources_columns_and_selectable_fields_are_checked() {
    let mut wrong = plain();
    wrong["spec"]["versions"][0]["subresources"] =
        json!({"scale": {"specReplicasPath": ".a.b", "statusReplicasPath": "x"}});
    wrong["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"type": "text", "jsonPath": "spec"}]);
    wrong["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}, {"jsonPath": ".spec"}, {"jsonPath": ".spec.z"}]);
    assert_eq!(
        problems(&wrong),
        [
            "spec.subresources.scale.specReplicasPath: Invalid value: \".a.b\": should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Invalid value: \"x\": must be a simple json path starting with .",
            "spec.additionalPrinterColumns[0].name: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting with .",
            "spec.selectableFields[1].jsonPath: Duplicate value: \".spec.a\"",
            "spec.selectableFields[2].jsonPath: Invalid value: \".spec\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
            "spec.selectableFields[3].jsonPath: Invalid value: \".spec.z\": is an invalid path: does not refer to a valid field",
        ]
    );
}

#[test]
fn a_status_of_its_own_leaves_the_root_alone() {
    let mut wrong = definition(&json!({"type": "object", "maxProperties": 3}));
    wrong["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let found = problems(&wrong);
    assert!(found[0].ends_with("XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"), "{found:?}");
}

#[test]
fn only_conversion_without_a_webhook_is_served() {
    let mut wrong = plain();
    wrong["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(
        problems(&wrong),
        [
            "spec.conversion.strategy: Invalid value: \"Webhook\": conversion by webhook is not served here: set the strategy to None and give all versions one shape"
        ]
    );
}

#[test]
fn what_objects_depend_on_cannot_be_changed() {
    let mut old = plain();
    settle_definition(&mut old, [], "2024-01-01T00:00:00Z");
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    new["spec"]["group"] = "y.io".into();
    new["spec"]["names"]["kind"] = "Other".into();
    new["spec"]["versions"][0]["name"] = "v2".into();
    prepare_definition(&mut new, Some(&old));
    let found: Vec<String> = validate_definition(&new, Some(&old)).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "spec.names.kind: Invalid value: \"Other\": field is immutable",
            "spec.group: Invalid value: \"y.io\": field is immutable",
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
        ]
    );
}

#[test]
fn groups_of_kubernetes_own_ask_for_approval() {
    let mut own = plain();
    own["spec"]["group"] = "x.k8s.io".into();
    own["metadata"]["name"] = "things.x.k8s.io".into();
    let found = problems(&own);
    assert!(
        found[0].starts_with(
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have"
        ),
        "{found:?}"
    );
    own["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, experimental"});
    assert_eq!(problems(&own), NONE);
}

#[test]
fn formats_that_nobody_checks_are_warned_about_once() {
    let old =
        definition(&json!({"type": "object", "properties": {"a": {"type": "string", "format": "colour"}}}));
    assert_eq!(definition_warnings(&old, None), ["unrecognized format \"colour\""]);
    assert_eq!(definition_warnings(&old, Some(&old)), NONE);
}

#[test]
fn hostile_definitions_are_problems_not_panics() {
    for hostile in [
        json!(null),
        json!([]),
        json!({"spec": 7}),
        json!({"spec": {"versions": [1, null, {"schema": 3}], "names": []}}),
    ] {
        assert!(!validate_definition(&hostile, None).is_empty());
        let mut hostile = hostile;
        default_definition(&mut hostile);
        prepare_definition(&mut hostile, None);
        settle_definition(&mut hostile, [], "2024-01-01T00:00:00Z");
    }
}
