//! Tokens kept in Secrets: good for as long as the Secret holds them.
//!
//! Owns what is in such a token and when it is good. It has no end and no audience; whoever deletes the Secret, or the
//! service account it is for, takes it back.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::jwt;
use super::service_account::{
    ObjectLookup, ServiceAccountRef, ServiceAccountTokens, TokenError, find_account, is_deleted, uid_of,
};
use crate::user::{User, service_account_user};

/// Who issues these tokens, on every cluster.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";
/// Where a Secret holds its token.
pub const TOKEN_KEY: &str = "token";
/// Marks a Secret whose token is no longer to be used, though it is still there.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

const NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const SECRET: &str = "kubernetes.io/serviceaccount/secret.name";
const ACCOUNT: &str = "kubernetes.io/serviceaccount/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

impl ServiceAccountTokens {
    /// A token to be kept in this Secret of the account's namespace.
    pub fn issue_for_secret(
        &self,
        account: &ServiceAccountRef,
        secret_name: &str,
    ) -> Result<String, TokenError> {
        let claims = json!({
            "iss": ISSUER,
            "sub": service_account_user(&account.namespace, &account.name),
            NAMESPACE: account.namespace,
            SECRET: secret_name,
            ACCOUNT: account.name,
            ACCOUNT_UID: account.uid,
        });
        self.key().sign(&claims).map_err(TokenError)
    }
}

/// Whom a token with these claims stands for, while its Secret and its account are there.
pub(super) fn check(
    token: &str,
    claims: &Value,
    now: Timestamp,
    lookup: &dyn ObjectLookup,
) -> Result<User, TokenError> {
    let claim = |key: &str| claims[key].as_str().unwrap_or_default();
    let (namespace, secret_name) = (claim(NAMESPACE), claim(SECRET));
    let (account, account_uid) = (claim(ACCOUNT), claim(ACCOUNT_UID));
    for (name, missing) in [
        (claim("sub"), "sub"),
        (namespace, "namespace"),
        (secret_name, "secretName"),
        (account, "serviceAccountName"),
        (account_uid, "serviceAccountUID"),
    ] {
        if name.is_empty() {
            return Err(TokenError(format!("{missing} claim is missing")));
        }
    }
    if claim("sub") != service_account_user(namespace, account) {
        return Err(TokenError::new("sub claim is invalid"));
    }
    let gone = || TokenError::new("Token has been invalidated");
    let secret = lookup.find("secrets", namespace, secret_name).ok_or_else(gone)?;
    if secret["metadata"]["deletionTimestamp"].is_string() {
        return Err(gone());
    }
    if !holds(&secret, token) {
        return Err(TokenError::new("Token does not match server's copy"));
    }
    let found = find_account(lookup, namespace, account)?;
    if is_deleted(&found, now) {
        return Err(TokenError(format!("ServiceAccount {namespace}/{account} has been deleted")));
    }
    let uid = uid_of(&found);
    if uid != account_uid {
        return Err(TokenError(format!("ServiceAccount UID ({uid}) does not match claim ({account_uid})")));
    }
    if secret["metadata"]["labels"][INVALID_SINCE].as_str().is_some_and(|since| !since.is_empty()) {
        return Err(TokenError(format!(
            "the token in secret {namespace}/{secret_name} for service account {namespace}/{account} has been marked \
             invalid; remove the label '{INVALID_SINCE}' from the secret to allow it again"
        )));
    }
    Ok(User::service_account(namespace, account, account_uid))
}

/// Whether a Secret holds this token. Digests are compared, so that the time it takes says nothing about the token.
fn holds(secret: &Value, token: &str) -> bool {
    use base64::Engine as _;
    let kept = secret["data"][TOKEN_KEY].as_str().unwrap_or_default();
    let kept = base64::engine::general_purpose::STANDARD.decode(kept).unwrap_or_default();
    let kept = String::from_utf8(kept).unwrap_or_default();
    jwt::token_digest(&kept) == jwt::token_digest(token)
}

#[cfg(test)]
#[path = "legacy_tests.rs"]
mod tests;
