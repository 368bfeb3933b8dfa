//! How far a pod is on its way out, as data.

use std::sync::Arc;

use berth_engine::Moment;
use berth_engine::evict::policy::{Authority, Demand, Keep, Rule};
use serde_json::Value;

use super::PodId;
use crate::review::Answer;

/// A write under way.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) id: PodId,
    /// Who wants the pod gone.
    pub(super) authority: Authority,
    pub(super) step: Step,
}

/// What a write does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Looks at the pod and what is around it.
    Look,
    /// Asks somebody outside about it.
    Ask,
    /// Tells the pod why it goes.
    Mark,
    /// Deletes it, which was due at a moment.
    Delete(Moment),
    /// Evicts it, which was due at a moment.
    Evict(Moment),
    /// Deletes it by force.
    Destroy,
}

/// How far somebody is whom the marshal has let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was done yet.
    LetGo,
    /// It was looked at, and perhaps somebody was asked about it.
    Seen,
    /// It has been told why it goes.
    Marked,
    /// Its eviction was answered at a moment; that it leaves was not seen yet.
    Sent(Moment),
}

/// A pod and what is around it, as it was shown.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) pod: Box<Value>,
    pub(super) node: Option<Box<Value>>,
    pub(super) owner: Option<Box<Value>>,
    /// What was said about it as it was shown, by the gate that asked.
    pub(super) said: Vec<(Arc<str>, Answer)>,
    /// The policy, with its generation, whose gates asked.
    by: Option<(Arc<str>, i64)>,
}

impl Shown {
    /// What was shown, and nobody has said anything yet.
    pub(super) fn new(pod: Box<Value>, node: Option<Box<Value>>, owner: Option<Box<Value>>) -> Self {
        Self { pod, node, owner, said: Vec::new(), by: None }
    }

    /// Only what was said to this policy as it is now counts: another may have a gate of the same name.
    pub(super) fn listen_to(&mut self, rule: &Rule) {
        let by = (Arc::clone(&rule.name), rule.generation);
        if self.by.as_ref() != Some(&by) {
            self.said.clear();
            self.by = Some(by);
        }
    }
}

/// What is to be done about a pod that must leave.
pub(super) struct Choice {
    /// The demand that counts; none where all of them hold it.
    pub(super) demand: Option<Demand>,
    /// From when on.
    pub(super) at: Moment,
    /// When time alone changes the choice.
    pub(super) wake: Option<Moment>,
    /// What holds it.
    pub(super) keep: Option<Keep>,
}
