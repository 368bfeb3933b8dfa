//! A compiled expression.
//!
//! Owns the tree that is evaluated: names resolved to slots, overloads chosen, costs attached. It is
//! immutable and shared freely between threads. Never looks at source text.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cost::{Budget, CostModel};
use crate::error::EvalError;
use crate::eval::{self, Bindings};
use crate::function::Overload;
use crate::library::regex::Pattern;
use crate::types::Type;
use crate::value::Value;

/// An expression that has been parsed, checked and made ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) root: Arc<Node>,
    pub(crate) output: Type,
    pub(crate) functions: Arc<BTreeSet<String>>,
}

impl Program {
    /// The type of the result, as far as it is known before evaluation.
    pub fn output_type(&self) -> &Type {
        &self.output
    }

    /// Whether the expression calls a function of this name; operators go by names such as `_+_`.
    pub fn references_function(&self, name: &str) -> bool {
        self.functions.contains(name)
    }

    /// The longest paths of fields the expression reads from its variables, such as
    /// `managedCluster.metadata.labels`, in order.
    pub fn field_paths(&self) -> Vec<String> {
        let mut paths = BTreeSet::new();
        self.root.collect_paths(&mut paths);
        paths.into_iter().collect()
    }

    /// Evaluates the expression. What it costs is taken from the budget, whether it succeeds or not.
    pub fn evaluate(&self, bindings: &Bindings, budget: &mut Budget) -> Result<Value, EvalError> {
        eval::evaluate(&self.root, bindings, budget)
    }
}

/// A step of the evaluation.
#[derive(Debug)]
pub(crate) enum Node {
    Const(Value),
    /// A variable of the environment.
    Variable {
        name: Arc<str>,
        cost: u64,
    },
    /// A variable that a macro binds, by its place on the stack.
    Local {
        slot: usize,
        cost: u64,
    },
    Select {
        operand: Box<Node>,
        field: Arc<str>,
        cost: u64,
    },
    /// `has(operand.field)`
    Has {
        operand: Box<Node>,
        field: Arc<str>,
        cost: u64,
    },
    /// `operand.?field`
    OptionalSelect {
        operand: Box<Node>,
        field: Arc<str>,
        cost: u64,
    },
    Index {
        operand: Box<Node>,
        index: Box<Node>,
        optional: bool,
        cost: u64,
    },
    Call {
        callee: Arc<Callee>,
        args: Box<[Node]>,
    },
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    NotStrictlyFalse(Box<Node>),
    /// `a.or(b)`, or `a.orValue(b)` if it unwraps; `b` is only evaluated where `a` is absent.
    OptionalOr {
        parts: Box<[Node; 2]>,
        unwrap: bool,
    },
    List(Box<[(bool, Node)]>),
    Map(Box<[(bool, Node, Node)]>),
    Fold(Box<Fold>),
    /// `accumulator + [element]` in the step of a fold, done in place.
    Append {
        slot: usize,
        element: Box<Node>,
    },
}

/// The function a call may reach, and what it costs.
#[derive(Debug)]
pub(crate) struct Callee {
    /// The overloads that the checker could not rule out; never empty.
    pub(crate) candidates: Vec<Arc<Overload>>,
    pub(crate) cost: CostModel,
    /// Whether any candidate may take arguments that none admits: at run time numbers compare across
    /// their types, whether or not the checker lets such a comparison pass.
    pub(crate) open: bool,
    /// A pattern argument that was known at compile time.
    pub(crate) pattern: Option<Arc<Pattern>>,
}

/// A loop over a list or the keys of a map. The accumulator has the slot given, the variable the next.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) slot: usize,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

impl Node {
    /// Whether the node reads a place, rather than computing a value: reading further from a computed
    /// value costs one unit more.
    pub(crate) fn is_attribute(&self) -> bool {
        matches!(
            self,
            Self::Variable { .. }
                | Self::Local { .. }
                | Self::Select { .. }
                | Self::OptionalSelect { .. }
                | Self::Index { .. }
                | Self::Conditional(_)
        )
    }

    /// Takes the base cost off an attribute: as the branch of a conditional only its selections are
    /// charged.
    pub(crate) fn waive_base_cost(&mut self) {
        match self {
            Self::Variable { cost, .. } | Self::Local { cost, .. } => *cost = 0,
            Self::Select { operand, cost, .. }
            | Self::OptionalSelect { operand, cost, .. }
            | Self::Index { operand, cost, .. } => {
                if operand.is_attribute() {
                    operand.waive_base_cost();
                } else {
                    *cost = cost.saturating_sub(1);
                }
            }
            _ => {}
        }
    }

    fn path(&self) -> Option<String> {
        let (operand, field) = match self {
            Self::Variable { name, .. } => return Some(name.to_string()),
            Self::Select { operand, field, .. }
            | Self::Has { operand, field, .. }
            | Self::OptionalSelect { operand, field, .. } => (operand, field),
            Self::Index { operand, index, .. } => match index.as_ref() {
                Self::Const(Value::String(field)) => (operand, field),
                _ => return None,
            },
            _ => return None,
        };
        operand.path().map(|path| format!("{path}.{field}"))
    }

    fn collect_paths(&self, paths: &mut BTreeSet<String>) {
        if let Some(path) = self.path() {
            paths.insert(path);
            return;
        }
        match self {
            Self::Const(_) | Self::Variable { .. } | Self::Local { .. } => {}
            Self::Select { operand, .. }
            | Self::Has { operand, .. }
            | Self::OptionalSelect { operand, .. } => {
                operand.collect_paths(paths);
            }
            Self::Index { operand, index, .. } => {
                operand.collect_paths(paths);
                index.collect_paths(paths);
            }
            Self::Call { args, .. } => args.iter().for_each(|arg| arg.collect_paths(paths)),
            Self::And(terms) | Self::Or(terms) | Self::OptionalOr { parts: terms, .. } => {
                terms.iter().for_each(|term| term.collect_paths(paths));
            }
            Self::Conditional(parts) => parts.iter().for_each(|part| part.collect_paths(paths)),
            Self::NotStrictlyFalse(inner) | Self::Append { element: inner, .. } => inner.collect_paths(paths),
            Self::List(elements) => elements.iter().for_each(|(_, element)| element.collect_paths(paths)),
            Self::Map(entries) => entries.iter().for_each(|(_, key, value)| {
                key.collect_paths(paths);
                value.collect_paths(paths);
            }),
            Self::Fold(fold) => {
                for part in [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result] {
                    part.collect_paths(paths);
                }
            }
        }
    }
}
