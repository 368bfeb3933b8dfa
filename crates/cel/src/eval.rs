//! Evaluates programs.
//!
//! Owns the order of evaluation, short circuits and the absorption of errors. Recursion follows the
//! tree, whose height the parser bounds; everything else is charged to the budget before it happens.
//! Never blocks, never looks at a clock.

mod access;

use std::borrow::Cow;
use std::sync::Arc;

use crate::cost::{Budget, LIST_CREATE_COST, MAP_CREATE_COST, MAP_ENTRY_WORK, SELECT_COST, STEP_WORK};
use crate::error::EvalError;
use crate::function::{Implementation, Outcome};
use crate::library::regex::Pattern;
use crate::library::strings;
use crate::map::{Key, Map};
use crate::program::{Callee, Fold, Node};
use crate::value::Value;

/// Patterns kept during one evaluation.
const PATTERNS_KEPT_MAX: usize = 16;

/// The values of an environment's variables.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// A handful at most, so a scan beats a hash.
    entries: Vec<(Arc<str>, Value)>,
}

impl Bindings {
    /// No values yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a variable its value.
    #[must_use]
    pub fn with(mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Gives a variable its value, replacing the one it had.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.entries.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((name, value)),
        }
    }

    /// The value bound to a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|(known, _)| known.as_ref() == name).map(|(_, value)| value)
    }
}

/// The state of one evaluation.
pub(crate) struct Context<'a> {
    pub(crate) budget: &'a mut Budget,
    bindings: &'a Bindings,
    /// What macros have bound. An accumulator may hold an error that a later element absorbs.
    locals: Vec<Outcome>,
    patterns: Vec<(Arc<str>, Arc<Pattern>)>,
    /// The pattern of the call being made, if it was known at compile time.
    prepared: Option<Arc<Pattern>>,
}

pub(crate) fn evaluate(root: &Node, bindings: &Bindings, budget: &mut Budget) -> Outcome {
    let mut context = Context { budget, bindings, locals: Vec::new(), patterns: Vec::new(), prepared: None };
    context.eval(root)
}

impl<'a> Context<'a> {
    /// The compiled form of a pattern. Shared rather than cloned: a clone would start with cold caches.
    pub(crate) fn pattern(&mut self, text: &Arc<str>) -> Result<Arc<Pattern>, EvalError> {
        if let Some(prepared) = &self.prepared {
            return Ok(Arc::clone(prepared));
        }
        if let Some((_, known)) = self.patterns.iter().find(|(known, _)| known == text) {
            return Ok(Arc::clone(known));
        }
        self.budget.work(Pattern::compile_work(text))?;
        let compiled = Arc::new(Pattern::compile(text).map_err(EvalError::invalid)?);
        if self.patterns.len() >= PATTERNS_KEPT_MAX {
            self.patterns.clear();
        }
        self.patterns.push((Arc::clone(text), Arc::clone(&compiled)));
        Ok(compiled)
    }

    // Each arm is a function of its own: the frame of this one is what recursion multiplies.
    fn eval(&mut self, node: &Node) -> Outcome {
        self.budget.work(STEP_WORK)?;
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Local { slot, cost } => self.local(*slot, *cost),
            Node::Variable { .. } | Node::Select { .. } | Node::Index { .. } => {
                self.place(node).map(Cow::into_owned)
            }
            Node::Has { operand, field, cost } => self.has(operand, field, *cost),
            Node::OptionalSelect { operand, field, cost } => self.optional_select(operand, field, *cost),
            Node::Call { callee, args } => self.call(callee, args),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Conditional(parts) => self.conditional(parts),
            Node::NotStrictlyFalse(inner) => self.not_strictly_false(inner),
            Node::OptionalOr { parts, unwrap } => self.optional_or(parts, *unwrap),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::Append { slot, element } => self.append(*slot, element),
        }
    }

    fn variable(&mut self, name: &Arc<str>, cost: u64) -> Result<&'a Value, EvalError> {
        self.budget.charge(cost)?;
        self.bindings.get(name).ok_or_else(|| EvalError::UnboundVariable { name: Arc::clone(name) })
    }

    fn local(&mut self, slot: usize, cost: u64) -> Outcome {
        self.budget.charge(cost)?;
        self.locals[slot].clone()
    }

    fn call(&mut self, callee: &Callee, args: &[Node]) -> Outcome {
        match args {
            [] => self.invoke(callee, &[]),
            [first] => {
                let first = [self.eval(first)];
                self.invoke_if_ok(callee, first)
            }
            [first, second] => {
                let both = [self.eval(first), self.eval(second)];
                self.invoke_if_ok(callee, both)
            }
            _ => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.eval(arg)?);
                }
                self.invoke(callee, &values)
            }
        }
    }

    /// Calls with the arguments, or fails with the first that failed. The call is charged in both cases,
    /// for a failure counts as a value in the accounts.
    fn invoke_if_ok<const N: usize>(&mut self, callee: &Callee, args: [Outcome; N]) -> Outcome {
        let mut failed = None;
        let values = args.map(|arg| {
            arg.unwrap_or_else(|error| {
                if failed.is_none() || error.is_fatal() {
                    failed = Some(error);
                }
                Value::Null
            })
        });
        match failed {
            None => self.invoke(callee, &values),
            Some(error) => {
                callee.cost.charge(&values, None, self.budget)?;
                Err(error)
            }
        }
    }

    #[inline(never)]
    fn invoke(&mut self, callee: &Callee, args: &[Value]) -> Outcome {
        let overload = match callee.candidates.as_slice() {
            [only] => only,
            several => match several.iter().find(|overload| overload.admits(args)) {
                Some(found) => found,
                None if callee.open => &several[0],
                None => {
                    self.budget.charge(1)?;
                    return Err(EvalError::NoSuchOverload);
                }
            },
        };
        match &overload.implementation {
            Implementation::Native(native) => {
                if !callee.cost.needs_result() {
                    callee.cost.charge(args, None, self.budget)?;
                }
                self.prepared.clone_from(&callee.pattern);
                let outcome = native(self, args);
                self.prepared = None;
                if callee.cost.needs_result() {
                    callee.cost.charge(args, outcome.as_ref().ok(), self.budget)?;
                }
                outcome
            }
            Implementation::Host { call, cost } => {
                if !overload.admits(args) {
                    self.budget.charge(1)?;
                    return Err(EvalError::NoSuchOverload);
                }
                let outcome = call(args, self.bindings, self.budget);
                self.budget.charge(outcome.as_ref().map_or(1, |result| cost(args, result)))?;
                outcome
            }
        }
    }

    /// `||` if `decisive` is true, else `&&`. A decisive operand wins over an error in the other.
    fn logical(&mut self, terms: &[Node; 2], decisive: bool) -> Outcome {
        let mut error = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Err(fatal) if fatal.is_fatal() => return Err(fatal),
                Ok(_) => error = error.or(Some(EvalError::NoSuchOverload)),
                Err(failed) => error = error.or(Some(failed)),
            }
        }
        error.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn conditional(&mut self, parts: &[Node; 3]) -> Outcome {
        match self.eval(&parts[0])? {
            Value::Bool(true) => self.eval(&parts[1]),
            Value::Bool(false) => self.eval(&parts[2]),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn not_strictly_false(&mut self, inner: &Node) -> Outcome {
        let outcome = self.eval(inner);
        self.budget.charge(1)?;
        match outcome {
            Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
            Err(fatal) if fatal.is_fatal() => Err(fatal),
            _ => Ok(Value::Bool(true)),
        }
    }

    fn optional_or(&mut self, parts: &[Node; 2], unwrap: bool) -> Outcome {
        match self.eval(&parts[0])? {
            Value::Optional(Some(inner)) if unwrap => Ok(Value::clone(&inner)),
            present @ Value::Optional(Some(_)) => Ok(present),
            Value::Optional(None) => match self.eval(&parts[1])? {
                other if unwrap => Ok(other),
                other @ Value::Optional(_) => Ok(other),
                _ => Err(EvalError::NoSuchOverload),
            },
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn list(&mut self, elements: &[(bool, Node)]) -> Outcome {
        self.budget.work((elements.len() * size_of::<Value>()) as u64)?;
        let mut values = Vec::with_capacity(elements.len());
        for (optional, element) in elements {
            let value = self.eval(element)?;
            if let Some(value) = if *optional { unwrap_optional(value)? } else { Some(value) } {
                values.push(value);
            }
        }
        self.budget.charge(LIST_CREATE_COST)?;
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &[(bool, Node, Node)]) -> Outcome {
        self.budget.work(MAP_ENTRY_WORK * entries.len() as u64)?;
        let mut map = Map::default();
        for (optional, key, value) in entries {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            let Some(key) = Key::from_value(&key) else {
                return Err(EvalError::invalid(format!(
                    "unsupported key type: {}",
                    key.type_of().runtime_name()
                )));
            };
            if let Some(value) = if *optional { unwrap_optional(value)? } else { Some(value) } {
                map.insert(key, value);
            }
        }
        self.budget.charge(MAP_CREATE_COST)?;
        Ok(Value::Map(Arc::new(map)))
    }

    fn fold(&mut self, fold: &Fold) -> Outcome {
        let range = self.eval(&fold.range)?;
        // An accumulator may hold an error that an element absorbs, but never one that ends everything.
        let init = match self.eval(&fold.init) {
            Err(error) if error.is_fatal() => return Err(error),
            init => init,
        };
        debug_assert_eq!(self.locals.len(), fold.slot, "the checker counts slots as they are used");
        self.locals.push(init);
        self.locals.push(Ok(Value::Null));
        let result = self.iterate(fold, &range);
        let result = result.and_then(|()| self.eval(&fold.result));
        self.locals.truncate(fold.slot);
        result
    }

    fn iterate(&mut self, fold: &Fold, range: &Value) -> Result<(), EvalError> {
        let length = match range {
            Value::List(elements) => elements.len(),
            Value::Map(map) => map.len(),
            _ => return Err(EvalError::NoSuchOverload),
        };
        for index in 0..length {
            // Even a step that costs nothing counts as work, so every loop ends.
            self.budget.work(1)?;
            self.locals[fold.slot + 1] = Ok(match range {
                Value::List(elements) => elements[index].clone(),
                Value::Map(map) => map.key_at(index).expect("the index is below the length").to_value(),
                _ => unreachable!("other values have no length"),
            });
            match self.eval(&fold.condition) {
                Ok(Value::Bool(false)) => break,
                Err(fatal) if fatal.is_fatal() => return Err(fatal),
                _ => {}
            }
            let step = self.eval(&fold.step);
            match step {
                Err(fatal) if fatal.is_fatal() => return Err(fatal),
                step => self.locals[fold.slot] = step,
            }
        }
        Ok(())
    }

    /// Charges what the expression it stands for would: the accumulator, a list of one, the addition.
    fn append(&mut self, slot: usize, element: &Node) -> Outcome {
        self.budget.charge(SELECT_COST)?;
        if let Err(earlier) = &self.locals[slot] {
            return Err(earlier.clone());
        }
        let element = self.eval(element)?;
        self.budget.charge(LIST_CREATE_COST + 1)?;
        self.budget.work(size_of::<Value>() as u64)?;
        // Taken out, so that the list has one owner and grows in place.
        let Value::List(mut list) = std::mem::replace(&mut self.locals[slot], Ok(Value::Null))? else {
            return Err(EvalError::NoSuchOverload);
        };
        Arc::make_mut(&mut list).push(element);
        Ok(Value::List(list))
    }
}

fn unwrap_optional(value: Value) -> Result<Option<Value>, EvalError> {
    match value {
        Value::Optional(inner) => Ok(inner.map(|inner| Value::clone(&inner))),
        other => Err(EvalError::invalid(format!(
            "cannot initialize optional list element from non-optional value {}",
            strings::plain_text(&other)
        ))),
    }
}
