//! Secrets that hold a token of a service account.
//!
//! Owns what such a Secret must hold and when it has to go. Never makes a token: the caller does, when one is missing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use berth_hub_guard::token::TOKEN_KEY;
use serde_json::{Map, Value, json};

use crate::resource::meta;

/// The type of these Secrets.
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
const CA_KEY: &str = "ca.crt";
const NAMESPACE_KEY: &str = "namespace";

/// What is due for a Secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Nothing,
    /// It goes: its account is not there, or is another one than it was for.
    Delete,
    /// It lacks something.
    Fill {
        /// Whether that is the token.
        token: bool,
    },
}

/// The account a Secret is for; none when it is not to hold a token.
pub(crate) fn account(secret: &Value) -> Option<&str> {
    let named = meta::at(secret, &["metadata", "annotations", ACCOUNT]).and_then(Value::as_str);
    named.filter(|name| !name.is_empty() && secret["type"] == TYPE)
}

/// What is due. `account` is the one it is for, if that exists; `ca` is the authority's certificate.
pub(crate) fn decide(secret: &Value, account: Option<&Value>, ca: &str) -> Next {
    if meta::deleting(secret) {
        return Next::Nothing;
    }
    let wanted = meta::at(secret, &["metadata", "annotations", ACCOUNT_UID]).and_then(Value::as_str);
    let wanted = wanted.filter(|uid| !uid.is_empty());
    let Some(account) = account else { return Next::Delete };
    if wanted.is_some_and(|uid| uid != meta::text(account, "uid")) {
        return Next::Delete;
    }
    let held = |key: &str| secret["data"][key].as_str().unwrap_or_default();
    let token = held(TOKEN_KEY).is_empty();
    let whole = !token && held(CA_KEY) == STANDARD.encode(ca) && !held(NAMESPACE_KEY).is_empty();
    // What says that it never changes is not ours to change.
    if whole || secret["immutable"] == true { Next::Nothing } else { Next::Fill { token } }
}

/// The Secret with everything it must hold; `token` where that was missing.
pub(crate) fn filled(secret: &Value, account: &Value, ca: &str, token: Option<&str>) -> Value {
    let mut secret = secret.clone();
    let data = child(&mut secret, "data");
    data.insert(CA_KEY.to_owned(), STANDARD.encode(ca).into());
    if let Some(token) = token {
        data.insert(TOKEN_KEY.to_owned(), STANDARD.encode(token).into());
    }
    let namespace = meta::text(account, "namespace");
    if data.get(NAMESPACE_KEY).and_then(Value::as_str).is_none_or(str::is_empty) {
        data.insert(NAMESPACE_KEY.to_owned(), STANDARD.encode(namespace).into());
    }
    let annotations = child(&mut secret["metadata"], "annotations");
    annotations.insert(ACCOUNT.to_owned(), meta::text(account, "name").into());
    annotations.insert(ACCOUNT_UID.to_owned(), meta::text(account, "uid").into());
    secret
}

/// The map under a key, made where there is none.
fn child<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !object[key].is_object() {
        object[key] = json!({});
    }
    object[key].as_object_mut().expect("it was made one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Value {
        json!({"metadata": {"name": "s", "namespace": "apps", "annotations": {ACCOUNT: "runner"}}, "type": TYPE})
    }

    fn runner() -> Value {
        json!({"metadata": {"name": "runner", "namespace": "apps", "uid": "sa-1"}})
    }

    #[test]
    fn only_a_secret_of_the_type_that_names_an_account_is_for_one() {
        assert_eq!(account(&secret()), Some("runner"));
        assert_eq!(
            account(&json!({"metadata": {"annotations": {ACCOUNT: "runner"}}, "type": "Opaque"})),
            None
        );
        assert_eq!(account(&json!({"metadata": {}, "type": TYPE})), None);
    }

    #[test]
    fn a_secret_is_filled_once() {
        assert_eq!(decide(&secret(), Some(&runner()), "CA"), Next::Fill { token: true });
        let whole = filled(&secret(), &runner(), "CA", Some("t"));
        assert_eq!(
            whole["data"],
            json!({"token": STANDARD.encode("t"), "ca.crt": STANDARD.encode("CA"), "namespace": STANDARD.encode("apps")})
        );
        assert_eq!(whole["metadata"]["annotations"][ACCOUNT_UID], "sa-1");
        assert_eq!(decide(&whole, Some(&runner()), "CA"), Next::Nothing);
    }

    #[test]
    fn another_authority_is_put_in_and_the_token_kept() {
        let mut whole = filled(&secret(), &runner(), "CA", Some("t"));
        whole["data"]["more"] = json!("eA==");
        assert_eq!(decide(&whole, Some(&runner()), "NEW"), Next::Fill { token: false });
        let renewed = filled(&whole, &runner(), "NEW", None);
        assert_eq!(renewed["data"]["token"], whole["data"]["token"]);
        assert_eq!(renewed["data"]["more"], "eA==");
        assert_eq!(decide(&renewed, Some(&runner()), "NEW"), Next::Nothing);
    }

    #[test]
    fn a_secret_goes_with_its_account() {
        assert_eq!(decide(&secret(), None, "CA"), Next::Delete);
        let other = json!({"metadata": {"name": "runner", "namespace": "apps", "uid": "sa-2"}});
        let whole = filled(&secret(), &runner(), "CA", Some("t"));
        assert_eq!(
            decide(&whole, Some(&other), "CA"),
            Next::Delete,
            "an account of the same name is another one"
        );
    }

    #[test]
    fn what_is_deleted_or_never_changes_is_left_alone() {
        let mut ending = secret();
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(decide(&ending, None, "CA"), Next::Nothing);
        let mut fixed = secret();
        fixed["immutable"] = json!(true);
        assert_eq!(decide(&fixed, Some(&runner()), "CA"), Next::Nothing);
    }
}
