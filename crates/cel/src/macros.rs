//! Expands the macros: `has`, the quantifiers, `map`, `filter` and the optional mappings.
//!
//! Owns their expansion into folds, which is what the checker and the cost accounting see. The
//! accumulator's name cannot be written in source, so no expression can touch it.

use crate::ast::{Comprehension, Element, Expr, ExprKind};
use crate::parser::{Parser, Stop};
use crate::value::Value;

/// Begins with a character that no identifier can contain.
const ACCUMULATOR: &str = "@result";
/// The variable of a fold that only binds a name and never iterates.
const UNUSED: &str = "#unused";

type Parsed = Result<Expr, Stop>;

/// Expands or builds a call without receiver.
pub(crate) fn global_call(
    parser: &mut Parser<'_>,
    offset: usize,
    function: &str,
    mut args: Vec<Expr>,
) -> Parsed {
    if function == "has" && args.len() == 1 {
        let argument = args.remove(0);
        let ExprKind::Select { operand, field, test_only: false } = argument.kind else {
            parser.issue(argument.offset, "invalid argument to has() macro");
            return literal(parser, offset, Value::Bool(false));
        };
        return parser.node(ExprKind::Select { operand, field, test_only: true }, offset);
    }
    parser.call(offset, function, args)
}

/// Expands or builds a call on a receiver.
pub(crate) fn member_call(
    parser: &mut Parser<'_>,
    offset: usize,
    target: Expr,
    function: String,
    args: Vec<Expr>,
) -> Parsed {
    let mut expansion = Expansion { parser, offset };
    match (function.as_str(), args.len()) {
        ("all", 2) => expansion.quantifier(Quantifier::All, target, args),
        ("exists", 2) => expansion.quantifier(Quantifier::Exists, target, args),
        ("exists_one", 2) => expansion.quantifier(Quantifier::ExistsOne, target, args),
        ("map", 2 | 3) => expansion.map(target, args),
        ("filter", 2) => expansion.filter(target, args),
        ("optMap", 2) => expansion.optional_map(target, args, true),
        ("optFlatMap", 2) => expansion.optional_map(target, args, false),
        _ => parser.node(ExprKind::Call { function, target: Some(Box::new(target)), args }, offset),
    }
}

fn literal(parser: &mut Parser<'_>, offset: usize, value: Value) -> Parsed {
    parser.node(ExprKind::Literal(value), offset)
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

struct Expansion<'p, 'a> {
    parser: &'p mut Parser<'a>,
    offset: usize,
}

impl Expansion<'_, '_> {
    fn literal(&mut self, value: Value) -> Parsed {
        literal(self.parser, self.offset, value)
    }

    fn ident(&mut self, name: &str) -> Parsed {
        self.parser.node(ExprKind::Ident(name.to_owned()), self.offset)
    }

    fn accumulator(&mut self) -> Parsed {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Parsed {
        self.parser.call(self.offset, function, args)
    }

    fn member(&mut self, function: &str, target: Expr) -> Parsed {
        let kind = ExprKind::Call {
            function: function.to_owned(),
            target: Some(Box::new(target)),
            args: Vec::new(),
        };
        self.parser.node(kind, self.offset)
    }

    /// `@result + [element]`
    fn append(&mut self, element: Expr) -> Parsed {
        let accumulator = self.accumulator()?;
        let elements = vec![Element { optional: false, value: element }];
        let list = self.parser.node(ExprKind::List { elements }, self.offset)?;
        self.call("_+_", vec![accumulator, list])
    }

    fn empty_list(&mut self) -> Parsed {
        self.parser.node(ExprKind::List { elements: Vec::new() }, self.offset)
    }

    fn fold(&mut self, fold: Comprehension) -> Parsed {
        self.parser.node(ExprKind::Comprehension(Box::new(fold)), self.offset)
    }

    /// The name that the first argument of a macro binds.
    fn variable(&mut self, argument: &Expr, message: &str) -> String {
        match &argument.kind {
            // The second name is what accumulators used to be called.
            ExprKind::Ident(name) if name != "__result__" => name.clone(),
            ExprKind::Ident(_) => {
                self.parser.issue(argument.offset, "iteration variable overwrites accumulator variable");
                UNUSED.to_owned()
            }
            _ => {
                self.parser.issue(argument.offset, message);
                UNUSED.to_owned()
            }
        }
    }

    fn quantifier(&mut self, quantifier: Quantifier, range: Expr, args: Vec<Expr>) -> Parsed {
        let [variable, predicate] = take(args);
        let variable = self.variable(&variable, "argument must be a simple name");
        let accumulator = self.accumulator()?;
        let (init, condition, step, result) = match quantifier {
            Quantifier::All => {
                let holds = self.accumulator()?;
                (
                    self.literal(Value::Bool(true))?,
                    self.call("@not_strictly_false", vec![holds])?,
                    self.call("_&&_", vec![accumulator, predicate])?,
                    self.accumulator()?,
                )
            }
            Quantifier::Exists => {
                let found = self.accumulator()?;
                let missing = self.call("!_", vec![found])?;
                (
                    self.literal(Value::Bool(false))?,
                    self.call("@not_strictly_false", vec![missing])?,
                    self.call("_||_", vec![accumulator, predicate])?,
                    self.accumulator()?,
                )
            }
            Quantifier::ExistsOne => {
                let (one, other) = (self.literal(Value::Int(1))?, self.literal(Value::Int(1))?);
                let count = self.accumulator()?;
                let total = self.accumulator()?;
                let incremented = self.call("_+_", vec![accumulator, one])?;
                (
                    self.literal(Value::Int(0))?,
                    self.literal(Value::Bool(true))?,
                    self.call("_?_:_", vec![predicate, incremented, count])?,
                    self.call("_==_", vec![total, other])?,
                )
            }
        };
        self.fold(Comprehension {
            range,
            variable,
            accumulator: ACCUMULATOR.to_owned(),
            init,
            condition,
            step,
            result,
        })
    }

    fn map(&mut self, range: Expr, mut args: Vec<Expr>) -> Parsed {
        let transform = args.pop().expect("map has at least two arguments");
        let predicate = if args.len() == 2 { args.pop() } else { None };
        let variable = self.variable(&args[0], "argument is not an identifier");
        let step = self.append(transform)?;
        self.collect(range, variable, predicate, step)
    }

    fn filter(&mut self, range: Expr, args: Vec<Expr>) -> Parsed {
        let [element, predicate] = take(args);
        let variable = self.variable(&element, "argument is not an identifier");
        let step = self.append(element)?;
        self.collect(range, variable, Some(predicate), step)
    }

    fn collect(&mut self, range: Expr, variable: String, predicate: Option<Expr>, mut step: Expr) -> Parsed {
        if let Some(predicate) = predicate {
            let unchanged = self.accumulator()?;
            step = self.call("_?_:_", vec![predicate, step, unchanged])?;
        }
        let fold = Comprehension {
            range,
            variable,
            accumulator: ACCUMULATOR.to_owned(),
            init: self.empty_list()?,
            condition: self.literal(Value::Bool(true))?,
            step,
            result: self.accumulator()?,
        };
        self.fold(fold)
    }

    /// `target.hasValue() ? optional.of(transform with the variable bound) : optional.none()`, where
    /// `wrap` says whether the transform's result still has to be made optional.
    fn optional_map(&mut self, target: Expr, args: Vec<Expr>, wrap: bool) -> Parsed {
        let macro_name = if wrap { "optMap" } else { "optFlatMap" };
        let [variable, transform] = take(args);
        let variable =
            self.variable(&variable, &format!("{macro_name}() variable name must be a simple identifier"));
        let present = self.member("hasValue", target.clone())?;
        let init = self.member("value", target)?;
        let bound = Comprehension {
            range: self.empty_list()?,
            variable: UNUSED.to_owned(),
            condition: self.literal(Value::Bool(false))?,
            step: self.ident(&variable)?,
            accumulator: variable,
            init,
            result: transform,
        };
        let mut result = self.fold(bound)?;
        if wrap {
            result = self.call("optional.of", vec![result])?;
        }
        let none = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![present, result, none])
    }
}

fn take<const N: usize>(args: Vec<Expr>) -> [Expr; N] {
    args.try_into().unwrap_or_else(|_| unreachable!("the macro is chosen by its number of arguments"))
}
