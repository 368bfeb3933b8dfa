//! Turns tokens into a syntax tree.
//!
//! Owns CEL's grammar and its precedences. Macros are handed to [`crate::macros`] as soon as their call
//! is complete. Recursion is bounded by [`NESTING_MAX`]; chains of operators loop instead.

use crate::ast::{Element, Entry, Expr, ExprKind};
use crate::error::Issue;
use crate::lexer::{Token, TokenKind, tokenize};
use crate::macros;
use crate::value::Value;

/// How deep parentheses, brackets, calls and prefix operators may nest in source text.
pub const NESTING_MAX: u16 = 64;

/// Words that CEL keeps for itself and for the languages it is embedded in.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The issue has been recorded; parsing cannot go on from here.
#[derive(Debug)]
pub(crate) struct Stop;

type Parsed = Result<Expr, Stop>;

/// Parses a whole expression.
pub(crate) fn parse(source: &str) -> Result<Expr, Vec<Issue>> {
    let (tokens, issues) = tokenize(source);
    let mut parser = Parser { source, tokens, at: 0, nesting: 0, issues };
    let parsed = parser.whole();
    match parsed {
        Ok(expr) if parser.issues.is_empty() => Ok(expr),
        _ => Err(parser.issues),
    }
}

pub(crate) struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    nesting: u16,
    issues: Vec<Issue>,
}

impl Parser<'_> {
    fn whole(&mut self) -> Parsed {
        let expr = self.expression()?;
        if matches!(self.peek(), TokenKind::End) { Ok(expr) } else { Err(self.unexpected("<EOF>")) }
    }

    fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn offset(&self) -> usize {
        self.tokens[self.at].offset
    }

    fn advance(&mut self) {
        // The last token is `End`, and nothing advances past it.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn at_punct(&self, punct: &str) -> bool {
        matches!(self.peek(), TokenKind::Punct(found) if *found == punct)
    }

    /// Takes the punctuation if it is next and tells where it stood.
    fn take(&mut self, punct: &str) -> Option<usize> {
        let offset = self.offset();
        self.at_punct(punct).then(|| {
            self.advance();
            offset
        })
    }

    fn expect(&mut self, punct: &str) -> Result<usize, Stop> {
        self.take(punct).ok_or_else(|| self.unexpected(punct))
    }

    fn unexpected(&mut self, wanted: &str) -> Stop {
        let found = match self.peek() {
            TokenKind::End => "<EOF>".to_owned(),
            TokenKind::Punct(punct) => (*punct).to_owned(),
            TokenKind::Ident(name) => name.chars().take(64).collect(),
            TokenKind::QuotedIdent(name) => format!("`{}`", name.chars().take(64).collect::<String>()),
            _ => {
                let start = self.offset();
                let end = self.tokens.get(self.at + 1).map_or(self.source.len(), |token| token.offset);
                self.source[start..end].trim_end().chars().take(64).collect()
            }
        };
        self.issue(self.offset(), format!("Syntax error: mismatched input '{found}' expecting '{wanted}'"))
    }

    pub(crate) fn issue(&mut self, offset: usize, message: impl Into<String>) -> Stop {
        self.issues.push(Issue::at(self.source, offset, message));
        Stop
    }

    /// Makes a node, recording the issue if the tree grows beyond its limits.
    pub(crate) fn node(&mut self, kind: ExprKind, offset: usize) -> Parsed {
        Expr::new(kind, offset).map_err(|message| self.issue(offset, message))
    }

    pub(crate) fn call(&mut self, offset: usize, function: &str, args: Vec<Expr>) -> Parsed {
        self.node(ExprKind::Call { function: function.to_owned(), target: None, args }, offset)
    }

    /// Notes one more level of nesting, or refuses it. What begins a level ends it when it is parsed; a
    /// level that fails ends the parse, so nobody counts after that.
    fn enter(&mut self) -> Result<(), Stop> {
        if self.nesting >= NESTING_MAX {
            let offset = self.offset();
            return Err(self.issue(offset, format!("expression recursion limit exceeded: {NESTING_MAX}")));
        }
        self.nesting += 1;
        Ok(())
    }

    /// `condition ? then : else`, or anything that binds tighter.
    fn expression(&mut self) -> Parsed {
        self.enter()?;
        let mut expr = self.binary(0)?;
        if self.at_punct("?") {
            expr = self.conditional(expr)?;
        }
        self.nesting -= 1;
        Ok(expr)
    }

    fn conditional(&mut self, condition: Expr) -> Parsed {
        let offset = self.expect("?")?;
        let then = self.binary(0)?;
        self.expect(":")?;
        let otherwise = self.expression()?;
        self.call(offset, "_?_:_", vec![condition, then, otherwise])
    }

    /// The operator at the current position, its function and how tight it binds.
    fn operator(&self) -> Option<(&'static str, u8)> {
        Some(match self.peek() {
            TokenKind::Punct(punct) => match *punct {
                "||" => ("_||_", 0),
                "&&" => ("_&&_", 1),
                "==" => ("_==_", 2),
                "!=" => ("_!=_", 2),
                "<" => ("_<_", 2),
                "<=" => ("_<=_", 2),
                ">" => ("_>_", 2),
                ">=" => ("_>=_", 2),
                "+" => ("_+_", 3),
                "-" => ("_-_", 3),
                "*" => ("_*_", 4),
                "/" => ("_/_", 4),
                "%" => ("_%_", 4),
                _ => return None,
            },
            TokenKind::Ident(name) if name == "in" => ("@in", 2),
            _ => return None,
        })
    }

    /// Operators that bind at least as tight as `loosest`.
    fn binary(&mut self, loosest: u8) -> Parsed {
        let mut left = self.unary()?;
        while let Some((function, precedence)) = self.operator() {
            if precedence < loosest {
                break;
            }
            if precedence <= 1 {
                left = self.logical_chain(left, function, precedence)?;
                continue;
            }
            let offset = self.offset();
            self.advance();
            let right = self.binary(precedence + 1)?;
            left = self.call(offset, function, vec![left, right])?;
        }
        Ok(left)
    }

    /// `a && b && c …` becomes a balanced tree: long chains of conditions are common and must not be
    /// deep.
    fn logical_chain(&mut self, first: Expr, function: &'static str, precedence: u8) -> Parsed {
        let mut terms = vec![first];
        let mut offsets = Vec::new();
        while self.operator() == Some((function, precedence)) {
            offsets.push(self.offset());
            self.advance();
            terms.push(self.binary(precedence + 1)?);
        }
        let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
        self.balance(&mut terms, &offsets, function)
    }

    /// Joins `terms` by the operators at `offsets`; `terms` has one more item than `offsets`.
    fn balance(&mut self, terms: &mut [Option<Expr>], offsets: &[usize], function: &str) -> Parsed {
        if offsets.is_empty() {
            return Ok(terms[0].take().expect("every term is joined once"));
        }
        let middle = offsets.len() / 2;
        let (before, after) = terms.split_at_mut(middle + 1);
        let left = self.balance(before, &offsets[..middle], function)?;
        let right = self.balance(after, &offsets[middle + 1..], function)?;
        self.call(offsets[middle], function, vec![left, right])
    }

    /// Prefix operators. An even number of them cancels out.
    fn unary(&mut self) -> Parsed {
        let (punct, function) = match self.peek() {
            TokenKind::Punct("!") => ("!", "!_"),
            TokenKind::Punct("-") => ("-", "-_"),
            _ => return self.member(None),
        };
        let first = self.offset();
        let mut count = 0usize;
        while self.at_punct(punct) {
            self.advance();
            count += 1;
        }
        if punct == "-" && count == 1 && matches!(self.peek(), TokenKind::Int(_) | TokenKind::Double(_)) {
            return self.member(Some(first));
        }
        let operand = self.member(None)?;
        if count.is_multiple_of(2) { Ok(operand) } else { self.call(first, function, vec![operand]) }
    }

    /// A primary expression and the selections, calls and indexes that follow it. `minus` is the offset
    /// of a sign that belongs to a number literal.
    fn member(&mut self, minus: Option<usize>) -> Parsed {
        let mut expr = self.primary(minus)?;
        loop {
            expr = match self.peek() {
                TokenKind::Punct(".") => self.selection(expr)?,
                TokenKind::Punct("[") => self.index(expr)?,
                TokenKind::Punct("{") if let Some(name) = expr.qualified_name() => {
                    return Err(self.message_literal(expr.offset, &name));
                }
                _ => return Ok(expr),
            };
        }
    }

    /// `.field`, `.?field` or `.function(…)`
    fn selection(&mut self, operand: Expr) -> Parsed {
        let dot = self.expect(".")?;
        let optional = self.take("?").is_some();
        let name = self.field_name()?;
        if optional {
            let field = self.node(ExprKind::Literal(Value::string(name)), dot)?;
            return self.call(dot, "_?._", vec![operand, field]);
        }
        if self.at_punct("(") {
            let offset = self.offset();
            let args = self.arguments()?;
            return macros::member_call(self, offset, operand, name, args);
        }
        self.node(ExprKind::Select { operand: Box::new(operand), field: name, test_only: false }, dot)
    }

    /// `[index]` or `[?index]`
    fn index(&mut self, operand: Expr) -> Parsed {
        let offset = self.expect("[")?;
        let function = if self.take("?").is_some() { "_[?_]" } else { "_[_]" };
        let index = self.expression()?;
        self.expect("]")?;
        self.call(offset, function, vec![operand, index])
    }

    fn message_literal(&mut self, offset: usize, name: &str) -> Stop {
        self.issue(
            offset,
            format!("message construction '{name}{{...}}' is not supported: use a map literal instead"),
        )
    }

    fn field_name(&mut self) -> Result<String, Stop> {
        let name = match self.peek() {
            TokenKind::Ident(name) if !is_keyword(name) => name.clone(),
            TokenKind::QuotedIdent(name) => name.clone(),
            _ => return Err(self.unexpected("IDENTIFIER")),
        };
        self.advance();
        Ok(name)
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, Stop> {
        self.expect("(")?;
        let mut args = Vec::new();
        if self.take(")").is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.take(",").is_none() {
                self.expect(")")?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self, minus: Option<usize>) -> Parsed {
        match self.peek() {
            TokenKind::Ident(name) if !is_keyword(name) => self.identifier(false),
            TokenKind::Punct("(") => self.parenthesized(),
            TokenKind::Punct("[") => self.list(),
            TokenKind::Punct("{") => self.map(),
            TokenKind::Punct(".") => {
                self.advance();
                self.identifier(true)
            }
            _ => self.literal(minus),
        }
    }

    fn parenthesized(&mut self) -> Parsed {
        self.expect("(")?;
        let expr = self.expression()?;
        self.expect(")")?;
        Ok(expr)
    }

    fn literal(&mut self, minus: Option<usize>) -> Parsed {
        let offset = minus.unwrap_or_else(|| self.offset());
        let literal = match self.peek() {
            TokenKind::Int(magnitude) => {
                let value = if minus.is_some() {
                    0i64.checked_sub_unsigned(*magnitude)
                } else {
                    i64::try_from(*magnitude).ok()
                };
                if value.is_none() {
                    self.issue(offset, "invalid int literal");
                }
                Value::Int(value.unwrap_or(0))
            }
            TokenKind::Uint(value) => Value::Uint(*value),
            TokenKind::Double(value) => Value::Double(if minus.is_some() { -value } else { *value }),
            TokenKind::String(text) => Value::String(text.clone()),
            TokenKind::Bytes(bytes) => Value::Bytes(bytes.clone()),
            TokenKind::Ident(name) if name == "true" => Value::Bool(true),
            TokenKind::Ident(name) if name == "false" => Value::Bool(false),
            TokenKind::Ident(name) if name == "null" => Value::Null,
            _ => return Err(self.unexpected("an expression")),
        };
        self.advance();
        self.node(ExprKind::Literal(literal), offset)
    }

    /// A variable, or a call of a global function. A leading dot asks for the outermost scope, which is
    /// the only one there is.
    fn identifier(&mut self, leading_dot: bool) -> Parsed {
        let offset = self.offset();
        let TokenKind::Ident(name) = self.peek() else { return Err(self.unexpected("IDENTIFIER")) };
        let name = name.clone();
        if is_keyword(&name) {
            return Err(self.unexpected("an expression"));
        }
        self.advance();
        if RESERVED.contains(&name.as_str()) {
            self.issue(offset, format!("reserved identifier: {name}"));
        }
        let name = if leading_dot { format!(".{name}") } else { name };
        if self.at_punct("(") {
            let offset = self.offset();
            let args = self.arguments()?;
            return macros::global_call(self, offset, &name, args);
        }
        self.node(ExprKind::Ident(name), offset)
    }

    fn list(&mut self) -> Parsed {
        let offset = self.expect("[")?;
        let mut elements = Vec::new();
        while self.take("]").is_none() {
            let optional = self.take("?").is_some();
            elements.push(Element { optional, value: self.expression()? });
            if self.take(",").is_none() {
                self.expect("]")?;
                break;
            }
        }
        self.node(ExprKind::List { elements }, offset)
    }

    fn map(&mut self) -> Parsed {
        let offset = self.expect("{")?;
        let mut entries = Vec::new();
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let key = self.expression()?;
            self.expect(":")?;
            entries.push(Entry { optional, key, value: self.expression()? });
            if self.take(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(ExprKind::Map { entries }, offset)
    }
}

/// Words that no variable can be called.
pub(crate) fn is_reserved(name: &str) -> bool {
    is_keyword(name) || RESERVED.contains(&name)
}

/// Words the grammar itself uses; they are never names, not even of fields.
fn is_keyword(name: &str) -> bool {
    matches!(name, "in" | "true" | "false" | "null")
}
