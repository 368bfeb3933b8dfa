use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::authority::Authority;

/// One namespace: an account and perhaps a Secret.
struct Store {
    account: Option<Value>,
    secret: Option<Value>,
}

impl ObjectLookup for Store {
    fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        assert_eq!(namespace, "apps");
        match (resource, name) {
            ("serviceaccounts", "runner") => self.account.clone(),
            ("secrets", "kept") => self.secret.clone(),
            _ => None,
        }
    }
}

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

fn account() -> ServiceAccountRef {
    ServiceAccountRef { namespace: "apps".into(), name: "runner".into(), uid: "sa-1".into() }
}

fn tokens() -> ServiceAccountTokens {
    ServiceAccountTokens::new(
        Authority::in_memory(now()).unwrap().signing_key(),
        crate::token::DEFAULT_ISSUER,
    )
}

fn store(token: &str) -> Store {
    Store {
        account: Some(json!({"metadata": {"uid": "sa-1"}})),
        secret: Some(json!({"metadata": {"uid": "s-1"}, "data": {"token": STANDARD.encode(token)}})),
    }
}

fn verify(tokens: &ServiceAccountTokens, token: &str, store: &Store) -> Result<String, String> {
    let far = "2126-11-16T12:00:00Z".parse().unwrap();
    match tokens.verify(token, None, far, store) {
        Ok(Some(verified)) => Ok(verified.user.name),
        Ok(None) => Err("not ours".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_token_in_a_secret_stands_for_its_account_and_never_ends_by_itself() {
    let tokens = tokens();
    let token = tokens.issue_for_secret(&account(), "kept").unwrap();
    assert_eq!(verify(&tokens, &token, &store(&token)).unwrap(), "system:serviceaccount:apps:runner");
    let verified = tokens.verify(&token, None, now(), &store(&token)).unwrap().unwrap();
    assert_eq!(verified.audiences, [crate::token::DEFAULT_ISSUER]);
    assert_eq!(verified.user.uid, "sa-1");
    let vault = ["vault".to_owned()];
    assert!(
        tokens.verify(&token, Some(&vault), now(), &store(&token)).is_err(),
        "it is for this server only"
    );
}

#[test]
fn a_token_is_taken_back_with_its_secret_or_its_account() {
    let tokens = tokens();
    let token = tokens.issue_for_secret(&account(), "kept").unwrap();
    let with = |change: &dyn Fn(&mut Store)| {
        let mut store = store(&token);
        change(&mut store);
        verify(&tokens, &token, &store).unwrap_err()
    };
    assert_eq!(with(&|store| store.secret = None), "Token has been invalidated");
    let ending = json!("2026-11-16T12:00:00Z");
    assert_eq!(
        with(&|store| store.secret.as_mut().unwrap()["metadata"]["deletionTimestamp"] = ending.clone()),
        "Token has been invalidated"
    );
    assert_eq!(
        with(&|store| store.secret.as_mut().unwrap()["data"]["token"] = json!(STANDARD.encode("other"))),
        "Token does not match server's copy"
    );
    assert_eq!(with(&|store| store.account = None), "serviceaccounts \"runner\" not found");
    assert_eq!(
        with(&|store| store.account = Some(json!({"metadata": {"uid": "sa-2"}}))),
        "ServiceAccount UID (sa-2) does not match claim (sa-1)"
    );
    assert_eq!(
        with(&|store| store.account.as_mut().unwrap()["metadata"]["deletionTimestamp"] = ending.clone()),
        "ServiceAccount apps/runner has been deleted"
    );
    let marked = with(&|store| {
        store.secret.as_mut().unwrap()["metadata"]["labels"] = json!({INVALID_SINCE: "2026-11-16"});
    });
    assert!(marked.contains("has been marked invalid"), "{marked}");
}

#[test]
fn a_token_of_another_key_or_with_other_claims_is_refused() {
    let (ours, theirs) = (tokens(), tokens());
    let token = theirs.issue_for_secret(&account(), "kept").unwrap();
    assert!(verify(&ours, &token, &store(&token)).is_err());
    for (claim, value, says) in [
        ("sub", "system:serviceaccount:apps:other", "sub claim is invalid"),
        (SECRET, "", "secretName claim is missing"),
        (NAMESPACE, "", "namespace claim is missing"),
    ] {
        let mut claims = json!({
            "iss": ISSUER, "sub": "system:serviceaccount:apps:runner", NAMESPACE: "apps", SECRET: "kept",
            ACCOUNT: "runner", ACCOUNT_UID: "sa-1",
        });
        claims[claim] = json!(value);
        let token = ours.key().sign(&claims).unwrap();
        assert_eq!(verify(&ours, &token, &store(&token)).unwrap_err(), says);
    }
}
