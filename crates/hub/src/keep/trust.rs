//! The authority's certificate, in every namespace, for pods and tools that look for it there.

use serde_json::{Value, json};

/// The name of the ConfigMap that holds it, on every cluster.
pub(crate) use crate::chore::ROOT_CA as NAME;
use crate::resource::meta;

const KEY: &str = "ca.crt";
const DESCRIPTION_KEY: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "the certificate of the authority that vouches for this API server";

/// The ConfigMap as it is to be, unless the namespace is ending or has it. One that says something else is set right.
pub(crate) fn decide(namespace: &Value, existing: Option<&Value>, ca: &str) -> Option<Value> {
    let data = json!({ KEY: ca });
    let Some(existing) = existing else {
        return (!meta::deleting(namespace)).then(|| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": NAME, "namespace": meta::text(namespace, "name"),
                    "annotations": {DESCRIPTION_KEY: DESCRIPTION},
                },
                "data": data,
            })
        });
    };
    let fixed = existing["immutable"] == true || meta::deleting(existing) || meta::deleting(namespace);
    if fixed || existing["data"] == data {
        return None;
    }
    let mut right = existing.clone();
    right["data"] = data;
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_gets_the_certificate_and_keeps_it_right() {
        let namespace = json!({"metadata": {"name": "a"}});
        let made = decide(&namespace, None, "CA").unwrap();
        assert_eq!((&made["metadata"]["namespace"], &made["data"]["ca.crt"]), (&json!("a"), &json!("CA")));
        assert_eq!(decide(&namespace, Some(&made), "CA"), None);
        let renewed = decide(&namespace, Some(&made), "NEW").unwrap();
        assert_eq!(renewed["data"], json!({"ca.crt": "NEW"}));
        assert_eq!(renewed["metadata"], made["metadata"]);
    }

    #[test]
    fn a_namespace_that_ends_gets_none() {
        let ending = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(decide(&ending, None, "CA"), None);
        assert_eq!(decide(&ending, Some(&json!({"data": {}})), "CA"), None);
    }
}
