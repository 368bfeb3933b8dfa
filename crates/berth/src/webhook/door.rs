//! The rules, asked by the API server.
//!
//! Owns the way from a review to an answer: first what would be asked is written down, then it is asked, then the rules
//! decide with the answers. Fails closed. Never changes anything on the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_admission::{Denial, Oracle, Recorder, TimeAdded, concerns, mutate, stake, validate};
use berth_control::serve::Metrics;
use jiff::Timestamp;
use kube::Client;

use super::lookout::Lookout;
use super::questions::{Questions, Unanswered};
use super::review::{Answer, Request};
use crate::fleet::stakes;

/// How long a write waits for a warning: none is better than a late write.
const WARN_WITHIN: Duration = Duration::from_secs(1);

/// Which of the two webhooks is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Mutate,
    Validate,
}

impl Path {
    fn word(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

/// The rules, with everything they need.
pub(crate) struct Door {
    pub(crate) questions: Questions,
    pub(crate) lookout: Lookout,
    pub(crate) time_added: TimeAdded,
    pub(crate) metrics: Arc<Metrics>,
}

impl Door {
    pub(crate) fn new(
        client: Client,
        lookout: Lookout,
        time_added: TimeAdded,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { questions: Questions::new(client), lookout, time_added, metrics }
    }

    /// Answers one review.
    pub(crate) async fn answer(&self, path: Path, request: &Request, now: Timestamp) -> Answer {
        let begun = Instant::now();
        let answer = self.decide(path, request, now).await;
        let verdict = match &answer.denial {
            None => "allowed",
            Some(denial) if denial.code >= 500 => "failed",
            Some(_) => "denied",
        };
        self.metrics.reviewed(path.word(), verdict, begun.elapsed());
        answer
    }

    async fn decide(&self, path: Path, request: &Request, now: Timestamp) -> Answer {
        let concerned = concerns(&request.resource.group, &request.resource.resource, &request.sub_resource);
        let Some(attempt) = request.attempt(now, self.time_added).filter(|_| concerned) else {
            return Answer::default();
        };
        let run = |oracle: &dyn Oracle| -> Result<Answer, Denial> {
            match (path, request.object()) {
                (Path::Mutate, Some(object)) => {
                    let mut changed = object.clone();
                    mutate(&attempt, &mut changed, oracle)?;
                    let patch = json_patch::diff(object, &changed);
                    let patch = (!patch.0.is_empty())
                        .then(|| serde_json::to_value(patch).expect("a patch is made of JSON"));
                    Ok(Answer { patch, ..Answer::default() })
                }
                (Path::Mutate, None) => Ok(Answer::default()),
                (Path::Validate, object) => validate(&attempt, object, oracle)
                    .map(|warnings| Answer { warnings, ..Answer::default() }),
            }
        };
        let recorder = Recorder::default();
        // What it comes to without answers does not count; only what was asked does.
        let _ = run(&recorder);
        let answers = match self.questions.answer(&request.user_info, recorder.into_questions()).await {
            Ok(answers) => answers,
            Err(unanswered) => {
                tracing::warn!(error = %unanswered, "a write was refused because its rules could not be asked");
                return Answer::denied(unknown(&unanswered));
            }
        };
        let mut answer = match run(&answers) {
            Ok(answer) => answer,
            Err(denial) => return Answer::denied(denial),
        };
        if path == Path::Validate
            && let Some(change) = stake(&attempt, request.object())
        {
            let inquirer = self.lookout.inquirer();
            let warning = tokio::time::timeout(WARN_WITHIN, stakes::warning(&inquirer, change)).await;
            answer.warnings.extend(warning.ok().flatten());
        }
        answer
    }
}

/// The refusal of a write whose rules could not be asked.
fn unknown(unanswered: &Unanswered) -> Denial {
    let code = if matches!(unanswered, Unanswered::Late) { 504 } else { 500 };
    Denial {
        code,
        message: format!(
            "whether this is allowed could not be found out, so it is not: {unanswered}; try again"
        ),
        fields: Vec::new(),
    }
}
