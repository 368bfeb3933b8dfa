//! ManagedClusterSetBindings: upstream's cases.

use serde_json::{Value, json};

use crate::{Somebody, admit};

const RESOURCE: &str = "managedclustersetbindings";

fn binding(name: &str, set: &str) -> Value {
    json!({"metadata": {"namespace": "n", "name": name}, "spec": {"clusterSet": set}})
}

/// Upstream: managedclustersetbinding_validating_test.go "TestValidateCreate: Right Clustersetbinding",
/// "TestValidateCreate: Do not have permission".
#[test]
fn a_set_is_bound_only_by_who_may() {
    assert!(admit(RESOURCE, None, &binding("blue", "blue"), &Somebody::who_may(&["bind/blue"])).is_ok());
    let denial =
        admit(RESOURCE, None, &binding("blue", "blue"), &Somebody::who_may(&["bind/green"])).unwrap_err();
    assert_eq!(
        (denial.code, denial.message.as_str()),
        (403, r#"user "ann" is not allowed to bind cluster set "blue""#)
    );
}

/// Upstream: managedclustersetbinding_validating_test.go "TestValidateCreate: Set name is not right",
/// "TestValidateUpddate: Right Clustersetbinding", "TestValidateUpddate: Set name is not right".
#[test]
fn a_binding_is_named_after_its_set_when_it_is_made_and_when_it_is_changed() {
    let may = Somebody::who_may(&["bind/blue", "bind/green"]);
    let old = binding("blue", "blue");
    for (old, new) in [
        (None, binding("blue", "green")),
        (Some(&old), binding("blue", "green")),
        (None, binding("blue", "")),
    ] {
        let denial = admit(RESOURCE, old, &new, &may).unwrap_err();
        assert_eq!(denial.code, 400);
        assert!(denial.message.contains("must have the same name"), "{}", denial.message);
    }
}

#[test]
fn a_binding_that_follows_a_grant_is_not_made_to_outlive_it() {
    let mut old = binding("blue", "blue");
    old["metadata"]["labels"] = json!({"berth.dev/bound-by": "rbac"});
    let new = binding("blue", "blue");
    assert_eq!(admit(RESOURCE, Some(&old), &new, &Somebody::default()).unwrap_err().code, 403);
    assert!(admit(RESOURCE, Some(&old), &new, &Somebody::who_may(&["bind/blue"])).is_ok());
}

#[test]
fn a_binding_is_labelled_without_the_right_to_bind() {
    let old = binding("blue", "blue");
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    assert!(admit(RESOURCE, Some(&old), &new, &Somebody::default()).is_ok());
}
