//! Regular expressions: `matches`, `find`, `findAll`.
//!
//! Owns the translation of RE2's notation, which CEL prescribes, into that of the engine used here:
//! `\d`, `\w`, `\s` and `\b` mean ASCII, and brackets inside a class are plain characters.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("matches", "matches", "(string, string) -> bool", matches),
    ("matches", "matches_string", "string.(string) -> bool", matches),
    ("find", "string_find_string", "string.(string) -> string", find),
    ("findAll", "string_find_all_string", "string.(string) -> list(string)", find_all),
    ("findAll", "string_find_all_string_int", "string.(string, int) -> list(string)", find_all),
];

/// Bytes a compiled pattern may take; nested repetitions multiply.
const PROGRAM_BYTES_MAX: usize = 256 * 1024;
/// Bytes the lazily built automaton of a pattern may take.
const AUTOMATON_BYTES_MAX: usize = 512 * 1024;
/// How deep groups may nest.
const NESTING_MAX: u32 = 64;
/// The longest pattern accepted, in bytes.
const PATTERN_BYTES_MAX: usize = 4096;

/// Compiles a pattern, or says what is wrong with it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("pattern is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    RegexBuilder::new(&translate(pattern))
        .size_limit(PROGRAM_BYTES_MAX)
        .dfa_size_limit(AUTOMATON_BYTES_MAX)
        .nest_limit(NESTING_MAX)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "pattern needs too much memory".to_owned(),
            other => {
                let text = other.to_string();
                let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("error parsing regexp: {reason}: `{pattern}`")
            }
        })
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    // Whether the next character opens the class: there, `]` is an ordinary member.
    let mut class_start = false;
    while let Some(c) = chars.next() {
        let opening = std::mem::replace(&mut class_start, false);
        match c {
            '\\' => match chars.next() {
                Some(escaped) => escape(escaped, in_class, &mut chars, &mut out),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    out.push('^');
                    chars.next();
                }
            }
            '[' if chars.peek() == Some(&':') => {
                // A named class such as `[:alpha:]`.
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' if in_class && !opening => {
                in_class = false;
                out.push(']');
            }
            '[' | ']' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn escape(c: char, in_class: bool, chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let replacement = match (c, in_class) {
        ('d', true) => "0-9",
        ('d', false) => "[0-9]",
        ('D', _) => "[^0-9]",
        ('w', true) => "0-9A-Za-z_",
        ('w', false) => "[0-9A-Za-z_]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', true) => "\\t\\n\\f\\r ",
        ('s', false) => "[\\t\\n\\f\\r ]",
        ('S', _) => "[^\\t\\n\\f\\r ]",
        ('b', false) => "(?-u:\\b)",
        ('B', false) => "(?-u:\\B)",
        ('Q', false) => {
            // Literal up to `\E`.
            while let Some(literal) = chars.next() {
                if literal == '\\' && chars.peek() == Some(&'E') {
                    chars.next();
                    break;
                }
                out.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
            }
            return;
        }
        _ => {
            out.push('\\');
            out.push(c);
            return;
        }
    };
    out.push_str(replacement);
}

/// The text and the compiled pattern of a call. Matching is linear in their product, and accounted for
/// as such.
fn prepare<'v>(
    context: &mut Context<'_>,
    args: &'v [Value],
) -> Result<(&'v Arc<str>, Arc<Regex>), EvalError> {
    let [Value::String(text), Value::String(pattern), ..] = args else {
        return Err(EvalError::NoSuchOverload);
    };
    let compiled = context.pattern(pattern)?;
    context.budget.work((text.len() as u64).saturating_mul(1 + pattern.len() as u64 / 16))?;
    Ok((text, compiled))
}

fn matches(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, pattern) = prepare(context, args)?;
    Ok(Value::Bool(pattern.is_match(text)))
}

fn find(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, pattern) = prepare(context, args)?;
    Ok(Value::string(pattern.find(text).map_or("", |found| found.as_str())))
}

fn find_all(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let limit = match args {
        [_, _, Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
        [_, _] => usize::MAX,
        _ => return Err(EvalError::NoSuchOverload),
    };
    let (text, pattern) = prepare(context, args)?;
    let mut found = Vec::new();
    for matched in pattern.find_iter(text).take(limit) {
        context.budget.work(64 + matched.len() as u64)?;
        found.push(Value::string(matched.as_str()));
    }
    Ok(Value::list(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_escapes_mean_what_they_mean_in_re2() {
        let cases = [
            (r"^\d+$", "42", true),
            (r"^\d+$", "٤٢", false),
            (r"^[\w-]+$", "a-b_1", true),
            (r"^\w$", "é", false),
            (r"^[[]$", "[", true),
            (r"^[]a]$", "]", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"(?i)^ABC$", "abc", true),
        ];
        for (pattern, text, wanted) in cases {
            let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.is_match(text), wanted, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_pattern_that_multiplies_is_refused_quickly() {
        assert!(compile("((((a{100}){100}){100}){100})").is_err());
        assert!(compile(&"(".repeat(5000)).is_err());
    }
}
