//! The service account that every namespace has.

use serde_json::{Value, json};

/// Its name.
pub(crate) const DEFAULT: &str = "default";

/// The account to make in a namespace, unless the namespace is ending or has it already.
pub(crate) fn decide(namespace: &Value, exists: bool) -> Option<Value> {
    if exists || crate::resource::meta::deleting(namespace) {
        return None;
    }
    let name = crate::resource::meta::text(namespace, "name");
    Some(
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT, "namespace": name}}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_gets_its_account_once_and_not_while_it_ends() {
        let namespace = json!({"metadata": {"name": "a"}});
        assert_eq!(decide(&namespace, false).unwrap()["metadata"]["namespace"], "a");
        assert_eq!(decide(&namespace, true), None);
        let ending = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(decide(&ending, false), None);
    }
}
