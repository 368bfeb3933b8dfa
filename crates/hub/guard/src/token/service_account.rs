//! Service account tokens: made, checked, and refused once what they are bound to is gone.
//!
//! Owns the claims and the rules of validity. Never reads a store itself: `ObjectLookup` answers what exists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use berth_text::gotext::quote_list;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::jwt::{self, SigningKey};
use super::legacy;
use crate::authority::CREDENTIAL_ID;
use crate::user::{User, service_account_user};

/// The issuer of a cluster that was given no other name.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// What exists in the store now.
pub trait ObjectLookup {
    /// The object of a core resource (`serviceaccounts`, `pods`, `secrets`, `nodes`); namespace empty for nodes.
    fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Value>;
}

/// A service account by name and identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccountRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; an account of the same name made later is another one.
    pub uid: String,
}

/// A named object a token's life is tied to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameUid {
    /// Its name.
    pub name: String,
    /// Its uid, empty when unknown.
    pub uid: String,
}

/// What else a token is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Only the service account.
    #[default]
    None,
    /// A pod, and for information the node it runs on.
    Pod {
        /// The pod.
        pod: NameUid,
        /// Its node.
        node: Option<NameUid>,
    },
    /// A secret.
    Secret(NameUid),
    /// A node.
    Node(NameUid),
}

/// Why a token of ours is not good. The texts are for TokenReview; a request just gets 401.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenError(pub(crate) String);

impl TokenError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Whom a good token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The user.
    pub user: User,
    /// The audiences asked for that the token is meant for; empty when it is meant for none of them.
    pub audiences: Vec<String>,
}

/// Tokens whose signature is known to be good, by their digest.
#[derive(Debug, Default)]
struct Opened(Mutex<HashMap<[u8; 32], Arc<Value>>>);

/// More callers than one machine's hub has at a time; a full cache starts anew.
const OPENED_MAX: usize = 4096;

impl Opened {
    fn open(&self, key: &SigningKey, token: &str) -> Result<Arc<Value>, &'static str> {
        let digest = jwt::token_digest(token);
        // The lock is held for a lookup or an insertion only; checking a signature happens outside.
        if let Some(claims) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&digest) {
            return Ok(Arc::clone(claims));
        }
        let claims = Arc::new(key.open(token)?);
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.len() >= OPENED_MAX {
            opened.clear();
        }
        opened.insert(digest, Arc::clone(&claims));
        Ok(claims)
    }
}

/// Makes and checks service account tokens.
#[derive(Clone, Debug)]
pub struct ServiceAccountTokens {
    key: Arc<SigningKey>,
    /// Signatures already checked. Time, audiences and objects are looked at for every request all the same.
    opened: Arc<Opened>,
    issuer: String,
    audiences: Vec<String>,
}

impl ServiceAccountTokens {
    /// Tokens of `issuer`, which is also the API's own audience.
    pub fn new(key: Arc<SigningKey>, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        Self { key, opened: Arc::default(), audiences: vec![issuer.clone()], issuer }
    }

    /// Tokens for more API audiences than the issuer.
    #[must_use]
    pub fn with_audiences(mut self, audiences: Vec<String>) -> Self {
        if !audiences.is_empty() {
            self.audiences = audiences;
        }
        self
    }

    pub(super) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The issuer, as `iss` carries it.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The audiences of the API itself.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// The public key set.
    pub fn key_set(&self) -> Value {
        self.key.key_set()
    }

    /// The OpenID configuration served beside the key set; `base` is the server's address.
    pub fn configuration(&self, base: &str) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": format!("{base}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    /// A new token.
    pub fn issue(
        &self,
        account: &ServiceAccountRef,
        audiences: &[String],
        life_s: i64,
        binding: &Binding,
        now: Timestamp,
    ) -> Result<String, TokenError> {
        let now_s = now.as_second();
        let mut kubernetes = json!({
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        });
        match binding {
            Binding::None => {}
            Binding::Pod { pod, node } => {
                kubernetes["pod"] = reference(pod);
                if let Some(node) = node {
                    kubernetes["node"] = reference(node);
                }
            }
            Binding::Secret(secret) => kubernetes["secret"] = reference(secret),
            Binding::Node(node) => kubernetes["node"] = reference(node),
        }
        let claims = json!({
            "iss": self.issuer,
            "sub": service_account_user(&account.namespace, &account.name),
            "aud": audiences,
            "iat": now_s,
            "nbf": now_s,
            "exp": now_s.saturating_add(life_s),
            "jti": jwt::random_uuid().map_err(TokenError)?,
            "kubernetes.io": kubernetes,
        });
        self.key.sign(&claims).map_err(TokenError)
    }

    /// Checks a token for `audiences` (the API's own when `None`). `Ok(None)` when it is not one of this issuer's.
    pub fn verify(
        &self,
        token: &str,
        audiences: Option<&[String]>,
        now: Timestamp,
        lookup: &dyn ObjectLookup,
    ) -> Result<Option<Verified>, TokenError> {
        let Some(claimed) = jwt::peek(token) else { return Ok(None) };
        let kept = claimed["iss"] == legacy::ISSUER;
        if !kept && claimed["iss"].as_str() != Some(self.issuer.as_str()) {
            return Ok(None);
        }
        let claims = self.opened.open(&self.key, token).map_err(TokenError::new)?;
        let wanted = audiences.unwrap_or(&self.audiences);
        let audiences = self.match_audiences(&claims, wanted)?;
        let user = if kept {
            legacy::check(token, &claims, now, lookup)?
        } else {
            check_time(&claims, now)?;
            check_objects(&claims, now, lookup)?
        };
        Ok(Some(Verified { user, audiences }))
    }

    fn match_audiences(&self, claims: &Value, wanted: &[String]) -> Result<Vec<String>, TokenError> {
        let own: Vec<String> = match &claims["aud"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => self.audiences.clone(),
        };
        let matching = shared(&own, wanted);
        if matching.is_empty() {
            return Err(TokenError(format!(
                "token audiences {} is invalid for the target audiences {}",
                quote_list(&own),
                quote_list(wanted)
            )));
        }
        Ok(matching)
    }
}

/// The audiences that a token has and that are asked for.
pub(crate) fn shared(own: &[String], wanted: &[String]) -> Vec<String> {
    own.iter().filter(|one| wanted.contains(one)).cloned().collect()
}

fn reference(object: &NameUid) -> Value {
    let mut value = json!({"name": object.name});
    if !object.uid.is_empty() {
        value["uid"] = json!(object.uid);
    }
    value
}

fn check_time(claims: &Value, now: Timestamp) -> Result<(), TokenError> {
    let now_s = now.as_second();
    let claim = |key: &str| claims[key].as_i64();
    if claim("nbf").is_some_and(|from| now_s < from) {
        return Err(TokenError::new("service account token is not valid yet"));
    }
    // A token without an end is none of ours: all that are issued have one.
    if claim("exp").is_none_or(|end| now_s >= end) {
        return Err(TokenError::new("service account token has expired"));
    }
    if claim("iat").is_some_and(|at| now_s < at) {
        return Err(TokenError::new("service account token is issued in the future"));
    }
    Ok(())
}

/// Name and uid of `kubernetes.io.<key>`, when the token carries it.
fn claimed(kubernetes: &Value, key: &str) -> Option<NameUid> {
    let object = kubernetes.get(key)?;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(NameUid { name: text("name"), uid: text("uid") })
}

fn check_objects(claims: &Value, now: Timestamp, lookup: &dyn ObjectLookup) -> Result<User, TokenError> {
    let kubernetes = &claims["kubernetes.io"];
    let namespace = kubernetes["namespace"].as_str().unwrap_or_default();
    let account = claimed(kubernetes, "serviceaccount").unwrap_or_default();
    let found = find_account(lookup, namespace, &account.name)?;
    let uid = uid_of(&found);
    if uid != account.uid {
        return Err(TokenError(format!(
            "service account UID ({uid}) does not match claim ({})",
            account.uid
        )));
    }
    if is_deleted(&found, now) {
        return Err(TokenError(format!("service account {namespace}/{} has been deleted", account.name)));
    }
    let mut user = User::service_account(namespace, &account.name, &account.uid);
    if let Some(secret) = claimed(kubernetes, "secret") {
        check_bound(
            "secret",
            "service account secret",
            &secret,
            lookup.find("secrets", namespace, &secret.name),
            now,
        )?;
    }
    let pod = claimed(kubernetes, "pod");
    if let Some(pod) = &pod {
        check_bound("pod", "service account pod", pod, lookup.find("pods", namespace, &pod.name), now)?;
        user.extra.insert(POD_NAME.to_owned(), vec![pod.name.clone()]);
        user.extra.insert(POD_UID.to_owned(), vec![pod.uid.clone()]);
    }
    if let Some(node) = claimed(kubernetes, "node") {
        // Beside a pod the node is information; alone it is what the token is bound to.
        if pod.is_none() {
            check_bound("node", "service account node", &node, lookup.find("nodes", "", &node.name), now)?;
        }
        user.extra.insert(NODE_NAME.to_owned(), vec![node.name]);
        if !node.uid.is_empty() {
            user.extra.insert(NODE_UID.to_owned(), vec![node.uid]);
        }
    }
    if let Some(id) = claims["jti"].as_str() {
        user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
    }
    Ok(user)
}

pub(super) fn find_account(
    lookup: &dyn ObjectLookup,
    namespace: &str,
    name: &str,
) -> Result<Value, TokenError> {
    lookup
        .find("serviceaccounts", namespace, name)
        .ok_or_else(|| TokenError(format!("serviceaccounts {} not found", berth_text::gotext::quote(name))))
}

fn check_bound(
    kind: &str,
    role: &str,
    claim: &NameUid,
    found: Option<Value>,
    now: Timestamp,
) -> Result<(), TokenError> {
    let gone = || TokenError::new("service account token has been invalidated");
    let found = found.ok_or_else(gone)?;
    let uid = uid_of(&found);
    if uid != claim.uid {
        return Err(TokenError(format!(
            "{kind} UID ({uid}) does not match {role} ref claim ({})",
            claim.uid
        )));
    }
    if is_deleted(&found, now) { Err(gone()) } else { Ok(()) }
}

pub(super) fn uid_of(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Past its deletion time: an object still within its grace period counts as alive.
pub(super) fn is_deleted(object: &Value, now: Timestamp) -> bool {
    let Some(text) = object["metadata"]["deletionTimestamp"].as_str() else { return false };
    // An unreadable time in our own store would be a defect elsewhere; refuse the token then.
    text.parse::<Timestamp>().map_or(true, |at| at < now)
}

#[cfg(test)]
#[path = "service_account_tests.rs"]
mod tests;
