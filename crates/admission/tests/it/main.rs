//! The rules, by the cases upstream tests its own with, and by those it gets wrong.

#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

mod cluster;
mod eviction_policy;
mod hostile;
mod placement;
mod replacement;
mod set_binding;
mod taints;

use std::collections::HashSet;

use berth_admission::{Attempt, Denial, Operation, Oracle, Question, Recorder, TimeAdded, mutate, validate};
use serde_json::Value;

/// Somebody with some rights, by `subresource/name`, in a world where some namespaces are going away.
#[derive(Debug, Default)]
pub(crate) struct Somebody {
    pub(crate) rights: HashSet<String>,
    pub(crate) terminating: HashSet<String>,
}

impl Somebody {
    pub(crate) fn who_may(rights: &[&str]) -> Self {
        Self { rights: rights.iter().map(ToString::to_string).collect(), terminating: HashSet::new() }
    }
}

impl Oracle for Somebody {
    fn answer(&self, question: &Question) -> bool {
        match question {
            Question::May(access) => self.rights.contains(&format!("{}/{}", access.subresource, access.name)),
            Question::IsTerminating(namespace) => self.terminating.contains(namespace),
        }
    }
}

pub(crate) const NOW: &str = "2026-11-16T12:00:00Z";

pub(crate) fn attempt<'a>(resource: &'a str, name: &'a str, old: Option<&'a Value>) -> Attempt<'a> {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let now = NOW.parse().unwrap();
    Attempt { operation, resource, name, user: "ann", old, now, time_added: TimeAdded::Server }
}

/// What is stored and what is said, or why it is refused.
pub(crate) fn admit(
    resource: &str,
    old: Option<&Value>,
    new: &Value,
    somebody: &dyn Oracle,
) -> Result<(Value, Vec<String>), Denial> {
    let name = new["metadata"]["name"].as_str().unwrap().to_owned();
    let attempt = attempt(resource, &name, old);
    let mut object = new.clone();
    mutate(&attempt, &mut object, somebody)?;
    let warnings = validate(&attempt, Some(&object), somebody)?;
    Ok((object, warnings))
}

/// What a webhook would have to ask before it can decide.
pub(crate) fn questions(resource: &str, old: Option<&Value>, new: &Value) -> HashSet<Question> {
    let recorder = Recorder::default();
    admit(resource, old, new, &recorder).unwrap();
    recorder.into_questions()
}
