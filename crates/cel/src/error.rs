//! What can go wrong: issues found while compiling, and errors met while evaluating.
//!
//! Owns the wording. The texts follow the reference implementation of CEL, because people search for
//! them and because other tools parse them. Never decides whether something is an error.

use std::fmt;
use std::sync::Arc;

/// One thing wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Line of the offending token, counted from 1.
    pub line: u32,
    /// Column of the offending token in characters, counted from 1.
    pub column: u32,
    /// What is wrong, in one line.
    pub message: String,
    /// The source line the issue points into.
    snippet: String,
}

/// How many characters of a source line an issue shows before it is cut; a minified expression is one
/// line of many kilobytes and would drown the message.
const SNIPPET_CHARACTERS_MAX: usize = 512;

impl Issue {
    /// Makes the issue for the token that starts at byte `offset` of `source`.
    pub(crate) fn at(source: &str, offset: usize, message: impl Into<String>) -> Self {
        let offset = floor_char_boundary(source, offset);
        let before = &source[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = source[line_start..].find('\n').map_or(source.len(), |length| line_start + length);
        let snippet = source[line_start..line_end].trim_end_matches('\r');
        Self {
            line: 1 + before.bytes().filter(|byte| *byte == b'\n').count() as u32,
            column: 1 + source[line_start..offset].chars().count() as u32,
            message: message.into(),
            snippet: snippet.chars().take(SNIPPET_CHARACTERS_MAX).collect(),
        }
    }
}

fn floor_char_boundary(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR: <input>:{}:{}: {}\n | {}", self.line, self.column, self.message, self.snippet)?;
        let pointer = self.column as usize - 1;
        if pointer < SNIPPET_CHARACTERS_MAX {
            write!(f, "\n | {}^", ".".repeat(pointer))?;
        }
        Ok(())
    }
}

/// Why an expression was refused. Lists every issue found, in source order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    issues: Vec<Issue>,
}

impl CompileError {
    pub(crate) fn new(mut issues: Vec<Issue>) -> Self {
        debug_assert!(!issues.is_empty(), "a compile error names at least one issue");
        issues.sort_by_key(|issue| (issue.line, issue.column));
        Self { issues }
    }

    /// Every issue found.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// The issues on one line, for a status condition or a log record.
    pub fn one_line(&self) -> String {
        let issues: Vec<String> = self
            .issues
            .iter()
            .map(|issue| format!("{}:{}: {}", issue.line, issue.column, issue.message))
            .collect();
        issues.join("; ")
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{issue}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CompileError {}

/// Why an evaluation produced no value.
///
/// Every variant but [`EvalError::BudgetExceeded`] is an ordinary CEL error: `||` and `&&` absorb it
/// when the other side decides the result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A map has no entry under the key.
    #[error("no such key: {key}")]
    NoSuchKey {
        /// The key as CEL prints it.
        key: Arc<str>,
    },
    /// A list has no element at the index.
    #[error("index out of bounds: {index}")]
    IndexOutOfBounds {
        /// The index asked for.
        index: i64,
    },
    /// An operator or function does not take values of these types.
    #[error("no such overload")]
    NoSuchOverload,
    /// A variable that the environment declares was not given a value.
    #[error("no such attribute(s): {name}")]
    UnboundVariable {
        /// The name of the variable.
        name: Arc<str>,
    },
    /// A number was divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The remainder of a division by zero was asked for.
    #[error("modulus by zero")]
    ModulusByZero,
    /// A result does not fit its type.
    #[error("{what} overflow")]
    Overflow {
        /// The type that overflowed, such as `integer` or `unsigned integer`.
        what: &'static str,
    },
    /// A value could not be converted, parsed or used as an argument.
    #[error("{0}")]
    Invalid(Arc<str>),
    /// A host function failed.
    #[error("{0}")]
    Host(Arc<str>),
    /// The evaluation would cost more than its budget allows. Ends the evaluation, whatever surrounds it.
    #[error("operation cancelled: actual cost limit exceeded")]
    BudgetExceeded,
}

impl EvalError {
    /// An error about a value, in the given words.
    pub fn invalid(message: impl AsRef<str>) -> Self {
        Self::Invalid(Arc::from(message.as_ref()))
    }

    /// An error from a host function, in the given words.
    pub fn host(message: impl AsRef<str>) -> Self {
        Self::Host(Arc::from(message.as_ref()))
    }

    /// Whether the error ends the evaluation even inside `||`, `&&` and the quantifiers.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::BudgetExceeded)
    }
}
