//! ManagedClusterSet: the selector type by its current name.

use serde_json::Value;

use super::Remarks;

pub(super) fn convert(value: &mut Value, remarks: &mut Remarks) {
    let selector_type = value
        .get_mut("spec")
        .and_then(|spec| spec.get_mut("clusterSelector"))
        .and_then(|selector| selector.get_mut("selectorType"));
    if let Some(selector_type) = selector_type.filter(|word| **word == "LegacyClusterSetLabel") {
        *selector_type = "ExclusiveClusterSetLabel".into();
        let message = "changed from LegacyClusterSetLabel to ExclusiveClusterSetLabel";
        remarks.changed("spec.clusterSelector.selectorType", message);
    }
}

#[cfg(test)]
mod tests {
    use super::super::convert;
    use serde_json::json;

    #[test]
    fn the_legacy_selector_gets_its_current_name() {
        let result = convert(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "ManagedClusterSet",
            "spec": {"clusterSelector": {"selectorType": "LegacyClusterSetLabel"}},
        }));
        assert_eq!(result.value["apiVersion"], "cluster.open-cluster-management.io/v1beta2");
        assert_eq!(result.value["spec"]["clusterSelector"]["selectorType"], "ExclusiveClusterSetLabel");
        assert_eq!(result.changes.len(), 2);
    }
}
