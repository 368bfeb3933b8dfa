//! What has to hold before something is done that cannot be undone: gates, as values with typed answers.
//!
//! Owns the gates that can be judged by the objects alone: an expression, a condition, an annotation; and for those that somebody
//! outside is asked about, when that is and what the answer counts for. It asks nobody itself, and knows nothing of who asks or
//! what for. A gate that cannot be judged is shut: an expression that fails says nothing about what it was asked.

mod address;

use std::fmt;
use std::sync::{Arc, LazyLock};

use berth_cel::{
    Bindings, Budget, Env, EnvBuilder, EvalError, PER_CALL_COST_LIMIT, PER_OBJECT_COST_BUDGET, Program, Type,
    Value,
};
use serde::Serialize;

use crate::moment::Moment;

pub(crate) use address::from_base64;
pub use address::{Address, AddressError};

/// The variables an expression knows.
const POD: &str = "pod";
const NODE: &str = "node";
const OWNER: &str = "owner";
/// Those that one about a member of a workload knows besides.
const CLAIMS: &str = "pvcs";
const VOLUMES: &str = "pvs";
const PEERS: &str = "peers";
const NOW: &str = "now";

/// Something that has to hold.
#[derive(Clone, Debug)]
pub struct Gate {
    name: Arc<str>,
    question: Question,
}

#[derive(Clone, Debug)]
enum Question {
    Expression { program: Arc<Program>, reads_owner: bool },
    Condition { kind: Box<str>, status: Box<str>, is_fresh: bool },
    Annotation { key: Box<str>, value: Option<Box<str>> },
    Review(Address),
}

/// What somebody outside said: the pod may go, or why not.
pub type Opinion = Result<(), Why>;

/// How far a pod comes through its gates.
#[derive(Clone, Debug, PartialEq)]
pub enum Passage<'g> {
    /// All are open.
    Open,
    /// One is shut; those before it are open.
    Shut(Shut),
    /// Somebody outside is to be asked; the gates before this are open.
    Asks {
        /// The gate's name.
        gate: &'g Arc<str>,
        /// Who is to be asked.
        address: &'g Address,
    },
}

/// How a gate stands, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is open.
    Open,
    /// It is shut.
    Shut(Why),
    /// Somebody outside knows, and is not asked for this.
    Unasked,
}

/// The objects a gate is judged by, as the API shows them.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'s> {
    /// The pod.
    pub pod: &'s serde_json::Value,
    /// Its node; `None` where there is none.
    pub node: Option<&'s serde_json::Value>,
    /// Its owner; `None` where there is none, or it cannot be read.
    pub owner: Option<&'s serde_json::Value>,
    /// What else a member of a workload is judged by; `None` where a pod is judged for itself.
    pub company: Option<Company<'s>>,
}

/// What a member of a workload is judged by besides itself.
#[derive(Clone, Copy, Debug)]
pub struct Company<'s> {
    /// Its claims.
    pub claims: &'s [serde_json::Value],
    /// Their volumes.
    pub volumes: &'s [serde_json::Value],
    /// The other members.
    pub peers: &'s [serde_json::Value],
    /// The moment.
    pub now: Moment,
    /// When what is judged about began; `None` if it has not.
    pub started: Option<Moment>,
}

/// A gate that is shut, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shut {
    /// The gate's name.
    pub gate: Arc<str>,
    /// Why it is shut.
    pub why: Why,
}

/// Why a gate is shut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Why {
    /// The expression gave `false`.
    False,
    /// The expression gave something that is not a truth value.
    NotBool {
        /// Its type.
        found: String,
    },
    /// The expression failed, or cost too much.
    Failed {
        /// What went wrong.
        error: String,
    },
    /// The pod does not have the condition.
    NoCondition {
        /// Its type.
        condition: Box<str>,
    },
    /// The condition says so from before it was asked.
    OldCondition {
        /// Its type.
        condition: Box<str>,
    },
    /// The condition has another status.
    Condition {
        /// Its type.
        condition: Box<str>,
        /// Its status.
        found: String,
    },
    /// The pod does not have the annotation.
    NoAnnotation {
        /// Its key.
        key: Box<str>,
    },
    /// The annotation has another value.
    Annotation {
        /// Its key.
        key: Box<str>,
        /// Its value.
        found: String,
    },
    /// Who was asked does not allow it.
    Denied {
        /// What was said about it; may be empty.
        message: String,
    },
    /// Who was asked does not allow it yet.
    Later {
        /// When to ask again.
        until: Moment,
        /// What was said about it; may be empty.
        message: String,
    },
    /// Who was asked has not said yes or no.
    Unanswered {
        /// Why.
        error: String,
    },
}

impl Why {
    /// Whether it is the word of somebody outside, which no change of the pod makes another.
    pub fn is_opinion(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::Later { .. } | Self::Unanswered { .. })
    }
}

/// The longest value of an object that is repeated to people, in characters.
const SHOWN_CHARS_MAX: usize = 80;

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::False => f.write_str("its expression is false"),
            Self::NotBool { found } => write!(f, "its expression gives a value of type {found}, not a bool"),
            Self::Failed { error } => write!(f, "its expression fails: {error}"),
            Self::NoCondition { condition } => write!(f, "the pod has no condition {condition}"),
            Self::OldCondition { condition } => {
                write!(f, "the pod's condition {condition} has not changed since it was asked")
            }
            Self::Condition { condition, found } => write!(f, "the pod's condition {condition} is {found}"),
            Self::NoAnnotation { key } => write!(f, "the pod has no annotation {key}"),
            Self::Annotation { key, found } => {
                let shown: String = found.chars().take(SHOWN_CHARS_MAX).collect();
                write!(f, "the pod's annotation {key} is {shown:?}")
            }
            Self::Denied { message } => write!(f, "its review says no{}", Said(message)),
            Self::Later { until, message } => {
                write!(f, "its review says not before {until}{}", Said(message))
            }
            Self::Unanswered { error } => write!(f, "its review has no answer: {error}"),
        }
    }
}

/// What was said with an answer, if anything.
struct Said<'m>(&'m str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

impl fmt::Display for Shut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gate {} is shut: {}", self.gate, self.why)
    }
}

impl Gate {
    /// A gate that is open while an expression over `pod`, `node` and `owner` is true. The error says what is wrong with it.
    pub fn expression(name: &str, source: &str) -> Result<Self, String> {
        Self::over(&OF_A_POD, name, source)
    }

    /// A gate that is open while an expression over what a pod is judged by, `pvcs`, `pvs`, `peers` and `now` is true.
    pub fn expression_of_a_member(name: &str, source: &str) -> Result<Self, String> {
        static OF_A_MEMBER: LazyLock<Env> = LazyLock::new(|| {
            let objects = || Type::list(Type::map(Type::String, Type::Dyn));
            about_a_pod()
                .variable(CLAIMS, objects())
                .variable(VOLUMES, objects())
                .variable(PEERS, objects())
                .variable(NOW, Type::Timestamp)
                .build()
        });
        Self::over(&OF_A_MEMBER, name, source)
    }

    fn over(env: &Env, name: &str, source: &str) -> Result<Self, String> {
        let program = env.compile(source).map_err(|error| error.one_line())?;
        if !matches!(program.output_type(), Type::Bool | Type::Dyn) {
            return Err(format!(
                "the expression gives a value of type {}; it must give a bool",
                program.output_type()
            ));
        }
        let reads_owner = program.field_paths().iter().any(|path| {
            path.strip_prefix(OWNER).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        Ok(Self {
            name: name.into(),
            question: Question::Expression { program: Arc::new(program), reads_owner },
        })
    }

    /// A gate that is open while the pod has a condition of this type and status.
    pub fn condition(name: &str, kind: &str, status: &str) -> Self {
        let question = Question::Condition { kind: kind.into(), status: status.into(), is_fresh: false };
        Self { name: name.into(), question }
    }

    /// The same, but only once the condition has changed after what is judged about began.
    pub fn fresh_condition(name: &str, kind: &str, status: &str) -> Self {
        let question = Question::Condition { kind: kind.into(), status: status.into(), is_fresh: true };
        Self { name: name.into(), question }
    }

    /// A gate that is open while the pod has an annotation, with this value if one is given.
    pub fn annotation(name: &str, key: &str, value: Option<&str>) -> Self {
        Self {
            name: name.into(),
            question: Question::Annotation { key: key.into(), value: value.map(Into::into) },
        }
    }

    /// A gate that is open when the service at an address says so.
    pub fn review(name: &str, address: Address) -> Self {
        Self { name: name.into(), question: Question::Review(address) }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether it looks at the pod's owner.
    pub fn reads_owner(&self) -> bool {
        matches!(self.question, Question::Expression { reads_owner: true, .. })
    }

    /// Who is asked about it, if somebody outside is.
    pub fn address(&self) -> Option<&Address> {
        match &self.question {
            Question::Review(address) => Some(address),
            _ => None,
        }
    }
}

fn about_a_pod() -> EnvBuilder {
    let object = || Type::map(Type::String, Type::Dyn);
    // Either of the two others may be missing, and is null then.
    Env::builder().variable(POD, object()).variable(NODE, Type::Dyn).variable(OWNER, Type::Dyn)
}

static OF_A_POD: LazyLock<Env> = LazyLock::new(|| about_a_pod().build());

/// An expression over `pod`, `node` and `owner` that gives a whole number.
#[derive(Clone, Debug)]
pub struct Rank(Arc<Program>);

impl Rank {
    /// Reads the expression. The error says what is wrong with it.
    pub fn compile(source: &str) -> Result<Self, String> {
        let program = OF_A_POD.compile(source).map_err(|error| error.one_line())?;
        if !matches!(program.output_type(), Type::Int | Type::Dyn) {
            let found = program.output_type();
            return Err(format!("the expression gives a value of type {found}; it must give an int"));
        }
        Ok(Self(Arc::new(program)))
    }

    /// The number; `None` where the expression fails or gives something else.
    pub fn of(&self, sight: Sight<'_>) -> Option<i64> {
        match self.0.evaluate(&bindings(sight), &mut Budget::per_call()) {
            Ok(Value::Int(number)) => Some(number),
            _ => None,
        }
    }
}

/// The objects, as expressions see them.
fn bindings(sight: Sight<'_>) -> Bindings {
    let Sight { pod, node, owner, company } = sight;
    let or_null = |object: Option<&serde_json::Value>| object.map_or(Value::Null, Value::from_json);
    let bindings = Bindings::new()
        .with(POD, Value::from_json(pod))
        .with(NODE, or_null(node))
        .with(OWNER, or_null(owner));
    let Some(Company { claims, volumes, peers, now, .. }) = company else { return bindings };
    let all = |objects: &[serde_json::Value]| Value::list(objects.iter().map(Value::from_json).collect());
    let now = now.timestamp().map_or(Value::Null, Value::Timestamp);
    bindings.with(CLAIMS, all(claims)).with(VOLUMES, all(volumes)).with(PEERS, all(peers)).with(NOW, now)
}

/// How far a pod comes through gates, in their order, with what was said so far about some of them, by their names. All
/// expressions together have the budget of one object.
pub fn passage<'g>(gates: &'g [Gate], sight: Sight<'_>, said: &[(Arc<str>, Opinion)]) -> Passage<'g> {
    let mut court = Court { sight, bindings: None, budget: Budget::new(PER_OBJECT_COST_BUDGET) };
    for gate in gates {
        let opinion = match &gate.question {
            Question::Review(address) => match said.iter().find(|(name, _)| *name == gate.name) {
                Some((_, opinion)) => opinion.clone(),
                None => return Passage::Asks { gate: &gate.name, address },
            },
            question => court.judge(question).map_or(Ok(()), Err),
        };
        if let Err(why) = opinion {
            return Passage::Shut(Shut { gate: Arc::clone(&gate.name), why });
        }
    }
    Passage::Open
}

/// How every gate stands. Each has a budget of its own, and nobody is asked: this is for people.
pub fn all(gates: &[Gate], sight: Sight<'_>) -> Vec<(Arc<str>, Standing)> {
    let judged = gates.iter().map(|gate| {
        let standing = match passage(std::slice::from_ref(gate), sight, &[]) {
            Passage::Open => Standing::Open,
            Passage::Shut(shut) => Standing::Shut(shut.why),
            Passage::Asks { .. } => Standing::Unasked,
        };
        (Arc::clone(&gate.name), standing)
    });
    judged.collect()
}

/// What judging several gates of one pod shares.
struct Court<'s> {
    sight: Sight<'s>,
    bindings: Option<Bindings>,
    budget: Budget,
}

impl Court<'_> {
    /// Why a question that the objects answer has another answer than it should; `None` where it has not.
    fn judge(&mut self, question: &Question) -> Option<Why> {
        match question {
            Question::Review(_) => Some(Why::Unanswered { error: "nobody was asked".to_owned() }),
            Question::Expression { program, .. } => self.evaluate(program),
            Question::Condition { kind, status, is_fresh } => {
                let conditions =
                    self.sight.pod.pointer("/status/conditions").and_then(|list| list.as_array());
                let Some(told) = conditions.into_iter().flatten().find(|one| one["type"] == **kind) else {
                    return Some(Why::NoCondition { condition: kind.clone() });
                };
                let found = told["status"].as_str().unwrap_or_default();
                if found != &**status {
                    return Some(Why::Condition { condition: kind.clone(), found: found.to_owned() });
                }
                let started = self.sight.company.and_then(|company| company.started);
                let since = told["lastTransitionTime"].as_str().and_then(berth_api::time::parse);
                let is_new = started
                    .zip(since)
                    .is_some_and(|(started, since)| Moment::from_timestamp(since) >= started);
                (*is_fresh && !is_new).then(|| Why::OldCondition { condition: kind.clone() })
            }
            Question::Annotation { key, value } => {
                let annotations = &self.sight.pod["metadata"]["annotations"];
                match (annotations.get(&**key).and_then(|value| value.as_str()), value) {
                    (None, _) => Some(Why::NoAnnotation { key: key.clone() }),
                    (Some(_), None) => None,
                    (Some(found), Some(value)) if found == &**value => None,
                    (Some(found), _) => Some(Why::Annotation { key: key.clone(), found: found.to_owned() }),
                }
            }
        }
    }

    fn evaluate(&mut self, program: &Program) -> Option<Why> {
        let bindings = self.bindings.get_or_insert_with(|| bindings(self.sight));
        let mut slice = self.budget.slice(PER_CALL_COST_LIMIT);
        let outcome: Result<Value, EvalError> = program.evaluate(bindings, &mut slice);
        self.budget.settle(&slice);
        match outcome {
            Ok(Value::Bool(true)) => None,
            Ok(Value::Bool(false)) => Some(Why::False),
            Ok(other) => Some(Why::NotBool { found: other.type_of().to_string() }),
            Err(error) => Some(Why::Failed { error: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests;
