//! What the rules must know, asked of the API server.
//!
//! Owns the way from a question to a SubjectAccessReview or a look at a namespace, and its bounds. Never answers by itself:
//! what cannot be asked is an error, and whoever asked refuses the write.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use berth_admission::{Access, Answers, Question};
use futures::future::try_join_all;
use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::Semaphore;

/// How long all questions of one write may take together: well below what the API server waits for us.
const ANSWER_WITHIN: Duration = Duration::from_secs(6);
/// Requests to the API server at once, over all writes.
const REQUESTS_MAX: usize = 64;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    /// The API server did not answer in time.
    #[error("the API server did not answer within {} s", ANSWER_WITHIN.as_secs())]
    Late,
    /// It refused, or could not be reached.
    #[error("the API server was asked {what} and failed: {source}")]
    Failed {
        /// What it was asked.
        what: String,
        /// What it said.
        source: Box<kube::Error>,
    },
}

/// Asks the API server.
pub(crate) struct Questions {
    client: Client,
    places: Semaphore,
}

impl Questions {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, places: Semaphore::new(REQUESTS_MAX) }
    }

    /// The answers to all of these, for a write of `user`.
    pub(crate) async fn answer(
        &self,
        user: &UserInfo,
        asked: HashSet<Question>,
    ) -> Result<Answers, Unanswered> {
        if asked.is_empty() {
            return Ok(Answers::default());
        }
        let answers = try_join_all(asked.into_iter().map(async |question| {
            let _place = self.places.acquire().await.expect("the semaphore is never closed");
            let answer = match &question {
                Question::May(access) => self.may(user, access).await?,
                Question::IsTerminating(namespace) => self.is_terminating(namespace).await?,
            };
            Ok((question, answer))
        }));
        match tokio::time::timeout(ANSWER_WITHIN, answers).await {
            Ok(answers) => Ok(Answers(answers?.into_iter().collect::<HashMap<_, _>>())),
            Err(_) => Err(Unanswered::Late),
        }
    }

    async fn may(&self, user: &UserInfo, access: &Access) -> Result<bool, Unanswered> {
        let review = SubjectAccessReview { spec: spec(user, access), ..SubjectAccessReview::default() };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let reviewed = api.create(&PostParams::default(), &review).await;
        let reviewed = reviewed.map_err(|source| Unanswered::Failed {
            what: format!(
                "whether {:?} may {} {}",
                review.spec.user.unwrap_or_default(),
                access.verb,
                access.resource
            ),
            source: Box::new(source),
        })?;
        Ok(reviewed.status.is_some_and(|status| status.allowed))
    }

    async fn is_terminating(&self, name: &str) -> Result<bool, Unanswered> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let found = api.get_metadata_opt(name).await.map_err(|source| Unanswered::Failed {
            what: format!("for the namespace {name:?}"),
            source: Box::new(source),
        })?;
        Ok(found.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some()))
    }
}

/// The right, for the one who writes: name, uid, groups and extra as the API server told them.
fn spec(user: &UserInfo, access: &Access) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.clone(),
        resource_attributes: Some(ResourceAttributes {
            group: Some(access.group.to_owned()),
            resource: Some(access.resource.to_owned()),
            subresource: Some(access.subresource.to_owned()),
            verb: Some(access.verb.to_owned()),
            name: Some(access.name.clone()),
            ..ResourceAttributes::default()
        }),
        ..SubjectAccessReviewSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_asked_for_whoever_writes() {
        let user = UserInfo {
            username: Some("ann".to_owned()),
            uid: Some("7".to_owned()),
            groups: Some(vec!["dev".to_owned()]),
            extra: Some([("a".to_owned(), vec!["b".to_owned()])].into()),
        };
        let access = Access {
            group: "cluster.open-cluster-management.io",
            resource: "managedclustersets",
            subresource: "join",
            verb: "create",
            name: "blue".to_owned(),
        };
        let spec = spec(&user, &access);
        assert_eq!(
            (spec.user, spec.uid, spec.groups, spec.extra),
            (user.username, user.uid, user.groups, user.extra)
        );
        let asked = spec.resource_attributes.unwrap();
        assert_eq!(asked.subresource.as_deref(), Some("join"));
        assert_eq!(asked.name.as_deref(), Some("blue"));
        assert_eq!((asked.namespace, asked.version), (None, None));
    }
}
