//! Dispatch: asking the webhooks that apply, in order or at once, and acting on what they say.
//!
//! Owns failure policies, dry runs, reinvocation and the gathering of warnings. Never matches or calls itself.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use berth_text::gotext::quote;
use bytes::Bytes;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use serde_json::Value;
use tokio::task::JoinSet;

use super::call::{CallError, Caller, ServiceResolver};
use super::configuration::Webhook;
use super::exchange::{Answer, ReviewVersion, read_answer, review, set_version, versioned};
use super::matching::{Invocation, invocation, is_exempt};
use super::{Admission, WebhookKind, WebhookSet};
use crate::refusal::Refusal;
use crate::token::{ObjectLookup, random_uuid};

/// What the hub lends for one request.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Finds namespaces.
    pub lookup: &'a (dyn ObjectLookup + Sync),
    /// Applies a JSON patch to an object (and fills in defaults after it); the error is a message.
    pub patch: &'a (dyn Fn(&Value, &Value) -> Result<Value, String> + Sync),
}

/// Asks admission webhooks.
#[derive(Clone)]
pub struct WebhookClient {
    caller: Arc<Caller>,
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookClient").finish_non_exhaustive()
    }
}

/// Why a webhook stops a request.
enum Stop {
    /// It could not be asked; its failure policy decides.
    Failure(String),
    /// It said no, or asked for what cannot be.
    Refusal(Refusal),
}

impl Stop {
    /// The refusal, unless the webhook's failures are to be ignored.
    fn decide(self, hook: &Webhook) -> Option<Refusal> {
        match self {
            Self::Refusal(refusal) => Some(refusal),
            Self::Failure(_) if hook.ignores_failure => None,
            Self::Failure(text) => {
                Some(Refusal::Internal(format!("failed calling webhook {}: {text}", quote(&hook.name))))
            }
        }
    }
}

impl From<CallError> for Stop {
    fn from(error: CallError) -> Self {
        Self::Failure(error.0)
    }
}

/// A question ready to be sent, free of borrows so that it can be sent from a task of its own.
struct Question {
    hook: Arc<Webhook>,
    kind: WebhookKind,
    uid: String,
    version: ReviewVersion,
    body: Bytes,
}

impl Question {
    fn new(
        hook: &Arc<Webhook>,
        kind: WebhookKind,
        admission: &Admission<'_>,
        invocation: Invocation<'_>,
    ) -> Result<Self, Stop> {
        if admission.dry_run {
            match hook.dry_run_safe {
                Some(true) => {}
                None => return Err(Stop::Failure("Webhook SideEffects is nil".to_owned())),
                Some(false) => {
                    let text = format!("admission webhook {} does not support dry run", quote(&hook.name));
                    return Err(Stop::Refusal(Refusal::BadRequest(text)));
                }
            }
        }
        let version = ReviewVersion::choose(hook).map_err(Stop::Failure)?;
        let uid = random_uuid().map_err(Stop::Failure)?;
        let body = review(&uid, version, admission, invocation).to_string();
        Ok(Self { hook: Arc::clone(hook), kind, uid, version, body: Bytes::from(body) })
    }

    async fn ask(self, caller: Arc<Caller>) -> Result<Answer, Stop> {
        let body = caller.post(&self.hook, self.body).await?;
        read_answer(&self.hook.name, self.kind, &self.uid, self.version, &body).map_err(Stop::Failure)
    }
}

impl WebhookClient {
    /// A client that finds services through `resolver`.
    pub fn new(resolver: Arc<dyn ServiceResolver>) -> Self {
        Self::with_time(resolver, Arc::new(DefaultTimeProvider))
    }

    /// A client that judges certificates by a time of the caller's.
    pub fn with_time(resolver: Arc<dyn ServiceResolver>, time: Arc<dyn TimeProvider>) -> Self {
        Self { caller: Arc::new(Caller::new(resolver, time)) }
    }

    /// Asks the mutating webhooks one after the other, each seeing what those before it made of the object. When a
    /// later one changed something, earlier ones that want it are asked once more.
    pub async fn mutate(
        &self,
        hooks: &WebhookSet,
        admission: &mut Admission<'_>,
        around: Around<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        if is_exempt(admission) {
            return Ok(());
        }
        let all: Vec<&Arc<Webhook>> = hooks.of(WebhookKind::Mutating).collect();
        // Webhooks asked already, and those of them that a later change calls for again.
        let (mut asked, mut again) = (HashSet::new(), HashSet::new());
        for round in 0..2 {
            for hook in &all {
                let Some(invocation) = invocation(hook, admission, around.lookup)? else { continue };
                if round == 1 && !again.contains(&hook.id) {
                    continue;
                }
                let changed = match self.mutate_one(hook, admission, invocation, around, warnings).await {
                    Ok(changed) => changed,
                    Err(stop) => match stop.decide(hook) {
                        Some(refusal) => return Err(refusal),
                        None => false,
                    },
                };
                if changed {
                    again.extend(asked.drain());
                }
                if hook.reinvocable {
                    asked.insert(hook.id.clone());
                }
            }
            if again.is_empty() {
                break;
            }
        }
        Ok(())
    }

    async fn mutate_one(
        &self,
        hook: &Arc<Webhook>,
        admission: &mut Admission<'_>,
        invocation: Invocation<'_>,
        around: Around<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<bool, Stop> {
        let question = Question::new(hook, WebhookKind::Mutating, admission, invocation)?;
        let answer = question.ask(Arc::clone(&self.caller)).await?;
        warnings.extend(answer.warnings);
        answer.verdict.map_err(Stop::Refusal)?;
        let Some(patch) = answer.patch else { return Ok(false) };
        let Some(object) = &admission.object else {
            return Err(Stop::Refusal(Refusal::Internal(format!(
                "admission webhook {} attempted to modify the object, which is not supported for this operation",
                quote(&hook.name)
            ))));
        };
        let shown = versioned(object, invocation.kind);
        let mut patched =
            (around.patch)(&shown, &patch).map_err(|text| Stop::Refusal(Refusal::Internal(text)))?;
        let changed = patched != shown;
        set_version(&mut patched, admission.kind);
        admission.object = Some(patched);
        Ok(changed)
    }

    /// Asks the validating webhooks all at once; the refusal of the first in order counts.
    pub async fn validate(
        &self,
        hooks: &WebhookSet,
        admission: &Admission<'_>,
        around: Around<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        if is_exempt(admission) {
            return Ok(());
        }
        let mut questions = Vec::new();
        for hook in hooks.of(WebhookKind::Validating) {
            if let Some(invocation) = invocation(hook, admission, around.lookup)? {
                questions.push((hook, Question::new(hook, WebhookKind::Validating, admission, invocation)));
            }
        }
        // Aborted when this future is dropped, so no call outlives its request.
        let mut tasks = JoinSet::new();
        let mut asked = Vec::new();
        let mut answers: Vec<Option<Result<Answer, Stop>>> = Vec::new();
        for (index, (hook, question)) in questions.into_iter().enumerate() {
            asked.push(hook);
            answers.push(None);
            match question {
                Ok(question) => {
                    let caller = Arc::clone(&self.caller);
                    tasks.spawn(async move { (index, question.ask(caller).await) });
                }
                Err(stop) => answers[index] = Some(Err(stop)),
            }
        }
        while let Some(done) = tasks.join_next().await {
            // A task that panicked leaves its place empty, which counts as a failure below.
            if let Ok((index, answer)) = done {
                answers[index] = Some(answer);
            }
        }
        let mut refusal = None;
        for (hook, answer) in asked.into_iter().zip(answers) {
            let answer = answer.unwrap_or_else(|| Err(Stop::Failure("the call broke off".to_owned())));
            let verdict = answer.and_then(|answer| {
                warnings.extend(answer.warnings);
                answer.verdict.map_err(Stop::Refusal)
            });
            if let Err(stop) = verdict {
                refusal = refusal.or_else(|| stop.decide(hook));
            }
        }
        refusal.map_or(Ok(()), Err)
    }
}
