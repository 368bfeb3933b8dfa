use super::*;
use crate::authority::Authority;
use crate::refusal::Refusal;
use std::collections::HashMap;

#[derive(Default)]
struct Store(HashMap<(String, String, String), Value>);

impl Store {
    fn with(mut self, resource: &str, namespace: &str, name: &str, object: Value) -> Self {
        self.0.insert((resource.into(), namespace.into(), name.into()), object);
        self
    }
}

impl ObjectLookup for Store {
    fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.0.get(&(resource.to_owned(), namespace.to_owned(), name.to_owned())).cloned()
    }
}

fn now() -> Timestamp {
    "2026-11-16T12:00:00.5Z".parse().unwrap()
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).unwrap()
}

fn tokens() -> ServiceAccountTokens {
    let authority = Authority::in_memory(now()).unwrap();
    ServiceAccountTokens::new(authority.signing_key(), DEFAULT_ISSUER)
}

fn account() -> ServiceAccountRef {
    ServiceAccountRef { namespace: "apps".into(), name: "runner".into(), uid: "sa-1".into() }
}

fn store() -> Store {
    Store::default()
        .with("serviceaccounts", "apps", "runner", json!({"metadata": {"uid": "sa-1"}}))
        .with(
            "pods",
            "apps",
            "p",
            json!({"metadata": {"uid": "pod-1"}, "spec": {"serviceAccountName": "runner", "nodeName": "n"}}),
        )
        .with(
            "pods",
            "apps",
            "other",
            json!({"metadata": {"uid": "pod-2"}, "spec": {"serviceAccountName": "else"}}),
        )
        .with("nodes", "", "n", json!({"metadata": {"uid": "node-1"}}))
        .with("secrets", "apps", "s", json!({"metadata": {"uid": "secret-1"}}))
}

fn request(body: &Value) -> Result<Value, Refusal> {
    tokens().request(body, &account(), now(), &store())
}

#[test]
fn a_token_carries_the_claims_of_a_bound_token() {
    let tokens = tokens();
    let body = json!({"spec": {"audiences": ["vault"], "expirationSeconds": 600, "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}});
    let answer = tokens.request(&body, &account(), now(), &store()).unwrap();
    let claims = jwt::peek(answer["status"]["token"].as_str().unwrap()).unwrap();
    let start = now().as_second();
    assert_eq!(claims["iss"], DEFAULT_ISSUER);
    assert_eq!(claims["sub"], "system:serviceaccount:apps:runner");
    assert_eq!(claims["aud"], json!(["vault"]));
    assert_eq!(
        (&claims["iat"], &claims["nbf"], &claims["exp"]),
        (&json!(start), &json!(start), &json!(start + 600))
    );
    assert_eq!(
        claims["kubernetes.io"],
        json!({"namespace": "apps", "serviceaccount": {"name": "runner", "uid": "sa-1"},
               "pod": {"name": "p", "uid": "pod-1"}, "node": {"name": "n", "uid": "node-1"}})
    );
    assert_eq!(answer["status"]["expirationTimestamp"], "2026-11-16T12:10:00Z");
    assert_eq!(
        answer["metadata"],
        json!({"name": "runner", "namespace": "apps", "uid": "sa-1", "creationTimestamp": "2026-11-16T12:00:00Z"})
    );
}

#[test]
fn a_request_without_wishes_gets_an_hour_for_the_api_itself() {
    let tokens = tokens();
    let answer = tokens.request(&json!({}), &account(), now(), &store()).unwrap();
    assert_eq!(
        answer["spec"],
        json!({"audiences": [DEFAULT_ISSUER], "expirationSeconds": 3600, "boundObjectRef": null})
    );
    let token = answer["status"]["token"].as_str().unwrap();
    let verified = tokens.verify(token, None, later(3599), &store()).unwrap().unwrap();
    assert_eq!(verified.user.name, "system:serviceaccount:apps:runner");
    assert_eq!(verified.user.uid, "sa-1");
    assert_eq!(verified.audiences, [DEFAULT_ISSUER]);
    assert!(verified.user.extra[CREDENTIAL_ID][0].starts_with("JTI="));
}

#[test]
fn lifetimes_have_bounds() {
    for (seconds, says) in [
        (599, "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"),
        (
            (1_i64 << 32) + 1,
            "spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
    ] {
        let refusal = request(&json!({"spec": {"expirationSeconds": seconds}})).unwrap_err();
        assert_eq!(refusal.message(), format!("TokenRequest.authentication.k8s.io \"\" is invalid: {says}"));
    }
    assert!(request(&json!({"spec": {"expirationSeconds": 1_i64 << 32}})).is_ok());
}

#[test]
fn a_request_must_speak_of_the_account_it_is_sent_to() {
    let refusal = request(&json!({"metadata": {"name": "x"}})).unwrap_err();
    assert_eq!(
        refusal.message(),
        "TokenRequest.authentication.k8s.io \"runner\" is invalid: metadata.name: Invalid value: \"x\": must match the \
         service account name if specified"
    );
    assert_eq!(request(&json!({"metadata": {"uid": "old"}})).unwrap_err().code(), 409);
    let bound = |kind: &str, name: &str, uid: &str| {
        request(
            &json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}}}),
        )
    };
    assert_eq!(bound("Pod", "gone", "").unwrap_err().message(), "pods \"gone\" not found");
    assert!(bound("Pod", "other", "").unwrap_err().message().contains("different serviceaccount name"));
    assert_eq!(bound("Secret", "s", "x").unwrap_err().code(), 409);
    assert!(bound("Secret", "s", "secret-1").is_ok());
    assert_eq!(
        bound("Service", "s", "").unwrap_err().message(),
        "cannot bind token to object of type /v1, Kind=Service"
    );
}

#[test]
fn a_token_is_good_from_its_start_to_its_end() {
    let tokens = tokens();
    let token = tokens.issue(&account(), tokens.audiences(), 600, &Binding::None, now()).unwrap();
    let verify = |at: Timestamp| {
        tokens.verify(&token, None, at, &store()).map(|v| v.is_some()).map_err(|e| e.to_string())
    };
    assert_eq!(verify(now()), Ok(true));
    assert_eq!(verify(later(599)), Ok(true));
    assert_eq!(verify(later(600)), Err("service account token has expired".to_owned()));
    assert_eq!(verify(later(-1)), Err("service account token is not valid yet".to_owned()));
}

#[test]
fn a_token_dies_with_what_it_is_bound_to() {
    let tokens = tokens();
    let pod = NameUid { name: "p".into(), uid: "pod-1".into() };
    let token =
        tokens.issue(&account(), tokens.audiences(), 600, &Binding::Pod { pod, node: None }, now()).unwrap();
    let verify = |store: &Store| {
        tokens.verify(&token, None, now(), store).map(|v| v.is_some()).map_err(|e| e.to_string())
    };
    assert_eq!(verify(&store()), Ok(true));
    let replaced = store().with("serviceaccounts", "apps", "runner", json!({"metadata": {"uid": "sa-2"}}));
    assert_eq!(verify(&replaced), Err("service account UID (sa-2) does not match claim (sa-1)".to_owned()));
    let deleted = json!({"metadata": {"uid": "sa-1", "deletionTimestamp": "2026-11-16T11:00:00Z"}});
    let deleted = store().with("serviceaccounts", "apps", "runner", deleted);
    assert_eq!(verify(&deleted), Err("service account apps/runner has been deleted".to_owned()));
    let mut gone = store();
    gone.0.remove(&("pods".into(), "apps".into(), "p".into()));
    assert_eq!(verify(&gone), Err("service account token has been invalidated".to_owned()));
    let ending = json!({"metadata": {"uid": "pod-1", "deletionTimestamp": "2026-11-16T12:00:30Z"}});
    assert_eq!(verify(&store().with("pods", "apps", "p", ending)), Ok(true));
    let other = store().with("pods", "apps", "p", json!({"metadata": {"uid": "pod-9"}}));
    assert_eq!(
        verify(&other),
        Err("pod UID (pod-9) does not match service account pod ref claim (pod-1)".to_owned())
    );
}

#[test]
fn a_token_for_others_is_not_good_here_and_a_foreign_one_is_not_ours_to_judge() {
    let tokens = tokens();
    let token = tokens.issue(&account(), &["vault".to_owned()], 600, &Binding::None, now()).unwrap();
    assert_eq!(
        tokens.verify(&token, None, now(), &store()).unwrap_err().to_string(),
        format!("token audiences [\"vault\"] is invalid for the target audiences [\"{DEFAULT_ISSUER}\"]")
    );
    let vault = ["vault".to_owned(), "x".to_owned()];
    assert_eq!(tokens.verify(&token, Some(&vault), now(), &store()).unwrap().unwrap().audiences, ["vault"]);
    let foreign =
        ServiceAccountTokens::new(Authority::in_memory(now()).unwrap().signing_key(), "https://else");
    let token = foreign.issue(&account(), &[], 600, &Binding::None, now()).unwrap();
    assert_eq!(tokens.verify(&token, None, now(), &store()), Ok(None));
    let forged =
        ServiceAccountTokens::new(Authority::in_memory(now()).unwrap().signing_key(), DEFAULT_ISSUER);
    let token = forged.issue(&account(), tokens.audiences(), 600, &Binding::None, now()).unwrap();
    assert!(tokens.verify(&token, None, now(), &store()).is_err());
    assert_eq!(tokens.verify("not.a.token", None, now(), &store()), Ok(None));
}
