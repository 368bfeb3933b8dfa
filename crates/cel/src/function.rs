//! Functions: their overloads, and what a host adds of its own.
//!
//! Owns the declaration of a function and how a call finds its overload at run time. The libraries
//! declare theirs in tables of [`Row`]s whose signatures read like CEL's own documentation.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::cost::Budget;
use crate::error::EvalError;
use crate::eval::{Bindings, Context};
use crate::types::Type;
use crate::value::Value;

/// What a call gives.
pub(crate) type Outcome = Result<Value, EvalError>;

/// A built-in function.
pub(crate) type Native = fn(&mut Context<'_>, &[Value]) -> Outcome;

/// A function of the host: its arguments, the bindings of the evaluation (also those that no variable of the
/// environment names, through which a host can hand it context), and the budget it works under.
pub type HostCall = dyn Fn(&[Value], &Bindings, &mut Budget) -> Result<Value, EvalError> + Send + Sync;

/// The cost of a call to a host function, from its arguments and its result.
pub type HostCost = dyn Fn(&[Value], &Value) -> u64 + Send + Sync;

/// One line of a library's table: function, overload, signature, implementation. A signature is
/// `(int, string) -> bool` for a global function and `string.(int) -> bool` for a member; `A` and `B`
/// stand for any type.
pub(crate) type Row = (&'static str, &'static str, &'static str, Native);

/// One way to call a function.
#[derive(Clone)]
pub(crate) struct Overload {
    pub(crate) id: Arc<str>,
    pub(crate) member: bool,
    /// The receiver of a member comes first.
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    pub(crate) implementation: Implementation,
}

/// What runs when an overload is called.
#[derive(Clone)]
pub(crate) enum Implementation {
    Native(Native),
    Host { call: Arc<HostCall>, cost: Arc<HostCost> },
}

impl Overload {
    pub(crate) fn admits(&self, args: &[Value]) -> bool {
        self.params.len() == args.len() && self.params.iter().zip(args).all(|(param, arg)| param.admits(arg))
    }
}

impl fmt::Debug for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overload").field("id", &self.id).field("params", &self.params).finish_non_exhaustive()
    }
}

/// The functions an expression may call, by name.
pub(crate) type Functions = HashMap<String, Vec<Arc<Overload>>>;

/// Adds the rows of a library.
pub(crate) fn declare(functions: &mut Functions, rows: &[Row]) {
    for (function, id, signature, native) in rows {
        let (member, params, result) = parse_signature(signature);
        functions.entry((*function).to_owned()).or_default().push(Arc::new(Overload {
            id: Arc::from(*id),
            member,
            params,
            result,
            implementation: Implementation::Native(*native),
        }));
    }
}

/// A function that the host provides.
#[derive(Clone)]
pub struct HostFunction {
    pub(crate) name: String,
    pub(crate) overload: Overload,
}

impl HostFunction {
    /// A function called as `name(args)`.
    pub fn global(
        name: &str,
        params: Vec<Type>,
        result: Type,
        call: impl Fn(&[Value], &Bindings, &mut Budget) -> Result<Value, EvalError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, false, params, result, Arc::new(call))
    }

    /// A function called as `receiver.name(args)`; the receiver is the first parameter and the first
    /// argument.
    pub fn member(
        name: &str,
        params: Vec<Type>,
        result: Type,
        call: impl Fn(&[Value], &Bindings, &mut Budget) -> Result<Value, EvalError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, true, params, result, Arc::new(call))
    }

    fn new(name: &str, member: bool, params: Vec<Type>, result: Type, call: Arc<HostCall>) -> Self {
        let implementation = Implementation::Host { call, cost: Arc::new(|_, _| 1) };
        let id = Arc::from(format!("host_{name}_{}", params.len()));
        Self { name: name.to_owned(), overload: Overload { id, member, params, result, implementation } }
    }

    /// Sets what a call costs; one unit unless set.
    #[must_use]
    pub fn with_cost(mut self, cost: impl Fn(&[Value], &Value) -> u64 + Send + Sync + 'static) -> Self {
        if let Implementation::Host { cost: slot, .. } = &mut self.overload.implementation {
            *slot = Arc::new(cost);
        }
        self
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFunction").field("name", &self.name).field("overload", &self.overload).finish()
    }
}

/// Reads a signature. The tables are part of the program, so a malformed one is a bug of ours that the
/// first test to build an environment finds.
fn parse_signature(signature: &str) -> (bool, Vec<Type>, Type) {
    let (params, result) = signature.split_once(" -> ").expect("a signature has a result");
    let open = params.find('(').expect("a signature has a parameter list");
    let (receiver, list) = match params.find(".(") {
        Some(dot) => (Some(&params[..dot]), &params[dot + 2..]),
        None => (None, &params[open + 1..]),
    };
    let list = list.strip_suffix(')').expect("a parameter list is closed");
    let types = receiver.into_iter().chain(split_types(list)).map(parse_type).collect();
    (receiver.is_some(), types, parse_type(result))
}

/// Splits at the commas outside parentheses.
fn split_types(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    list.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn parse_type(text: &str) -> Type {
    let inside = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')'));
    if let Some(inner) = inside("list(") {
        return Type::list(parse_type(inner));
    }
    if let Some(inner) = inside("optional(") {
        return Type::optional(parse_type(inner));
    }
    if let Some(inner) = inside("type(") {
        return Type::of(parse_type(inner));
    }
    if let Some(inner) = inside("map(") {
        let mut parts = split_types(inner).map(parse_type);
        let (key, value) = (parts.next(), parts.next());
        return Type::map(key.expect("a map has a key type"), value.expect("a map has a value type"));
    }
    match text {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null" => Type::Null,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "A" | "B" => Type::Param(if text == "A" { 'A' } else { 'B' }),
        opaque => {
            debug_assert!(opaque.contains('.'), "unknown type {opaque:?} in a signature");
            Type::opaque(opaque)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_with_a_receiver_declares_a_member() {
        let (member, params, result) = parse_signature("map(string, list(A)).(int, A) -> optional(A)");
        assert!(member);
        let a = Type::Param('A');
        assert_eq!(params, [Type::map(Type::String, Type::list(a.clone())), Type::Int, a.clone()]);
        assert_eq!(result, Type::optional(a));
    }

    #[test]
    fn a_signature_without_a_receiver_declares_a_global_function() {
        assert_eq!(parse_signature("() -> bool"), (false, vec![], Type::Bool));
    }
}
