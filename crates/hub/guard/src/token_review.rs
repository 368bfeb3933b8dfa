//! Identity reviews: TokenReview and SelfSubjectReview.
//!
//! Owns the two answers. Never checks a token itself.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::authenticator::Authenticator;
use crate::refusal::Refusal;
use crate::rule::strings;
use crate::shape::{object_at, set};
use crate::token::ObjectLookup;
use crate::user::User;

/// Answers a TokenReview.
pub fn token_review(
    authenticator: &Authenticator,
    body: &Value,
    now: Timestamp,
    lookup: &dyn ObjectLookup,
) -> Result<Value, Refusal> {
    let token = body["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Refusal::BadRequest("token is required for TokenReview in authentication".to_owned()));
    }
    let mut audiences = strings(body["spec"].get("audiences"));
    if audiences.is_empty() {
        audiences = authenticator.accounts().audiences().to_vec();
    }
    let status = match authenticator.token(token, Some(&audiences), now, lookup) {
        Ok(Some(verified)) if !verified.audiences.is_empty() => json!({
            "authenticated": true,
            "user": verified.user.to_value(),
            "audiences": verified.audiences,
        }),
        Ok(_) => json!({"user": {}, "error": "invalid bearer token"}),
        Err(error) => json!({"user": {}, "error": format!("[invalid bearer token, {error}]")}),
    };
    let mut answer = body.clone();
    set(&mut answer, &["apiVersion"], json!("authentication.k8s.io/v1"));
    set(&mut answer, &["kind"], json!("TokenReview"));
    object_at(&mut answer, &["metadata"]);
    set(&mut answer, &["status"], status);
    Ok(answer)
}

/// Answers a SelfSubjectReview of `user`.
pub fn self_subject_review(user: &User, now: Timestamp) -> Value {
    let whole = Timestamp::from_second(now.as_second()).unwrap_or(now);
    json!({
        "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": whole.to_string()},
        "status": {"userInfo": user.to_value()},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use crate::token::{Binding, DEFAULT_ISSUER, ServiceAccountRef, ServiceAccountTokens, StaticTokens};

    struct OneAccount;
    impl ObjectLookup for OneAccount {
        fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
            let known = (resource, namespace, name) == ("serviceaccounts", "apps", "bot");
            known.then(|| json!({"metadata": {"uid": "u-1"}}))
        }
    }

    fn now() -> Timestamp {
        "2026-11-16T12:00:00.7Z".parse().unwrap()
    }

    fn authenticator() -> Authenticator {
        let key = Authority::in_memory(now()).unwrap().signing_key();
        let statics = StaticTokens::parse("al,alice,2,dev", "f").unwrap();
        Authenticator::new(statics, ServiceAccountTokens::new(key, DEFAULT_ISSUER))
    }

    fn status(authenticator: &Authenticator, spec: &Value) -> Value {
        token_review(authenticator, &json!({"spec": spec}), now(), &OneAccount).unwrap()["status"].clone()
    }

    #[test]
    fn a_static_token_is_good_for_the_api_and_for_nobody_else() {
        let authenticator = authenticator();
        assert_eq!(
            status(&authenticator, &json!({"token": "al"})),
            json!({"authenticated": true, "audiences": [DEFAULT_ISSUER],
                   "user": {"username": "alice", "uid": "2", "groups": ["dev", "system:authenticated"]}})
        );
        let bad = json!({"user": {}, "error": "invalid bearer token"});
        assert_eq!(status(&authenticator, &json!({"token": "al", "audiences": ["vault"]})), bad);
        assert_eq!(status(&authenticator, &json!({"token": "nope"})), bad);
    }

    #[test]
    fn a_service_account_token_is_answered_with_the_audiences_that_match() {
        let authenticator = authenticator();
        let account = ServiceAccountRef { namespace: "apps".into(), name: "bot".into(), uid: "u-1".into() };
        let audiences = ["vault".to_owned(), "other".to_owned()];
        let token = authenticator.accounts().issue(&account, &audiences, 600, &Binding::None, now()).unwrap();
        let answer = status(&authenticator, &json!({"token": token, "audiences": ["vault", "x"]}));
        assert_eq!((&answer["authenticated"], &answer["audiences"]), (&json!(true), &json!(["vault"])));
        assert_eq!(answer["user"]["username"], "system:serviceaccount:apps:bot");
        assert_eq!(
            status(&authenticator, &json!({"token": token}))["error"],
            format!(
                "[invalid bearer token, token audiences [\"vault\" \"other\"] is invalid for the target audiences [\"{DEFAULT_ISSUER}\"]]"
            )
        );
    }

    #[test]
    fn a_review_without_a_token_is_a_bad_request() {
        let refusal = token_review(&authenticator(), &json!({"spec": {}}), now(), &OneAccount).unwrap_err();
        assert_eq!(
            refusal,
            Refusal::BadRequest("token is required for TokenReview in authentication".to_owned())
        );
    }

    #[test]
    fn somebody_may_ask_who_they_are() {
        let user = User::new("alice", ["dev"]);
        assert_eq!(
            self_subject_review(&user, now()),
            json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
                   "metadata": {"creationTimestamp": "2026-11-16T12:00:00Z"},
                   "status": {"userInfo": {"username": "alice", "groups": ["dev"]}}})
        );
    }
}
