//! Checks a syntax tree against an environment and lowers it to a program.
//!
//! Owns name resolution, overload resolution and the wording of what does not fit. Gradual: whatever is
//! `dyn` is left to run time. Reports every issue it finds, not only the first.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ast::{Comprehension, Element, Entry, Expr, ExprKind};
use crate::cost::{CostModel, WORK_LIMIT};
use crate::env::Env;
use crate::error::Issue;
use crate::function::Overload;
use crate::inference::Inference;
use crate::library::regex::Pattern;
use crate::library::template;
use crate::program::{Callee, Fold, Node, Program};
use crate::types::Type;
use crate::value::Value;

/// Issues reported before the rest is left out; a long expression with one wrong name can repeat it
/// hundreds of times.
const ISSUES_MAX: usize = 32;

/// Checks an expression.
pub(crate) fn check(env: &Env, source: &str, expr: &Expr) -> Result<Program, Vec<Issue>> {
    let mut checker = Checker {
        env,
        source,
        inference: Inference::default(),
        scopes: Vec::new(),
        depth: 0,
        issues: Vec::new(),
        functions: BTreeSet::new(),
        pattern_work: 0,
    };
    let checked = checker.check(expr);
    let output = checker.inference.substitute(&checked.ty, true);
    if checker.inference.exhausted() {
        checker.issues =
            vec![Issue::at(source, expr.offset, "expression is too complex to type-check: split it up")];
    }
    if checker.issues.is_empty() {
        Ok(Program { root: Arc::new(checked.node), output, functions: Arc::new(checker.functions) })
    } else {
        checker.issues.truncate(ISSUES_MAX);
        Err(checker.issues)
    }
}

struct Checked {
    node: Node,
    ty: Type,
    /// The elements of a list literal, each with its place; their types get lost in that of the list.
    elements: Vec<(usize, Type)>,
}

impl Checked {
    /// Stands in for an expression with an issue.
    fn error() -> Self {
        Self::new(Node::Const(Value::Null), Type::Error)
    }

    fn new(node: Node, ty: Type) -> Self {
        Self { node, ty, elements: Vec::new() }
    }
}

/// A variable bound by a macro.
struct Local {
    name: String,
    ty: Type,
    slot: usize,
    /// Whether anything read it so far.
    used: bool,
}

struct Checker<'a> {
    env: &'a Env,
    source: &'a str,
    inference: Inference,
    /// Innermost last.
    scopes: Vec<Local>,
    /// Slots in use; at run time the stack has exactly this height.
    depth: usize,
    issues: Vec<Issue>,
    functions: BTreeSet<String>,
    /// The work of the patterns met so far.
    pattern_work: u64,
}

impl Checker<'_> {
    fn issue(&mut self, offset: usize, message: String) {
        self.issues.push(Issue::at(self.source, offset, message));
    }

    fn undeclared(&mut self, offset: usize, name: &str) -> Checked {
        self.issue(offset, format!("undeclared reference to '{name}' (in container '')"));
        Checked::error()
    }

    fn mismatch(&mut self, offset: usize, wanted: &Type, found: &Type) {
        let (wanted, found) =
            (self.inference.substitute(wanted, true), self.inference.substitute(found, true));
        self.issue(offset, format!("expected type '{wanted}' but found '{found}'"));
    }

    fn check(&mut self, expr: &Expr) -> Checked {
        match &expr.kind {
            ExprKind::Literal(value) => Checked::new(Node::Const(value.clone()), value.type_of()),
            ExprKind::Ident(name) => self.lookup(name).unwrap_or_else(|| self.undeclared(expr.offset, name)),
            ExprKind::Select { operand, field, test_only } => {
                self.check_select(expr, operand, field, *test_only)
            }
            ExprKind::Call { function, target, args } => {
                self.check_call(expr.offset, function, target.as_deref(), args)
            }
            ExprKind::List { elements } => self.check_list(elements),
            ExprKind::Map { entries } => self.check_map(entries),
            ExprKind::Comprehension(fold) => self.check_fold(fold),
        }
    }

    fn lookup(&mut self, name: &str) -> Option<Checked> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(local) = self.scopes.iter_mut().rev().find(|local| local.name == name) {
            local.used = true;
            return Some(Checked::new(Node::Local { slot: local.slot, cost: 1 }, local.ty.clone()));
        }
        if let Some((name, ty)) = self.env.variable(name) {
            return Some(Checked::new(Node::Variable { name: Arc::clone(name), cost: 1 }, ty.clone()));
        }
        let named = Env::named_type(name)?;
        Some(Checked::new(Node::Const(Value::Type(named.clone())), Type::of(named)))
    }

    fn check_select(&mut self, expr: &Expr, operand: &Expr, field: &str, test_only: bool) -> Checked {
        if !test_only && let Some(found) = expr.qualified_name().and_then(|name| self.lookup(&name)) {
            return found;
        }
        let operand = self.check(operand);
        let (ty, _) = self.field_type(expr.offset, &operand.ty, field);
        let base = u64::from(!operand.node.is_attribute());
        let (operand, field, cost) = (Box::new(operand.node), Arc::from(field), 1 + base);
        if test_only {
            // The presence test itself is what the environment may give for free.
            let cost = cost - u64::from(!self.env.presence_test_costs);
            return Checked::new(Node::Has { operand, field, cost }, Type::Bool);
        }
        Checked::new(Node::Select { operand, field, cost }, ty)
    }

    /// The type of a field, and whether the operand was optional (then so is the field).
    fn field_type(&mut self, offset: usize, operand: &Type, field: &str) -> (Type, bool) {
        let operand = self.inference.substitute(operand, false);
        let (target, optional) = match operand {
            Type::Optional(inner) => (Type::clone(&inner), true),
            other => (other, false),
        };
        let found = match &target {
            Type::Map(_, value) => Type::clone(value),
            Type::Struct(record) => record.fields.get(field).cloned().unwrap_or_else(|| {
                self.issue(offset, format!("undefined field '{field}'"));
                Type::Error
            }),
            Type::Var(_) => {
                self.inference.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.issue(offset, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if optional { (Type::optional(found), true) } else { (found, false) }
    }

    fn check_optional_select(&mut self, offset: usize, args: &[Expr]) -> Checked {
        let [operand, Expr { kind: ExprKind::Literal(Value::String(field)), .. }] = args else {
            unreachable!("the parser gives an optional selection an operand and a field name");
        };
        let operand = self.check(operand);
        let (ty, already_optional) = self.field_type(offset, &operand.ty, field);
        let cost = 1 + u64::from(!operand.node.is_attribute());
        let node = Node::OptionalSelect { operand: Box::new(operand.node), field: Arc::clone(field), cost };
        Checked::new(node, if already_optional { ty } else { Type::optional(ty) })
    }

    fn check_call(&mut self, offset: usize, function: &str, target: Option<&Expr>, args: &[Expr]) -> Checked {
        if function == "_?._" {
            self.functions.insert(function.to_owned());
            return self.check_optional_select(offset, args);
        }
        let env = self.env;
        // A plain loop: an iterator chain would put several more frames on the stack per level.
        let mut checked_args = Vec::with_capacity(args.len());
        for arg in args {
            checked_args.push(self.check(arg));
        }
        let Some(target) = target else {
            let name = function.strip_prefix('.').unwrap_or(function);
            let Some(overloads) = env.function(name) else { return self.undeclared(offset, function) };
            return self.resolve(offset, name, overloads, None, checked_args, args);
        };
        if let Some(prefix) = target.qualified_name() {
            let qualified = format!("{}.{function}", prefix.strip_prefix('.').unwrap_or(&prefix));
            if let Some(overloads) = env.function(&qualified) {
                return self.resolve(offset, &qualified, overloads, None, checked_args, args);
            }
        }
        let checked_target = self.check(target);
        let Some(overloads) = env.function(function) else { return self.undeclared(offset, function) };
        self.resolve(offset, function, overloads, Some(checked_target), checked_args, args)
    }

    /// Finds the overloads that a call may mean.
    fn resolve(
        &mut self,
        offset: usize,
        function: &str,
        overloads: &[Arc<Overload>],
        target: Option<Checked>,
        args: Vec<Checked>,
        arg_exprs: &[Expr],
    ) -> Checked {
        self.functions.insert(function.to_owned());
        if matches!(function, "_&&_" | "_||_") {
            return self.resolve_logical(function, args, arg_exprs);
        }
        let member = target.is_some();
        let args: Vec<Checked> = target.into_iter().chain(args).collect();
        let arg_types: Vec<Type> = args.iter().map(|arg| arg.ty.clone()).collect();
        let mut candidates = Vec::new();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            if overload.params.len() != arg_types.len() || !self.env.allows(overload) {
                continue;
            }
            let (params, ty) = self.inference.instantiate(&overload.params, &overload.result);
            if !self.inference.assign_all(&params, &arg_types) {
                continue;
            }
            candidates.push(Arc::clone(overload));
            let ty = self.inference.substitute(&ty, false);
            result = Some(match result {
                None => ty,
                Some(known) if known == ty || known == Type::Dyn => known,
                Some(_) => Type::Dyn,
            });
        }
        let Some(ty) = result else {
            let types: Vec<String> =
                arg_types.iter().map(|ty| self.inference.substitute(ty, true).to_string()).collect();
            let signature = match types.split_first() {
                Some((receiver, rest)) if member => format!("{receiver}.({})", rest.join(", ")),
                _ => format!("({})", types.join(", ")),
            };
            self.issue(
                offset,
                format!("found no matching overload for '{function}' applied to '{signature}'"),
            );
            return Checked::error();
        };
        if function == "format" {
            self.check_format(offset, &args);
        }
        let nodes: Vec<Node> = args.into_iter().map(|arg| arg.node).collect();
        Checked::new(self.lower_call(offset, function, candidates, nodes), ty)
    }

    /// A template that is written out can be held against its arguments before anything runs.
    fn check_format(&mut self, offset: usize, args: &[Checked]) {
        let [Checked { node: Node::Const(Value::String(template)), .. }, list] = args else { return };
        if !matches!(&list.node, Node::List(elements) if elements.iter().all(|(optional, _)| !optional)) {
            return;
        }
        let types: Vec<Type> =
            list.elements.iter().map(|(_, ty)| self.inference.substitute(ty, true)).collect();
        if let Err((argument, message)) = template::check(template, &types) {
            let offset = argument.map_or(offset, |index| list.elements[index].0);
            self.issue(offset, message);
        }
    }

    /// `&&` and `||` say which operand is not a truth value instead of that no overload fits.
    fn resolve_logical(&mut self, function: &str, args: Vec<Checked>, arg_exprs: &[Expr]) -> Checked {
        let mut fits = true;
        for (arg, expr) in args.iter().zip(arg_exprs) {
            if !self.inference.assign(&Type::Bool, &arg.ty) {
                self.mismatch(expr.offset, &Type::Bool, &arg.ty);
                fits = false;
            }
        }
        if !fits {
            return Checked::error();
        }
        let terms = boxed(args.into_iter().map(|arg| arg.node));
        Checked::new(if function == "_&&_" { Node::And(terms) } else { Node::Or(terms) }, Type::Bool)
    }

    fn lower_call(
        &mut self,
        offset: usize,
        function: &str,
        candidates: Vec<Arc<Overload>>,
        args: Vec<Node>,
    ) -> Node {
        match function {
            "_?_:_" => {
                let mut parts: Box<[Node; 3]> = boxed(args.into_iter());
                parts[1].waive_base_cost();
                parts[2].waive_base_cost();
                return Node::Conditional(parts);
            }
            "@not_strictly_false" => {
                let [inner] = *boxed(args.into_iter());
                return Node::NotStrictlyFalse(Box::new(inner));
            }
            "or" | "orValue" if candidates.iter().all(|overload| overload.id.starts_with("optional_or")) => {
                return Node::OptionalOr { parts: boxed(args.into_iter()), unwrap: function == "orValue" };
            }
            "_[_]" | "_[?_]" => {
                let [operand, mut index] = *boxed(args.into_iter());
                // An index that is itself read from a place pays for one of the two accesses only.
                index.waive_base_cost();
                let cost = 1 + u64::from(!operand.is_attribute());
                let optional = function == "_[?_]";
                return Node::Index { operand: Box::new(operand), index: Box::new(index), optional, cost };
            }
            "_+_" if self.is_append(&args) => {
                let [Node::Local { slot, .. }, Node::List(elements)] = *boxed(args.into_iter()) else {
                    unreachable!("that is what an append looks like");
                };
                let [(_, element)] = *<Box<[_; 1]>>::try_from(elements).expect("it has one element");
                return Node::Append { slot, element: Box::new(element) };
            }
            _ => {}
        }
        let single = (candidates.len() == 1).then(|| candidates[0].id.as_ref());
        let cost = CostModel::of(function, single);
        let open = matches!(function, "_<_" | "_<=_" | "_>_" | "_>=_");
        let mut pattern = None;
        if matches!(function, "matches" | "find" | "findAll")
            && let Some(Node::Const(Value::String(text))) = args.get(1)
            && self.may_prepare(text)
        {
            match Pattern::compile(text) {
                Ok(compiled) => pattern = Some(Arc::new(compiled)),
                // Only these two are prepared ahead of time by the reference implementation; `matches`
                // reports a bad pattern when it is reached.
                Err(message) if function != "matches" => self.issue(offset, message),
                Err(_) => {}
            }
        }
        Node::Call { callee: Arc::new(Callee { candidates, cost, open, pattern }), args: args.into() }
    }

    /// Whether a pattern is compiled ahead of time. What an expression has too much of is left to its budget at run
    /// time.
    fn may_prepare(&mut self, pattern: &str) -> bool {
        self.pattern_work = self.pattern_work.saturating_add(Pattern::compile_work(pattern));
        self.pattern_work <= WORK_LIMIT
    }

    /// Whether an addition puts one element behind the accumulator of a macro.
    fn is_append(&self, args: &[Node]) -> bool {
        matches!(args, [Node::Local { slot, .. }, Node::List(elements)] if elements.len() == 1
            && self.scopes.iter().any(|local| local.slot == *slot && local.name.starts_with('@')))
    }

    /// The type of a list element or map entry, `optional` if it is marked with `?`.
    fn check_element(&mut self, expr: &Expr, optional: bool) -> Checked {
        let mut checked = self.check(expr);
        if optional {
            checked.ty = match self.inference.substitute(&checked.ty, false) {
                Type::Optional(inner) => Type::clone(&inner),
                other => {
                    if !other.is_dyn_or_error() {
                        self.mismatch(expr.offset, &Type::optional(other.clone()), &other);
                    }
                    other
                }
            };
        }
        checked
    }

    fn join(&mut self, offset: usize, known: Option<Type>, next: &Type) -> Type {
        let Some(known) = known else { return next.clone() };
        if self.inference.assign(&known, next) {
            return Inference::most_general(&known, next);
        }
        if !self.env.homogeneous_literals {
            return Type::Dyn;
        }
        self.mismatch(offset, &known, next);
        Type::Error
    }

    fn check_list(&mut self, elements: &[Element]) -> Checked {
        let mut ty = None;
        let mut nodes = Vec::with_capacity(elements.len());
        let mut known = Vec::with_capacity(elements.len());
        for element in elements {
            let checked = self.check_element(&element.value, element.optional);
            ty = Some(self.join(element.value.offset, ty, &checked.ty));
            known.push((element.value.offset, checked.ty));
            nodes.push((element.optional, checked.node));
        }
        let ty = ty.unwrap_or_else(|| self.inference.fresh());
        Checked { node: Node::List(nodes.into()), ty: Type::list(ty), elements: known }
    }

    fn check_map(&mut self, entries: &[Entry]) -> Checked {
        let (mut key_type, mut value_type) = (None, None);
        let mut nodes = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.check(&entry.key);
            key_type = Some(self.join(entry.key.offset, key_type, &key.ty));
            let value = self.check_element(&entry.value, entry.optional);
            value_type = Some(self.join(entry.value.offset, value_type, &value.ty));
            nodes.push((entry.optional, key.node, value.node));
        }
        let key_type = key_type.unwrap_or_else(|| self.inference.fresh());
        let value_type = value_type.unwrap_or_else(|| self.inference.fresh());
        Checked::new(Node::Map(nodes.into()), Type::map(key_type, value_type))
    }

    fn check_fold(&mut self, fold: &Comprehension) -> Checked {
        let range = self.check(&fold.range);
        let init = self.check(&fold.init);
        let range_type = self.inference.substitute(&range.ty, false);
        let variable_type = match &range_type {
            Type::List(element) => Type::clone(element),
            Type::Map(key, _) => Type::clone(key),
            Type::Struct(_) => Type::String,
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.inference.assign(&Type::Dyn, &range_type);
                Type::Dyn
            }
            other => {
                self.issue(
                    fold.range.offset,
                    format!("expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"),
                );
                Type::Error
            }
        };
        let slot = self.depth;
        let scope = self.scopes.len();
        self.depth += 2;
        self.scopes.push(Local { name: fold.accumulator.clone(), ty: init.ty.clone(), slot, used: false });
        self.scopes.push(Local {
            name: fold.variable.clone(),
            ty: variable_type,
            slot: slot + 1,
            used: false,
        });
        let condition = self.check(&fold.condition);
        let step = self.check(&fold.step);
        if !self.inference.assign(&init.ty, &step.ty) {
            self.mismatch(fold.step.offset, &init.ty, &step.ty);
        }
        self.scopes.pop();
        self.scopes[scope].used = false;
        let result = self.check(&fold.result);
        let never_runs = matches!(&range.node, Node::List(elements) if elements.is_empty());
        // A name that is bound and not read is not computed either.
        let init_node =
            if never_runs && !self.scopes[scope].used { Node::Const(Value::Null) } else { init.node };
        self.scopes.truncate(scope);
        self.depth = slot;
        let ty = self.inference.substitute(&result.ty, false);
        let fold = Fold {
            range: range.node,
            slot,
            init: init_node,
            condition: condition.node,
            step: step.node,
            result: result.node,
        };
        Checked::new(Node::Fold(Box::new(fold)), ty)
    }
}

/// Boxes as many nodes as the callee's arity says.
fn boxed<const N: usize>(nodes: impl Iterator<Item = Node>) -> Box<[Node; N]> {
    let nodes: Box<[Node]> = nodes.collect();
    nodes
        .try_into()
        .unwrap_or_else(|_| unreachable!("overload resolution has checked the number of arguments"))
}
