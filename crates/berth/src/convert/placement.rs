//! Placement: flat predicates under `requiredClusterSelector`, prioritizer names as score coordinates, `buildIn`
//! as `builtIn`.

use serde_json::{Map, Value, json};

use super::{Remarks, mapping_at, says};

pub(super) fn convert(value: &mut Value, remarks: &mut Remarks) {
    let Some(object) = value.as_object_mut() else { return };
    if !says(object, "spec") {
        remarks.changed("spec", "set to {}: a spec is required");
    }
    let Some(spec) = mapping_at(object, "spec") else { return };
    if let Some(predicates) = spec.get_mut("predicates").and_then(Value::as_array_mut) {
        for (index, predicate) in predicates.iter_mut().enumerate() {
            if let Some(predicate) = predicate.as_object_mut() {
                convert_predicate(predicate, &format!("spec.predicates[{index}]"), remarks);
            }
        }
    }
    let configurations = spec
        .get_mut("prioritizerPolicy")
        .and_then(|policy| policy.get_mut("configurations"))
        .and_then(Value::as_array_mut);
    for (index, configuration) in configurations.into_iter().flatten().enumerate() {
        if let Some(configuration) = configuration.as_object_mut() {
            let path = format!("spec.prioritizerPolicy.configurations[{index}]");
            convert_configuration(configuration, &path, remarks);
        }
    }
}

fn convert_predicate(predicate: &mut Map<String, Value>, path: &str, remarks: &mut Remarks) {
    let claims_from = if says(predicate, "claimSelector") {
        format!("{path}.claimSelector.matchClaims")
    } else {
        format!("{path}.requiredClusterSelector.claimSelector.matchClaims")
    };
    for (flat, nested) in [
        ("labelSelector", "labelSelector"),
        ("claimSelector", "claimSelector"),
        ("clusterName", "clusterNames"),
    ] {
        let Some(value) = predicate.remove(flat) else { continue };
        let from = format!("{path}.{flat}");
        if value.is_null() || value == "" {
            remarks.changed(from, "dropped: it says nothing");
            continue;
        }
        let Some(required) = mapping_at(predicate, "requiredClusterSelector") else {
            remarks.conflict(from, "requiredClusterSelector beside it is not a mapping: make it one");
            continue;
        };
        if says(required, nested) {
            let message = format!("also given as requiredClusterSelector.{nested}: keep one of the two");
            remarks.conflict(from, message);
            continue;
        }
        let value = if flat == "clusterName" { json!([value]) } else { value };
        required.insert(nested.into(), value);
        remarks.changed(from, format!("moved to {path}.requiredClusterSelector.{nested}"));
    }
    let claims = predicate
        .get_mut("requiredClusterSelector")
        .and_then(|required| required.get_mut("claimSelector"))
        .and_then(Value::as_object_mut);
    if let Some(selector) = claims {
        convert_claims(selector, &claims_from, remarks);
    }
}

/// `matchClaims` is short for requirements with the operator In.
fn convert_claims(selector: &mut Map<String, Value>, from: &str, remarks: &mut Remarks) {
    let claims = match selector.get("matchClaims") {
        Some(Value::Object(claims)) => claims.clone(),
        Some(Value::Null) => Map::new(),
        // Missing, or no mapping, which is the schema's to report.
        _ => return,
    };
    let expressions = selector.entry("matchExpressions").or_insert(Value::Null);
    if expressions.is_null() {
        *expressions = json!([]);
    }
    let Some(expressions) = expressions.as_array_mut() else {
        remarks.conflict(from, "matchExpressions beside it is not a list: make it one");
        return;
    };
    let mut sorted: Vec<_> = claims.into_iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    for (key, value) in sorted {
        expressions.push(json!({"key": key, "operator": "In", "values": [value]}));
    }
    selector.remove("matchClaims");
    remarks.changed(from, "written as matchExpressions with operator In");
}

fn convert_configuration(configuration: &mut Map<String, Value>, path: &str, remarks: &mut Remarks) {
    if let Some(coordinate) = configuration.get_mut("scoreCoordinate").and_then(Value::as_object_mut) {
        convert_coordinate(coordinate, &format!("{path}.scoreCoordinate"), remarks);
    }
    let Some(name) = configuration.remove("name") else { return };
    let from = format!("{path}.name");
    if name.is_null() || name == "" {
        remarks.changed(from, "dropped: it says nothing");
        return;
    }
    let Some(coordinate) = mapping_at(configuration, "scoreCoordinate") else {
        remarks.conflict(from, "scoreCoordinate beside it is not a mapping: make it one");
        return;
    };
    // The draft says that a coordinate, where there is one, wins over the name.
    if says(coordinate, "builtIn") || coordinate.get("type").is_some_and(|kind| kind == "AddOn") {
        remarks.changed(from, "dropped: scoreCoordinate wins over it");
        return;
    }
    coordinate.insert("type".into(), "BuiltIn".into());
    coordinate.insert("builtIn".into(), name);
    remarks.changed(from, format!("moved to {path}.scoreCoordinate.builtIn"));
}

fn convert_coordinate(coordinate: &mut Map<String, Value>, path: &str, remarks: &mut Remarks) {
    if coordinate.get("type").is_some_and(|kind| kind == "BuildIn") {
        coordinate.insert("type".into(), "BuiltIn".into());
        remarks.changed(format!("{path}.type"), "changed from BuildIn to BuiltIn");
    }
    let Some(name) = coordinate.remove("buildIn") else { return };
    let from = format!("{path}.buildIn");
    match coordinate.get("builtIn") {
        Some(current) if !current.is_null() && *current != name && !name.is_null() => {
            remarks.conflict(from, "builtIn beside it says something else: keep one of the two");
        }
        Some(current) if !current.is_null() => remarks.changed(from, "dropped: builtIn says the same"),
        _ => {
            coordinate.insert("builtIn".into(), name);
            remarks.changed(from, format!("renamed to {path}.builtIn"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::convert;
    use serde_json::{Value, json};

    fn converted(api_version: &str, spec: &Value) -> (Value, Vec<String>) {
        let result = convert(json!({"apiVersion": api_version, "kind": "Placement", "spec": spec}));
        assert_eq!(result.conflicts, []);
        assert_eq!(result.value["apiVersion"], "cluster.open-cluster-management.io/v1beta1");
        let told = result.changes.iter().map(|c| format!("{}: {}", c.path, c.message)).collect();
        (result.value["spec"].clone(), told)
    }

    #[test]
    fn flat_predicates_move_under_the_required_selector() {
        let (spec, told) = converted(
            "placement.open-cluster-management.io/v1alpha1",
            &json!({"antiAffinity": {"topologyKey": "region", "topologyKeyType": "Label"}, "predicates": [
                {"labelSelector": {"matchLabels": {"vendor": "OpenShift"}}, "clusterName": "c1",
                 "claimSelector": {"matchClaims": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]}},
                {"labelSelector": null},
            ]}),
        );
        assert_eq!(
            spec,
            json!({"antiAffinity": {"topologyKey": "region", "topologyKeyType": "Label"}, "predicates": [
                {"requiredClusterSelector": {
                    "labelSelector": {"matchLabels": {"vendor": "OpenShift"}}, "clusterNames": ["c1"],
                    "claimSelector": {"matchExpressions": [
                        {"key": "k", "operator": "Exists"},
                        {"key": "a", "operator": "In", "values": ["1"]},
                        {"key": "b", "operator": "In", "values": ["2"]}]}}},
                {},
            ]})
        );
        assert_eq!(told.len(), 6, "{told:#?}");
        assert_eq!(
            told[0],
            "apiVersion: changed from placement.open-cluster-management.io/v1alpha1 to cluster.open-cluster-management.io/v1beta1"
        );
    }

    #[test]
    fn prioritizer_names_and_spellings_become_score_coordinates() {
        let (spec, told) = converted(
            "cluster.open-cluster-management.io/v1alpha1",
            &json!({"prioritizerPolicy": {"configurations": [
                {"name": "Balance", "weight": 2},
                {"name": "Balance", "scoreCoordinate": {"type": "BuildIn", "buildIn": "Steady"}},
                {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}}},
            ]}}),
        );
        assert_eq!(
            spec["prioritizerPolicy"]["configurations"],
            json!([
                {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Balance"}, "weight": 2},
                {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}},
                {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}}},
            ])
        );
        assert_eq!(told.len(), 5, "{told:#?}");
    }

    #[test]
    fn an_empty_spec_is_written_out() {
        let (spec, told) = converted("cluster.open-cluster-management.io/v1alpha1", &Value::Null);
        assert_eq!(spec, json!({}));
        assert_eq!(told[1], "spec: set to {}: a spec is required");
    }

    #[test]
    fn two_answers_to_one_question_are_a_conflict() {
        let result = convert(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "spec": {
                "predicates": [{"labelSelector": {}, "requiredClusterSelector": {"labelSelector": {"matchLabels": {"a": "b"}}}}],
                "prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Steady", "buildIn": "Balance"}}]},
            },
        }));
        let paths: Vec<_> = result.conflicts.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "spec.predicates[0].labelSelector",
                "spec.prioritizerPolicy.configurations[0].scoreCoordinate.buildIn"
            ]
        );
    }
}
