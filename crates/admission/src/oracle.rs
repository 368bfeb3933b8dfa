//! What the rules must ask, because only an authorizer or a server knows.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// The right to do something, as a SubjectAccessReview names it. None of them is about a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The group.
    pub group: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// The virtual subresource.
    pub subresource: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// The object's name.
    pub name: String,
}

/// A question with a yes or a no.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Whether the one who attempts the write has this right.
    May(Access),
    /// Whether the namespace of this name is going away.
    IsTerminating(String),
}

/// Whoever knows.
pub trait Oracle {
    /// The answer to a question.
    fn answer(&self, question: &Question) -> bool;
}

/// Writes down what is asked, and answers so that everything is: rights are there, namespaces stay.
#[derive(Debug, Default)]
pub struct Recorder {
    asked: RefCell<HashSet<Question>>,
}

impl Recorder {
    /// What was asked.
    pub fn into_questions(self) -> HashSet<Question> {
        self.asked.into_inner()
    }
}

impl Oracle for Recorder {
    fn answer(&self, question: &Question) -> bool {
        self.asked.borrow_mut().insert(question.clone());
        matches!(question, Question::May(_))
    }
}

/// Answers that were fetched before. What nobody asked is a no to every right.
#[derive(Clone, Debug, Default)]
pub struct Answers(pub HashMap<Question, bool>);

impl Oracle for Answers {
    fn answer(&self, question: &Question) -> bool {
        self.0.get(question).copied().unwrap_or_default()
    }
}
