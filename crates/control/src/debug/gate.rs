//! Who asks, and whether they may: decided by the API server, as it decides about itself.
//!
//! Owns the two questions every request is put through before anything else is looked at: who a token stands for
//! (TokenReview), and whether policy lets them (SubjectAccessReview). Answers are believed for a short while; a failure
//! to get one never is.

use std::sync::Arc;

use berth_api::names::GROUP;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use sha2::{Digest as _, Sha256};

use super::cache::Cache;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Access {
    /// A path of this server, with a method.
    Path { verb: String, path: String },
    /// The Placements of a namespace.
    Placements { verb: &'static str, namespace: String },
}

/// Why somebody does not get in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is not known who they are.
    Unknown(String),
    /// Policy does not let them.
    Forbidden(String),
    /// The API server did not say.
    Unanswered(String),
}

/// What the API server said: the reason it gave with a no.
type Verdict = Result<(), Arc<str>>;

/// Asks the API server.
pub(super) struct Gate {
    client: Client,
    /// By the digests of tokens: the tokens themselves are not kept.
    users: Cache<[u8; 32], Arc<UserInfo>>,
    verdicts: Cache<(Identity, Access), Verdict>,
}

/// A user as a key.
type Identity = [u8; 32];

impl Gate {
    pub(super) fn new(client: Client) -> Self {
        Self { client, users: Cache::default(), verdicts: Cache::default() }
    }

    /// Who sends a request with these headers.
    pub(super) async fn user(&self, headers: &HeaderMap) -> Result<Arc<UserInfo>, Refusal> {
        let token = bearer(headers).ok_or_else(|| {
            let advice = "send the token of a user or service account: Authorization: Bearer TOKEN";
            Refusal::Unknown(format!("user information not found in the request; {advice}"))
        })?;
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(user) = self.users.get(&digest) {
            return Ok(user);
        }
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: None },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let reviewed = api
            .create(&PostParams::default(), &review)
            .await
            .map_err(|error| Refusal::Unanswered(format!("failed to check the token: {error}")))?;
        let status = reviewed.status.unwrap_or_default();
        match (status.authenticated, status.user) {
            (Some(true), Some(user)) => {
                let user = Arc::new(user);
                self.users.keep(digest, Arc::clone(&user));
                Ok(user)
            }
            _ => Err(Refusal::Unknown("Unauthorized: the token is not valid".to_owned())),
        }
    }

    /// Whether policy lets `user` do it.
    pub(super) async fn admit(&self, user: &UserInfo, access: Access) -> Result<(), Refusal> {
        let key = (identity(user), access);
        let verdict = if let Some(verdict) = self.verdicts.get(&key) {
            verdict
        } else {
            let verdict = self.ask(user, &key.1).await?;
            self.verdicts.keep(key.clone(), verdict.clone());
            verdict
        };
        verdict.map_err(|reason| {
            let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            Refusal::Forbidden(match key.1 {
                Access::Path { verb, path } => {
                    let name = user.username.as_deref().unwrap_or_default();
                    format!("forbidden: User {name:?} cannot {verb} path {path:?}{because}")
                }
                Access::Placements { verb, namespace } => format!(
                    "user does not have permission to {verb} placements in namespace {namespace}{because}"
                ),
            })
        })
    }

    async fn ask(&self, user: &UserInfo, access: &Access) -> Result<Verdict, Refusal> {
        let mut spec = SubjectAccessReviewSpec {
            user: user.username.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
            ..SubjectAccessReviewSpec::default()
        };
        match access {
            Access::Path { verb, path } => {
                spec.non_resource_attributes =
                    Some(NonResourceAttributes { path: Some(path.clone()), verb: Some(verb.clone()) });
            }
            Access::Placements { verb, namespace } => {
                spec.resource_attributes = Some(ResourceAttributes {
                    namespace: Some(namespace.clone()),
                    verb: Some((*verb).to_owned()),
                    group: Some(GROUP.to_owned()),
                    version: Some("v1beta1".to_owned()),
                    resource: Some("placements".to_owned()),
                    ..ResourceAttributes::default()
                });
            }
        }
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviewed = api
            .create(&PostParams::default(), &review)
            .await
            .map_err(|error| Refusal::Unanswered(format!("failed to check permissions: {error}")))?;
        let status = reviewed.status.unwrap_or_default();
        Ok(if status.allowed { Ok(()) } else { Err(status.reason.unwrap_or_default().into()) })
    }
}

/// The verb by which policy knows a method.
pub(super) fn verb(method: &Method) -> String {
    method.as_str().to_ascii_lowercase()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Everything of a user that policy may look at.
fn identity(user: &UserInfo) -> Identity {
    let parts = (&user.username, &user.uid, &user.groups, &user.extra);
    Sha256::digest(serde_json::to_vec(&parts).expect("texts and maps of texts have a JSON form")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_follows_bearer() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(of("bearer  abc ").as_deref(), Some("abc"));
        for none in ["", "Bearer", "Bearer ", "Basic abc", "abc"] {
            assert_eq!(of(none), None, "{none:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn users_that_policy_could_tell_apart_are_not_taken_for_one() {
        let user = |name: &str, groups: &[&str]| UserInfo {
            username: Some(name.to_owned()),
            groups: Some(groups.iter().map(|&group| group.to_owned()).collect()),
            ..UserInfo::default()
        };
        assert_eq!(identity(&user("a", &["b"])), identity(&user("a", &["b"])));
        assert_ne!(identity(&user("a", &["b"])), identity(&user("a", &["b", "c"])));
        assert_ne!(identity(&user("a", &["b"])), identity(&user("ab", &[])));
    }
}
