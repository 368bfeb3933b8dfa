//! The quality of service class of a pod.
//!
//! Owns the rule by which requests and limits of containers decide it. Never changes a pod.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    access::{at, entries, items},
    quantity::Quantity,
};

/// The resources that count.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn class_of(pod: &Value) -> &'static str {
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut guaranteed = true;
    let whole = at(pod, &["spec", "resources"]);
    if let Some(resources) = whole.filter(|resources| any(resources)) {
        guaranteed &= collect(resources, &mut requests, &mut limits);
    } else {
        for container in
            items(pod, &["spec", "containers"]).iter().chain(items(pod, &["spec", "initContainers"]))
        {
            guaranteed &= collect(&container["resources"], &mut requests, &mut limits);
        }
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let equal = requests.len() == limits.len()
        && requests.iter().all(|(name, amount)| limits.get(name) == Some(amount));
    if guaranteed && equal { "Guaranteed" } else { "Burstable" }
}

fn any(resources: &Value) -> bool {
    ["requests", "limits"].iter().any(|field| entries(resources, &[field]).next().is_some())
}

/// Adds the amounts of one container, as sums of thousandths; whether it has limits for all that counts.
fn collect<'a>(
    resources: &'a Value,
    requests: &mut BTreeMap<&'a str, i128>,
    limits: &mut BTreeMap<&'a str, i128>,
) -> bool {
    let mut limited = 0;
    for (field, sums) in [("requests", requests), ("limits", limits)] {
        for (name, amount) in entries(resources, &[field]) {
            let amount = amount.as_str().and_then(|text| Quantity::parse(text).ok());
            let Some(amount) = amount.filter(|amount| !amount.is_zero() && !amount.is_negative()) else {
                continue;
            };
            if COUNTED.contains(&name.as_str()) {
                let sum = sums.entry(name.as_str()).or_insert(0_i128);
                *sum = sum.saturating_add(amount.nanos());
                limited += usize::from(field == "limits");
            }
        }
    }
    limited == COUNTED.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
    fn class(containers: Value) -> &'static str {
        class_of(&json!({"spec": {"containers": containers}}))
    }

    #[test]
    fn the_class_follows_requests_and_limits() {
        assert_eq!(class(json!([{"resources": {}}])), "BestEffort");
        assert_eq!(class(json!([{"resources": {"requests": {"cpu": "1"}}}])), "Burstable");
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(class(json!([{"resources": {"requests": both, "limits": both}}])), "Guaranteed");
        assert_eq!(
            class(json!([{"resources": {"requests": both, "limits": both}}, {"resources": {}}])),
            "Burstable"
        );
        assert_eq!(
            class(json!([{"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}}])),
            "Burstable"
        );
        assert_eq!(class(json!([{"resources": {"requests": {"cpu": "0"}}}])), "BestEffort");
    }
}
