use super::*;

const NONE: [&str; 0] = [];

fn problems(rules: MetadataRules, metadata: impl Into<Value>) -> Vec<String> {
    validate_metadata(&json!({ "metadata": metadata.into() }), &rules)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn namespaced() -> MetadataRules {
    MetadataRules::new(true, NameRule::DnsSubdomain)
}

fn cluster_wide() -> MetadataRules {
    MetadataRules::new(false, NameRule::DnsLabel)
}

#[test]
fn a_name_keeps_the_grammar_of_its_kind() {
    let name = "a".repeat(64);
    assert_eq!(problems(namespaced(), json!({"name": name, "namespace": "ns1"})), NONE);
    assert_eq!(
        problems(cluster_wide(), json!({"name": name})),
        [format!("metadata.name: Invalid value: \"{name}\": must be no more than 63 characters")]
    );
    assert_eq!(
        problems(cluster_wide(), json!({"name": "a.b"})),
        ["metadata.name: Invalid value: \"a.b\": must not contain dots"]
    );
}

#[test]
fn name_and_namespace_are_required_or_forbidden() {
    assert_eq!(
        problems(namespaced(), json!({})),
        [
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value"
        ]
    );
    assert_eq!(
        problems(cluster_wide(), json!({"name": "c1", "namespace": "ns1"})),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
    let unnamed = MetadataRules { unnamed: true, namespace: NamespaceRule::Optional, ..namespaced() };
    assert_eq!(problems(unnamed, json!({"generateName": "p-"})), NONE);
}

#[test]
fn labels_annotations_owners_and_finalizers_keep_their_rules() {
    let found = problems(
        namespaced(),
        json!({
            "name": "p",
            "namespace": "n",
            "generation": -1,
            "labels": {"ok": "", "bad value": "x", "k": "-x", "a/b/c": "x", "e.x/y": "z"},
            "annotations": {"Example.COM/Note": "any text é", "": "x"},
            "ownerReferences": [
                {"apiVersion": "", "kind": "", "name": "", "uid": ""},
                {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u", "controller": true},
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true},
            ],
            "finalizers": ["orphan", "foregroundDeletion", "not ok"],
            "managedFields": [{"operation": "Guess", "fieldsType": "V2", "manager": "a\nb"}],
        }),
    );
    let heads: Vec<&str> = found.iter().filter_map(|problem| problem.split(": ").next()).collect();
    assert_eq!(
        heads,
        [
            "metadata.generation",
            "metadata.labels",
            "metadata.labels",
            "metadata.labels",
            "metadata.annotations",
            "metadata.annotations",
            "metadata.ownerReferences.apiVersion",
            "metadata.ownerReferences.kind",
            "metadata.ownerReferences.name",
            "metadata.ownerReferences.uid",
            "metadata.ownerReferences",
            "metadata.ownerReferences",
            "metadata.finalizers",
            "metadata.finalizers",
            "metadata.managedFields[0].operation",
            "metadata.managedFields[0].fieldsType",
            "metadata.managedFields[0].manager",
        ]
    );
    assert!(found[11].ends_with(r#"Only one reference can have Controller set to true. Found "true" in references for Event/e and Pod/p"#), "{}", found[11]);
    assert!(found[16].ends_with("invalid character U+000A (at position 1)"), "{}", found[16]);
}

#[test]
fn an_update_may_not_touch_what_only_the_server_sets() {
    let old = json!({"metadata": {
        "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "generation": 3,
        "creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": "2024-01-02T00:00:00Z", "finalizers": ["x.io/a"],
    }});
    let new = json!({"metadata": {
        "name": "b", "namespace": "n", "uid": "v", "generation": 2,
        "creationTimestamp": "2025-01-01T00:00:00Z", "finalizers": ["x.io/a", "x.io/b"],
    }});
    let texts: Vec<String> = validate_metadata_update(&new, &old).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.io/b"}"#,
            r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#,
            "metadata.generation: Invalid value: 2: must not be decremented",
            r#"metadata.name: Invalid value: "b": field is immutable"#,
            r#"metadata.uid: Invalid value: "v": field is immutable"#,
            r#"metadata.creationTimestamp: Invalid value: "2025-01-01T00:00:00Z": field is immutable"#,
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
        ]
    );
    assert_eq!(validate_metadata_update(&old, &old), []);
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let metadata = json!({
        "name": "p", "uid": 1111, "generation": "2", "creationTimestamp": "yesterday", "finalizers": [1],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Placement", "name": 7, "controller": "yes"}],
        "managedFields": 3, "labels": {"a": 1},
    });
    let misfits = metadata_misfits(&metadata);
    let paths: Vec<&str> = misfits.iter().map(|misfit| misfit.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "creationTimestamp",
            "finalizers[0]",
            "generation",
            "labels[a]",
            "managedFields",
            "ownerReferences[0].controller",
            "ownerReferences[0].name",
            "uid",
        ]
    );
    assert_eq!(
        misfits[6].message,
        "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.name of type string"
    );
    assert_eq!(problems(namespaced(), metadata).len(), 1);
}

#[test]
fn metadata_is_written_back_in_its_one_spelling() {
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "X",
        "metadata": {
            "name": "a", "labels": {"a": null, "b": "c"}, "annotations": {}, "finalizers": [], "generation": 0,
            "creationTimestamp": null, "deletionTimestamp": "2021-07-06T15:00:00.5+08:00", "lables": {},
            "ownerReferences": [{"uid": "u", "x": 1}],
        },
    });
    let unknown = coerce_metadata(&mut object, None).unwrap();
    assert_eq!(unknown, ["metadata.lables", "metadata.ownerReferences[0].x"]);
    assert_eq!(
        object["metadata"],
        json!({
            "name": "a", "labels": {"a": "", "b": "c"}, "deletionTimestamp": "2021-07-06T07:00:00Z",
            "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": "u"}],
        })
    );
    let again = object.clone();
    coerce_metadata(&mut object, None).unwrap();
    assert_eq!(object, again);
    let problem = coerce_metadata(&mut json!({"metadata": {"name": 7}}), None).unwrap_err();
    assert_eq!(
        problem.to_string(),
        r#"metadata: Invalid value: {"name":7}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#
    );
}

#[test]
fn finalizers_that_invite_conflicts_are_warned_about_when_added() {
    let object = json!({"metadata": {"finalizers": ["mine", "x.io", "x.io/a", "kubernetes"]}});
    assert_eq!(finalizer_warnings(&object, None).len(), 2);
    assert_eq!(finalizer_warnings(&object, Some(&object)), NONE);
}

#[test]
fn hostile_metadata_is_a_problem_not_a_panic() {
    for metadata in
        [json!(7), json!([]), json!({"name": {}}), json!({"labels": []}), json!({"name": "é".repeat(40)})]
    {
        assert!(!problems(cluster_wide(), metadata).is_empty());
    }
    let big = "x".repeat(300_000);
    assert_eq!(
        problems(cluster_wide(), json!({"name": "p", "annotations": {"a": big}})),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
}
